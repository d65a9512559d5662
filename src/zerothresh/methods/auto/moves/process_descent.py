"""A descent that follows the expected improvement of a Gaussian process.

Reference: Jones, Schonlau and Welch, *Efficient global optimization of expensive black-box functions*, 1998.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.gaussian_process import (
    Form,
    GaussianProcess,
    fit,
    forms,
    log_expected_improvement,
)
from zerothresh.methods.auto.moves.cube_search import CubeSearch, Mask
from zerothresh.methods.auto.settings.active_subset_settings import GLOBAL_SEARCH as SET
from zerothresh.methods.auto.settings.active_subset_settings import WIDE
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def descend_by_process(
    search: CubeSearch, *, everywhere: bool
) -> Generator[Probes, Answers, tuple[GaussianProcess, bool]]:
    """Follow the expected improvement outside of the basins whose bottoms are known.

    It looks for points in a box around the best one, which is the whole cube at first and again after an improvement,
    and half as wide after each failure.

    Arguments
    ---------
    search: the values so far.
    everywhere: bool, whether the descent begins at the best value outside of the basins; otherwise it begins at fresh
        random points.

    Returns the last process, and whether it sees nothing more to gain near the best point of this descent.
    """
    settled = False
    rng, p = search.context.rng, search.p
    begin, width = 0 if everywhere else search.y.size, 1.0
    fresh = max(p + SET.first_points - (search.y.size if everywhere else 0), 0)
    if fresh:
        yield from search.ask(list(rng.uniform(fresh * p).reshape(fresh, p)))
    fitted: dict[Form, Array] = {}  # the parameters of each form, to start from
    failures, turn, form = 0, 0, None
    patience = SET.patience if search.context.width == 1 else WIDE.patience
    path: list[float] = []  # the lowest value of this descent before each call
    while True:
        used = _usable(search, begin)
        process = _best_fit(search, used, fitted, None if turn % SET.form_every == 0 else form)
        form = process.form
        if search.basins:  # what is known of a basin tells of the others, too
            used = _not_too_many(search, np.arange(search.y.size))
            process = process.given(search.Z[used], search.y[used], search.counts[used])
        own = np.flatnonzero((used >= begin) & ~_in_basins(search, process, search.Z[used]))
        if not own.size:  # begin elsewhere
            yield from search.ask(list(rng.uniform(p * p).reshape(p, p)))
            break
        lowest = own[np.argmin(search.y[used[own]])]
        centre = search.Z[used[lowest]]
        value = float(search.y[used[lowest]])
        better = not path or value < min(path) - SET.gain * search.fall
        failures, width = (0, 1.0) if better else (failures + 1, max(SET.narrowing * width, SET.least_width))
        path.append(value)
        if failures == patience and min(path) >= path[0]:  # nothing found yet: this is hardly a bottom, so look farther
            width = 1.0
        elif failures >= patience * (1 if min(path) < path[0] else SET.first_patience):
            search.close_basin(centre, process.lengths)
            settled = _settled(search, process, centre, float(process.t[lowest]))
            break
        points = _proposals(search, process, centre, float(process.t[lowest]), width, turn)
        yield from search.ask(points)
        turn += len(points)
    return process, settled


def _settled(search: CubeSearch, process: GaussianProcess, centre: Array, lowest: float) -> bool:
    """Whether the mean of the process near the bottom of its descent is hardly lower than the value there."""
    rng, p = search.context.rng, search.p
    lengths = np.clip(process.lengths, *SET.length_range)
    count = len(SET.distances) * SET.near_candidates
    far = np.repeat(SET.distances, SET.near_candidates)[:, None] * lengths
    near = np.clip(centre + far * rng.normal(count * p).reshape(count, p), 0.0, 1.0)
    left = lowest - float(process.predict(near)[0].min())
    return left <= SET.gain * (float(np.median(process.t)) - lowest)


def _proposals(
    search: CubeSearch, process: GaussianProcess, centre: Array, target: float, width: float, turn: int
) -> list[Array]:
    """Return the points to ask for next: one, or as many as a wide round has room for.

    Each further point is the one that would follow if F were at the points before it what the process expects there
    (the "kriging believer" of Ginsbourger et al., 2010): no improvement, so that it looks in a narrower box.
    """
    context, points = search.context, list[Array]()
    room = min(context.width, context.left) // context.n
    for _ in range(max(1, min(WIDE.proposals, int(room)))):
        if points:
            process, width = process.believing(points[-1]), max(SET.narrowing * width, SET.least_width)
        by_mean = (turn + len(points)) % SET.mean_every == SET.mean_every - 1
        points.append(_propose(search, process, centre, target, width, by_mean=by_mean))
    return points


def _in_basins(search: CubeSearch, process: GaussianProcess, points: Array) -> Mask:
    """Which of the points lie in a basin whose bottom is known.

    That is where a straight way leads down to the bottom: the border of a basin is lower than most of what is beyond
    it, and a search that only kept its distance from the bottom would end there. (Processes that do not predict F
    know no such ways.) It is also near a bottom, in lengths of the process, but for a sum over the coordinates, whose
    basins are next to each other along each of them.
    """
    inside = np.zeros(len(points), bool) if process.additive else search.in_basin(points)
    if not search.basins or not (process.additive or search.predicted):
        return inside
    start = process.predict(points)[0]
    steps = np.linspace(0.0, 1.0, SET.way_points)[1:, None]
    for bottom, _ in search.basins:
        way = points[:, None] + steps * (bottom - points)[:, None]
        along = process.predict(way.reshape(-1, search.p))[0].reshape(len(points), -1)
        inside |= along.max(axis=1) <= start + SET.barrier
    return inside


def _usable(search: CubeSearch, begin: int) -> Indices:
    """Choose the values for a model: not those of basins that are done with, and not too many."""
    chosen = np.union1d(search.outside_basins(), np.arange(begin, search.y.size))
    return _not_too_many(search, chosen)


def _not_too_many(search: CubeSearch, chosen: Indices) -> Indices:
    """Return the chosen values, or the lowest and the newest of them."""
    if chosen.size <= SET.most_points:
        return chosen
    lowest = chosen[np.argsort(search.y[chosen], kind="stable")][: SET.most_points // 2]
    newest = np.setdiff1d(chosen, lowest)[lowest.size - SET.most_points :]
    return np.union1d(lowest, newest)


def _best_fit(search: CubeSearch, used: Indices, fitted: dict[Form, Array], form: Form | None) -> GaussianProcess:
    """Fit the process in one form, or in all forms, of which the evidence chooses."""
    X, y, counts = search.Z[used], search.y[used], search.counts[used]
    candidates = forms(search.p) if form is None else [form]
    processes = [fit(X, y, counts, candidate, fitted.get(candidate)) for candidate in candidates]
    fitted.update((process.form, process.parameters) for process in processes)
    return max(processes, key=lambda process: process.evidence)


def _lines(centre: Array, low: Array, high: Array) -> Array:
    """Return points on the lines through the centre along each coordinate: (p, points, p)."""
    p = centre.size
    lines = np.tile(centre, (p, SET.line_points, 1))
    steps = (np.arange(SET.line_points) + 0.5) / SET.line_points
    lines[np.arange(p), :, np.arange(p)] = low[:, None] + (high - low)[:, None] * steps
    return lines


def _propose(
    search: CubeSearch, process: GaussianProcess, centre: Array, target: float, width: float, *, by_mean: bool
) -> Array:
    """Return the point of largest expected improvement over the target, or of smallest mean, near the centre."""
    rng, p = search.context.rng, search.p
    low, high = np.maximum(centre - width, 0.0), np.minimum(centre + width, 1.0)
    lengths = np.clip(process.lengths, *SET.length_range)

    def score(points: Array) -> Array:
        mean, deviation = process.predict(points)
        return -mean if by_mean else log_expected_improvement(mean, deviation, target)

    count = len(SET.distances) * SET.near_candidates
    moved = rng.uniform(count * p).reshape(count, p) < max(SET.moved_share, 2 / p)
    far = np.repeat(SET.distances, SET.near_candidates)[:, None] * lengths
    near = np.clip(centre + far * rng.normal(count * p).reshape(count, p) * moved, low, high)
    wide = low + (high - low) * rng.uniform(SET.global_candidates * p).reshape(-1, p)
    lines = _lines(centre, low, high)
    along = score(lines.reshape(-1, p)).reshape(p, -1)
    joint = low + (high - low) * (np.argmax(along, axis=1) + 0.5) / SET.line_points  # exact for a sum over coordinates
    candidates = np.concatenate([wide, near, lines.reshape(-1, p), joint[None]])
    scores = score(candidates)
    top = np.argsort(-scores, kind="stable")[: SET.shortlist]
    outside = top[~_in_basins(search, process, candidates[top])]
    top = (outside if outside.size else top)[: SET.refined]
    points, values, distance = candidates[top], scores[top], SET.refined_distance
    every = np.arange(top.size)
    for _ in range(SET.refinements):
        moves = rng.normal(points.size * SET.refined_points).reshape(top.size, SET.refined_points, p)
        around = np.clip(points[:, None] + distance * lengths * moves, low, high)
        found = score(around.reshape(-1, p)).reshape(top.size, -1)
        best = np.argmax(found, axis=1)
        better = found[every, best] > values
        points = np.where(better[:, None], around[every, best], points)
        values = np.maximum(values, found[every, best])
        distance *= SET.refined_shrink
    z = points[int(np.argmax(values))]
    if np.abs(search.Z - z).max(axis=1).min() < SET.same:
        z = low + (high - low) * rng.uniform(p)
    return np.asarray(z)
