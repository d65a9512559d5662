"""The evaluator protocol."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from zerothresh.rounds.plan import Plan

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Failure:
    """A call of the objective that gave no value."""

    row: int
    point: Array
    component: int
    error: BaseException
    calls: int = 1  # rows that the failed call was for (more than one: a vectorised function)
    begun: bool = True  # False: it never reached the function, so it is not charged

    @property
    def charged(self) -> int:
        """Calls that it counts as."""
        return self.calls if self.begun else 0

    @property
    def words(self) -> str:
        """The error in a line; an exception may fail even to say what it is."""
        try:
            text = str(self.error)
        except Exception:
            text = ""
        return f"{type(self.error).__name__}: {text}" if text else type(self.error).__name__

    @property
    def traceback(self) -> str:
        """The user's own traceback."""
        return "".join(traceback.format_exception(self.error))


class Arrival(NamedTuple):
    """Values of the rows start .. start + len(values) - 1."""

    start: int
    values: Array


class Evaluator(Protocol):
    """Evaluates the missing rows of a plan.

    ``evaluate`` is a generator: what it yields is dealt with (counted, written down) before it asks
    the same worker for more. ``outstanding`` is the number of calls that were begun and have not been
    yielded.
    """

    outstanding: int

    def evaluate(self, plan: Plan, missing: list[tuple[int, int]]) -> Iterator[Arrival | Failure]:
        """Yield the values of the row ranges [start, stop) in any order; a `Failure` for a call that failed."""

    def halt(self) -> None:
        """Begin no more calls: ``evaluate`` yields what is under way, and ends."""

    def drain(self) -> Iterator[Arrival | Failure]:
        """After ``evaluate`` was broken off: wait for the calls under way, and yield them."""

    def close(self) -> None:
        """Let go of what the evaluator started itself."""


def pieces(missing: list[tuple[int, int]], chunk: int) -> Iterator[tuple[int, int]]:
    """Cut row ranges at multiples of ``chunk``.

    The cuts depend on nothing but the chunk: not on the number of workers, because a vectorised
    function may round differently for batches of different sizes.
    """
    for start, stop in missing:
        at = start
        while at < stop:
            end = min(stop, at - at % chunk + chunk)
            yield at, end
            at = end
