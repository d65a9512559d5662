r"""VR-SZHT: delta and gamma' of Theorem 3, its system errors, its smallest m, and the law of its outgoing iterate."""

from __future__ import annotations

import math

import numpy as np

from zerothresh.basics import capacity, check
from zerothresh.basics.arrays import Array
from zerothresh.theory.constants import beta, check_curvature, need
from zerothresh.theory.quantities import formula
from zerothresh.theory.step import NOTHING, AtOptimum, gradients_left


def powers(b: float, m: int) -> float:
    """1 + b + ... + b^(m-1) = (b^m - 1) / (b - 1)."""
    return float(m) if b == 1 else math.expm1(m * math.log(b)) / (b - 1)


def check_epoch(m: int, least: int, *, b: float, rho_minus: float, rho_plus: float) -> None:
    """Check that there are enough inner steps, and not so many that beta^m overflows."""
    check.count("m", m)
    need(m >= least, f"m >= {least} (steps per epoch)", f"m = {m}")
    check_curvature(rho_minus=rho_minus, rho_plus=rho_plus)
    need(m * math.log(b) < 700, "a beta^m that does not overflow", f"beta = {b:g} and m = {m}: take a smaller m")


@formula
def vr_delta(*, eta: float, m: int, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> float:
    r"""The factor of the new gap in Theorem 3 (VR-SZHT):

    .. math:: \delta = \frac{\beta^m-1}{\beta-1}(2\eta - 48\epsilon_I\eta^2\rho_s^+)\alpha
    """
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    check_epoch(m, 1, b=b, rho_minus=rho_minus, rho_plus=rho_plus)
    return powers(b, m) * (2 * eta - 48 * eps_I * eta**2 * rho_plus) * alpha


@formula
def vr_gamma(*, eta: float, m: int, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> float:
    r"""The factor of the old gap in Theorem 3 (VR-SZHT); epochs reduce the gap if it is below delta:

    .. math:: \gamma' = \frac{2\beta^m}{\rho_s^-}
        + \frac{48\eta^2\rho_s^+\epsilon_I\alpha(\beta^m-1)}{\beta-1}
    """
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    check_epoch(m, 1, b=b, rho_minus=rho_minus, rho_plus=rho_plus)
    return 2 * b**m / rho_minus + 48 * eta**2 * rho_plus * eps_I * alpha * powers(b, m)


@formula
def outgoing_law(*, beta: float, m: int) -> Array:
    r"""The distribution of the outgoing t in 0 .. m-1 for which Theorem 3 holds: weights :math:`\beta^{m-1-t}`.

    The paper draws t uniformly, or takes the last one; the sum of beta^(m-1-t) F(theta^(t)) in its proof needs these
    weights.

    >>> outgoing_law(beta=2.0, m=2)
    array([0.66666667, 0.33333333])
    """
    capacity.need(capacity.NUMBER * m, f"a law of m = {m} probabilities", "take a smaller m")
    exponents = -np.log(beta) * np.arange(m)
    weights: Array = np.exp(exponents - exponents.max())  # the largest is 1, so that none overflows
    return np.asarray(weights / weights.sum())


@formula
def vr_errors(
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
    r"""The system errors of Theorem 3: that of the gradients at theta*, and that of mu.

    The floor is their sum divided by delta - gamma'.

    .. math:: L' = \frac{\beta^m-1}{\beta-1}\alpha(12\eta^2\epsilon_{abs}\mu^2 + \epsilon_\mu\mu^2/{\rho_s^-}^2)

    The paper prints 72 instead of 12, and n^2 before eps_mu.
    """
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    check_epoch(m, 1, b=b, rho_minus=rho_minus, rho_plus=rho_minus)
    sums = powers(b, m) * alpha
    return sum_of_errors(
        b**m, sums, eta, rho_minus, eps_mu, eps_abs, gradients_left(eps_I=eps_I, eps_Ic=eps_Ic, d=d, s=s),
        s, mu, at_optimum, distance,
    )  # fmt: skip


def sum_of_errors(
    power: float,
    sums: float,
    eta: float,
    rho_minus: float,
    eps_mu: float,
    eps_abs: float,
    left: float,
    s: int,
    mu: float,
    at: AtOptimum,
    distance: float,
) -> tuple[float, float]:
    """The system errors of an epoch: of the gradients at theta* (initial distance and sum over steps), and of mu."""
    cross = 2 * power / rho_minus * math.sqrt(s) * at.F_inf * distance
    noise = sums * eta**2 * (6 * left * at.f_inf_square + 3 * s * at.F_inf**2)
    return cross + noise, sums * (12 * eta**2 * eps_abs * mu**2 + eps_mu * (mu / rho_minus) ** 2)


@formula
def vr_least_m(*, eta: float, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> int:
    r"""The smallest m for which gamma' < delta, which then holds for every larger m:

    .. math:: \beta^{-m} < 1 - \frac{\beta - 1}{(1 - 48\epsilon_I\eta\rho_s^+) \eta\alpha\rho_s^-}
    """
    check_curvature(rho_minus=rho_minus, rho_plus=rho_plus)
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    room = (1 - 48 * eps_I * eta * rho_plus) * eta * alpha * rho_minus
    need(
        room > b - 1,
        "(1 - 48 eps_I eta rho_s^+) eta alpha rho_s^- > beta - 1 (eta in vr_eta_interval)",
        f"eta = {eta:g}, alpha = {alpha:g}, eps_I = {eps_I:g}",
    )
    return math.floor(-math.log1p(-(b - 1) / room) / math.log(b)) + 1
