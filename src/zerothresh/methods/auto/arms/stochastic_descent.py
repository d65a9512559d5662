"""Stochastic descent for strong noise: steps that are not judged one by one, and averaged iterates.

Where noise hides the effect of every single step, a stage of many stochastic gradient steps still leads to a good
support. A response surface then finds the minimum on that support. F is compared only once per stage.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.moves.response_surface import ResponseSurface
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

_COMPARISON_CALLS = 48  # F is the mean of at least this many calls when points are compared
_FIRST_STAGE_STEPS = 12
_BATCH = 4  # components per stochastic gradient
_CALIBRATION_BATCH = 8  # components per gradient while lengths are calibrated
_CALIBRATION_LENGTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)  # in natural lengths
_SAFETY = 0.6  # the learning rate is this share of the one that lowered F most
_MAX_FAILURES = 12  # unsuccessful stages (less the successful ones) after which the search ends
_MAX_SURFACE_COORDINATES = 30  # a surface has about k^2 / 2 coefficients: a larger support needs too many values
_SURFACE_SHARE = 0.4  # of the calls made so far: what a surface may cost
_TINY = 1e-300  # lower limit of divisors


class StochasticDescent:
    """A search by stages of unjudged stochastic gradient steps.

    Arguments
    ---------
    context: the run.
    diagnosis: what the first calls found.
    """

    def __init__(self, context: Context, diagnosis: Diagnosis) -> None:
        self.context, self.diagnosis, self.C = context, diagnosis, context.free()
        self.theta = context.theta
        self.mu = self.eta = self.first_eta = 0.0  # difference step, learning rate, and the first learning rate
        self.surfaces: dict[bytes, ResponseSurface] = {}  # by support

    def _mean_gradient(self, theta: Array, components: Indices, mu: float) -> Generator[Probes, Answers, Array]:
        """Estimate the mean gradient of some components by central differences."""
        base = np.zeros(components.size)  # it cancels in central differences; with bounds they are one-sided
        if self.context.box is not None:
            base = (yield from self.context.values([theta], components))[0]
        slopes, _ = yield from self.context.slopes(theta, self.C, mu, components, base, central=True)
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
        if not (yield from self._calibrate()):
            return "No step length lowers F by more than the noise."
        stage_steps, failures = _FIRST_STAGE_STEPS, 0
        while failures < _MAX_FAILURES:
            from_start = failures % 3 == 2  # every third failure: start again, which may lead to another support
            theta, eta = (context.theta0, self.first_eta) if from_start else (self.theta, self.eta)
            mean = np.zeros(context.d)
            steps = 3 * _FIRST_STAGE_STEPS if from_start else stage_steps
            for t in range(steps):
                components = context.rng.subset(context.n, min(context.n, _BATCH))
                g = yield from self._mean_gradient(theta, components, self.mu)
                theta = context.H(theta - eta * g)
                if 2 * t >= steps:  # average the second half, when the iterates are near the minimum
                    mean += (theta - mean) / (t + 1 - (steps + 1) // 2)
            points = [self.theta, context.H(mean), theta]
            points.append((yield from self._minimise_surface(points[1])))
            estimates = yield from self._compare(points, _COMPARISON_CALLS * 2 ** min(failures, 5))
            best = int(np.argmin(estimates))
            failures = failures + 1 if best == 0 else max(0, failures - 1)
            if best == 0 and not from_start:
                self.eta /= 2.0
                shortest_mu = 0.5 * float(np.abs(self.theta).max())
                self.mu = max(self.mu / 1.7, min(self.mu, shortest_mu))  # too long is biased, too short is noise
                stage_steps = math.ceil(1.2 * stage_steps)
            self.theta = points[best]
            context.move(self.theta, float(estimates[best]))
        return "No further stage lowers F."

    def _minimise_surface(self, theta: Array) -> Generator[Probes, Answers, Array]:
        """Minimise a response surface on the support; a surface that exists already gets more values."""
        context, S = self.context, np.flatnonzero(theta)
        if not 0 < S.size <= _MAX_SURFACE_COORDINATES or context.left < 20 * context.n:
            return theta
        support_key = S.tobytes()
        if support_key not in self.surfaces:
            repeated = yield from context.values([theta] * 8)
            noise = float(repeated.mean(axis=1).std(ddof=1))
            prior = np.eye(S.size) / self.first_eta
            self.surfaces[support_key] = ResponseSurface(context, theta, prior, self.mu, max(noise, _TINY))
        theta = yield from self.surfaces[support_key].search(_SURFACE_SHARE * context.used, context.everything)
        return theta

    def _calibrate(self) -> Generator[Probes, Answers, bool]:
        """Try several difference steps and moves of the same lengths; keep the pair that lowers F most.

        Returns whether any pair lowers F.
        """
        context = self.context
        components = context.rng.subset(context.n, min(context.n, _CALIBRATION_BATCH))
        trials, settings = [self.theta], [(0.0, 0.0)]
        for share in _CALIBRATION_LENGTHS:
            length = share * self.diagnosis.length
            g = yield from self._mean_gradient(self.theta, components, length)
            norm = float(np.linalg.norm(context.constraint.project(g) if context.box is None else g))
            if norm > 0:
                for factor in (0.5, 2.0):
                    trials.append(context.H(self.theta - (factor * length / norm) * g))
                    settings.append((length, factor * length / norm))
        estimates = yield from self._compare(trials, _COMPARISON_CALLS // 4)
        finalists = np.unique(np.append(np.argsort(estimates, kind="stable")[:4], 0))
        estimates = yield from self._compare([trials[a] for a in finalists.tolist()], _COMPARISON_CALLS)
        best = int(finalists[np.argmin(estimates)])
        self.theta, (self.mu, eta) = trials[best], settings[best]
        self.eta = self.first_eta = _SAFETY * eta
        context.move(self.theta, float(estimates.min()))
        return best > 0
