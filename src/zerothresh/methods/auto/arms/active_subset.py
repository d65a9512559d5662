"""The arm for functions of few coordinates: find them by bisection, then search on them globally."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.moves.active_screen import ActiveScreen, most_active
from zerothresh.methods.auto.moves.bisection import TooManyActive
from zerothresh.methods.auto.moves.cube_search import CubeSearch
from zerothresh.methods.auto.moves.descents import Descents
from zerothresh.methods.auto.settings import ACTIVE_SUBSET as SET
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class ActiveSubset:
    """Bisection for the few coordinates that F depends on, and a global search on these.

    About six calls tell whether F depends on most coordinates; then the arm ends. On the coordinates that are found,
    descents by a Gaussian process and by a quadratic model take turns: the first needs few values where F is smooth
    on the scale of the region, the second sees through ripples. Neither alone suffices: the first solves Hartmann's
    function and hardly ever Ackley's.
    """

    name: ClassVar[str] = "active subset"
    decisive: ClassVar[bool] = True

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether d is so large that finding the active coordinates is cheaper than a gradient."""
        free = context.free().size
        enough = context.left > SET.fewest_active * math.log2(max(free, 2)) * min(context.n, SET.screen_components)
        return context.constraint.groups is None and most_active(free) >= SET.fewest_active and enough

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return the calls of the longest screen; a function that depends on everything is recognised long before."""
        free = context.free().size
        return math.ceil(2 * most_active(free) * math.log2(free)) * min(context.n, SET.screen_components)

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        """Find the active coordinates and search on them until the budget is spent."""
        screen = ActiveScreen(context, diagnosis)
        if (yield from screen.dense()):
            return Ended("F depends on most of the coordinates.")
        context.confirmed = True
        try:
            yield from screen.screen(SET.visible_share, SET.quiet_pairs)
        except TooManyActive:
            return Ended("F depends on more coordinates than bisection can find with few calls.")
        if not screen.active:
            return Ended("No coordinate was found that changes F.")
        context.remark(f"F depends on few coordinates; {len(screen.active)} of them are known.")
        subset = _SubsetSearch(context, diagnosis, screen)
        try:
            while True:
                yield from subset.look()
        except BudgetSpent:
            return Ended("The budget is spent.")


class BudgetSpent(Exception):  # noqa: N818: not an error
    """The next value does not fit into the budget."""


class _SubsetSearch:
    """The search on the active coordinates; each `look` may find further ones, with which the next begins."""

    def __init__(self, context: Context, diagnosis: Diagnosis, screen: ActiveScreen) -> None:
        self.context, self.diagnosis, self.screen = context, diagnosis, screen
        self.rows: list[tuple[Indices, Array, float]] = []  # values of F: where it is not as the start, how, and F
        self.looks = 0
        self.complete = False  # whether more coordinates are active than can be found
        self.base = np.zeros(context.d)
        include = context.constraint.include
        self.base[include] = context.theta0[include]

    def look(self) -> Generator[Probes, Answers, None]:
        """Search on the coordinates of largest effect, until further ones are found or another choice is due."""
        context, screen = self.context, self.screen
        if context.fun is None:
            start = float((yield from context.starts(context.everything)).mean())
            context.move(context.theta, start)
            self.rows.append((np.flatnonzero(context.theta0), context.theta0[np.flatnonzero(context.theta0)], start))
        chosen = self._choose()
        low, high = (end[chosen] for end in screen.region())

        def point(z: Array) -> Array:
            theta = self.base.copy()
            theta[chosen] = np.clip(low + (high - low) * z, low, high)
            return theta

        def ask(points: list[Array]) -> Generator[Probes, Answers, Array]:
            if context.left < len(points) * context.n:
                raise BudgetSpent
            thetas = [point(z) for z in points]
            every = yield from context.values(thetas)
            for theta, values in zip(thetas, every, strict=True):
                screen.see(theta, values[screen.components])
                self.rows.append((chosen, theta[chosen], float(values.mean())))
            return np.asarray(every.mean(axis=1))

        def report(z: Array, fun: float) -> None:
            better = context.fun is None or fun < context.fun - (0.5 * self.diagnosis.noise if context.random else 0.0)
            if better:
                context.move(point(z), fun)

        X, y, counts = self._data(chosen)
        search = CubeSearch(
            context,
            ask,
            report,
            ((X - low) / (high - low), y, counts),
            noise=self.diagnosis.noise,
            random=self.diagnosis.random,
        )
        yield from self._descend(search, point)

    def _descend(self, search: CubeSearch, point: object) -> Generator[Probes, Answers, None]:
        """Make descents of both kinds in turn, and test for further active coordinates after each."""
        known = len(self.screen.active)
        first = self.looks == 0
        self.looks += 1
        if first and search.known:
            found = yield from self._check_zeros(search)
            if found:
                return
        descents = Descents(search)
        while True:
            yield from descents.next()
            yield from self._screen_again()
            if len(self.screen.active) > known or (search.p < known and min(descents.values.values()) > 0):
                return

    def _check_zeros(self, search: CubeSearch) -> Generator[Probes, Answers, bool]:
        """Set the coordinates of the best hybrid to 0 that seem not to matter; if F changes, some of them do."""
        screen, context = self.screen, self.context
        hybrid, value = screen.lowest
        yield from search.ask([search.Z[int(np.argmin(search.y))]])
        theta = self.base.copy()
        theta[self.rows[-1][0]] = self.rows[-1][1]
        if screen.components.size < context.n or not np.array_equal(theta[screen.known], hybrid[screen.known]):
            return False
        try:
            return (
                yield from screen.bisect(
                    theta,
                    hybrid,
                    np.array([self.rows[-1][2]]) if context.n == 1 else value,
                    value,
                    SET.visible_share,
                    100,
                )
            )
        except TooManyActive:
            return False

    def _screen_again(self) -> Generator[Probes, Answers, None]:
        """Test whether further coordinates are active, from the best point and from a random one."""
        if self.complete:
            return
        share = SET.visible_share if len(self.screen.active) >= self.context.k or self.looks < 2 else 0.0
        try:
            yield from self.screen.screen(share, SET.quiet_pairs)
        except TooManyActive:
            self.complete = True

    def _data(self, chosen: Indices) -> tuple[Array, Array, Array]:
        """Return what is known of F on the chosen coordinates: points, values, and the calls of each."""
        X, y = [], []
        allowed = set(chosen.tolist())
        for where, values, fun in self.rows:
            if set(where[values != self.base[where]].tolist()) <= allowed | set(
                np.setdiff1d(where, self.screen.known).tolist()
            ):
                theta = dict(zip(where.tolist(), values.tolist(), strict=True))
                X.append([theta.get(j, self.base[j]) for j in chosen.tolist()])
                y.append(fun)
        points, means, counts = np.array(X).reshape(-1, chosen.size), np.array(y), np.ones(len(y))
        if self.screen.components.size == self.context.n and chosen.size == len(self.screen.active):
            more = self.screen.seen(chosen)
            points, means = np.concatenate([more[0], points]), np.concatenate([more[1], means])
            counts = np.concatenate([more[2], counts])
        return points, means, counts

    def _choose(self) -> Indices:
        """Return the active coordinates of largest effect, as many as the constraint allows; later, others by chance."""
        active, include = self.screen.active, self.context.constraint.include
        room = self.context.k - np.setdiff1d(include, list(active)).size
        names = np.array(sorted(active), dtype=np.int64)
        score = np.log(np.array([max(active[j], 1e-300) for j in names.tolist()]))
        if self.looks:
            score = score - np.log(-np.log(self.context.rng.uniform(names.size)))
        score[np.isin(names, include)] = np.inf
        return np.sort(names[np.argsort(-score, kind="stable")[:room]])
