"""Grouped slopes: find the largest slopes from fewer calls than coordinates, and minimise on what was found.

This is hard thresholding pursuit whose gradient is searched instead of measured. Signed groups of coordinates are
bisected, best first, on a sample of the components that grows until the slopes stand out of its standard error. What is
found joins the support, a few quasi-Newton steps minimise on it, and the model says what to drop.

Reference for the pursuit: Foucart, *Hard thresholding pursuit*, SIAM J. Numer. Anal. 2011.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.quasi_newton import QuasiNewton
from zerothresh.methods.auto.moves.best_first import BestFirstBisection, FoundSlope
from zerothresh.methods.auto.moves.component_sample import ComponentSample
from zerothresh.methods.auto.moves.coordinate_race import coordinate_race
from zerothresh.methods.auto.moves.first_fall import first_fall
from zerothresh.methods.auto.moves.judgement import judge
from zerothresh.methods.auto.moves.support_polish import SampledPoint, extended_model, polish, support_gradient
from zerothresh.methods.auto.settings import COORDINATE_RACE as RACE
from zerothresh.methods.auto.settings import DESCENT
from zerothresh.methods.auto.settings import GROUPED_SLOPES as SETTINGS
from zerothresh.methods.auto.settings import TINY
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class GroupedSlopes:
    """The arm for budgets that do not pay for a few gradients along all coordinates."""

    name: ClassVar[str] = "grouped slopes"
    decisive: ClassVar[bool] = False

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether a few gradients are too expensive, and bisection for k coordinates is cheaper than one."""
        d = context.free().size
        if context.constraint.groups is not None or d < 2:
            return False
        cheaper = context.k * self._splits(d) < SETTINGS.cheaper_share * d
        expensive = context.left < SETTINGS.gradients * context.n * (d + 2)
        return (cheaper and expensive) or context.left < DESCENT.min_gradients * (d + 2)

    @staticmethod
    def _splits(d: int) -> int:
        """Return how many halvings lead from d coordinates to one."""
        return math.ceil(math.log2(d + 1))

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return the calls in which a search for k coordinates should have found some."""
        return min(context.n, SETTINGS.sample) * context.k * self._splits(context.free().size)

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        return (yield from _Pursuit(context, diagnosis).search())


class _Pursuit:
    """The state of the search: the point, the sample on which it is judged, and the model on its support."""

    def __init__(self, context: Context, diagnosis: Diagnosis) -> None:
        self.context, self.diagnosis = context, diagnosis
        n = context.n
        self.free = context.free()
        self.sample = ComponentSample(
            context, context.rng.subset(n, n), min(n, SETTINGS.sample), diagnosis.noise, diagnosis.random
        )
        self.at = SampledPoint(context.theta, np.empty(0))
        self.best = self.at  # on the whole sample
        self.model: QuasiNewton | None = None
        self.gradient: Array | None = None  # at the point, on the coordinates of the model
        self.curvature = 0.0  # along a coordinate; 0: not known yet
        self.scale = 1.0  # of the steps of groups
        self.heterogeneous = False  # whether a slope takes so many components that groups are of no use
        self.stalls = 0
        self.judged_at = context.used

    def _search_values(self, groups: int) -> int:
        """Return about how many values a search for one coordinate takes."""
        return groups + 2 * math.ceil(math.log2(self.free.size + 1))

    def search(self) -> Generator[Probes, Answers, Ended]:
        """Search, extend the support, polish, drop, and begin again with other groups."""
        if not (yield from self._choose_sample()):
            yield from first_fall(self.sample, self.diagnosis)
            return Ended("The budget is too small for more than one step.")
        while True:
            if self.context.left < self.sample.size:
                return Ended("The budget is spent.")
            found = yield from self._find()
            if not found:
                return Ended("The values do not change with x.")
            if not self._stand_out(found):
                if (yield from self._grow()):
                    continue
                if self.sample.whole:
                    yield from self._stalled()
                    continue
            better = yield from self._extend(found)
            if better is None:
                if not (yield from self._grow()):
                    yield from self._stalled()
                continue
            self.stalls, self.at = 0, better
            yield from self._report()

    def _evaluate(self) -> Generator[Probes, Answers, None]:
        """Ask for the sample's values at the point."""
        if self.at.theta is self.context.theta0:
            values = yield from self.context.starts(self.sample.components)
        else:
            values = (yield from self.sample.values([self.at.theta]))[0]
        self.at = SampledPoint(self.at.theta, values)
        if self.sample.whole:
            self.best = self.at

    # Searching.

    def _find(self) -> Generator[Probes, Answers, list[FoundSlope]]:
        """Return the coordinates off the support that the next bisection finds; none if F does not change."""
        support, sample = self._support(self.at.theta), self.sample
        free = np.setdiff1d(self.free, support, assume_unique=True)
        values = self.context.left / sample.size
        slots = max(self.context.k - support.size, 1)
        if self.heterogeneous and values > RACE.least:
            calls = RACE.share * self.context.left
            found = yield from coordinate_race(sample, self.at, free, self.diagnosis.mu, calls, self._finalists())
            return found[: max(1, min(slots, len(found)) if slots > 1 else round(RACE.taken * self.context.k))]
        if values < 2 * self._search_values(min(slots, 4)) and sample.whole:  # too few to single one out
            some = free[self.context.rng.subset(free.size, min(slots, free.size))]
            bisection = BestFirstBisection(sample, self.diagnosis, self.at, some, self.scale)
            yield from bisection.begin(max(1, int(values / 2) - 1), check=False)
            return bisection.coarse()
        count = max(1, min(round(SETTINGS.groups * self.context.k), int(values / 8)))
        bisection = BestFirstBisection(sample, self.diagnosis, self.at, free, self.scale)
        yield from bisection.begin(count)
        return (yield from bisection.find(SETTINGS.taken if sample.whole else 1, int(values / 2)))

    def _finalists(self) -> int:
        return max(1, round(RACE.finalists * self.context.k))

    def _stand_out(self, found: list[FoundSlope]) -> bool:
        return all(abs(slope.slope) > SETTINGS.stand_out * slope.error for slope in found)

    def _support(self, theta: Array) -> Indices:
        return np.union1d(np.flatnonzero(theta), self.context.constraint.include)

    # The sample.

    def _choose_sample(self) -> Generator[Probes, Answers, bool]:
        """Choose how many components stand for F; False if the budget is too small to find a coordinate with them."""
        sample, context = self.sample, self.context
        if not sample.whole:
            sample.size = min(sample.size, int(context.left / 8))
            if sample.size < 2:
                return False
            yield from self._evaluate()
            bisection = BestFirstBisection(sample, self.diagnosis, self.at, self.free)
            yield from bisection.begin(SETTINGS.first_groups, check=False)
            signal = bisection.signal()
            needed = SETTINGS.group_signal / signal if signal > 0 else math.inf
            affordable = context.left / (2 * self._search_values(1))
            if needed > affordable and context.left < SETTINGS.sure_values * context.n:
                return False
            sample.size = max(sample.size, int(min(needed, context.n)))
            if sample.size > context.n / 2:
                sample.size, self.heterogeneous = context.n, not self.diagnosis.random
        yield from self._evaluate()
        return True

    def _grow(self) -> Generator[Probes, Answers, bool]:
        """Take more components, if the budget pays for a search with them; False if it does not."""
        sample, context = self.sample, self.context
        if sample.whole:
            return False
        values = self._search_values(1) + 4
        size = min(context.n, SETTINGS.growth * sample.size, int(SETTINGS.judge_share * context.left / values))
        if size < min(context.n, 2 * sample.size):
            return False
        yield from self._report()
        sample.size = size
        theta = self.at.theta
        self.at = SampledPoint(context.theta, self.at.values)
        yield from self._evaluate()
        if theta is not context.theta:
            values = (yield from sample.values([theta]))[0]
            if float((values - self.at.values).mean()) < 0:
                self.at = SampledPoint(theta, values)
        self.gradient, self.stalls = None, 0
        return True

    def _report(self) -> Generator[Probes, Answers, None]:
        """Move the run to the point if it is known to be better than where the run stands."""
        context, at = self.context, self.at
        if self.sample.whole:
            if at.mean < self.best.mean or context.fun is None:
                self.best = at
                context.move(at.theta, at.mean)
            return
        if at.theta is context.theta:
            return
        spent = context.used - self.judged_at
        yield from judge(self.sample, at, spent)
        self.judged_at = context.used

    # Moving.

    def _extend(self, found: list[FoundSlope]) -> Generator[Probes, Answers, SampledPoint | None]:
        """Return a better point whose support contains what was found, or a part of it; None if there is none."""
        at, sample, h = self.at, self.sample, self.diagnosis.mu
        new = np.array([slope.coordinate for slope in found])
        S = self._support(at.theta)
        most = max(1, int(SETTINGS.polish_calls * self.context.left / sample.size))
        if S.size > most:  # the largest entries, as many as the budget pays for
            S = np.sort(S[np.argsort(-np.abs(at.theta[S]), kind="stable")[:most]])
        C = np.union1d(S, new)
        g = np.zeros(C.size)
        g[np.searchsorted(C, new)] = [slope.slope for slope in found]
        if S.size:
            if self.gradient is None or self.model is None or not np.array_equal(self.model.coordinates, S):
                g[np.searchsorted(C, S)] = yield from support_gradient(sample, at, S, h)
            else:
                g[np.searchsorted(C, S)] = self.gradient
        if not self.curvature:
            yield from self._measure_curvature(C, g)
        model = extended_model(self.model, C, self.curvature)
        moved, g = yield from polish(sample, at, g, model, h, SETTINGS.polish_steps)
        if self._support(moved.theta).size > self.context.k:
            moved, g, model = yield from self._drop(moved, g, model)
        if not float((moved.values - at.values).mean()) < -sample.noise / math.sqrt(sample.size):
            return None
        self.model, self.gradient, self.curvature = model, g, model.mean_curvature
        return moved

    def _measure_curvature(self, C: Indices, g: Array) -> Generator[Probes, Answers, None]:
        """Measure the curvature along the slopes that were found, with one value."""
        at, length = self.at, self.diagnosis.length
        norm = max(float(np.linalg.norm(g)), TINY)
        bend = self.diagnosis.curvature if self.diagnosis.curvature > 0 else norm / length
        direction = np.zeros(at.theta.size)
        direction[C] = -SETTINGS.first_step / bend * g
        theta = self.context.inside(at.theta + direction)
        step = theta - at.theta
        change = float(((yield from self.sample.values([theta]))[0] - at.values).mean())
        second = 2 * (change - float(g @ step[C])) / max(float(step @ step), TINY)
        self.curvature = second if second > 0 else bend

    def _drop(
        self, at: SampledPoint, g: Array, model: QuasiNewton
    ) -> Generator[Probes, Answers, tuple[SampledPoint, Array, QuasiNewton]]:
        """Return the model's best point with at most k non-zeros, polished on its support."""
        C, context = model.coordinates, self.context
        outside = np.setdiff1d(self._support(at.theta), C).size  # entries that are too many to polish
        theta = model.sparse_minimiser(at.theta, g, C, context.k - outside, context.constraint)
        keep = np.ones(context.d, bool)
        keep[C] = False
        theta = context.H(np.where(keep, at.theta, theta))
        values = (yield from self.sample.values([theta]))[0]
        S = np.intersect1d(self._support(theta), C)
        kept = SampledPoint(theta, values)
        smaller = extended_model(model, S, model.mean_curvature)
        slopes = yield from support_gradient(self.sample, kept, S, self.diagnosis.mu)
        kept, slopes = yield from polish(
            self.sample, kept, slopes, smaller, self.diagnosis.mu, SETTINGS.polish_steps - 1
        )
        return kept, slopes, smaller

    def _stalled(self) -> Generator[Probes, Answers, None]:
        """After some searches without a fall, begin again from the best point with half of its support."""
        self.stalls += 1
        if self.stalls < SETTINGS.stalls:
            return
        self.stalls = 0
        context = self.context
        start = self.best.theta if self.sample.whole else context.theta
        S = np.setdiff1d(np.flatnonzero(start), context.constraint.include)
        theta = start.copy()
        if S.size > 1:
            theta[S[context.rng.subset(S.size, S.size // 2)]] = 0.0
        self.at = SampledPoint(context.H(theta), np.empty(0))
        self.at = SampledPoint(self.at.theta, (yield from self.sample.values([self.at.theta]))[0])
        self.gradient = None
