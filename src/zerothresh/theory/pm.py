r"""pM-SZHT: gamma of Theorem 2, the distribution of the memory's age, and the system errors, with consistent units."""

from __future__ import annotations

import math

import numpy as np

from zerothresh.basics import capacity
from zerothresh.basics.arrays import Array
from zerothresh.theory.constants import beta, check_curvature
from zerothresh.theory.intervals import refreshed
from zerothresh.theory.quantities import formula
from zerothresh.theory.step import NOTHING, AtOptimum, gradients_left


@formula
def pm_gamma(*, eta: float, alpha: float, eps_I: float, rho_minus: float, rho_plus: float, p: float, n: int) -> float:
    r"""The rate of Theorem 2, with the factor rho_s^+ / 2 that converts squared distances into values of F:

    .. math:: \gamma = \frac{\rho_s^+}{2}\Big(\frac{2\beta}{\rho_s^-} + 48\eta^2\alpha\rho_s^+\epsilon_I
        - 2\eta\alpha\Big) + 1 - \frac pn
    """
    check_curvature(rho_minus=rho_minus, rho_plus=rho_plus)
    grown = 2 * beta(eta=eta, alpha=alpha, rho_minus=rho_minus) / rho_minus
    step = 48 * eta**2 * alpha * rho_plus * eps_I - 2 * eta * alpha
    return rho_plus / 2 * (grown + step) + 1 - refreshed(p=p, n=n)


@formula
def memory_weights(*, r: int, p: float, n: int) -> Array:
    r"""The probability that, at step r, a row of the memory dates from step u, for u = 0 .. r-1:

    .. math:: (1 - p/n)^{r-1} \text{ for } u = 0, \quad \tfrac pn (1 - p/n)^{r-u-1} \text{ for } u \ge 1

    >>> memory_weights(r=3, p=1, n=2)
    array([0.25, 0.25, 0.5 ])
    """
    share = refreshed(p=p, n=n)
    capacity.need(capacity.NUMBER * r, f"a law of r = {r} probabilities", "take a smaller r")
    age = r - 1 - np.arange(r)
    weights = np.asarray(share * (1 - share) ** age, np.float64)
    weights[0] = (1 - share) ** (r - 1)
    return weights


@formula
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
    r"""The system errors (L_mu, L_r) of Theorem 2, in units of F.

    .. math:: L_\mu = \tfrac{\rho_s^+}2\alpha\big(\epsilon_\mu\mu^2/{\rho_s^-}^2
        + 6\eta^2(\epsilon_{abs}\mu^2 + A_r)\big)

    A_r is the error of the estimates in the memory. L_r vanishes if the gradients at theta* do.
    """
    half = rho_plus / 2 * alpha
    L_mu = half * (eps_mu * (mu / rho_minus) ** 2 + 6 * eta**2 * (eps_abs * mu**2 + A_r))
    kappa_beta = rho_plus / rho_minus * beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    cross = math.sqrt(s) * at_optimum.F_inf * (kappa_beta * distance + next_distance)
    rest = gradients_left(eps_I=eps_I, eps_Ic=eps_Ic, d=d, s=s) * at_optimum.f_inf_square
    return L_mu, cross + half * eta**2 * 3 * (rest + s * at_optimum.F_inf**2)
