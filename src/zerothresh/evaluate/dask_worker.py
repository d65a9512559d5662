"""The inside of a Dask worker: it unpickles the objective once, and evaluates the calls of a task on its threads."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, NamedTuple

from zerothresh.evaluate.base import summary_of
from zerothresh.evaluate.packing import Packed, packed, pickler
from zerothresh.evaluate.pool import DaemonPool

Outcome = tuple[bool, Any]  # whether a call returned, and its value or its `Packed` exception


class Evaluated(NamedTuple):
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


class SentObjective:
    """An objective on its way to workers, and in them.

    Dask keeps one such object per worker process for as long as the run wants it. The bytes are dropped when the
    objective is made of them, so that large data are there once.

    Arguments
    ---------
    content: the pickled objective.
    """

    def __init__(self, content: bytes) -> None:
        self._content: bytes | None = content
        self._objective: Any = None
        self._lock = threading.Lock()
        self.threads = DaemonPool(0)

    def load(self) -> Any:
        """Return the objective; the first call makes it."""
        with self._lock:
            if self._content is not None:
                self._objective = pickle.loads(self._content)  # noqa: S301  # our own client wrote it
                self._content = None
            return self._objective

    def __reduce__(self) -> tuple[Any, ...]:  # also when Dask hands it to another worker, or spills it
        with self._lock:
            return SentObjective, (pickler()(self._objective) if self._content is None else self._content,)

    def __del__(self) -> None:
        self.threads.shutdown()


def identify() -> str:
    """Return what tells this worker process from others, also from another one at the same address."""
    from distributed import get_worker

    return str(get_worker().id)


def prepare(sent: SentObjective) -> str:
    """Load the objective; return why that fails, or an empty text."""
    try:
        sent.load()
    except BaseException as error:  # the function's module may raise anything while it is imported
        return summary_of(error)
    return ""


def evaluate(
    sent: SentObjective,
    identity: str,
    topic: str,
    number: int,
    content: bytes,
    threads: int,
    lanes: int,
    timeout: float | None,
) -> Evaluated | None:
    """Evaluate the calls of a task.

    Arguments
    ---------
    sent: the objective.
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
    objective = sent.load()
    objective.learn(known)
    sync(worker.loop, worker.scheduler.log_event, topic=topic, msg=number)  # once it returns, the scheduler knows
    began = time.perf_counter()
    made = _Lanes(function, objective, calls)
    if lanes == 1 and timeout is None:
        made.work()
    else:
        sent.threads.allow(threads)
        _on_threads(made, sent.threads, lanes, timeout)
    return Evaluated(made.outcomes, sum(made.seconds), time.perf_counter() - began)


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
