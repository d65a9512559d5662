"""The first runs: the length of coordinates, the noise of the outputs, and the columns at the start."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.residual.column_groups import (
    grouped_columns,
    groups_fit,
    measured,
    of_runs,
    random_parts,
    shifted,
)
from zerothresh.methods.residual.jacobians.output_noise import Rung, best_rung, ends, like_noise, noise_below
from zerothresh.methods.residual.linearised import Evaluated, Linearised
from zerothresh.methods.residual.nothing_left import within_noise
from zerothresh.methods.residual.residual_settings import LOOK, TINY, UNKNOWN
from zerothresh.methods.residual.wide_columns import wide_columns, wide_groups_fit
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Asked = Generator[Probes, Answers, None]
Begun = tuple[Array, Sequence[Evaluated]]  # the signs of a direction, and runs after one and two steps along it
NONE = np.empty(0, np.int64)


def direction(state: Linearised) -> Array:
    """Return random signs of the free coordinates, along which to look."""
    return np.where(state.fixed, 0.0, np.where(2 * state.context.rng.uniform(state.fixed.size) < 1, -1.0, 1.0))


def along(state: Linearised, x: Array, signs: Array, step: float) -> list[Array]:
    """Return the points one and two steps, which are given in lengths, from x."""
    shift = step * state.length * signs
    return [state.choice.moved(x, shift), state.choice.moved(x, 2 * shift)]


def look(state: Linearised, early: Indices = NONE, begun: Begun | None = None) -> Asked:
    """Find the length of a typical coordinate, the noise of the outputs, and the difference step that both allow.

    Two runs along a random direction show the first and the second difference. The second is small over a short step
    if the outputs are smooth. If not, the step is lengthened until slopes stand out of the noise. The columns ``early``
    are measured along with the first two runs, and count if their changes turn out to be neither small nor large. The
    first two runs may have been made already: ``begun`` are the signs of their direction, and what they returned.
    """
    signs, made = (direction(state), None) if begun is None else begun
    state.looked, first = True, not state.J.any()
    ladder = [(yield from _short_rung(state, signs, early, made))]
    while not ends(ladder) and len(ladder) < LOOK.rungs:
        ladder.append((yield from _rung(state, signs, ladder[-1].step * LOOK.lengthen)))
    best, n, size = best_rung(ladder), state.at.r.size, state.size
    if ladder[best].first > 0 and size > 0 and first:
        slope = ladder[best].first / ladder[best].step / np.sqrt(np.count_nonzero(signs))  # of a typical coordinate
        state.length = state.length * min(size / slope, 1 / TINY)
    if best == 0:
        return
    sigma = noise_below(ladder, best, n)
    state.noise = 2 * n * sigma**2
    state.step = float(np.clip(np.sqrt(LOOK.balance * sigma * np.sqrt(n) / size), LOOK.step, LOOK.longest))
    state.floor = within_noise(state.loss, n, sigma)
    state.context.random = True
    state.context.remark(f"The outputs are noisy: about {sigma * np.sqrt(n) / size:.1g} of those at the start.")


def _rung(
    state: Linearised, signs: Array, step: float, early: Indices = NONE, made: Sequence[Evaluated] | None = None
) -> Generator[Probes, Answers, Rung]:
    """Look along a direction with one and two steps, which are given in lengths."""
    if made is None:
        points = along(state, state.at.x, signs, step)
        made = yield from state.runs([*points, *state.beside(state.at.x, early)])
    near, far, *others = made
    clear = [is_clear(state, run) for run in others]
    state.differ(early[clear], [run for run, good in zip(others, clear, strict=True) if good])
    if not np.isfinite(near.f + far.f):
        return Rung(step, 0.0, np.inf)
    first = state.change(near)
    return Rung(step, float(np.linalg.norm(first)), float(np.linalg.norm(state.change(far) - 2 * first)))


def is_clear(state: Linearised, run: Evaluated) -> bool:
    """Whether the outputs have changed by neither too little nor too much for a difference."""
    change = float(np.linalg.norm(state.change(run))) / max(state.size, TINY)
    return LOOK.least_change < change < LOOK.most_change


def _short_rung(
    state: Linearised, signs: Array, early: Indices, made: Sequence[Evaluated] | None
) -> Generator[Probes, Answers, Rung]:
    """Return a rung whose step changes the outputs, but little; the unit of x is found on the way, if it is another."""
    rung, longer = (yield from _rung(state, signs, state.step, early, made)), False
    for _ in range(LOOK.rescalings):
        change = rung.first / max(state.size, TINY)
        if change < LOOK.least_change:
            rung, longer = (yield from _rung(state, signs, rung.step * LOOK.rescaling)), True
        elif rung.smooth or longer or change < LOOK.most_change:
            break
        else:
            shorter = yield from _rung(state, signs, rung.step / LOOK.rescaling)
            if shorter.first > rung.first / np.sqrt(LOOK.rescaling):  # it does not fall with the step: this is noise
                break
            rung = shorter
    return rung


def first_columns(state: Linearised) -> Asked:
    """Look for noise, and measure all columns.

    If the look would cost a good part of the columns, they are measured first, and it is only made if they are like
    noise, or if their steps were too long.
    """
    free = np.flatnonzero(~state.fixed)
    ahead = LOOK.share * free.size >= 2
    if ahead and wide_groups_fit(state, free):
        yield from _opened(state, free)
        return
    if ahead:
        idle = 0 if groups_fit(state, free) else max(state.width - 2, 0)
        yield from look(state, free[:idle])
    if groups_fit(state, free):
        state.D = 1 / state.length  # until columns tell
        yield from grouped_columns(state, free)
        if state.done:
            return
    else:
        yield from state.columns(free[state.age[free] > 0] if state.noise == 0 else free)
    if not ahead and _suspect(state, free):
        yield from look(state)
        if state.noise > 0:  # otherwise the step is as it was, and the same points would be paid for again
            yield from state.columns(free)
    yield from _finished(state, free)


def _opened(state: Linearised, free: Indices) -> Asked:
    """Look and measure groups of columns in one round, and then the other columns in full rounds."""
    signs, x = direction(state), state.at.x
    looks = along(state, x, signs, state.step)
    parts = random_parts(state, free, state.width - len(looks))
    near, far, *others = yield from state.runs([*looks, *(shifted(state, x, part) for part in parts)])
    clear = all(is_clear(state, run) for run in others)
    yield from look(state, begun=(signs, (near, far)))
    if state.noise > 0:
        yield from state.columns(free)
    else:
        groups = of_runs(state, parts, others) if clear else (yield from measured(state, parts))
        yield from wide_columns(state, groups)
        if state.done:
            return
    yield from _finished(state, free)


def _finished(state: Linearised, free: Indices) -> Asked:
    yield from _lengthen_silent(state, free)
    state.set_metric()


def _suspect(state: Linearised, free: Indices) -> bool:
    """Whether the columns may be noise, or come from steps that were too long."""
    changes = state.J[:, free] * (state.step * state.length[free])
    most = float(np.linalg.norm(changes, axis=0).max(initial=0.0))
    return most > LOOK.most_change * state.size or like_noise(changes)


def _lengthen_silent(state: Linearised, free: Indices) -> Asked:
    """Measure columns that showed nothing with longer steps, unless a long step along all of them shows nothing."""
    known = free[state.age[free] < UNKNOWN]
    changes = np.linalg.norm(state.J[:, known], axis=0) * (state.step * state.length[known])
    silent = known[changes < LOOK.silent * state.size]
    if not silent.size or state.noise > 0:
        return
    shift = np.zeros(state.at.x.size)
    shift[silent] = LOOK.rescaling * state.step * state.length[silent]
    run = (yield from state.runs([state.choice.moved(state.at.x, shift)]))[0]
    if np.linalg.norm(state.change(run)) > LOOK.silent * state.size:
        state.length[silent] *= LOOK.rescaling
        yield from state.columns(silent)
