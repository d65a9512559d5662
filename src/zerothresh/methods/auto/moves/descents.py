"""Descents of several kinds in turn, for the global minimum over a few coordinates within the unit cube."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.methods.auto.moves.cube_search import CubeSearch
from zerothresh.methods.auto.moves.process_descent import descend_by_process
from zerothresh.methods.auto.moves.quadratic_descent import descend_by_quadratic
from zerothresh.methods.auto.settings import GLOBAL_SEARCH as SET
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

KINDS = ("process", "far", "near")


class Descents:
    """Descents in turn: by a Gaussian process, by a quadratic model from far away, and from near the best point.

    The process needs few values where F is smooth on the scale of the cube; a quadratic model sees through ripples,
    and from near the best point it finds the bottom of a funnel of many basins. A kind that has just found something
    better goes on.
    """

    def __init__(self, search: CubeSearch) -> None:
        self.search = search
        self.made = dict.fromkeys(KINDS, 0)
        self.turn = 0

    def next(self) -> Generator[Probes, Answers, None]:
        """Make one descent."""
        search, kind = self.search, KINDS[self.turn]
        before, fall = (search.y.min(), search.fall) if search.y.size else (np.inf, 0.0)
        if kind == "process":
            yield from descend_by_process(search, everywhere=self.made[kind] == 0)
        elif kind == "far":
            outside = search.outside_basins()
            anew = self.made[kind] > 0 or not outside.size
            start = search.context.rng.uniform(search.p) if anew else search.Z[outside[np.argmin(search.y[outside])]]
            yield from descend_by_quadratic(search, start=start, radius=SET.first_radius)
        else:
            moves = SET.near_radius * (2.0 * search.context.rng.uniform(search.p) - 1.0)
            start = np.clip(search.Z[int(np.argmin(search.y))] + moves, 0.0, 1.0)
            yield from descend_by_quadratic(search, start=start, radius=SET.near_radius)
        self.made[kind] += 1
        if self.made[kind] == 1 or not search.y.min() < before - SET.gain * fall:
            self.turn = (self.turn + 1) % len(KINDS)
