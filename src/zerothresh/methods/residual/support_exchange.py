"""Other supports: proposed by the linearised model, their columns refreshed, and confirmed by runs."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.residual.jacobians.loss_weights import slopes
from zerothresh.methods.residual.linearised import Linearised
from zerothresh.methods.residual.residual_settings import EXCHANGE, STEP
from zerothresh.methods.residual.support_descent import SupportDescent
from zerothresh.methods.residual.trials import trial
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Tried = Generator[Probes, Answers, bool]


def descend(
    state: Linearised, most: int, least_gain: float = STEP.least_gain, *, confirm: bool = False, crawl: float = 0.0
) -> Generator[Probes, Answers, str]:
    """Make steps on the present support, and move to where they lead; return why they ended.

    Steps that were interrupted go on as if they had not been: what the last ones showed of the radius still holds.
    """
    descent: SupportDescent | None = state.interrupted
    if descent is None or descent.at is not state.at or not np.array_equal(descent.S, state.support):
        descent = SupportDescent(state, state.support)
    else:
        descent.resume()
    reason = yield from descent.iterate(most, least_gain, confirm, crawl)
    state.take(descent.at, descent.S, descent.known)
    state.interrupted = descent if reason == "most" else None
    return reason


def first_fit(state: Linearised) -> Tried:
    """Move to a sparse minimiser of the linearised model, or towards it: the robust one, or that of F itself.

    F falls along the way to that of F; if it does not along the way to the robust one, this asks for no run.
    """
    x, restarts = state.at.x, EXCHANGE.first_restarts
    downhill = slopes(state.loss, state.at.r) @ state.J
    for fit in (state.far_fit, lambda restarts: state.fits(state.J, restarts)[0][1]):
        way = fit(restarts) - x
        if downhill @ way < 0 and (yield from _approach(state, way)):
            return True
    return False


def _approach(state: Linearised, way: Array) -> Tried:
    """Move along a way until F is lower; idle workers try shorter steps."""
    x, at_once = state.at.x, max(state.width - state.choice.k, 1)  # beside the columns at the first of them
    points = [x + EXCHANGE.shorter**i * way for i in range(EXCHANGE.shortenings)]
    for begin in range(0, len(points), at_once):
        first, *others = points[begin : begin + at_once]
        run, beside = yield from trial(state, first, state.support_of(first), others)
        if run.f < state.at.f:
            state.move(run, beside)
            return True
    return False


def exchange(state: Linearised, promise: float) -> Tried:
    """Move to another support if the model promises F below ``promise`` of the present one, and runs confirm it."""
    J, present = state.scaled_columns(), _name(state, state.at.x)
    fresh: set[int] = set(present)
    candidates: list[tuple[float, Array]] = []
    for _ in range(EXCHANGE.rounds):
        below = state.at.f * promise - EXCHANGE.noise * state.spread(state.at.f)
        fits = state.fits(J, EXCHANGE.model_restarts, [state.support])
        candidates = [fit for fit in fits if fit[0] < below and not _known(state, fit[1], present)]
        if not candidates:
            return False
        entering = [j for j in _name(state, candidates[0][1]) if j not in fresh and state.age[j] > state.fresh_age[j]]
        if not entering:
            break
        if state.choice.k < state.width and state.noise == 0:  # their columns come along with a run that may do
            y = candidates[0][1]
            run, beside = yield from trial(state, y, state.support_of(y))
            if run.f < state.at.f:
                state.move(run, beside)
                return True
        yield from state.columns(np.array(entering))
        J[:, entering] = state.J[:, entering]
        fresh.update(entering)
    for _, y in candidates[: EXCHANGE.trials]:
        if (yield from _try(state, y)):
            return True
    return False


def _name(state: Linearised, y: Array) -> tuple[int, ...]:
    return tuple(np.flatnonzero(y).tolist())


def _known(state: Linearised, y: Array, present: tuple[int, ...]) -> bool:
    """Whether a support is the present one, or was tried before."""
    name = _name(state, y)
    return name == present or name in state.tabu


def _try(state: Linearised, y: Array) -> Tried:
    """Move to a point of another support if F is lower there, or after a few steps from there."""
    saved, (run, beside) = state.saved(), (yield from trial(state, y, state.support_of(y)))
    if run.f < state.at.f:
        state.move(run, beside)
        return True
    if run.f < EXCHANGE.hopeless * state.start:
        before = state.at.f
        state.move(run, beside)
        yield from descend(state, STEP.trial)
        if state.at.f < before:
            return True
        state.restore(saved)
    state.tabu.add(_name(state, y))
    return False


def restart(state: Linearised, tries: int) -> Tried:
    """Search from the far fit, and then from random halves of the support, by the columns of the best point."""
    best, S = state.saved(), state.support
    far = state.far_fit(EXCHANGE.model_restarts)
    before = state.at.f
    units = np.array(state.choice.units(S))
    while max(state.restarts, state.refused) < tries and units.size > 1 and state.returns < EXCHANGE.returns:
        state.refused += 1  # unless it turns out to be worth following
        y = _elsewhere(state, units) if _known(state, far, _name(state, state.at.x)) else far
        if y is None:
            continue
        state.tabu.add(_name(state, y))
        run = (yield from state.runs([y]))[0]
        if run.f > state.start:  # the linear model does not reach so far
            continue
        state.refused, state.restarts = state.refused - 1, state.restarts + 1
        state.move(run)
        for _ in range(EXCHANGE.rounds):
            yield from descend(state, STEP.burst)
            if state.at.f < EXCHANGE.least_promise * before or not (yield from exchange(state, EXCHANGE.least_promise)):
                break
        if state.at.f < EXCHANGE.least_promise * before:
            state.restarts, state.refused, state.returns = 0, 0, 0
            return True
        state.returns += np.array_equal(state.support, S)
        state.restore(best)
    return False


def _elsewhere(state: Linearised, units: Indices) -> Array | None:
    """Return the best fit that is new and does without a random half of some units; None if there is none."""
    dropped = np.setdiff1d(units[2 * state.context.rng.uniform(units.size) < 1], state.choice.forced)
    if not dropped.size:
        return None
    J = state.J.copy()
    J[:, state.choice.coordinates(dropped)] = 0.0
    kept = state.choice.coordinates(np.setdiff1d(units, dropped))
    fits = state.fits(J, EXCHANGE.few_restarts, [kept])
    return next((y for _, y in fits if _name(state, y) not in state.tabu), None)


def start_anew(state: Linearised) -> Tried:
    """Search from random points of the size of the start, where the support is not in question."""
    best, before, spread = state.saved(), state.at.f, 1.0
    size = np.maximum(np.abs(state.context.theta0), state.length)
    while state.restarts < EXCHANGE.restarts and state.returns < EXCHANGE.returns:
        state.restarts += 1
        start = state.context.theta0 + spread * size * state.context.rng.normal(size.size)
        start[state.fixed] = 0.0
        state.at = (yield from state.runs([np.clip(start, state.choice.low, state.choice.high)]))[0]
        if not state.at.f < EXCHANGE.hopeless * state.start:
            spread *= STEP.shrink
        else:
            yield from state.columns(np.flatnonzero(~state.fixed))
            yield from descend(state, STEP.unlimited, confirm=True)
            if state.at.f < EXCHANGE.least_promise * before:
                state.returns = 0
                return True
            state.returns += state.at.f * EXCHANGE.least_promise < before
        state.restore(best)
    return False
