"""A test whether F has a kink where a step that promised much did not lower it."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.position import Position
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def is_kinked(at: Position, g: Array, way: Array, length: float) -> Generator[Probes, Answers, bool]:
    """Whether F departs from its slope in proportion to the length of a step, as at a kink, and not to its square.

    A model of a smooth function may promise much, too, where another support is worth less than it seems.

    Arguments
    ---------
    at: where the descent stands.
    g: array of shape (c,), the gradient there.
    way: array of shape (d,), the step that promised much.
    length: float, of the shortest step along about this way that did not lower F.
    """
    if at.calls_available < 2 * at.oracle.value_cost:
        return False
    share, departures = min(1.0, length / max(float(np.linalg.norm(way)), TINY)), list[float]()
    for part in (share, DESCENT.kink_shorter * share):
        point = at.context.inside(at.theta + part * way)
        values = yield from at.oracle.values(point)
        departures.append(abs(float(values.mean()) - at.F - float(g @ (point - at.theta)[at.C])))
    long, short = departures
    return short > max(DESCENT.kink_order * long, at.oracle.noise_margin)
