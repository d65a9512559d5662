r"""SARAH-SZHT: the factors of the two gaps in its theorem, and its system errors."""

from __future__ import annotations

from zerothresh.basics import check
from zerothresh.theory.constants import beta
from zerothresh.theory.quantities import formula
from zerothresh.theory.step import NOTHING, AtOptimum, gradients_left
from zerothresh.theory.vr import check_epoch, powers, sum_of_errors


@formula
def sarah_delta(*, eta: float, m: int, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> float:
    r"""The factor of the new gap in the theorem of SARAH-SZHT, which calls it gamma':

    .. math:: \alpha\Big(2\eta\frac{\beta^{m-1}-1}{\beta-1} - 48\epsilon_I\eta^2\rho_s^+\Big(
        \frac{\beta^{m-1}-1}{\beta-1} + \frac{\beta^{m-2}-1}{\beta-1}\Big)\Big)
    """
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    check_epoch(m, 2, b=b, rho_minus=rho_minus, rho_plus=rho_plus)
    one, two = powers(b, m - 1), powers(b, m - 2)
    return alpha * (2 * eta * one - 48 * eps_I * eta**2 * rho_plus * (one + two))


@formula
def sarah_gamma(*, eta: float, m: int, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> float:
    r"""The factor of the old gap in the theorem of SARAH-SZHT,
    :math:`2\beta^{m-1}/\rho_s^- + 48\eta^2\rho_s^+\epsilon_I\alpha\beta^{m-2}`."""
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    check_epoch(m, 2, b=b, rho_minus=rho_minus, rho_plus=rho_plus)
    return 2 * b ** (m - 1) / rho_minus + 48 * eta**2 * rho_plus * eps_I * alpha * b ** (m - 2)


@formula
def sarah_errors(
    *,
    eta: float,
    m: int,
    alpha: float,
    rho_minus: float,
    eps_mu: float,
    eps_abs: float,
    eps_I: float,
    eps_Ic: float,
    d: int,
    s: int,
    mu: float,
    at_optimum: AtOptimum = NOTHING,
    distance: float = 0.0,
) -> tuple[float, float]:
    """The system errors of the theorem of SARAH-SZHT, as in `vr_errors`, over m - 1 steps."""
    check.count("m", m, low=2)
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    check_epoch(m, 2, b=b, rho_minus=rho_minus, rho_plus=rho_minus)
    return sum_of_errors(
        b ** (m - 1), powers(b, m - 1) * alpha, eta, rho_minus, eps_mu, eps_abs,
        gradients_left(eps_I=eps_I, eps_Ic=eps_Ic, d=d, s=s), s, mu, at_optimum, distance,
    )  # fmt: skip
