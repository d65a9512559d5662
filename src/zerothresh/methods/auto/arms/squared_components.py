"""The arm for sums of squares: components whose roots are smooth, asked for one by one."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.moves.component_roots import ComponentRoots
from zerothresh.methods.auto.moves.trusted_search import trusted
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.outputs_settings import OUTPUTS
from zerothresh.methods.auto.settings.squares_settings import SQUARES
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.residual.linearised import Linearised
from zerothresh.methods.residual.sparse_gauss_newton import first_support, fit_all, improve
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class SquaredComponents:
    """Gauss-Newton on the roots of the components, where these are squares of smooth functions above one level.

    A value of F is one run, as if it returned all residuals: the Jacobian of the roots learns from every step, where a
    descent measures slopes again. Whether components are squares shows at the start: the minima of a few of them along
    their gradients, which the single index has asked for, then lie at the same level, which no value is below.
    """

    name: ClassVar[str] = "squared components"
    decisive: ClassVar[bool] = True

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether there are enough smooth components without noise, and calls for their slopes and some steps."""
        smooth = not (diagnosis.rough or diagnosis.kink or diagnosis.random)
        plain = context.constraint.further is None and context.constraint.groups is None and not context.has_outputs
        enough = SQUARES.fewest <= context.n <= SQUARES.most_per_nonzero * context.k and context.free().size > 0
        return smooth and plain and enough and self.forecast(context, diagnosis) <= context.left

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return the calls of all columns, and of some steps on the support."""
        return context.n * (context.free().size + OUTPUTS.steps * context.k)

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        if not (yield from _are_squares(context, diagnosis)):
            return Ended("The components are not squares above one level.")
        if context.theta is context.theta0:
            values = yield from context.starts(context.everything)
        else:
            values = (yield from context.values([context.theta]))[0]
        context.confirmed = True
        context.remark("The components look like squares; their roots are linearised.")
        search = _RootSearch(context, values)
        patience = self.forecast(context, diagnosis)
        _, why = yield from trusted(search.moves(), context, patience, lambda: search.state.predictions.truth)
        if why:
            return Ended(f"The linear model of the roots predicts badly: {why}.")
        return Ended("No exchange and no restart that the linear model suggests lowers F any more.")


def _are_squares(context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, bool]:
    """Whether the minima of a few components along their gradients lie where the lowest values at the start are."""
    values = yield from context.starts(context.everything)
    free, known = context.free(), context.remembered_gradients()
    tested = np.array(sorted(known), np.int64)[: SQUARES.tested]
    if tested.size < SQUARES.least_tested:
        return False
    G = np.array([known[i] for i in tested.tolist()])
    norms, f = np.linalg.norm(G, axis=1), values[tested]
    moves = np.zeros((tested.size, context.d))
    moves[:, free] = -SQUARES.test_step * diagnosis.gradient_length(context.d) * G / np.maximum(norms, TINY)[:, None]
    points = context.inside(context.theta0 + moves)
    linear = np.einsum("rc,rc->r", (points - context.theta0)[:, free], G)
    bends = (yield from context.each(points, tested)) - f - linear
    clear = (bends > diagnosis.noise) & (linear < 0)
    if 2 * np.count_nonzero(clear) <= tested.size:
        return False
    minima = f[clear] - (0.5 * linear[clear]) ** 2 / bends[clear]
    level = float(values.min())
    height = float(np.median(f[clear])) - level
    return float(np.median(np.abs(minima - level))) < SQUARES.same_minimum * height


class _RootSearch:
    """A Gauss-Newton search on the roots, with a level that follows the lowest values."""

    def __init__(self, context: Context, values: Array) -> None:
        self.context, self.runs = context, ComponentRoots(context, values)
        self.state = Linearised(cast(Context, self.runs), self.runs.width)

    def moves(self) -> Asks:
        """Find a support, and go on from it; between two moves, the level may follow the values."""
        state, runs = self.state, self.runs
        runs.expect = self._expected
        yield from first_support(state)
        if state.choice.everything:
            yield from fit_all(state)
        while state.support.size:
            if runs.stale:
                self._use_new_level()
            if (state.done or not (yield from improve(state))) and not runs.stale:
                return

    def _expected(self, x: Array) -> Array:
        """Return the roots that the linear model expects at a point; zeros before the first run."""
        state, at = self.state, getattr(self.state, "at", None)
        return np.zeros(self.context.n) if at is None else np.asarray(at.r + state.J @ (x - at.x))

    def _use_new_level(self) -> None:
        """Tell the roots and their slopes from another level: the slope of f_i stays what it was."""
        state, old, before = self.state, self.state.at.r, self.runs.level
        self.runs.level = self.runs.likely_level
        r = np.sqrt(np.maximum(old**2 + before - self.runs.level, TINY)) * np.where(old < 0, -1.0, 1.0)
        ratio = (old / r)[:, None]
        state.J, state.measured = state.J * ratio, state.measured * ratio
        state.at = replace(state.at, r=r, f=float(r @ r))
        state.best = min(state.best, state.at.f)
        state.tabu.clear()
