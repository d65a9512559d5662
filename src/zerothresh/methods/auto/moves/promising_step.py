"""A step to another support that the last gradient makes likely, for a part of the calls of a gradient.

A gradient over all coordinates is mostly asked for to see which one should enter the support, and that is mostly one of
those whose slope was steep before. Their slopes are asked for first, and all others only if these lead nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.moves.newton_steps import Cycle, converging_steps
from zerothresh.methods.auto.moves.support_step import SupportStep
from zerothresh.methods.auto.position import Position
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def promising_step(at: Position, step: SupportStep, last_rate: float) -> Generator[Probes, Answers, float | None]:
    """Step with the slopes of the support and of the most promising coordinates.

    Arguments
    ---------
    at: where the descent stands.
    step: the steps of the descent that may change the support.
    last_rate: float, the fall of F per call in the last cycle.

    Returns
    -------
    float or None: the fall of F per call, if the step has led to another support; None if nothing can be said about
    the other coordinates, so that all slopes are needed.
    """
    before, cycle = at.theta, Cycle(at.F, at.context.used, last_rate)
    g = yield from _promising_slopes(at, step)
    if g is None:
        return None
    suspected = step.kink_suspected
    yield from step.damped(at, g)
    step.kink_suspected = suspected
    if at.theta is before:
        return None
    yield from converging_steps(at, DESCENT.steps, cycle)
    return None if np.array_equal(at.theta != 0, before != 0) else cycle.rate(at)


def _promising_slopes(at: Position, step: SupportStep) -> Generator[Probes, Answers, Array | None]:
    """Return the gradient on C with zeros for what was not asked for; None if no gradient says what is promising."""
    context, C = at.context, at.C
    if (
        step.models_scores(at)
        or at.hint is None
        or at.oracle.coarse
        or not at.complete
        or not at.reporting
        or not at.model.scaled
    ):
        return None
    old, where = at.hint
    S, many = np.flatnonzero(at.theta[C]), math.ceil(DESCENT.promising * context.k)
    affordable = at.calls_available >= 2 * at.oracle.gradient_cost(S.size + many)
    few = 2 * (S.size + many) <= C.size
    if old.size != C.size or where is at.theta or not few or not affordable or context.constraint.groups is not None:
        return None
    predicted = np.abs(old + at.model.block(C) @ (at.theta - where)[C])
    predicted[S] = np.inf
    T = np.sort(np.argsort(-predicted, kind="stable")[: S.size + many])
    g = np.zeros(C.size)
    g[T] = yield from at.gradient(C[T])
    if at.g.size and at.g_theta is where:
        at.model.learn(at.theta - where, g[T] - old[T], C[T], at.slope_noise)
    return g
