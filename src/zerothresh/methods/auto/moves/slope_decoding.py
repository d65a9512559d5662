"""Which coordinates does F depend on? The slopes of groups tell, where values have no random noise.

Around a base point, F changes linearly along short steps, and only few of its slopes g_j are not zero. Two calls tell
everything of a group with one such slope: one moves all of its coordinates by a step, the other moves each by a step
whose length is the code of the coordinate. The ratio of the changes is the code of the coordinate that is looked for,
whatever the size of the group. A ratio that is no code shows that a group has several slopes. Then it is halved, which
costs two calls, because the changes of the second half are those of the whole less those of the first. What is found is
subtracted from the sums of all coordinates: a weak slope that is left over is found in the same way.

Six of 10,000 coordinates take about 22 calls, and six of a million about 25; bisection takes log2(d) for each.

References: see `slope_groups.py`.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.slope_groups import NOT_FOUND, SlopeGroup
from zerothresh.methods.auto.models.value_comparison import ValueComparison
from zerothresh.methods.auto.moves.bisection import TooManyActive
from zerothresh.methods.auto.moves.slope_steps import SlopeSteps, resolution
from zerothresh.methods.auto.settings.active_subset_settings import SLOPES as SET
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Call = tuple[Indices, Array | float]  # the places of the coordinates that move, and by how many steps each
Asking = Generator[list[Call], list[Array], None]  # calls -> the changes of the components


class SlopeDecoding:
    """The search for slopes around one point.

    Arguments
    ---------
    context: the run.
    comparison: tells how far values may be off.
    components: the components of which values are taken.
    at: the steps of the coordinates that are looked through. at_base: array (components,), the values at their base.
    share: float, of the spread of the values so far: of slopes that would change F by less over the whole region, only
        those are found that are alone in their group.
    limit: int, the number of active groups from which on the search is given up.
    steepest: array (components,), the largest slopes that are known already, per length of the region.

    Attributes
    ----------
    slopes: the slopes that were found, (components,) each, per length of the region.
    bend: array (components,), the second difference along a step of all coordinates.
    """

    def __init__(
        self,
        context: Context,
        comparison: ValueComparison,
        components: Indices,
        at: SlopeSteps,
        at_base: Array,
        share: float,
        limit: int,
        steepest: Array,
    ) -> None:
        self.context, self.comparison, self.components = context, comparison, components
        self.at, self.at_base, self.share, self.limit = at, at_base, share, limit
        self.groups: list[SlopeGroup] = []
        self.error = self.bend = self.stray = np.zeros(components.size)
        self.largest = steepest * self.at.share  # the largest change along one coordinate that is known
        self.checked: set[int] = set()  # places that a call of their own has shown
        self.slopes: dict[int, Array] = {}

    def _ask(self, wanted: list[Call]) -> Generator[Probes, Answers, list[Array]]:
        """Return the changes of the components where the coordinates at some places move by coded steps."""
        points = [self.at.point(places, codes) for places, codes in wanted]
        values = yield from self.context.values(points, self.components)
        for value in values:
            self.comparison.see(value)
        return [value - self.at_base for value in values]

    def search(self, calls: float) -> Generator[Probes, Answers, dict[int, float]]:
        """Look for slopes with so many calls at most; return the coordinates that have some, and their effects.

        An effect is the change of F over the region, if it were linear, in units of what can be seen.
        """
        self.end, whole = self.context.used + calls, self.at.everywhere
        asked: list[Call] = [(whole, 1.0), (whole, self.at.codes), (whole, SET.longest_code)]
        if not self._affords(len(asked)) or not self.at.share:
            return {}
        plain, coded, far = yield from self._ask(asked)
        self.bend = np.abs(far - SET.longest_code * plain)
        self.error = resolution(self.comparison) + SET.bends * self.bend
        self.largest = np.maximum(self.largest, np.abs(plain))
        root = SlopeGroup(whole, plain, coded, weak=self._weak(plain) and self._weak(coded))
        if not self._seen(plain) and not self._seen(coded):
            return {}
        self.groups = [root]
        yield from self._resolve_all()
        while (yield from self._some_are_wrong()):
            yield from self._resolve_all()
        floor = np.maximum(self.comparison.floor(), TINY)
        for group in self._found():
            self.slopes[int(self.at.candidates[group.place])] = self.at.slope(group.place, group.plain)
        return {j: float(np.abs(slope / floor).max()) for j, slope in self.slopes.items()}

    def _affords(self, count: int) -> bool:
        size = count * self.components.size
        return self.context.used + size <= self.end and self.context.left >= size

    def _found(self) -> list[SlopeGroup]:
        return [group for group in self.groups if group.place != NOT_FOUND]

    def _seen(self, change: Array, sums: int = 1) -> bool:
        return bool((np.abs(change) > sums * self.error).any())

    def _weak(self, change: Array) -> bool:
        """Whether a slope is hidden by errors, small against the largest, or changes F little over the whole region."""
        spread = self.comparison.high - self.comparison.low
        small = np.maximum(self.share * self.at.share * spread, SET.weak_slope * self.largest)
        return bool((np.abs(change) <= np.maximum(self.error, small if self.share > 0 else 0.0)).all())

    def _together(self, asking: list[Asking]) -> Generator[Probes, Answers, bool]:
        """Answer what several groups ask for in common rounds; return whether there were calls for all of it."""
        wanted = [(one, next(one, None)) for one in asking]
        while open_ := [(one, calls) for one, calls in wanted if calls is not None]:
            if not self._affords(sum(len(calls) for _, calls in open_)):
                return False
            changes = iter((yield from self._ask([call for _, calls in open_ for call in calls])))
            wanted = []
            for one, calls in open_:
                try:
                    wanted.append((one, one.send([next(changes) for _ in calls])))
                except StopIteration:
                    continue
        return True

    def _resolve_all(self) -> Generator[Probes, Answers, None]:
        """Find the place of each slope, as long as there are calls."""
        groups_at_once = 1 if self.context.width == 1 else self.limit + 1
        while open_ := [group for group in self.groups if group.place == NOT_FOUND]:
            self.largest = np.max([np.abs(group.plain) for group in self.groups] + [self.largest], axis=0)
            chosen = sorted(open_, key=self._urgency, reverse=True)[:groups_at_once]
            if not (yield from self._together([self._resolve(group) for group in chosen])):
                return
            if len(self.groups) > self.limit:
                raise TooManyActive

    def _urgency(self, group: SlopeGroup) -> float:
        """The largest group is next, but for a weak one that tells whether there are many weak slopes."""
        return math.inf if group.weak else float(np.abs(group.plain).max())

    def _resolve(self, group: SlopeGroup) -> Asking:
        """Find the place of the only slope of a group, or halve the group."""
        if group.places.size == 1:
            group.place = int(group.places[0])
            return
        if not group.several:
            error = group.sums * self.error + self.stray
            within = group.within(self.at.ratios, error)
            if within.size == 1 and group.within(self.at.ratios, SET.clear * error).size == 1:
                group.place = int(within[0])
                return
            if 0 < within.size <= group.places.size // 2:
                yield from self._zoom(group, within)
            if group.place != NOT_FOUND:
                return
        if group.weak:
            self.groups.remove(group)
            self.stray = np.maximum(self.stray, np.abs(group.plain))
        else:
            yield from self._halve(group)

    def _zoom(self, group: SlopeGroup, within: Indices) -> Asking:
        """Ask which of the places that may be the one it is, with codes of their own; if none is, there are several."""
        error = group.sums * self.error + self.stray
        while True:
            codes = np.linspace(1.0, SET.longest_code, within.size) if within.size > 1 else np.ones(1)
            change = (yield [(within, codes)])[0]
            ratios = self.at.relative(within, codes)
            off = np.abs(change - ratios[:, None] * group.plain) / np.maximum(error, TINY)
            left = within[off.max(axis=1) <= 1 + ratios]
            if not left.size:
                group.several = True
                return
            if left.size == 1 or 2 * left.size > within.size:
                group.place = int(left[0]) if left.size == 1 else NOT_FOUND
                self.checked |= {group.place} if within.size == 1 else set()
                return
            within = left

    def _halve(self, group: SlopeGroup) -> Asking:
        """Divide a group at the place between its slopes; a half without visible slopes is left out."""
        parts = np.split(group.places, [group.cut(self.at.ratios)])
        wide, moved, coding = self.context.width > 1, (parts[0], 1.0), (parts[0], self.at.codes[parts[0]])
        first, *more = yield [moved, coding] if wide else [moved]
        second, sums = group.plain - first, group.sums + 1
        if self._seen(first) != self._seen(second, sums):
            group.places, group.several = parts[0] if self._seen(first) else parts[1], True
            return
        weak = self._weak(first), self._weak(second)
        if weak[0] != weak[1] and self.stray.any():  # many weak slopes are known to be everywhere
            left_out, middle = (first if weak[0] else second), self.at.ratios[parts[0 if weak[0] else 1]].mean()
            group.places, group.plain = (parts[1], second) if weak[0] else (parts[0], first)
            group.coded, group.several = group.coded - middle * left_out, False
            self.stray = np.maximum(self.stray, np.abs(left_out))
            return
        coded = more[0] if wide else (yield [coding])[0]
        self.groups.remove(group)
        for half, plain, code, own in ((parts[0], first, coded, 1), (parts[1], second, group.coded - coded, sums)):
            if self._seen(plain, own) or self._seen(code, own):  # else slopes of opposite sign are in the other half
                self.groups.append(SlopeGroup(half, plain, code, own, weak=self._weak(plain) and self._weak(code)))

    def _some_are_wrong(self) -> Generator[Probes, Answers, bool]:
        """Ask whether the slopes that were found explain F together; if not, reopen the groups for which they do not.

        A group of several slopes may look like one of a single slope at another place.
        """
        found = self._found()
        unsure = [group for group in found if group.place not in self.checked]
        if not unsure or not self._affords(1):
            return False
        together = (yield from self._ask([(np.array([group.place for group in found]), 1.0)]))[0]
        error = (1 + sum(group.sums for group in found)) * (self.error + self.stray)
        explained = (np.abs(together - np.sum([group.plain for group in found], axis=0)) <= error).all()
        if explained or not self._affords(len(unsure)):
            return False
        changes = yield from self._ask([(np.array([group.place]), 1.0) for group in unsure])
        for group, change in zip(unsure, changes, strict=True):
            if (np.abs(change - group.plain) > (1 + group.sums) * (self.error + self.stray)).any():
                group.place, group.several = NOT_FOUND, True
            self.checked |= {group.place}
        self.groups = [group for group in self.groups if group.place != NOT_FOUND or group.places.size > 1]
        return True
