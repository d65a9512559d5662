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
from zerothresh.methods.auto.moves.bisection import Bisection, Comparison, TooManyActive
from zerothresh.methods.auto.moves.global_search import GlobalSearch
from zerothresh.methods.auto.settings import ACTIVE_SUBSET as SET
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def most_active(d: int) -> int:
    """Return how many coordinates can be found for a share of the calls of a gradient."""
    return min(SET.most_active, int(SET.gradient_share * d / (2 * math.log2(max(d, 2)))))


@dataclass(frozen=True)
class ActiveSubset:
    """Bisection for the few coordinates that F depends on, and a global search on these.

    Six calls tell whether F depends on most coordinates; then the arm ends.
    """

    name: ClassVar[str] = "active subset"

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether d is so large that finding the active coordinates is cheaper than a gradient."""
        free = context.free().size
        enough = context.left > SET.fewest_active * math.log2(max(free, 2)) * context.n
        return context.constraint.groups is None and most_active(free) >= SET.fewest_active and enough

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        """Find the active coordinates and search on them until the budget is spent."""
        return (yield from _Search(context, diagnosis).run())


class _Search:
    """One search: the region, the active coordinates so far, and the pairs that have been bisected."""

    def __init__(self, context: Context, diagnosis: Diagnosis) -> None:
        self.context, self.diagnosis = context, diagnosis
        self.free = context.free()
        self.limit = most_active(self.free.size)
        self.reach = SET.region * diagnosis.length / math.sqrt(context.d)
        self.components = context.everything
        if context.n > SET.screen_components:
            self.components = np.sort(context.rng.subset(context.n, SET.screen_components))
        self.comparison = Comparison(diagnosis, self.components.size)
        self.active: dict[int, float] = {}  # coordinates, and their largest effects seen
        self.pairs: list[Bisection] = []
        self.lowest: tuple[Array, Array] | None = None  # of the screen: a point and its values

    @property
    def unknown(self) -> Indices:
        """The free coordinates that are not known to be active."""
        return np.setdiff1d(self.free, np.fromiter(self.active, np.int64, len(self.active)))

    def bounds(self) -> tuple[Array, Array]:
        """Return the lower and upper end of the region per coordinate: the bounds, or a range around the start."""
        theta0, box = self.context.theta0, self.context.box
        low, high = theta0 - self.reach, theta0 + self.reach
        if box is not None:
            finite = np.isfinite(box.low) & np.isfinite(box.high)
            low = np.where(finite, box.low, np.maximum(low, box.low))
            high = np.where(finite, box.high, np.minimum(high, box.high))
        return low, high

    def values(self, points: list[Array]) -> Generator[Probes, Answers, Array]:
        """Return the values of the screen's components at points, and keep the lowest."""
        values = yield from self.context.values(points, self.components)
        for point, value in zip(points, values, strict=True):
            self._see(point, value)
        return values

    def _see(self, point: Array, value: Array) -> None:
        self.comparison.see(value)
        if self.lowest is None or value.mean() < self.lowest[1].mean():
            self.lowest = point, value

    def mixed(self, base: Array, chosen: Indices) -> Array:
        """Return the base with random values of the region at the chosen coordinates."""
        low, high = self.bounds()
        point = base.copy()
        point[chosen] = (low + (high - low) * self.context.rng.uniform(self.context.d))[chosen]
        return point

    def run(self) -> Generator[Probes, Answers, Ended]:
        """Test whether F is dense, screen, and search."""
        context = self.context
        start = yield from context.starts(self.components)
        self._see(context.theta0, start)
        if (yield from self._dense(start)):
            return Ended("F depends on most of the coordinates.")
        try:
            yield from self._screen(SET.visible_share)
        except TooManyActive:
            return Ended("F depends on more coordinates than bisection can find with few calls.")
        if not self.active:
            return Ended("No change of F was seen anywhere in the region.")
        context.remark(f"F depends on few coordinates, and {len(self.active)} of them are known.")
        return (yield from self._optimise())

    # Which coordinates matter?

    def _dense(self, start: Array) -> Generator[Probes, Answers, bool]:
        """Whether every one of some random groups of few coordinates changes F."""
        context, size = self.context, max(1, self.free.size // (2 * self.limit))
        for growth in range(SET.growths + 1):
            value = (yield from self.values([self.mixed(context.theta0, self.free)]))[0]
            if self.comparison.distance(value, start, 0.0) > 1 or context.box is not None:
                break
            if growth < SET.growths:
                self.reach *= SET.growth
        for _ in range(SET.density_tests):
            if context.left < self.components.size:
                return True
            group = self.free[context.rng.subset(self.free.size, size)]
            value = (yield from self.values([self.mixed(context.theta0, group)]))[0]
            if self.comparison.distance(value, start, SET.weak_share) <= 1:
                return False
        return True

    def _screen(self, share: float) -> Generator[Probes, Answers, None]:
        """Bisect pairs that differ in unknown coordinates until some pairs in a row show no difference."""
        context, quiet, size = self.context, 0, self.components.size
        end = context.used + 2 * self.limit * math.log2(self.free.size) * size
        while quiet < (SET.quiet_pairs if self.active else SET.plateau_pairs) and context.used < end:
            if context.left < 4 * size:
                return
            assert self.lowest is not None  # the start at least
            base, at_base = self.lowest
            if quiet % 2:
                known = np.fromiter(self.active, np.int64, len(self.active))
                base = self.mixed(base, known if self.active else self.free)
                at_base = (yield from self.values([base]))[0]
            other = self.mixed(base, self.unknown)
            value = (yield from self.values([other]))[0]
            different = self.comparison.distance(value, at_base, share) > 1
            if different and self.diagnosis.random:  # a second opinion
                again = yield from self.values([base, other])
                at_base, value = 0.5 * (at_base + again[0]), 0.5 * (value + again[1])
                different = self.comparison.distance(value, at_base, share, 2) > 1
            if not different:
                quiet += 1
                continue
            before = len(self.active)
            yield from self._bisect(base, other, (at_base, value), share, end - context.used)
            quiet = 0 if len(self.active) > before else quiet + 1

    def _bisect(
        self, a: Array, b: Array, values: tuple[Array, Array], share: float, calls: float
    ) -> Generator[Probes, Answers, None]:
        unknown = self.unknown
        order = unknown[self.context.rng.subset(unknown.size, unknown.size)]
        pair = Bisection(
            self.context, self.comparison, self.components, a, b, values, order, share, self.limit - len(self.active)
        )
        self.pairs.append(pair)
        found = yield from pair.search(calls)
        for mask, value in zip(pair.asked, pair.answers, strict=True):
            if self.lowest is None or value.mean() < self.lowest[1].mean():
                self.lowest = np.where(mask, b, a), value
        self.active.update(found)

    # The search on the active coordinates.

    def _seen(self, chosen: Indices) -> tuple[Array, Array, Array]:
        """Return the different points of the bisections on the chosen coordinates, their F, and the calls of each."""
        points = [np.where(mask[chosen], pair.b[chosen], pair.a[chosen]) for pair in self.pairs for mask in pair.asked]
        values = np.array([value.mean() for pair in self.pairs for value in pair.answers])
        unique, where, counts = np.unique(np.array(points), axis=0, return_inverse=True, return_counts=True)
        means = np.bincount(where.ravel(), weights=values) / counts
        return unique, means, counts.astype(float)

    def _optimise(self) -> Generator[Probes, Answers, Ended]:
        """Search on the most active coordinates, as many as the constraint allows."""
        context = self.context
        chosen = self._choose()
        low, high = (end[chosen] for end in self.bounds())
        base = np.zeros(context.d)
        base[context.constraint.include] = context.theta0[context.constraint.include]

        def point(z: Array) -> Array:
            theta = base.copy()
            theta[chosen] = np.clip(low + (high - low) * z, low, high)
            return theta

        def ask(points: list[Array]) -> Generator[Probes, Answers, Array]:
            if context.left < len(points) * context.n:
                raise _Spent
            thetas = [point(z) for z in points]
            values = (yield from context.values(thetas)).mean(axis=1)
            best = int(np.argmin(values))
            if not self.diagnosis.random and (context.fun is None or values[best] < context.fun):
                context.move(thetas[best], float(values[best]))
            return np.asarray(values)

        Z, y, counts = np.empty((0, chosen.size)), np.empty(0), np.empty(0)
        if self.components.size == context.n and chosen.size == len(self.active):
            Z, y, counts = self._seen(chosen)
            Z = (Z - low) / (high - low)
        search = GlobalSearch(context, ask, Z, y, counts, self.diagnosis.noise, self.diagnosis.random)
        if context.fun is None:
            context.move(context.theta, float((yield from context.starts(context.everything)).mean()))
        try:
            if y.size:
                yield from search.ask([Z[int(np.argmin(y))]])
            turn = 0
            while True:
                yield from search.descend_by_process(everywhere=turn == 0)
                yield from search.descend_by_quadratic(search.fresh_start() if turn == 0 else None)
                turn += 1
        except _Spent:
            return Ended("The budget is spent.")

    def _choose(self) -> Indices:
        """Return the active coordinates of largest effect that fit the constraint."""
        include = self.context.constraint.include
        room = self.context.k - np.setdiff1d(include, list(self.active)).size
        order = sorted(self.active, key=lambda j: (j not in include, -self.active[j], j))
        return np.sort(np.array(order[:room], dtype=np.int64))


class _Spent(Exception):  # noqa: N818: not an error
    """The next value does not fit into the budget."""
