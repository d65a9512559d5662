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

from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.moves.best_first import BestFirstBisection, FoundSlope
from zerothresh.methods.auto.moves.component_sample import ComponentSample
from zerothresh.methods.auto.moves.coordinate_race import coordinate_race
from zerothresh.methods.auto.moves.distilled_step import affords_all, distilled_step
from zerothresh.methods.auto.moves.judgement import judge
from zerothresh.methods.auto.moves.sign_row_descent import SignRowDescent
from zerothresh.methods.auto.moves.support_extension import SupportExtension, support_of
from zerothresh.methods.auto.moves.support_polish import SampledPoint
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.grouped_slopes_settings import COORDINATE_RACE as RACE
from zerothresh.methods.auto.settings.grouped_slopes_settings import GROUPED_SLOPES as SETTINGS
from zerothresh.methods.auto.settings.grouped_slopes_settings import SIGN_ROWS as ROWS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class GroupedSlopes:
    """The arm for budgets that do not pay for a few gradients along all coordinates."""

    name: ClassVar[str] = "grouped slopes"
    decisive: ClassVar[bool] = False

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether the budget does not pay for one gradient of F, or not for a few and bisection is cheaper than one."""
        d = context.free().size
        if context.constraint.groups is not None or d <= context.k:
            return False
        gradients = context.left / (context.n * (d + 2))
        cheaper = context.k * self._splits(d) < SETTINGS.cheaper_share * d
        return gradients < (SETTINGS.gradients if cheaper else DESCENT.min_gradients)

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
        self.context, self.diagnosis, self.free, n = context, diagnosis, context.free(), context.n
        self.sample = ComponentSample(
            context, context.rng.subset(n, n), min(n, SETTINGS.sample), diagnosis.noise, diagnosis.random
        )
        self.at = SampledPoint(context.theta, np.empty(0))
        self.best = self.at  # on the whole sample
        self.extension = SupportExtension(self.sample, diagnosis)
        self.flat = 0  # searches in a row that found no slope at all
        self.scale = 1.0  # of the steps of groups
        self.heterogeneous = False  # whether a slope takes so many components that groups are of no use
        self.stalls = 0
        self.judged_at = context.used

    def _search_values(self, groups: int) -> int:
        """Return about how many values a search for one coordinate takes."""
        return groups + round(SETTINGS.splits * math.ceil(math.log2(self.free.size + 1)))

    def search(self) -> Generator[Probes, Answers, Ended]:
        """Search, extend the support, polish, drop, and begin again with other groups."""
        if not (yield from self._choose_sample()):
            context = self.context
            yield from distilled_step(context, self.diagnosis, self.sample.order, context.left)
            return Ended("The budget is too small to tell coordinates from one another for certain.")
        while True:
            if self.context.left < self.sample.size:
                return Ended("The budget is spent.")
            found = yield from self._find()
            if not any(slope.slope for slope in found):
                self.flat, self.scale = self.flat + 1, SETTINGS.lengthen * self.scale
                if self.flat > SETTINGS.flat_searches:
                    return Ended("The values do not change with x.")
                continue
            self.flat = 0
            if self.diagnosis.random and not self._stand_out(found, ROWS.stand_out):
                self.context.remark("Slopes do not stand out of the noise; all coordinates move together instead.")
                yield from SignRowDescent(self.context, self.diagnosis).search()
                return Ended("The budget is spent.")
            if not self._stand_out(found):
                if (yield from self._grow()):
                    continue
                if self.sample.whole:
                    yield from self._stalled()
                    continue
            better = yield from self.extension.extend(self.at, found)
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
            if self.context.fun is None and self.at.theta is self.context.theta:
                self.context.move(self.at.theta, self.at.mean)  # or the lowest random value seen would be the result

    # Searching.

    def _find(self) -> Generator[Probes, Answers, list[FoundSlope]]:
        """Return the coordinates off the support that the next bisection finds; none if F does not change."""
        support, sample = support_of(self.context, self.at.theta), self.sample
        free = np.setdiff1d(self.free, support, assume_unique=True)
        values = self.context.left / sample.size
        slots = max(self.context.k - support.size, 1)
        if self.heterogeneous and values > RACE.least:
            calls = RACE.share * self.context.left
            found = yield from coordinate_race(sample, self.at, free, self.diagnosis.mu, calls, self._finalists())
            return found[: max(1, min(slots, len(found)) if slots > 1 else round(RACE.taken * self.context.k))]
        if sample.whole and values < SETTINGS.searches * self._search_values(min(slots, SETTINGS.first_groups)):
            some = free[self.context.rng.subset(free.size, min(slots, free.size))]
            bisection = BestFirstBisection(sample, self.diagnosis, self.at, some, self.scale)
            yield from bisection.begin(max(1, int(SETTINGS.coarse_share * values) - 1), check=False)
            return bisection.coarse()
        count = max(1, min(round(SETTINGS.groups * self.context.k), int(SETTINGS.group_share * values)))
        for _ in range(SETTINGS.shrinkings):
            bisection = BestFirstBisection(sample, self.diagnosis, self.at, free, self.scale)
            if (yield from bisection.begin(count)) < SETTINGS.additivity or self.diagnosis.random:
                break
            self.scale *= SETTINGS.shrink  # curvature spoils the slopes of large groups
        return (yield from bisection.find(SETTINGS.taken if sample.whole else 1, int(SETTINGS.search_share * values)))

    def _scarce(self) -> bool:
        """Whether the calls do not pay for a race of coordinates whose finalists are asked on all components."""
        return self.context.left < RACE.least * self.context.n

    def _finalists(self) -> int:
        return max(1, round(RACE.finalists * self.context.k))

    def _stand_out(self, found: list[FoundSlope], errors: float = SETTINGS.stand_out) -> bool:
        return all(abs(slope.slope) > errors * slope.error for slope in found)

    # The sample.

    def _choose_sample(self) -> Generator[Probes, Answers, bool]:
        """Choose how many components stand for F; False if the budget is too small to find a coordinate with them."""
        sample, context = self.sample, self.context
        if not sample.whole:
            sample.size = min(sample.size, int(SETTINGS.first_share * context.left))
            probe = sample.size * (1 + SETTINGS.first_groups) > SETTINGS.probe_share * context.left
            if sample.size < 2 or (probe and self._scarce() and affords_all(context, context.left)):
                return False
            yield from self._evaluate()
            bisection = BestFirstBisection(sample, self.diagnosis, self.at, self.free)
            yield from bisection.begin(SETTINGS.first_groups, check=False)
            signal = bisection.signal()
            needed = SETTINGS.group_signal / signal if signal > 0 else math.inf
            affordable = context.left / (SETTINGS.searches * self._search_values(1))
            if needed > affordable and self._scarce():
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
        values = self._search_values(SETTINGS.first_groups)
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
        self.extension.gradient, self.stalls = None, 0
        return True

    def _report(self) -> Generator[Probes, Answers, None]:
        """Move the run to the point if it is known to be better than where the run stands."""
        context, at = self.context, self.at
        if self.sample.whole:
            if at.mean < self.best.mean and (not self.sample.random or (yield from self._confirmed())):
                self.best = at
                context.move(at.theta, at.mean)
            return
        if at.theta is context.theta:
            return
        spent = context.used - self.judged_at
        yield from judge(self.sample, at, spent)
        self.judged_at = context.used

    def _confirmed(self) -> Generator[Probes, Answers, bool]:
        """Whether the point is better than the best one by repeated values: the lowest of many random ones is not."""
        of = np.tile(self.sample.components, ROWS.repeats)
        best, at = (yield from self.context.values([self.best.theta, self.at.theta], of)).mean(axis=1).tolist()
        return bool(best - at > self.sample.floor / math.sqrt(ROWS.repeats))

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
        self.extension.gradient = None
