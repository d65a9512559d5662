"""Local descent for black boxes of unknown form: differences along coordinates, and a quasi-Newton model.

A gradient over all coordinates costs n d calls and is asked for rarely: it picks the support. On the support a
gradient costs n k calls, and quasi-Newton steps minimise F there. If there are many components, the descent begins
with a few of them and uses more as it makes progress. At a local minimum, exchanges of one coordinate are tried.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.arms.support_search import SupportSearch
from zerothresh.methods.auto.findings import Diagnosis
from zerothresh.methods.auto.moves.derivative_free import evolve_on_support
from zerothresh.methods.auto.moves.exchanges import try_exchanges
from zerothresh.methods.auto.moves.newton_steps import Cycle, converging_steps, newton_steps
from zerothresh.methods.auto.moves.promising_step import promising_step
from zerothresh.methods.auto.moves.response_surface import ResponseSurface
from zerothresh.methods.auto.moves.support_step import SupportStep
from zerothresh.methods.auto.oracle_kinds import NoisyOracle, component_order, few_components, for_kinks, oracle_for
from zerothresh.methods.auto.position import Position
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.program.context import Asks, Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

_BUDGET_SPENT = "The budget is spent."


@dataclass(frozen=True)
class LocalDescent:
    """Descend to a point that no exchange of one coordinate improves, then search other supports.

    It never ends by itself, unless every support has been tried.

    >>> LocalDescent().name
    'local descent'
    """

    name: ClassVar[str] = "local descent"
    decisive: ClassVar[bool] = False

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether something is free, and the budget covers a few gradients of some components and a judgement.

        A few components per coordinate of a support determine it; with fewer, a search for slopes is worth more, unless
        there are groups, which it does not support.
        """
        per_support = DESCENT.components_per_coordinate * context.k if context.constraint.groups is None else 0
        free, first = context.free().size, min(context.n, max(DESCENT.least_components, per_support))
        judgement = 0 if first == context.n else 2 * context.n
        return free > 0 and context.left >= DESCENT.min_gradients * first * (free + 2) + judgement

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return the calls of a gradient of F, or of the first gradient if it takes two sides, and of some steps."""
        oracle = oracle_for(context, diagnosis, context.everything).with_components(few_components(context))
        first = oracle.gradient_cost(context.free().size) + DESCENT.judged_steps * oracle.gradient_cost(context.k)
        return max(first, context.n * (context.free().size + DESCENT.judged_steps * (context.k + 1)))

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        """Descend, then search on from there."""
        descent = Descent(context, diagnosis)
        context.remark((yield from descent.search()))
        return (yield from SupportSearch(descent).search())


class Descent:
    """A descent at work: a position, and the moves that it makes.

    Arguments
    ---------
    context: the run.
    diagnosis: what the first calls found.
    exchanges: int, how many exchanges of one coordinate are tried at a local minimum.
    """

    def __init__(self, context: Context, diagnosis: Diagnosis, *, exchanges: int = DESCENT.exchanges) -> None:
        self.context, self.exchanges = context, exchanges
        self.at = Position(oracle_for(context, diagnosis, component_order(context)))
        self.support_step = SupportStep()
        self.tried = set[bytes]()  # supports that exchanges have tried
        self.local_minimum: Array | None = None  # the point from which only an exchange may lead further
        self.cycle_rate = math.inf  # fall of F per call in the last cycle of a support step and steps on the support
        self.budget_spent = False  # whether the search ended because of the budget

    def use_components(self, m: int) -> Asks:
        """Use the first m components."""
        if m != self.at.oracle.m:
            self.support_step.reset()
            yield from self.at.use_components(m)

    def search(self) -> Generator[Probes, Answers, str]:
        """Descend to a point that no exchange of one coordinate improves; returns the reason for stopping."""
        at, m = self.at, self._first_components()
        while True:
            yield from self.use_components(max(m, at.oracle.m))
            reason = yield from self.descend()
            if at.complete or self.context.left < at.oracle.m:
                return reason
            m = at.oracle.next_level

    def _first_components(self) -> int:
        """Return how many components to begin with: a few if there are many, fewer if the budget is small."""
        context, at = self.context, self.at
        affordable = context.left / (DESCENT.first_gradients * (at.C.size + 2))
        few = few_components(context)
        if at.theta is not context.theta0:  # a good point is known; a few components must not lead away from it
            few = context.n
        return int(max(1, min(few, context.n, affordable)))

    def resume_after_budget_increase(self) -> Asks:
        """If the budget ended the search, ask for what comes next, so that a larger budget continues the run."""
        while self.budget_spent:
            self.at.discard_gradient()
            self.at.recalling = False  # something must be asked for
            yield from self.descend(ignore_budget=True)

    def _gradient_affordable(self) -> bool:
        """Whether the budget covers a gradient and a value; if not, the search ends because of it."""
        at = self.at
        self.budget_spent = at.calls_available < at.oracle.gradient_cost(at.C.size) + at.oracle.value_cost
        return not self.budget_spent

    def descend(
        self, *, ignore_budget: bool = False, exchanging: bool = True, to_beat: float = math.inf
    ) -> Generator[Probes, Answers, str]:
        """Descend to a local minimum of the components in use; returns the reason for stopping.

        Arguments
        ---------
        ignore_budget: bool, whether the first gradient is asked for even if the budget does not cover it.
        exchanging: bool, whether exchanges are tried at the end.
        to_beat: float, the value of F that must be reached; the descent ends if it makes too little progress for that.
        """
        at = self.at
        moved = at.theta is not self.context.theta0 and at.theta is not self.local_minimum and not at.g.size
        if moved and at.model.scaled and not at.oracle.coarse:
            so_far = Cycle(float(at.start_values.mean()), 0, math.inf)
            yield from newton_steps(
                at, DESCENT.steps_to_adapt, so_far
            )  # to new components, on the present support first
        while True:
            if not self._gradient_affordable() and not ignore_budget:
                return _BUDGET_SPENT
            ignore_budget = False
            rate = yield from promising_step(at, self.support_step, self.cycle_rate)
            if rate is not None:
                self.cycle_rate = rate
                continue
            g = yield from at.full_gradient()
            if at.theta is not self.local_minimum:
                F = at.F
                reason = yield from self._iterate(g)
                if reason:
                    return reason
                if at.F - DESCENT.hopeful_steps * (F - at.F) > to_beat:
                    return "The best value of F is out of reach."
                if at.theta is not self.local_minimum:
                    continue
            if not exchanging:
                return "No step lowers F."
            if not self._gradient_affordable():
                return _BUDGET_SPENT
            g = yield from at.full_gradient()
            improved = yield from try_exchanges(at, g, self.exchanges, self.tried)
            if not improved and not (yield from self._average_more_calls()):
                return "No exchange of one coordinate lowers F."

    def _iterate(self, g: Array) -> Generator[Probes, Answers, str]:
        """Make a step that may change the support, and steps on it; returns a reason to stop, or an empty string."""
        at, F, support = self.at, self.at.F, self.at.theta != 0
        cycle = Cycle(F, self.context.used - at.oracle.gradient_cost(at.C.size), self.cycle_rate)
        yield from self.support_step.search(at, g)
        stepped = at.theta is not at.g_theta
        if stepped:
            settled = np.array_equal(at.theta != 0, support)  # then nothing but convergence is left
            steps = DESCENT.steps if at.complete else DESCENT.steps_on_some
            yield from converging_steps(at, steps, None if settled else cycle)
            self.cycle_rate = cycle.rate(at)
        negligible = at.negligible >= F - at.F
        if negligible and not at.oracle.diagnosis.random:
            at.g_theta = at.theta  # so short a way does not change the gradient
        if not at.complete and (stepped or negligible):
            return "More components are needed."
        if not negligible:
            if isinstance(at.oracle, NoisyOracle):
                at.oracle = at.oracle.after_progress()
            return ""
        if self.support_step.retry(at):
            return ""
        if at.oracle.coarse and at.calls_available < DESCENT.min_gradients * at.oracle.gradient_cost(at.C.size):
            # values are cheap compared with another gradient
            yield from evolve_on_support(at)
            while (yield from try_exchanges(at, g, self.exchanges, self.tried)):
                yield from evolve_on_support(at)
        if self._refine_oracle():
            return ""
        if at.oracle.coarse:
            yield from evolve_on_support(at)
        if at.oracle.diagnosis.random:
            yield from self._minimise_surface()
        self.local_minimum = at.theta
        return ""

    def _refine_oracle(self) -> bool:
        """Change the differences if F is not smooth or the noise allows it; returns whether they have changed."""
        at, step = self.at, self.support_step
        if step.kink_suspected and not at.oracle.coarse:  # slopes at a point are misleading here
            step.kink_suspected = False
            at.use(for_kinks(at.oracle))
            self.context.remark("The function has kinks; using differences over longer steps.")
            return True
        finer = at.oracle.finer(at.signal_to_noise)
        if finer is not None:
            at.use(finer)
        return finer is not None

    def _average_more_calls(self) -> Generator[Probes, Answers, bool]:
        """If values are random, average more calls per value; returns whether that was affordable."""
        at = self.at
        averaged = at.oracle.averaged()
        cost = averaged.value_cost * (at.C.size + DESCENT.more_calls)
        if not at.oracle.diagnosis.random or at.calls_available < cost:
            return False
        at.use(averaged)
        self.context.remark(
            f"Further gains are hidden by noise; each value is now the mean of {averaged.repeats} calls."
        )
        yield from self._minimise_surface()
        self.tried.clear()
        return True

    def _minimise_surface(self) -> Asks:
        """If values are random: move to the minimum of a response surface through many of them, on this support."""
        at, S = self.at, np.flatnonzero(self.at.theta)
        theta = at.theta
        if not at.oracle.coarse and 0 < S.size <= DESCENT.most_surface_coordinates:
            noise = at.oracle.diagnosis.noise / math.sqrt(at.oracle.m)
            surface = ResponseSurface(self.context, theta, at.model.block(S), at.oracle.step(theta), noise)
            theta = yield from surface.search(DESCENT.surface_share * self.context.used, at.oracle.components)
        at.go(theta, (yield from at.values_at(theta)))
        at.report()
        self.local_minimum = at.theta
