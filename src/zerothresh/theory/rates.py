r"""How fast, and down to where: gamma, delta and gamma' of the theorems, and their system errors.

Theorem 1 bounds a step of any method; Theorem 2 is pM-SZHT's, Theorem 3 VR-SZHT's, the last one
SARAH-SZHT's. Where what is printed cannot be, this is the repaired form: see `errata`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zerothresh import check
from zerothresh.theory.constants import beta, check_curvature, need
from zerothresh.theory.intervals import refreshed


@dataclass(frozen=True)
class AtOptimum:
    """What is left of gradients at theta*; all 0 if every f_i has its minimum there."""

    F_inf: float = 0.0  # ||grad F(theta*)||_inf
    f_inf_square: float = 0.0  # E ||grad f_i(theta*)||_inf^2


NOTHING = AtOptimum()


def step_bound(
    *,
    eta: float,
    alpha: float,
    rho_minus: float,
    eps_mu: float,
    mu: float,
    distance_square: float,
    second_moment: float,
    gap: float,
) -> float:
    r"""Theorem 1: E||theta^(r+1) - theta*||^2 is at most

    .. math:: (1+\eta^2{\rho_s^-}^2)\alpha E||\theta - \theta^*||^2 + \eta^2 \alpha E||\hat g_I||^2
        - 2\eta\alpha [F(\theta) - F(\theta^*)] + \alpha \epsilon_\mu\mu^2 / {\rho_s^-}^2

    The paper prints n^2 in the last term, which the mean over n components does not have.
    """
    grown = beta(eta=eta, alpha=alpha, rho_minus=rho_minus) * distance_square
    return grown + alpha * (eta**2 * second_moment - 2 * eta * gap + eps_mu * (mu / rho_minus) ** 2)


# pM-SZHT


def pm_gamma(*, eta: float, alpha: float, eps_I: float, rho_minus: float, rho_plus: float, p: float, n: int) -> float:
    r"""The rate of Theorem 2, with the factor rho_s^+ / 2 that turns squared distances into values of F:

    .. math:: \gamma = \frac{\rho_s^+}{2}\Big(\frac{2\beta}{\rho_s^-} + 48\eta^2\alpha\rho_s^+\epsilon_I
        - 2\eta\alpha\Big) + 1 - \frac pn
    """
    check_curvature(rho_minus=rho_minus, rho_plus=rho_plus)
    grown = 2 * beta(eta=eta, alpha=alpha, rho_minus=rho_minus) / rho_minus
    step = 48 * eta**2 * alpha * rho_plus * eps_I - 2 * eta * alpha
    return rho_plus / 2 * (grown + step) + 1 - refreshed(p=p, n=n)


def memory_weights(*, r: int, p: float, n: int) -> NDArray[np.float64]:
    r"""The chance that a row of the memory is as old as step u, u = 0 .. r-1, when step r is made:

    .. math:: (1 - p/n)^{r-1} \text{ for } u = 0, \quad \tfrac pn (1 - p/n)^{r-u-1} \text{ for } u \ge 1

    >>> memory_weights(r=3, p=1, n=2)
    array([0.25, 0.25, 0.5 ])
    """
    share = refreshed(p=p, n=n)
    age = check.count("r", r) - 1 - np.arange(r)
    weights = np.asarray(share * (1 - share) ** age, np.float64)
    weights[0] = (1 - share) ** (r - 1)
    return weights


def pm_errors(
    *,
    eta: float,
    alpha: float,
    rho_minus: float,
    rho_plus: float,
    eps_mu: float,
    eps_abs: float,
    eps_I: float,
    eps_Ic: float,
    d: int,
    s: int,
    mu: float,
    A_r: float = 0.0,
    at_optimum: AtOptimum = NOTHING,
    distance: float = 0.0,
    next_distance: float = 0.0,
) -> tuple[float, float]:
    r"""The system errors of Theorem 2, in units of F: (L_mu, L_r).

    .. math:: L_\mu = \tfrac{\rho_s^+}2\alpha\big(\epsilon_\mu\mu^2/{\rho_s^-}^2
        + 6\eta^2(\epsilon_{abs}\mu^2 + A_r)\big)

    A_r is the error of the memory's estimates. L_r vanishes with the gradients at theta*.
    """
    half = rho_plus / 2 * alpha
    L_mu = half * (eps_mu * (mu / rho_minus) ** 2 + 6 * eta**2 * (eps_abs * mu**2 + A_r))
    kappa_beta = rho_plus / rho_minus * beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    cross = math.sqrt(s) * at_optimum.F_inf * (kappa_beta * distance + next_distance)
    rest = gradients_left(eps_I=eps_I, eps_Ic=eps_Ic, d=d, s=s) * at_optimum.f_inf_square
    return L_mu, cross + half * eta**2 * 3 * (rest + s * at_optimum.F_inf**2)


def gradients_left(*, eps_I: float, eps_Ic: float, d: int, s: int) -> float:
    r"""What E||grad f_i(theta*)||_inf^2 is multiplied by: :math:`4\epsilon_I s + 2s + 4\epsilon_{I^c}(d-s)`.

    The paper prints :math:`(4\epsilon_I s + 2) + \epsilon_{I^c}(d - k)`.
    """
    return 4 * eps_I * s + 2 * s + 4 * eps_Ic * (d - s)


# VR-SZHT


def _powers(b: float, m: int) -> float:
    """1 + b + ... + b^(m-1) = (b^m - 1) / (b - 1)."""
    return float(m) if b == 1 else math.expm1(m * math.log(b)) / (b - 1)


def _check_epoch(m: int, least: int, *, b: float, rho_minus: float, rho_plus: float) -> None:
    check.count("m", m)
    need(m >= least, f"m >= {least} (steps an epoch)", f"m = {m}")
    check_curvature(rho_minus=rho_minus, rho_plus=rho_plus)
    need(m * math.log(b) < 700, "beta^m that is a number", f"beta = {b:g} and m = {m}: take a smaller m")


def vr_delta(*, eta: float, m: int, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> float:
    r"""What multiplies the new gap in Theorem 3 (VR-SZHT):

    .. math:: \delta = \frac{\beta^m-1}{\beta-1}(2\eta - 48\epsilon_I\eta^2\rho_s^+)\alpha
    """
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    _check_epoch(m, 1, b=b, rho_minus=rho_minus, rho_plus=rho_plus)
    return _powers(b, m) * (2 * eta - 48 * eps_I * eta**2 * rho_plus) * alpha


def vr_gamma(*, eta: float, m: int, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> float:
    r"""What multiplies the old gap in Theorem 3 (VR-SZHT); an epoch converges if it is below delta:

    .. math:: \gamma' = \frac{2\beta^m}{\rho_s^-}
        + \frac{48\eta^2\rho_s^+\epsilon_I\alpha(\beta^m-1)}{\beta-1}
    """
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    _check_epoch(m, 1, b=b, rho_minus=rho_minus, rho_plus=rho_plus)
    return 2 * b**m / rho_minus + 48 * eta**2 * rho_plus * eps_I * alpha * _powers(b, m)


def outgoing_law(*, beta: float, m: int) -> NDArray[np.float64]:
    r"""The law of the outgoing t in 0 .. m-1 for which Theorem 3 holds: weights :math:`\beta^{m-1-t}`.

    The paper draws it uniformly, or takes the last one; its sum of beta^(m-1-t) F(theta^(t)) needs this.

    >>> outgoing_law(beta=2.0, m=2)
    array([0.66666667, 0.33333333])
    """
    weights: NDArray[np.float64] = np.exp(-np.log(beta) * np.arange(check.count("m", m)))
    return np.asarray(weights / weights.sum())


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
    r"""The system errors of Theorem 3, (that of the gradients at theta*, that of mu). The floor is their sum over
    delta - gamma'.

    .. math:: L' = \frac{\beta^m-1}{\beta-1}\alpha(12\eta^2\epsilon_{abs}\mu^2 + \epsilon_\mu\mu^2/{\rho_s^-}^2)

    The paper prints 72 for 12, and n^2 before eps_mu.
    """
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    _check_epoch(m, 1, b=b, rho_minus=rho_minus, rho_plus=rho_minus)
    sums = _powers(b, m) * alpha
    return _errors(
        b**m, sums, eta, rho_minus, eps_mu, eps_abs, gradients_left(eps_I=eps_I, eps_Ic=eps_Ic, d=d, s=s),
        s, mu, at_optimum, distance,
    )  # fmt: skip


def _errors(
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
    cross = 2 * power / rho_minus * math.sqrt(s) * at.F_inf * distance
    noise = sums * eta**2 * (6 * left * at.f_inf_square + 3 * s * at.F_inf**2)
    return cross + noise, sums * (12 * eta**2 * eps_abs * mu**2 + eps_mu * (mu / rho_minus) ** 2)


def vr_least_m(*, eta: float, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> int:
    r"""The least m for which gamma' < delta: :math:`\beta^{-m} < 1 - (\beta - 1) / ((1 - 48\epsilon_I\eta\rho_s^+)
    \eta\alpha\rho_s^-)`. Every larger m will do as well."""
    check_curvature(rho_minus=rho_minus, rho_plus=rho_plus)
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    room = (1 - 48 * eps_I * eta * rho_plus) * eta * alpha * rho_minus
    need(
        room > b - 1,
        "(1 - 48 eps_I eta rho_s^+) eta alpha rho_s^- > beta - 1 (eta in vr_eta_interval)",
        f"eta = {eta:g}, alpha = {alpha:g}, eps_I = {eps_I:g}",
    )
    return math.floor(-math.log1p(-(b - 1) / room) / math.log(b)) + 1


# SARAH-SZHT


def sarah_delta(*, eta: float, m: int, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> float:
    r"""What multiplies the new gap in SARAH-SZHT's theorem (there called gamma'; alpha multiplies all of it):

    .. math:: \alpha\Big(2\eta\frac{\beta^{m-1}-1}{\beta-1} - 48\epsilon_I\eta^2\rho_s^+\Big(
        \frac{\beta^{m-1}-1}{\beta-1} + \frac{\beta^{m-2}-1}{\beta-1}\Big)\Big)
    """
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    _check_epoch(m, 2, b=b, rho_minus=rho_minus, rho_plus=rho_plus)
    one, two = _powers(b, m - 1), _powers(b, m - 2)
    return alpha * (2 * eta * one - 48 * eps_I * eta**2 * rho_plus * (one + two))


def sarah_gamma(*, eta: float, m: int, alpha: float, eps_I: float, rho_minus: float, rho_plus: float) -> float:
    r"""What multiplies the old gap there:
    :math:`2\beta^{m-1}/\rho_s^- + 48\eta^2\rho_s^+\epsilon_I\alpha\beta^{m-2}`."""
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    _check_epoch(m, 2, b=b, rho_minus=rho_minus, rho_plus=rho_plus)
    return 2 * b ** (m - 1) / rho_minus + 48 * eta**2 * rho_plus * eps_I * alpha * b ** (m - 2)


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
    """The system errors of SARAH-SZHT's theorem, as `vr_errors`, over m - 1 steps."""
    check.count("m", m, low=2)
    b = beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    _check_epoch(m, 2, b=b, rho_minus=rho_minus, rho_plus=rho_minus)
    return _errors(
        b ** (m - 1), _powers(b, m - 1) * alpha, eta, rho_minus, eps_mu, eps_abs,
        gradients_left(eps_I=eps_I, eps_Ic=eps_Ic, d=d, s=s), s, mu, at_optimum, distance,
    )  # fmt: skip


# SZOHT


def szoht_floor(
    *, rate: float, gamma_square: float, eta: float, rho_minus: float, eps_mu: float, eps_abs: float, mu: float
) -> float:
    r"""Where E||theta - theta*||^2 ends with SZOHT, if every f_i has its minimum at theta*:

    .. math:: \frac{\gamma^2\mu^2}{1 - (\gamma\rho)^2}
        \Big(\frac{4\eta\epsilon_\mu}{3\rho_s^-} + \eta^2\epsilon_{abs}\Big)

    Ours: a step with eta = rho^- / ((4 eps_I + 1) rho^+^2) has at least 3/4 of eta rho^- to spare, which pays
    for the bias (by 2ab <= (3/4) rho^- a^2 + 4 b^2 / (3 rho^-)).
    """
    need(rate < 1, "a rate below 1", f"rate = {rate:g}")
    spread = 4 * eta * eps_mu / (3 * rho_minus) + eta**2 * eps_abs
    return gamma_square * mu**2 * spread / (1 - rate**2)
