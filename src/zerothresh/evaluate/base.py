"""The protocol of an evaluator, and what it yields: values that arrived, and calls that failed."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.text import shorten

if TYPE_CHECKING:
    from zerothresh.rounds.plan import Plan

Array = NDArray[np.float64]

AWAKE = 0.2  # seconds between two looks at whether the run should stop, while an evaluator waits
MOST_SUMMARY = 1000  # characters; a message may be as long as a user's data


class WorkerDied(RuntimeError):
    """A worker process ended during a call."""


class WorkerNotStarted(RuntimeError):
    """A worker process did not become ready, so that the call was not made."""


class CallCancelled(RuntimeError):
    """A call on an event loop was cancelled, which tells nothing about its point."""


class CancelledBeforehand(CallCancelled):
    """A call on an event loop was cancelled before the function was called."""


class ClusterLost(RuntimeError):
    """The scheduler of a cluster is gone while a call was under way, and no more calls can be made."""


class ClusterLostBefore(ClusterLost, WorkerNotStarted):
    """The scheduler of a cluster is gone, and the call was not made."""


@dataclass(frozen=True)
class Failure:
    """A call of the objective that returned no usable value.

    Attributes
    ----------
    row: the row of the plan that the call was for (the first one, if it was for several).
    point: the point of that row, shape (d,).
    component: the component of that row.
    error: the exception that the objective raised, or that explains why there is no value.
    calls: the number of rows that the call was for; more than 1 only if the function is vectorised.
    begun: whether the objective was called at all; if it was not, nothing is charged to the budget.
    """

    row: int
    point: Array
    component: int
    error: BaseException
    calls: int = 1
    begun: bool = True

    @property
    def charged(self) -> int:
        """The number of calls that are charged to the budget."""
        return self.calls if self.begun else 0

    @property
    def summary(self) -> str:
        """The type and the message of the error, for one line of text; a very long message loses its middle."""
        return summary_of(self.error)

    @property
    def traceback(self) -> str:
        """The traceback of the error, as Python would print it."""
        return "".join(traceback.format_exception(self.error))


def summary_of(error: BaseException) -> str:
    """Return the type and the message of an exception; a very long message loses its middle."""
    try:
        text = str(error)
    except Exception:  # a user's exception class may be unable to describe itself
        text = ""
    name = type(error).__name__
    return shorten(f"{name}: {text}" if text else name, MOST_SUMMARY)


class Arrival(NamedTuple):
    """Values of the rows ``start`` to ``start + len(values) - 1`` of a plan.

    Attributes
    ----------
    start: the first row.
    values: the values of the objective, one per row.
    """

    start: int
    values: Array


class Evaluator(Protocol):
    """Evaluates the objective at the missing rows of a plan.

    ``evaluate`` is a generator: each item that it yields is counted and recorded by the caller before the evaluator
    gives the same worker another call.

    Attributes
    ----------
    outstanding: the number of calls that have begun and whose outcome has not been yielded.
    width: the largest number of calls in progress at a time.
    deadline: the time, by ``time.monotonic()``, up to which it may wait before it begins another call.
    """

    outstanding: int
    width: int
    deadline: float

    @property
    def cancelled(self) -> bool:
        """Whether the task that waits for the run was cancelled, so that the run should stop."""

    def evaluate(self, plan: Plan, missing: list[tuple[int, int]]) -> Iterator[Arrival | Failure]:
        """Evaluate row ranges of a plan.

        Arguments
        ---------
        plan: the points and components of a round.
        missing: the ranges [start, stop) of rows to evaluate.

        Yields
        ------
        The values in any order, and a `Failure` for each call that failed.
        """

    def halt(self) -> None:
        """Begin no more calls; ``evaluate`` yields the outcome of the calls in progress, and then ends.

        A signal handler may call this, and `leave`, at any instant.
        """

    def leave(self) -> None:
        """Do not even wait for the calls in progress; `abandon` names them."""

    def drain(self) -> Iterator[Arrival | Failure]:
        """Wait for the calls that were in progress when ``evaluate`` was abandoned, and yield their outcome."""

    def abandon(self, error: BaseException) -> Iterator[Failure]:
        """Yield the calls that have begun and that nobody waits for any more, because of an error: they failed."""

    def close(self) -> None:
        """Release the threads and processes that the evaluator started itself."""


def failure_of(plan: Plan, start: int, stop: int, error: BaseException, *, begun: bool = True) -> Failure:
    """Return the failure of a call for the rows [start, stop) of a plan."""
    return Failure(start, plan.point(start), int(plan.components[start]), error, stop - start, begun)


def count_parts(missing: list[tuple[int, int]], chunk: int) -> int:
    """Return the number of parts that `split_ranges` makes of row ranges."""
    return sum((stop - 1) // chunk - start // chunk + 1 for start, stop in missing if stop > start)


def split_ranges(missing: list[tuple[int, int]], chunk: int) -> Iterator[tuple[int, int]]:
    """Split row ranges at the multiples of ``chunk``.

    The splits do not depend on the number of workers, because a vectorised function may round differently for
    batches of different sizes.

    Arguments
    ---------
    missing: ranges [start, stop) of rows.
    chunk: the largest number of rows in a part.

    Yields
    ------
    The parts [start, stop), in order.
    """
    for start, stop in missing:
        at = start
        while at < stop:
            end = min(stop, at - at % chunk + chunk)
            yield at, end
            at = end
