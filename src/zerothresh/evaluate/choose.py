"""From ``workers=`` to an evaluator."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

from zerothresh.basics import check
from zerothresh.evaluate.base import Evaluator
from zerothresh.evaluate.executor import OnExecutor
from zerothresh.evaluate.pool import DaemonPool
from zerothresh.evaluate.serial import Serial
from zerothresh.objective.forms import Objective


def chunk_for(d: int, chunk: int | None) -> int:
    """How many points a vectorised function gets at once: by default at most 1024, and 128 MiB."""
    if chunk is not None:
        return check.count("chunk", chunk, what=" (points a call of a vectorised function)")
    return max(1, min(1024, (1 << 24) // d))


def evaluator_for(
    objective: Objective, workers: Any, chunk: int | None = None, timeout: float | None = None
) -> Evaluator:
    """1: this thread (another one if a call may take too long); an int: so many threads; or an executor."""
    size = chunk_for(objective.d, chunk)
    if timeout is not None:
        timeout = min(check.positive("timeout", timeout, what=" (seconds a call), or None"), 1e8)
    if isinstance(workers, type):
        raise ValueError(f"workers must be a number of threads or an executor, not the class {workers.__name__}")
    if isinstance(workers, Executor) or (hasattr(workers, "submit") and callable(workers.submit)):
        known = getattr(workers, "_max_workers", None)
        width = known if isinstance(known, int) and known > 0 else 64
        return OnExecutor(objective, size, workers, width, own=False, timeout=timeout)
    number = check.count("workers", workers, what=" (threads), or a concurrent.futures.Executor")
    if number == 1 and timeout is None:
        return Serial(objective, size)
    return OnExecutor(objective, size, DaemonPool(number), number, own=True, timeout=timeout)
