"""Evaluation in the caller's own thread."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from zerothresh.evaluate.base import AWAKE, Arrival, Failure, failure_of, split_ranges
from zerothresh.evaluate.rate_limit import RateLimit
from zerothresh.objective.forms import Objective

if TYPE_CHECKING:
    from zerothresh.rounds.plan import Plan


class Serial:
    """Calls the objective in the caller's own thread, one call after the other.

    Arguments
    ---------
    objective: the objective to call.
    chunk: the number of points per call of a vectorised function.
    limit: RateLimit, default None: when calls may begin.
    """

    width = 1
    cancelled = False

    def __init__(self, objective: Objective, chunk: int, limit: RateLimit | None = None) -> None:
        self.objective, self.chunk, self.limit = objective, chunk, limit
        self.deadline = math.inf
        self.outstanding = 0
        self._halted = False
        self._call: tuple[Plan, int, int] | None = None  # the latest call: the rows of a plan that it was for

    def evaluate(self, plan: Plan, missing: list[tuple[int, int]]) -> Iterator[Arrival | Failure]:
        self._halted = False
        return self._batches(plan, missing) if self.objective.vectorized else self._points(plan, missing)

    def _batches(self, plan: Plan, missing: list[tuple[int, int]]) -> Iterator[Arrival | Failure]:
        """Evaluate a vectorised function, one batch of points at a time."""
        for start, stop in split_ranges(missing, self.objective.most_points(self.chunk)):
            if self._halted or (self.limit is not None and not self._waited(self.limit)):
                return
            points = plan.points(start, stop)
            components = plan.components[start:stop]
            components.flags.writeable = False
            self._call = plan, start, stop
            self.outstanding = stop - start
            answer: Arrival | Failure
            try:
                answer = Arrival(start, self.objective.arrived(self.objective.batch(points, components)))
            except (Exception, SystemExit) as error:  # a function that calls sys.exit() counts as a failed call
                answer = Failure(start, points[0], int(components[0]), error, stop - start)
            self.outstanding = 0
            yield answer

    def _points(self, plan: Plan, missing: list[tuple[int, int]]) -> Iterator[Arrival | Failure]:
        """Evaluate a function of one point, one row at a time."""
        components = plan.components.tolist()
        value, arrived = self.objective.value, self.objective.arrived
        for first, last in missing:
            for row in range(first, last):
                if self._halted or (self.limit is not None and not self._waited(self.limit)):
                    return
                point = plan.point(row)
                self._call = plan, row, row + 1
                self.outstanding = 1
                answer: Arrival | Failure
                try:
                    answer = Arrival(row, arrived(value(point, components[row])))
                except (Exception, SystemExit) as error:
                    answer = Failure(row, point, components[row], error)
                self.outstanding = 0
                yield answer

    def _waited(self, limit: RateLimit) -> bool:
        """Wait until a call may begin; return whether it should."""
        while (wait := limit.wait()) > 0:
            time.sleep(min(wait, AWAKE))
            if self._halted or time.monotonic() >= self.deadline:
                return False
        limit.begin()
        return True

    def halt(self) -> None:
        self._halted = True

    def leave(self) -> None:
        if self.outstanding:
            raise KeyboardInterrupt  # breaks off the call, because the signal arrived in its thread

    def drain(self) -> Iterator[Arrival | Failure]:
        yield from ()

    def abandon(self, error: BaseException) -> Iterator[Failure]:
        calls, self.outstanding = self.outstanding, 0
        if calls and self._call is not None:
            yield failure_of(*self._call, error)

    def close(self) -> None:
        pass
