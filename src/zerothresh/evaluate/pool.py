"""A pool of threads that can be abandoned: a call that hangs does not keep the program from ending."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any


class BatchingPool(Executor):
    """An executor that may send several calls to a worker at once."""

    def wanted(self) -> int:
        """Return the number of calls in progress that keep the workers busy."""
        raise NotImplementedError

    def send(self, left: int) -> None:
        """Send what was submitted; ``left`` more calls of the round have not been submitted yet."""
        raise NotImplementedError


class DaemonPool(Executor):
    """An executor with a fixed number of daemon threads; `replace_one` replaces a thread that hangs."""

    def __init__(self, workers: int) -> None:
        self._max_workers = workers
        self._queue: SimpleQueue[tuple[Future[Any], Callable[..., Any], Any] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run fn(*args, **kwargs) on one of the threads."""
        if self._closed:
            raise RuntimeError("the pool has been shut down and takes no more calls")
        if len(self._threads) < self._max_workers:
            self._start()
        future: Future[Any] = Future()
        self._queue.put((future, fn, (args, kwargs)))
        return future

    @property
    def workers(self) -> int:
        """The largest number of threads."""
        return self._max_workers

    def allow(self, workers: int) -> None:
        """Allow so many threads at least."""
        self._max_workers = max(self._max_workers, workers)

    def replace_one(self) -> None:
        """Allow one more thread, because one hangs in a call that has been abandoned."""
        self._max_workers += 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let each thread end after its present call, without waiting for it."""
        self._closed = True
        for _ in self._threads:
            self._queue.put(None)

    def _start(self) -> None:
        """Start another thread."""
        thread = threading.Thread(target=self._work, name=f"zerothresh-{len(self._threads)}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        """Run calls from the queue until it holds None."""
        process = os.getpid()
        while (item := self._queue.get()) is not None:
            future, fn, (args, kwargs) = item
            if not future.set_running_or_notify_cancel():
                continue
            value: Any = None
            failure: BaseException | None = None
            try:
                value = fn(*args, **kwargs)
            except BaseException as error:
                failure = error
            if os.getpid() != process:
                os._exit(0)  # the function has forked, and its child has come back: it has no calls to make
            if failure is None:
                future.set_result(value)
            else:
                future.set_exception(failure)
            del value, failure
            del item, future, fn, args, kwargs  # release the points while the thread waits for its next call
