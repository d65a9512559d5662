"""What the ready problems share."""

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

MOST_SUPPORTS = 200_000  # how many supports are enumerated at the most


@kernel
def scores(points: Any, rows: Any, components: Any, out: Any) -> None:
    """out_b = points_b . rows_{i_b}, summed in a fixed order: the same bits in any batch."""
    for b in range(points.shape[0]):
        row = rows[components[b]]
        total = 0.0
        for j in range(points.shape[1]):
            total += points[b, j] * row[j]
        out[b] = total


@kernel
def squares(points: Any, out: Any) -> None:
    """out_b = ||points_b||^2."""
    for b in range(points.shape[0]):
        total = 0.0
        for j in range(points.shape[1]):
            total += points[b, j] * points[b, j]
        out[b] = total


class Restricted(Protocol):
    """A problem that can be solved on a support."""

    @property
    def d(self) -> int: ...

    def F(self, x: Array) -> float: ...

    def minimum_on(self, support: Indices) -> Array: ...


def best_subset(problem: Restricted, k: int) -> tuple[Array, float]:
    """The k-sparse optimum, by trying every support: (theta*, F*)."""
    k = check.count("k", k)
    if k > problem.d:
        raise ValueError(f"k = {k} is larger than the dimension d = {problem.d}")
    if comb(problem.d, k) > MOST_SUPPORTS:
        raise ValueError(
            f"{comb(problem.d, k)} supports of size {k} out of d = {problem.d} are too many to try: "
            f"at most {MOST_SUPPORTS} are"
        )
    best, lowest = np.zeros(problem.d), np.inf
    for support in combinations(range(problem.d), k):
        x = problem.minimum_on(np.array(support))
        value = problem.F(x)
        if value < lowest:
            best, lowest = x, value
    return best, lowest


def generator(seed: int) -> np.random.Generator:
    """For making data: a problem is made once, so NumPy's generator will do."""
    return np.random.default_rng(check.count("seed", seed, low=0))
