"""What a method is: hyper-parameters and three pure functions, or a search of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


class Method(Protocol):
    """A frozen dataclass of hyper-parameters with three pure functions.

    A state is what the method knows between two rounds: a frozen dataclass of arrays, numbers and strings, whose
    field ``theta`` of shape (d,) is the iterate.

    A run returns the iterate. A method that would return another point has a fourth function, ``returned(state)``.

    Where one call returns many outputs, a method sees one component per output. One that only makes use of F says so,
    by ``whole = True`` in its class, and then sees F as its only component.

    A method whose logic has many phases may instead be one generator function: see `zerothresh.Program`.
    """

    def init(self, theta: Array) -> Any:
        """Return the state before the first round, at the start ``theta`` of shape (d,)."""

    def plan(self, state: Any, n: int, rng: Stream) -> Probes | None:
        """Return what has to be known next: gradients or values of which components, at which points.

        None ends the run: the method has nothing more to ask.
        """

    def update(self, state: Any, answers: Answers, H: HardThreshold) -> Any:
        """Return the next state. ``H`` is the hard thresholding H_k; each use counts as one #NHT."""


def own_search(method: Any) -> Callable[[Any], Any] | None:
    """Return ``begin``, the function of a task by which a method brings a search of its own; None if it has none."""
    begin = getattr(method, "begin", None)
    return begin if callable(begin) else None


def returned_point(method: Any, state: Any) -> Array:
    """Return the point that a method would return now: ``returned(state)`` if it has that function, or its iterate."""
    returned = getattr(method, "returned", None)
    theta: Array = returned(state) if callable(returned) else state.theta
    return theta


def is_sparse(method: Any) -> bool:
    """Return whether a method's iterates keep the l0 constraint; one that does not says ``sparse = False``."""
    return bool(getattr(method, "sparse", True))


def chooses_steps(method: Any) -> bool:
    """Return whether a method chooses its own difference steps and fits itself into the budget.

    Such a method says ``chooses_steps = True``. The estimator's mu need not suit the problem then, and only the
    first round has to fit into the budget.
    """
    return bool(getattr(method, "chooses_steps", False))


def must_improve(method: Any) -> bool:
    """Return whether a run that ends at its start has failed; a method that promises more says ``must_improve = True``.

    The methods of the paper promise nothing about single runs.
    """
    return bool(getattr(method, "must_improve", False))


def bounds_k_itself(method: Any) -> bool:
    """Return whether a method runs others for several k, each of which keeps its own; it says ``bounds_k_itself``."""
    return bool(getattr(method, "bounds_k_itself", False))


def reserved_calls(method: Any, n: int, budget: int) -> int:
    """Return how many calls of a budget are kept for F at the result: n, unless the method's ``reserve`` says less.

    A method that can tell from a part of the components that its point is better may need the calls more than F.
    """
    reserve = getattr(method, "reserve", None)
    return int(reserve(n, budget)) if callable(reserve) else n


def keeps_constraints(method: Any) -> bool:
    """Return whether a method keeps constraints beyond bounds and groups; one that does not says so.

    Whatever takes its steps by ``H`` keeps them. A method that plans with bounds alone says
    ``keeps_constraints = False``.
    """
    return bool(getattr(method, "keeps_constraints", True))


def asks_feasible(method: Any) -> bool:
    """Return whether a method queries feasible points only where ``strict`` asks for it: ``asks_feasible = True``."""
    return bool(getattr(method, "asks_feasible", False))


def sees_whole(method: Any) -> bool:
    """Return whether a method sees F as one component where one call returns many outputs.

    Such a method says ``whole = True``; another one sees a component per output.
    """
    return bool(getattr(method, "whole", False))


@dataclasses.dataclass(frozen=True)
class Iterate:
    """The state of a method without memory."""

    theta: Array
