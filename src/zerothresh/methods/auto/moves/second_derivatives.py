"""All second derivatives on a support, from differences of gradients."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.quasi_newton import QuasiNewton
from zerothresh.methods.auto.oracle import ExactOracle
from zerothresh.methods.auto.position import Position
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.floating_point import EPS, TINY
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def second_derivatives(
    at: Position, g: Array, S: Indices, way: float
) -> Generator[Probes, Answers, QuasiNewton | None]:
    """Measure the Hessian on the coordinates S, as it is over a distance of the length of the last step.

    Arguments
    ---------
    at: where the descent stands.
    g: array of shape (s,), the gradient on S.
    S: indices of the coordinates, shape (s,).
    way: float, the length of the last step.

    Returns
    -------
    the Hessian; None if F is not smooth, if there are too few calls, or if it is not clearly positive definite: then no
    minimum is near, and its Newton step says little.
    """
    oracle, context = at.oracle, at.context
    cost = S.size * oracle.value_cost + oracle.gradient_cost(S.size * (S.size + 1) // 2)
    if not isinstance(oracle, ExactOracle) or at.calls_available < cost + oracle.gradient_cost(2 * S.size):
        return None
    h = oracle.step(at.theta)
    step = max(way / math.sqrt(S.size), math.sqrt(h * oracle.diagnosis.length))
    H, at_once = np.zeros((S.size, S.size)), max(1, DESCENT.most_points // (S.size + 1))
    for begin in range(0, S.size, at_once):
        columns = [_column(at, S, a, step, h) for a in range(begin, min(begin + at_once, S.size))]
        points = [point for column in columns for point in column]
        told = iter((yield from context.values(points, oracle.components)).mean(axis=1).tolist())
        for a, (beside, *others) in enumerate(columns, begin):
            value = next(told)
            moved = float(beside[S[a]] - at.theta[S[a]])
            shifts = np.array([point[j] - beside[j] for point, j in zip(others, S[a:].tolist(), strict=True)])
            if abs(moved) <= TINY or (np.abs(shifts) <= TINY).any():  # between bounds there is no room
                return None
            slopes = (np.array([next(told) for _ in others]) - value) / shifts
            H[a, a:] = H[a:, a] = (slopes - g[a:]) / moved
    if not np.isfinite(H).all():
        return None
    eigenvalues = np.linalg.eigvalsh(H)
    noise = at.slope_noise * math.sqrt(S.size) / step  # of an eigenvalue: a smaller one may be 0
    definite = eigenvalues[0] > max(EPS * S.size * eigenvalues[-1], noise)
    return QuasiNewton(S, H) if definite else None


def _column(at: Position, S: Indices, a: int, step: float, h: float) -> list[Array]:
    """Return a point at a step along the coordinate S[a], and those at a difference step from it along S[a:]."""
    context, j = at.context, S[a]
    beside = at.theta.copy()
    beside[j] += step
    beside = context.inside(beside)
    if not beside[j] > at.theta[j]:  # a bound is in the way
        beside[j] = max(at.theta[j] - step, -np.inf if context.box is None else context.box.low[j])
    others = np.repeat(beside[None], S.size - a, axis=0)
    others[np.arange(S.size - a), S[a:]] += context.steps_inside(beside, S[a:], h)
    return [beside, *others]
