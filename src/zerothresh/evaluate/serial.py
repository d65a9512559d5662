"""Evaluation in the caller's own thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zerothresh.evaluate.base import Arrival, Failure, split_ranges
from zerothresh.objective.forms import Objective
from zerothresh.rounds.plan import Plan


class Serial:
    """Calls the objective in the caller's own thread, one call after the other.

    Arguments
    ---------
    objective: the objective to call.
    chunk: the number of points per call of a vectorised function.
    """

    def __init__(self, objective: Objective, chunk: int) -> None:
        self.objective, self.chunk = objective, chunk
        self.outstanding = 0
        self.parallel = False
        self._halted = False

    def evaluate(self, plan: Plan, missing: list[tuple[int, int]]) -> Iterator[Arrival | Failure]:
        self._halted = False
        return self._batches(plan, missing) if self.objective.vectorized else self._points(plan, missing)

    def _batches(self, plan: Plan, missing: list[tuple[int, int]]) -> Iterator[Arrival | Failure]:
        """Evaluate a vectorised function, one batch of points at a time."""
        for start, stop in split_ranges(missing, self.chunk):
            if self._halted:
                return
            points = plan.points(start, stop)
            components = plan.components[start:stop]
            components.flags.writeable = False
            self.outstanding = stop - start
            answer: Arrival | Failure
            try:
                answer = Arrival(start, self.objective.batch(points, components))
            except (Exception, SystemExit) as error:  # a function that calls sys.exit() counts as a failed call
                answer = Failure(start, points[0], int(components[0]), error, stop - start)
            self.outstanding = 0
            yield answer

    def _points(self, plan: Plan, missing: list[tuple[int, int]]) -> Iterator[Arrival | Failure]:
        """Evaluate a function of one point, one row at a time."""
        components = plan.components.tolist()
        value = self.objective.value
        for first, last in missing:
            for row in range(first, last):
                if self._halted:
                    return
                point = plan.point(row)
                self.outstanding = 1
                answer: Arrival | Failure
                try:
                    answer = Arrival(row, np.array([value(point, components[row])]))
                except (Exception, SystemExit) as error:
                    answer = Failure(row, point, components[row], error)
                self.outstanding = 0
                yield answer

    def halt(self) -> None:
        self._halted = True

    def drain(self) -> Iterator[Arrival | Failure]:
        yield from ()

    def close(self) -> None:
        pass
