"""The search behind ``attack="best"``: extreme values, swaps of pixels, and races between candidates."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.corner_moves import CornerMoves, Grid
from zerothresh.basics import check
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_SWAPS_FALL_OVER = 5  # rounds after which half as many groups are swapped as at first
_MOST_RACES = 16  # side by side
_FAILURES_PER_RACE = 8  # failed races in a row after which one more is run side by side
_FIRST_LEG = 0.6  # times the root of the components in use: how many of them a race begins with
_FOOLED_LAST = 20.0  # the larger, the later components at the lowest value come in a race
_RECENT = 0.3  # weight of the newest race in the estimated cost of removing a group
_RECENT_IN_TYPICAL = 0.05  # the same for the mean over all groups


@dataclass(frozen=True)
class FewPixel(Program):
    r"""Random search by swaps between corners of the box; candidates race on a few components first.

    The iterate has k groups (pixels, or single coordinates if there are no groups) at corners of the box. A candidate
    swaps some of its groups for others at random corners. Once single groups are swapped, a candidate may instead
    shift a group to a neighbouring pixel or change one of its colours. In round r,

    .. math:: s = \max(1, \mathrm{share} \cdot k / (1 + r / 5))

    groups are swapped. Groups that seem dispensable go first: of three, the one whose removal raised the loss least in
    the races so far. A round races a few candidates on a few components, mostly on those that are not at the lowest
    value yet. The best one is then evaluated on 2, 4, 8 ... times as many components as long as the loss falls, and
    becomes the iterate if it falls over all of them. If races fail one after another, up to sixteen are run side by
    side, which makes larger batches for the model and costs hardly any queries.

    The loss is

    .. math:: \sum_i \log \left(1 + \frac{f_i(\theta) - m}{\bar f - m}\right),
        \quad \bar f \text{ the mean at the start, } m \text{ the lowest value seen}

    so that one component far from 0 counts less than several that are near: where not all of them can reach 0, more
    of them do.

    If there are many components, only the first are used at first. Their number doubles when all of them are at 0, or
    after ``passes`` calls of each.

    Components are assumed to be at least 0, as losses are: the search ends when all of them are 0.

    It needs finite bounds. It is not for smooth problems whose solution lies inside the box, and is therefore not
    among `zt.methods.available()`.

    Arguments
    ---------
    grid: (rows, columns, down, right), if the coordinates are an image: the coordinate below j is j + down, the
        one to the right is j + right. None: no group has neighbours.
    candidates: candidates per race. More of them make larger batches, and cost more queries.
    first: components that are used at first.
    passes: calls of each component in use before their number is doubled.
    share: the share of the groups that is swapped at first, above 0 and at most 1.

    Reference: Croce, Andriushchenko, Singh, Flammarion and Hein (2022), Sparse-RS, AAAI, for swaps at extreme
    values with a decreasing number of swaps; the rest is new here.
    """

    grid: Grid | None = None
    candidates: int = 4
    first: int = 16
    passes: int = 30
    share: float = 0.4

    def __post_init__(self) -> None:
        if self.grid is not None:
            if not isinstance(self.grid, Sequence) or isinstance(self.grid, (str, bytes)) or len(self.grid) != 4:
                raise ValueError(f"grid must be (rows, columns, down, right), not {self.grid!r}")
            object.__setattr__(self, "grid", tuple(check.count("grid", number) for number in self.grid))
        for name in ("candidates", "first", "passes"):
            check.count(name, getattr(self, name))
        if check.positive("share", self.share, what=" and at most 1") > 1:
            raise ValueError(f"share must be above 0 and at most 1, not {self.share!r}")

    def search(self, context: Context) -> Asks:
        moves = CornerMoves(context, self.grid)
        order = np.argsort(context.rng.uniform(context.n), kind="stable")  # in which components come into use
        used, doubled_at = min(self.first, context.n), 0.0
        theta, support = moves.start(context)
        values = np.zeros(context.n)
        values[order[:used]] = (yield from context.values([theta], order[:used]))[0]
        removals, losses = RemovalCosts(support.size), Losses(values[order[:used]])
        context.random = True  # the iterate is the result, even if F itself was lower once
        context.move(theta, float(values.mean()) if used == context.n else None)
        rounds = failed = 0
        while True:
            active = order[:used]
            if used < context.n and (not values[active].any() or context.used - doubled_at > self.passes * used):
                more = order[used : 2 * used]
                values[more] = (yield from context.values([theta], more))[0]
                losses.note(values[more])
                used, doubled_at = used + more.size, context.used
                context.move(theta, float(values.mean()) if used == context.n else None)
                continue
            if not values[active].any():
                return
            size = min(support.size, max(1, round(self.share * support.size / (1 + rounds / _SWAPS_FALL_OVER))))
            rounds += 1
            queue = active[_queue(losses.at_floor(values[active]), context)]
            leg = min(used, max(2, round(_FIRST_LEG * used**0.5)))
            affordable = (context.left - used + leg) // leg  # so that one of them can be evaluated on all
            races = min(1 + failed // _FAILURES_PER_RACE, _MOST_RACES)
            count = int(max(1, min(self.candidates * races, affordable)))
            removed = removals.choose(size, count, context)
            points, supports = moves.candidates(theta, support, removed, context)
            rises, known, best = yield from self._race(points, values, queue, leg, losses, context)
            removals.learn(removed, rises / leg)
            if best is None:
                failed += -(-count // self.candidates)
                continue
            failed = 0
            theta, support, values = points[best].copy(), supports[best], known[best]
            removals.forget(removed[best])
            context.move(theta, float(values.mean()) if used == context.n else None)

    def _race(
        self, points: Array, values: Array, queue: Indices, leg: int, losses: Losses, context: Context
    ) -> Generator[Probes, Answers, tuple[Array, Array, int | None]]:
        """Race candidates against the iterate, whose values are ``values``, on more and more components of the queue.

        Returns the rises of the loss over the first leg, the values known of each candidate, and the candidate that
        beats the iterate over all components, if there is one.
        """
        known, at = np.repeat(values[None], len(points), axis=0), leg
        known[:, queue[:leg]] = yield from context.values(list(points), queue[:leg])
        losses.note(known[:, queue[:leg]])
        first = losses.rises(known, values, queue)
        rises, starts = first.copy(), range(0, len(points), self.candidates)
        left = np.array([at + np.argmin(rises[at : at + self.candidates]) for at in starts])  # the winner of each race
        left = left[rises[left] < 0]
        while left.size and at < queue.size:
            some = queue[at : 2 * at]
            if left.size * some.size > context.left:
                left = left[np.argsort(rises[left])][: int(context.left // some.size)]
            known[left[:, None], some] = yield from context.values(list(points[left]), some)
            losses.note(known[left[:, None], some])
            at += some.size
            rises[left] = losses.rises(known[left], values, queue)
            left = left[rises[left] < 0]
        return first, known, int(left[np.argmin(rises[left])]) if left.size else None


class RemovalCosts:
    """Estimates, for each group of the support, how much the loss rises when the group is removed."""

    def __init__(self, count: int) -> None:
        self.rise, self.known = np.zeros(count), np.zeros(count, bool)
        self.typical = 0.0

    def choose(self, size: int, count: int, context: Context) -> Indices:
        """``size`` groups to remove for each of ``count`` candidates; each the cheapest of three, if there are enough.

        Groups are given by their places in the support.
        """
        groups = self.rise.size
        drawn = np.argsort(context.rng.uniform(count * groups).reshape(count, groups), axis=1)
        choices = drawn[:, : size * min(3, groups // size)].reshape(count, size, -1)
        cheapest = np.argmin(self.rise[choices], axis=2)
        return np.asarray(np.take_along_axis(choices, cheapest[..., None], axis=2)[..., 0])

    def learn(self, removed: Indices, rises: Array) -> None:
        """Take in the result of a race: what each candidate removed, and by how much its loss rose."""
        share = 1 / removed.shape[1]
        for groups, rise in zip(removed.tolist(), (rises * share).tolist(), strict=True):
            for group in groups:
                self.rise[group] += (_RECENT if self.known[group] else 1.0) * (rise - self.rise[group])
                self.known[group] = True
            self.typical += _RECENT_IN_TYPICAL * (rise - self.typical)

    def forget(self, replaced: Indices) -> None:
        """Start again for groups that were replaced by others, with the typical cost."""
        self.rise[replaced] = self.typical
        self.known[replaced] = False


class Losses:
    """The concave loss of the components, relative to the lowest value seen: neither offset nor unit of F matter.

    Arguments
    ---------
    values: of the components in use at the start, shape (components,).
    """

    def __init__(self, values: Array) -> None:
        self.mean = float(values.mean())  # at the start
        self.floor, self.hits = np.inf, 0  # the lowest value seen, and how often it was
        self.note(values)

    def note(self, values: Array) -> None:
        """Take in values that have been seen."""
        lowest = float(values.min())
        if lowest < self.floor:
            self.floor, self.hits = lowest, 0
        self.hits += int((values == self.floor).sum())

    def at_floor(self, values: Array) -> NDArray[np.bool_]:
        """Which values are the lowest ones seen, if that has come more than once: they can probably not fall."""
        return (values <= self.floor) & (self.hits > 1)

    def rises(self, known: Array, values: Array, active: Indices) -> Array:
        """Return the rises of the loss over the components in use from ``values``, (n,), to ``known``, (rows, n)."""
        typical = self.mean - self.floor or 1.0
        ratios = (known[:, active] - self.floor) / typical, (values[active] - self.floor) / typical
        return np.asarray(np.log1p(ratios[0]).sum(axis=1) - np.log1p(ratios[1]).sum())


def _queue(fooled: NDArray[np.bool_], context: Context) -> Indices:
    """A random order of the components, in which those that can still fall mostly come first."""
    keys = context.rng.uniform(fooled.size) ** np.where(fooled, _FOOLED_LAST, 1.0)
    return np.argsort(-keys, kind="stable")
