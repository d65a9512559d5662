"""Code that the ready-made problems share: compiled scores, the enumeration of supports, the data generator."""

from __future__ import annotations

from itertools import combinations
from math import comb, prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check
from zerothresh.sampling.jit import kernel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

MOST_SUPPORTS = 200_000  # the largest number of supports that are enumerated
MOST_NUMBERS = 10**9  # in the largest array of a generated problem: 8 GB


@kernel
def scores(points: Any, rows: Any, components: Any, out: Any) -> None:
    """Compute out_b = points_b . rows_{i_b}, summed in a fixed order, so that a batch does not change the bits."""
    for b in range(points.shape[0]):
        row = rows[components[b]]
        total = 0.0
        for j in range(points.shape[1]):
            total += points[b, j] * row[j]
        out[b] = total


@kernel
def squares(points: Any, out: Any) -> None:
    """Compute out_b = ||points_b||^2."""
    for b in range(points.shape[0]):
        total = 0.0
        for j in range(points.shape[1]):
            total += points[b, j] * points[b, j]
        out[b] = total


@kernel
def _in_range(indices: Any, end: int) -> bool:
    """Whether all indices are at least 0 and below ``end``."""
    inside = True
    for index in indices:
        inside &= 0 <= index < end
    return inside


def _array(name: str, given: Any) -> NDArray[Any]:
    """Convert what a user passed to an array."""
    try:
        return np.asarray(given)
    except Exception as error:  # NumPy's own for a ragged list, and whatever a foreign object raises
        raise ValueError(f"{name} cannot be made an array of one shape: {error}") from None


def numbers(name: str, given: Any) -> Array:
    """Check that a user's data are an array of finite numbers, and return it as one of float64 in C order."""
    array = _array(name, given)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, not {array.dtype}")
    with np.errstate(over="ignore"):
        out = np.ascontiguousarray(array, dtype=np.float64)
    if not np.isfinite(out).all():
        raise ValueError(f"{name} must hold finite numbers, but it contains NaN, an infinity or a number beyond 1e308")
    return out


def table(X: Any, y: Any) -> tuple[Array, Array]:
    """Check the features, shape (n, d), and the targets or labels, shape (n,), of a regression."""
    features, target = numbers("X", X), numbers("y", y)
    if features.ndim != 2 or target.shape != features.shape[:1] or not features.size:
        raise ValueError(
            f"X must have shape (n, d) and y shape (n,) with at least one row and one column, not {features.shape} "
            f"and {target.shape}"
        )
    return features, target


def check_size(*extents: int) -> None:
    """Refuse to generate an array that is larger than a problem for tests has to be."""
    if prod(extents) > MOST_NUMBERS:
        raise ValueError(
            f"a problem with an array of {' x '.join(map(str, extents))} numbers is too large: at most "
            f"{MOST_NUMBERS:,} are allowed, so take smaller numbers"
        )


def check_finite(*arrays: Any) -> None:
    """Refuse data so large that what is computed of them left the floating-point numbers."""
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("the numbers of the problem are so large that their products are infinite: scale them down")


def rows(points: Any, components: Any, problem: Sized) -> tuple[Array, Indices]:
    """Check the arguments of ``values``: points of shape (B, d) and components of shape (B,), from 0 to n - 1."""
    points, components = _array("points", points), _array("components", components)
    if (
        points.ndim != 2
        or points.shape[1] != problem.d
        or points.dtype.kind not in "fiu"
        or components.shape != points.shape[:1]
        or components.dtype.kind not in "iu"
        or not _in_range(components, problem.n)
    ):
        raise ValueError(
            f"values takes points of shape (B, {problem.d}) and components of shape (B,), whole numbers from 0 to "
            f"{problem.n - 1}, not {points.dtype} of shape {points.shape} and {components.dtype} of shape "
            f"{components.shape}"
        )
    return points, components


def point(x: Any, problem: Sized) -> Array:
    """Check a point of shape (d,)."""
    try:
        array: Array = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"x must be a point of {problem.d} numbers, not {x!r:.200}") from None
    if array.shape != (problem.d,):
        raise ValueError(f"x must be a point of shape ({problem.d},), not of shape {array.shape}")
    return array


def component(i: Any, problem: Sized) -> int:
    """Check the number of a component, from 0 to n - 1."""
    number = check.count("i", i, low=0, what=f" and at most {problem.n - 1} (a component)")
    if number >= problem.n:
        raise ValueError(f"i must be at most {problem.n - 1}, because the problem has n = {problem.n}, not {number}")
    return number


def coordinates(support: Any, problem: Sized) -> Indices:
    """Check a support: different coordinates from 0 to d - 1."""
    indices = _array("support", support)
    if indices.size == 0:
        return np.zeros(0, np.int64)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or not _in_range(indices, problem.d):
        raise ValueError(f"support must be a list of coordinates from 0 to {problem.d - 1}, not {support!r:.200}")
    if not (indices[1:] > indices[:-1]).all() and np.unique(indices).size < indices.size:
        raise ValueError(f"support names a coordinate twice: {support!r:.200}")
    return indices


class Sized(Protocol):
    """A problem that knows how many coordinates and components it has."""

    @property
    def d(self) -> int: ...

    @property
    def n(self) -> int: ...


class Restricted(Sized, Protocol):
    """A problem whose minimiser on a given support can be computed."""

    def F(self, x: Array) -> float: ...

    def minimum_on(self, support: Indices) -> Array: ...


def best_subset(problem: Restricted, k: int) -> tuple[Array, float]:
    """Find the k-sparse optimum of a problem by trying every support of size k.

    Arguments
    ---------
    problem: the problem to solve.
    k: the number of non-zeros, from 1 to d.

    Returns
    -------
    The minimiser theta*, shape (d,), and F(theta*).
    """
    k = check.count("k", k)
    if k > problem.d:
        raise ValueError(f"k = {k} is larger than the dimension d = {problem.d}: take k from 1 to {problem.d}")
    if comb(problem.d, k) > MOST_SUPPORTS:
        raise ValueError(
            f"there are {comb(problem.d, k)} supports of size {k} out of d = {problem.d} coordinates, too many to try "
            f"all of them: at most {MOST_SUPPORTS} are allowed, so take a smaller k or a smaller problem"
        )
    best, lowest = np.zeros(problem.d), np.inf
    for support in combinations(range(problem.d), k):
        x = problem.minimum_on(np.array(support))
        value = problem.F(x)
        if value < lowest:
            best, lowest = x, value
    return best, lowest


def generator(seed: int) -> np.random.Generator:
    """Return NumPy's generator for the data of a problem.

    A problem is generated once, before a run, so its numbers need not come from the Philox streams of the rounds.
    """
    return np.random.default_rng(check.count("seed", seed, low=0))
