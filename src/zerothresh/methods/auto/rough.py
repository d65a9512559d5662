"""Where slopes say nothing, on plateaus and jumps: random steps on a support, and swaps, judged by values alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from zerothresh.methods.program.context import Asks

if TYPE_CHECKING:
    from zerothresh.methods.auto.descent import Descent


def evolve(search: Descent, share: float = 0.3) -> Asks:
    """Where slopes say nothing: random steps on the support, of a shape that learns from those that helped.

    The (1+1)-CMA-ES of Igel, Suttorp and Hansen, GECCO 2006.
    """
    context, S = search.context, np.flatnonzero(search.theta)
    k = S.size
    if k == 0:
        return
    size = float(np.abs(search.theta[S]).mean())
    sigma, C, rate, failed = share * size, np.eye(k), 2 / 11, 0
    while sigma > 1e-4 * size and failed < 30 + 10 * k and search.left > 2 * search.m * search.repeats:
        step = np.linalg.cholesky(C + 1e-12 * np.trace(C) * np.eye(k)) @ context.rng.normal(k)
        trial = search.theta.copy()
        trial[S] += sigma * step
        trial = context.H(trial)
        values = yield from search.value(trial)
        better = float(values.mean()) <= search.F
        failed = 0 if float(values.mean()) < search.F - search.slack else failed + 1
        rate = 0.9 * rate + 0.1 * better
        sigma *= math.exp((rate - 2 / 11) / (1 - 2 / 11) / (1 + k / 2))
        if better:
            C = (1 - 2 / (k * k + 6)) * C + 2 / (k * k + 6) * np.outer(step, step)
            search.take(trial, values)


def swap(search: Descent, turn: int) -> Asks:
    """Where slopes say nothing: another coordinate in the place of one, the smallest first, with any value."""
    context, S = search.context, np.flatnonzero(search.theta)
    free = S[~np.isin(S, context.constraint.include)]
    if not free.size or context.constraint.groups is not None:
        return
    dropped = int(free[np.argsort(np.abs(search.theta[free]), kind="stable")[turn % free.size]])
    size = float(np.abs(search.theta[S]).mean())
    others = np.setdiff1d(search.C, S)
    for j in others[context.rng.subset(others.size, min(others.size, 100))].tolist():
        for share in (0.7, -0.7, 0.25, -0.25):
            if search.left < 2 * search.m * search.repeats:
                return
            trial = search.theta.copy()
            trial[dropped], trial[j] = 0.0, share * size
            trial = context.H(context.inside(trial))
            values = yield from search.value(trial)
            if float(values.mean()) < search.F - search.slack:
                search.take(trial, values)
                return
