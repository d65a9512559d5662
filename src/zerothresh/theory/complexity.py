r"""The numbers of queries and hard thresholdings: the orders that the papers state, and the exact counts per epoch.

An order is the expression inside O(...) with its constant taken as 1. It is good for comparing growth rates, not for
forecasts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from zerothresh.basics import check
from zerothresh.theory.constants import check_kappa, need
from zerothresh.theory.quantities import formula

MOST_STEPS = 10**7  # of a schedule whose directions are added up one by one, which takes seconds


def digits(eps: float) -> float:
    """log(1/eps), for an accuracy 0 < eps < 1."""
    check.positive("eps", eps)
    need(eps < 1, "eps < 1 (a share of the initial gap F - F*)", f"eps = {eps:g}")
    return -math.log(eps)


@formula
def szoht_queries(*, k: int, d: int, s2: int, kappa: float, eps: float) -> float:
    r"""Queries of SZOHT, O((k + d/s2) kappa^2 log 1/eps): k + d/s2 per step, in kappa^2 log 1/eps steps."""
    check.count("k", k)
    need(1 <= check.count("s2", s2) <= d, "1 <= s2 <= d", f"s2 = {s2} and d = {d}")
    return (k + d / s2) * check_kappa(kappa) ** 2 * digits(eps)


@formula
def szoht_thresholdings(*, kappa: float, eps: float) -> float:
    """Hard thresholdings of SZOHT, O(kappa^2 log 1/eps): one per step."""
    return check_kappa(kappa) ** 2 * digits(eps)


@formula
def vr_estimates(*, n: int, kappa: float, eps: float) -> float:
    r"""Gradient estimates of VR-SZHT, O((n + kappa^3 / (kappa^2 + 1)) log 1/eps), which the paper calls queries."""
    return (check.count("n", n) + vr_inner(kappa=kappa)) * digits(eps)


@formula
def vr_inner(*, kappa: float) -> float:
    """Inner steps per epoch of VR-SZHT, O(kappa^3 / (kappa^2 + 1)): between kappa / 2 and kappa, since kappa >= 1."""
    return check_kappa(kappa) ** 3 / (kappa**2 + 1)


@formula
def vr_queries(*, n: int, q: int, kappa: float, eps: float) -> float:
    r"""Queries of VR-SZHT, O(q (n + kappa^3 / (kappa^2 + 1)) log 1/eps), with q + 1 calls per estimate.

    See the erratum "vr-queries-q".
    """
    return (check.count("q", q) + 1) * vr_estimates(n=n, kappa=kappa, eps=eps)


@formula
def vr_thresholdings(*, kappa: float, eps: float) -> float:
    """Hard thresholdings of VR-SZHT, O(kappa^3 / (kappa^2 + 1) log 1/eps): one per inner step.

    See the erratum "vr-nht".
    """
    return vr_inner(kappa=kappa) * digits(eps)


# The corollary of SARAH-SZHT states the same orders.
sarah_estimates, sarah_queries, sarah_thresholdings = vr_estimates, vr_queries, vr_thresholdings


@formula
def hzo_ht_q(*, t: int, tau: float, omega: float) -> int:
    r"""The number of directions of HZO-HT at step t, :math:`q_t = \lceil \tau / \omega^t \rceil`.

    Reference: de Vazelhes et al., ICML 2025.

    >>> [hzo_ht_q(t=t, tau=4, omega=0.5) for t in range(4)]
    [4, 8, 16, 32]
    """
    exponent = min(math.log(tau) - t * math.log(omega), 50.0)  # a much larger one would overflow
    return math.ceil(math.exp(exponent) - 1e-9)  # rounding errors must not add a direction


@formula
def hzo_ht_schedule(*, kappa: float, alpha: float, tau: float, eps: float) -> tuple[int, int]:
    r"""Steps T and directions :math:`\sum_t q_t` of HZO-HT until the gap F - F* is eps times its initial value:

    .. math:: q_t = \lceil \tau / \omega^t \rceil, \quad \omega = 1 - \frac{1}{8\alpha\kappa}, \quad \omega^T \le \eps

    alpha >= 1 is a safety factor of the learning rate, eta = 1 / (alpha rho^+).

    Reference: de Vazelhes et al., ICML 2025.

    >>> hzo_ht_schedule(kappa=1, alpha=1, tau=1, eps=0.5)
    (6, 11)
    """
    need(alpha >= 1, "alpha >= 1 (eta = 1 / (alpha rho^+))", f"alpha = {alpha:g}")
    check.positive("tau", tau)
    omega = 1 - 1 / (8 * alpha * check_kappa(kappa))
    T = math.ceil(digits(eps) / -math.log(omega))
    if tau / eps > 1e15:
        raise ValueError(
            f"The last step would need tau / eps = {tau / eps:.1g} directions, more than can be counted: "
            "take a smaller tau or a larger eps."
        )
    need(T <= MOST_STEPS, f"a schedule of at most {MOST_STEPS:,} steps, whose directions can be added up", f"T = {T:,}")
    return T, sum(hzo_ht_q(t=t, tau=tau, omega=omega) for t in range(T))


@formula
def hzo_ht_queries(*, kappa: float, alpha: float, tau: float, eps: float) -> float:
    r"""Queries of HZO-HT, O(alpha kappa tau / eps), the sum of the growing q_t.

    There is no system error, but the order grows with 1/eps instead of its logarithm.
    """
    digits(eps)
    return 8 * alpha * check_kappa(kappa) * check.positive("tau", tau) / eps


@formula
def hzo_ht_thresholdings(*, kappa: float, alpha: float, eps: float) -> float:
    """Hard thresholdings of HZO-HT, O(alpha kappa log 1/eps): one per step."""
    return 8 * alpha * check_kappa(kappa) * digits(eps)


@dataclass(frozen=True)
class Epoch:
    """A row of the paper's table of space and time per epoch, with the counts of this library."""

    method: str
    space: str  # the paper's O(...)
    time: str
    held: int  # numbers that the method stores between two rounds in this library
    calls: float  # calls of f_i in the epoch
    thresholdings: float  # hard thresholdings in the epoch


@formula
def epochs(*, d: int, n: int, q: int, m: int = 10, p: int = 1) -> tuple[Epoch, ...]:
    """The paper's Table 2 with exact counts; an epoch is one step of SAGA, and one outer step of VR and SARAH.

    This library stores a gradient as q coefficients and a key of its directions, so that the memory has n (q + 2)
    numbers instead of n d.

    >>> [epoch.calls for epoch in epochs(d=5, n=10, q=4)]
    [5, 5, 150, 140]
    """
    for name, value in {"d": d, "n": n, "q": q, "m": m, "p": p}.items():
        check.count(name, value)
    need(p <= n, "p <= n (the number of rows to refresh)", f"p = {p} and n = {n}")
    memory = 2 * d + n * (q + 2)
    return (
        Epoch("saga-szht", "O(dn)", "O(d)", memory, q + 1, 1),
        Epoch("p-saga-szht", "O(dn)", "O(pd)", memory, p * (q + 1), 1),
        Epoch("vr-szht", "O(d)", "O(dn)", 4 * d, (n + 2 * m) * (q + 1), m),
        Epoch("sarah-szht", "O(d)", "O(dn)", 4 * d, (n + 2 * (m - 1)) * (q + 1), m),
    )
