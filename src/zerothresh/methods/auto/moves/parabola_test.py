"""A test whether F is a quadratic function, along a random line through a point that no step improves."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.methods.auto.position import Position
from zerothresh.methods.auto.settings.support_search_settings import SUPPORT_SEARCH
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def is_parabola(at: Position) -> Generator[Probes, Answers, bool]:
    """Whether F is a parabola with its minimum here along a random line, as far as the descent has come.

    If F is quadratic, then it is quadratic along every line, and a random line shows almost surely if it is not. Three
    values of F are asked for. Returns False without asking if values are random, or bounds cut the line off.
    """
    changes = yield from _changes_along_a_line(at)
    if changes is None:
        return False
    ahead, back, twice = changes
    parabola = 0.5 * (ahead + back)
    tolerance = SUPPORT_SEARCH.parabola_tolerance * parabola + SUPPORT_SEARCH.parabola_noise * at.oracle.noise_margin
    return bool(parabola > 0 and abs(ahead - back) <= tolerance and abs(twice - 2**2 * parabola) <= tolerance)


def is_quadratic(at: Position) -> Generator[Probes, Answers, bool]:
    """Whether F is quadratic along a random line through the point: its third differences vanish beside the second.

    Three values of F are asked for. Returns False without asking if values are random, or bounds cut the line off.
    """
    changes = yield from _changes_along_a_line(at)
    if changes is None:
        return False
    ahead, back, twice = changes
    second, third = ahead + back, twice - 3 * ahead - back
    tolerance = SUPPORT_SEARCH.parabola_tolerance * second + SUPPORT_SEARCH.parabola_noise * at.oracle.noise_margin
    return bool(second > 0 and abs(third) <= tolerance)


def _changes_along_a_line(at: Position) -> Generator[Probes, Answers, tuple[float, float, float] | None]:
    """Return F - F(theta) one step ahead, one step back and two steps ahead along a random line; None if it cannot."""
    context, C = at.context, at.C
    way = float(np.linalg.norm(at.theta - context.theta0)) or at.oracle.diagnosis.length
    direction = np.zeros(context.d)
    direction[C] = context.rng.normal(C.size)
    direction *= way / float(np.linalg.norm(direction))
    points = [at.theta + step * direction for step in (1.0, -1.0, 2.0)]
    inside = all(np.array_equal(context.inside(point), point) for point in points)
    if at.oracle.diagnosis.random or not inside or at.calls_available < len(points) * at.oracle.m:
        return None
    values = yield from context.values(points, at.oracle.components)
    ahead, back, twice = (values.mean(axis=1) - at.F).tolist()
    return ahead, back, twice
