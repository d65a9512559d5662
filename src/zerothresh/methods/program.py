"""Methods that are written as one function: it asks with `yield`, and goes on with the answers.

The state of such a method is the list of all values that it has seen. From that list the function can
be led to the same place again, so a run resumes after a kill, and a state can be used twice. While a
run goes on nothing is repeated: the function itself waits between two rounds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Generator
from typing import Any

import numpy as np

from zerothresh.directions import Block, SparseBlock, draw
from zerothresh.estimate import Answers
from zerothresh.methods.base import Array
from zerothresh.plan import Box, Estimator, Indices, Plan, Probes
from zerothresh.randomness import DIRECTIONS, Stream
from zerothresh.threshold import Constraint, Diverged, HardThreshold

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


class Program:
    """The base of a method that is a function: override `search`."""

    def search(self, room: Room) -> Asks:
        """Yield probes, get answers; use ``room`` for everything else."""
        raise NotImplementedError

    def init(self, theta: Array, setting: Setting | None = None) -> Script:
        """The state before the first round; the engine tells the setting."""
        state = Script(theta, np.empty(0))
        object.__setattr__(state, "_told", (self, setting))
        return state

    def plan(self, state: Script, n: int, rng: Stream) -> Probes | None:
        """What the function waits for; None: it has ended."""
        return state.live(n, rng.key).pending

    def update(self, state: Script, answers: Answers, H: HardThreshold) -> Script:
        """Let the function go on with the answers."""
        return state.live(0, 0, answers, H).send(answers, H)


@dataclasses.dataclass(frozen=True)
class Script:
    """The iterate, and all values seen: what leads the function to the same place again."""

    theta: Array
    values: Array
    doubted: bool = False  # whether some of the values were made up, as on_nan="worst" does

    @property
    def fun(self) -> float | None:
        """F at the iterate, if it is known."""
        found = self.__dict__.get("_live")
        if self.doubted or found is None or found.length != self.values.size or found.room.fun is None:
            return None
        return float(found.room.fun * found.room.unit)

    def doubt(self) -> None:
        """Some values of the round were made up: what the function believes of F is not to be told."""
        self.live(0, 0).room.doubted = True
        object.__setattr__(self, "doubted", True)

    @property
    def random(self) -> bool:
        """Whether the lowest value seen proves nothing, and the iterate is the answer."""
        found = self.__dict__.get("_live")
        return found is not None and found.room.random and not self.doubted

    @property
    def remarks(self) -> tuple[tuple[int, str], ...]:
        """What the function has said so far, with the number of calls that it had made."""
        found = self.__dict__.get("_live")
        return () if found is None else tuple(found.room.remarks)

    def live(self, n: int, key: int, answers: Answers | None = None, H: HardThreshold | None = None) -> _Live:
        """The waiting function, led there again if it is elsewhere by now."""
        found: _Live | None = self.__dict__.get("_live")
        if found is None or found.length != self.values.size:
            method, setting = self.__dict__["_told"]
            if setting is None or setting.constraint is None:
                known = None if H is None else H.constraint
                if answers is not None and setting is None:
                    raise RuntimeError("a state is updated before it was planned")
                setting = setting or Setting(self.theta, n, key)
                setting = dataclasses.replace(setting, constraint=known)
                object.__setattr__(self, "_told", (method, setting))
            found = _Live(method, setting)
            found.room.doubted = self.doubted
            try:
                found.replay(self.values)
            except Diverged:
                raise ValueError("the values lead the method out of the floating-point numbers") from None
            scale = float(np.abs(self.theta).max(initial=0.0))
            if not np.allclose(found.room.theta, self.theta, rtol=1e-6, atol=1e-9 * scale):
                raise ValueError("the values lead the method to another iterate")
            object.__setattr__(self, "theta", found.room.theta)  # the very same object: steps are told by it
            object.__setattr__(self, "_live", found)
        return found

    def carry(self, made: Script) -> None:
        """Give what is not kept on disk to a state that comes from there."""
        object.__setattr__(made, "_told", self.__dict__["_told"])


class _Live:
    """A function that waits for the answers of its round."""

    def __init__(self, method: Program, setting: Setting) -> None:
        self.method, self.setting = method, setting
        self.room = Room(setting)
        self.steps = method.search(self.room)
        self.held = np.empty(64)
        self.length = 0
        with np.errstate(all="ignore"):
            self.pending = next(self.steps, None)

    def send(self, answers: Answers, H: HardThreshold) -> Script:
        """Go on, up to the next round."""
        if self.setting.constraint is None:
            self.setting = dataclasses.replace(self.setting, constraint=H.constraint)
        self._advance(answers, H)
        values = self.held[: self.length]
        values.flags.writeable = False
        state = Script(self.room.theta, values, self.room.doubted)
        object.__setattr__(state, "_told", (self.method, self.setting))
        object.__setattr__(state, "_live", self)
        return state

    def _advance(self, answers: Answers, H: HardThreshold) -> None:
        raw = answers.raw
        if self.length + raw.size > self.held.size:
            grown = np.empty(2 * (self.length + raw.size))
            grown[: self.length] = self.held[: self.length]
            self.held = grown
        self.held[self.length : self.length + raw.size] = raw
        self.length += raw.size
        room = self.room
        room.enter(H, self.length)
        try:
            with np.errstate(all="ignore"):
                self.pending = self.steps.send(answers)
        except StopIteration:
            self.pending = None

    def replay(self, values: Array) -> None:
        """Go through the rounds of the past."""
        setting, done = self.setting, 0
        while done < values.size:
            constraint = setting.constraint
            if self.pending is None or constraint is None:
                raise ValueError("the values do not fit the method's rounds")
            estimator = setting.estimator or Estimator()
            plan = Plan(
                self.pending, estimator, setting.theta.size, key=setting.key, round=self.room.round, box=constraint.box
            )
            if done + plan.calls > values.size:
                raise ValueError("the values end within a round")
            self._advance(Answers(plan, values[done : done + plan.calls]), HardThreshold(constraint))
            done += plan.calls


class Room:
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

    def say(self, words: str) -> None:
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
        """A step of length h for each coordinate, in a direction where there is room."""
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
