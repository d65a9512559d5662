"""Descents of several kinds in turn, for the global minimum over a few coordinates within the unit cube."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.methods.auto.moves.cube_search import CubeSearch
from zerothresh.methods.auto.moves.knowledge_descent import descend_by_knowledge, follows
from zerothresh.methods.auto.moves.process_descent import descend_by_process
from zerothresh.methods.auto.moves.quadratic_descent import descend_by_quadratic
from zerothresh.methods.auto.settings.active_subset_settings import GLOBAL_SEARCH as SET
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

KINDS = ("process", "near", "far")  # in a tie, the first one is next: what was found is polished
RIPPLED = ("process", "far", "near")  # the same if a process does not predict F: a bottom must be found first


class Descents:
    """Descents in turn: by a Gaussian process, by a quadratic model from far away, and from near the best point.

    The process needs few values where F is smooth on the scale of the cube; a quadratic model sees through ripples,
    and from near the best point it finds the bottom of a funnel of many basins. While processes predict F, what one
    has found is polished by a quadratic model, unless the process sees nothing more to gain there; then another one
    looks for the next basin. Otherwise a kind that has just found something better goes on, or else the one that has
    had the fewest values is next. The two kinds of descents by a quadratic model count as if they had begun together.

    If values are random, the process asks where a value is worth most. While it follows F as far as noise lets one see,
    a quadratic model would see nothing more, and it goes on alone.
    """

    def __init__(self, search: CubeSearch) -> None:
        self.search = search
        self.values = dict.fromkeys(KINDS, 0.0)  # that each kind has had
        self.kind = "process"
        self.made: set[str] = set()  # the kinds of descents that have been made
        self.additive = False  # whether the last process was a sum over the coordinates
        self.trusted = False  # whether processes predict values that they were not fitted to, and find further basins

    @property
    def all_kinds_made(self) -> bool:
        """Whether each kind of descent has been made that may find something better."""
        enough = {"process"} if self.search.random else {"process", "near"}
        return self.made >= (enough if self.trusted else set(KINDS))

    def next(self) -> Generator[Probes, Answers, None]:
        """Make one descent."""
        search, kind, begin = self.search, self.kind, self.search.y.size
        first = kind not in self.made
        before, asked, settled = self._lowest(), search.counts.sum(), False
        gain = self._least_gain() if begin else 0.0
        if kind == "process" and search.random:
            self.trusted = follows((yield from descend_by_knowledge(search)))
        elif kind == "process":
            closed = len(search.basins)
            process, settled = yield from descend_by_process(search, everywhere=first or self.additive)
            self.additive = process.additive
            self.trusted = (self.trusted or process.predicts()) and len(search.basins) > closed
            search.predicted = self.trusted
        elif kind == "far":
            outside = search.outside_basins()
            known = first and outside.size > 0
            start = search.Z[outside[np.argmin(search.y[outside])]] if known else search.context.rng.uniform(search.p)
            yield from descend_by_quadratic(search, start=start, radius=SET.first_radius)
        else:
            shortest, longest = SET.near_radii
            radius = shortest * (longest / shortest) ** float(search.context.rng.uniform()[0])
            yield from descend_by_quadratic(search, start=search.Z[search.best], radius=radius)
        self.values[kind] += search.counts.sum() - asked
        if not self.made & {"near", "far"}:
            self.values["near"] = self.values["far"] = self.values[kind] if kind != "process" else 0.0
        self.made.add(kind)
        better = self._lowest() < before - gain
        if search.random and self.trusted:
            self.kind = "process"
        elif kind == "process" and (first or better) and self.trusted:
            self.kind = "process" if settled else "near"  # a process may end near the bottom, a quadratic model at it
        elif kind == "near" and self.trusted:
            self.kind = "process"  # if this was a wrong basin, another process finds the next one with the fewest calls
        elif better and kind == "far" and not self.trusted:
            self.kind = "near"
        elif first or not better:
            self.kind = min(KINDS if self.trusted else RIPPLED, key=self._turn)

    def _lowest(self) -> float:
        """Return the lowest value, or what is believed to be the lowest one."""
        return self.search.level if self.search.random else float(self.search.y.min(initial=np.inf))

    def _least_gain(self) -> float:
        """Return by how much this must fall to count as better."""
        search = self.search
        return SET.believed_margin * search.noise.deviation if search.random else SET.gain * search.fall

    def _turn(self, kind: str) -> float:
        """Return the values that a kind has had, weighted: a process that predicts F needs the fewest."""
        trusted = kind == "process" and self.trusted
        return self.values[kind] / (SET.trusted_weight if trusted else 1.0)
