"""The inside of a Dask worker: it unpickles the objective once, and evaluates the calls of a task on its threads."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

from zerothresh.evaluate.base import summary_of
from zerothresh.evaluate.packing import Packed, packed
from zerothresh.evaluate.pool import DaemonPool

Outcome = tuple[bool, Any]  # whether a call returned, and its value or its `Packed` exception


class TaskOutcome(NamedTuple):
    """What a task returns.

    Attributes
    ----------
    outcomes: one per call.
    calling: seconds that the calls took, added up.
    busy: seconds from the begin of the first call to the end of the last one.
    """

    outcomes: list[Outcome]
    calling: float
    busy: float


class HeldObjective:
    """An objective in a worker process, as the result of a task that the client keeps for as long as the run lasts.

    It never leaves its worker: the bytes that it is made of have been scattered, and other workers make their own.

    Arguments
    ---------
    content: the pickled objective; nothing in a copy that Dask takes elsewhere, which is never used.
    """

    def __init__(self, content: bytes = b"") -> None:
        self.threads = DaemonPool(0)
        self.objective: Any = None
        self.refusal = "it was moved"  # why it cannot be used, or an empty text
        if content:
            try:
                self.objective = pickle.loads(content)  # noqa: S301  # our own client wrote it
                self.refusal = ""
            except BaseException as error:  # the function's module may raise anything while it is imported
                self.refusal = summary_of(error)

    def __reduce__(self) -> tuple[Any, ...]:
        return HeldObjective, ()

    def __del__(self) -> None:
        self.threads.shutdown()


def hold(content: bytes) -> HeldObjective:
    """Load the objective, as the first task on a worker."""
    return HeldObjective(content)


def introduce(held: HeldObjective) -> tuple[str, str]:
    """Return what tells this worker process from others at its address, and why it has no objective, if it has none."""
    from distributed import get_worker

    return str(get_worker().id), held.refusal


def evaluate(
    held: HeldObjective,
    identity: str,
    topic: str,
    number: int,
    content: bytes,
    threads: int,
    lanes: int,
    timeout: float | None,
) -> TaskOutcome | None:
    """Evaluate the calls of a task.

    Arguments
    ---------
    held: the objective.
    identity: the worker that the task was meant for; a new one at the same address makes no call.
    topic, number: under which the begin of the first call is announced, and the number of the task.
    content: pickled: the function to call with the objective, what the objective has to know, the other arguments.
    threads, lanes: the number of threads of the worker, and of calls of this task at a time.
    timeout: the seconds after which a call is given up, or None.

    Returns
    -------
    The outcomes; None if this is another worker.
    """
    from distributed import get_worker
    from distributed.utils import sync

    worker = get_worker()
    if worker.id != identity:
        return None
    function, known, calls = pickle.loads(content)  # noqa: S301  # our own client wrote it
    objective = held.objective
    objective.learn(known)
    sync(worker.loop, worker.scheduler.log_event, topic=topic, msg=number)  # once it returns, the scheduler knows
    began = time.perf_counter()
    made = _Lanes(function, objective, calls)
    if lanes == 1 and timeout is None:
        made.work()
    else:
        held.threads.allow(threads)
        _on_threads(made, held.threads, lanes, timeout)
    return TaskOutcome(made.outcomes, sum(made.seconds), time.perf_counter() - began)


class _Lanes:
    """The calls of a task, which one thread or several take one after the other."""

    def __init__(self, function: Callable[..., Any], objective: Any, calls: list[tuple[Any, ...]]) -> None:
        self.function, self.objective, self.calls = function, objective, calls
        self.outcomes: list[Outcome] = [(False, None)] * len(calls)
        self.seconds = [0.0] * len(calls)
        self.under_way: dict[int, float] = {}  # calls and when they began
        self._next: Iterator[int] = iter(range(len(calls)))  # threads may share it

    def work(self) -> bool:
        """Make calls until none is left, or until this one has been given up; return whether it was not."""
        for call in self._next:
            began = self.under_way[call] = time.monotonic()
            try:
                outcome = True, self.function(self.objective, *self.calls[call])
            except BaseException as error:
                outcome = False, packed(error)
            if self.under_way.pop(call, None) is None:
                return False
            self.outcomes[call], self.seconds[call] = outcome, time.monotonic() - began
        return True

    def give_up(self, timeout: float) -> int:
        """Give up the calls that take longer; return how many these are."""
        late = [call for call, began in list(self.under_way.items()) if time.monotonic() - began >= timeout]
        late = [call for call in late if self.under_way.pop(call, None) is not None]  # it has not just ended
        for call in late:
            self.outcomes[call], self.seconds[call] = (False, _overdue(timeout)), timeout
        return len(late)


def _on_threads(made: _Lanes, threads: DaemonPool, lanes: int, timeout: float | None) -> None:
    """Make calls on several threads, and wait for them; a thread that hangs in a call is left behind and replaced."""
    ended = threading.Semaphore(0)
    for _ in range(lanes):
        _start(made, threads, ended)
    working = lanes
    while working:
        oldest = min(made.under_way.copy().values(), default=time.monotonic())
        if ended.acquire(timeout=None if timeout is None else max(0.0, oldest + timeout - time.monotonic())):
            working -= 1
            continue
        assert timeout is not None
        for _ in range(made.give_up(timeout)):
            threads.replace_one()
            _start(made, threads, ended)


def _start(made: _Lanes, threads: DaemonPool, ended: threading.Semaphore) -> None:
    """Let a thread make calls."""
    future: Future[bool] = threads.submit(made.work)
    future.add_done_callback(lambda done: ended.release() if done.result() else None)


def _overdue(timeout: float) -> Packed:
    return packed(TimeoutError(f"the call took longer than timeout = {timeout} s and was abandoned"))
