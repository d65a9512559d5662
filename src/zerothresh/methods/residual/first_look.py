"""The first look: are the outputs smooth over a short step, how long is a coordinate, and how strong is the noise?"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.residual.jacobians.output_noise import Rung, best_rung, ends, noise_below
from zerothresh.methods.residual.linearised import Linearised
from zerothresh.methods.residual.residual_settings import LOOK, TINY
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def look(state: Linearised) -> Generator[Probes, Answers, None]:
    """Find the length of a typical coordinate, the noise of the outputs, and the difference step that both allow.

    Two runs along a random direction show the first and the second difference. The second is small over a short step
    if the outputs are smooth. If not, the step is lengthened until slopes stand out of the noise.
    """
    free = state.choice.high > state.choice.low
    signs = np.where(state.context.rng.uniform(free.size) < 0.5, -1.0, 1.0) * free
    rung = yield from _unit(state, signs)
    ladder = [rung]
    while not ends(ladder) and len(ladder) < LOOK.rungs:
        ladder.append((yield from _rung(state, signs, ladder[-1].step * LOOK.lengthen)))
    best = best_rung(ladder)
    rung, size = ladder[best], float(np.linalg.norm(np.nan_to_num(state.at.r)))
    if rung.first > 0 and size > 0:
        slope = rung.first / rung.step / np.sqrt(np.count_nonzero(free))  # over a typical coordinate
        state.length = state.length * min(size / slope, 1 / TINY)
    if best > 0:
        sigma, n = noise_below(ladder, best, state.at.r.size), state.at.r.size
        state.noise = 2 * n * sigma**2
        state.step = float(np.clip(np.sqrt(LOOK.balance * sigma * np.sqrt(n) / size), LOOK.step, LOOK.longest))
        level = n * sigma**2 if state.loss is None else float(np.sum(state.loss.value(np.full(n, sigma))))
        state.goal = max(state.goal, level * (1 + LOOK.deviations * np.sqrt(2 / n)))
        state.context.random = True
        state.context.remark(f"The outputs are noisy: about {sigma / size * np.sqrt(n):.1g} of those at the start.")


def _rung(state: Linearised, signs: Array, step: float) -> Generator[Probes, Answers, Rung]:
    """Look along a direction with steps of one and two ``step`` in lengths."""
    shift = step * state.length * signs
    near, far = yield from state.runs([state.moved(shift), state.moved(2 * shift)])
    first, second = state.change(near), state.change(far) - 2 * state.change(near)
    if not np.isfinite(near.f + far.f):
        return Rung(step, 0.0, np.inf)
    return Rung(step, float(np.linalg.norm(first)), float(np.linalg.norm(second)))


def _unit(state: Linearised, signs: Array) -> Generator[Probes, Answers, Rung]:
    """Return the rung from which the ladder starts: its step changes the outputs, but little."""
    size = float(np.linalg.norm(np.nan_to_num(state.at.r)))
    step, longer = state.step, False
    rung = yield from _rung(state, signs, step)
    for _ in range(LOOK.rescalings):
        change = rung.first / max(size, TINY)
        if rung.first > 0 and (rung.smooth and change >= LOOK.least_change or change < LOOK.most_change and not rung.smooth):
            break
        factor = LOOK.step / LOOK.most_change * LOOK.step if False else LOOK.most_change / LOOK.least_change
        if change < LOOK.least_change:
            step, longer = step * factor, True
            rung = yield from _rung(state, signs, step)
            continue
        if longer:
            break
        shorter = yield from _rung(state, signs, step / factor)
        if not shorter.first < rung.first / np.sqrt(factor):  # the change does not fall with the step: noise
            break
        step, rung = step / factor, shorter
    return rung
