"""Moves for functions whose slopes say nothing, as on plateaus and at jumps: only values decide.

Both ask for values through a `Position`, which accepts the points that are better.
"""

from __future__ import annotations

import math

import numpy as np

from zerothresh.methods.auto.position import Position
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.floating_point import EPS
from zerothresh.methods.program.context import Asks


def evolve_on_support(at: Position, relative_step: float = DESCENT.evolve_step) -> Asks:
    """Minimise F on the current support with a (1+1)-CMA-ES: random steps whose covariance learns from successes.

    Arguments
    ---------
    at: where the descent stands; it moves to better points.
    relative_step: float, the first step size in units of the mean absolute value on the support.

    Reference: Igel, Suttorp and Hansen, *A computational efficient covariance matrix update and a (1+1)-CMA for
    evolution strategies*, GECCO 2006.
    """
    context, S = at.context, np.flatnonzero(at.theta)
    k = S.size
    if k == 0:
        return
    size, target = float(np.abs(at.theta[S]).mean()), DESCENT.success_rate
    sigma, C, success_rate, failures = relative_step * size, np.eye(k), target, 0
    most_failures, learning = (
        DESCENT.evolve_failures[0] + DESCENT.evolve_failures[1] * k,
        2 / (k * k + DESCENT.evolve_learning),
    )
    while (
        sigma > DESCENT.least_evolve_step * size
        and failures < most_failures
        and at.calls_available > 2 * at.oracle.value_cost
    ):
        step = np.linalg.cholesky(C + EPS * np.trace(C) * np.eye(k)) @ context.rng.normal(k)
        trial = at.theta.copy()
        trial[S] += sigma * step
        trial = context.H(trial)
        values = yield from at.values_at(trial)
        success = float(values.mean()) <= at.F
        failures = 0 if float(values.mean()) < at.F - at.oracle.noise_margin else failures + 1
        success_rate = DESCENT.success_memory * success_rate + (1 - DESCENT.success_memory) * success
        sigma *= math.exp((success_rate - target) / (1 - target) / (1 + k / 2))
        if success:
            C = (1 - learning) * C + learning * np.outer(step, step)
            at.accept(trial, values)


def swap_coordinate(at: Position, turn: int) -> Asks:
    """Replace one coordinate of the support by another one, if some value of that lowers F.

    Arguments
    ---------
    at: where the descent stands; it moves to better points.
    turn: int, which coordinate to drop: 0 is the one of smallest absolute value, 1 the next one, and so on in a cycle.
    """
    context, S = at.context, np.flatnonzero(at.theta)
    free = S[~np.isin(S, context.constraint.include)]
    if not free.size or context.constraint.groups is not None:
        return
    dropped = int(free[np.argsort(np.abs(at.theta[free]), kind="stable")[turn % free.size]])
    size = float(np.abs(at.theta[S]).mean())
    others = np.setdiff1d(at.C, S)
    for j in others[context.rng.subset(others.size, min(others.size, DESCENT.swap_candidates))].tolist():
        for relative_value in DESCENT.swap_values:
            if at.calls_available < 2 * at.oracle.value_cost:
                return
            trial = at.theta.copy()
            trial[dropped], trial[j] = 0.0, relative_value * size
            trial = context.H(context.inside(trial))
            values = yield from at.values_at(trial)
            if float(values.mean()) < at.F - at.oracle.noise_margin:
                at.accept(trial, values)
                return
