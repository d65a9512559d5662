"""Evaluation on the workers of a `concurrent.futures.Executor`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import Any

import numpy as np

from zerothresh.evaluate.base import Arrival, Failure, split_ranges
from zerothresh.evaluate.pool import DaemonPool
from zerothresh.objective.forms import Objective
from zerothresh.rounds.plan import Plan


class OnExecutor:
    """Calls the objective on the workers of an executor.

    At most ``width`` calls are in progress; the next one begins only when the caller has processed a value. A call
    that takes longer than ``timeout`` seconds is abandoned and fails with TimeoutError. A thread of our own pool that
    hangs in such a call is replaced; the workers of a user's executor are left to that executor.

    Arguments
    ---------
    objective: the objective to call.
    chunk: the number of points per call of a vectorised function.
    executor: runs the calls.
    width: the largest number of calls in progress.
    own: whether ``close`` shuts the executor down.
    timeout: the seconds after which a call is abandoned, or None.
    """

    def __init__(
        self, objective: Objective, chunk: int, executor: Executor, width: int, *, own: bool, timeout: float | None
    ) -> None:
        self.objective, self.chunk = objective, chunk if objective.vectorized else 1
        self.executor, self.width, self.own, self.timeout = executor, width, own, timeout
        self.outstanding = 0
        self.parallel = True
        self._halted = False
        self._running: dict[Future[Any], tuple[Plan, int, int, float]] = {}

    def evaluate(self, plan: Plan, missing: list[tuple[int, int]]) -> Iterator[Arrival | Failure]:
        parts = split_ranges(missing, self.chunk)
        self._halted = False
        more = True
        while True:
            while more and not self._halted and len(self._running) < self.width:
                part = next(parts, None)
                if part is None:
                    more = False
                    break
                try:
                    future = self._submit(plan, *part)
                except Exception as error:  # the executor is broken, or has been shut down
                    self.halt()
                    yield self._failure(plan, *part, error, begun=False)
                    break
                self._running[future] = plan, *part, time.monotonic()
                self.outstanding += part[1] - part[0]
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
            if future.cancel():  # the call had not begun, so it does not count
                del self._running[future]
                self.outstanding -= stop - start

    def _finished(self) -> Iterator[Arrival | Failure]:
        """Wait until at least one call has finished or is overdue, and yield the outcome."""
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
        """Abandon the calls that were submitted before the time ``limit`` and have not finished."""
        for future, (plan, start, stop, begun) in list(self._running.items()):
            if begun <= limit and not future.done():
                del self._running[future]
                self.outstanding -= stop - start
                started = not future.cancel()
                if started and isinstance(self.executor, DaemonPool):
                    self.executor.replace_one()
                took = f"the call took longer than timeout = {self.timeout} s and was abandoned"
                waited = f"no worker was free for timeout = {self.timeout} s, because all of them hang in earlier calls"
                yield self._failure(plan, start, stop, TimeoutError(took if started else waited), begun=started)

    def _submit(self, plan: Plan, start: int, stop: int) -> Future[Any]:
        """Give the rows [start, stop) to the executor as one call."""
        components = plan.components[start:stop]
        if self.objective.vectorized:
            return self.executor.submit(_batch, self.objective, plan.points(start, stop), components)
        return self.executor.submit(_value, self.objective, plan.point(start), int(components[0]))

    def _answer(self, plan: Plan, future: Future[Any], start: int, stop: int) -> Arrival | Failure:
        """Return the outcome of a call that has finished."""
        error = future.exception()
        if error is not None:
            if not isinstance(error, (Exception, SystemExit)):
                raise error  # a KeyboardInterrupt from a worker
            return self._failure(plan, start, stop, error)
        return Arrival(start, np.atleast_1d(future.result()))

    @staticmethod
    def _failure(plan: Plan, start: int, stop: int, error: BaseException, *, begun: bool = True) -> Failure:
        return Failure(start, plan.point(start), int(plan.components[start]), error, stop - start, begun)

    def close(self) -> None:
        if self.own:
            self.executor.shutdown(wait=False, cancel_futures=True)


def _read_only(array: Any) -> Any:
    """Make an array read-only; this happens on the worker, because a process receives a writeable copy."""
    array.flags.writeable = False
    return array


def _batch(objective: Objective, points: Any, components: Any) -> Any:
    """Evaluate a batch of points on a worker."""
    return objective.batch(_read_only(points), _read_only(components))


def _value(objective: Objective, point: Any, component: int) -> float:
    """Evaluate one point on a worker."""
    return objective.value(_read_only(point), component)
