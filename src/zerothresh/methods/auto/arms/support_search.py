"""Support search for the rest of the budget: exchanges and two kinds of restarts share the calls by their gains.

At a local minimum nothing tells where a better one is. Exchanges are drawn by the model's score with Gumbel noise,
so that the likely ones come first and every one comes at last; restarts begin at random sparse points, or at a
random part of the best support. Whichever kind has cost the fewest calls per gain comes next, because which one pays
depends on the problem: exchanges find the support of correlated designs, and restarts leave the basin of a function
that is not convex.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.arms.restarting import Restarts
from zerothresh.methods.auto.moves.column_probe import ColumnProbe
from zerothresh.methods.auto.moves.derivative_free import evolve_on_support, swap_coordinate
from zerothresh.methods.auto.moves.exchanges import trial_cost, try_point
from zerothresh.methods.auto.moves.measured_newton import measured_newton
from zerothresh.methods.auto.moves.parabola_test import is_parabola, is_quadratic
from zerothresh.methods.auto.moves.restarts import places, support_of
from zerothresh.methods.auto.oracle import ExactOracle
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.support_search_settings import SUPPORT_SEARCH
from zerothresh.methods.program.context import Asks
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

if TYPE_CHECKING:
    from zerothresh.methods.auto.arms.descent import Descent


class SupportSearch:
    """A search that goes on from the point, the gradient and the model of a descent.

    Arguments
    ---------
    descent: the descent, at a local minimum.
    """

    def __init__(self, descent: Descent) -> None:
        self.descent, self.at, self.context = descent, descent.at, descent.context
        self.turns = 0
        self.restarts = Restarts(descent)
        self.probe: ColumnProbe | None = None  # the second derivatives at the best point
        self.exchanges_left = descent.context.constraint.groups is None  # the model knows no groups

    @property
    def supports(self) -> int:
        """The number of supports of full size."""
        constraint, free = self.context.constraint, self.context.free()
        forced, total = places(self.context, constraint.include), places(self.context, free)
        return math.comb(max(total - forced, 0), max(min(self.context.k, total) - forced, 0))

    def search(self) -> Generator[Probes, Answers, Ended]:
        """Search until the budget ends the run, or every support has been tried."""
        at, descent = self.at, self.descent
        yield from descent.resume_after_budget_increase()
        if self.supports <= 1:
            while lower := (yield from measured_newton(at)):
                yield from descent.descend()
            if lower is not None and (yield from is_parabola(at)):
                return Ended("F is quadratic, and there is only one support: this is its minimum.", certified=True)
            return Ended("There is only one support, and no step lowers F on it.")
        yield from self._reopen()
        exchange = self._swap if at.oracle.diagnosis.rough else self._exchange
        kinds = [exchange, self._restart_in_part, self._restart]
        spent, gains = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 1)  # calls, and gains with one to begin with
        descent.tried.add(support_of(at.theta))
        self.context.remark("Other supports are searched by exchanges and restarts.")
        while len(descent.tried) < self.supports:
            few = self.supports <= SUPPORT_SEARCH.most_enumerated and self.context.constraint.groups is None
            if few and not self.exchanges_left:
                yield from self._enumerate()
                break
            move = min(kinds, key=lambda kind: spent[kind] / gains[kind])
            before, F = self.context.used, at.F
            yield from move()
            if self.context.used == before:  # there was nothing to exchange
                yield from self._restart()
            spent[move] += self.context.used - before
            self.turns += 1
            if at.F < F:
                gains[move] += 1
                self.exchanges_left = self.context.constraint.groups is None
        if (yield from is_quadratic(at)):
            return Ended(f"F is quadratic, and all {self.supports} supports were tried.", certified=True)
        self.context.remark(f"All {self.supports} supports were tried, but there may be other minima on them.")
        before = -1
        while self.context.used > before:
            before = self.context.used
            yield from self._restart()
        return Ended(f"All {self.supports} supports were tried, and nothing is left to restart from.")

    def _enumerate(self) -> Asks:
        """Try every support that has not been tried: there are few of them."""
        at, free, include = self.at, self.context.free(), self.context.constraint.include
        optional = np.setdiff1d(free, include)
        for chosen in combinations(optional.tolist(), min(self.context.k, free.size) - include.size):
            S = np.sort(np.append(include, np.array(chosen, np.int64)))
            if S.tobytes() in self.descent.tried:
                continue
            g = yield from at.full_gradient()
            self.descent.tried.add(S.tobytes())
            point = at.model.minimiser_on(at.theta, g, at.C, np.searchsorted(at.C, S))
            if (yield from try_point(at, self.context.H(point))):
                yield from self.descent.descend(exchanging=False)

    def _reopen(self) -> Asks:
        """Where only the steepest coordinates were searched: look at all of them again, as long as that pays."""
        at, gained = self.at, True
        while at.screened and gained:
            if at.calls_available < DESCENT.min_gradients * at.oracle.gradient_cost(self.context.free().size):
                return
            F = at.F
            yield from at.reopen()
            self.descent.local_minimum = None
            yield from self.descent.descend()
            gained = F - at.negligible > at.F

    def _beyond_the_budget(self) -> Asks:
        """Ask for the next gradient although the budget does not cover it: a larger budget continues the run here."""
        self.at.discard_gradient()
        self.at.recalling = False  # something must be asked for
        yield from self.descent.descend(ignore_budget=True)

    @property
    def _restart_affordable(self) -> bool:
        oracle = self.at.oracle
        return oracle.calls_available >= SUPPORT_SEARCH.restart_gradients * oracle.gradient_cost(self.at.C.size)

    def _exchange(self) -> Asks:
        """Try what the second derivatives promise, or an exchange drawn at random; descend from it if it lowers F."""
        at, descent = self.at, self.descent
        if not self.exchanges_left:
            yield from self._restart(part=True)
            return
        cost = trial_cost(at) + (0 if at.g.size and at.g_theta is at.theta else at.oracle.gradient_cost(at.C.size))
        if at.calls_available < cost:
            yield from self._beyond_the_budget()
            return
        g = yield from at.full_gradient()
        smooth = isinstance(at.oracle, ExactOracle) and at.theta.any()
        points = (yield from self._probe()) if smooth else self._drawn_exchange(g)
        for point in points:
            descent.tried.add(support_of(point))
            if at.calls_available < trial_cost(at):
                return
            if (yield from try_point(at, self.context.H(point))):
                yield from descent.descend()
                descent.tried.add(support_of(at.theta))
                return

    def _probe(self) -> Generator[Probes, Answers, list[Array]]:
        """Measure second derivatives at the best point, and return the points that they promise."""
        at = self.at
        if self.probe is None or not self.probe.here:
            self.probe = ColumnProbe(at)
        probe = self.probe
        j = probe.draw()
        if j is not None:
            points = yield from probe.promising(j)
            return points[:1]
        if probe.rest_of_the_hessian > SUPPORT_SEARCH.hessian_share * at.calls_available:
            self.exchanges_left = False
            return []
        everything = np.arange(at.C.size)
        incomplete = np.flatnonzero(~probe.hessian.known.all(axis=0))
        if incomplete.size:
            yield from probe.measure(int(incomplete[0]), everything)
            return []
        new = [point for point in probe.best_supports() if support_of(point) not in self.descent.tried]
        self.exchanges_left = False
        return new[: SUPPORT_SEARCH.model_trials]

    def _drawn_exchange(self, g: Array) -> list[Array]:
        """Draw an exchange that has not been tried; none if there is none."""
        at, rng = self.at, self.context.rng
        scores = at.model.exchange_scores(at.theta, g, at.C, self.context.constraint.include)
        gumbel = -np.log(-np.log(np.maximum(rng.uniform(scores.size), TINY))).reshape(scores.shape)
        order = np.argsort(-(scores + SUPPORT_SEARCH.temperature * gumbel), axis=None, kind="stable")
        S = np.flatnonzero(at.theta[at.C])
        for flat in order[: SUPPORT_SEARCH.most_drawn].tolist():
            j, a = divmod(flat, S.size)
            if not math.isfinite(scores[j, a]):
                break
            T = np.sort(np.append(np.delete(S, a), j))
            if at.C[T].tobytes() not in self.descent.tried:
                return [at.model.minimiser_on(at.theta, g, at.C, T)]
        self.exchanges_left = False
        return []

    def _swap(self) -> Asks:
        """Where slopes say nothing: swap a coordinate for another, and take random steps on the support."""
        at = self.at
        if at.calls_available < trial_cost(at):
            yield from self._beyond_the_budget()
            return
        yield from swap_coordinate(at, self.turns)
        yield from evolve_on_support(at, SUPPORT_SEARCH.evolve_step ** (1 + self.turns % SUPPORT_SEARCH.evolve_cycle))
        at.report()

    def _restart(self, *, part: bool = False) -> Asks:
        """Descend from a random sparse point, or from a part of the best support; keep the better point."""
        if not self._restart_affordable:
            yield from self._exchange() if self.exchanges_left else self._beyond_the_budget()
            return
        yield from self.restarts.restart(part=part)

    def _restart_in_part(self) -> Asks:
        yield from self._restart(part=True)
