"""New starts for a descent that stands at a local minimum: random sparse points, and parts of the best support."""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.position import Position
from zerothresh.methods.auto.settings.support_search_settings import SUPPORT_SEARCH
from zerothresh.methods.program.context import Context


def places(context: Context, coordinates: Indices) -> int:
    """Return how many of the k places of a support these coordinates can fill: one each, or one per group."""
    groups = context.constraint.groups
    return int(coordinates.size if groups is None else np.unique(groups[coordinates]).size)


def random_points(at: Position, C: Indices, length: float, count: int) -> list[Array]:
    """Draw random feasible points with full supports.

    Arguments
    ---------
    at: where the descent stands.
    C: indices of the coordinates that may be non-zero.
    length: float, the standard deviation of an entry.
    count: int, how many points.

    Returns
    -------
    list of arrays of shape (d,).
    """
    context, size = at.context, min(at.context.k, C.size)
    points = []
    for _ in range(count):
        S = C[context.rng.subset(C.size, size)]
        moves = context.rng.normal(size) * length
        if context.box is not None:  # a move across a bound goes the other way
            low, high = context.box.low[S], context.box.high[S]
            moves = np.where(((moves < low) & (-low < high)) | ((moves > high) & (-low > high)), -moves, moves)
        point = np.zeros(context.d)
        point[S] = moves
        points.append(context.constraint.project(context.inside(point)))
    return points


def typical_size(at: Position) -> float:
    """Return the mean size of the entries on the support, or the natural length if there is none."""
    S = np.flatnonzero(at.theta)
    size = float(np.abs(at.theta[S]).mean()) if S.size else 0.0
    return size or at.oracle.diagnosis.length / np.sqrt(at.context.k)


def partial_support(at: Position) -> tuple[Array, Indices]:
    """Drop a random part of the support.

    Returns
    -------
    the point that is left, and the coordinates that were dropped.
    """
    context = at.context
    S = np.flatnonzero(at.theta)
    forced = np.isin(S, context.constraint.include)
    dropped = S[(context.rng.uniform(S.size) < SUPPORT_SEARCH.dropped_share) & ~forced]
    dropped = dropped if dropped.size else S[~forced][:1]
    start = at.theta.copy()
    start[dropped] = 0.0
    return context.constraint.project(start), dropped


def support_of(theta: Array) -> bytes:
    """Return what identifies the support of a point."""
    return np.flatnonzero(theta).tobytes()
