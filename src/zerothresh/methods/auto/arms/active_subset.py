"""The arm for functions of few coordinates: find them by slopes or bisection, then search on them globally."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.repeated_noise import RepeatedNoise
from zerothresh.methods.auto.moves.active_screen import ActiveScreen, most_active
from zerothresh.methods.auto.moves.believed_best import report_believed_best
from zerothresh.methods.auto.moves.bisection import TooManyActive
from zerothresh.methods.auto.moves.cube_search import CubeSearch, merged
from zerothresh.methods.auto.moves.descents import Descents
from zerothresh.methods.auto.settings.active_subset_settings import ACTIVE_SUBSET as SET
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class ActiveSubset:
    """Slopes and bisection for the few coordinates that F depends on, and a global search on these.

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
        include = context.constraint.include
        if include.size == context.k and not np.isin(screen.known, include).any():
            return Ended("The constraint has no room for the coordinates that change F.")
        context.remark(f"F depends on few coordinates; {len(screen.active)} of them are known.")
        subset = _SubsetSearch(context, diagnosis, screen)
        try:
            while True:
                yield from subset.look()
        except BudgetSpent:
            if diagnosis.random and subset.cube is not None:
                report_believed_best(subset.cube)
            return Ended("The budget is spent.")


class BudgetSpent(Exception):
    """The next value does not fit into the budget."""


class _SubsetSearch:
    """The search on the active coordinates; each `look` may find further ones, with which the next begins."""

    def __init__(self, context: Context, diagnosis: Diagnosis, screen: ActiveScreen) -> None:
        self.context, self.diagnosis, self.screen = context, diagnosis, screen
        self.rows: list[tuple[Indices, Array, float]] = []  # points by their non-zeros, and F there
        self.looks = 0
        self.complete = False  # whether no further coordinates are looked for, because there are too many
        self.noise = RepeatedNoise(diagnosis.noise)
        self.cube: CubeSearch | None = None  # the search at work
        self.latest = screen.lowest  # the last point, and the values of the screen's components there
        self.base = np.zeros(context.d)  # what is not searched on stays like this
        dense = context.k >= context.free().size  # all may be non-zero: the start is as good as 0
        kept = context.free() if dense else context.constraint.include
        self.base[kept] = context.theta0[kept]

    def look(self) -> Generator[Probes, Answers, None]:
        """Search on the coordinates of largest effect, until others are known or another choice is due."""
        context, screen = self.context, self.screen
        if not self.looks:
            start = float((yield from context.starts(context.everything)).mean())
            context.move(context.theta, start if context.fun is None else context.fun)
            support = np.flatnonzero(context.theta0)
            self.rows.append((support, context.theta0[support], start))
        start, random = self.rows[0][2], self.diagnosis.random
        chosen = self._choose()
        low, high = (end[chosen] for end in screen.region())
        elsewhere = np.delete(context.theta - self.base, chosen).any()  # this search does not see the point of the run
        bar = context.fun if elsewhere and context.fun is not None else start  # what it must be better than

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
                self.latest = theta, values[screen.components]
                screen.see(*self.latest)
                self.rows.append((chosen, theta[chosen], float(values.mean())))
            return np.asarray(every.mean(axis=1))

        def report(z: Array, fun: float) -> None:
            if context.fun is None or fun < (bar if random else context.fun):
                context.move(point(z), fun)

        X, y, counts, hybrids = self._data(chosen)
        data = (X - low) / (high - low), y, counts
        search = CubeSearch(context, ask, report, data, known=hybrids, noise=self.noise, random=random)
        self.cube = search
        yield from self._descend(search, chosen)

    def _descend(self, search: CubeSearch, chosen: Indices) -> Generator[Probes, Answers, None]:
        """Make descents in turn, and test after each whether further coordinates are active."""
        screen, descents = self.screen, Descents(search)
        known = len(screen.active)
        self.looks += 1
        if self.looks == 1 and known == chosen.size and (yield from self._check_zeros(search, chosen)):
            return
        while True:
            yield from descents.next()
            yield from self._screen_again(weak=descents.all_kinds_made)
            if len(screen.active) > known or (chosen.size < known and descents.all_kinds_made):
                return
            best = search.Z[search.best]
            at_edge = np.abs(best - 0.5) > 0.5 - SET.edge
            if (at_edge & ~screen.bounded[chosen]).any():
                screen.reach *= 2
                return

    def _check_zeros(self, search: CubeSearch, chosen: Indices) -> Generator[Probes, Answers, bool]:
        """Set the coordinates of the best hybrid to 0 that seem not to matter; if F changes, some of them do."""
        screen = self.screen
        hybrid, value = screen.lowest
        low, high = (end[chosen] for end in screen.region())
        yield from search.ask([(hybrid[chosen] - low) / (high - low)])
        try:
            return (yield from screen.bisect(*self.latest, hybrid, value, SET.visible_share))
        except TooManyActive:
            return False

    def _screen_again(self, *, weak: bool) -> Generator[Probes, Answers, None]:
        """Test whether further coordinates are active; also weak ones, if the constraint has room for them."""
        if self.complete:
            return
        room = len(self.screen.active) < self.context.k
        try:
            yield from self.screen.screen(0.0 if weak and room else SET.visible_share, SET.quiet_pairs)
        except TooManyActive:
            self.complete = True

    def _data(self, chosen: Indices) -> tuple[Array, Array, Array, int]:
        """Return what is known of F on the chosen coordinates: points, values, the calls of each, and the hybrids."""
        others = np.setdiff1d(self.screen.known, chosen)  # active, but left as they are
        X, y = [], []
        for where, values, fun in self.rows:
            theta = self.base.copy()
            theta[where] = values
            if (theta[others] == self.base[others]).all():
                X.append(theta[chosen])
                y.append(fun)
        points, means, counts, known = np.array(X).reshape(-1, chosen.size), np.array(y), np.ones(len(y)), 0
        if self.diagnosis.random:
            points, means, counts = merged(points, means)
        if self.screen.components.size == self.context.n and not others.size:
            hybrids = self.screen.points.on(chosen)
            points, means = np.concatenate([hybrids[0], points]), np.concatenate([hybrids[1], means])
            counts, known = np.concatenate([hybrids[2], counts]), hybrids[1].size
        return points, means, counts, known

    def _choose(self) -> Indices:
        """Return the active coordinates of largest effect that the constraint has room for; later, others by chance."""
        active, include = self.screen.active, self.context.constraint.include
        room = self.context.k - np.setdiff1d(include, self.screen.known).size
        names = np.sort(self.screen.known)
        score = np.log([max(active[j], TINY) for j in names.tolist()])
        if self.looks:  # Gumbel noise draws with chances in proportion to the effects
            score = score - np.log(-np.log(self.context.rng.uniform(names.size)))
        score[np.isin(names, include)] = np.inf
        return np.sort(names[np.argsort(-score, kind="stable")[:room]])
