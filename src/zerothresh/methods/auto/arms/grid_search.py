"""Grid search: coordinates with discrete values; swaps, neighbouring and distant values, judged by values of F."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.grid_values import GridSet
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.findings import Diagnosis
from zerothresh.methods.auto.settings.constraint_settings import FEASIBLE_STEPS, GRID_SEARCH
from zerothresh.methods.auto.settings.support_search_settings import RANDOM_STEPS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class GridSearch:
    """A local search among the points of a grid that never asks for a point twice.

    First every coordinate is tried alone, at a few of its values, and the best of them join one after the other. Then
    members move to other values, at distances that follow their successes, and are swapped for others, first for those
    that were worth most when they were last tried. Where nothing near is left that helps, a part of the support is
    drawn anew. Once all points of the grid are known, the best of them is optimal.
    """

    name: ClassVar[str] = "grid search"
    decisive: ClassVar[bool] = False

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether coordinates have discrete values."""
        further = context.constraint.further
        return further is not None and further.discrete

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return the calls of one value of F for each coordinate."""
        return context.n * context.d

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        """Search until all points are known, or the budget is spent or has been raised."""
        further = context.constraint.further
        assert isinstance(further, GridSet)
        walk = _Walk(context, further, diagnosis)
        return (yield from walk.run())


class _Walk:
    """A search at work: where it stands, the best point, what is known, and what coordinates are worth."""

    def __init__(self, context: Context, grid: GridSet, diagnosis: Diagnosis) -> None:
        self.context, self.grid = context, grid
        self.margin = RANDOM_STEPS.noise_factor * diagnosis.noise / np.sqrt(context.n) if diagnosis.random else 0.0
        self.random = diagnosis.random
        self.seen = dict[bytes, float]()
        self.free = np.array([j for j in range(context.d) if grid.values_of(j).size > 1], np.int64)
        self.worth = np.full(context.d, -np.inf)  # by how much F fell when a coordinate was last given a value
        self.value = np.zeros(context.d)  # that value
        self.reach = np.array([max(1.0, grid.values_of(j).size / GRID_SEARCH.first_reach) for j in range(context.d)])
        self.theta, self.F = context.theta, math.inf
        self.best, self.best_F = context.theta, math.inf
        self.points = grid.size

    def run(self) -> Generator[Probes, Answers, Ended]:
        context = self.context
        budget = context.left + context.used
        if context.theta is context.theta0:
            self.F = float((yield from context.starts(context.everything)).mean())
        else:
            self.F = float((yield from context.values([self.theta])).mean())
        self.seen[self.theta.tobytes()] = self.best_F = self.F
        context.move(self.theta, self.F)
        if self.free.size * context.n <= GRID_SEARCH.table_share * context.left:
            yield from self._table()
        failures = 0
        while context.left + context.used <= budget:
            if len(self.seen) >= self.points and not self.random:
                return Ended("All points of the grid are known.", certified=True)
            trial, j = self._next()
            value = float((yield from context.values([trial])).mean())
            failures = 0 if self._enter(trial, value, j) else failures + 1
            if failures > FEASIBLE_STEPS.patience * context.k:
                failures = 0
                yield from self._begin_again()
        return Ended("The budget was raised.")

    def _next(self) -> tuple[Array, int]:
        """Return a point that is not known: beside the present one, or else elsewhere."""
        for _ in range(FEASIBLE_STEPS.tries):
            trial, j = self._proposal()
            if trial is not None and self._new(trial):
                return trial, j
        for _ in range(FEASIBLE_STEPS.tries):
            drawn = self._elsewhere()
            if self._new(drawn):
                return drawn, -1
        for point in self.grid.listed(GRID_SEARCH.most_listed):
            if self._new(point):
                return point, -1
        return drawn, -1

    def _new(self, point: Array) -> bool:
        return self.random or point.tobytes() not in self.seen

    def _enter(self, trial: Array, value: float, j: int) -> bool:
        """Keep a value, and go to the point if it is lower than where the search stands; whether it is."""
        if len(self.seen) < FEASIBLE_STEPS.most_kept:
            self.seen[trial.tobytes()] = value
        gain = self.F - value
        if j >= 0:
            self.worth[j] = gain
            if trial[j]:
                self.value[j] = trial[j]
            grow = RANDOM_STEPS.growth if gain > 0 else RANDOM_STEPS.growth**-RANDOM_STEPS.failures
            self.reach[j] = min(max(self.reach[j] * grow, 1.0), self.grid.values_of(j).size)
        lower = value < self.F - self.margin
        if lower:
            self.theta, self.F = trial, value
        if value < self.best_F - self.margin:
            self.best, self.best_F = trial, value
            self.context.move(trial.copy(), value)
        return lower

    def _table(self) -> Generator[Probes, Answers, None]:
        """Try each coordinate alone at its lowest and its highest value, and let the best join one after the other."""
        points, who = [], []
        for j in self.free.tolist():
            values = self.grid.values_of(j)
            for value in {float(values[0]), float(values[-1])} - {float(self.theta[j])}:
                trial = self.theta.copy()
                trial[j] = value
                if self.grid.holds(trial) and trial.tobytes() not in self.seen:
                    points.append(trial)
                    who.append(j)
        began, theta = self.F, self.theta
        gains: list[tuple[float, int, float]] = []
        for begin in range(0, len(points), GRID_SEARCH.chunk):
            part, names = points[begin : begin + GRID_SEARCH.chunk], who[begin : begin + GRID_SEARCH.chunk]
            values = (yield from self.context.values(part)).mean(axis=1)
            for trial, j, value in zip(part, names, values.tolist(), strict=True):
                self._enter(trial, value, j)
                gains.append((began - value, j, float(trial[j])))
        for gain, j, x in sorted(gains, reverse=True):
            if gain > self.worth[j] or self.worth[j] == gain:
                self.worth[j], self.value[j] = gain, x
        self.theta, self.F = (self.best, self.best_F) if self.best_F < began else (theta, began)
        for gain, j, x in sorted(gains, reverse=True)[: GRID_SEARCH.joins * self.context.k]:
            trial = self.theta.copy()
            trial[j] = x
            if gain > 0 and self.grid.holds(trial) and trial.tobytes() not in self.seen:
                value = float((yield from self.context.values([trial])).mean())
                self._enter(trial, value, j)

    def _proposal(self) -> tuple[Array | None, int]:
        """Return a point beside the present one, and the coordinate that gets another value."""
        rng, places = self.context.rng, self.grid.places
        taken = places.taken(self.theta)
        members = np.intersect1d(places.members(taken), self.free)
        kind = float(rng.uniform(1)[0])
        trial = self.theta.copy()
        if kind < FEASIBLE_STEPS.transfer_share and members.size:
            j = int(members[rng.subset(members.size, 1)[0]])
            trial[j] = self._other_value(j)
            if float(rng.uniform(1)[0]) < GRID_SEARCH.second_share:
                other = int(members[rng.subset(members.size, 1)[0]])
                trial[other] = self._other_value(other)
            return (trial if self.grid.holds(trial) else None), j
        outside = np.setdiff1d(self.free, places.members(taken))
        if not outside.size:
            return None, -1
        j = self._promising(outside) if float(rng.uniform(1)[0]) < 0.5 else int(outside[rng.subset(outside.size, 1)[0]])
        leaving = np.setdiff1d(taken, places.forced)
        if leaving.size and (taken.size >= places.k or float(rng.uniform(1)[0]) < GRID_SEARCH.leave_share):
            gone = leaving[rng.subset(leaving.size, 1)]
            had = self.theta[places.members(gone)]
            trial[places.members(gone)] = 0.0
        else:
            had = np.zeros(1)
        values = self.grid.values_of(j)
        choices = [self.value[j], float(values[np.argmin(np.abs(values - had[0]))]), self._other_value(j)]
        choices = [value for value in choices if value] or [float(values[np.argmax(np.abs(values))])]
        trial[j] = choices[int(rng.integers(len(choices))[0])]
        return (trial if self.grid.holds(trial) else None), j

    def _promising(self, outside: Indices) -> int:
        """Return a coordinate that was worth much when it was last tried: the best of a few at random."""
        drawn = outside[self.context.rng.subset(outside.size, min(GRID_SEARCH.tournament, outside.size))]
        return int(drawn[np.argmax(self.worth[drawn])])

    def _other_value(self, j: int) -> float:
        """Return another value of a coordinate, near the present one up to its reach."""
        values, rng = self.grid.values_of(j), self.context.rng
        here = int(np.searchsorted(values, self.theta[j]).clip(0, values.size - 1))
        far = 1 + int(rng.integers(max(1, round(float(self.reach[j]))))[0])
        sign = 1 if float(rng.uniform(1)[0]) < 0.5 else -1
        place = here + sign * far
        if not 0 <= place < values.size:
            place = here - sign * far
        return float(values[min(max(place, 0), values.size - 1)])

    def _elsewhere(self) -> Array:
        """Return the best point with a part of its support drawn anew."""
        rng, places = self.context.rng, self.grid.places
        trial, taken = self.best.copy(), places.taken(self.best)
        leaving = np.setdiff1d(taken, places.forced)
        count = min(leaving.size, 1 + int(rng.integers(max(1, math.ceil(FEASIBLE_STEPS.kick_share * places.k)))[0]))
        if count:
            trial[places.members(leaving[rng.subset(leaving.size, count)])] = 0.0
        room = places.k - places.taken(trial).size
        outside = np.setdiff1d(places.unit[self.free], places.taken(trial))
        for unit in outside[rng.subset(outside.size, min(room, outside.size))].tolist() if room > 0 else []:
            for j in np.intersect1d(places.members(np.array([unit])), self.free).tolist():
                values = self.grid.values_of(j)
                trial[j] = values[int(rng.integers(values.size)[0])]
        return trial

    def _begin_again(self) -> Generator[Probes, Answers, None]:
        """Go on from a changed support, even if F is higher there."""
        trial = self._elsewhere()
        known = self.seen.get(trial.tobytes())
        value = float((yield from self.context.values([trial])).mean()) if known is None or self.random else known
        self._enter(trial, value, -1)
        self.theta, self.F = trial, value
