r"""The k and q that the theorems allow.

eps_I depends on k through s = 2k + k*, and decreases with q: eps_I = 2 + (A k + B) / q. A condition on k is therefore a
quadratic in k with coefficients that depend on q. It has solutions k <= (d - k*) / 2 (that is, s <= d) only if q is
large enough: this is the conflict between the error of the gradient and the expansivity of H_k.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from zerothresh.basics import check
from zerothresh.theory.constants import check_kappa, check_sizes, need
from zerothresh.theory.intervals import Interval, negative
from zerothresh.theory.quantities import formula

MOST_Q = 10**18  # where no q up to here is enough, none is


def _coefficients(*, d: int, s2: int, k_star: int) -> tuple[float, float]:
    """A and B in q (eps_I - 2) = A k + B."""
    check_sizes(d=d, q=1, s=1, s2=s2)
    check.count("k_star", k_star)
    need(3 * k_star < d, "k* < k <= (d - k*) / 2, so k* < d / 3", f"k* = {k_star} and d = {d}")
    share = (s2 - 1) / (d - 1)
    scale = 2 * d / (s2 + 2)
    return 2 * scale * share, scale * ((k_star - 1) * share + 3)


def _whole(found: Interval, *, d: int, k_star: int) -> range:
    """The integers k of a closed interval with k* < k <= (d - k*) / 2."""
    if not found:
        return range(0)
    low = max(k_star + 1, math.ceil(found.low))
    return range(low, max(low, math.floor(min((d - k_star) // 2, found.high)) + 1))


@formula
def szoht_k(*, d: int, q: int, s2: int, k_star: int, kappa: float) -> range:
    r"""The k for which SZOHT's theorem holds (Section 2.2):

    .. math:: \Big(1 - \frac{1}{X}\Big) k^* X^2 \le k \le \frac{d - k^*}{2}, \quad X = (4 \epsilon_I + 1) \kappa^2

    >>> szoht_k(d=1000, q=10_000, s2=1000, k_star=1, kappa=1)
    range(75, 500)
    """
    check.count("q", q)
    A, B = _coefficients(d=d, s2=s2, k_star=k_star)
    square = check_kappa(kappa) ** 2
    P, Q = (9 + 4 * B / q) * square, 4 * A / q * square  # X = P + Q k
    return _solve(k_star * Q * Q, 1 - k_star * Q * (2 * P - 1), k_star * P * (P - 1), d=d, k_star=k_star)


@formula
def vr_k(*, d: int, q: int, s2: int, k_star: int, kappa: float) -> range:
    r"""The k for which VR-SZHT and SARAH-SZHT have an admissible learning rate:

    .. math:: k \ge k^* (1 + 4 X^2), \quad X = 192 \epsilon_I \kappa + 3

    This is alpha < 1 + 1/X, the discriminant of the corollary solved for k. X is at least 387, so k is at least
    599,077 k*.
    """
    check.count("q", q)
    A, B = _coefficients(d=d, s2=s2, k_star=k_star)
    kappa = check_kappa(kappa)
    U, V = 192 * kappa * (2 + B / q) + 3, 192 * kappa * A / q  # X = U + V k
    return _solve(4 * k_star * V * V, 1 - 8 * k_star * U * V, k_star * (1 + 4 * U * U), d=d, k_star=k_star)


def _solve(a: float, b: float, c: float, *, d: int, k_star: int) -> range:
    """The integers k with a k^2 - b k + c <= 0."""
    if b <= 0:
        return range(0)
    return _whole(Interval(c / b, math.inf) if a == 0 else negative(a, b, c), d=d, k_star=k_star)


@formula
def szoht_least_k(*, k_star: int, kappa: float) -> int:
    """The smallest k of SZOHT's theorem as q and d tend to infinity, k* 9 kappa^2 (9 kappa^2 - 1) >= 72 k*.

    >>> szoht_least_k(k_star=1, kappa=1)
    72
    """
    square = 9 * check_kappa(kappa) ** 2
    return math.ceil(check.count("k_star", k_star) * square * (square - 1))


@formula
def vr_least_k(*, k_star: int, kappa: float) -> int:
    """The smallest k of VR-SZHT's theorem as q and d tend to infinity, k* (1 + 4 (384 kappa + 3)^2).

    >>> vr_least_k(k_star=1, kappa=1)
    599077
    """
    return math.ceil(check.count("k_star", k_star) * (1 + 4 * (384 * check_kappa(kappa) + 3) ** 2))


@formula
def szoht_q(*, d: int, s2: int, k_star: int, kappa: float, k: int | None = None) -> int:
    r"""The smallest q for which SZOHT's theorem holds for some k <= (d - k*) / 2, or for the given k.

    For s2 > 1, the paper's bound is the q from which the quadratic in k has roots; for s2 = 1, its bound is never
    sufficient: see the errata "szoht-q-s2-1" and "szoht-q-cap". This function returns the exact smallest integer.

    >>> szoht_q(d=1000, s2=1000, k_star=1, kappa=1)
    546
    """
    return _least_q(szoht_k, szoht_least_k, "SZOHT", d=d, s2=s2, k_star=k_star, kappa=kappa, k=k)


@formula
def vr_q(*, d: int, s2: int, k_star: int, kappa: float, k: int | None = None) -> int:
    """The smallest q for which VR-SZHT and SARAH-SZHT have a learning rate, for some k or for the given k."""
    return _least_q(vr_k, vr_least_k, "VR-SZHT", d=d, s2=s2, k_star=k_star, kappa=kappa, k=k)


def _least_q(
    allowed: Callable[..., range],
    limit: Callable[..., int],
    name: str,
    *,
    d: int,
    s2: int,
    k_star: int,
    kappa: float,
    k: int | None,
) -> int:
    """The smallest q for which ``allowed`` contains some k, or the given k, found by bisection."""

    def holds(q: int) -> bool:
        found = allowed(d=d, q=q, s2=s2, k_star=k_star, kappa=kappa)
        return bool(found) if k is None else k in found

    if k is not None:
        need(k > check.count("k_star", k_star), "k > k*", f"k = {k} and k* = {k_star}")
        need(2 * k + k_star <= d, "k <= (d - k*) / 2", f"k = {k}, k* = {k_star} and d = {d}")
    if not holds(MOST_Q):
        least = limit(k_star=k_star, kappa=kappa)
        given = f"k = {k}" if k is not None else f"d = {d}, so k <= {(d - k_star) // 2}"
        raise ValueError(f"the theory of {name} needs k >= {least:,} even as q tends to infinity, but {given}")
    low, high = 0, 1
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:  # more directions never hurt: eps_I decreases with q
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@formula
def szoht_rate(*, k: int, k_star: int, eps_I: float, kappa: float) -> float:
    r"""The factor :math:`\gamma\rho` by which a step of SZOHT with `szoht_eta` reduces E||theta - theta*||:

    .. math:: \rho^2 = 1 - \frac{1}{(4\epsilon_I + 1) \kappa^2}, \quad
        \gamma^2 = 1 + \frac{t + \sqrt{(4 + t) t}}{2}, \quad t = k^* / k

    It is below 1 for the k of `szoht_k`.

    Reference: de Vazelhes et al., NeurIPS 2022, Theorem 1.
    """
    check.count("k_star", k_star)
    need(check.count("k", k) >= k_star, "k >= k*", f"k = {k} and k* = {k_star}")
    need(eps_I >= 2, "eps_I >= 2 (its limit as q tends to infinity)", f"eps_I = {eps_I:g}")
    t = k_star / k
    return math.sqrt((1 + (t + math.sqrt((4 + t) * t)) / 2) * (1 - 1 / ((4 * eps_I + 1) * check_kappa(kappa) ** 2)))
