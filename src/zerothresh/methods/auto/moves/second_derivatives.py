"""All second derivatives on a support, from differences of gradients."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.quasi_newton import QuasiNewton
from zerothresh.methods.auto.oracle import ExactOracle
from zerothresh.methods.auto.position import Position
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
    H = np.zeros((S.size, S.size))
    for a, j in enumerate(S.tolist()):
        point = at.theta.copy()
        point[j] += step
        point = context.inside(point)
        if not point[j] > at.theta[j]:  # a bound is in the way
            point[j] = max(at.theta[j] - step, -np.inf if context.box is None else context.box.low[j])
        values = yield from oracle.values(point)
        slopes = yield from oracle.slopes(point, S[a:], slice(0, oracle.m), values)
        moved = float(point[j] - at.theta[j])
        H[a, a:] = H[a:, a] = (slopes.mean(axis=0) - g[a:]) / (moved if abs(moved) > TINY else math.inf)
    if not np.isfinite(H).all():
        return None
    eigenvalues = np.linalg.eigvalsh(H)
    noise = at.slope_noise * math.sqrt(S.size) / step  # of an eigenvalue: a smaller one may be 0
    definite = eigenvalues[0] > max(EPS * S.size * eigenvalues[-1], noise)
    return QuasiNewton(S, H) if definite else None
