"""Code that the ready-made problems share: compiled scores, the enumeration of supports, the data generator."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check
from zerothresh.sampling.jit import kernel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

MOST_SUPPORTS = 200_000  # the largest number of supports that are enumerated


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


class Restricted(Protocol):
    """A problem whose minimiser on a given support can be computed."""

    @property
    def d(self) -> int: ...

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
