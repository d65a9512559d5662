r"""Restricted strong convexity and smoothness: rho_s^-, rho_s^+ and kappa_s (Assumptions 1 and 2).

For a quadratic with the matrix A, they are the extreme eigenvalues of the s x s principal submatrices of A.
`restricted` finds them exactly by enumerating all supports if d is small, and within bounds by sampling supports if it
is large. `of_samples` estimates them from second differences, for a black box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.theory.constants import need
from zerothresh.theory.intervals import Interval
from zerothresh.theory.quantities import formula, real_array

MOST_SUPPORTS = 200_000  # the largest number of supports to enumerate
_CHUNK = 4096  # supports whose eigenvalues are computed at once


@dataclass(frozen=True)
class Constants:
    """rho_s^- and rho_s^+ at sparsity s, each with an interval that contains it."""

    s: int
    rho_minus: float
    rho_plus: float
    minus: Interval
    plus: Interval
    how: str  # "exact", "sampled" or "probed"
    queries: int = 0  # calls of f_i that the estimate took

    @property
    def kappa(self) -> float:
        """kappa_s = rho_s^+ / rho_s^-, or infinity where rho_s^- is not positive."""
        return self.rho_plus / self.rho_minus if self.rho_minus > 0 else math.inf

    @property
    def exact(self) -> bool:
        """Whether both constants are exact."""
        return self.how == "exact"


@formula
def restricted(A: Array, *, s: int, supports: int = 2000, seed: int = 0) -> Constants:
    r"""Compute rho_s^- and rho_s^+ of a quadratic, or of a mean of quadratics.

    As in the assumptions, the strong convexity is that of F, whose matrix is the mean, and the smoothness that of the
    least smooth component.

    Arguments
    ---------
    A: symmetric array of shape (d, d), or one matrix per component, (n, d, d).
    s: int from 1 to d. The sparsity.
    supports: int, default 2000. If there are more than 200,000 supports, this many random ones are examined; they bound
        rho_s^- from above and rho_s^+ from below. The bounds on the other side are from the whole spectrum and from
        Gershgorin discs with s - 1 neighbours.
    seed: int, default 0. Seed of the random supports.

    Returns `Constants`.

    >>> restricted(np.diag([1.0, 2.0, 4.0]), s=2).kappa
    4.0
    """
    matrices = real_array("A", A)
    stack = matrices[None] if matrices.ndim == 2 else matrices
    need(
        stack.ndim == 3 and stack.size > 0 and stack.shape[1] == stack.shape[2] and _symmetric(stack),
        "symmetric matrices of shape (d, d) or (n, d, d)",
        f"A has shape {matrices.shape} or is not symmetric",
    )
    d = stack.shape[-1]
    need(s <= d, "s <= d", f"s = {s} and d = {d}")
    mean = stack.mean(axis=0)
    whole = math.comb(d, s) <= MOST_SUPPORTS
    picked = combinations(range(d), s) if whole else _random(d, s, supports, seed)
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


def _symmetric(stack: Array) -> bool:
    """Whether all matrices of a stack are symmetric."""
    return bool(np.allclose(stack, np.swapaxes(stack, 1, 2)))


def _random(d: int, s: int, count: int, seed: int) -> Iterator[tuple[int, ...]]:
    """Random supports of size s."""
    rng = np.random.default_rng(seed)
    return (tuple(rng.choice(d, s, replace=False)) for _ in range(count))


def _discs(A: Array, s: int) -> tuple[float, float]:
    """Gershgorin bounds on the eigenvalues of all s x s principal submatrices, from the s - 1 largest neighbours."""
    others = np.abs(A - np.diag(np.diag(A)))
    radius = np.sort(others, axis=1)[:, ::-1][:, : s - 1].sum(axis=1)
    return float((np.diag(A) - radius).min()), float((np.diag(A) + radius).max())


@formula
def of_samples(curvatures: Array, *, s: int, errors: float = 2.0, queries: int = 0) -> Constants:
    r"""Estimate rho_s^- and rho_s^+ from curvatures u'Hu along random s-sparse unit vectors u.

    For u uniform on the unit sphere of a support of size s, the mean of u'Hu is the mean m of the s eigenvalues of the
    principal submatrix, and its variance gives their variance: :math:`v = \mathrm{Var}(u'Hu) (s + 2) / 2`. All s
    eigenvalues then lie within :math:`m \pm \sqrt{(s-1) v}` (Wolkowicz and Styan), and the extreme ones are at least
    :math:`\sqrt{v / (s-1)}` away from m. These are the intervals, each end moved outwards by a number of standard
    errors (jackknife). The strong convexity is that of F, the mean of the components, the smoothness that of the least
    smooth component. Supports are sampled, so the worst support may be worse.

    ``rho_plus`` is the conservative end of its interval, m + sqrt((s - 1) v). ``rho_minus`` is the optimistic end,
    because its lower end is negative unless the spectrum is narrow. So kappa is in practice a lower bound.

    Arguments
    ---------
    curvatures: array of shape (components, directions), with at least 4 directions.
    s: int. The sparsity of the directions.
    errors: float, default 2. The number of standard errors by which the intervals are widened.
    queries: int, default 0. The number of calls to report in the result.

    Returns `Constants`.

    Reference: Wolkowicz and Styan, *Bounds for eigenvalues using traces*, Linear Algebra Appl. 1980.

    >>> found = of_samples(np.full((1, 8), 3.0), s=4)
    >>> found.rho_minus, found.rho_plus
    (3.0, 3.0)
    """
    table = np.atleast_2d(real_array("curvatures", curvatures))
    need(
        table.ndim == 2 and table.shape[0] > 0 and table.shape[1] >= 4,
        "curvatures of shape (components, directions), along at least 4 directions",
        f"their shape is {table.shape}",
    )
    lowest = spectrum(table.mean(axis=0), s=s, errors=errors)
    # The largest of n bounds with noise would be too large: choose the component without, then widen its bound once.
    each = [spectrum(row, s=s, errors=0.0) for row in table]
    top = max(each, key=lambda one: one.farthest[1])
    noise = spectrum(table[each.index(top)], s=s, errors=errors)
    smallest = float(table.mean(axis=0).min())  # rho_s^- is at most any observed curvature
    minus = Interval(lowest.farthest[0], min(lowest.nearest[0], smallest))
    plus = Interval(min(top.nearest[1], float(table.max())), noise.farthest[1])
    return Constants(s, minus.high, max(top.farthest[1], float(table.max())), minus, plus, "probed", queries)


@dataclass(frozen=True)
class Spectrum:
    """Bounds on the smallest and the largest eigenvalue of a random principal submatrix."""

    mean: float
    nearest: tuple[float, float]  # upper bound of the smallest eigenvalue, lower bound of the largest
    farthest: tuple[float, float]  # lower bound of the smallest eigenvalue, upper bound of the largest


@formula
def spectrum(samples: Array, *, s: int, errors: float = 2.0) -> Spectrum:
    """Bound the extreme eigenvalues of an s x s block from samples of u'Hu, widened by ``errors`` standard errors."""

    def ends(mean: float, variance: float) -> tuple[float, float, float, float]:
        """Farthest and nearest bound below the mean, nearest and farthest bound above it."""
        spread = math.sqrt(max(0.0, variance) * (s + 2) / 2) if s > 1 else 0.0
        near, far = spread / math.sqrt(max(1, s - 1)), spread * math.sqrt(max(1, s - 1))
        return mean - far, mean - near, mean + near, mean + far

    x = real_array("samples", samples).reshape(-1)
    N = x.size
    need(N >= 3, "at least 3 samples", f"there are {N}")
    centre = np.array(ends(float(x.mean()), float(x.var(ddof=1))))
    rest = (x.sum() - x) / (N - 1)  # means with one sample left out
    squares = ((x**2).sum() - x**2) / (N - 1)
    variances = np.maximum(squares - rest**2, 0.0) * (N - 1) / (N - 2)
    left = np.array([ends(float(a), float(b)) for a, b in zip(rest, variances, strict=True)])
    error = np.sqrt((N - 1) / N * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    low, near_low, near_high, high = centre + errors * error * np.array([-1, 1, -1, 1])
    return Spectrum(float(x.mean()), (float(near_low), float(near_high)), (float(low), float(high)))
