r"""pM-SZHT: gamma of Theorem 2, the distribution of the memory's age, and the system errors, with consistent units.

A step of pM-SZHT depends on the memory, hence on past iterates. Theorem 2, repaired, says of a step that

.. math:: E[F(\theta^{(r+1)}) - F^*] \le (\gamma - 1 + p/n) [F(\theta^{(r)}) - F^*] + L_\mu + L_r

with the error A_r of the memory in L_mu. A_r is bounded by past gaps (`memory_error`), and the factor of both together
is `pm_rate`.
"""

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
    r"""gamma of Theorem 2, with the factor rho_s^+ / 2 that converts squared distances into values of F:

    .. math:: \gamma = \frac{\rho_s^+}{2}\Big(\frac{2\beta}{\rho_s^-} + 48\eta^2\alpha\rho_s^+\epsilon_I
        - 2\eta\alpha\Big) + 1 - \frac pn

    The last term stands for the memory in the paper. With A_r of `memory_error`, a step needs gamma - 1 + p/n only;
    the rate over many steps is `pm_rate`.
    """
    check_curvature(rho_minus=rho_minus, rho_plus=rho_plus)
    grown = 2 * beta(eta=eta, alpha=alpha, rho_minus=rho_minus) / rho_minus
    step = 48 * eta**2 * alpha * rho_plus * eps_I - 2 * eta * alpha
    return rho_plus / 2 * (grown + step) + 1 - refreshed(p=p, n=n)


@formula
def pm_rate(*, eta: float, alpha: float, eps_I: float, rho_minus: float, rho_plus: float, p: float, n: int) -> float:
    r"""The rate of pM-SZHT for any memory: the spectral radius of the matrix that bounds a step of
    (gap of the iterate, mean gap of the memory's iterates),

    .. math:: \begin{pmatrix} \gamma - 1 + p/n & 24\eta^2\alpha{\rho_s^+}^2\epsilon_I \\ p/n & 1 - p/n \end{pmatrix}

    It is below 1 if and only if the sum of the first row is, for every p: p decides how fast the memory follows, not
    whether the method converges. This is a derivation of this library, from Theorem 1 and `pm_second_moment`.

    >>> pm_rate(eta=0.005, alpha=1.0, eps_I=2.0, rho_minus=1.0, rho_plus=1.0, p=1, n=10) < 1
    True
    """
    share = refreshed(p=p, n=n)
    own = pm_gamma(eta=eta, alpha=alpha, eps_I=eps_I, rho_minus=rho_minus, rho_plus=rho_plus, p=p, n=n) - 1 + share
    memory = 24 * eta**2 * alpha * rho_plus**2 * eps_I
    half, kept = (own - (1 - share)) / 2, (own + 1 - share) / 2  # the eigenvalues of a matrix of size 2
    return kept + math.sqrt(half**2 + memory * share)


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
    A_r: float,
    at_optimum: AtOptimum = NOTHING,
    distance: float = 0.0,
    next_distance: float = 0.0,
) -> tuple[float, float]:
    r"""The system errors (L_mu, L_r) of Theorem 2, in units of F.

    .. math:: L_\mu = \tfrac{\rho_s^+}2\alpha\big(\epsilon_\mu\mu^2/{\rho_s^-}^2
        + \eta^2(6\epsilon_{abs}\mu^2 + 3A_r)\big)

    A_r is the error of the memory, from `memory_error`, or measured: the mean of
    :math:`||\hat a_i - \nabla f_i(\theta^*)||^2` over the rows. The paper's A_r is the part that is noise, with the
    factor 6: see the erratum "pm-memory". L_r vanishes if the gradients at theta* do.
    """
    half = rho_plus / 2 * alpha
    L_mu = half * (eps_mu * (mu / rho_minus) ** 2 + eta**2 * (6 * eps_abs * mu**2 + 3 * A_r))
    kappa_beta = rho_plus / rho_minus * beta(eta=eta, alpha=alpha, rho_minus=rho_minus)
    cross = math.sqrt(s) * at_optimum.F_inf * (kappa_beta * distance + next_distance)
    rest = gradients_left(eps_I=eps_I, eps_Ic=eps_Ic, d=d, s=s) * at_optimum.f_inf_square
    return L_mu, cross + half * eta**2 * 3 * (rest + s * at_optimum.F_inf**2)
