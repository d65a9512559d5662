"""Swaps of one member of the support for another coordinate, judged by values at feasible points."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.moves.feasible_probes import support_of
from zerothresh.methods.auto.moves.tangent_descent import TangentDescent
from zerothresh.methods.auto.settings.constraint_settings import FEASIBLE_DESCENT
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def swap_by_value(
    descent: TangentDescent, theta: Array, F: float, size: float, take: Callable[[Array, float], bool]
) -> Generator[Probes, Answers, bool]:
    """Replace one member after the other by each coordinate outside; descend from the best; return whether F fell.

    Arguments
    ---------
    descent: how values are asked for.
    theta, F: where the search stands.
    size: the typical size of a coordinate.
    take: moves to a point if it is better, and tells whether it did.
    """
    feasible = descent.feasible
    S = support_of(feasible, theta)
    free = np.flatnonzero(feasible.high > feasible.low)
    outside = np.setdiff1d(free, S)
    leaving = np.setdiff1d(S, feasible.places.forced)
    leaving = leaving[np.argsort(np.abs(theta[leaving]), kind="stable")].tolist()
    if S.size < feasible.places.k:
        leaving.insert(0, -1)  # nobody has to leave
    context, settings = descent.context, FEASIBLE_DESCENT
    for i in leaving:
        kept = S[i != S]
        most = max(settings.chunk, int(settings.swap_share * context.left / context.n))
        tried = outside if outside.size <= most else np.sort(outside[context.rng.subset(outside.size, most)])
        mass = float(theta[i]) if i >= 0 else size
        points: list[Array] = []
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
        if i >= 0 and kept.size:
            moved = feasible.project_on(theta, kept)
            if moved is not None and feasible.holds(moved):
                points.append(moved)
        if not points:
            continue
        values = yield from descent.values(points)
        for place in np.argsort(values, kind="stable")[: FEASIBLE_DESCENT.swap_trials].tolist():
            point, value = points[place], float(values[place])
            point, value = yield from descent.descend(point, value, FEASIBLE_DESCENT.trial_iterations, size)
            if take(point, value):
                point, value = yield from descent.descend(point, value, FEASIBLE_DESCENT.most_iterations, size)
                take(point, value)
                return True
    return False
