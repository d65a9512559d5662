"""The state of a program: all values that it has seen, from which it can be led to the same place again."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import Diverged, HardThreshold
from zerothresh.methods.program.context import Context, Setting
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.plan import Plan

if TYPE_CHECKING:
    from zerothresh.methods.program.program import Program


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
        if self.doubted or found is None or found.length != self.values.size or found.context.fun is None:
            return None
        return float(found.context.fun * found.context.unit)

    def doubt(self) -> None:
        """Some values of the round were made up: what the function believes of F is not to be told."""
        self.live(0, 0).context.doubted = True
        object.__setattr__(self, "doubted", True)

    @property
    def random(self) -> bool:
        """Whether the lowest value seen proves nothing, and the iterate is the answer."""
        found = self.__dict__.get("_live")
        return found is not None and found.context.random and not self.doubted

    @property
    def remarks(self) -> tuple[tuple[int, str], ...]:
        """What the function has said so far, with the number of calls that it had made."""
        found = self.__dict__.get("_live")
        return () if found is None else tuple(found.context.remarks)

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
            found.context.doubted = self.doubted
            try:
                found.replay(self.values)
            except Diverged:
                raise ValueError("the values lead the method out of the floating-point numbers") from None
            scale = float(np.abs(self.theta).max(initial=0.0))
            if not np.allclose(found.context.theta, self.theta, rtol=1e-6, atol=1e-9 * scale):
                raise ValueError("the values lead the method to another iterate")
            object.__setattr__(self, "theta", found.context.theta)  # the very same object: steps are told by it
            object.__setattr__(self, "_live", found)
        return found

    def carry(self, made: Script) -> None:
        """Give what is not kept on disk to a state that comes from there."""
        object.__setattr__(made, "_told", self.__dict__["_told"])


class _Live:
    """A function that waits for the answers of its round."""

    def __init__(self, method: Program, setting: Setting) -> None:
        self.method, self.setting = method, setting
        self.context = Context(setting)
        self.steps = method.search(self.context)
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
        state = Script(self.context.theta, values, self.context.doubted)
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
        context = self.context
        context.enter(H, self.length)
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
                self.pending,
                estimator,
                setting.theta.size,
                key=setting.key,
                round=self.context.round,
                box=constraint.box,
            )
            if done + plan.calls > values.size:
                raise ValueError("the values end within a round")
            self._advance(Answers(plan, values[done : done + plan.calls]), HardThreshold(constraint))
            done += plan.calls
