"""Bowls whose noise is a share of F, so that it grows with the distance from the optimum, to which few lead."""

from __future__ import annotations

import numpy as np
from goal_problem import Draw, GoalProblem, family
from objectives import Array, Indices

SHARE = 0.1  # of F: the standard deviation of its noise


def _bowl(draw: Draw, bend: bool) -> GoalProblem:
    """A quadratic in 60 to 300 coordinates, coupled on its five non-zeros; or the logarithm of 1 more than that."""
    d, k = draw.whole(60, 60, 300), 5
    truth = draw.sparse(d, k, 1.0, 4.0)
    support = np.flatnonzero(truth)
    A = draw.rng.standard_normal((k, k))
    A = A @ A.T / k + np.eye(k)

    def values(points: Array, _: Indices) -> Array:
        away = points - truth
        inside = away[:, support]
        square = np.einsum("bi,ij,bj->b", inside, A, inside) + (away**2).sum(axis=1) - (inside**2).sum(axis=1)
        return np.log1p(square) if bend else square

    def F(x: Array) -> float:
        return float(values(x[None], np.zeros(1, np.int64))[0])

    budget = (100 if bend else 5) * d + 600
    return GoalProblem(values, F, d, k, budget, F_star=0.0, target=0.05 * F(np.zeros(d)), truth=support, growing=SHARE)


@family("growing-noise")
def growing_noise(draw: Draw) -> GoalProblem:
    """A quadratic."""
    return _bowl(draw, bend=False)


@family("growing-noise-bent")
def growing_noise_bent(draw: Draw) -> GoalProblem:
    """Its logarithm, which no parabola fits far from the optimum."""
    return _bowl(draw, bend=True)
