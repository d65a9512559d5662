r"""Restricted convexity and smoothness: rho_s^-, rho_s^+ and kappa_s (Assumptions 1 and 2).

For a quadratic with the matrix A they are the extreme eigenvalues of the s x s blocks of A on the
diagonal: exactly by going through all supports where d is small, within bounds by sampling supports where
it is large. `of_samples` is for a black box, where all there is are second differences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check
from zerothresh.theory.constants import need
from zerothresh.theory.intervals import Interval

Array = NDArray[np.float64]

MOST_SUPPORTS = 200_000  # how many supports are gone through at the most
_CHUNK = 4096


@dataclass(frozen=True)
class Constants:
    """rho_s^- and rho_s^+ at sparsity s, each with an interval that it is known to lie in."""

    s: int
    rho_minus: float
    rho_plus: float
    minus: Interval
    plus: Interval
    how: str  # "exact", "sampled" or "probed"
    queries: int = 0  # calls of f_i that this cost

    @property
    def kappa(self) -> float:
        """kappa_s = rho_s^+ / rho_s^-; infinite where no convexity is left."""
        return self.rho_plus / self.rho_minus if self.rho_minus > 0 else math.inf

    @property
    def exact(self) -> bool:
        """Whether nothing is left open."""
        return self.how == "exact"


def restricted(A: Array, *, s: int, supports: int = 2000, seed: int = 0) -> Constants:
    r"""rho_s^- and rho_s^+ of quadratics with the matrix A (d, d), or with one matrix a component (n, d, d).

    With (n, d, d), the convexity is that of F, whose matrix is the mean, and the smoothness that of the
    roughest component, as the assumptions say. All supports are gone through if there are at most
    200,000; else ``supports`` random ones are, which bound rho_s^- from above and rho_s^+ from below.
    The other side is from the whole spectrum and from Gershgorin's discs with s - 1 neighbours.

    >>> restricted(np.diag([1.0, 2.0, 4.0]), s=2).kappa
    4.0
    """
    A = np.asarray(A, float)
    stack = A[None] if A.ndim == 2 else A
    d = stack.shape[-1]
    need(
        stack.ndim == 3 and stack.shape[1] == d and np.allclose(stack, np.swapaxes(stack, 1, 2)),
        "symmetric matrices of shape (d, d) or (n, d, d)",
        f"A has shape {A.shape} or is not symmetric",
    )
    need(1 <= check.count("s", s) <= d, "s <= d", f"s = {s} and d = {d}")
    mean = stack.mean(axis=0)
    whole = math.comb(d, s) <= MOST_SUPPORTS
    picked = combinations(range(d), s) if whole else _random(d, s, check.count("supports", supports), seed)
    low, high = math.inf, -math.inf
    while block := list(islice(picked, _CHUNK)):
        chosen = np.array(block)
        rows, columns = chosen[:, :, None], chosen[:, None, :]
        low = min(low, float(np.linalg.eigvalsh(mean[rows, columns])[:, 0].min()))
        high = max(high, *(float(np.linalg.eigvalsh(one[rows, columns])[:, -1].max()) for one in stack))
    if whole:
        return Constants(s, low, high, Interval(low, low), Interval(high, high), "exact")
    floor = max(float(np.linalg.eigvalsh(mean)[0]), _discs(mean, s)[0])
    roof = max(min(float(np.linalg.eigvalsh(one)[-1]), _discs(one, s)[1]) for one in stack)
    return Constants(s, low, high, Interval(floor, low), Interval(high, roof), "sampled")


def _random(d: int, s: int, count: int, seed: int) -> Iterator[tuple[int, ...]]:
    rng = np.random.default_rng(check.count("seed", seed, low=0))
    return (tuple(rng.choice(d, s, replace=False)) for _ in range(count))


def _discs(A: Array, s: int) -> tuple[float, float]:
    """Gershgorin's bounds for the eigenvalues of all s x s blocks: the s - 1 largest neighbours count."""
    others = np.abs(A - np.diag(np.diag(A)))
    radius = np.sort(others, axis=1)[:, ::-1][:, : s - 1].sum(axis=1)
    return float((np.diag(A) - radius).min()), float((np.diag(A) + radius).max())


def of_samples(curvatures: Array, *, s: int, errors: float = 2.0, queries: int = 0) -> Constants:
    r"""rho_s^- and rho_s^+ from curvatures u'Hu along random s-sparse unit vectors u: (components, directions).

    For u uniform on the sphere of a support of size s, the mean of u'Hu is the mean m of the s eigenvalues
    of the block, and its variance tells their variance: :math:`v = \mathrm{Var}(u'Hu) (s + 2) / 2`. All s
    eigenvalues then lie within :math:`m \pm \sqrt{(s-1) v}` (Wolkowicz and Styan), and the extreme ones
    are at least :math:`\sqrt{v / (s-1)}` away from m. Those are the intervals, each end moved outwards by
    ``errors`` standard errors (jackknife). The convexity is that of F, the mean of the components; the
    smoothness that of the roughest component. Supports are random, so the worst support may be worse.

    ``rho_plus`` is the cautious end, m + sqrt((s - 1) v); ``rho_minus`` is the hopeful one, because its
    lower end is below 0 unless the spectrum is narrow: kappa is thus a lower bound in practice.

    Reference: Wolkowicz and Styan, *Bounds for eigenvalues using traces*, Linear Algebra Appl. 1980.

    >>> found = of_samples(np.full((1, 8), 3.0), s=4)
    >>> found.rho_minus, found.rho_plus
    (3.0, 3.0)
    """
    table = np.atleast_2d(np.asarray(curvatures, float))
    check.count("s", s)
    need(table.shape[1] >= 4, "curvatures along at least 4 directions", f"there are {table.shape[1]}")
    lowest = spectrum(table.mean(axis=0), s=s, errors=errors)
    # Of n components the largest of n noisy bounds would be too large: the noise is taken off once, not n times.
    each = [spectrum(row, s=s, errors=0.0) for row in table]
    top = max(each, key=lambda one: one.farthest[1])
    noise = spectrum(table[each.index(top)], s=s, errors=errors)
    smallest = float(table.mean(axis=0).min())  # rho_s^- is at most any curvature that was seen
    minus = Interval(lowest.farthest[0], min(lowest.nearest[0], smallest))
    plus = Interval(min(top.nearest[1], float(table.max())), noise.farthest[1])
    return Constants(s, minus.high, max(top.farthest[1], float(table.max())), minus, plus, "probed", queries)


@dataclass(frozen=True)
class Spectrum:
    """What is known of the least and the largest eigenvalue of a random block."""

    mean: float
    nearest: tuple[float, float]  # the least is at most this, the largest at least that
    farthest: tuple[float, float]  # the least is at least this, the largest at most that


def spectrum(samples: Array, *, s: int, errors: float = 2.0) -> Spectrum:
    """Bounds for the eigenvalues of an s x s block from samples of u'Hu, moved outwards by standard errors."""

    def ends(mean: float, variance: float) -> tuple[float, float, float, float]:
        spread = math.sqrt(max(0.0, variance) * (s + 2) / 2) if s > 1 else 0.0
        near, far = spread / math.sqrt(max(1, s - 1)), spread * math.sqrt(max(1, s - 1))
        return mean - far, mean - near, mean + near, mean + far

    x = np.asarray(samples, float)
    N = x.size
    centre = np.array(ends(float(x.mean()), float(x.var(ddof=1))))
    rest = (x.sum() - x) / (N - 1)  # leave one out
    squares = ((x**2).sum() - x**2) / (N - 1)
    variances = np.maximum(squares - rest**2, 0.0) * (N - 1) / (N - 2)
    left = np.array([ends(float(a), float(b)) for a, b in zip(rest, variances, strict=True)])
    error = np.sqrt((N - 1) / N * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    low, near_low, near_high, high = centre + errors * error * np.array([-1, 1, -1, 1])
    return Spectrum(float(x.mean()), (float(near_low), float(near_high)), (float(low), float(high)))
