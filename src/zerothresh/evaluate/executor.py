"""Evaluation on the workers of a `concurrent.futures.Executor`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import Any

import numpy as np

from zerothresh.evaluate.base import Arrival, Failure, pieces
from zerothresh.plan import Plan
from zerothresh.problem import Objective


class OnExecutor:
    """At most ``width`` calls under way; the next is begun only when a value has been dealt with."""

    def __init__(self, objective: Objective, chunk: int, executor: Executor, width: int, *, own: bool) -> None:
        self.objective, self.chunk = objective, chunk if objective.vectorized else 1
        self.executor, self.width, self.own = executor, width, own
        self.outstanding = 0

    def evaluate(self, plan: Plan, missing: list[tuple[int, int]]) -> Iterator[Arrival | Failure]:
        todo = pieces(missing, self.chunk)
        running: dict[Future[Any], tuple[int, int]] = {}
        try:
            more = True
            while more or running:
                while more and len(running) < self.width:
                    piece = next(todo, None)
                    if piece is None:
                        more = False
                        break
                    running[self._submit(plan, *piece)] = piece
                    self.outstanding += piece[1] - piece[0]
                if not running:
                    break
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=running.__getitem__):
                    start, stop = running.pop(future)
                    self.outstanding -= stop - start
                    yield self._answer(plan, future, start, stop)
        finally:  # stopped early: what has not begun is taken back and was not a call
            for future, (start, stop) in running.items():
                if future.cancel():
                    self.outstanding -= stop - start

    def _submit(self, plan: Plan, start: int, stop: int) -> Future[Any]:
        components = plan.components[start:stop]
        if self.objective.vectorized:
            return self.executor.submit(_batch, self.objective, plan.points(start, stop), components)
        return self.executor.submit(_value, self.objective, plan.point(start), int(components[0]))

    def _answer(self, plan: Plan, future: Future[Any], start: int, stop: int) -> Arrival | Failure:
        error = future.exception()
        if error is not None:
            if not isinstance(error, Exception):
                raise error  # KeyboardInterrupt out of a worker
            return Failure(start, plan.point(start), int(plan.components[start]), error, stop - start)
        return Arrival(start, np.atleast_1d(future.result()))

    def close(self) -> None:
        if self.own:
            self.executor.shutdown(wait=False, cancel_futures=True)


def _sealed(array: Any) -> Any:
    """Read-only; on the worker, because a process gets a copy that is writeable again."""
    array.flags.writeable = False
    return array


def _batch(objective: Objective, points: Any, components: Any) -> Any:
    return objective.batch(_sealed(points), _sealed(components))


def _value(objective: Objective, point: Any, component: int) -> float:
    return objective.value(_sealed(point), component)
