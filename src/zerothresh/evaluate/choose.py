"""Choosing the evaluator that the argument ``workers`` asks for."""

from __future__ import annotations

import inspect
from concurrent.futures import Executor
from typing import Any

from zerothresh.basics import check
from zerothresh.evaluate.base import Evaluator
from zerothresh.evaluate.event_loop import OnEventLoop
from zerothresh.evaluate.executor import OnExecutor
from zerothresh.evaluate.pool import DaemonPool
from zerothresh.evaluate.rate_limit import RateLimit
from zerothresh.evaluate.serial import Serial
from zerothresh.evaluate.worker_processes import Processes
from zerothresh.objective.forms import Objective

_MOST_POINTS = 1024  # in a default batch
_MOST_NUMBERS = 1 << 24  # in all batches that are in progress, 128 MiB
_LONGEST_TIMEOUT = 1e8  # seconds, about three years; waiting primitives refuse much larger numbers
_MOST_THREADS = 4096  # each has a stack of its own, and systems limit how many a process may have
PARALLEL = " (the calls that can run at once), or None"
LAMBDA = "<lambda>"  # the name of a function that may return something to await without being async itself
_UNKNOWN_WIDTH = 64  # calls in progress on an executor that does not say how many workers it has


def chunk_for(d: int, chunk: int | None, width: int = 1) -> int:
    """Return the number of points that a vectorised function receives at once.

    Arguments
    ---------
    d: the dimension of a point.
    chunk: the user's choice, or None for the default: at most 1024 points, and at most 128 MiB in all calls together.
    width: the declared number of calls that can run at once, not that of the workers, on which no bit may depend.
    """
    if chunk is not None:
        return check.count("chunk", chunk, what=" (points per call of a vectorised function)")
    return max(1, min(_MOST_POINTS, _MOST_NUMBERS // (d * width)))


def evaluator_for(
    objective: Objective,
    workers: Any,
    chunk: int | None = None,
    timeout: float | None = None,
    per_second: float | None = None,
    parallel: int | None = None,
) -> Evaluator:
    """Return the evaluator for an objective.

    Arguments
    ---------
    objective: the objective to call.
    workers: 1 for this thread (or for one other thread, if there is a timeout), a larger whole number for that many
        threads, a `Processes`, a Client of Dask, a ``concurrent.futures.Executor``, or an `OnEventLoop` for an async
        function.
    chunk: the number of points per call of a vectorised function; None (the default) chooses it.
    timeout: the seconds after which a call is abandoned; None (the default) means never.
    per_second: the largest number of calls that begin per second; None (the default) means any number.
    parallel: the declared number of calls that can run at once; None (the default) means the number of workers.
    """
    _check_kind(objective.function, workers)
    width = _width_of(workers)
    declared = width if parallel is None else check.count("parallel", parallel, what=PARALLEL)
    size = chunk_for(objective.d, chunk, declared)
    objective.chunk = None if chunk is None else size
    if timeout is not None:
        timeout = min(check.positive("timeout", timeout, what=" (seconds per call), or None"), _LONGEST_TIMEOUT)
    limit = None if per_second is None else RateLimit(per_second)
    if isinstance(workers, OnEventLoop):
        workers.timeout = timeout
        return OnExecutor(objective, size, workers, width, own=True, timeout=None, limit=limit)
    if isinstance(workers, Processes):
        from zerothresh.evaluate.process_pool import ProcessPool  # not needed otherwise, and not light

        pool = ProcessPool(objective, width, timeout)  # which sees to the timeout itself
        return OnExecutor(objective, size, pool, width, own=True, timeout=None, limit=limit)
    of_dask = dask_client(workers)
    if of_dask is not None:
        from zerothresh.evaluate.dask_pool import DaskPool

        spread = DaskPool(objective, *of_dask, timeout)  # which sees to the timeout itself, too
        return OnExecutor(objective, size, spread, width, own=True, timeout=None, limit=limit)
    if _is_executor(workers):
        return OnExecutor(objective, size, workers, width, own=False, timeout=timeout, limit=limit)
    if width == 1 and timeout is None:
        return Serial(objective, size, limit)
    return OnExecutor(objective, size, DaemonPool(width), width, own=True, timeout=timeout, limit=limit)


def _is_executor(workers: Any) -> bool:
    return isinstance(workers, Executor) or check.has_function(workers, "submit")


def _width_of(workers: Any) -> int:
    """Return how many calls the workers make at a time."""
    if isinstance(workers, type):
        raise ValueError(
            f"workers must be a number of threads or an executor, not the class {workers.__name__}: pass an instance"
        )
    if isinstance(workers, Processes):
        return workers.number
    if isinstance(workers, OnEventLoop):
        return workers.width
    of_dask = dask_client(workers)
    if of_dask is not None:
        from zerothresh.evaluate.dask_hosts import threads_of

        return sum(threads_of(*of_dask).values())
    if _is_executor(workers):
        stated = getattr(workers, "_max_workers", None)
        return stated if isinstance(stated, int) and stated > 0 else _UNKNOWN_WIDTH
    number = check.count("workers", workers, what=" (threads), or a concurrent.futures.Executor")
    if number > _MOST_THREADS:
        raise ValueError(
            f"workers must be at most {_MOST_THREADS} (threads), not {number}: systems do not let a process start many "
            "more; pass a concurrent.futures.Executor for more calls at a time"
        )
    return number


def _check_kind(function: Any, workers: Any) -> None:
    """Refuse an async function where nobody awaits it, and an ordinary one where it would block the event loop."""
    name = check.name_of(function)
    if isinstance(workers, OnEventLoop):
        if inspect.isfunction(function) and not check.is_async(function) and name != LAMBDA:
            raise ValueError(
                f"fun must be an async function for minimize_async, but {name} is an ordinary one: write `async def`, "
                "or call zt.minimize, which calls ordinary functions in threads"
            )
    elif check.is_async(function):
        raise ValueError(f"{name} is an async function: call it by `await zt.minimize_async(...)`")


def dask_client(workers: Any) -> tuple[Any, dict[str, Any]] | None:
    """Return the client and the options of submission if ``workers`` is a Client of Dask or its executor; else None.

    Classes are recognised by name and module, so that Dask is not imported for others.
    """
    for kind in type(workers).__mro__:
        if kind.__module__.partition(".")[0] == "distributed":
            if kind.__name__ == "Client":
                return workers, {}
            if kind.__name__ == "ClientExecutor":
                return workers._client, dict(workers._kwargs)
            if kind.__name__ == "Cluster":
                raise ValueError("workers must be a Client of Dask, not its cluster: pass distributed.Client(cluster)")
    return None
