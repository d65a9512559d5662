"""The search behind ``attack="best"``: extreme values, swaps of places, and races between them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.corner_moves import Grid, Places
from zerothresh.basics import check
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.program import Program
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Judge = Callable[[Array], Array]


@dataclass(frozen=True)
class FewPixel(Program):
    r"""Swaps between corners of the box, raced on a few components first.

    The iterate has k places (coordinates, or groups of them: pixels) at corners of the box. A candidate
    gives up some places for new ones, at random corners; once a single place is swapped, it may also
    move to a neighbour as it is, or have one of its colours turned. In round r,

    .. math:: s = \max(1, \mathrm{share} \cdot k / (1 + r / 5))

    places are swapped. Places that could be missed go first: of three, the one without which the loss
    rose least in the races so far. A round races a few candidates on a few components, mostly those that are
    not at 0 yet. The best one is then asked for on 2, 4, 8 ... times as many, as long as the loss falls, and
    is taken if it falls over all of them. When races fail one after the other, up to sixteen are run side by side,
    which makes larger batches for the model and hardly costs queries.

    "The loss" is

    .. math:: \sum_i \log(1 + f_i(\theta) / \bar f), \quad \bar f \text{ the mean at the start}

    so that a component that is far from 0 weighs less than several that are near: where not all can be brought to
    0, more of them are.

    Of many components, the first are used alone at first; their number doubles when all of them are at 0, or
    after so many calls of each.

    Components are taken to be at least 0, as losses are: nothing is left to do when all are 0.

    It needs finite bounds. It is no method for smooth problems whose solution is inside the box, which is
    why it is not among `zt.methods.available()`.

    Arguments
    ---------
    grid: (rows, columns, down, right), if the coordinates are an image: the coordinate below j is j + down, the
        one to the right j + right. None: there are no neighbours.
    candidates: swaps that are raced in a round. More make larger batches, and cost more queries.
    first: components that are used at first.
    passes: calls of each component that is used, before their number is doubled.
    share: the part of the places that is swapped at first.

    Reference: Croce, Andriushchenko, Singh, Flammarion and Hein (2022), Sparse-RS, AAAI, for swaps at extreme
    values with a falling size; the rest is ours.
    """

    grid: Grid | None = None
    candidates: int = 4
    first: int = 16
    passes: int = 30
    share: float = 0.4

    def __post_init__(self) -> None:
        if self.grid is not None:
            if len(self.grid) != 4:
                raise ValueError(f"grid must be (rows, columns, down, right), not {self.grid!r}")
            object.__setattr__(self, "grid", tuple(check.count("grid", number) for number in self.grid))
        for name in ("candidates", "first", "passes"):
            check.count(name, getattr(self, name))
        if not 0 < self.share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, not {self.share!r}")

    def search(self, context: Context) -> Asks:
        places = Places(context, self.grid)
        order = np.argsort(context.rng.uniform(context.n), kind="stable")  # in which components come into use
        used, began = min(self.first, context.n), 0.0
        theta, held = places.start(context)
        values = np.zeros(context.n)
        values[order[:used]] = (yield from context.values([theta], order[:used]))[0]
        worth = Worth(held.size)
        typical = float(values.sum()) / used or 1.0

        def judge(losses: Array) -> Array:
            return np.asarray(np.log1p(np.maximum(losses, 0.0) / typical).sum(axis=-1))

        context.random = True  # the iterate is the answer, even if F itself was lower once
        context.move(theta, float(values.mean()) if used == context.n else None)
        rounds = failed = 0
        while True:
            active = order[:used]
            if used < context.n and (not values[active].any() or context.used - began > self.passes * used):
                more = order[used : 2 * used]
                values[more] = (yield from context.values([theta], more))[0]
                used, began = used + more.size, context.used
                context.move(theta, float(values.mean()) if used == context.n else None)
                continue
            if not values[active].any():
                return
            size = min(held.size, max(1, round(self.share * held.size / (1 + rounds / 5))))
            rounds += 1
            queue = active[_queue(values[active], context)]
            look = min(used, max(2, round(0.6 * used**0.5)))
            affordable = (context.left - used + look) // look  # so that one of them can be asked for on all
            count = int(max(1, min(self.candidates * min(1 + failed // 8, 16), affordable)))
            given = worth.choose(size, count, context)
            points, supports = places.candidates(theta, held, given, context)
            rises, seen, best = yield from self._race(points, values, queue, look, judge, context)
            worth.learn(given, rises / look)
            if best is None:
                failed += -(-count // self.candidates)
                continue
            failed = 0
            theta, held, values = points[best].copy(), supports[best], seen[best]
            worth.forget(given[best])
            context.move(theta, float(values.mean()) if used == context.n else None)

    def _race(
        self, points: Array, values: Array, queue: Indices, look: int, judge: Judge, context: Context
    ) -> Generator[Probes, Answers, tuple[Array, Array, int | None]]:
        """Rises on the first components of the queue, all values that were seen, and the point that is below theirs."""
        seen, at, start = np.repeat(values[None], len(points), axis=0), look, judge(values)
        seen[:, queue[:look]] = yield from context.values(list(points), queue[:look])
        first = judge(seen) - start
        rises, starts = first.copy(), range(0, len(points), self.candidates)
        left = np.array([at + np.argmin(rises[at : at + self.candidates]) for at in starts])  # the first of each race
        left = left[rises[left] < 0]
        while left.size and at < queue.size:
            some = queue[at : 2 * at]
            if left.size * some.size > context.left:
                left = left[np.argsort(rises[left])][: int(context.left // some.size)]
            seen[left[:, None], some] = yield from context.values(list(points[left]), some)
            at += some.size
            rises[left] = judge(seen[left]) - start
            left = left[rises[left] < 0]
        return first, seen, int(left[np.argmin(rises[left])]) if left.size else None


class Worth:
    """How much the loss rose, in the races so far, when a place was given up."""

    def __init__(self, count: int) -> None:
        self.rise, self.known = np.zeros(count), np.zeros(count, bool)
        self.usual = 0.0

    def choose(self, size: int, count: int, context: Context) -> Indices:
        """``size`` places for each of ``count`` candidates; each the least of three, if there are so many."""
        places = self.rise.size
        drawn = np.argsort(context.rng.uniform(count * places).reshape(count, places), axis=1)
        groups = drawn[:, : size * min(3, places // size)].reshape(count, size, -1)
        least = np.argmin(self.rise[groups], axis=2)
        return np.asarray(np.take_along_axis(groups, least[..., None], axis=2)[..., 0])

    def learn(self, given: Indices, rises: Array) -> None:
        """A race is over: what each candidate gave up, and by how much the loss rose."""
        share = 1 / given.shape[1]
        for places, rise in zip(given.tolist(), (rises * share).tolist(), strict=True):
            for place in places:
                self.rise[place] += (0.3 if self.known[place] else 1.0) * (rise - self.rise[place])
                self.known[place] = True
            self.usual += 0.05 * (rise - self.usual)

    def forget(self, places: Indices) -> None:
        """Others are there now; they are taken to be worth as much as is usual."""
        self.rise[places] = self.usual
        self.known[places] = False


def _queue(values: Array, context: Context) -> Indices:
    """The order in which components are asked: those above 0 come first, mostly."""
    keys = context.rng.uniform(values.size) ** np.where(values > 0, 1.0, 20.0)
    return np.argsort(-keys, kind="stable")
