"""Quasi-Newton steps on a few coordinates: one value per coordinate for the gradient, one or more for the step."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.quasi_newton import QuasiNewton
from zerothresh.methods.auto.moves.component_sample import ComponentSample
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.grouped_slopes_settings import GROUPED_SLOPES as SETTINGS
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True, eq=False)
class SampledPoint:
    """A point and the values of the sample's components there."""

    theta: Array
    values: Array

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return float(self.values.mean())


def extended_model(model: QuasiNewton | None, C: Indices, curvature: float) -> QuasiNewton:
    """Return a model on the coordinates C: what ``model`` knows, and ``curvature`` on the diagonal elsewhere."""
    B = np.eye(C.size) * curvature
    if model is not None:
        known, here, there = np.intersect1d(C, model.coordinates, assume_unique=True, return_indices=True)
        if known.size:
            B[np.ix_(here, here)] = model.B[np.ix_(there, there)]
    return QuasiNewton(C, B)


def support_gradient(
    sample: ComponentSample, at: SampledPoint, C: Indices, h: float
) -> Generator[Probes, Answers, Array]:
    """Return the slopes of the sample's mean along the coordinates C."""
    slopes, _ = yield from sample.context.slopes(at.theta, C, h, sample.components, at.values)
    return np.asarray(slopes.mean(axis=0))


def line_step(
    sample: ComponentSample, at: SampledPoint, direction: Array, slope: float
) -> Generator[Probes, Answers, SampledPoint | None]:
    """Return a point along a direction where the sample's mean is lower; None if a few shorter steps find none.

    The parabola through the slope and the value of a failed step gives the next one.
    """
    t = 1.0
    for _ in range(SETTINGS.line_trials):
        theta = sample.context.inside(at.theta + t * direction)
        values = (yield from sample.values([theta]))[0]
        change = float((values - at.values).mean())
        if change < min(SETTINGS.sufficient * t * slope, 0.0) and -change > sample.floor:
            return SampledPoint(theta, values)
        bend = change - t * slope
        t *= min(max(-t * slope / (2 * bend), SETTINGS.shortest), SETTINGS.longest) if bend > 0 else SETTINGS.longest
    return None


def polish(
    sample: ComponentSample, at: SampledPoint, g: Array, model: QuasiNewton, h: float, steps: int
) -> Generator[Probes, Answers, tuple[SampledPoint, Array]]:
    """Make quasi-Newton steps on the coordinates of the model while they promise a share of the fall so far.

    Arguments
    ---------
    sample: the components that stand for F.
    at: the point to start from.
    g: array of shape (c,), the gradient there on the coordinates of the model.
    model: the Hessian on them; it learns from every step.
    h: float, the difference step.
    steps: int, the largest number of steps.

    Returns
    -------
    The best point, and the gradient there.
    """
    C, first = model.coordinates, at.mean
    for count in range(steps):
        direction = np.zeros(at.theta.size)
        direction[C] = model.step(g, C)
        slope = float(g @ direction[C])
        if -0.5 * slope <= max(SETTINGS.polish_share * (first - at.mean), TINY):
            break
        better = yield from line_step(sample, at, direction, slope)
        if better is None:
            break
        step = (better.theta - at.theta)[C]
        predicted = float(g @ step) + 0.5 * float(step @ model.B @ step)
        change = float((better.values - at.values).mean())
        if abs(change - predicted) < SETTINGS.trusted * abs(predicted):  # the model knows the gradient there
            return better, g + model.B @ step
        new_g = yield from support_gradient(sample, better, C, h)
        model.learn(better.theta - at.theta, new_g - g, C)
        at, g = better, new_g
        if count + 1 == steps:
            break
    return at, g
