"""Quasi-Newton steps on a support, with a backtracking line search."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.quasi_newton import QuasiNewton
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.moves.second_derivatives import second_derivatives
from zerothresh.methods.auto.oracle_kinds import NoisyOracle
from zerothresh.methods.auto.position import Position
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.program.context import Asks
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def newton_step(at: Position, g: Array, S: Indices, model: QuasiNewton | None = None) -> Array:
    """Return the Newton step on the support S; coordinates that a bound holds are left out.

    Arguments
    ---------
    at: where the descent stands.
    g: array of shape (s,), the gradient on S.
    S: indices of the support, shape (s,).
    model: the second derivatives; those of the position by default.
    """
    free = np.flatnonzero(~_held_by_bounds(at, g, S))
    step = np.zeros(S.size)
    if free.size:
        step[free] = (model or at.model).step(g[free], S[free])
    return step * min(1.0, at.longest_step / max(float(np.linalg.norm(step)), TINY))


def _held_by_bounds(at: Position, g: Array, S: Indices) -> NDArray[np.bool_]:
    """Return which coordinates of S stand at a bound beyond which F would fall."""
    box = at.context.box
    if box is None:
        return np.zeros(S.size, bool)
    x = at.theta[S]
    return np.asarray(((x <= box.low[S]) & (g > 0)) | ((x >= box.high[S]) & (g < 0)))


class Cycle(NamedTuple):
    """A gradient over all coordinates, a support step, and steps on the support until another cycle is worth more.

    Attributes
    ----------
    F: float, F at its beginning.
    used: int, the calls that had been made by then.
    last_rate: float, the fall of F per call in the cycle before; infinite if this is the first one.
    """

    F: float
    used: int
    last_rate: float

    def rate(self, at: Position) -> float:
        """Return the fall of F per call in this cycle so far."""
        return (self.F - at.F) / max(at.context.used - self.used, 1)

    def is_over(self, at: Position, step_rate: float) -> bool:
        """Whether a step gained less per call than the next cycle will, if rates go on falling as they did.

        After the first cycle nothing has fallen yet, and the usual fall is expected.

        Reference: Charnov, *Optimal foraging, the marginal value theorem*, 1976.
        """
        rate = self.rate(at)
        first = math.isinf(self.last_rate)
        falls_to = DESCENT.next_cycle if first else min(1.0, rate / max(self.last_rate, TINY))
        return step_rate < rate * falls_to


def newton_steps(at: Position, rounds: int, cycle: Cycle | None = None) -> Asks:
    """Make up to ``rounds`` quasi-Newton steps on the support of the position.

    All second derivatives on a support of s coordinates cost as much as s / 2 + 1 gradients. They are measured once so
    many gradients have not been enough: whatever F is like, this costs at most twice as much as the better choice.

    Arguments
    ---------
    at: where the descent stands.
    rounds: int, the largest number of steps.
    cycle: the cycle that they belong to, if they should end with it; None: they end when F has converged.
    """
    context = at.context
    S = np.flatnonzero(at.theta)
    last: tuple[Array, Array] | None = None
    measured: QuasiNewton | None = None  # the second derivatives on S, once as many gradients have been paid for
    reach = math.inf  # the length of steps with them: they were measured over the way of the last step
    for made in range(rounds):
        if S.size == 0 or at.calls_available < at.oracle.gradient_cost(S.size) + 2 * at.oracle.m:
            return
        before = context.used
        g = yield from at.gradient(S)
        if last is not None:
            for model in (at.model, measured):
                if model is not None:
                    model.learn(at.theta - last[0], g - last[1], S, at.slope_noise)
            if made == 1 + S.size // 2:
                way = float(np.linalg.norm(at.theta - last[0]))
                measured, reach = (yield from second_derivatives(at, g, S, way)), DESCENT.lengthening * way
        last = at.theta, g
        step = newton_step(at, g, S, measured)
        if measured is not None:
            step *= min(1.0, reach / max(float(np.linalg.norm(step)), TINY))
        slope = float(g @ step)
        if not slope < 0:
            return
        previous_F, length, decreased = at.F, 1.0, False
        for _ in range(DESCENT.backtracks):
            trial = at.theta.copy()
            trial[S] += length * step
            trial = context.H(trial)
            if at.calls_available < at.oracle.m:
                return
            values = yield from at.values_at(trial)
            rise = float(values.mean()) - previous_F
            if rise < DESCENT.armijo * length * slope:
                decreased = True
                break
            excess = 2 * (rise - length * slope)  # minimiser of the parabola through both values, safeguarded
            share = -length * slope / excess if excess > 0 else DESCENT.usual_backtrack
            length *= min(max(share, DESCENT.most_backtrack), DESCENT.least_backtrack)
        if not decreased:
            return
        trial, values = yield from _lengthened(at, trial, values, slope, length)
        at.accept(trial, values)
        gain = previous_F - at.F
        if gain <= at.negligible and gain <= -DESCENT.short_of_promise * slope:
            return
        if gain <= DESCENT.short_of_promise * at.negligible:
            return
        if cycle is not None and cycle.is_over(at, gain / max(context.used - before, 1)):
            return


def _lengthened(
    at: Position, trial: Array, values: Array, slope: float, length: float
) -> Generator[Probes, Answers, tuple[Array, Array]]:
    """Return a longer step and the values there, if a parabola says that the minimum is further on, and F is lower.

    A value costs little beside the next gradient, and a curvature that is assumed too large is corrected only by steps
    that are long enough. One such value is enough: where F falls for ever, more of them would lead astray.
    """
    fall = at.F - float(values.mean())
    bend = -2 * (slope * length + fall) / square(length)
    best = -slope / bend if bend > 0 else math.inf
    enough = best < DESCENT.worth_lengthening * length or at.calls_available < 2 * at.oracle.value_cost
    if enough or at.oracle.coarse or at.context.width > 1:  # with idle workers, the slopes here are known already
        return trial, values
    factor = min(best / length, DESCENT.lengthening)
    further = at.context.H(at.theta + factor * (trial - at.theta))
    further_values = yield from at.values_at(further)
    lower = float(further_values.mean()) + at.oracle.noise_margin < float(values.mean())
    return (further, further_values) if lower else (trial, values)


def converging_steps(at: Position, rounds: int, cycle: Cycle | None) -> Asks:
    """Make quasi-Newton steps, and when forward differences through noise lead no further, more with central ones."""
    yield from newton_steps(at, rounds, cycle)
    if isinstance(at.oracle, NoisyOracle) and at.oracle.forward:
        at.oracle = at.oracle.both_sides()
        yield from newton_steps(at, rounds, cycle)


def refine_trial(at: Position, F_to_beat: float) -> Asks:
    """Make quasi-Newton steps on the support of a trial point, as long as they may still beat this value of F."""
    S = np.flatnonzero(at.theta)
    last: tuple[Array, Array] | None = None
    for _ in range(DESCENT.trial_steps):
        if S.size == 0 or at.calls_available < at.oracle.gradient_cost(S.size) + 2 * at.oracle.m:
            return
        g = yield from at.gradient(S)
        if last is not None:
            at.model.learn(at.theta - last[0], g - last[1], S, at.slope_noise)
        last = at.theta, g
        step = newton_step(at, g, S)
        promised = -0.5 * float(g @ step)
        hopeless = at.F - DESCENT.optimism * promised > F_to_beat
        if hopeless or promised <= at.negligible or not math.isfinite(promised):
            return
        trial = at.theta.copy()
        trial[S] += step
        trial = at.context.constraint.project(trial)
        values = yield from at.values_at(trial)
        if not float(values.mean()) < at.F:
            return
        at.go(trial, values)
