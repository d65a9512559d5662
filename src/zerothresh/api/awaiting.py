"""`minimize_async`: a run whose calls are awaited on the event loop of the user, while its arithmetic has a thread."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from zerothresh.api.minimizer import minimize
from zerothresh.api.result import Result
from zerothresh.basics import check
from zerothresh.evaluate.event_loop import OnEventLoop

MOST_CALLS = 1 << 16  # calls in progress; each is a task, and holds a point


async def minimize_async(
    fun: Any, x0: Any, k: int, *, concurrency: int = 1, jitter: float = 0.5, **arguments: Any
) -> Result:
    """Run `minimize` on an async function, whose calls are tasks of the running event loop.

    The search itself has a thread of its own, so that its arithmetic does not block the loop. Apart from the way in
    which the function is called, everything is as in `minimize`: the same seed and the same width of rounds
    (``parallel``, by default the ``concurrency``) give the same bits, and every call is counted and kept once.

    If the task that awaits this is cancelled, also by Ctrl-C in ``asyncio.run``, the calls in progress are cancelled
    and count as failed, values that have arrived are kept, and ``CancelledError`` is raised once the run folder is
    closed. The same arguments then continue the run. A call that does not end within a second of its cancellation is
    left behind.

    Arguments
    ---------
    fun: async function in any of the forms of `minimize`: ``await fun(x)``, ``await fun(x, i)`` with ``n``, ``await
        fun(X)`` or ``await fun(X, I)`` with ``vectorized``; or a problem object whose ``values``, or ``outputs``, is
        async.
    x0, k: as in `minimize`.
    concurrency: int, default 1: the largest number of calls in progress. It takes the place of ``workers``.
    jitter: float, default 0.5: as in `minimize`.
    arguments: the other arguments of `minimize`, such as ``budget``, ``per_second``, ``timeout`` and ``retries``. A
        call that takes longer than ``timeout`` is cancelled. ``callback(progress)`` is called on the event loop, and
        may be async; so may ``monitor(x)``, which is otherwise called in the thread of the search.

    Returns
    -------
    Result, as from `minimize`.

    >>> import asyncio
    >>> import zerothresh as zt
    >>> async def fun(x):
    ...     await asyncio.sleep(0)  # an HTTP request, say
    ...     return ((x - 1) ** 2).sum()
    >>> async def main():
    ...     return await zt.minimize_async(fun, 4, 2, budget=100, concurrency=10, seed=0)
    >>> round(asyncio.run(main()).fun, 6)
    2.0
    """
    loop = _running_loop()
    if "workers" in arguments:
        raise ValueError("minimize_async takes concurrency, the number of calls in progress, instead of workers")
    width = check.count("concurrency", concurrency, what=" (calls in progress)")
    if width > MOST_CALLS:
        raise ValueError(f"concurrency must be at most {MOST_CALLS} (calls in progress), not {width}")
    calls = OnEventLoop(loop, width)
    for name in ("callback", "monitor"):
        function = arguments.get(name)
        if callable(function) and (name == "callback" or check.is_async(function)):
            check.function(name, function, f"{name}({'progress' if name == 'callback' else 'x'})")
            arguments[name] = partial(calls.call, function)
    ended = _in_a_thread(partial(minimize, fun, x0, k, workers=calls, jitter=jitter, **arguments))
    cancelled: asyncio.CancelledError | None = None
    waiting = asyncio.wrap_future(ended, loop=loop)
    try:
        while not ended.done():
            try:
                await asyncio.wait((waiting,))
            except asyncio.CancelledError as error:
                cancelled = error
                calls.cancel()
    except BaseException:  # nobody will run the loop any more
        calls.give_up()
        raise
    if cancelled is None:
        return await waiting
    with suppress(BaseException):
        result = await waiting
        cancelled.add_note(f"zerothresh: the run was left after {result.nfev} of {result.budget} calls")
    try:
        raise cancelled
    finally:
        del cancelled  # it holds this frame


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "minimize_async needs a running event loop of asyncio: await it in a coroutine, and run that by "
            "asyncio.run(...), or in a notebook by await"
        ) from None


def _in_a_thread(function: Callable[[], Result]) -> Future[Result]:
    """Call a function in a thread of its own, which does not keep the program from ending."""
    future: Future[Result] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="zerothresh-search", daemon=True).start()
    return future
