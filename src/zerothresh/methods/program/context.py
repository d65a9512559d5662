"""What a program sees of its run: the constraint, what is left of the budget, and how to ask."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Generator
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.bounds import Box
from zerothresh.constraint.threshold import Constraint, HardThreshold
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.directions import Block, SparseBlock, draw
from zerothresh.sampling.philox import DIRECTIONS, Stream

PLENTY = 1e9  # calls, where nobody said how many
Asks = Generator[Probes, Answers, Any]


@dataclasses.dataclass(frozen=True)
class Setting:
    """What a program is told before its first round."""

    theta: Array
    n: int
    key: int
    constraint: Constraint | None = None  # None until the first answers, if the engine does not tell
    budget: int | None = None  # calls that it may plan with; None: not known
    estimator: Estimator | None = None  # the user's, if there is one


class Context:
    """What a program sees of its run: the constraint, what is left of the budget, and how to ask."""

    def __init__(self, setting: Setting) -> None:
        self.theta0 = self.theta = setting.theta
        self.n, self.d = setting.n, setting.theta.size
        self.everything = np.arange(self.n)
        self.estimator = setting.estimator
        self.round = self.used = 0
        self.fun: float | None = None  # F at the iterate
        self.doubted = False  # whether values were made up
        self.random = False  # whether values are random, so that the lowest one seen proves nothing
        self.remarks: list[tuple[int, str]] = []
        self._at_start: dict[int, float] = {}
        self.unit = 0.0  # values are told in this unit, so that they are neither tiny nor huge; 0: not known yet
        self._setting = setting
        self._constraint = setting.constraint
        self._threshold: HardThreshold | None = None
        self.rng = Stream(0, 0, key=setting.key)  # the random numbers of this round

    def enter(self, H: HardThreshold, used: int) -> None:
        """The engine's: a new round begins."""
        self.round += 1
        self.used = used
        self._threshold, self._constraint = H, H.constraint
        self.rng = Stream(0, self.round, key=self._setting.key)

    # The constraint.

    @property
    def constraint(self) -> Constraint:
        """The feasible set."""
        assert self._constraint is not None
        return self._constraint

    @property
    def box(self) -> Box | None:
        """Bounds, if there are any."""
        return None if self._constraint is None else self._constraint.box

    @property
    def k(self) -> int:
        """The most non-zeros (or groups)."""
        return self.constraint.k

    def H(self, v: Array) -> Array:
        """Hard thresholding, counted."""
        assert self._threshold is not None
        return self._threshold(v)

    # The budget.

    @property
    def left(self) -> float:
        """Calls that are left to plan with; plenty if nobody said, or if the budget was raised later."""
        budget = self._setting.budget
        return PLENTY if budget is None or self.used > budget else budget - self.used

    # What is told.

    def move(self, theta: Array, fun: float | None = None) -> None:
        """The iterate is now theta, which holds the constraint."""
        theta.flags.writeable = False
        self.theta, self.fun = theta, fun

    def remark(self, words: str) -> None:
        """A remark for the user."""
        self.remarks.append((self.used, words))

    # Directions.

    def directions(self, family: str, q: int) -> Block:
        """A block of q random directions of this round."""
        tag = (DIRECTIONS << 24) + 1
        return draw(family, q, self.d, self.d, key=self._setting.key, round=self.round, tag=tag)

    # Questions.

    def values(self, points: list[Array], of: Indices | None = None) -> Generator[Probes, Answers, Array]:
        """f_i at points: (points, components)."""
        of = self.everything if of is None else of
        if not points or not of.size:
            return np.empty((len(points), of.size))
        answers = yield Probes.values(points, of)
        return self._in_units(answers.values)

    def _in_units(self, values: Array) -> Array:
        if not self.unit:
            size = float(np.abs(values).max(initial=0.0))
            self.unit = math.ldexp(1.0, math.frexp(size)[1]) if 0 < size < 1e300 else 1.0 if size == 0 else 2.0**1000
        return values / self.unit

    def around(
        self, theta: Array, block: Block, h: float, count: int, of: Indices
    ) -> Generator[Probes, Answers, Array]:
        """f_i(theta + h u_l) for the directions of a block: (components, directions)."""
        answers = yield Probes.around(theta, block, h, count, of)
        return self._in_units(answers.moved)

    def remember(self, component: int, value: float) -> None:
        """f_i at the start is known, and need not be asked for again."""
        self._at_start[component] = value

    def starts(self, of: Indices) -> Generator[Probes, Answers, Array]:
        """f_i at the start, of some components."""
        missing = np.array([i for i in of.tolist() if i not in self._at_start], dtype=np.int64)
        if missing.size:
            values = yield from self.values([self.theta0], missing)
            self._at_start.update(zip(missing.tolist(), values[0].tolist(), strict=True))
        return np.array([self._at_start[i] for i in of.tolist()])

    def slopes(
        self, theta: Array, chosen: Indices, h: float, of: Indices, base: Array, *, central: bool = False
    ) -> Generator[Probes, Answers, tuple[Array, Array]]:
        """(f_i(theta + h_j e_j) - f_i(theta)) / h_j, (components, coordinates), and the steps h_j.

        ``base`` are the f_i(theta). Steps are turned and shortened to stay within bounds. A change that is
        out of all proportion is asked for once more: a value that comes once and not again is an outlier.
        """
        steps = self.steps_inside(theta, chosen, h)
        if not chosen.size or not of.size:
            return np.empty((of.size, chosen.size)), steps
        block = SparseBlock.coordinates(self.d, chosen, steps)
        moved = yield from self.around(theta, block, 1.0, chosen.size, of)
        changes = yield from self._once_more(theta, chosen, steps, of, base, moved - base[:, None])
        slopes = changes / steps
        if central and self.box is None:
            back = SparseBlock.coordinates(self.d, chosen, -steps)
            moved = yield from self.around(theta, back, 1.0, chosen.size, of)
            others = yield from self._once_more(theta, chosen, -steps, of, base, moved - base[:, None])
            slopes = 0.5 * (slopes - others / steps)
        return slopes, steps

    def _once_more(
        self, theta: Array, chosen: Indices, steps: Array, of: Indices, base: Array, changes: Array
    ) -> Generator[Probes, Answers, Array]:
        """Ask again for the few changes that are a thousand times the usual one."""
        size = np.abs(changes)
        usual = np.median(size, axis=1, keepdims=True)
        odd = (size > 1e3 * usual) & (size > 1e-3 * np.abs(base[:, None])) & (usual > 0)
        if not odd.any() or 4 * odd.sum() > max(odd.size, 8):
            return changes
        rows, columns = np.nonzero(odd)
        points = np.repeat(theta[None], rows.size, axis=0)
        points[np.arange(rows.size), chosen[columns]] += steps[columns]
        again = (yield from self.each(points, of[rows])) - base[rows]
        out = changes.copy()
        out[rows, columns] = np.where(np.abs(again) < size[rows, columns], again, changes[rows, columns])
        return out

    def steps_inside(self, theta: Array, chosen: Indices, h: float) -> Array:
        """A step of length h for each coordinate, in a direction where there is context."""
        steps = np.full(chosen.size, h)
        box = self.box
        if box is not None:
            up, down = box.high[chosen] - theta[chosen], theta[chosen] - box.low[chosen]
            steps = np.where(up >= h, h, np.where(down >= h, -h, np.where(up >= down, up, -down)))
        return steps

    def inside(self, point: Array) -> Array:
        """The nearest point within the bounds."""
        box = self.box
        return point if box is None else np.clip(point, box.low, box.high)

    def each(self, points: Array, of: Indices) -> Generator[Probes, Answers, Array]:
        """f_i at a point of its own for each component."""
        if not of.size:
            return np.empty(0)
        answers = yield Probes.each(points, of)
        return self._in_units(answers.paired)

    def free(self) -> Indices:
        """The coordinates that may be other than 0."""
        box = self.box
        if box is None:
            return np.arange(self.d)
        return np.flatnonzero(box.high > box.low)
