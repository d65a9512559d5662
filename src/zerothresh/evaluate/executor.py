"""Evaluation on the workers of a `concurrent.futures.Executor`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import Any

import numpy as np

from zerothresh.evaluate.base import Arrival, Failure, pieces
from zerothresh.evaluate.pool import DaemonPool
from zerothresh.objective.forms import Objective
from zerothresh.rounds.plan import Plan


class OnExecutor:
    """At most ``width`` calls under way; the next is begun only when a value has been dealt with.

    A call that takes longer than ``timeout`` seconds is given up: it fails with TimeoutError. A thread
    of our own that hangs in it is left behind and replaced; what a user's executor does with its
    worker is the executor's affair.
    """

    def __init__(
        self, objective: Objective, chunk: int, executor: Executor, width: int, *, own: bool, timeout: float | None
    ) -> None:
        self.objective, self.chunk = objective, chunk if objective.vectorized else 1
        self.executor, self.width, self.own, self.timeout = executor, width, own, timeout
        self.outstanding = 0
        self._halted = False
        self._running: dict[Future[Any], tuple[Plan, int, int, float]] = {}

    def evaluate(self, plan: Plan, missing: list[tuple[int, int]]) -> Iterator[Arrival | Failure]:
        todo = pieces(missing, self.chunk)
        self._halted = False
        more = True
        while True:
            while more and not self._halted and len(self._running) < self.width:
                piece = next(todo, None)
                if piece is None:
                    more = False
                    break
                try:
                    future = self._submit(plan, *piece)
                except Exception as error:  # the executor is broken, or has been shut down
                    self.halt()
                    yield self._failure(plan, *piece, error, begun=False)
                    break
                self._running[future] = plan, *piece, time.monotonic()
                self.outstanding += piece[1] - piece[0]
            if not self._running:
                return
            yield from self._finished()

    def drain(self) -> Iterator[Arrival | Failure]:
        self.halt()
        while self._running:
            yield from self._finished()

    def halt(self) -> None:
        self._halted = True
        for future, (_, start, stop, _) in list(self._running.items()):
            if future.cancel():  # it had not begun, so it was not a call
                del self._running[future]
                self.outstanding -= stop - start

    def _finished(self) -> Iterator[Arrival | Failure]:
        """Wait for one call at least, or for one that takes too long."""
        patience = None
        if self.timeout is not None:
            oldest = min(begun for _, _, _, begun in self._running.values())
            patience = max(0.0, oldest + self.timeout - time.monotonic())
        done, _ = wait(self._running, timeout=patience, return_when=FIRST_COMPLETED)
        for future in sorted(done, key=lambda f: self._running[f][1]):
            plan, start, stop, _ = self._running.pop(future)
            self.outstanding -= stop - start
            yield self._answer(plan, future, start, stop)
        if self.timeout is not None and not done:
            yield from self._overdue(time.monotonic() - self.timeout)

    def _overdue(self, limit: float) -> Iterator[Failure]:
        for future, (plan, start, stop, begun) in list(self._running.items()):
            if begun <= limit and not future.done():
                del self._running[future]
                self.outstanding -= stop - start
                begun = not future.cancel()
                if begun and isinstance(self.executor, DaemonPool):
                    self.executor.replace_one()
                took = f"the call took longer than timeout = {self.timeout} s and was given up"
                waited = f"no worker was free for timeout = {self.timeout} s: they hang in earlier calls"
                yield self._failure(plan, start, stop, TimeoutError(took if begun else waited), begun=begun)

    def _submit(self, plan: Plan, start: int, stop: int) -> Future[Any]:
        components = plan.components[start:stop]
        if self.objective.vectorized:
            return self.executor.submit(_batch, self.objective, plan.points(start, stop), components)
        return self.executor.submit(_value, self.objective, plan.point(start), int(components[0]))

    def _answer(self, plan: Plan, future: Future[Any], start: int, stop: int) -> Arrival | Failure:
        error = future.exception()
        if error is not None:
            if not isinstance(error, (Exception, SystemExit)):
                raise error  # KeyboardInterrupt out of a worker
            return self._failure(plan, start, stop, error)
        return Arrival(start, np.atleast_1d(future.result()))

    @staticmethod
    def _failure(plan: Plan, start: int, stop: int, error: BaseException, *, begun: bool = True) -> Failure:
        return Failure(start, plan.point(start), int(plan.components[start]), error, stop - start, begun)

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
