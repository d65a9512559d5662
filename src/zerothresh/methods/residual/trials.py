"""Trials of points, with the columns that workers measure there instead of being idle."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.residual.linearised import Beside, Evaluated, Linearised
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Trial = tuple[Evaluated, Beside | None]


def trial(state: Linearised, y: Array, S: Indices, others: Sequence[Array] = ()) -> Generator[Probes, Answers, Trial]:
    """Make a run at a point, those of its columns S if they take no longer, and those at other points.

    Return the run at y and its columns; if F is not lower there, the best of all without columns. Workers that would
    still be idle measure the columns that may be wanted next. Under noise, columns that learn from all steps are better
    than those of one point.
    """
    room = int(min(state.width, state.context.left)) - 1 - len(others)
    wide = S.size <= room and S.size < state.width and state.noise == 0
    chosen = np.concatenate([S, _likely(state, y, S, room - S.size)]) if wide else S[:0]
    made = yield from state.runs([y, *others, *state.beside(y, chosen)])
    trials = made[: 1 + len(others)]
    if made[0].f < state.at.f or not others:
        return made[0], (chosen, made[len(trials) :]) if wide else None
    return min(trials, key=lambda run: run.f), None


def _likely(state: Linearised, y: Array, S: Indices, most: int) -> Indices:
    """Return the coordinates outside S that would lower the sum of losses most after a move to y, by the model."""
    gains = state.gains_at(y)
    gains[S], gains[state.fixed] = 0.0, 0.0
    first = np.argsort(-gains, kind="stable")[: max(most, 0)]
    return np.asarray(first[gains[first] > 0])
