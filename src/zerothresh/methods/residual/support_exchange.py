"""Other supports: proposed by the linearised model, their columns refreshed, and confirmed by runs."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.residual.linearised import Linearised
from zerothresh.methods.residual.residual_settings import EXCHANGE, STEP
from zerothresh.methods.residual.support_descent import SupportDescent
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Tried = Generator[Probes, Answers, bool]


def descend(
    state: Linearised, most: int, least_gain: float = STEP.least_gain, *, confirm: bool = False, crawl: float = 0.0
) -> Generator[Probes, Answers, str]:
    """Make steps on the present support, and move to where they lead; return why they ended."""
    descent = SupportDescent(state, state.support)
    reason = yield from descent.iterate(most, least_gain, confirm, crawl)
    state.take(descent.at, descent.S, descent.known)
    return reason


def first_fit(state: Linearised) -> Tried:
    """Move to the sparse minimiser of the linearised model, damped until F falls; idle workers try more damping."""
    dampings = _dampings(state)
    at_once = max(state.width - state.choice.k, 1)  # beside the columns of the first of them
    for begin in range(0, len(dampings), at_once):
        fits = [_damped_fit(state, damping) for damping in dampings[begin : begin + at_once]]
        if np.array_equal(fits[0], state.at.x):
            return False
        run, beside = yield from state.trial(fits[0], state.support_of(fits[0]), fits[1:])
        if run.f < state.at.f:
            state.move(run, beside)
            return True
    return False


def _damped_fit(state: Linearised, damping: float) -> Array:
    """Return the sparse minimiser of the linearised model, which is searched for thoroughly without damping."""
    restarts = EXCHANGE.few_restarts if damping > 0 else EXCHANGE.first_restarts
    return state.fits(state.J, restarts, damping=damping)[0][1]


def _dampings(state: Linearised) -> list[float]:
    """Return none, and then more and more."""
    typical = float(np.median(np.einsum("ij,ij->j", state.J, state.J) / state.D**2))
    dampings = [0.0]
    while len(dampings) < EXCHANGE.damping_rounds:
        dampings.append(max(EXCHANGE.damping_growth * dampings[-1], EXCHANGE.damping * typical))
    return dampings


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
    saved, (run, beside) = state.saved(), (yield from state.trial(y, state.support_of(y)))
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
    """Search from a random half of the support, without the others; the columns are those of the best point."""
    best, S = state.saved(), state.support
    before = state.at.f
    units = np.array(state.choice.units(S))
    while state.restarts < tries and units.size > 1 and state.returns < EXCHANGE.returns:
        state.restarts += 1
        dropped = np.setdiff1d(units[2 * state.context.rng.uniform(units.size) < 1], state.choice.forced)
        if not dropped.size:
            continue
        J = state.J.copy()
        J[:, state.choice.coordinates(dropped)] = 0.0
        kept = state.choice.coordinates(np.setdiff1d(units, dropped))
        others = [y for _, y in state.fits(J, EXCHANGE.few_restarts, [kept]) if _name(state, y) not in state.tabu]
        if not others:
            continue
        state.tabu.add(_name(state, others[0]))
        run = (yield from state.runs([others[0]]))[0]
        if run.f > EXCHANGE.hopeless * state.start:
            continue
        state.move(run)
        for _ in range(EXCHANGE.rounds):
            yield from descend(state, STEP.burst)
            if state.at.f < EXCHANGE.least_promise * before or not (yield from exchange(state, EXCHANGE.least_promise)):
                break
        if state.at.f < EXCHANGE.least_promise * before:
            state.returns = 0
            return True
        state.returns += np.array_equal(state.support, S)
        state.restore(best)
    return False


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
