"""Gauss-Newton within a sum: outputs are linearised, and the support and the shares are chosen on the linear model."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.shares import ShareSet
from zerothresh.losses import Itself
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.linearised_shares import LinearisedShares
from zerothresh.methods.auto.moves.feasible_probes import pivot_of, support_of, typical_size
from zerothresh.methods.auto.moves.share_exchanges import best_on, ranked
from zerothresh.methods.auto.settings.constraint_settings import FEASIBLE_GAUSS_NEWTON
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class FeasibleGaussNewton:
    """Sparse Gauss-Newton where a sum is limited or fixed, as that of shares or of a budget.

    One call per coordinate gives the derivatives of all outputs, along displacements that keep the sum. The linear
    model then tells the best shares on every support without calls, so that members are exchanged on it. Each call at
    a new point corrects the derivatives along the step (Broyden); they are measured again on the support when the
    model was wrong, and on all coordinates when it promises nothing more.
    """

    name: ClassVar[str] = "feasible gauss-newton"
    decisive: ClassVar[bool] = True

    def fits(self, context: Context, diagnosis: Diagnosis | None) -> bool:
        """Whether it takes the constraint, and the budget pays for the derivatives."""
        return self.takes(context) and self.forecast(context, diagnosis) <= context.left

    def takes(self, context: Context) -> bool:
        """Whether calls return residuals, and a sum is the only further constraint; strict queries have no room."""
        further = context.constraint.further
        if not context.has_outputs or isinstance(context.loss, Itself) or context.constraint.strict:
            return False
        return isinstance(further, ShareSet) and further.places.single and context.free().size > 0

    def forecast(self, context: Context, diagnosis: Diagnosis | None) -> int:
        """Return the calls of all derivatives, and of some steps."""
        return context.free().size + FEASIBLE_GAUSS_NEWTON.steps

    def search(self, context: Context, diagnosis: Diagnosis | None) -> Generator[Probes, Answers, Ended]:
        """Linearise, exchange on the model, and correct it, until it promises nothing more."""
        return (yield from _OnLinearModel(context).run())


class _OnLinearModel:
    """A search at work: the best point, its outputs, and the derivatives as far as they are known there."""

    def __init__(self, context: Context) -> None:
        further = context.constraint.further
        assert isinstance(further, ShareSet)
        self.context, self.feasible = context, further
        self.x, self.r, self.F = context.theta, np.empty(0), np.inf
        self.J = np.empty((0, 0))

    def run(self) -> Generator[Probes, Answers, Ended]:
        context, settings = self.context, FEASIBLE_GAUSS_NEWTON
        self.r = (yield from context.outputs([self.x]))[0]
        self.F = float(context.mean_losses(self.r[None])[0])
        context.move(self.x, self.F)
        if not np.isfinite(self.F):
            return Ended("F at the start is not a number.")
        start = self.F
        self.J = np.zeros((self.r.size, context.d))
        free = context.free()
        while True:
            if free.size > context.left:
                return Ended("The calls that are left do not pay for the derivatives by all coordinates.")
            yield from self._measure(free)
            before, misses = self.F, 0
            while misses < settings.most_misses:
                model = LinearisedShares(self.x, self.r, self.F, self.J, context.loss, context.unit)
                point, promised = self._best(model, free)
                predicted = self.F - promised
                if not predicted > settings.negligible * (start - self.F) + settings.rounding * abs(self.F):
                    break
                fall = yield from self._try(point)
                if fall >= settings.trusted * predicted:
                    misses = 0
                    continue
                misses += 1
                support = support_of(self.feasible, self.x)
                if support.size > context.left:
                    return Ended("The calls that are left do not pay for the derivatives on the support.")
                yield from self._measure(np.union1d(support, support_of(self.feasible, point)))
            if not before - self.F > settings.same * max(start - self.F, 0.0):
                return Ended("No exchange and no change of shares that the linear model suggests lowers F any more.")

    def _measure(self, some: Indices) -> Generator[Probes, Answers, None]:
        """Measure the derivatives by some coordinates at the best point, by one call for each."""
        feasible, x = self.feasible, self.x
        h = FEASIBLE_GAUSS_NEWTON.difference * typical_size(feasible, x)
        pivot = pivot_of(feasible, x, support_of(feasible, x)) if feasible.fixed_total else -1
        some = some[some != pivot]
        up, down = feasible.high[some] - x[some], x[some] - feasible.low[some]
        if pivot >= 0:
            self.J -= self.J[:, pivot : pivot + 1].copy()  # derivatives by the others against the pivot
            up, down = np.minimum(up, x[pivot] - feasible.low[pivot]), np.minimum(down, feasible.high[pivot] - x[pivot])
        steps = np.where(up >= np.minimum(down, h), np.minimum(up, h), -np.minimum(down, h))
        some, steps = some[steps != 0], steps[steps != 0]
        points = np.repeat(x[None], some.size, axis=0)
        points[np.arange(some.size), some] += steps
        if pivot >= 0:
            points[:, pivot] -= steps
        told = yield from self.context.outputs(list(points))
        if some.size:
            self.J[:, some] = np.nan_to_num(((told - self.r) / steps[:, None]).T)

    def _best(self, model: LinearisedShares, free: Indices) -> tuple[Array, float]:
        """Return the best point that exchanges and random changes of the support reach on the model."""
        x, value = self._walk(model, self.x, free)
        for _ in range(FEASIBLE_GAUSS_NEWTON.kicks):
            kicked = self._kicked(x, free)
            if kicked is None:
                break
            other, lower = self._walk(model, kicked, free)
            if lower < value:
                x, value = other, lower
        return x, value

    def _walk(self, model: LinearisedShares, x: Array, free: Indices) -> tuple[Array, float]:
        """Exchange members on the model until no exchange helps."""
        while True:
            support = support_of(self.feasible, x)
            on = best_on(model, self.feasible, x, support)
            x = x if on is None else on.point
            least = FEASIBLE_GAUSS_NEWTON.rounding * abs(model.value(x))
            better = ranked(model, self.feasible, x, support_of(self.feasible, x), free, least)
            if not better:
                return x, model.value(x)
            x = better[0].point

    def _kicked(self, x: Array, free: Indices) -> Array | None:
        """Return a point with one random member replaced by another coordinate; None if there is none."""
        support = support_of(self.feasible, x)
        leaving, outside = np.setdiff1d(support, self.feasible.places.forced), np.setdiff1d(free, support)
        if not leaving.size or not outside.size:
            return None
        rng, point = self.context.rng, x.copy()
        gone, new = leaving[rng.integers(leaving.size)[0]], outside[rng.integers(outside.size)[0]]
        point[new], point[gone] = point[gone], 0.0
        return self.feasible.project_on(point, np.union1d(np.setdiff1d(support, [gone]), [new]))

    def _try(self, point: Array) -> Generator[Probes, Answers, float]:
        """Ask at a point, correct the derivatives along the step, and move there if F is lower; return the fall."""
        told = (yield from self.context.outputs([point]))[0]
        value = float(self.context.mean_losses(told[None])[0])
        fall = self.F - value
        step = point - self.x
        if np.isfinite(told).all() and np.isfinite(self.r).all():
            self.J += np.outer(told - self.r - self.J @ step, step) / float(step @ step)
        if fall > 0:
            self.x, self.r, self.F = point.copy(), told, value
            self.context.move(point.copy(), value)
        return fall if np.isfinite(fall) else -np.inf
