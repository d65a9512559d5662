"""A program at work: the waiting generator, and all values that it has seen.

The values are what a run folder keeps. From them the function can be led to the same place again, so a run
resumes after a kill, and a search can be advanced twice. While a run goes on nothing is repeated: the generator
itself waits between two rounds, and moves from each search to the one that follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import Diverged, HardThreshold
from zerothresh.methods.program.context import Asks, Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.rounds.search import Incumbent, Linearisation, Remark, Stage
from zerothresh.rounds.states import Arrays, StateError
from zerothresh.rounds.task import Task

FIRST_ROOM = 64  # values that fit before the array of values grows for the first time
SAME_ITERATE = 1e-6  # relative: another machine's linear algebra may differ in the last digits
SAME_ZERO = 1e-9  # of the iterate's scale, for coordinates near 0


class Replayed:
    """A program at work on one problem.

    Arguments
    ---------
    function: ``Program.search``, a generator function of a context.
    task: Task.
    values: float64 array, all values seen so far, in the order of the rounds.
    theta: float64 array (d,), the iterate that they lead to.
    round: int, default 0: the number of rounds that they answered.
    distrusted: bool, default False: whether some of the values were invented, as ``on_nan="worst"`` does.
    """

    states_fun = True

    def __init__(
        self,
        function: Callable[[Context], Asks],
        task: Task,
        values: Array | None = None,
        theta: Array | None = None,
        round: int = 0,
        distrusted: bool = False,
    ) -> None:
        self.function, self.task, self.round = function, task, round
        self.values: Array = np.empty(0) if values is None else values
        self.theta = task.theta0 if theta is None else theta
        self.distrusted = distrusted
        self.stepped = False
        self.remarks: Sequence[Remark] = ()
        self.stages: Sequence[Stage] = ()
        self._waiting: _Waiting | None = None  # the generator, while it stands where this search stands

    @property
    def request(self) -> Probes | None:
        return self._standing_here().request

    @property
    def incumbent(self) -> Incumbent:
        if self._waiting is None or self.distrusted:
            return Incumbent(self.theta)
        context = self._waiting.context
        fun = None if context.fun is None else float(context.fun * context.unit)
        return Incumbent(self.theta, fun, context.random)

    @property
    def certified(self) -> bool:
        return self._waiting is not None and self._waiting.context.certified and not self.distrusted

    @property
    def linearisation(self) -> Linearisation | None:
        return None if self._waiting is None else self._waiting.context.linearisation

    def advance(self, answers: Answers, H: HardThreshold) -> Replayed:
        waiting = self._standing_here()
        self._waiting = None  # the generator moves on: this search would be led there again
        try:
            waiting.send(answers, H)
        except Diverged:
            self.remarks = tuple(waiting.context.remarks)
            raise
        context = waiting.context
        after = Replayed(self.function, self.task, waiting.values, context.theta, context.round, self.distrusted)
        after.stepped = context.stepped
        after.remarks, after.stages = tuple(context.remarks), tuple(context.stages)
        after._waiting = waiting
        return after

    def distrust(self) -> None:
        self.distrusted = self._standing_here().context.distrusted = True

    def arrays(self) -> Arrays:
        distrusted = np.asarray(self.distrusted)
        return {"state.theta": self.theta, "state.values": self.values, "state.doubted": distrusted}

    def restored(self, arrays: Arrays, round: int) -> Replayed:
        for name, like in self.arrays().items():
            if name not in arrays:
                raise StateError(f"the snapshot has no {name}")
            array = arrays[name]
            if array.dtype.kind != like.dtype.kind or array.ndim != like.ndim:
                raise StateError(
                    f"the snapshot's {name} is {array.dtype} {array.shape}, not like {like.dtype} {like.shape}"
                )
            array.flags.writeable = False
        values, theta, distrusted = (arrays[f"state.{name}"] for name in ("values", "theta", "doubted"))
        return Replayed(self.function, self.task, values, theta, round, bool(distrusted))

    def _standing_here(self) -> _Waiting:
        """Return the waiting generator, led to this place again if it has moved on or was never started."""
        if self._waiting is None:
            waiting = _Waiting(self.function, self.task)
            waiting.context.distrusted = self.distrusted
            try:
                waiting.replay(self.values, self.round)
            except Diverged:
                raise StateError("the values lead the method out of the floating-point numbers") from None
            led, scale = waiting.context.theta, float(np.abs(self.theta).max(initial=0.0))
            if not np.allclose(led, self.theta, rtol=SAME_ITERATE, atol=SAME_ZERO * scale):
                raise StateError("the values lead the method to another iterate")
            if waiting.context.round != self.round:
                raise StateError(f"the values answer {waiting.context.round} rounds, and not {self.round}")
            self.theta, self._waiting = led, waiting
            self.remarks, self.stages = tuple(waiting.context.remarks), tuple(waiting.context.stages)
        return self._waiting


class _Waiting:
    """A generator that waits for the answers of its round, and the values that led it there."""

    def __init__(self, function: Callable[[Context], Asks], task: Task) -> None:
        self.task = task
        self.context = Context(task)
        self._generator = function(self.context)
        self._held, self._count, self._calls = np.empty(FIRST_ROOM), 0, 0
        with np.errstate(all="ignore"):
            self.request: Probes | None = next(self._generator, None)

    @property
    def values(self) -> Array:
        """All values so far, read-only."""
        values = self._held[: self._count]
        values.flags.writeable = False
        return values

    def send(self, answers: Answers, H: HardThreshold) -> None:
        """Let the generator go on up to its next request."""
        count = self._count + answers.raw.size
        if count > self._held.size:
            grown = np.empty(2 * count)
            grown[: self._count] = self._held[: self._count]
            self._held = grown
        self._held[self._count : count] = answers.raw
        self._count = count
        self._calls += answers.plan.calls
        self.context.enter(H, self._calls)
        try:
            with np.errstate(all="ignore"):
                self.request = self._generator.send(answers)
        except StopIteration:
            self.request = None

    def replay(self, values: Array, rounds: int) -> None:
        """Go through the rounds of the past; the last ones may have asked for nothing."""
        done = 0
        while done < values.size or self.context.round < rounds:
            if self.request is None:
                raise StateError("the values do not fit the method's rounds")
            plan = self.task.plan(self.request, self.context.round)
            if done + plan.size > values.size:
                raise StateError("the values end within a round")
            self.send(Answers(plan, values[done : done + plan.size]), HardThreshold(self.task.constraint))
            done += plan.size
