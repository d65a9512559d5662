"""The calls of a run on a Dask cluster: which of them are sent where together, and what becomes of each."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np

from zerothresh.evaluate.base import WorkerDied, WorkerNotStarted, summary_of
from zerothresh.evaluate.dask_hosts import LOOK, LOOK_AGAIN, DaskHost, DaskHosts
from zerothresh.evaluate.dask_link import DaskLink, ObjectiveLost
from zerothresh.evaluate.dask_worker import BEGUN, Taken
from zerothresh.evaluate.packing import unpacked
from zerothresh.evaluate.task_sizes import TaskSizes
from zerothresh.objective.forms import Objective

MOST_BYTES = 4 << 20  # of points in a chunk: Dask warns of larger messages from 10 MB on
PATIENCE = 2 * (LOOK + LOOK_AGAIN)  # seconds until a worker that did not answer is asked again, if it is not lost
AHEAD = 2  # chunks of short calls on a worker: one that is under way, and one that it goes on with


@dataclass(eq=False)
class DaskCall:
    """A call that waits, or is a part of a chunk."""

    future: Future[Any]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    @property
    def key(self) -> bytes:
        """What tells its point and component."""
        return b"".join(np.ascontiguousarray(argument).tobytes() for argument in self.arguments)

    @property
    def bytes(self) -> int:
        """The size of what has to be sent."""
        return sum(np.asarray(argument).nbytes for argument in self.arguments)


@dataclass(eq=False)
class DaskChunk:
    """Calls that were sent to a worker together."""

    number: int
    host: DaskHost
    calls: list[DaskCall]
    alone: bool  # whether calls were sent one by one
    unanswered: int
    begun: bool = False
    calling: float = 0.0  # seconds that its calls took, added up
    sent: float = 0.0  # when it was sent
    job: asyncio.Task[None] | None = None  # that sends it
    outcomes: dict[int, Taken] = field(default_factory=dict)


class DaskChunks:
    """Gives calls to workers, and hands out what they return. Its state belongs to the event loop of the client.

    Arguments
    ---------
    link, hosts: the connection, and the workers.
    objective: the objective, which tells what calls have to know.
    timeout: seconds after which a call is given up, counted from when it began; None means never.
    """

    def __init__(self, link: DaskLink, hosts: DaskHosts, objective: Objective, timeout: float | None) -> None:
        self._link, self._hosts, self._objective, self._timeout = link, hosts, objective, timeout
        self.sizes = TaskSizes()
        self.left = 0  # calls of the round that have not been submitted
        self._lock = threading.Lock()  # around the calls that wait, which come from another thread
        self._waiting: deque[DaskCall] = deque()
        self._chunks: dict[int, DaskChunk] = {}
        self._numbers = itertools.count()
        self._suspects: set[bytes] = set()  # calls that were under way, not alone, when a worker died

    def wait(self, call: DaskCall) -> None:
        """Let a call wait for a worker; any thread may ask for that."""
        with self._lock:
            self._waiting.append(call)

    @property
    def wanted(self) -> int:
        """The number of calls in progress that keep the workers busy."""
        threads = max(1, sum(self._hosts.threads.values()))
        return threads if self.sizes.alone else AHEAD * threads * self.sizes.depth

    # To the workers.

    def distribute(self) -> None:
        """Give the calls that wait to workers that have room."""
        if not self._waiting:
            return
        ready = self._hosts.ready
        if self._hosts.refusal:
            self.refuse(f"no worker of Dask could load the function ({self._hosts.refusal})")
        calls = self._take_waiting()
        if self._suspects:
            suspects = [call for call in calls if call.key in self._suspects]
            calls = [call for call in calls if call not in suspects]
            for host in ready:
                if suspects and not host.chunks:
                    self._start(host, [suspects.pop(0)])
            self._put_back(suspects)
        ready = [host for host in ready if not self._holds_a_suspect(host)]
        self._put_back(self._one_by_one(calls, ready) if self.sizes.alone else self._together(calls, ready))

    def _holds_a_suspect(self, host: DaskHost) -> bool:
        """Whether a worker has a call that must have no other ones beside it."""
        return bool(self._suspects) and any(call.key in self._suspects for chunk in host.chunks for call in chunk.calls)

    def _one_by_one(self, calls: list[DaskCall], ready: list[DaskHost]) -> list[DaskCall]:
        """Send calls to threads that are free; return the others."""
        room = {host: host.threads - host.load for host in ready}
        at = 0
        while at < len(calls) and room and (most := max(room, key=lambda host: room[host])) and room[most] > 0:
            self._start(most, [calls[at]])
            room[most] -= 1
            at += 1
        return calls[at:]

    def _together(self, calls: list[DaskCall], ready: list[DaskHost]) -> list[DaskCall]:
        """Send chunks to workers with free threads, or nothing to go on with; return the calls that are not sent."""
        threads = max(1, sum(self._hosts.threads.values()))
        depth = max(1, min(self.sizes.depth, ceil((len(calls) + self.left) / threads)))
        at = 0
        for _ in range(AHEAD):
            open_hosts = [host for host in ready if len(host.chunks) < AHEAD or host.load < host.threads]
            open_hosts.sort(key=lambda host: host.load / host.threads)
            lanes = sum(host.threads for host in open_hosts)
            for host in open_hosts:
                share = ceil((len(calls) - at) * host.threads / lanes)  # the rest, evenly over the rest
                lanes -= host.threads
                part = calls[at : at + min(share, host.threads * depth)]
                part = part[: max(1, MOST_BYTES // max(1, part[0].bytes))] if part else part
                at += len(part)
                if part:
                    self._start(host, part)
        return calls[at:]

    def _start(self, host: DaskHost, calls: list[DaskCall]) -> None:
        """Send calls to a worker together."""
        wanted = [call for call in calls if call.future.running() or call.future.set_running_or_notify_cancel()]
        if wanted:
            chunk = DaskChunk(next(self._numbers), host, wanted, self.sizes.alone, len(wanted))
            host.chunks.add(chunk)
            self._chunks[chunk.number] = chunk
            chunk.job = self._link.do(self._send(chunk))

    async def _send(self, chunk: DaskChunk) -> None:
        """Send a chunk; send it again if nobody knows whether it has arrived."""
        host, calls = chunk.host, [call.arguments for call in chunk.calls]
        content = pickle.dumps((chunk.calls[0].function, self._objective.known(), calls), pickle.HIGHEST_PROTOCOL)
        lanes = min(host.threads, len(calls))
        given = chunk.number, content, host.threads, lanes, self._timeout
        while chunk.number in self._chunks:
            chunk.sent = time.monotonic()
            try:
                await self._link.ask(host.address, host.key, "accept", *given)
            except OSError:  # the worker may be gone, which the look at the workers tells
                await asyncio.sleep(PATIENCE)
            except Exception as error:
                self._link.guarded(self._break, chunk, error)
                return
            else:
                return

    # From the workers.

    def hear(self, message: tuple[Any, ...]) -> None:
        """Take note of what a worker tells."""
        about, what, *content = message
        if about == BEGUN:
            chunk = self._chunks.get(what)
            if chunk is not None:
                chunk.begun = True
                self._hosts.note_begun()
            return
        if content[0]:
            self._hand_out(pickle.loads(content[0]))  # noqa: S301  # ours
            return
        host = self._hosts.hosts.get(what)
        if host is not None:
            host.told_more = True
            if not host.taking:
                host.taking = True
                self._link.do(self._take(host))

    async def _take(self, host: DaskHost) -> None:
        """Fetch what calls have come to, for as long as there is more."""
        while host.told_more and host.chunks:
            host.told_more = False
            try:
                taken = pickle.loads(await self._link.ask(host.address, host.key, "take"))  # noqa: S301  # ours
            except Exception:  # the worker may be gone, which the look at the workers tells
                host.told_more = True
                await asyncio.sleep(PATIENCE)
            else:
                self._link.guarded(self._hand_out, taken)
        host.taking = False

    def _hand_out(self, taken: list[Taken]) -> None:
        """Hand out what calls have come to."""
        for one in taken:
            chunk = self._chunks.get(one.chunk)
            if chunk is None or one.call in chunk.outcomes:
                continue
            chunk.outcomes[one.call] = one
            chunk.unanswered -= 1
            chunk.calling += one.seconds
            call = chunk.calls[one.call]
            if self._suspects:
                self._suspects.discard(call.key)
            if not chunk.unanswered:
                self._forget(chunk)
                overhead = time.monotonic() - chunk.sent - one.since  # on the way there, and back
                self.sizes.note(len(chunk.calls), chunk.calling, overhead, alone=chunk.alone)
            returned, what = one.outcome
            if returned:
                call.future.set_result(what)
            else:
                call.future.set_exception(unpacked(*what))

    # What is lost.

    def lose_host(self, host: DaskHost) -> None:
        """Let the calls of a worker that is gone fail, or send them again."""
        self._lose_chunks(host, f"the Dask worker {host.address} was lost during the call")

    def _lose_chunks(self, host: DaskHost, why: str) -> None:
        beside = sum(chunk.unanswered for chunk in host.chunks if chunk.begun) > 1  # nobody knows which one it was
        for chunk in list(host.chunks):
            self._lose_chunk(chunk, why, beside=beside)

    def _lose_chunk(self, chunk: DaskChunk, why: str, *, beside: bool) -> None:
        """Let the calls of a chunk fail that has begun; send them again if it has not."""
        if not self._forget(chunk):
            return
        if chunk.job is not None:
            chunk.job.cancel()
        calls = [call for at, call in enumerate(chunk.calls) if at not in chunk.outcomes]
        if not chunk.begun:
            self._put_back(calls)
            return
        for call in calls:
            if beside:
                self._suspects.add(call.key)
            call.future.set_exception(WorkerDied(why))

    def _break(self, chunk: DaskChunk, error: Exception) -> None:
        """Take note that a worker did not take a chunk: it has no objective, or it cannot read the calls."""
        host = chunk.host
        if isinstance(error, ObjectiveLost):
            why = f"the Dask worker {host.address} was lost during the call, or was restarted"
            self._lose_chunks(host, why)
            self._hosts.renew(host)
            self.distribute()
        elif self._forget(chunk):
            for call in chunk.calls:
                call.future.set_exception(error if chunk.begun else WorkerNotStarted(summary_of(error)))

    def fail(self, begun: BaseException, waiting: BaseException) -> None:
        """Let all calls fail, by one error if they had begun and by another one if not."""
        for chunk in list(self._chunks.values()):
            if self._forget(chunk):
                for at, call in enumerate(chunk.calls):
                    if at not in chunk.outcomes:
                        call.future.set_exception(begun if chunk.begun else waiting)
        self._drop_waiting(waiting)

    def refuse(self, why: str) -> None:
        """Let the calls that wait fail, without a charge."""
        self._drop_waiting(WorkerNotStarted(why))

    # The calls that wait, and the chunks under way.

    def _forget(self, chunk: DaskChunk) -> bool:
        """Remove a chunk from those under way; return whether it was one."""
        chunk.host.chunks.discard(chunk)
        return self._chunks.pop(chunk.number, None) is not None

    def _take_waiting(self) -> list[DaskCall]:
        """Take the calls that wait and that somebody still wants."""
        with self._lock:
            calls = list(self._waiting)
            self._waiting.clear()
        return [call for call in calls if not call.future.cancelled()]

    def _put_back(self, calls: list[DaskCall]) -> None:
        with self._lock:
            self._waiting.extendleft(reversed(calls))

    def _drop_waiting(self, error: BaseException) -> None:
        for call in self._take_waiting():
            if call.future.running() or call.future.set_running_or_notify_cancel():
                call.future.set_exception(error)
