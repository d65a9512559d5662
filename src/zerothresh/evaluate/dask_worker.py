"""The inside of a Dask worker: it unpickles the objective once, and evaluates chunks of calls on its own threads."""

from __future__ import annotations

import asyncio
import math
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from zerothresh.evaluate.base import summary_of
from zerothresh.evaluate.packing import Packed, packed
from zerothresh.evaluate.pool import DaemonPool

Outcome = tuple[bool, Any]  # whether a call returned, and its value or its `Packed` exception

BEGUN, DONE = "begun", "done"  # what a message to the client is about
LOOK = 1.0  # seconds between two looks at whether the client still wants this worker
MOST_TOLD = 2000  # bytes of outcomes in a message that tells of them: the scheduler keeps the last 100,000 messages
LINGER = 0.002  # seconds that an outcome waits for others while calls are under way; Dask itself sends no more often
LONG_LINGER = 0.02  # the same while threads have further calls to go on with, so that nobody waits for this one's value
IN_USE = ("executing", "long-running")  # states of a task that has not been cancelled


class Taken(NamedTuple):
    """What a call of a chunk came to.

    Attributes
    ----------
    chunk, call: the number of the chunk, and of the call in it.
    outcome: what it returned or raised.
    seconds: how long it took.
    since: the seconds from the begin of its chunk to its end.
    """

    chunk: int
    call: int
    outcome: Outcome
    seconds: float
    since: float


class HeldObjective:
    """An objective in a worker process: an actor of Dask, which lives for as long as the run lasts.

    Chunks of calls are made on threads of its own. A message tells the client of the calls that have ended in the last
    milliseconds, and holds their outcomes; if these are large, it tells only that they are there, once until the client
    has fetched them. The methods run on the worker's event loop.

    Arguments
    ---------
    content: the pickled objective.
    topic: under which it tells of its calls.
    """

    def __init__(self, content: bytes, topic: str) -> None:
        from distributed import get_worker

        self._worker, self._topic = get_worker(), topic
        self._threads = DaemonPool(0)
        self._chunks: dict[int, float] = {}  # that have been accepted, and when they began
        self._outcomes: list[Taken] = []  # that the client does not have
        self._told, self._lock = False, threading.Lock()  # whether the client knows, or soon will, that there are some
        self._open: dict[int, int] = {}  # calls of each chunk that have no outcome
        self._hurry = asyncio.Event()  # set when nothing is gained by waiting for further outcomes
        self._objective: Any = None
        self._refusal = ""  # why it cannot be used
        try:
            self._objective = pickle.loads(content)  # noqa: S301  # our own client wrote it
        except BaseException as error:  # the function's module may raise anything while it is imported
            self._refusal = summary_of(error)

    def __del__(self) -> None:
        self._threads.shutdown()

    async def introduce(self) -> str:
        """Return why the objective cannot be used, or an empty text."""
        return self._refusal

    async def accept(self, number: int, content: bytes, threads: int, lanes: int, timeout: float | None) -> None:
        """Begin the calls of a chunk.

        The begin is announced to the scheduler first: if this process dies, the client knows which calls were begun.

        Arguments
        ---------
        number: of the chunk; one that is sent again, because the answer to the first time was lost, is passed over.
        content: pickled: the function to call with the objective, what the objective has to know, the other arguments.
        threads, lanes: the largest number of threads of this objective, and of calls of this chunk at a time.
        timeout: the seconds after which a call is given up, or None.
        """
        if number in self._chunks:
            return
        function, known, calls = pickle.loads(content)  # noqa: S301  # our own client wrote it
        self._chunks[number] = math.inf
        await self._worker.scheduler.log_event(topic=self._topic, msg=(BEGUN, number))  # now the scheduler knows
        self._chunks[number] = time.monotonic()
        self._objective.learn(known)
        self._open[number] = len(calls)
        self._threads.allow(threads)
        made = _Lanes(function, self._objective, calls, partial(self._note, number))
        for _ in range(lanes):
            self._threads.submit(made.work)
        if timeout is not None:
            self._worker.loop.add_callback(self._supervise, made, timeout)

    async def take(self) -> bytes:
        """Return what calls have come to that the client does not have, pickled."""
        with self._lock:
            taken, self._outcomes, self._told = self._outcomes, [], False
        return _pickled(taken)

    async def dismiss(self) -> None:
        """End the task that says that this worker is in use."""
        _ends.setdefault((self._topic, self._worker.address), threading.Event()).set()

    def _note(self, chunk: int, call: int, outcome: Outcome, seconds: float) -> None:
        """Keep what a call has come to, and see to it that the client is told."""
        with self._lock:
            self._outcomes.append(Taken(chunk, call, outcome, seconds, time.monotonic() - self._chunks[chunk]))
            tell, self._told = not self._told, True
            self._open[chunk] -= 1
            hurry = not self._open[chunk] and (self._pending > self._threads.workers or not self._pending)
            if not self._open[chunk]:
                del self._open[chunk]
        if hurry:  # the client waits for the end of the round, or may send another chunk
            self._worker.loop.add_callback(self._hurry.set)
        if tell:
            self._worker.loop.add_callback(self._tell)

    @property
    def _pending(self) -> int:
        """The number of calls that have no outcome."""
        return sum(self._open.copy().values())

    async def _tell(self) -> None:
        """Tell the client what calls have come to; if that is large, only that it is there."""
        with suppress(asyncio.TimeoutError):
            linger = LINGER if self._pending <= self._threads.workers else LONG_LINGER
            await asyncio.wait_for(self._hurry.wait(), linger)
        self._hurry.clear()
        with self._lock:
            taken = list(self._outcomes)
        content = _pickled(taken)
        with self._lock:
            if len(content) > MOST_TOLD:
                content = b""
            else:
                del self._outcomes[: len(taken)]
                self._told = bool(self._outcomes)
            more = bool(content) and self._told
        self._worker.log_event(self._topic, (DONE, self._worker.address, content))
        if more:  # a call has ended in between
            self._worker.loop.add_callback(self._tell)

    async def _supervise(self, made: _Lanes, timeout: float) -> None:
        """Give up the calls of a chunk that take too long, and let other threads take the place of theirs."""
        while not made.done:
            await asyncio.sleep(made.patience(timeout))
            for _ in range(made.give_up(timeout)):
                self._threads.replace_one()
                self._threads.submit(made.work)


def _pickled(taken: list[Taken]) -> bytes:
    """Return what calls have come to as bytes; a call whose outcome cannot be pickled has failed."""
    try:
        return pickle.dumps(taken, pickle.HIGHEST_PROTOCOL)
    except Exception:  # whatever an object raises when it is pickled
        return pickle.dumps([one._replace(outcome=_sendable(one.outcome)) for one in taken], pickle.HIGHEST_PROTOCOL)


def _sendable(outcome: Outcome) -> Outcome:
    """Return an outcome, or the error of pickling it."""
    try:
        pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return False, packed(error)
    return outcome


_ends: dict[tuple[str, str], threading.Event] = {}  # of runs, by their topics and workers


def stay(topic: str) -> None:
    """Wait for the end of a run, or until its client is gone; the thread of the worker is free for others."""
    from distributed import get_worker, secede

    worker = get_worker()
    key, end = worker.get_current_task(), _ends.setdefault((topic, worker.address), threading.Event())
    secede()
    while not end.wait(LOOK) and str(worker.status.name) == "running":
        task = worker.state.tasks.get(key)
        if task is None or task.state not in IN_USE:
            break
    _ends.pop((topic, worker.address), None)


class _Lanes:
    """The calls of a chunk, which one thread or several take one after the other."""

    def __init__(
        self, function: Callable[..., Any], objective: Any, calls: list[tuple[Any, ...]], note: Callable[..., None]
    ) -> None:
        self._function, self._objective, self._calls, self._note = function, objective, calls, note
        self._under_way: dict[int, float] = {}  # calls and when they began
        self._next: Iterator[int] = iter(range(len(calls)))  # threads may share it
        self._settled: set[int] = set()  # calls that have an outcome

    @property
    def done(self) -> bool:
        """Whether every call has an outcome."""
        return len(self._settled) == len(self._calls)

    def work(self) -> None:
        """Make calls until none is left, or until this one has been given up."""
        process = os.getpid()
        for call in self._next:
            began = self._under_way[call] = time.monotonic()
            try:
                outcome: Outcome = True, self._function(self._objective, *self._calls[call])
            except BaseException as error:
                outcome = False, packed(error)
            if os.getpid() != process:
                os._exit(0)  # the function has forked, and its child has come back: it has no calls to make
            if self._under_way.pop(call, None) is None:
                return  # another thread has taken the place of this one
            self._settle(call, outcome, time.monotonic() - began)

    def give_up(self, timeout: float) -> int:
        """Give up the calls that take longer; return how many these are."""
        late = [call for call, began in list(self._under_way.items()) if time.monotonic() - began >= timeout]
        late = [call for call in late if self._under_way.pop(call, None) is not None]  # it has not just ended
        for call in late:
            self._settle(call, (False, _overdue(timeout)), timeout)
        return len(late)

    def patience(self, timeout: float) -> float:
        """Return the seconds until a call may have to be given up."""
        oldest = min(self._under_way.copy().values(), default=time.monotonic())
        return max(0.0, oldest + timeout - time.monotonic())

    def _settle(self, call: int, outcome: Outcome, seconds: float) -> None:
        self._note(call, outcome, seconds)
        self._settled.add(call)


def _overdue(timeout: float) -> Packed:
    return packed(TimeoutError(f"the call took longer than timeout = {timeout} s and was abandoned"))
