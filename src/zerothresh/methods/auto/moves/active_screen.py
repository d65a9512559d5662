"""The screen for active coordinates: slopes around the best point, and pairs of points that differ in unknown ones."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.value_comparison import ValueComparison
from zerothresh.methods.auto.moves.bisection import Bisection
from zerothresh.methods.auto.moves.screen_points import ScreenPoints
from zerothresh.methods.auto.moves.slope_decoding import SlopeDecoding
from zerothresh.methods.auto.moves.slope_steps import SlopeSteps, step_share
from zerothresh.methods.auto.moves.wide_bisection import WideBisection
from zerothresh.methods.auto.settings.active_subset_settings import ACTIVE_SUBSET as SET
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def most_active(d: int) -> int:
    """Return how many coordinates can be found for a share of the calls of a gradient."""
    return min(SET.most_active, int(SET.gradient_share * d / (2 * math.log2(max(d, 2)))))


class ActiveScreen:
    """What is known of the active coordinates.

    Arguments
    ---------
    context: the run.
    diagnosis: what the first calls found.

    Attributes
    ----------
    components: the components that the screen asks for; whether a coordinate matters shows in a few of them.
    active: the coordinates found so far, and how much each changed F.
    bounded: bool array of shape (d,), which coordinates have two finite bounds.
    reach: float, how far the region goes from the start, along coordinates without bounds.
    points: what the values so far tell of F.
    lowest: the best point so far, feasible or not, with the values of the components there.
    """

    def __init__(self, context: Context, diagnosis: Diagnosis) -> None:
        self.context, self.random, self.sloping = context, diagnosis.random, not (diagnosis.random or diagnosis.rough)
        self.free = context.free()
        self.limit = most_active(self.free.size)
        self.reach = SET.region * diagnosis.length / math.sqrt(context.d)
        box = context.box
        self.bounded = np.zeros(context.d, bool) if box is None else np.isfinite(box.low) & np.isfinite(box.high)
        self.components = context.everything
        if context.n > SET.screen_components:
            self.components = np.sort(context.rng.subset(context.n, SET.screen_components))
        self.comparison = ValueComparison(diagnosis.noise, diagnosis.random, self.components.size)
        self.active: dict[int, float] = {}
        self.lowest: tuple[Array, Array] = (context.theta0, np.full(self.components.size, np.inf))
        self.points = ScreenPoints()
        self.steepest = np.zeros(self.components.size)  # the largest slopes that were found, per length of the region

    @property
    def known(self) -> Indices:
        """The coordinates that are known to be active, in the order in which they were found."""
        return np.fromiter(self.active, np.int64, len(self.active))

    @property
    def unknown(self) -> Indices:
        """The other coordinates that are free to change."""
        return np.setdiff1d(self.free, self.known)

    @property
    def most_calls(self) -> float:
        """The calls of a screen or a bisection after which it is given up."""
        return 2 * self.limit * math.log2(self.free.size) * self.components.size

    def region(self) -> tuple[Array, Array]:
        """Return the lower and upper end per coordinate: the bounds if both are finite, or a range around the start."""
        theta0, box = self.context.theta0, self.context.box
        low, high = theta0 - self.reach, theta0 + self.reach
        if box is not None:
            low = np.where(self.bounded, box.low, np.maximum(low, box.low))
            high = np.where(self.bounded, box.high, np.minimum(high, box.high))
        return low, high

    def values(self, points: list[Array]) -> Generator[Probes, Answers, Array]:
        """Return the values of the components at points, (points, components)."""
        values = yield from self.context.values(points, self.components)
        for point, value in zip(points, values, strict=True):
            self.see(point, value)
        self.points.see(points, values)
        return values

    def see(self, point: Array, value: Array) -> None:
        """Take the values of a point into account."""
        self.comparison.see(value)
        if value.mean() < self.lowest[1].mean():
            self.lowest = point, value

    def mixed(self, base: Array, chosen: Indices) -> Array:
        """Return the base with random values of the region at the chosen coordinates."""
        low, high = self.region()
        point = base.copy()
        point[chosen] = (low + (high - low) * self.context.rng.uniform(self.context.d))[chosen]
        return point

    def dense(self) -> Generator[Probes, Answers, bool]:
        """Whether every one of some random groups of few coordinates changes F."""
        context, theta0, size = self.context, self.context.theta0, max(1, self.free.size // (2 * self.limit))
        start = yield from context.starts(self.components)
        self.see(theta0, start)
        if context.width > 1 and self.bounded.all():
            return (yield from self._dense_at_once(start, size))
        for _ in range(SET.growths):
            value = (yield from self.values([self.mixed(theta0, self.free)]))[0]
            if self.bounded.all() or self.comparison.distance(value, start, 0.0) > 1:
                break
            self.reach *= SET.growth
        for _ in range(SET.density_tests):
            if context.left < self.components.size:
                return True
            group = self.free[context.rng.subset(self.free.size, size)]
            value = (yield from self.values([self.mixed(theta0, group)]))[0]
            if self.comparison.distance(value, start, SET.weak_share) <= 1:
                return False
        return True

    def _dense_at_once(self, start: Array, size: int) -> Generator[Probes, Answers, bool]:
        """The same in one round, where bounds tell how large the region is."""
        context, theta0 = self.context, self.context.theta0
        if context.left < (1 + SET.density_tests) * self.components.size:
            return True
        groups = [self.free[context.rng.subset(self.free.size, size)] for _ in range(SET.density_tests)]
        values = yield from self.values([self.mixed(theta0, group) for group in [self.free, *groups]])
        return all(self.comparison.distance(value, start, SET.weak_share) > 1 for value in values[1:])

    def screen(self, share: float, quiet_pairs: int) -> Generator[Probes, Answers, None]:
        """Look for slopes at the best of a few random points; then bisect pairs that differ in unknown coordinates.

        It ends after some pairs in a row that show no difference.

        Arguments
        ---------
        share: float, of the spread of F: what a coordinate must change to be looked for.
        quiet_pairs: int, pairs without a difference that end the screen once something is active.

        Raises `TooManyActive` if F depends on more coordinates than can be found.
        """
        context, quiet, size = self.context, 0, self.components.size
        end = context.used + self.most_calls
        if not self.active and self.sloping:
            if context.left >= (SET.far_points + SET.pair_values) * size:
                yield from self.values([self.mixed(context.theta0, self.free) for _ in range(SET.far_points)])
            yield from self.decode(*self.lowest, self.unknown, share)
        while quiet < (quiet_pairs if self.active else SET.plateau_pairs) and context.used < end:
            if context.left < SET.pair_values * size or not self.unknown.size:
                return
            if context.width > 1:
                at_once = (quiet_pairs if self.active else quiet + 1) - quiet
                found = yield from self._bisect_some(share, range(quiet, quiet + at_once))
                quiet = 0 if found else quiet + at_once
                continue
            base, at_base = self.lowest
            if quiet % 2:  # every other pair begins at a random point: the best one may hide what its values are
                base = self.mixed(base, self.known if self.active else self.free)
                at_base = (yield from self.values([base]))[0]
            other = self.mixed(base, self.unknown)
            value = (yield from self.values([other]))[0]
            found = yield from self.bisect(base, at_base, other, value, share)
            quiet = 0 if found else quiet + 1

    def _bisect_some(self, share: float, turns: range) -> Generator[Probes, Answers, bool]:
        """Ask for several pairs in one round, and bisect the first one in which something is found."""
        size, known = self.components.size, self.known if self.active else self.free
        points = list[Array]()
        for turn in turns[: max(1, int(self.context.left) // (SET.pair_values * size))]:
            base = self.mixed(self.lowest[0], known) if turn % 2 else self.lowest[0]
            points += [base, self.mixed(base, self.unknown)]
        at_lowest = self.lowest[1]
        fresh = [not np.array_equal(point, self.lowest[0]) for point in points]
        values = iter((yield from self.values([point for point, new in zip(points, fresh, strict=True) if new])))
        told = [next(values) if new else at_lowest for new in fresh]
        for i in range(0, len(points), 2):
            if (yield from self.bisect(points[i], told[i], points[i + 1], told[i + 1], share)):
                return True
        return False

    def bisect(self, a: Array, at_a: Array, b: Array, at_b: Array, share: float) -> Generator[Probes, Answers, bool]:
        """Look for the unknown coordinates that make two points differ in F; return whether one was found."""
        distance = self.comparison.distance(at_a, at_b, share)
        if distance <= 1:
            return False
        if self.random and distance <= SET.beyond_doubt:  # the difference may be noise: ask again
            again = yield from self.values([a, b])
            at_a, at_b = 0.5 * (at_a + again[0]), 0.5 * (at_b + again[1])
            if self.comparison.distance(at_a, at_b, share, 2) <= 1:
                return False
        differing = self.unknown[a[self.unknown] != b[self.unknown]]
        if (yield from self.decode(*((a, at_a) if at_a.mean() <= at_b.mean() else (b, at_b)), differing, share)):
            return True
        order = differing[self.context.rng.subset(differing.size, differing.size)]
        limit = self.limit - len(self.active)
        kind = Bisection if self.context.width == 1 else WideBisection
        pair = kind(self.context, self.comparison, self.components, a, b, (at_a, at_b), order, share=share, limit=limit)
        self.points.pairs.append(pair)
        found = yield from pair.search(self.most_calls)
        for mask, value in zip(pair.asked, pair.answers, strict=True):
            if value.mean() < self.lowest[1].mean():
                self.lowest = np.where(mask, b, a), value
        self.active.update(found)
        return bool(found)

    def decode(
        self, base: Array, at_base: Array, candidates: Indices, share: float
    ) -> Generator[Probes, Answers, bool]:
        """Look for coordinates by the slopes at a point; return whether one was found."""
        if not self.sloping or not np.isfinite(at_base).all():
            return False
        order = candidates[self.context.rng.subset(candidates.size, candidates.size)]
        decoding = SlopeDecoding(
            self.context,
            self.comparison,
            self.components,
            SlopeSteps(base, self.region(), order, step_share(self.comparison)),
            at_base,
            share=share,
            limit=self.limit - len(self.active),
            steepest=self.steepest,
        )
        found = yield from decoding.search(self.most_calls)
        self.steepest = np.max([np.abs(slope) for slope in decoding.slopes.values()] + [self.steepest], axis=0)
        self.active.update(found)
        self.points.slopes.append(decoding)
        return bool(found)
