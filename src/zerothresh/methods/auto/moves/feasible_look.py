"""The first calls where a constraint goes beyond bounds: the start again, which tells whether values are random."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from zerothresh.methods.auto.diagnosis import NOTHING_KNOWN, Diagnosis
from zerothresh.methods.auto.moves.feasible_probes import typical_size
from zerothresh.methods.auto.settings.constraint_settings import FEASIBLE_DESCENT
from zerothresh.methods.auto.settings.floating_point import EPS, TINY
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def feasible_look(context: Context) -> Generator[Probes, Answers, Diagnosis]:
    """Call one component again at the start, which is feasible, and return what that tells."""
    assert context.constraint.further is not None
    one = np.array([0])
    first = float((yield from context.starts(one))[0])
    repeats = FEASIBLE_DESCENT.repeats if context.left > FEASIBLE_DESCENT.repeats * context.n else 1
    again = [float((yield from context.values([context.theta0], one))[0, 0])]
    if again[0] != first:
        more = yield from context.values([context.theta0] * repeats, one)
        again += more[:, 0].tolist()
    noise = float(np.std([first, *again], ddof=1))
    largest = max(abs(first), *(abs(value) for value in again), TINY)
    random = noise > FEASIBLE_DESCENT.random_above * EPS * largest
    length = typical_size(context.constraint.further, context.theta0)
    return replace(
        NOTHING_KNOWN, noise=max(noise, TINY), random=random, length=length, start_value=largest, largest_value=largest
    )
