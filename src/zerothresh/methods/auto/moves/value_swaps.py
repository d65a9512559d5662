"""Swaps of one member of the support for another coordinate, judged by values at feasible points."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.moves.feasible_probes import support_of
from zerothresh.methods.auto.moves.tangent_descent import TangentDescent
from zerothresh.methods.auto.settings.constraint_settings import FEASIBLE_DESCENT
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def swap_by_value(
    descent: TangentDescent,
    theta: Array,
    F: float,
    size: float,
    take: Callable[[Array, float], bool],
    worths: Array,
) -> Generator[Probes, Answers, bool]:
    """Replace one member after the other by each coordinate outside; descend from the best; return whether F fell.

    A scan of all coordinates tells more than its best one: those that were good in place of one member are tried first
    in place of the others, as long as they are few beside all.

    Arguments
    ---------
    descent: how values are asked for.
    theta, F: where the search stands.
    size: the typical size of a coordinate.
    take: moves to a point if it is better, and tells whether it did.
    worths: float64 array (d,), by how much F was lower at the best swap so far that a coordinate joined in; minus
        infinity where none is known. It is filled in place.
    """
    feasible = descent.feasible
    S = support_of(feasible, theta)
    free = np.flatnonzero(feasible.high > feasible.low)
    outside = np.setdiff1d(free, S)
    leaving = np.setdiff1d(S, feasible.places.forced)
    leaving = leaving[np.argsort(np.abs(theta[leaving]), kind="stable")].tolist()
    if S.size < feasible.places.k:
        leaving.insert(0, -1)  # nobody has to leave
    context = descent.context
    for i, tried in _scans(leaving, outside, feasible.places.k, worths, context):
        kept = S[i != S]
        mass = float(theta[i]) if i >= 0 else size
        points: list[Array] = []
        joined: list[int] = []
        for j in tried.tolist():
            support = np.union1d(kept, [j])
            signs = (1.0, -1.0) if feasible.low[j] < 0 < feasible.high[j] else (1.0,)
            for sign in signs:
                point = theta.copy()
                if i >= 0:
                    point[i] = 0.0
                point[j] = sign * mass if mass else sign * size
                moved = feasible.project_on(point, support)
                if moved is not None and feasible.holds(moved):
                    points.append(moved)
                    joined.append(j)
        if i >= 0 and kept.size:
            moved = feasible.project_on(theta, kept)
            if moved is not None and feasible.holds(moved):
                points.append(moved)
        if not points:
            continue
        values = yield from descent.values(points)
        np.maximum.at(worths, joined, F - values[: len(joined)])
        for place in np.argsort(values, kind="stable")[: FEASIBLE_DESCENT.swap_trials].tolist():
            point, value = points[place], float(values[place])
            point, value = yield from descent.descend(point, value, FEASIBLE_DESCENT.trial_iterations, size)
            if take(point, value):
                point, value = yield from descent.descend(point, value, FEASIBLE_DESCENT.most_iterations, size)
                take(point, value)
                return True
    return False


def _scans(
    leaving: list[int], outside: Indices, k: int, worths: Array, context: Context
) -> Iterator[tuple[int, Indices]]:
    """Yield the members that leave, each with the coordinates that are tried in its place: the promising ones first."""
    settings = FEASIBLE_DESCENT
    promising = outside[np.argsort(-worths[outside], kind="stable")[: settings.promising * k]]
    if np.isfinite(worths[promising]).all() and promising.size * (1 + len(leaving)) <= outside.size:
        yield from ((i, promising) for i in leaving)
    for i in leaving:
        most = max(settings.chunk, int(settings.swap_share * context.left / context.n))
        yield i, outside if outside.size <= most else np.sort(outside[context.rng.subset(outside.size, most)])
