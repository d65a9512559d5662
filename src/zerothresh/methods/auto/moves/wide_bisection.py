"""Bisection in wide rounds: all groups are cut at once, each into several parts.

Where many calls take no longer than one, it is rounds that count. A cut of a group takes its first coordinates from b;
the values at all cuts of all groups tell which parts have active coordinates, whatever the others have.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import pairwise

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.moves.bisection import Bisection
from zerothresh.methods.auto.moves.hybrid_groups import Group
from zerothresh.methods.auto.settings.active_subset_settings import WIDE
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class WideBisection(Bisection):
    """A bisection whose steps cut all groups into parts, in one round; see `Bisection` for the arguments."""

    def _batch(self) -> list[int]:
        """Choose all groups that can be divided, the largest ones if the budget does not cover all of them."""
        affordable = max(1, int(self.context.left // self.components.size))
        names = sorted(self._divisible(), key=lambda name: -self.groups[name].members.size)[:affordable]
        return [name for name in self.groups if name in names]

    def _halve(self, batch: list[int]) -> Generator[Probes, Answers, None]:
        """Cut each group of the batch into as many parts as the width of a round allows."""
        calls = min(self.context.width, self.context.left) // self.components.size
        parts = max(2, min(WIDE.parts, 1 + int(calls) // len(batch)))
        pieces = {name: np.array_split(m := self.groups[name].members, min(parts, m.size)) for name in batch}
        cuts = [
            np.concatenate([self._members(self._before(name)), *pieces[name][:count]])
            for name in batch
            for count in range(1, len(pieces[name]))
        ]
        values = list((yield from self._ask(cuts)))
        for name in batch:
            count = len(pieces[name]) - 1
            self._cut(name, pieces[name], values[:count])
            values = values[count:]

    def _cut(self, name: int, pieces: list[Indices], values: list[Array]) -> None:
        """Make groups of the parts of a group that change F, by the values at the cuts between them."""
        prefix, old = self._before(name), self.groups
        ends = [self.known[prefix][0], *values, self.known[prefix | {name}][0]]
        seen = [self.comparison.distance(ahead, behind, 0.0) for ahead, behind in pairwise(ends)]
        changing = [i for i, distance in enumerate(seen) if distance > 1] or [int(np.argmax(seen))]
        if len(changing) == 1:
            old[name].members = pieces[changing[0]]
            old[name].undivided += 1
            return
        names = list(range(self.names, self.names + len(changing)))
        self.names += len(changing)
        parts = {new: Group(pieces[i]) for new, i in zip(names, changing, strict=True)}
        for part, i in zip(parts.values(), changing, strict=True):
            part.weak = self.comparison.distance(ends[i], ends[i + 1], self.share) <= 1
        self.groups = {}
        for other, group in old.items():
            self.groups.update(parts if other == name else {other: group})
        self.known = {(key - {name}) | set(names) if name in key else key: v for key, v in self.known.items()}
        for count, i in enumerate(changing[:-1], start=1):
            self.known[prefix | set(names[:count])] = ends[i + 1], 1
