"""A pool of worker processes, each of which gets the objective once; one that dies or hangs is replaced."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import Any

from zerothresh.evaluate.base import WorkerNotStarted, summary_of
from zerothresh.evaluate.packing import pickler
from zerothresh.evaluate.process_handle import REMEDY, EndedBeforehand, ProcessHandle
from zerothresh.objective.forms import Objective

MOST_STARTS = 3  # processes in a row that end before they begin a call, after which the call is given up

Call = tuple[Any, tuple[Any, ...], Any]  # of `ProcessHandle.call`


class ProcessPool(Executor):
    """An executor whose worker processes hold one objective.

    A process is started when a call finds none that is free. Each has a thread here, which starts it, feeds it, waits
    for its answers and replaces it. A call whose process ends fails with `WorkerDied`; one that takes too long fails
    with ``TimeoutError``, and its process is killed. A call that no process has begun fails with `WorkerNotStarted`.

    Arguments
    ---------
    objective: what the first argument of every submitted function is; it is pickled once, and sent once per process.
    count: the largest number of processes.
    timeout: seconds after which a call is given up, counted from when it began; None means never.
    """

    def __init__(self, objective: Objective, count: int, timeout: float | None = None) -> None:
        self._max_workers, self._objective, self._timeout = count, objective, timeout
        try:
            self._content = pickler()(objective)
        except Exception as error:  # whatever an object of the user's own raises when it is pickled
            raise ValueError(f"fun cannot be sent to worker processes ({summary_of(error)}): {REMEDY}") from error
        self._queue: SimpleQueue[tuple[Future[Any], Call] | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)  # threads that wait for a call
        self._lock = threading.Lock()  # around what shutdown has to see: the threads, and which processes are busy
        self._threads: list[threading.Thread] = []
        self._busy: set[ProcessHandle] = set()
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run fn(objective, *args[1:]) in one of the processes; the objective is already there."""
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool has been shut down and takes no more calls")
            self._queue.put((future, (fn, self._objective.known(), args[1:])))
            if not self._idle.acquire(blocking=False) and len(self._threads) < self._max_workers:
                name = f"zerothresh-process-{len(self._threads)}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes, and wait for their ends; those that are busy are killed."""
        with self._lock:
            if not self._closed:
                self._closed = True
                for handle in self._busy:
                    handle.kill()
                for _ in self._threads:
                    self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        """Run calls from the queue until it holds None; the main function of a thread and its process."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # processes inherit it, until they ignore Ctrl-C
        handle: ProcessHandle | None = None
        while (item := self._next()) is not None:
            future, call = item
            try:
                handle = self._run(future, call, handle)
            finally:
                del item, future, call  # release the points while the thread waits for its next call
        if handle is not None:
            handle.end()

    def _next(self) -> tuple[Future[Any], Call] | None:
        """Wait for a call; None at the end."""
        try:
            return self._queue.get_nowait()
        except Empty:
            self._idle.release()
            return self._queue.get()

    def _run(self, future: Future[Any], call: Call, handle: ProcessHandle | None) -> ProcessHandle | None:
        """Run a call, in a new process if necessary; return the process for the next one."""
        why = ""
        for _ in range(MOST_STARTS):
            try:
                handle = self._engage(handle)
                handle.prepare()
                if not future.running() and not future.set_running_or_notify_cancel():
                    return handle  # nobody wants it any more
                value = handle.call(call, self._timeout)
            except EndedBeforehand as ended:
                why = str(ended)
            except BaseException as error:
                _fail(future, error)
                return handle
            else:
                future.set_result(value)
                return handle
            finally:
                self._release(handle)
        message = f"{MOST_STARTS} worker processes in a row ended before they began a call; the last one {why}"
        _fail(future, WorkerNotStarted(message))
        return handle

    def _engage(self, handle: ProcessHandle | None) -> ProcessHandle:
        """Return a process that lives, marked as busy."""
        with self._lock:
            if self._closed:
                raise WorkerNotStarted("the pool has been shut down")
            if handle is not None and not handle.alive:
                handle.end(kill=True)
                handle = None
            if handle is None:
                try:
                    handle = ProcessHandle(self._content)
                except OSError as error:
                    raise WorkerNotStarted(f"a worker process could not be started ({error})") from error
            self._busy.add(handle)
            return handle

    def _release(self, handle: ProcessHandle | None) -> None:
        with self._lock:
            self._busy.discard(handle)


def _fail(future: Future[Any], error: BaseException) -> None:
    """Let a call fail, unless it has been taken back."""
    if future.running() or future.set_running_or_notify_cancel():
        future.set_exception(error)
