"""Feasible descent: steps within a constraint on the support, and exchanges of its members by a model or by value."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.feasible_set import FeasibleSet
from zerothresh.constraint.shares import ShareSet
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.findings import Diagnosis
from zerothresh.methods.auto.moves.anchored_model import AnchoredModel
from zerothresh.methods.auto.moves.feasible_probes import support_of
from zerothresh.methods.auto.moves.share_exchanges import best_on, ranked
from zerothresh.methods.auto.moves.tangent_descent import TangentDescent
from zerothresh.methods.auto.moves.value_swaps import swap_by_value
from zerothresh.methods.auto.settings.constraint_settings import FEASIBLE_DESCENT
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class FeasibleDescent:
    """Descent within a constraint beyond bounds: a sum, limits that hold once chosen, or a convex set.

    On the support, differences are taken along feasible displacements, and the quadratic model that they give is
    minimised within the set. For sums, a model of all coordinates then ranks all exchanges of members; elsewhere, and
    where every query has to be feasible, swaps are judged by their values.
    """

    name: ClassVar[str] = "feasible descent"
    decisive: ClassVar[bool] = False

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether there is a constraint beyond bounds, without groups and discrete values."""
        further = context.constraint.further
        return further is not None and not further.discrete and further.places.single

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return the calls of one step on the support, with all second differences."""
        return context.n * (2 * context.k + context.k * (context.k - 1) // 2 + 2)

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        """Descend, exchange, and begin again from changed supports."""
        search = _Search(context, diagnosis)
        return (yield from search.run())


class _Search:
    """A search at work: the best point, and the point of the present descent."""

    def __init__(self, context: Context, diagnosis: Diagnosis) -> None:
        further = context.constraint.further
        assert further is not None
        self.context, self.feasible = context, further
        noise = diagnosis.noise / np.sqrt(context.n) if diagnosis.random else 0.0
        self.descent = TangentDescent(context, noise)
        self.theta, self.F = context.theta, np.inf
        self.worths: Array = np.full(context.d, -np.inf)  # of coordinates that joined in swaps
        self.size = self.descent.size(self.theta)

    def run(self) -> Generator[Probes, Answers, Ended]:
        context, settings = self.context, FEASIBLE_DESCENT
        if context.theta is context.theta0:
            self.F = float((yield from context.starts(context.everything)).mean())
        else:
            self.F = float((yield from context.values([self.theta])).mean())
        context.move(self.theta, self.F)
        yield from self._descend(self.theta, self.F, settings.most_iterations)
        while True:
            gained = False
            if self._models():
                gained = yield from self._exchange_by_model()
            if not gained:
                gained = yield from swap_by_value(self.descent, self.theta, self.F, self.size, self._take, self.worths)
            while not gained:
                start = self._kicked(self.feasible, np.flatnonzero(self.feasible.high > self.feasible.low))
                if start is self.theta:
                    return Ended("There is no other support to try.")
                value = float((yield from self.descent.values([start]))[0])
                gained = yield from self._descend(start, value, settings.most_iterations)
                gained = self._joined() or gained

    def _models(self) -> bool:
        """Whether a model of all coordinates may be asked for and paid for."""
        if not isinstance(self.feasible, ShareSet) or self.context.constraint.strict or self.descent.noise:
            return False
        free = int((self.feasible.high > self.feasible.low).sum())
        return 2 * free * self.context.n <= FEASIBLE_DESCENT.model_share * self.context.left

    def _take(self, theta: Array, F: float) -> bool:
        """Move to a point if it is better."""
        if not self.F - self.descent.floor(self.F) > F:
            return False
        self.theta, self.F = theta, F
        self.context.move(theta.copy(), F)
        return True

    def _least_gain(self) -> float:
        """Return the fall of F on the model that counts: more than rounding, and than a trifle of the fall so far."""
        return self.descent.floor(self.F) + FEASIBLE_DESCENT.same * max(self.context.fall, 0.0)

    def _joined(self) -> bool:
        """Go on from the best point of the run, if another arm has found a better one."""
        run = self.context.parent
        if run is None or run.fun is None or not run.fun < self.F - self.descent.floor(self.F):
            return False
        self.theta, self.F = run.theta, run.fun
        return True

    def _descend(self, theta: Array, F: float, iterations: int) -> Generator[Probes, Answers, bool]:
        """Descend from a point, and move to where it ends if that is better."""
        point, value = yield from self.descent.descend(theta, F, iterations, self.size)
        return self._take(point, value)

    def _exchange_by_model(self) -> Generator[Probes, Answers, bool]:
        """Search the supports by the model around the present point, until it is wrong or searched out."""
        settings, feasible = FEASIBLE_DESCENT, self.feasible
        assert isinstance(feasible, ShareSet)
        began = self.F
        model = AnchoredModel(self.descent, feasible, self.theta, self.F, settings.first_step * self.size)
        yield from model.measure()
        x, best = self.theta, self.F  # the point of the search on the model, and the best value that it promises
        kicks = 0
        while kicks < settings.most_kicks:
            end, promised = yield from self._walk(model, feasible, x)
            if end is None:
                return began > self.F
            x = end
            if promised < best - self._least_gain():
                kicks = 0
                value = float((yield from self.descent.values([x]))[0])
                predicted, fall = self.F - promised, self.F - value
                self._take(x, value)
                if abs(fall - predicted) > settings.trusted * predicted:  # F is not quadratic: learn anew from here
                    yield from self._descend(x, value, settings.most_iterations)
                    return began - self.descent.floor(began) > self.F
                best = min(best, self.F)
            kicks += 1
            x = self._kicked(feasible, model.free)
        yield from self._descend(self.theta, self.F, settings.trial_iterations)
        self.context.remark(f"No exchange and no change of several coordinates helps on the model: {kicks} were tried.")
        return False

    def _walk(
        self, model: AnchoredModel, feasible: ShareSet, x: Array
    ) -> Generator[Probes, Answers, tuple[Array | None, float]]:
        """Exchange members on the model until no exchange helps; None if entries cannot be paid for."""
        while True:
            S = support_of(feasible, x)
            if not (yield from self._learn(model, S, S)):
                return None, np.inf
            on = best_on(model, feasible, x, S)
            x = x if on is None else on.point
            rows = yield from self._rows(model, x, S)
            if rows is None:
                return None, np.inf
            better = ranked(model, feasible, x, S, rows, self._least_gain())
            if not better:
                return x, model.value(x)
            x = better[0].point

    def _learn(self, model: AnchoredModel, rows: Indices, members: Indices) -> Generator[Probes, Answers, bool]:
        """Measure what is missing of rows and members, with the members of the anchor; whether it could be paid for."""
        members = np.union1d(members, model.support)
        pairs = model.missing(rows, members)
        if len(pairs) * self.context.n > self.context.left:
            return False
        yield from model.learn(pairs)
        return True

    def _rows(self, model: AnchoredModel, x: Array, S: Indices) -> Generator[Probes, Answers, Indices | None]:
        """Return the coordinates whose exchanges can be ranked: all, or the steepest if calls are few."""
        members = np.union1d(S, model.support)
        rows = np.union1d(model.free, S)
        count = np.array([int(np.isnan(model.block(rows[i : i + 1], members)).sum()) for i in range(rows.size)])
        affordable = FEASIBLE_DESCENT.column_share * self.context.left / self.context.n
        if count.sum() > affordable:  # those already known, and the steepest others by slopes at the anchor
            score = model.g[rows] - model.g[members].min(initial=0.0)
            score[count == 0] = -np.inf
            order = np.argsort(score, kind="stable")
            total = np.cumsum(count[order])
            most = max(int((total <= affordable).sum()), int((count == 0).sum()) + FEASIBLE_DESCENT.least_candidates)
            rows = np.union1d(rows[order[:most]], S)
        return rows if (yield from self._learn(model, rows, S)) else None

    def _kicked(self, feasible: FeasibleSet, free: Indices) -> Array:
        """Return the best point with some random members replaced by others; itself if there are none."""
        rng, S = self.context.rng, support_of(feasible, self.theta)
        leaving = np.setdiff1d(S, feasible.places.forced)
        outside = np.setdiff1d(free, S)
        most = max(1, int(FEASIBLE_DESCENT.kick_share * S.size))
        count = min(1 + int(rng.integers(most)[0]), leaving.size, outside.size)
        gone = leaving[rng.subset(leaving.size, count)] if count else leaving[:0]
        new = outside[rng.subset(outside.size, count)] if count else outside[:0]
        support = np.union1d(np.setdiff1d(S, gone), new)
        point = self.theta.copy()
        point[new] = point[gone]
        point[gone] = 0.0
        projected = feasible.project_on(point, support) if count else None
        if projected is None or not feasible.holds(projected):
            return feasible.project(point) if count else self.theta
        return projected
