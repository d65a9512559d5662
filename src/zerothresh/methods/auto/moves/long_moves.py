"""The moves of a search by long steps: add, drop, swap, change a value, and change all values at random."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.moves.component_race import ComponentRace
from zerothresh.methods.auto.moves.step_groups import GroupQueue, StepGroup, reach, split, targets_of
from zerothresh.methods.auto.moves.step_worths import StepWorths
from zerothresh.methods.auto.settings.box_settings import LONG_STEPS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Move = Generator[Probes, Answers, float]  # returns the fall of F; 0 if the move was not taken


class LongMoves:
    """An iterate, what single steps and the coordinates of the support have been worth, and moves.

    Each move asks for few values, and changes the iterate only if F falls.
    """

    def __init__(self, context: Context, diagnosis: Diagnosis, race: ComponentRace) -> None:
        self.context, self.race = context, race
        self.iterate = 0  # its number: what was measured at another one is out of date
        self.free = context.free()
        self.dense = context.k >= self.free.size  # if all may be non-zero, 0 is a value like any other
        self.kept = np.zeros(context.d, bool)
        self.kept[context.constraint.include] = True
        self.low, self.high = reach(context, diagnosis)
        self.targets = targets_of(context, self.low, self.high)
        self.worths = StepWorths(self.targets)
        self.loss = np.full(context.d, -np.inf)  # last known rise of F if the coordinate is set to 0
        self.loss_measured = np.full(context.d, -1)  # the iterate at which it was measured
        self.steps = LONG_STEPS.first_step * (self.high - self.low)
        self.failures = np.zeros(context.d, np.int64)  # to change the value, since the last success
        self.tried: set[tuple[int, int]] = set()  # swaps at this iterate
        self.spread = LONG_STEPS.first_step  # of random changes of all values, relative to their ranges

    @property
    def support(self) -> Indices:
        """Coordinates that are not 0, or all that may change if all may be non-zero."""
        return self.free if self.dense else np.flatnonzero(self.race.theta)

    @property
    def outside(self) -> Indices:
        """Coordinates at 0 that may change and do not belong to the support."""
        return np.setdiff1d(self.free[self.race.theta[self.free] == 0], self.support)

    @property
    def room(self) -> int:
        """Coordinates that may still become non-zero."""
        return 0 if self.dense else self.context.k - int(np.count_nonzero((self.race.theta != 0) | self.kept))

    def _measured(self, groups: list[StepGroup]) -> Generator[Probes, Answers, list[StepGroup]]:
        """Return groups with the changes of F that their steps make."""
        changes = yield from self.race.changes([group.applied(self.race.theta) for group in groups], self.race.active)
        known = [replace(group, changes=each) for group, each in zip(groups, changes, strict=True)]
        for group in known:
            if group.coordinates.size == 1:
                self.worths.note(group, self.iterate)
        return known

    def _best_step(self, pool: Indices, most: float) -> Generator[Probes, Answers, StepGroup | None]:
        """Find a step that lowers F by best-first bisection of a random partition of the coordinates in ``pool``.

        It is a step of one coordinate, or of up to ``most`` if their fall together is larger than those of its halves.
        """
        order = pool[np.argsort(self.context.rng.uniform(pool.size), kind="stable")]
        groups = split(order, self.race.theta, self.targets, LONG_STEPS.first_groups, self.dense)
        if not groups:
            return None
        queue = GroupQueue((yield from self._measured(groups)))
        while True:
            group = queue.pop()
            if group.coordinates.size == 1:
                return group
            halves = yield from self._measured(group.halves())
            together = group.change < min(0.0, *(half.change for half in halves))
            if together and group.coordinates.size <= most:
                return group
            queue.push(halves)

    def _new_step(self) -> Generator[Probes, Answers, StepGroup | None]:
        """Find a step of coordinates at 0, as `add` takes it."""
        scarce = self.context.k / self.free.size  # where few coordinates may change, none of them is wasted
        return (yield from self._best_step(self.outside, LONG_STEPS.group_room * scarce * self.room))

    def _try(self, point: Array, changes: Array | None = None) -> Generator[Probes, Answers, float]:
        """Take a point if F falls there by more than noise; return the change of F, and 0 for a fall within the noise.

        ``changes`` are those of the components, if they are known.
        """
        race = self.race
        if changes is None:
            changes = (yield from race.changes([point], race.active))[0]
        if race.noise and changes.mean() < -race.floor():  # what was lucky once may not be so again
            changes = 0.5 * (changes + (yield from race.changes([point], race.active))[0])
        change = float(changes.mean())
        if change <= -race.floor():
            race.take(point, changes, race.active)
            if change < -self.least:
                self.iterate += 1
                self.tried.clear()
            return change
        return max(change, 0.0)

    @property
    def least(self) -> float:
        """A fall of F up to which worths and losses stay up to date."""
        return 0.0

    # The moves.

    def add(self) -> Move:
        """Take the best step of coordinates at 0 that bisection finds."""
        if not self.room:
            return 0.0
        group = yield from self._new_step()
        if group is None or group.change >= 0:
            return 0.0
        return max(0.0, -(yield from self._try(group.applied(self.race.theta), group.changes)))

    def turn(self) -> Move:
        """Take the best step of the support to its other ends that bisection finds."""
        group = yield from self._best_step(self.support, LONG_STEPS.group_room * self.support.size)
        if group is None or group.change >= 0:
            return 0.0
        return max(0.0, -(yield from self._try(group.applied(self.race.theta), group.changes)))

    def exchange(self) -> Move:
        """Take the best step that bisection finds, and leave out what is missed least; only where there is no room."""
        if self.room:
            return 0.0
        group = yield from self._best_step(self.outside, 1)
        if group is None or group.change >= 0:
            return 0.0
        drops = self._cheapest()[: LONG_STEPS.drops_tried]
        for j in drops.tolist():
            if group.change + self.loss[j] < 0:
                point = group.applied(self.race.theta)
                point[j] = 0.0
                change = yield from self._try(point)
                if self.race.theta is point:
                    return -change
        return 0.0

    def _cheapest(self) -> Indices:
        """Return the coordinates that may be dropped, those that are missed least first."""
        support = self.support[~self.kept[self.support]]
        known = support[self.loss_measured[support] >= 0]
        return known[np.argsort(self.loss[known], kind="stable")]

    def drop(self) -> Move:
        """Measure what the coordinate that is missed least is worth, and leave it out if F does not rise."""
        support = self.support[~self.kept[self.support]]
        stale = support[self.loss_measured[support] != self.iterate]
        if not stale.size or self.dense:
            return 0.0
        j = int(stale[np.argmin(self.loss[stale])])
        point = self.race.theta.copy()
        point[j] = 0.0
        change = yield from self._try(point)
        self.loss[j], self.loss_measured[j] = change, self.iterate
        return max(0.0, -change)

    def _swaps(self) -> list[tuple[float, int, int]]:
        """Return the most promising exchanges: their falls, what goes, and what comes (in the flat table of worths)."""
        drops = self._cheapest()[: LONG_STEPS.best_drops]
        gain = np.where(self.race.theta == 0, self.worths.gain, 0.0).ravel()
        places = np.flatnonzero(gain > 0)
        places = places[np.argsort(-gain[places], kind="stable")][: LONG_STEPS.best_adds]
        promised = gain[places] - self.loss[drops][:, None]
        order = np.argsort(-promised, axis=None, kind="stable").tolist()
        return [
            (float(promised.flat[at]), int(drops[at // places.size]), int(places[at % places.size])) for at in order
        ]

    def swap(self) -> Move:
        """Try the exchange of two coordinates that promises most by what is known of each."""
        for _, i, add in self._swaps():
            if (i, add) not in self.tried:
                self.tried.add((i, add))
                point, (aim, j) = self.race.theta.copy(), divmod(add, self.context.d)
                point[i], point[j] = 0.0, self.targets[aim][j]
                iterate = self.iterate
                change = yield from self._try(point)
                if self.worths.measured[aim, j] < iterate:
                    self.worths.gain[aim, j] = self.loss[i] - change
                elif self.loss_measured[i] < iterate:  # of the two, what is out of date was wrong
                    self.loss[i] = change + self.worths.gain[aim, j]
                return max(0.0, -change)
        return 0.0

    def value(self) -> Move:
        """Change the value of one coordinate of the support: a longer step after a fall, a shorter one after a rise."""
        support = self.support
        if not support.size:
            return 0.0
        theta = self.race.theta
        long = support[np.abs(self.steps[support]) > LONG_STEPS.shortest * (self.high - self.low)[support]]
        if not long.size:
            return 0.0
        j = int(long[np.argmin(self.failures[long] + self.context.rng.uniform(long.size))])
        point = theta.copy()
        point[j] += self.steps[j]
        point = self.context.inside(point)
        change = (yield from self._try(point)) if point[j] != theta[j] else 0.0
        if change < 0:
            self.steps[j] *= LONG_STEPS.grow
            self.failures[j] = 0
        else:
            self.failures[j] += 1
            self.steps[j] *= -1.0 if self.failures[j] % 2 else -LONG_STEPS.shrink
        return max(0.0, -change)

    def drift(self) -> Move:
        """Change all values of the support at random; the spread follows the rule of one success in five."""
        support = self.support
        if not support.size:
            return 0.0
        point = self.race.theta.copy()
        range_ = (self.high - self.low)[support]
        point[support] += self.spread * range_ * self.context.rng.normal(support.size)
        point = self.context.inside(point)
        change = yield from self._try(point)
        self.spread *= LONG_STEPS.grow if change < 0 else LONG_STEPS.calm
        self.spread = max(self.spread, LONG_STEPS.shortest)
        return max(0.0, -change)

    def begin_again(self) -> Generator[Probes, Answers, None]:
        """Go to the point without any coordinate, except those that must be included."""
        yield from self.go_to(self.context.constraint.project(np.zeros(self.context.d)))

    def go_to(self, point: Array) -> Generator[Probes, Answers, None]:
        """Search on from another point, with all steps as at first."""
        yield from self.race.jump(point)
        self.iterate += 1
        self.tried.clear()
        self.steps = LONG_STEPS.first_step * (self.high - self.low)
        self.failures[:] = 0
        self.spread = LONG_STEPS.first_step
