"""An executor on a Dask cluster: the objective is sent once per worker, small calls together, and deaths are seen."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np

from zerothresh.evaluate.base import ClusterLost, ClusterLostBefore, WorkerDied, WorkerNotStarted, summary_of
from zerothresh.evaluate.dask_worker import TaskOutcome, evaluate, hold, introduce
from zerothresh.evaluate.packing import pickler, unpacked
from zerothresh.evaluate.pool import BatchingPool
from zerothresh.evaluate.task_sizes import TaskSizes
from zerothresh.objective.forms import Objective

LOOK = 0.5  # seconds between two looks at which workers there are
LOOK_AGAIN = 0.2  # seconds until a worker that is missing is taken for dead: what it still said has arrived by then
MOST_STARTS = 3  # workers in a row that are lost before they begin a call, after which the calls are given up
WITHOUT_WORKERS = 600.0  # seconds after which calls are given up if the cluster has no worker: a queue may be long
MOST_BYTES = 4 << 20  # of points in a task; Dask warns of tasks above 10 MB
SCATTER = 60.0  # seconds for a worker to come that takes the objective, before another look at which there are
FAREWELL = 5.0  # seconds for the last messages to a cluster that may be gone
REMEDY = "start the cluster again and call this again with the same run folder: what has arrived is kept"


def threads_of(client: Any, options: dict[str, Any]) -> dict[str, int]:
    """Return the threads of the workers that may be used, by their addresses; raise ``ValueError`` without any."""
    if getattr(client, "_asynchronous", False):
        raise ValueError("workers must be a Client of Dask that is not asynchronous: leave asynchronous=True out")
    if str(client.status) != "running":
        raise ValueError(f"the Client of Dask is {client.status}: pass one that is connected to a scheduler")
    only = options.get("workers")
    threads = _allowed(client.nthreads(), only, {} if only is None else _names_of(client.scheduler_info()))
    if not sum(threads.values()):
        raise ValueError(
            "the cluster of Dask has no workers yet, so that nobody knows how wide rounds should be: call "
            "client.wait_for_workers(50), or as many as you want, first"
        )
    return threads


def _allowed(threads: dict[str, int], only: Any, names: dict[str, set[str]]) -> dict[str, int]:
    """Return the workers, with their threads, that may be used: all, or those that have one of some names."""
    if only is None:
        return dict(threads)
    some = {str(one) for one in ([only] if isinstance(only, (str, int)) else only)}
    return {address: count for address, count in threads.items() if some & names.get(address, {address})}


@dataclass(eq=False)
class _Call:
    """A call that waits, or is a part of a task."""

    future: Future[Any]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    @property
    def key(self) -> bytes:
        """What tells its point and component."""
        return b"".join(np.ascontiguousarray(argument).tobytes() for argument in self.arguments)

    @property
    def bytes(self) -> int:
        return sum(np.asarray(argument).nbytes for argument in self.arguments)


@dataclass(eq=False)
class _Host:
    """A worker process of the cluster."""

    address: str
    threads: int
    free: int  # threads without a call of ours
    identity: str = ""  # empty until it has loaded the objective
    refusal: str = ""  # why it could not
    held: Any = None  # the future of the objective there
    missed: bool = False  # the scheduler does not know it any more
    tasks: set[_Task] = field(default_factory=set)
    job: asyncio.Task[None] | None = None  # that waits until the worker is ready

    @property
    def ready(self) -> bool:
        return bool(self.identity) and not self.missed


@dataclass(eq=False)
class _Task:
    """Calls that a worker makes together."""

    number: int
    host: _Host
    calls: list[_Call]
    lanes: int
    alone: bool  # whether calls were sent one by one
    job: asyncio.Task[None] | None = None  # that waits for the result
    sent: float = field(default_factory=time.monotonic)
    begun: bool = False


class DaskPool(BatchingPool):
    """An executor whose workers are those of a Dask cluster.

    Every task is bound to one worker process, and carries the identity of that process, so that Dask never makes a call
    twice on its own account: a call whose worker is lost fails with `WorkerDied` if it had begun, and is sent again if
    it had not. The caller decides whether it is made again, and then it gets a worker of its own, so that a call that
    kills its worker is told from those that were made beside it. The state of the pool belongs to the event loop of the
    client.

    Arguments
    ---------
    objective: what the first argument of every submitted function is.
    client: the client, which must not be asynchronous.
    options: further arguments for the submission of tasks: ``workers``, to which the calls are restricted, and
        ``resources``.
    timeout: seconds after which a call is given up, counted from when it began; None means never.
    """

    def __init__(self, objective: Objective, client: Any, options: dict[str, Any], timeout: float | None) -> None:
        self._objective, self._client, self._timeout = objective, client, timeout
        self._only = options.get("workers")
        self._resources = options.get("resources")
        try:
            self._content = pickler()(objective)
        except Exception as error:  # whatever an object of the user's own raises when it is pickled
            raise ValueError(f"fun cannot be sent to Dask's workers ({summary_of(error)})") from error
        self._scheduler = getattr(getattr(client, "scheduler", None), "address", "of Dask")
        self._topic = f"zerothresh-{uuid.uuid4().hex}"
        self._sizes, self._numbers = TaskSizes(), itertools.count()
        self._lock = threading.Lock()  # around the waiting calls and what becomes of the pool
        self._waiting: deque[_Call] = deque()
        self._lost: str = ""  # how the scheduler was lost
        self._started = self._closed = False
        self._hosts: dict[str, _Host] = {}
        self._tasks: dict[int, _Task] = {}
        self._suspects: set[bytes] = set()  # calls that were under way, not alone, when a worker died
        self._left = 0  # calls of the round that have not been submitted
        self._stillborn = 0  # workers in a row that were lost before a call began
        self._deserted = time.monotonic()  # when there was a worker
        self._jobs: set[asyncio.Task[Any]] = set()
        self._data: Any = None  # the objective in the workers' memory
        self._data_lock = asyncio.Lock()
        self._threads = threads_of(client, options)

    # What the evaluator calls, in its own thread.

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run fn(objective, *args[1:]) on a worker; the objective is already there, or soon will be."""
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool has been shut down and takes no more calls")
            if self._lost:
                raise ClusterLostBefore(self._lost)
            self._waiting.append(_Call(future, fn, args[1:]))
        return future

    def wanted(self) -> int:
        """Return the number of calls in progress that keep the workers busy."""
        return max(1, sum(self._threads.values())) * self._sizes.depth

    def send(self, left: int) -> None:
        """Send what was submitted; ``left`` more calls of the round have not been submitted yet."""
        self._left = left
        if not self._running:
            self._lose_scheduler()
        elif not self._lost:
            self._on_loop(self._begin if not self._started else self._distribute)
            self._started = True

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Forget the tasks on the cluster, and the objective there; calls under way run to their end."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if not self._running:
            return
        ending = self._end()
        try:
            asyncio.run_coroutine_threadsafe(ending, self._client.loop.asyncio_loop).result(FAREWELL)
        except Exception:  # the loop has ended, or the cluster does not answer: nothing is left to be done
            ending.close()

    # The workers.

    @property
    def _running(self) -> bool:
        return str(self._client.status) == "running"

    def _on_loop(self, function: Callable[[], None]) -> None:
        """Call a function on the event loop of the client."""
        with suppress(RuntimeError):  # the loop has been closed; the next look at the client's status tells
            self._client.loop.asyncio_loop.call_soon_threadsafe(self._guarded, function)

    def _guarded(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function; an error of it ends the calls that wait, instead of making them wait for ever."""
        try:
            if not self._closed:
                function(*arguments)
        except Exception as error:
            self._fail_all(error)

    def _do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine on this loop until the pool is shut down."""
        job = asyncio.ensure_future(work)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return job

    def _begin(self) -> None:
        self._client.subscribe_topic(self._topic, self._announced)
        self._deserted = time.monotonic()
        self._update(self._threads)
        self._do(self._watch())

    async def _end(self) -> None:
        for job in list(self._jobs):
            job.cancel()
        with suppress(Exception):
            self._client.unsubscribe_topic(self._topic)
        self._tasks.clear()
        self._hosts.clear()
        self._data = None
        await asyncio.sleep(0)  # the jobs take note

    async def _watch(self) -> None:
        """Look which workers there are, again and again."""
        while not self._closed:
            try:
                threads = _allowed(await self._client.nthreads(), self._only, await self._names_later())
            except Exception:
                threads = None  # the scheduler does not answer: the status of the client tells whether it is gone
            if not self._running:
                self._lose_scheduler()
                return
            if threads is not None:
                self._guarded(self._update, threads)
            missing = any(host.missed for host in self._hosts.values())
            await asyncio.sleep(LOOK_AGAIN if missing else LOOK)

    async def _names_later(self) -> dict[str, set[str]]:
        return {} if self._only is None else _names_of(await self._client.scheduler.identity())

    def _update(self, threads: dict[str, int]) -> None:
        """Take note of the workers that there are."""
        self._threads = threads
        for host in list(self._hosts.values()):
            if host.address in threads:
                host.missed = False
            elif host.missed:
                self._lose_host(host)
            else:
                host.missed = True
        for address, count in threads.items():
            if address not in self._hosts and count > 0:
                self._hosts[address] = host = _Host(address, count, free=count)
                host.job = self._do(self._prepare(host))
        if threads:
            self._deserted = time.monotonic()
        elif time.monotonic() - self._deserted > WITHOUT_WORKERS:
            self._refuse(f"the cluster of Dask has had no worker for {WITHOUT_WORKERS:g} s")
        self._distribute()

    async def _prepare(self, host: _Host) -> None:
        """Let a worker load the objective; try again while the worker is there."""
        refusal, tries, identity = "", 0, ""
        while tries < MOST_STARTS and not identity:
            try:
                data = await self._scattered()
                if data is not None:
                    host.held = self._submit(host, hold, data)  # which stays there
                    identity, refusal = await self._submit(host, introduce, host.held)
                    break
            except CancelledError:  # what was scattered was lost together with another worker
                pass
            except Exception as error:
                tries, refusal = tries + 1, summary_of(error)
            await asyncio.sleep(LOOK_AGAIN)
        host.identity, host.refusal = "" if refusal else identity, refusal
        self._guarded(self._distribute)

    async def _scattered(self) -> Any:
        """Return the pickled objective in the memory of workers, from where others get it; None without workers."""
        async with self._data_lock:
            if self._data is None or self._data.status != "finished":  # those who had it are gone
                at = None if self._only is None else list(self._threads)
                try:
                    (self._data,) = await self._client.scatter(
                        [self._content], workers=at, broadcast=True, hash=False, timeout=SCATTER
                    )
                except Exception:  # a worker has gone in between
                    return None
            return self._data

    def _submit(self, host: _Host, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function as a task on a worker; return the future, to be awaited on this loop."""
        key = f"{function.__name__}-{self._topic}-{next(self._numbers)}"
        return self._client.submit(
            function,
            *arguments,
            key=key,
            pure=False,
            retries=0,
            workers=[host.address],
            allow_other_workers=False,
            resources=self._resources,
        )

    # Calls and tasks.

    def _distribute(self) -> None:
        """Give the calls that wait to workers that have room."""
        ready = [host for host in self._hosts.values() if host.ready]
        refusals = [host.refusal for host in self._hosts.values() if host.refusal]
        if refusals and len(refusals) == len(self._hosts):
            self._refuse(f"no worker of Dask could load the function ({refusals[0]})")
        calls = self._take_waiting()
        if self._suspects:
            suspects = [call for call in calls if call.key in self._suspects]
            calls = [call for call in calls if call not in suspects]
            for host in ready:
                if suspects and not host.tasks:
                    self._start(host, [suspects.pop(0)], host.free)
            self._put_back(suspects)
        lanes = sum(host.free for host in ready)
        if self._sizes.alone:
            while calls and lanes:
                self._start(max(ready, key=lambda host: host.free), [calls.pop(0)], 1)
                lanes -= 1
        else:
            threads = max(1, sum(self._threads.values()))
            depth = min(self._sizes.depth, ceil((len(calls) + self._left) / threads))
            at = 0
            for host in sorted(ready, key=lambda host: -host.free):
                share = ceil((len(calls) - at) * host.free / lanes) if lanes else 0  # the rest, evenly over the rest
                lanes -= host.free
                part = calls[at : at + min(share, host.free * depth)]
                part = part[: max(1, MOST_BYTES // part[0].bytes)] if part else part
                at += len(part)
                if part:
                    self._start(host, part, min(host.free, len(part)))
            calls = calls[at:]
        self._put_back(calls)

    def _take_waiting(self) -> list[_Call]:
        """Take the calls that wait and that somebody still wants."""
        with self._lock:
            calls = list(self._waiting)
            self._waiting.clear()
        return [call for call in calls if not call.future.cancelled()]

    def _put_back(self, calls: list[_Call]) -> None:
        with self._lock:
            self._waiting.extendleft(reversed(calls))

    def _start(self, host: _Host, calls: list[_Call], lanes: int) -> None:
        """Send calls to a worker as one task."""
        wanted = [call for call in calls if call.future.running() or call.future.set_running_or_notify_cancel()]
        if wanted:
            task = _Task(next(self._numbers), host, wanted, lanes, self._sizes.alone)
            host.free -= lanes
            host.tasks.add(task)
            self._tasks[task.number] = task
            task.job = self._do(self._follow(task))

    async def _follow(self, task: _Task) -> None:
        """Send a task, and wait for its end."""
        host, calls = task.host, [call.arguments for call in task.calls]
        content = pickle.dumps((task.calls[0].function, self._objective.known(), calls), pickle.HIGHEST_PROTOCOL)
        given = host.identity, self._topic, task.number, content, host.threads, task.lanes, self._timeout
        try:
            done: TaskOutcome | None = await self._submit(host, evaluate, host.held, *given)
        except CancelledError:
            if self._running:
                self._guarded(self._lose_objective, task)
            else:
                self._lose_scheduler()
        except Exception as error:
            self._guarded(self._break_task, task, error)
        else:
            self._guarded(self._finish, task, done)

    def _announced(self, event: tuple[float, Any]) -> None:
        """Take note of a task that has begun."""
        task = self._tasks.get(event[1])
        if task is not None:
            task.begun = True
            self._stillborn = 0

    def _forget(self, task: _Task) -> bool:
        """Remove a task from those under way; return whether it was one."""
        task.host.tasks.discard(task)
        if self._tasks.pop(task.number, None) is None:
            return False
        task.host.free += task.lanes
        return True

    def _finish(self, task: _Task, done: TaskOutcome | None) -> None:
        """Hand out what a task returned."""
        if done is None:  # another worker has the address now
            self._lose_host(task.host)
        elif self._forget(task):
            overhead = time.monotonic() - task.sent - done.busy
            self._sizes.note(len(task.calls), done.calling, overhead, alone=task.alone)
            if self._suspects:
                self._suspects.difference_update(call.key for call in task.calls)
            for call, (returned, what) in zip(task.calls, done.outcomes, strict=True):
                if returned:
                    call.future.set_result(what)
                else:
                    call.future.set_exception(unpacked(*what))

    # What is lost.

    def _lose_host(self, host: _Host) -> None:
        """Take note that a worker is gone."""
        if self._hosts.get(host.address) is host:
            del self._hosts[host.address]
        if host.job is not None:
            host.job.cancel()
        if not any(task.begun for task in host.tasks):
            self._stillborn += 1
        beside = _together(host.tasks)
        for task in list(host.tasks):
            self._lose_task(task, f"the Dask worker {host.address} was lost during the call", beside=beside)
        if self._stillborn >= MOST_STARTS:
            self._refuse(f"{MOST_STARTS} Dask workers in a row were lost before they began a call")

    def _lose_objective(self, task: _Task) -> None:
        """Take note that a task was cancelled: the objective was lost with the worker that had it, or by a restart."""
        host = task.host
        why = f"the Dask worker {host.address} was lost during the call, or the task was cancelled"
        self._lose_task(task, why, beside=_together(host.tasks))
        if host.identity and self._hosts.get(host.address) is host:
            host.identity = ""
            host.job = self._do(self._prepare(host))

    def _lose_task(self, task: _Task, why: str, *, beside: bool = False) -> None:
        """Let the calls of a task fail that has begun; send them again if it has not."""
        if not self._forget(task):
            return
        if task.job is not None:
            task.job.cancel()  # Dask forgets the task with it
        if task.begun:
            for call in task.calls:
                if beside:
                    self._suspects.add(call.key)
                call.future.set_exception(WorkerDied(why))
            return
        self._put_back(task.calls)

    def _break_task(self, task: _Task, error: Exception) -> None:
        """Let the calls of a task fail that Dask could not run, or whose values it could not bring."""
        if self._forget(task):
            for call in task.calls:
                call.future.set_exception(error if task.begun else WorkerNotStarted(summary_of(error)))

    def _lose_scheduler(self) -> None:
        """Let all calls fail: the scheduler, or the connection to it, is gone."""
        with self._lock:
            if not self._lost:
                self._lost = f"the Dask scheduler at {self._scheduler} was lost: {REMEDY}"
        for task in list(self._tasks.values()):
            if self._forget(task):
                kind = ClusterLost if task.begun else ClusterLostBefore
                for call in task.calls:
                    call.future.set_exception(kind(self._lost))
        self._drop_waiting(ClusterLostBefore(self._lost))

    def _refuse(self, why: str) -> None:
        """Let the calls that wait fail, without a charge."""
        self._stillborn = 0
        self._drop_waiting(WorkerNotStarted(why))

    def _drop_waiting(self, error: BaseException) -> None:
        for call in self._take_waiting():
            if call.future.running() or call.future.set_running_or_notify_cancel():
                call.future.set_exception(error)

    def _fail_all(self, error: BaseException) -> None:
        """Let all calls fail because of an error in this pool."""
        for task in list(self._tasks.values()):
            if self._forget(task):
                for call in task.calls:
                    call.future.set_exception(error)
        self._drop_waiting(error)


def _together(tasks: set[_Task]) -> bool:
    """Whether several calls have begun, so that nobody knows which of them it was that killed their worker."""
    return sum(len(task.calls) for task in tasks if task.begun) > 1


def _names_of(information: dict[str, Any]) -> dict[str, set[str]]:
    """Return the address, the name and the host of every worker, by its address."""
    workers = information["workers"].items()
    return {address: {address, str(one.get("name")), str(one.get("host"))} for address, one in workers}
