"""Sparse Gauss-Newton, where one run returns all outputs: F = mean loss(r_i(x)), with at most k non-zeros.

Read this file from top to bottom, then `support_descent.py` and `support_exchange.py`.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.methods.residual.first_look import first_columns, look
from zerothresh.methods.residual.linearised import Linearised
from zerothresh.methods.residual.residual_settings import EXCHANGE, STEP, UNKNOWN
from zerothresh.methods.residual.support_descent import SupportDescent
from zerothresh.methods.residual.support_exchange import descend, exchange, first_fit, restart, start_anew
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

# Steps on a support: how many, whether the minimum is confirmed by new columns, and what another support must promise.
IMPROVEMENTS = (
    (STEP.burst, False, EXCHANGE.promise),
    (STEP.to_minimum, False, EXCHANGE.promise),
    (STEP.to_minimum, True, EXCHANGE.least_promise),
)
EARLY = ((1, False, EXCHANGE.promise),) * STEP.burst  # the same steps, with a look at other supports after each
Certified = Generator[Probes, Answers, bool]
Asked = Generator[Probes, Answers, None]


def gauss_newton(state: Linearised) -> Certified:
    """Search; return whether the outputs are matched up to their noise, so that nothing is left to gain."""
    yield from first_support(state)
    if state.done or state.fixed.all() or not np.isfinite(state.at.f):
        return state.done or bool(state.fixed.all())
    if state.choice.everything:
        return (yield from fit_all(state))
    while not state.done and state.support.size:
        if not (yield from improve(state)):
            yield from descend(state, STEP.unlimited, STEP.last_gain, confirm=True)
            break
    return state.done


def first_support(state: Linearised) -> Asked:
    """Measure the columns at the start, and move to a first support; there is none if no step lowers F."""
    context = state.context
    context.stage("columns")
    yield from state.begin(context.theta)
    if state.done or state.fixed.all() or not np.isfinite(state.at.f):
        return
    yield from first_columns(state)
    if not state.J.any():
        context.remark(_silence(state))
    if state.choice.everything:
        return
    context.stage("support")
    if not state.at.x.any() or not (yield from exchange(state, EXCHANGE.least_promise)):
        if not state.at.x.any():
            yield from first_fit(state)


def _silence(state: Linearised) -> str:
    """Return a sentence for outputs that no column changes."""
    if (state.age[~state.fixed] < UNKNOWN).any():
        return "The outputs did not change along any coordinate: check that the function uses x."
    return "The budget is too small to measure a single column."


def fit_all(state: Linearised) -> Certified:
    """Minimise over all coordinates, from the start and then from random points."""
    state.context.stage("steps")
    while True:
        reason = yield from descend(state, STEP.unlimited, STEP.last_gain, confirm=True, crawl=STEP.crawl)
        if not state.done and not state.looked:
            yield from look(state)
            if state.noise > 0:
                yield from state.columns(np.flatnonzero(~state.fixed))
                state.set_metric()
                continue
        state.context.stage("restarts")
        if state.done or not (yield from start_anew(state)):
            if reason == "crawl":
                yield from descend(state, STEP.unlimited, STEP.last_gain, confirm=True)
            return state.done


def improve(state: Linearised) -> Certified:
    """Go on from the present support; return False if nothing better was found.

    Cheap moves come first: a few steps; another support that promises much; steps to the minimum; any better support;
    a few restarts if columns are dear; then all old columns anew, exchanges, and restarts.
    """
    wide = state.choice.k < state.width and state.noise == 0  # columns that may be wanted next are then at hand
    for most, confirm, promise in (*EARLY, *IMPROVEMENTS) if wide else IMPROVEMENTS:
        reason = yield from descend(state, most, confirm=confirm)
        if not state.done and reason == "most" and SupportDescent(state, state.support).promise() < EXCHANGE.content:
            continue
        if state.done or (yield from exchange(state, promise if reason == "most" else EXCHANGE.least_promise)):
            return True
    if reason == "most":
        return True
    if (yield from restart_early(state)):
        return True
    if not state.looked:
        yield from look(state)
    if (yield from refresh(state)):
        return True
    return (yield from restart(state, EXCHANGE.restarts))


def refresh(state: Linearised) -> Certified:
    """Measure old columns anew, the most promising first, until another support comes below the present one."""
    old = state.old_columns()
    if not np.setdiff1d(old, state.support).size or old.size >= state.context.left:
        return False
    old = old[np.argsort(-state.gains_at(state.at.x)[old], kind="stable")]
    at_once = max(EXCHANGE.batch * state.choice.k, state.width)
    for begin in range(0, old.size, at_once):
        yield from state.columns(old[begin : begin + at_once])
        if (yield from exchange(state, EXCHANGE.least_promise)):
            return True
    state.set_metric()
    return (yield from exchange(state, EXCHANGE.least_promise))


def restart_early(state: Linearised) -> Certified:
    """Restart a few times before old columns are measured anew, once per run, if that would cost more."""
    if state.at.x.size <= EXCHANGE.wide or state.restarted_early:
        return False
    improved = yield from restart(state, EXCHANGE.early_restarts)
    state.restarted_early = not improved
    return improved
