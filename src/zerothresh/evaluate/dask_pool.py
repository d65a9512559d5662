"""An executor on a Dask cluster: the objective is sent once per worker, small calls together, and deaths are seen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from zerothresh.evaluate.base import ClusterLost, ClusterLostBefore, summary_of
from zerothresh.evaluate.dask_chunks import DaskCall, DaskChunks
from zerothresh.evaluate.dask_hosts import DaskHost, DaskHosts
from zerothresh.evaluate.dask_link import DaskLink
from zerothresh.evaluate.packing import pickler
from zerothresh.evaluate.pool import BatchingPool
from zerothresh.objective.forms import Objective

FAREWELL = 5.0  # seconds for the last messages to a cluster that may be gone
REMEDY = "start the cluster again and call this again with the same run folder: what has arrived is kept"


class DaskPool(BatchingPool):
    """An executor whose workers are those of a Dask cluster.

    Calls are sent to a worker process in chunks, and Dask never makes one again by itself: a call whose worker
    is lost fails with `WorkerDied` if its chunk had begun, and is sent again if it had not. The caller decides whether
    it is made again, and then it gets a worker of its own, so that a call that kills its worker is told from those that
    were made beside it. `DaskHosts` knows the workers, and `DaskChunks` the calls.

    Arguments
    ---------
    objective: what the first argument of every submitted function is.
    client: the client, which must not be asynchronous.
    options: further arguments for the submission of tasks: ``workers``, to which the calls are restricted, and
        ``resources``.
    timeout: seconds after which a call is given up, counted from when it began; None means never.
    """

    def __init__(self, objective: Objective, client: Any, options: dict[str, Any], timeout: float | None) -> None:
        try:
            content = pickler()(objective)
        except Exception as error:  # whatever an object of the user's own raises when it is pickled
            raise ValueError(f"fun cannot be sent to Dask's workers ({summary_of(error)})") from error
        self._scheduler = getattr(getattr(client, "scheduler", None), "address", "of Dask")
        self._link = DaskLink(client, options.get("resources"), self._fail)
        self._hosts = DaskHosts(self._link, content, options)
        self._chunks = DaskChunks(self._link, self._hosts, objective, timeout)
        self._lock = threading.Lock()  # around what becomes of the pool
        self._lost = ""  # how the scheduler was lost
        self._started = self._closed = False

    # What the evaluator calls, in its own thread.

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run fn(objective, *args[1:]) on a worker; the objective is already there, or soon will be."""
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool has been shut down and takes no more calls")
            if self._lost:
                raise ClusterLostBefore(self._lost)
            self._chunks.wait(DaskCall(future, fn, args[1:]))
        return future

    def wanted(self) -> int:
        """Return the number of calls in progress that keep the workers busy."""
        return self._chunks.wanted

    def send(self, left: int) -> None:
        """Send what was submitted; ``left`` more calls of the round have not been submitted yet."""
        self._chunks.left = left
        if not self._link.running:
            self.lose_scheduler()
        elif not self._lost:
            self._link.soon(self._chunks.distribute if self._started else self._begin)
            self._started = True

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Forget the objective on the cluster; calls under way run to their end."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if not self._link.running:
            return
        ending = self._end()
        try:
            asyncio.run_coroutine_threadsafe(ending, self._link.loop).result(FAREWELL)
        except Exception:  # the loop has ended, or the cluster does not answer: nothing is left to be done
            ending.close()

    def _begin(self) -> None:
        self._link.listen(self._chunks.hear)
        self._hosts.begin(self)

    async def _end(self) -> None:
        await self._link.end()
        await self._hosts.end()

    # What the hosts tell.

    def changed(self) -> None:
        """Give calls to workers: one has become ready, or has refused the objective, or has come or gone."""
        self._chunks.distribute()

    def lose_host(self, host: DaskHost) -> None:
        """Take note that a worker is gone."""
        self._chunks.lose_host(host)

    def refuse(self, why: str) -> None:
        """Let the calls that wait fail, without a charge."""
        self._chunks.refuse(why)

    def lose_scheduler(self) -> None:
        """Let all calls fail: the scheduler, or the connection to it, is gone."""
        with self._lock:
            if not self._lost:
                self._lost = f"the Dask scheduler at {self._scheduler} was lost: {REMEDY}"
        self._chunks.fail(ClusterLost(self._lost), ClusterLostBefore(self._lost))

    def _fail(self, error: Exception) -> None:
        """Let all calls fail because of an error in this pool."""
        self._chunks.fail(error, error)
