"""Whether a point found on a sample of the components is better on all of them, asked on other components."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from scipy.special import ndtr, stdtrit

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.moves.component_sample import ComponentSample
from zerothresh.methods.auto.moves.support_polish import SampledPoint
from zerothresh.methods.auto.settings.grouped_slopes_settings import GROUPED_SLOPES as SETTINGS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def judge(sample: ComponentSample, at: SampledPoint, calls: float) -> Generator[Probes, Answers, bool]:
    """Move the run to a point, or to a better one on the line through it, if it is better beyond chance.

    The components that judge are others than those of the sample, as far as there are any. If the point is not better,
    the parabola through its change on the judges, with the curvature that the sample shows, says where on the line F
    is lower: a direction that has any slope leads down.

    Arguments
    ---------
    sample: the components on which the point was found.
    at: the point, and the sample's values there.
    calls: float, about how many calls the judgement may cost; it costs at most half of those that are left.

    Returns
    -------
    bool: whether the run has moved.
    """
    context = sample.context
    here = context.theta
    rounds = SETTINGS.judged_points if here is context.theta0 else SETTINGS.judged_points + 1
    budget = max(calls, rounds * SETTINGS.judges)
    size = int(min(budget / 2, SETTINGS.judge_share * context.left / 2))
    if size > context.n / 2 and SETTINGS.judged_points * context.n <= SETTINGS.judge_share * 2 * context.left:
        size = context.n
    size = min(size, context.n)
    if size < min(SETTINGS.judges, context.n):
        return False
    judges = sample.order[::-1][:size]
    base = yield from values_here(context, judges)
    change = (yield from context.values([at.theta], judges))[0] - base
    if lower(sample, change):
        move_to(context, at.theta, base, change)
        return True
    middle = context.inside(0.5 * (here + at.theta))
    own = yield from values_here(context, sample.components)
    half = (yield from sample.values([middle]))[0]
    bend = float((own - 2 * half + at.values).mean()) / 0.5**2
    slope = float(change.mean()) - 0.5 * bend
    t = -slope / bend if bend > 0 else -np.sign(slope)
    theta = context.H(here + float(np.clip(t, -1, 1)) * (at.theta - here))
    if size > context.left:
        return False
    change = (yield from context.values([theta], judges))[0] - base
    if lower(sample, change):
        move_to(context, theta, base, change)
        return True
    return False


def values_here(context: Context, of: Indices) -> Generator[Probes, Answers, Array]:
    """Return the values of components where the run stands; at the start each is asked for once only."""
    if context.theta is context.theta0:
        return (yield from context.starts(of))
    return np.asarray((yield from context.values([context.theta], of))[0])


def lower(sample: ComponentSample, change: Array) -> bool:
    """Whether the mean of changes of some components is negative beyond chance, by Student's test."""
    if change.size >= sample.order.size:
        return float(change.mean()) < -SETTINGS.significance * sample.error(change)
    quantile = -float(stdtrit(max(change.size - 1, 1), ndtr(-SETTINGS.significance)))
    return float(change.mean()) < -quantile * sample.error(change)


def move_to(context: Context, theta: Array, base: Array, change: Array) -> None:
    """Move the run to a better point, where components with these values have been seen to change by so much."""
    fun = float((base + change).mean()) if change.size == context.n else None
    context.move(theta, fun, context.fall - float(change.mean()))
