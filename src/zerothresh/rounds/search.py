"""A method at work on one problem: the one thing that the engine drives.

There are two implementations. `Stepwise` runs a method of three functions, ``init``, ``plan`` and ``update``. A
method that is one generator function brings its own: its ``begin(task)`` returns a search that replays values
(`zerothresh.methods.program`). Nothing outside the two knows which one it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.method import is_sparse, own_search, returned_point
from zerothresh.rounds.requests import Probes
from zerothresh.rounds.states import Arrays, flatten, restore
from zerothresh.rounds.task import Task
from zerothresh.sampling.philox import Stream

Remark = tuple[int, str]  # calls made by then, and a sentence for the user
Stage = tuple[int, str]  # calls made before, and the name of what the calls from then on are made for


class Incumbent(NamedTuple):
    """The point that a search would return now."""

    theta: Array  # (d,), read-only
    fun: float | None = None  # F there, if the search itself states it
    random: bool = False  # whether values are random, so that the lowest value seen proves nothing


class Linearisation(NamedTuple):
    """The derivatives of the outputs of a call by some coordinates, near a point."""

    coordinates: Indices  # (c,)
    jacobian: Array  # (m, c)
    calls: int  # that had been made when it was last refreshed


class Search(Protocol):
    """A method at work on one problem: what it wants to know, and what it has found."""

    states_fun: bool
    """Whether the search itself says what F is at its incumbent, and has paid for it."""

    round: int
    """The number of rounds that have been answered."""

    @property
    def request(self) -> Probes | None:
        """What is wanted in this round; None if the method has nothing more to ask."""

    @property
    def incumbent(self) -> Incumbent:
        """The point that the search would return now."""

    @property
    def stepped(self) -> bool:
        """Whether the last round made a step."""

    @property
    def remarks(self) -> Sequence[Remark]:
        """What the method has found and chosen so far."""

    @property
    def stages(self) -> Sequence[Stage]:
        """What calls were made for, if the method has stages."""

    @property
    def certified(self) -> bool:
        """Whether the incumbent is known to be optimal."""

    @property
    def linearisation(self) -> Linearisation | None:
        """How the outputs of a call depend on coordinates near the incumbent, if the method has found that out."""

    def advance(self, answers: Answers, H: HardThreshold) -> Search:
        """Return the search after a round. This one can be advanced again, with the same or with other answers."""

    def distrust(self) -> None:
        """Take note that values of the last round were invented: F at the incumbent is not known."""

    def arrays(self) -> Arrays:
        """Return what a snapshot keeps."""

    def restored(self, arrays: Arrays, round: int) -> Search:
        """Return a search that goes on from the snapshot of a round; `StateError` if it does not fit."""


def begin(task: Task) -> Search:
    """Return the search of a task before its first round."""
    own = own_search(task.method)
    if own is not None:
        search: Search = own(task)
        return search
    return Stepwise(task, task.method.init(task.theta0))


class Stepwise:
    """A method of three functions at work: its state, and the number of the round.

    A step is a round whose ``update`` used H: the anchor of an epoch is not a step. A method without the l0
    constraint need not use H; for it, a step is a round whose ``update`` returned another array for theta.
    """

    __slots__ = ("_request", "incumbent", "round", "state", "stepped", "task")
    states_fun = False
    remarks: Sequence[Remark] = ()
    stages: Sequence[Stage] = ()
    certified = False
    linearisation: Linearisation | None = None

    def __init__(self, task: Task, state: Any, round: int = 0, stepped: bool = False) -> None:
        self.task, self.state, self.round, self.stepped = task, state, round, stepped
        self.incumbent = Incumbent(returned_point(task.method, state))
        self._request: Probes | None = None

    @property
    def request(self) -> Probes | None:
        if self._request is None:
            task = self.task
            with np.errstate(all="ignore"):
                self._request = task.method.plan(self.state, task.n, Stream(task.seed, self.round, key=task.key))
        return self._request

    def advance(self, answers: Answers, H: HardThreshold) -> Stepwise:
        method, used = self.task.method, H.count
        state = method.update(self.state, answers, H)
        stepped = H.count > used if is_sparse(method) else state.theta is not self.state.theta
        return Stepwise(self.task, state, self.round + 1, stepped)

    def distrust(self) -> None:
        pass  # a method of three functions states no F

    def arrays(self) -> Arrays:
        return flatten(self.state)

    def restored(self, arrays: Arrays, round: int) -> Stepwise:
        return Stepwise(self.task, restore(self.state, arrays), round)
