"""The step that may change the support: to the sparse minimiser of a model, damped until F decreases."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.models.gauss_newton import gauss_newton
from zerothresh.methods.auto.models.quasi_newton import QuasiNewton
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.moves.kink_test import is_kinked
from zerothresh.methods.auto.position import Position
from zerothresh.methods.auto.settings.active_subset_settings import WIDE
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.program.context import Asks
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass
class SupportStep:
    """Steps that may change the support; they remember how well the Gauss-Newton model has done.

    Attributes
    ----------
    losses: int, how often in a row the Gauss-Newton model lost to the quasi-Newton model.
    pause: int, the steps until its next try.
    tried: bool, whether the last step tried it.
    known: bool, whether any step has tried it.
    kink_suspected: bool, whether a step that promised much did not lower F.
    """

    losses: int = 0
    pause: int = 0
    tried: bool = False
    known: bool = False
    kink_suspected: bool = False

    def reset(self) -> None:
        """Forget the losses, because other components are in use."""
        self.losses = self.pause = 0

    def retry(self, at: Position) -> bool:
        """Try the Gauss-Newton model again at the next step, if it lost before: it may be right here."""
        worthwhile = not self.tried and self.losses > 0 and self.pause >= 0 and self._fits(at)
        self.pause = 0 if worthwhile else self.pause
        return worthwhile

    def models_scores(self, at: Position) -> bool:
        """Whether the Gauss-Newton model may well be the better one, which needs all slopes of the components."""
        return self.known and self.losses == 0 and self._fits(at)

    def _fits(self, at: Position) -> bool:
        """Whether there are enough components and calls for a Gauss-Newton model, and F is smooth."""
        m = at.oracle.m
        affordable = at.calls_available > DESCENT.gauss_newton_values * m
        return m > 2 and m >= at.context.k and affordable and not at.oracle.coarse

    def search(self, at: Position, g: Array) -> Asks:
        """Move to a better point with another support, or stay.

        Arguments
        ---------
        at: where the descent stands.
        g: array of shape (c,), the gradient there.
        """
        self.tried = False
        if self._fits(at):
            self.pause -= 1
            if self.pause < 0:
                model = yield from _measured_gauss_newton(at)
                self.tried = model is not None
                self.known = self.known or self.tried
                if model is not None and (yield from self._compete(at, g, model)):
                    return
        straight = None if at.model.scaled else (yield from measure_curvature(at, g))
        if straight is not None:
            yield from extend_step(at, g, *straight)
        else:
            yield from self.damped(at, g)

    def _compete(self, at: Position, g: Array, model: QuasiNewton) -> Asks:
        """Let both models compete, and keep the one whose step lowers F more; returns whether F is lower."""
        if not at.model.scaled:
            yield from measure_curvature(at, g)
        trial = model_minimiser(at, model, g, 0.0)
        if trial is None or at.calls_available < 2 * at.oracle.m:
            return False
        values = yield from at.values_at(trial)
        other = model_minimiser(at, at.model, g, 0.0)
        if other is not None and not np.array_equal(other, trial):
            other_values = yield from at.values_at(other)
            if float(other_values.mean()) < float(values.mean()):
                self.losses += 1
                self.pause = self.losses - 1
                trial, values = other, other_values
            else:
                self.losses, at.model = 0, model
        if not float(values.mean()) < at.F:
            return False
        yield from extend_step(at, g, trial, values)
        return True

    def damped(self, at: Position, g: Array) -> Asks:
        """Minimise the model with more and more damping until F decreases.

        Reference: Nielsen, *Damping parameter in Marquardt's method*, 1999.
        """
        damping, self.kink_suspected, trial = 0.0, False, None
        for _ in range(DESCENT.damping_rounds):
            trial = model_minimiser(at, at.model, g, damping)
            if trial is None or at.calls_available < at.oracle.m:
                return
            foresee_extensions(at, trial)
            values = yield from at.values_at(trial)
            decrease = at.F - float(values.mean())
            if decrease > 0:
                yield from extend_step(at, g, trial, values)
                return
            move = (trial - at.theta)[at.C]
            curvature = 2 * (-float(g @ move) - decrease) / max(float(move @ move), TINY)  # of F along the step
            explains = DESCENT.damping_share * (curvature / at.model.mean_curvature - 1)
            least = max(DESCENT.damping_growth * damping, DESCENT.least_damping)
            damping = min(max(least, explains), max(DESCENT.most_damping_growth * damping, DESCENT.first_damping))
        undamped = model_minimiser(at, at.model, g, 0.0)
        if undamped is None or trial is None or at.oracle.coarse or at.oracle.diagnosis.random:
            return
        threshold = DESCENT.kink_promise * at.total_decrease + DESCENT.kink_noise * at.oracle.noise_margin
        promised = -float(g @ (undamped - at.theta)[at.C])
        if promised > threshold:
            length = float(np.linalg.norm(trial - at.theta))
            self.kink_suspected = yield from is_kinked(at, g, undamped - at.theta, length)


def _measured_gauss_newton(at: Position) -> Asks:
    """Ask for one more value of each component, along its own gradient, and return the Gauss-Newton model or None."""
    context, C, G = at.context, at.C, at.component_gradients
    norms = np.maximum(np.linalg.norm(G, axis=1), TINY)
    step = max(at.oracle.diagnosis.curvature_step(context.d), at.oracle.step(at.theta))
    move = np.zeros((at.oracle.m, context.d))
    move[:, C] = G / norms[:, None] * -step
    points = context.inside(at.theta + move)
    values = yield from context.each(points, at.oracle.components)
    moves = (points - at.theta)[:, C]
    return gauss_newton(at.model.coordinates, C, G, moves, values - at.values, at.oracle.diagnosis.noise, at.secants)


def model_minimiser(at: Position, model: QuasiNewton, g: Array, damping: float) -> Array | None:
    """Return the sparse minimiser of a model around a position, or None if it promises no decrease."""
    context = at.context
    # curvature that keeps the step below the largest length
    extra_curvature = float(np.abs(g).max()) * math.sqrt(context.k) / at.longest_step
    if context.constraint.groups is not None:  # the models know no groups: a gradient step and the exact projection
        step = at.theta.copy()
        step[at.C] -= g / (model.mean_curvature * (1 + damping) + extra_curvature)
        trial = context.H(step)
    else:
        sparse = model.sparse_minimiser(at.theta, g, at.C, context.k, context.constraint, damping, extra_curvature)
        trial = context.H(sparse)
    promised = -float(g @ (trial - at.theta)[at.C])
    return trial if promised > 0 and not np.array_equal(trial, at.theta) else None


def measure_curvature(at: Position, g: Array) -> Generator[Probes, Answers, tuple[Array, Array] | None]:
    """Measure the curvature along the thresholded gradient with one more value, and scale the model with it.

    Returns the point that was asked for, and the values there, if F is lower there and does not bend upwards on the
    way: then the model does not tell how far to go, but this point is a beginning.
    """
    context, length = at.context, at.oracle.diagnosis.length
    full_g = np.zeros(context.d)
    full_g[at.C] = g
    size = float(np.linalg.norm(g))
    least = DESCENT.least_curvature * size / max(length, TINY)
    if size == 0 or at.calls_available < at.oracle.m:
        hidden = at.oracle.diagnosis.noise / max(square(length), TINY)  # no slope: what noise may hide has F's unit
        at.model.rescale(max(least, hidden, TINY))
        return None
    step = context.constraint.project(context.inside(at.theta - (length / size) * full_g)) - at.theta
    S = np.flatnonzero(step) if step.any() else np.flatnonzero(context.constraint.project(full_g / size))
    direction = np.zeros(context.d)
    direction[S] = -full_g[S]
    norm = float(np.linalg.norm(direction))
    if norm == 0:
        at.model.rescale(max(least, TINY))
        return None
    share = DESCENT.coarse_curvature_step if at.oracle.coarse else DESCENT.curvature_step
    point = context.inside(at.theta + max(share * length, at.oracle.step(at.theta)) / norm * direction)
    values = yield from at.oracle.values(point)
    moved = point - at.theta
    curvature = 2 * (float(values.mean()) - at.F - float(full_g @ moved)) / max(float(moved @ moved), TINY)
    at.model.rescale(max(curvature, least, TINY))
    lower = float(values.mean()) + at.oracle.noise_margin < at.F
    return (point, values) if curvature < least and lower and context.constraint.holds(point) else None


def foresee_extensions(at: Position, trial: Array) -> None:
    """Say that a step will probably be extended, so that idle workers evaluate the longer ones with it."""
    longer = [DESCENT.extension ** (1 + power) for power in range(WIDE.extensions if at.context.width > 1 else 0)]
    points = [at.context.constraint.project(at.theta + length * (trial - at.theta)) for length in longer]
    at.context.foresee(points, at.oracle.components)
    for point in points[: WIDE.extension_slopes]:
        at.oracle.foresee_slopes(point, np.flatnonzero(point))


def extend_step(at: Position, g: Array, trial: Array, values: Array) -> Asks:
    """Accept a step that lowered F, after extending it in its direction as long as that pays."""
    start, length = at.theta, 1.0
    direction = trial - start
    decrease = at.F - float(values.mean())
    promised = -float(g @ direction[at.C])
    while (  # F decreases almost as steeply as at the beginning
        decrease > DESCENT.steep_share * length * promised
        and at.calls_available >= at.oracle.value_cost
        and length < DESCENT.longest_extension
    ):
        length *= DESCENT.extension
        further = at.context.H(start + length * direction)
        further_values = yield from at.values_at(further)
        further_decrease = at.F - float(further_values.mean())
        if not further_decrease > decrease:
            break
        trial, values, decrease = further, further_values, further_decrease
    at.accept(trial, values)
