"""The workers of a Dask cluster: which there are, that each has the objective, and which of them are lost."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from zerothresh.evaluate.base import summary_of
from zerothresh.evaluate.dask_link import DaskLink, ObjectiveLost

if TYPE_CHECKING:
    from zerothresh.evaluate.dask_chunks import DaskChunk

LOOK = 0.5  # seconds between two looks at which workers there are
LOOK_AGAIN = 0.2  # seconds until a worker that is missing is taken for dead: what it still said has arrived by then
MOST_STARTS = 3  # workers in a row that are lost before they begin a call, after which the calls are given up
WITHOUT_WORKERS = 600.0  # seconds after which calls are given up if the cluster has no worker: a queue may be long
SCATTER = 60.0  # seconds for a worker to come that takes the objective, before another look at which there are


def threads_of(client: Any, options: dict[str, Any]) -> dict[str, int]:
    """Return the threads of the workers that may be used, by their addresses; raise ``ValueError`` without any."""
    if getattr(client, "_asynchronous", False):
        raise ValueError("workers must be a Client of Dask that is not asynchronous: leave asynchronous=True out")
    if str(client.status) != "running":
        raise ValueError(f"the Client of Dask is {client.status}: pass one that is connected to a scheduler")
    threads: dict[str, int] = client.sync(_usable, client, options)
    if not sum(threads.values()):
        raise ValueError(
            "the cluster of Dask has no workers yet, so that nobody knows how wide rounds should be: call "
            "client.wait_for_workers(50), or as many as you want, first"
        )
    return threads


async def _usable(client: Any, options: dict[str, Any]) -> dict[str, int]:
    """Return how many threads of each worker may be used.

    Arguments
    ---------
    client: the client.
    options: ``workers``, addresses, names or hosts to which the calls are restricted; ``resources``, what each call
        needs of its worker.
    """
    only, needed = options.get("workers"), options.get("resources") or {}
    threads: dict[str, int] = dict(await client.nthreads())
    if only is not None or needed:  # which takes the scheduler longer to say
        about = (await client.scheduler.identity())["workers"]
        some = None if only is None else {str(one) for one in ([only] if isinstance(only, (str, int)) else only)}
        for address in threads:
            one = about.get(address, {})
            there = one.get("resources") or {}
            at_once = [int(there.get(name, 0) / count) for name, count in needed.items() if count > 0]
            if some is not None and not some & {address, str(one.get("name")), str(one.get("host"))}:
                at_once.append(0)
            threads[address] = min([threads[address], *at_once])
    return {address: count for address, count in threads.items() if count > 0}


@dataclass(eq=False)
class DaskHost:
    """A worker process of the cluster."""

    address: str
    threads: int
    key: str = ""  # of the objective there; empty until it can be called
    refusal: str = ""  # why it could not be loaded
    kept: list[Any] = field(default_factory=list)  # futures of the objective, and of the task that keeps it there
    missed: bool = False  # the scheduler does not know it any more
    chunks: set[DaskChunk] = field(default_factory=set)
    job: asyncio.Task[None] | None = None  # that waits until the worker is ready
    taking: bool = False  # whether its values are being fetched
    told_more: bool = False  # whether it has told of more since then

    @property
    def ready(self) -> bool:
        """Whether it takes calls."""
        return bool(self.key) and not self.missed

    @property
    def load(self) -> int:
        """The number of calls that it has not answered."""
        return sum(chunk.unanswered for chunk in self.chunks)


class HostsUser(Protocol):
    """What is told of workers."""

    def changed(self) -> None:
        """A worker has become ready, or has refused the objective, or has come or gone."""

    def lose_host(self, host: DaskHost) -> None:
        """A worker is gone."""

    def refuse(self, why: str) -> None:
        """No call can be made."""

    def lose_scheduler(self) -> None:
        """The scheduler is gone."""


class DaskHosts:
    """Knows the workers of a cluster. Its state belongs to the event loop of the client.

    Arguments
    ---------
    link: DaskLink.
    content: the pickled objective.
    options: as for `threads_of`.
    """

    def __init__(self, link: DaskLink, content: bytes, options: dict[str, Any]) -> None:
        self._link, self._content, self._options = link, content, options
        self.threads = threads_of(link.client, options)
        self.hosts: dict[str, DaskHost] = {}
        self._user: HostsUser | None = None
        self._stillborn = 0  # workers in a row that were lost before a call began
        self._deserted = time.monotonic()  # when there was a worker
        self._data: Any = None  # the objective in the workers' memory
        self._data_lock = asyncio.Lock()

    def begin(self, user: HostsUser) -> None:
        """Prepare the workers, and look which there are from now on."""
        self._user, self._deserted = user, time.monotonic()
        self._update(self.threads)
        self._link.do(self._watch(user))

    async def end(self) -> None:
        """Let go of everything on the cluster."""
        leaving = [host for host in self.hosts.values() if host.ready]
        asked = (self._link.ask(host.address, host.key, "dismiss") for host in leaving)
        await asyncio.gather(*asked, return_exceptions=True)
        await asyncio.gather(*(host.kept[-1].exception() for host in leaving), return_exceptions=True)
        self.hosts.clear()
        self._data = None

    @property
    def ready(self) -> list[DaskHost]:
        """The workers that take calls."""
        return [host for host in self.hosts.values() if host.ready]

    @property
    def refusal(self) -> str:
        """Why no worker could load the objective, if so."""
        refusals = [host.refusal for host in self.hosts.values()]
        return refusals[0] if refusals and all(refusals) else ""

    def note_begun(self) -> None:
        """Take note that a worker has begun a call."""
        self._stillborn = 0

    def renew(self, host: DaskHost) -> None:
        """Prepare a worker again, which has lost the objective."""
        if host.key and self.hosts.get(host.address) is host:
            host.key = ""
            host.job = self._link.do(self._prepare(host))

    def lose(self, host: DaskHost) -> None:
        """Take note that a worker is gone."""
        assert self._user is not None
        if self.hosts.get(host.address) is host:
            del self.hosts[host.address]
        if host.job is not None:
            host.job.cancel()
        if not any(chunk.begun for chunk in host.chunks):
            self._stillborn += 1
        self._user.lose_host(host)
        if self._stillborn >= MOST_STARTS:
            self._stillborn = 0
            self._user.refuse(f"{MOST_STARTS} Dask workers in a row were lost before they began a call")

    async def _watch(self, user: HostsUser) -> None:
        """Look which workers there are, again and again."""
        while not self._link.closed:
            try:
                threads = await _usable(self._link.client, self._options)
            except Exception:
                threads = None  # the scheduler does not answer: the status of the client tells whether it is gone
            if not self._link.running:
                user.lose_scheduler()
                return
            if threads is not None:
                self._link.guarded(self._update, threads)
            missing = any(host.missed for host in self.hosts.values())
            await asyncio.sleep(LOOK_AGAIN if missing else LOOK)

    def _update(self, threads: dict[str, int]) -> None:
        """Take note of the workers that there are."""
        assert self._user is not None
        self.threads = threads
        for host in list(self.hosts.values()):
            if host.address in threads:
                host.missed = False
            elif host.missed:
                self.lose(host)
            else:
                host.missed = True
        for address, count in threads.items():
            if address not in self.hosts:
                self.hosts[address] = host = DaskHost(address, count)
                host.job = self._link.do(self._prepare(host))
        if threads:
            self._deserted = time.monotonic()
        elif time.monotonic() - self._deserted > WITHOUT_WORKERS:
            self._user.refuse(f"the cluster of Dask has had no worker for {WITHOUT_WORKERS:g} s")
        self._user.changed()

    async def _prepare(self, host: DaskHost) -> None:
        """Let a worker load the objective; try again while the worker is there."""
        assert self._user is not None
        refusal, tries, key = "", 0, ""
        while tries < MOST_STARTS and not key:
            try:
                data = await self._scattered()
                if data is not None:
                    held = self._link.hold(host.address, data)
                    error = await held.exception()
                    if error is not None:
                        raise error
                    if held.status != "finished":
                        raise CancelledError
                    refusal = await self._link.ask(host.address, held.key, "introduce")
                    host.kept, key = [held, self._link.stay(host.address)], held.key
                    break
            except (CancelledError, ObjectiveLost):  # what was scattered was lost together with another worker
                pass
            except Exception as error:
                tries, refusal = tries + 1, summary_of(error)
            await asyncio.sleep(LOOK_AGAIN)
        host.key, host.refusal = "" if refusal else key, refusal
        self._link.guarded(self._user.changed)

    async def _scattered(self) -> Any:
        """Return the pickled objective in the memory of workers, from where others get it; None without workers."""
        async with self._data_lock:
            if self._data is None or self._data.status != "finished":  # those who had it are gone
                at = None if self._options.get("workers") is None else list(self.threads)
                named = {"workers": at, "broadcast": True, "hash": False, "timeout": SCATTER}
                try:
                    (self._data,) = await self._link.client.scatter([self._content], **named)
                except Exception:  # a worker has gone in between
                    return None
            return self._data
