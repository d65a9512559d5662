"""Calls of an async function: an executor whose workers are tasks on the event loop of the user."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from contextlib import suppress
from typing import Any

from zerothresh.evaluate.base import CallCancelled, CancelledBeforehand
from zerothresh.objective.forms import BadValue, Objective

GRACE = 1.0  # seconds that a cancelled call has for cleaning up, before nobody waits for it any more
NOT_AWAITABLE = (
    "fun returned {0} instead of something to await: minimize_async takes async functions, as in "
    "`async def fun(x)`; zt.minimize takes ordinary ones"
)
CANCELLED = "the call was cancelled before it returned"


class Call:
    """A call in progress: the future that waits for its outcome, its task, and whether the function was called."""

    __slots__ = ("begun", "future", "reason", "task", "timer")

    task: asyncio.Task[Any]

    def __init__(self, future: Future[Any]) -> None:
        self.future, self.begun = future, False
        self.reason: Exception | None = None  # why it was cancelled
        self.timer: asyncio.TimerHandle | None = None

    def cancel(self, reason: Exception, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the task; if it does not end soon, the call has failed without it."""
        self.reason = reason
        if self.timer is not None:
            self.timer.cancel()
        self.timer = loop.call_later(GRACE, self.give_up, reason)
        self.task.cancel()

    def give_up(self, reason: Exception) -> None:
        """Let the call fail, whatever its task still does."""
        if not self.future.done():
            self.future.set_exception(reason)

    def ended(self, task: asyncio.Task[Any]) -> None:
        """Pass on what the task returned or raised."""
        if self.timer is not None:
            self.timer.cancel()
        outcome: Any = None
        error: BaseException | None
        if task.cancelled() and not self.begun:
            error = CancelledBeforehand("the call was cancelled before it began")
        elif task.cancelled():
            error = self.reason or CallCancelled(CANCELLED)
        elif (raised := task.exception()) is not None:
            error = self.reason or raised
        else:
            outcome, error = task.result()
            if isinstance(self.reason, TimeoutError):
                error = self.reason  # nobody waits for what comes too late
        if self.future.done():
            return
        if error is None:
            self.future.set_result(outcome)
        else:
            self.future.set_exception(error)


class OnEventLoop(Executor):
    """An executor that calls an async objective on an event loop, which runs in another thread than the search.

    The search submits calls from its own thread; each is a task of the loop. A call that takes longer than ``timeout``
    seconds is cancelled and fails with ``TimeoutError``. After `cancel`, which is for the thread of the loop, all
    calls are cancelled, `cancelled` is true, and none is begun any more.

    Arguments
    ---------
    loop: the running event loop.
    width: int, the largest number of calls in progress.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, width: int) -> None:
        self.width, self._loop = width, loop
        self.timeout: float | None = None
        self.cancelled = False
        self._context = contextvars.copy_context()  # of the caller: tasks see its context variables
        self._submitted: deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = deque()
        self._calls: dict[asyncio.Task[Any], Call] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the objective, which is the first one of ``args``; it says itself how it is called."""
        return self._start(_outcome, *args)

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function of the user's on the loop, from the thread of the search; await what it returns.

        ``KeyboardInterrupt`` is raised if it is cancelled, because then the run should stop.
        """
        try:
            return self._start(_returned, function, *args).result()
        except (CallCancelled, CancelledError):
            raise KeyboardInterrupt from None
        except RuntimeError as error:
            if isinstance(error.__cause__, StopIteration):  # Python wraps one that comes out of a coroutine
                raise error.__cause__ from None
            raise

    def _start(self, coroutine: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._submitted.append((future, coroutine, args))
        if self.cancelled:
            future.cancel()
        elif len(self._submitted) == 1:  # otherwise the loop has been woken up, and will find this one too
            try:
                self._loop.call_soon_threadsafe(self._begin_all, context=self._context)
            except RuntimeError:  # the loop is closed
                self._submitted.clear()
                raise
        return future

    def _begin_all(self) -> None:
        while self._submitted:
            self._begin(*self._submitted.popleft())

    def _begin(self, future: Future[Any], coroutine: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Make a task of a call that is still wanted."""
        if self.cancelled:
            future.cancel()
        if not future.set_running_or_notify_cancel():
            return
        call = Call(future)
        task = call.task = self._loop.create_task(coroutine(call, *args))
        self._calls[task] = call
        if self.timeout is not None and coroutine is _outcome:
            late = TimeoutError(f"the call took longer than timeout = {self.timeout} s and was cancelled")
            call.timer = self._loop.call_later(self.timeout, call.cancel, late, self._loop)
        task.add_done_callback(self._calls.pop)
        task.add_done_callback(call.ended)

    def cancel(self) -> None:
        """Cancel all calls in progress, and begin no more; only the thread of the loop may call this."""
        self.cancelled = True
        self._cancel_calls()

    def _cancel_calls(self) -> None:
        for call in list(self._calls.values()):
            if not isinstance(call.reason, CallCancelled):
                call.cancel(CallCancelled(CANCELLED), self._loop)

    def give_up(self) -> None:
        """Let all calls in progress fail at once, because the loop does not run any more."""
        self.cancelled = True
        while self._submitted:
            self._submitted.popleft()[0].cancel()
        for call in list(self._calls.values()):
            call.give_up(CallCancelled(CANCELLED))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel what is still in progress."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._cancel_calls)


async def _outcome(call: Call, objective: Objective, points: Any, components: Any) -> tuple[Any, BaseException | None]:
    """Await one call of the objective; return its checked answer, or the error that a task must not raise."""
    call.begun = True
    points.flags.writeable = False
    try:
        answer = objective.ask(points, components)
        if not inspect.isawaitable(answer):
            raise BadValue(NOT_AWAITABLE.format(type(answer).__name__))
        return objective.accept(await answer, len(points) if objective.vectorized else None), None
    except SystemExit as error:  # a task would take the whole event loop down with it
        return None, error


async def _returned(call: Call, function: Callable[..., Any], *args: Any) -> tuple[Any, BaseException | None]:
    """Call a function of the user's, and await what it returns if it can be awaited."""
    call.begun = True
    try:
        value = function(*args)
        return (await value if inspect.isawaitable(value) else value), None
    except (SystemExit, StopIteration) as error:
        return None, error
