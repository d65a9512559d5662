"""The connection to a Dask cluster: what a run says to the scheduler and to the workers, on the client's event loop."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from zerothresh.evaluate.dask_worker import HeldObjective, stay


class ObjectiveLost(Exception):
    """A worker has no objective: it was restarted, or another worker has its address now."""


class DaskLink:
    """What a run says to a cluster through the client.

    An objective lives in a worker as an actor of Dask. What is said to it goes through the scheduler, as a message and
    an answer, and not as a task: a task costs the scheduler some milliseconds, and a message a part of one. A task that
    does nothing says for as long as the run lasts that the worker is in use.

    Arguments
    ---------
    client: the client.
    resources: what a worker must have, or None.
    failed: called with an error of our own code on the event loop, so that nobody waits for ever.
    """

    def __init__(self, client: Any, resources: Any, failed: Callable[[Exception], None]) -> None:
        self.client, self.closed = client, False
        self.topic = f"zerothresh-{uuid.uuid4().hex}"
        self._resources, self._failed = resources, failed
        self._numbers, self._jobs = itertools.count(), set[asyncio.Task[Any]]()

    @property
    def running(self) -> bool:
        """Whether there is a scheduler at the other end."""
        return str(self.client.status) == "running"

    @property
    def loop(self) -> Any:
        """The event loop of the client."""
        return self.client.loop.asyncio_loop

    def soon(self, function: Callable[[], None]) -> None:
        """Call a function on the event loop; any thread may ask for that."""
        with suppress(RuntimeError):  # the loop has been closed; the next look at the client's status tells
            self.loop.call_soon_threadsafe(self.guarded, function)

    def guarded(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function, unless the run is over."""
        try:
            if not self.closed:
                function(*arguments)
        except Exception as error:
            self._failed(error)

    def do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine on this loop until the run is over."""
        job = asyncio.ensure_future(work)
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)
        return job

    def listen(self, heard: Callable[[Any], None]) -> None:
        """Call a function with each message that the workers send."""
        self.client.subscribe_topic(self.topic, lambda event: self.guarded(heard, event[1]))

    def hold(self, address: str, data: Any) -> Any:
        """Have the objective made in a worker; return the future of it, whose key names it in `ask`."""
        return self._submit(address, HeldObjective, data, self.topic, actor=True)

    def stay(self, address: str) -> Any:
        """Have Dask know that a worker is in use; return the future of the task that says so."""
        return self._submit(address, stay, self.topic)

    def _submit(self, address: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Run a function as a task of a worker, once."""
        named |= {"pure": False, "retries": 0, "workers": [address], "allow_other_workers": False}
        key = f"{function.__name__}-{self.topic}-{next(self._numbers)}"
        return self.client.submit(function, *arguments, key=key, resources=self._resources, **named)

    async def ask(self, address: str, key: str, method: str, *arguments: Any) -> Any:
        """Return what a method of the objective in a worker returns.

        Raises what it raises, ``OSError`` if the worker cannot be reached, or `ObjectiveLost`.
        """
        from distributed.protocol import to_serialize

        parts = [to_serialize(argument) for argument in arguments]
        message = {"op": "actor_execute", "actor": key, "function": method, "args": parts, "kwargs": {}}
        try:
            answer = await self.client.scheduler.proxy(worker=address, msg=message)
        except KeyError as error:
            raise ObjectiveLost(str(error)) from None
        if answer["status"] != "OK":
            raise answer["exception"]
        return answer["result"]

    async def end(self) -> None:
        """Stop everything that runs on this loop."""
        self.closed = True
        for job in list(self._jobs):
            job.cancel()
        with suppress(Exception):
            self.client.unsubscribe_topic(self.topic)
        await asyncio.sleep(0)  # the jobs take note
