"""The state of a few-pixel search for one k: a perturbation at corners, improved by races between candidates."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.corner_moves import CornerMoves
from zerothresh.attack.removal_costs import RemovalCosts
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Round = Generator[Probes, Answers, None]

_SWAPS_FALL_OVER = 5  # rounds after which half as many groups are swapped as at first
_MOST_RACES = 16  # side by side
_FAILURES_PER_RACE = 8  # failed races in a row after which one more is run side by side
_FIRST_LEG = 0.6  # times the root of the components in use: how many of them a race begins with
_NONE: Indices = np.empty(0, np.int64)
_FOOLED_LAST = 20.0  # the larger, the later components at the lowest value come in a race


@dataclass(frozen=True)
class Rules:
    """The settings of `FewPixel` that a search needs; see there."""

    candidates: int
    first: int
    passes: int
    share: float


class SwapSearch:
    """A search for one k, which goes on by one round of races at a time.

    Arguments
    ---------
    moves: CornerMoves, which proposes starts and candidates for this k.
    rules: Rules.
    context: of the method that it is a part of.
    left: function of nothing that returns the calls that the search may still make.

    Attributes
    ----------
    theta, support: the iterate, and its groups as `moves` numbers them.
    values: float64 array (n,), f_i there for the components in use; 0 elsewhere.
    calls: int, made so far.
    """

    def __init__(self, moves: CornerMoves, rules: Rules, context: Context, left: Callable[[], float]) -> None:
        self._moves, self._rules, self._context, self._left = moves, rules, context, left
        self._used, self._doubled_at = min(rules.first, context.n), 0
        self._rounds = self._failed = self.calls = 0

    def begin(self) -> Round:
        """Look at the starts that the moves propose, and begin with the best of them."""
        context = self._context
        self._order = np.argsort(context.rng.uniform(context.n), kind="stable")  # in which components come into use
        starts = self._moves.starts(context)
        told = yield from self._ask([theta for theta, _ in starts], self.active)
        best = int(np.argmin(told.mean(axis=1)))
        self.theta, self.support = starts[best]
        self.values: Array = np.zeros(context.n)
        self.values[self.active] = told[best]
        self._fresh = self.support.size  # groups that nothing has been found out about: as many may be swapped at first
        self._removals, self._losses = RemovalCosts(self.support.size), Losses(told[best])

    def begin_with(self, other: SwapSearch) -> Round:
        """Begin where a search for a smaller k stands, whose values are known, with or without random new groups.

        Without them, the groups that are added are 0 as yet.
        """
        context = self._context
        self._order, self._used, self._losses = other._order, other._used, other._losses
        self._fresh = self._moves.k - other.support.size
        self._removals = other._removals.extended(self._fresh)
        self.theta, self.values = other.theta, other.values.copy()
        self.support = self._moves.extended(other.support, context)
        if self.price > self._left():
            return
        count = self._rules.candidates
        filled = np.array([self._moves.filled(self.theta, self.support, self._fresh, context) for _ in range(count)])
        _, known, best, _ = yield from self._race(filled, self._new_queue(), self._leg)
        if best is not None:
            self.theta, self.values = filled[best].copy(), known[best]

    @property
    def active(self) -> Indices:
        """The components in use."""
        return self._order[: self._used]

    @property
    def whole(self) -> bool:
        """Whether all components are in use, so that F is known."""
        return self._used == self._context.n

    @property
    def fun(self) -> float | None:
        """F at the iterate in `Context.unit`, if it is known."""
        return float(self.values.mean()) if self.whole else None

    @property
    def ended(self) -> bool:
        """Whether all components are 0, which losses cannot fall below."""
        return self.whole and not self.values.any()

    def _ask(self, points: list[Array], of: Indices) -> Generator[Probes, Answers, Array]:
        self.calls += len(points) * of.size
        return (yield from self._context.values(points, of))

    @property
    def price(self) -> int:
        """The fewest calls that the next round may cost."""
        coming = int(self._coming.size)
        return coming or self._leg

    @property
    def _coming(self) -> Indices:
        """The components that come into use next, if it is time for that."""
        over = self.calls - self._doubled_at > self._rules.passes * self._used
        return self._order[self._used : 2 * self._used] if over or not self.values[self.active].any() else _NONE

    @property
    def _leg(self) -> int:
        """How many components a race begins with."""
        return int(min(self._used, max(2, round(_FIRST_LEG * self._used**0.5))))

    def round(self) -> Round:
        """Use more components, or race candidates."""
        context, rules, more = self._context, self._rules, self._coming
        if more.size:
            self.values[more] = (yield from self._ask([self.theta], more))[0]
            self._losses.note(self.values[more])
            self._used, self._doubled_at = self._used + more.size, self.calls
            return
        size = min(self.support.size, max(1, round(rules.share * self._fresh / (1 + self._rounds / _SWAPS_FALL_OVER))))
        self._rounds += 1
        queue = self._new_queue()
        leg = self._leg
        affordable = (self._left() - self._used + leg) // leg  # so that one of them can be evaluated on all
        races = min(1 + self._failed // _FAILURES_PER_RACE, _MOST_RACES)
        count = int(max(1, min(rules.candidates * races, affordable)))
        proposed = self._moves.propose(self.theta, self.support, self._removals, size, count, context)
        rises, known, best, fall = yield from self._race(proposed.points, queue, leg)
        self._removals.learn(proposed.removed, rises / leg)
        proposed.learn(best, fall)
        if best is None:
            self._failed += -(-count // rules.candidates)
            return
        self._failed = 0
        self.theta, self.support, self.values = proposed.points[best].copy(), proposed.supports[best], known[best]
        self._removals.forget(proposed.removed[best])

    def _new_queue(self) -> Indices:
        """A random order of the components in use, in which those that can still fall mostly come first."""
        low = self._losses.at_floor(self.values[self.active])
        keys = self._context.rng.uniform(low.size) ** np.where(low, _FOOLED_LAST, 1.0)
        return np.asarray(self.active[np.argsort(-keys, kind="stable")])

    def _race(
        self, points: Array, queue: Indices, leg: int
    ) -> Generator[Probes, Answers, tuple[Array, Array, int | None, float]]:
        """Race candidates against the iterate on more and more components of the queue.

        Returns the rises of the loss over the first leg, the values known of each candidate, the candidate that beats
        the iterate over all components, if there is one, and by how much the loss falls there.
        """
        values, losses, candidates = self.values, self._losses, self._rules.candidates
        known, at = np.repeat(values[None], len(points), axis=0), leg
        known[:, queue[:leg]] = yield from self._ask(list(points), queue[:leg])
        losses.note(known[:, queue[:leg]])
        first = losses.rises(known, values, queue)
        rises, starts = first.copy(), range(0, len(points), candidates)
        left = np.array([at + np.argmin(rises[at : at + candidates]) for at in starts])  # the winner of each race
        left = left[rises[left] < 0]
        while left.size and at < queue.size:
            some = queue[at : 2 * at]
            if left.size * some.size > self._left():
                left = left[np.argsort(rises[left])][: int(self._left() // some.size)]
            known[left[:, None], some] = yield from self._ask(list(points[left]), some)
            losses.note(known[left[:, None], some])
            at += some.size
            rises[left] = losses.rises(known[left], values, queue)
            left = left[rises[left] < 0]
        if not left.size:
            return first, known, None, 0.0
        best = int(left[np.argmin(rises[left])])
        return first, known, best, -float(rises[best])


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
        lowest = float(values.min(initial=np.inf))
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
