"""Candidates race against an iterate: differences on a few components first, and on more of them as long as F falls.

Only differences f_i(candidate) - f_i(iterate) of the same components are used, so that neither the offset of F nor the
spread of the components at a point matters.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.settings.box_settings import COMPONENT_RACE
from zerothresh.methods.auto.settings.floating_point import EPS, TINY
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class RaceOutcome(NamedTuple):
    """What a race has shown."""

    changes: Array  # mean change of the components of the first leg, one per candidate
    winner: int | None  # the candidate that does not raise F over all components in use, if there is one
    fall: float = 0.0  # by which it lowers F over the components in use


class ComponentRace:
    """The components in use, what they are at an iterate, and races of candidates against it.

    A few components are in use at first; `grow` doubles them. Components whose values change most from candidate to
    candidate come first, because they decide.

    Arguments
    ---------
    context: of the arm.
    diagnosis: tells the noise.
    """

    def __init__(self, context: Context, diagnosis: Diagnosis) -> None:
        self.context = context
        self.noise = diagnosis.noise if diagnosis.random else 0.0
        self.order = np.argsort(context.rng.uniform(context.n), kind="stable")
        self.used = min(context.n, COMPONENT_RACE.first)
        self.start = self.theta = context.theta
        self.values = np.zeros(context.n)  # at the iterate, of the components in use
        self.at_start = np.zeros(context.n)  # at the point where the arm began
        self.lowest = np.full(context.n, np.inf)  # value seen of each component
        self.floor_hits = np.zeros(context.n, np.int64)  # how often exactly that value was seen
        self.spread = np.ones(context.n)  # recent mean change of each component, over that of all of them
        self.calls = 0  # of this arm; others may make calls in between
        self.grown = 0  # calls until the components in use were doubled last

    @property
    def active(self) -> Indices:
        """The components in use."""
        return self.order[: self.used]

    @property
    def complete(self) -> bool:
        """Whether all components are in use."""
        return self.used == self.context.n

    def begin(self) -> Generator[Probes, Answers, None]:
        """Ask for what is not known at the start."""
        yield from self._know_start(self.active)
        self.values = self.at_start.copy()

    def _know_start(self, of: Indices) -> Generator[Probes, Answers, None]:
        if self.start is self.context.theta0:
            self.at_start[of] = yield from self.context.starts(of)
        else:
            self.at_start[of] = (yield from self._ask([self.start], of))[0]

    def _ask(self, points: list[Array], of: Indices) -> Generator[Probes, Answers, Array]:
        self.calls += len(points) * of.size
        return (yield from self.context.values(points, of))

    def grow(self) -> Generator[Probes, Answers, None]:
        """Use twice as many components."""
        more = self.order[self.used : 2 * self.used]
        yield from self._know_start(more)
        self.values[more] = (yield from self._ask([self.theta], more))[0]
        self.used += more.size
        self.grown = self.calls

    @property
    def due(self) -> bool:
        """Whether the components in use have been asked so often that more of them are needed, and affordable."""
        asked = self.calls - self.grown > COMPONENT_RACE.passes * self.used
        return not self.complete and asked and self.context.left > 2 * self.used + self.used

    @property
    def leg(self) -> int:
        """How many components a race begins with."""
        return min(self.used, max(COMPONENT_RACE.least, round(COMPONENT_RACE.first_leg * math.sqrt(self.used))))

    def affordable(self, count: int) -> int:
        """Return at most ``count`` candidates, so that the budget lets one of them finish."""
        return int(max(1, min(count, (self.context.left - self.used + self.leg) // self.leg)))

    def run(self, points: list[Array], side_by_side: int) -> Generator[Probes, Answers, RaceOutcome]:
        """Race candidates; each set of ``side_by_side`` of them keeps one for the second leg.

        The winner becomes the iterate.
        """
        late = np.where(self.at_floor(), COMPONENT_RACE.floor_last, 1.0) / np.maximum(self.spread, TINY)
        keys = self.context.rng.uniform(self.used) ** late[self.active]
        queue = self.active[np.argsort(-keys, kind="stable")]
        leg = at = self.leg
        changes = np.zeros((len(points), self.used))  # in the order of the queue
        changes[:, :leg] = yield from self.changes(points, queue[:leg])
        self._learn(queue[:leg], changes[:, :leg])
        sums = changes.sum(axis=1)
        first = sums / leg
        starts = range(0, len(points), side_by_side)
        left = np.array([at + int(np.argmin(sums[at : at + side_by_side])) for at in starts])
        while at < self.used:
            left = left[sums[left] < 0]
            some = queue[at : 2 * at]
            affordable = int(self.context.left // (some.size * (2 if self.noise else 1)))
            left = left[np.argsort(sums[left], kind="stable")][:affordable]
            if not left.size:
                return RaceOutcome(first, None)
            new = yield from self.changes([points[i] for i in left], some)
            changes[left, at : at + some.size] = new
            sums[left] += new.sum(axis=1)
            at += some.size
        best = int(left[np.argmin(sums[left])])
        fall = -float(sums[best]) / self.used
        if fall < self.floor():
            return RaceOutcome(first, None)
        self.take(points[best], changes[best], queue)
        return RaceOutcome(first, best, fall)

    def take(self, point: Array, changes: Array, of: Indices) -> None:
        """Make a point the iterate, at which the values of components ``of`` differ by ``changes``."""
        self.theta = point
        self.values[of] += changes

    def jump(self, point: Array) -> Generator[Probes, Answers, None]:
        """Make a point the iterate, whatever F is there."""
        values = yield from self._ask([point], self.active)
        self.theta = point
        self.values[self.active] = values[0]

    def floor(self) -> float:
        """The fall that a candidate needs: none without noise, so that an iterate may wander over a plateau."""
        return COMPONENT_RACE.deviations * self.noise * math.sqrt(2 / self.used)

    def changes(self, points: list[Array], of: Indices) -> Generator[Probes, Answers, Array]:
        """Return f_i(point) - f_i(iterate), (points, components); under noise the iterate is asked for again."""
        asked = [*points, self.theta] if self.noise else points
        values = yield from self._ask(asked, of)
        self._note_lowest(values, of)
        if self.noise:
            self.values[of] = values[-1]
            return np.asarray(values[:-1] - values[-1])
        changes = values - self.values[of]
        rounding = COMPONENT_RACE.rounding * EPS * np.maximum(np.abs(values), np.abs(self.values[of]))
        return np.where(np.abs(changes) > rounding, changes, 0.0)

    def _note_lowest(self, values: Array, of: Indices) -> None:
        lowest = values.min(axis=0)
        self.floor_hits[of] = np.where(lowest < self.lowest[of], 0, self.floor_hits[of])
        self.lowest[of] = np.minimum(lowest, self.lowest[of])
        self.floor_hits[of] += (values == self.lowest[of]).sum(axis=0)

    def at_floor(self) -> NDArray[np.bool_]:
        """Which components are at the lowest value seen of them, which has come more than once: they cannot fall."""
        return np.asarray((self.floor_hits > 1) & (self.values <= self.lowest))

    def _learn(self, of: Indices, changes: Array) -> None:
        """Keep how much components change, relative to the others."""
        size = np.abs(changes).mean(axis=0)
        typical = float(size.mean())
        if typical > 0:
            self.spread[of] += COMPONENT_RACE.recent * (size / typical - self.spread[of])

    def better_than_start(self) -> bool:
        """Whether the iterate is known to be better than the start: over all components, or clearly over some."""
        changes = (self.values - self.at_start)[self.active]
        mean = float(changes.mean())
        if self.complete and not self.noise:
            return mean < 0
        error = max(float(changes.std()), self.noise) / math.sqrt(self.used)
        return mean < -COMPONENT_RACE.sure * error
