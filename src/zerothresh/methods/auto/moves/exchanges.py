"""Exchanges of one coordinate of the support for another one, in the order that the model prefers."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.moves.newton_steps import refine_trial
from zerothresh.methods.auto.position import Position
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.support_search_settings import SUPPORT_SEARCH
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def try_point(at: Position, point: Array) -> Generator[Probes, Answers, bool]:
    """Minimise F on the support of a point; the position moves there if that lowers F, and else stays.

    Arguments
    ---------
    at: where the descent stands.
    point: array of shape (d,), feasible.

    Returns
    -------
    bool: whether F is lower.
    """
    values = yield from at.values_at(point)
    if at.oracle.coarse:  # slopes say little here, and values are cheap
        if float(values.mean()) < at.F - at.oracle.noise_margin:
            at.accept(point, values)
            return True
        return False
    theta, before, F, decrease = at.theta, at.values, at.F, at.total_decrease
    at.go(point, values)
    yield from refine_trial(at, F)
    if F - at.negligible > at.F:
        at.total_decrease = decrease + F - at.F
        at.report()
        return True
    at.total_decrease = decrease
    at.go(theta, before)
    at.report()
    return False


def trial_cost(at: Position) -> int:
    """Return the number of calls that should be left before an exchange is tried."""
    values = 2 if at.oracle.coarse else 2 * at.context.k + DESCENT.trial_steps
    return at.oracle.value_cost * values


def _candidates(at: Position, g: Array, count: int) -> list[Array]:
    """Return what the model prefers: exchanges of one coordinate and its minima from random supports, in turn.

    A model that has not learnt from the gradients of many components knows too little about other supports.
    """
    rng, k, c = at.context.rng, min(at.context.k, at.C.size), at.C.size
    include = at.context.constraint.include
    near = at.model.exchanges(at.theta, g, at.C, count, include)
    learnt = bool(len(at.secants)) and at.oracle.m >= at.context.k and bool(near)
    starts = [rng.subset(c, k) for _ in range(SUPPORT_SEARCH.model_starts)] if learnt else []
    far = at.model.other_supports(at.theta, g, at.C, starts, include)[: len(near)]
    mixed = [point for pair in zip(far, near, strict=False) for point in pair]
    return mixed + near[len(far) :]


def try_exchanges(at: Position, g: Array, count: int, tried: set[bytes]) -> Generator[Probes, Answers, bool]:
    """Try the exchanges that the model prefers; the position moves to the first one that lowers F.

    Arguments
    ---------
    at: where the descent stands.
    g: array of shape (c,), the gradient there.
    count: int, how many exchanges to try.
    tried: the supports that have been tried; those tried here are added.

    Returns
    -------
    bool: whether F is lower.
    """
    if at.context.constraint.groups is not None:
        return False
    remaining = count * (DESCENT.coarse_exchanges if at.oracle.coarse else 1)
    candidates = DESCENT.exchange_candidates * remaining
    for point in _candidates(at, g, candidates):
        support = np.flatnonzero(point).tobytes()
        if support in tried or remaining == 0:
            continue
        tried.add(support)
        remaining -= 1
        if at.calls_available < trial_cost(at):
            return False
        if (yield from try_point(at, at.context.H(point))):
            return True
    return False
