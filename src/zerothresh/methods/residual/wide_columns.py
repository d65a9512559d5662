"""Columns where many runs take no longer than one: every round is full, and a sparse fit is tried beside its splits.

The first round after the start holds the look and groups of columns, which are split the most promising first. A fit
of the columns that are known rides along: if it leads to the support, the columns that are left are not needed; if not,
it has cost a part of one round.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.residual.column_groups import (
    Members,
    Support,
    completed,
    known_fit,
    of_runs,
    scarce,
    shifted,
    without_columns,
)
from zerothresh.methods.residual.jacobians.group_slopes import ColumnGroup, GroupSlopes
from zerothresh.methods.residual.jacobians.robust_fit import pull
from zerothresh.methods.residual.linearised import Beside, Evaluated, Linearised
from zerothresh.methods.residual.residual_settings import POOL
from zerothresh.methods.residual.support_descent import SupportDescent
from zerothresh.methods.residual.support_exchange import descend
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Asked = Generator[Probes, Answers, None]


def wide_groups_fit(state: Linearised, free: Indices) -> bool:
    """Whether a round has room for a look and as many groups as non-zeros, and few rounds hold all columns."""
    choice, width = state.choice, state.width
    if not choice.single or choice.everything or scarce(state, free):
        return False
    return width >= choice.k + POOL.look and width < free.size < POOL.least * width


def wide_columns(state: Linearised, groups: Sequence[ColumnGroup]) -> Asked:
    """Split groups down to columns in full rounds; end early if a sparse fit of those that are known is the goal."""
    k, d = state.choice.k, sum(group.size for group in groups)
    groups, missed = without_columns(state, groups), float(np.linalg.norm(pull(state.loss, state.at.r)))
    tried, last, failures = set[Support](), Support(), 0
    while groups:
        fit = known_fit(state)
        slopes = GroupSlopes.along(fit.pull, groups, k, missed)
        support = tuple(np.flatnonzero(fit.y).tolist())
        S, left = np.array(support, np.int64), sum(group.size - 1 for group in groups)
        room, ends = int(min(state.width, state.context.left)), left < state.width
        points: list[Array] = []
        if support and ends:
            points = [fit.y, *state.beside(fit.y, S)][: room - left]
        elif support not in tried and fit.share < POOL.hope and failures < POOL.failures:
            if support == last or slopes.expected(k / d) < POOL.sure:
                points = [fit.y, *state.beside(fit.y, S)]
        best = np.argsort(-slopes.odds(k / d), kind="stable")[: room - len(points)].tolist()
        chosen = [groups[place] for place in best]
        parts = _parts(chosen, room - len(points))
        asked = [part for of_group in parts for part in of_group[:-1]]
        made = yield from state.runs([*points, *(shifted(state, state.at.x, part) for part in asked)])
        rest = [group for place, group in enumerate(groups) if place not in best]
        groups = rest + completed(state, chosen, parts, of_runs(state, asked, made[len(points) :]))
        beside = (S, made[1 : len(points)]) if len(points) > S.size else None
        if ends and points and made[0].f < state.at.f and _same(known_fit(state).y, fit.y):
            state.move(made[0], beside)
        elif not ends and points:
            if (yield from _follow(state, made[0], beside)):
                return
            tried, failures = tried | {support}, failures + 1
        last = support


def _same(y: Array, z: Array) -> bool:
    """Whether two points have the same support."""
    return np.array_equal(y != 0, z != 0)


def _parts(groups: Sequence[ColumnGroup], room: int) -> list[list[Members]]:
    """Return the parts of groups, of which the first are the most promising, whose runs fill the room."""
    each, more = divmod(room, len(groups))
    return [group.parts(min(group.size, 1 + each + (place < more))) for place, group in enumerate(groups)]


def _follow(state: Linearised, run: Evaluated, beside: Beside | None) -> Generator[Probes, Answers, bool]:
    """Make steps from a run at a fit while the linear model promises that this is the right support."""
    saved, f = state.saved(), np.inf
    if run.f < POOL.promise * state.at.f:
        state.move(run, beside)
        while not state.done and state.at.f < f and SupportDescent(state, state.support).promise() < POOL.converging:
            f = state.at.f
            yield from descend(state, 1)
            if state.at.f < POOL.found * state.start:
                return True
        if state.done:
            return True
    state.restore(saved)
    return False
