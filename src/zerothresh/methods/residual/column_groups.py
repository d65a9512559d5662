"""Columns by splitting groups, the most promising first: fewer runs than columns where the support stands out early.

One run moves all members of a group. Splitting a group takes one run, because the other half is the difference. All
groups split down to single columns have cost as many runs as the columns one by one, so nothing is lost if the support
does not stand out; only the trials of sparse fits are extra, and they are limited to a small share of the columns.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.residual.jacobians.group_slopes import ColumnGroup, GroupSlopes
from zerothresh.methods.residual.jacobians.robust_fit import FarFit, far_fit, pull
from zerothresh.methods.residual.linearised import Evaluated, Linearised
from zerothresh.methods.residual.residual_settings import POOL
from zerothresh.methods.residual.support_exchange import descend
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Members = tuple[Indices, Array]
Support = tuple[int, ...]


def groups_fit(state: Linearised, free: Indices) -> bool:
    """Whether groups may be worth it: many columns for each split and no noise, or too few runs for all columns."""
    choice = state.choice
    if not choice.single or choice.everything:
        return False
    return scarce(state, free) or (state.noise == 0 and free.size >= POOL.least * max(choice.k, state.width))


def scarce(state: Linearised, free: Indices) -> bool:
    """Whether the budget holds fewer runs than all columns and a few steps."""
    return bool(state.context.left < free.size + POOL.scarce * state.choice.k)


def grouped_columns(state: Linearised, free: Indices) -> Generator[Probes, Answers, None]:
    """Measure columns by splitting groups; end early if a sparse fit of those that are known reaches the goal."""
    k = state.choice.k
    count = min(max(2 * k, int(POOL.first * free.size)), max(int(POOL.worth * state.context.left / 2), 1), free.size)
    groups = without_columns(state, (yield from measured(state, random_parts(state, free, count))))
    if not groups:
        return
    short = scarce(state, free)
    reserve = min(POOL.reserve * k, POOL.kept * state.context.left)
    missed = pull(state.loss, state.at.r)
    slopes = GroupSlopes.along(missed, groups, k)
    worth = short or slopes.forecast(k / free.size) < POOL.worth
    trials, tried, last, same, failed = POOL.trials * free.size, set[Support](), Support(), 0, np.inf
    while groups and (not short or state.context.left > reserve + 1):
        fit = known_fit(state)
        slopes = GroupSlopes.along(fit.pull, groups, k, float(np.linalg.norm(missed)))
        odds, support = slopes.odds(k / free.size), tuple(np.flatnonzero(fit.y).tolist())
        last, same = support, same + 1 if support == last else 0
        complete = fit.share < POOL.better * failed and slopes.expected(k / free.size) < POOL.sure
        settled = (same >= POOL.settled or complete) and support not in tried
        if worth and settled and fit.share < POOL.hope and trials >= 1:
            used = state.context.used
            tried.add(support)
            if (yield from _try(state, fit.y)):
                return
            trials, failed = trials - (state.context.used - used), min(fit.share, failed)
        most = max(k, state.width) if worth else len(groups)
        if short:
            most = _reachable(groups, int(state.context.left - reserve), most)
        chosen = set(np.argsort(-odds, kind="stable")[:most].tolist())
        rest = [group for place, group in enumerate(groups) if place not in chosen]
        groups = rest + (yield from _split(state, [groups[place] for place in sorted(chosen)], whole=not worth))
    known = int((state.age[free] == 0).sum())
    if groups and known:
        state.context.remark(
            f"The budget is too small to measure all {free.size} columns; {known} that promised most were measured."
        )


def _reachable(groups: Sequence[ColumnGroup], left: int, most: int) -> int:
    """Return how many groups are split at once, so that the runs that are left reach single columns."""
    rounds = max(int(np.ceil(np.log2(max(group.size for group in groups)))), 1)
    return max(min(most, left // rounds), 1)


def random_parts(state: Linearised, free: Indices, count: int) -> list[Members]:
    """Return the free coordinates in random parts of about equal size, with shifts of random signs."""
    rng = state.context.rng
    shifts = np.where(2 * rng.uniform(free.size) < 1, -1.0, 1.0) * state.step * state.length[free]
    order = np.argsort(rng.uniform(free.size), kind="stable")
    return [(free[part], shifts[part]) for part in np.array_split(order, count)]


def shifted(state: Linearised, x: Array, part: Members) -> Array:
    """Return x with the members of a part moved by their shifts, reversed where a bound is in the way."""
    shift = np.zeros(x.size)
    shift[part[0]] = part[1]
    return state.choice.moved(x, shift)


def of_runs(state: Linearised, parts: Sequence[Members], runs: Sequence[Evaluated]) -> list[ColumnGroup]:
    """Return groups from the runs in which their members moved."""
    return [
        ColumnGroup(members, run.x[members] - state.at.x[members], state.change(run))
        for (members, _), run in zip(parts, runs, strict=True)
    ]


def measured(state: Linearised, parts: Sequence[Members]) -> Generator[Probes, Answers, list[ColumnGroup]]:
    """Move the members of each part, all in one round."""
    return of_runs(state, parts, (yield from state.runs([shifted(state, state.at.x, part) for part in parts])))


def without_columns(state: Linearised, groups: Sequence[ColumnGroup]) -> list[ColumnGroup]:
    """Store the groups of one member as columns, and return the others."""
    for group in groups:
        if group.size == 1:
            j = int(group.members[0])
            state.J[:, j] = state.measured[:, j] = group.change / group.shifts[0]
            state.age[j] = 0.0
    return [group for group in groups if group.size > 1]


def _split(
    state: Linearised, groups: Sequence[ColumnGroup], whole: bool
) -> Generator[Probes, Answers, list[ColumnGroup]]:
    """Split groups in halves, or all the way to columns, in one round."""
    parts = [group.parts(group.size if whole else 2) for group in groups]
    asked = yield from measured(state, [part for of_group in parts for part in of_group[:-1]])
    return completed(state, groups, parts, asked)


def completed(
    state: Linearised, groups: Sequence[ColumnGroup], parts: Sequence[list[Members]], made: Sequence[ColumnGroup]
) -> list[ColumnGroup]:
    """Return the parts of groups without single columns; the last part of each is what those that were made leave."""
    asked, found = iter(made), []
    for group, of_group in zip(groups, parts, strict=True):
        first = [next(asked) for _ in of_group[:-1]]
        left = group.change - np.sum([part.change for part in first], axis=0)
        found += [*first, ColumnGroup(*of_group[-1], left)]
    return without_columns(state, found)


def known_fit(state: Linearised) -> FarFit:
    """Return the sparse fit of the known columns."""
    at, known = state.at, np.flatnonzero(state.age == 0)
    y = np.zeros(at.x.size)
    if not known.size:
        return FarFit(1.0, y, pull(state.loss, at.r))
    choice = replace(
        state.choice,
        unit=np.arange(known.size),
        k=min(state.choice.k, known.size),
        forced=np.flatnonzero(np.isin(known, state.choice.forced)),
        low=state.choice.low[known],
        high=state.choice.high[known],
    )
    J, uniform = np.ascontiguousarray(state.J[:, known]), state.context.rng.uniform
    fit = far_fit(state.loss, at.r, J, at.x[known], choice, uniform, 0)
    y[known] = fit.y
    return replace(fit, y=y)


def _try(state: Linearised, y: Array) -> Generator[Probes, Answers, bool]:
    """Make a run at a fit, and steps while they converge as on the right support; return whether that succeeds."""
    saved, run = state.saved(), (yield from state.runs([y]))[0]
    if run.f < POOL.promise * state.at.f:
        before = state.at.f
        state.move(run)
        while not state.done and state.at.f < POOL.promise * before:
            before = POOL.converging * state.at.f
            yield from descend(state, POOL.steps)
        if state.done or state.at.f < POOL.found * state.start:
            return True
    state.restore(saved)
    return False
