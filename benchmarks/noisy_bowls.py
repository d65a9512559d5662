"""Bowls whose noise is a share of F, so that it grows with the distance from the optimum."""

from __future__ import annotations

import numpy as np
from goal_problem import Draw, GoalProblem, family
from objectives import Array, Indices

SHARE = 0.1  # of F: the standard deviation of its noise


@family("growing-noise")
def growing_noise(draw: Draw) -> GoalProblem:
    """A quadratic in 60 to 300 coordinates, coupled on its five non-zeros."""
    d, k = draw.whole(60, 60, 300), 5
    truth = draw.sparse(d, k, 1.0, 4.0)
    support = np.flatnonzero(truth)
    A = draw.rng.standard_normal((k, k))
    A = A @ A.T / k + np.eye(k)

    def values(points: Array, _: Indices) -> Array:
        away = points - truth
        inside = away[:, support]
        return np.einsum("bi,ij,bj->b", inside, A, inside) + (away**2).sum(axis=1) - (inside**2).sum(axis=1)

    def F(x: Array) -> float:
        return float(values(x[None], np.zeros(1, np.int64))[0])

    return GoalProblem(
        values, F, d, k, 5 * d + 600, F_star=0.0, target=0.05 * F(np.zeros(d)), truth=support, growing=SHARE
    )
