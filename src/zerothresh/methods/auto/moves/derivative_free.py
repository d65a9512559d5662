"""Moves for functions whose slopes say nothing, as on plateaus and at jumps: only values decide.

Both functions work on a `Descent`: they ask for values through it and accept the points that are better.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from zerothresh.methods.program.context import Asks

if TYPE_CHECKING:
    from zerothresh.methods.auto.arms.descent import Descent

_TARGET_SUCCESS_RATE = 2 / 11  # of Igel, Suttorp and Hansen, 2006
_MIN_RELATIVE_STEP = 1e-4  # of the mean size of theta on the support: steps below this end the search
_SWAP_CANDIDATES = 100  # coordinates outside the support that one swap tries at most
_SWAP_VALUES = (0.7, -0.7, 0.25, -0.25)  # values tried for a new coordinate, in units of the mean size on the support


def evolve_on_support(search: Descent, relative_step: float = 0.3) -> Asks:
    """Minimise F on the current support with a (1+1)-CMA-ES: random steps whose covariance learns from successes.

    Arguments
    ---------
    search: the descent to improve.
    relative_step: float, the first step size in units of the mean absolute value on the support. Default: 0.3.

    Reference: Igel, Suttorp and Hansen, *A computational efficient covariance matrix update and a (1+1)-CMA for
    evolution strategies*, GECCO 2006.
    """
    context, S = search.context, np.flatnonzero(search.theta)
    k = S.size
    if k == 0:
        return
    size = float(np.abs(search.theta[S]).mean())
    sigma, C, success_rate, failures = relative_step * size, np.eye(k), _TARGET_SUCCESS_RATE, 0
    while (
        sigma > _MIN_RELATIVE_STEP * size
        and failures < 30 + 10 * k
        and search.calls_available > 2 * search.m * search.repeats
    ):
        step = np.linalg.cholesky(C + 1e-12 * np.trace(C) * np.eye(k)) @ context.rng.normal(k)
        trial = search.theta.copy()
        trial[S] += sigma * step
        trial = context.H(trial)
        values = yield from search.values_at(trial)
        success = float(values.mean()) <= search.F
        failures = 0 if float(values.mean()) < search.F - search.noise_margin else failures + 1
        success_rate = 0.9 * success_rate + 0.1 * success
        sigma *= math.exp((success_rate - _TARGET_SUCCESS_RATE) / (1 - _TARGET_SUCCESS_RATE) / (1 + k / 2))
        if success:
            C = (1 - 2 / (k * k + 6)) * C + 2 / (k * k + 6) * np.outer(step, step)
            search.accept(trial, values)


def swap_coordinate(search: Descent, turn: int) -> Asks:
    """Replace one coordinate of the support by another one, if some value of that lowers F.

    Arguments
    ---------
    search: the descent to improve.
    turn: int, which coordinate to drop: 0 is the one of smallest absolute value, 1 the next one, and so on in a cycle.
    """
    context, S = search.context, np.flatnonzero(search.theta)
    free = S[~np.isin(S, context.constraint.include)]
    if not free.size or context.constraint.groups is not None:
        return
    dropped = int(free[np.argsort(np.abs(search.theta[free]), kind="stable")[turn % free.size]])
    size = float(np.abs(search.theta[S]).mean())
    others = np.setdiff1d(search.C, S)
    for j in others[context.rng.subset(others.size, min(others.size, _SWAP_CANDIDATES))].tolist():
        for relative_value in _SWAP_VALUES:
            if search.calls_available < 2 * search.m * search.repeats:
                return
            trial = search.theta.copy()
            trial[dropped], trial[j] = 0.0, relative_value * size
            trial = context.H(context.inside(trial))
            values = yield from search.values_at(trial)
            if float(values.mean()) < search.F - search.noise_margin:
                search.accept(trial, values)
                return
