"""Evaluation on the workers of a `concurrent.futures.Executor`."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from zerothresh.evaluate.base import (
    AWAKE,
    Arrival,
    CancelledBeforehand,
    Failure,
    WorkerNotStarted,
    count_parts,
    failure_of,
    split_ranges,
)
from zerothresh.evaluate.event_loop import OnEventLoop
from zerothresh.evaluate.pool import BatchingPool, DaemonPool
from zerothresh.evaluate.rate_limit import RateLimit
from zerothresh.objective.forms import BadValue, Objective

if TYPE_CHECKING:
    from zerothresh.rounds.plan import Plan

NOT_BEGUN = (WorkerNotStarted, CancelledBeforehand)  # errors of calls that were not made, and are not charged
CANCELLED = (
    "the executor cancelled the call before it began, as shutdown(cancel_futures=True) does: give the run an executor "
    "that stays open until the run ends"
)


class OnExecutor:
    """Calls the objective on the workers of an executor.

    At most ``width`` calls are in progress, or as many as a pool that sends several together wants; the next one begins
    only when the caller has processed a value. A call
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
    limit: RateLimit, default None: when calls may begin.
    """

    def __init__(
        self,
        objective: Objective,
        chunk: int,
        executor: Executor,
        width: int,
        *,
        own: bool,
        timeout: float | None,
        limit: RateLimit | None = None,
    ) -> None:
        self.objective, self.chunk = objective, chunk if objective.vectorized else 1
        self.executor, self.width, self.own, self.timeout = executor, width, own, timeout
        self.limit, self.deadline = limit, math.inf
        self.outstanding = 0
        self._halted = self._left = self._draining = False
        self._running: dict[Future[Any], tuple[Plan, int, int, float]] = {}
        self._done: SimpleQueue[Future[Any] | None] = SimpleQueue()  # calls that have ended; None only wakes us up
        self._ended: set[Future[Any] | None] = set()  # those that were taken from there and not answered yet
        self._broken_off: list[Failure] = []  # calls whose exception ends the run, as Ctrl-C does

    @property
    def cancelled(self) -> bool:
        return isinstance(self.executor, OnEventLoop) and self.executor.cancelled

    def evaluate(self, plan: Plan, missing: list[tuple[int, int]]) -> Iterator[Arrival | Failure]:
        chunk = self.objective.most_points(self.chunk)
        parts, left = split_ranges(missing, chunk), count_parts(missing, chunk)
        batching = self.executor if isinstance(self.executor, BatchingPool) else None
        self._halted = False
        more = True
        while not self._left:
            early = 0.0  # seconds until another call may begin
            most = self.width if batching is None else batching.wanted()
            while more and not self._halted and not self.cancelled and len(self._running) < most:
                early = 0.0 if self.limit is None else self.limit.wait()
                if early > 0:
                    break
                part = next(parts, None)
                if part is None:
                    more = False
                    break
                try:
                    future = self._submit(plan, *part)
                except Exception as error:  # the executor is broken, or has been shut down
                    self.halt()
                    yield failure_of(plan, *part, error, begun=False)
                    break
                if self.limit is not None:
                    self.limit.begin()
                left -= 1
                self._running[future] = plan, *part, time.monotonic()
                self.outstanding += part[1] - part[0]
                future.add_done_callback(self._done.put)
            if batching is not None:
                batching.send(left)
            if not self._running and not early:
                return
            yield from self._finished(early or AWAKE)
            if early and time.monotonic() >= self.deadline:
                self._halted = True

    def halt(self) -> None:
        self._halted = True
        self._done.put(None)

    def leave(self) -> None:
        self._left = True
        self._done.put(None)

    def drain(self) -> Iterator[Arrival | Failure]:
        self._halted = self._draining = True
        self._cancel_waiting()
        while self._running and not self._left:
            yield from self._finished()

    def abandon(self, error: BaseException) -> Iterator[Failure]:
        yield from self._broken_off
        self._broken_off.clear()
        self._cancel_waiting()
        running, self.outstanding = list(self._running.values()), 0
        self._running.clear()
        for plan, start, stop, _ in running:
            yield failure_of(plan, start, stop, error)

    def _cancel_waiting(self) -> None:
        """Take back the calls that no worker has begun; they do not count."""
        for future in list(self._running):
            if future.cancel():
                self._forget(future)

    def _forget(self, future: Future[Any]) -> tuple[Plan, int, int]:
        """Remove a call from those in progress, and return the rows of a plan that it was for."""
        plan, start, stop, _ = self._running.pop(future)
        self._ended.discard(future)
        self.outstanding -= stop - start
        return plan, start, stop

    def _finished(self, patience: float = AWAKE) -> Iterator[Arrival | Failure]:
        """Wait until a call has ended, is overdue or is no longer wanted, but not for long, and yield the outcome.

        A signal may be delivered to another thread, and this one sees it only when it wakes up.
        """
        patience = min(patience, AWAKE)
        if self.timeout is not None and self._running:
            oldest = min(begun for _, _, _, begun in self._running.values())
            patience = min(patience, max(0.0, oldest + self.timeout - time.monotonic()))
        try:
            if not self._ended:
                self._ended.add(self._done.get(timeout=patience))
            while True:
                self._ended.add(self._done.get_nowait())
        except Empty:
            pass
        if self._halted:
            self._cancel_waiting()
        self._ended.intersection_update(self._running)
        done = [future for future in self._running if future in self._ended]
        for future in sorted(done, key=lambda f: self._running[f][1]):
            answer = self._answer(future, *self._forget(future))
            if answer is not None:
                yield answer
        if self._broken_off and not self._draining:  # after the values that came with it
            raise self._broken_off[0].error
        if self.timeout is not None and not done:
            yield from self._overdue(time.monotonic() - self.timeout)

    def _overdue(self, limit: float) -> Iterator[Failure]:
        """Abandon the calls that were submitted before the time ``limit`` and have not finished."""
        for future, (plan, start, stop, begun) in list(self._running.items()):
            if begun <= limit and not future.done():
                self._forget(future)
                started = not future.cancel()
                if started and isinstance(self.executor, DaemonPool):
                    self.executor.replace_one()
                took = f"the call took longer than timeout = {self.timeout} s and was abandoned"
                waited = f"no worker was free for timeout = {self.timeout} s, because all of them hang in earlier calls"
                yield failure_of(plan, start, stop, TimeoutError(took if started else waited), begun=started)

    def _submit(self, plan: Plan, start: int, stop: int) -> Future[Any]:
        """Give the rows [start, stop) to the executor as one call."""
        components = plan.components[start:stop]
        if self.objective.vectorized:
            return self.executor.submit(_batch, self.objective, plan.points(start, stop), components)
        return self.executor.submit(_value, self.objective, plan.point(start), int(components[0]))

    def _answer(self, future: Future[Any], plan: Plan, start: int, stop: int) -> Arrival | Failure | None:
        """Return the outcome of a call that has ended; None if it ends the run, which is dealt with elsewhere."""
        if future.cancelled():
            return failure_of(plan, start, stop, RuntimeError(CANCELLED), begun=False)
        error = future.exception()
        if error is None:
            try:
                return Arrival(start, self.objective.arrived(future.result()))
            except BadValue as bad:
                return failure_of(plan, start, stop, bad)
        failure = failure_of(plan, start, stop, error, begun=not isinstance(error, NOT_BEGUN))
        if isinstance(error, (Exception, SystemExit)):
            return failure
        self._broken_off.append(failure)
        return None

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


def _value(objective: Objective, point: Any, component: int) -> Any:
    """Evaluate one point on a worker."""
    return objective.value(_read_only(point), component)
