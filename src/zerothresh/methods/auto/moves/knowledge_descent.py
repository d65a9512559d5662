"""A descent for random values: it asks where one more value is expected to lower what can be returned the most.

So it asks again where noise hides which of two points is better, looks elsewhere where that promises more, and takes
distant points if these tell best where the minimum is.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.random_process import UNASKED, RandomProcess
from zerothresh.methods.auto.moves.believed_best import believe, fit_belief
from zerothresh.methods.auto.moves.cube_search import CubeSearch
from zerothresh.methods.auto.settings.active_subset_settings import GLOBAL_SEARCH as SEARCH
from zerothresh.methods.auto.settings.active_subset_settings import KNOWLEDGE as SET
from zerothresh.methods.auto.settings.active_subset_settings import WIDE
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream

Proposal = tuple[Array, int]  # a point, and the number of the value that is known there, or UNASKED


def descend_by_knowledge(search: CubeSearch) -> Generator[Probes, Answers, RandomProcess]:
    """Ask where a value is worth most, until that has not lowered the best belief for some calls.

    Returns the last process.
    """
    rng, p, calls, failures, lowest = search.context.rng, search.p, 0, 0, np.inf
    if (fresh := p + SEARCH.first_points - search.y.size) > 0:
        yield from search.ask(list(rng.uniform(fresh * p).reshape(fresh, p)))
    last_fit = -SEARCH.form_every
    while True:
        anew = calls >= last_fit + SEARCH.form_every
        last_fit = calls if anew else last_fit
        process, used = fit_belief(search, anew=anew)
        believe(search, process, used)
        better = search.level < lowest - SEARCH.believed_margin * search.noise.deviation
        lowest = min(lowest, search.level) if better else lowest
        if failures >= SET.patience and not better:
            return process
        proposals, believing = list[Proposal](), process
        room = min(search.context.width, search.context.left) // search.context.n
        for _ in range(max(1, min(WIDE.proposals, int(room)))):
            if proposals:
                believing = believing.believing(*proposals[-1])
            proposals.append(_propose(search, believing, used, calls + len(proposals)))
        numbers = [number if number == UNASKED else int(used[number]) for _, number in proposals]
        values = yield from search.ask_or_repeat([z for z, _ in proposals], numbers)
        for (_, number), value in zip(proposals, values.tolist(), strict=True):
            if number != UNASKED:
                search.noise.see(*process.surprise(number, value))
        calls += len(proposals)
        failures = 0 if better else failures + len(proposals)


def follows(process: RandomProcess) -> bool:
    """Whether other models would see nothing more of F than the process does.

    That is so if noise hides all that it does not follow, or if F is a bowl up to ripples, whose bottom it finds.
    """
    mean = process.at_values()[0].min(keepdims=True)
    return process.is_bowl or process.ripples <= float(process.warp.deviation(mean)[0]) ** 2


def _propose(search: CubeSearch, process: RandomProcess, used: Indices, turn: int) -> Proposal:
    """Return the point to ask for next.

    Some calls go to the minimiser of the mean. If F is a bowl, some go to corners of the cube: they tell far better
    where its bottom is than points near it, where the ripples of F are as large as what is to be seen.
    """
    rng, p = search.context.rng, search.p
    if process.is_bowl and turn % SEARCH.mean_every == 1:
        return (rng.uniform(p) < 0.5).astype(float), UNASKED
    numbers = np.flatnonzero((used >= search.known)[: process.t.size])
    numbers = np.concatenate([numbers, np.arange(used.size, process.t.size)])
    mean, _ = process.at_values()
    best = numbers[np.argsort(mean[numbers], kind="stable")[: SET.rivals]]
    centre = process.X[best[0] if best.size else int(np.argmin(mean))]
    near = _around(rng, process, centre)
    expected = process.mean(near)
    minimiser = _minimiser(rng, process, np.concatenate([near, centre[None]]))
    if turn % SEARCH.mean_every == SEARCH.mean_every - 1:
        again = best.size and best[0] < used.size and search.counts[used[best[0]]] < SET.least_values
        return (centre, int(best[0])) if again else (minimiser, UNASKED)
    chosen = np.argsort(expected, kind="stable")[: SET.promising]
    others = rng.integers(len(near), SET.nearby)
    wide = rng.uniform(SET.wide * p).reshape(-1, p)
    corners = (rng.uniform(SET.corners * p).reshape(-1, p) < 0.5).astype(float)
    best = best[best < used.size]  # what is only believed cannot be asked for again
    fresh = np.concatenate([near[chosen], near[others], wide, corners, minimiser[None]])
    points = np.concatenate([process.X[best], fresh])
    which = np.concatenate([best, np.full(len(fresh), UNASKED)])
    worthiest = int(np.argmax(process.worth(points, which)))
    return points[worthiest], int(which[worthiest])


def _around(rng: Stream, process: RandomProcess, centre: Array) -> Array:
    """Return random points around the centre, at several distances in lengths of the process."""
    p, count = centre.size, len(SET.distances) * SEARCH.near_candidates
    lengths = np.clip(process.lengths, *SEARCH.length_range)
    moved = rng.uniform(count * p).reshape(count, p) < max(SEARCH.moved_share, 2 / p)
    far = np.repeat(SET.distances, SEARCH.near_candidates)[:, None] * lengths
    return np.asarray(np.clip(centre + far * rng.normal(count * p).reshape(count, p) * moved, 0.0, 1.0))


def _minimiser(rng: Stream, process: RandomProcess, candidates: Array) -> Array:
    """Return the point of smallest mean, by refining the best candidates."""
    p, distance = process.X.shape[1], SEARCH.refined_distance
    lengths = np.clip(process.lengths, *SEARCH.length_range)
    mean = process.mean(candidates)
    top = np.argsort(mean, kind="stable")[: SEARCH.refined]
    points, values, every = candidates[top], mean[top], np.arange(top.size)
    for _ in range(SET.refinements):
        moves = rng.normal(points.size * SEARCH.refined_points).reshape(top.size, SEARCH.refined_points, p)
        around = np.clip(points[:, None] + distance * lengths * moves, 0.0, 1.0)
        found = process.mean(around.reshape(-1, p)).reshape(top.size, -1)
        best = np.argmin(found, axis=1)
        better = found[every, best] < values
        points = np.where(better[:, None], around[every, best], points)
        values = np.minimum(values, found[every, best])
        distance *= SEARCH.refined_shrink
    return np.asarray(points[int(np.argmin(values))])
