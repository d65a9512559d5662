"""Stochastic descent for strong noise: steps that are not judged one by one, and averaged iterates.

Where noise hides the effect of every single step, regressions through all values propose supports, and response
surfaces find the minimum on each. If the budget is too small for that, a stage of many stochastic gradient steps still
leads to a good support; F is compared only once per stage.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.findings import Diagnosis
from zerothresh.methods.auto.moves.regressed_supports import RegressedSupports
from zerothresh.methods.auto.moves.sparse_surface import SparseSurface
from zerothresh.methods.auto.moves.surface_minima import SurfaceMinima
from zerothresh.methods.auto.oracle import slopes_inside
from zerothresh.methods.auto.settings.descent_settings import DESCENT, SPARSE_SURFACE, STOCHASTIC
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class StochasticDescent:
    """Stages of stochastic gradient steps, for random values whose noise hides single steps.

    >>> StochasticDescent().name
    'stochastic descent'
    """

    name: ClassVar[str] = "stochastic descent"
    decisive: ClassVar[bool] = True

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether the noise is strong, and the budget pays for the stages."""
        free = context.free().size
        return diagnosis.strong_noise and free > 0 and context.left > STOCHASTIC.calls_per_coordinate * free

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return all calls that are left: noise averages out slowly, and no early judgement is fair."""
        return int(context.left)

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        """Run stages until many of them in a row have not lowered F."""
        context.confirmed = True  # all that it assumes is the noise, which has been measured
        return Ended((yield from _Stages(context, diagnosis).search()))


class _Stages:
    """The state of the stages: the best point so far, and the lengths of steps.

    Arguments
    ---------
    context: the run.
    diagnosis: what the first calls found.
    """

    def __init__(self, context: Context, diagnosis: Diagnosis) -> None:
        self.context, self.diagnosis, self.C = context, diagnosis, context.free()
        self.theta = context.theta
        self.mu = self.eta = self.first_eta = 0.0  # difference step, learning rate, and the first learning rate
        self.minima = SurfaceMinima(context)

    def _mean_gradient(self, theta: Array, components: Indices, mu: float) -> Generator[Probes, Answers, Array]:
        """Estimate the mean gradient of some components by central differences."""
        mu = min(mu, self._longest)
        slopes = yield from slopes_inside(self.context, theta, self.C, mu, components)
        g = np.zeros(self.context.d)
        g[self.C] = slopes.mean(axis=0)
        return g

    def _compare(self, points: list[Array], calls: int) -> Generator[Probes, Answers, Array]:
        """Estimate F at each point as the mean of at least this many calls."""
        context = self.context
        repeats = max(1, math.ceil(calls / context.n))
        values = yield from context.values(points * repeats)
        return np.asarray(values.mean(axis=1).reshape(repeats, len(points)).mean(axis=0))

    def search(self) -> Generator[Probes, Answers, str]:
        """Calibrate the lengths, then run stages until many of them fail; returns the reason for stopping."""
        context = self.context
        regression = SparseSurface(context, min(self.diagnosis.length, self._longest))
        if self._affordable(regression):
            return (yield from RegressedSupports(context, regression, self.minima).search())
        if not (yield from self._calibrate()):
            return "No step length lowers F by more than the noise."
        steps, failures = STOCHASTIC.first_steps, 0
        while failures < STOCHASTIC.most_failures:
            anew = failures % STOCHASTIC.start_again == STOCHASTIC.start_again - 1  # it may lead to another support
            mean, last = yield from (
                self._stage(context.theta0, self.first_eta, STOCHASTIC.start_again * STOCHASTIC.first_steps)
                if anew
                else self._stage(self.theta, self.eta, steps)
            )
            prior = np.eye(int(np.count_nonzero(mean))) / self.first_eta
            minimum = yield from self.minima.minimise(mean, prior, self.mu, STOCHASTIC.stage_surface_share)
            points = [self.theta, mean, last, minimum]
            doublings = min(failures, STOCHASTIC.most_doublings)
            estimates = yield from self._compare(points, STOCHASTIC.comparison_calls * 2**doublings)
            best = int(np.argmin(estimates))
            failures = failures + 1 if best == 0 else max(0, failures - 1)
            if best == 0 and not anew:
                self.eta /= STOCHASTIC.slower
                way = float(np.abs(self.theta - context.theta0).max())
                shortest = min(self.mu, STOCHASTIC.shortest_step * way)  # too long is biased, too short is noise
                self.mu = max(self.mu / STOCHASTIC.shorten, shortest)
                steps = math.ceil(STOCHASTIC.more_steps * steps)
            self.theta = points[best]
            context.move(self.theta, float(estimates[best]))
        return "No further stage lowers F."

    @property
    def _longest(self) -> float:
        """The longest difference step that bounds allow."""
        return DESCENT.longest_share_of_box * self.diagnosis.room

    def _affordable(self, regression: SparseSurface) -> bool:
        """Whether the budget pays for a regression on all coordinates; if not, stochastic gradient steps need less."""
        small = self.C.size <= SPARSE_SURFACE.most_coordinates and self.context.constraint.groups is None
        return small and regression.round_size * self.context.n <= SPARSE_SURFACE.budget_share * self.context.left

    def _stage(self, theta: Array, eta: float, steps: int) -> Generator[Probes, Answers, tuple[Array, Array]]:
        """Make stochastic gradient steps; return the mean of the second half of the iterates, and the last one."""
        context, mean = self.context, np.zeros(self.context.d)
        for t in range(steps):
            components = context.rng.subset(context.n, min(context.n, STOCHASTIC.batch))
            g = yield from self._mean_gradient(theta, components, self.mu)
            theta = context.H(theta - eta * g)
            if 2 * t >= steps:
                mean += (theta - mean) / (t + 1 - (steps + 1) // 2)
        return context.H(mean), theta

    def _calibrate(self) -> Generator[Probes, Answers, bool]:
        """Try several difference steps and moves of the same lengths; keep the pair that lowers F most.

        Returns whether any pair lowers F.
        """
        context = self.context
        components = context.rng.subset(context.n, min(context.n, STOCHASTIC.calibration_batch))
        trials, lengths = [self.theta], [(0.0, 0.0)]
        for share in STOCHASTIC.calibration_lengths:
            length = share * self.diagnosis.length
            g = yield from self._mean_gradient(self.theta, components, length)
            norm = float(np.linalg.norm(context.constraint.project(g) if context.box is None else g))
            for factor in STOCHASTIC.calibration_factors if norm > 0 else ():
                trials.append(context.H(self.theta - (factor * length / norm) * g))
                lengths.append((length, factor * length / norm))
        estimates = yield from self._compare(trials, STOCHASTIC.comparison_calls // STOCHASTIC.finalists)
        finalists = np.unique(np.append(np.argsort(estimates, kind="stable")[: STOCHASTIC.finalists], 0))
        estimates = yield from self._compare([trials[a] for a in finalists.tolist()], STOCHASTIC.comparison_calls)
        best = int(finalists[np.argmin(estimates)])
        self.theta, (self.mu, eta) = trials[best], lengths[best]
        self.eta = self.first_eta = STOCHASTIC.safety * eta
        context.move(self.theta, float(estimates.min()))
        return best > 0
