"""From ``workers=`` to an evaluator."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from zerothresh import check
from zerothresh.evaluate.base import Evaluator
from zerothresh.evaluate.executor import OnExecutor
from zerothresh.evaluate.serial import Serial
from zerothresh.problem import Objective


def chunk_for(d: int, chunk: int | None) -> int:
    """How many points a vectorised function gets at once: by default at most 1024, and 128 MiB."""
    if chunk is not None:
        return check.count("chunk", chunk, what=" (points a call of a vectorised function)")
    return max(1, min(1024, (1 << 24) // d))


def evaluator_for(objective: Objective, workers: Any, chunk: int | None = None) -> Evaluator:
    """1: this thread; an int: so many threads; an executor: whatever it runs on."""
    size = chunk_for(objective.d, chunk)
    if isinstance(workers, Executor) or (hasattr(workers, "submit") and callable(workers.submit)):
        width = getattr(workers, "_max_workers", None)
        return OnExecutor(objective, size, workers, width if isinstance(width, int) and width > 0 else 64, own=False)
    number = check.count("workers", workers, what=" (threads), or a concurrent.futures.Executor")
    if number == 1:
        return Serial(objective, size)
    pool = ThreadPoolExecutor(number, thread_name_prefix="zerothresh")
    return OnExecutor(objective, size, pool, number, own=True)
