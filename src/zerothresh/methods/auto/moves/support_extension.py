"""Take coordinates into the support, minimise on it, and drop what the model values least."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.quasi_newton import QuasiNewton
from zerothresh.methods.auto.moves.best_first import FoundSlope
from zerothresh.methods.auto.moves.component_sample import ComponentSample
from zerothresh.methods.auto.moves.support_polish import SampledPoint, extended_model, polish, support_gradient
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.grouped_slopes_settings import GROUPED_SLOPES as SETTINGS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def support_of(context: Context, theta: Array) -> Indices:
    """Return the coordinates that count towards k: the non-zeros, and those that are always included."""
    return np.union1d(np.flatnonzero(theta), context.constraint.include)


class SupportExtension:
    """The model on the support, which grows and shrinks with it.

    Arguments
    ---------
    sample: the components that stand for F.
    diagnosis: the difference step, and the first guess at the curvature.
    """

    def __init__(self, sample: ComponentSample, diagnosis: Diagnosis) -> None:
        self.sample, self.context, self.diagnosis = sample, sample.context, diagnosis
        self.model: QuasiNewton | None = None
        self.gradient: Array | None = None  # at the last point, on the coordinates of the model; None: not known
        self.curvature = 0.0  # along a coordinate; 0: not known yet

    def extend(self, at: SampledPoint, found: list[FoundSlope]) -> Generator[Probes, Answers, SampledPoint | None]:
        """Return a better point whose support contains what was found, or a part of it; None if there is none."""
        sample, h = self.sample, self.diagnosis.mu
        new = np.array([slope.coordinate for slope in found])
        S = self._polished(at.theta)
        if not self._promising(at.theta, found):
            return None
        C = np.union1d(S, new)
        g = np.zeros(C.size)
        g[np.searchsorted(C, new)] = [slope.slope for slope in found]
        if S.size and (self.gradient is None or self.model is None or not np.array_equal(self.model.coordinates, S)):
            self.gradient = yield from support_gradient(sample, at, S, h)
        if S.size and self.gradient is not None:
            g[np.searchsorted(C, S)] = self.gradient
        if not self.curvature:
            yield from self._measure_curvature(at, C, g)
        model = extended_model(self.model, C, self.curvature)
        moved, g = yield from polish(sample, at, g, model, h, SETTINGS.polish_steps)
        if support_of(self.context, moved.theta).size > self.context.k:
            moved, g, model = yield from self._drop(moved, g, model)
        if not float((moved.values - at.values).mean()) < -sample.floor:
            return None
        self.model, self.gradient, self.curvature = model, g, model.mean_curvature
        return moved

    def _promising(self, theta: Array, found: list[FoundSlope]) -> bool:
        """Whether what was found may lower F by more than what has to leave the support raises it, by the model."""
        S = support_of(self.context, theta)
        leaving = S.size + len(found) - self.context.k
        if self.model is None or leaving <= 0 or not np.array_equal(S, self.model.coordinates):
            return True
        rises = np.sort(theta[S] ** 2 / np.maximum(np.diag(np.linalg.inv(self.model.B)), TINY))[:leaving]
        falls = [slope.slope**2 for slope in found]
        return sum(falls) / self.curvature > SETTINGS.exchange * float(rises.sum())

    def _polished(self, theta: Array) -> Indices:
        """Return the support, or its largest entries if the budget does not pay for gradients on all of it."""
        S = support_of(self.context, theta)
        most = max(1, int(SETTINGS.polish_calls * self.context.left / self.sample.size))
        if S.size > most:
            S = np.sort(S[np.argsort(-np.abs(theta[S]), kind="stable")[:most]])
        return np.intersect1d(S, self.context.free())

    def _measure_curvature(self, at: SampledPoint, C: Indices, g: Array) -> Generator[Probes, Answers, None]:
        """Measure the curvature along the slopes that were found, with one value."""
        norm = max(float(np.linalg.norm(g)), TINY)
        bend = self.diagnosis.curvature if self.diagnosis.curvature > 0 else norm / self.diagnosis.length
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
        C, context, h = model.coordinates, self.context, self.diagnosis.mu
        elsewhere = np.setdiff1d(support_of(context, at.theta), C)  # entries that are too many to polish
        theta = np.zeros(context.d)
        if context.k > elsewhere.size:
            theta = model.sparse_minimiser(at.theta, g, C, context.k - elsewhere.size, context.constraint).copy()
        theta[elsewhere] = at.theta[elsewhere]
        theta = context.H(theta)
        kept = SampledPoint(theta, (yield from self.sample.values([theta]))[0])
        S = np.intersect1d(support_of(context, theta), C)
        smaller = extended_model(model, S, model.mean_curvature)
        slopes = yield from support_gradient(self.sample, kept, S, h)
        kept, slopes = yield from polish(self.sample, kept, slopes, smaller, h, SETTINGS.polish_steps - 1)
        return kept, slopes, smaller
