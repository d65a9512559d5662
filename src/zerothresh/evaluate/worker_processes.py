"""The argument ``workers=zt.Processes(count)``: worker processes of this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass

from zerothresh.basics import check

MOST_PROCESSES = 1024  # each has a thread and two descriptors here, and systems limit how many of these there may be
POSIX = os.name == "posix"  # elsewhere, pipes cannot be passed on to a new interpreter in the same way


@dataclass(frozen=True)
class Processes:
    """Worker processes that call the function; one that dies or hangs is replaced.

    Pass it as ``workers``: ``zt.minimize(fun, x0, k, budget=500, workers=zt.Processes(16))``. The function and its data
    are pickled, with cloudpickle if it is installed, and sent once per process. The processes are new interpreters,
    which do not run the user's script again; they are started when they are needed and end with the run.

    Arguments
    ---------
    count: int, default None: the number of processes; None means as many as there are processors for this process.

    >>> Processes(4).number
    4
    """

    count: int | None = None

    def __post_init__(self) -> None:
        if not POSIX:
            raise ValueError(
                "zt.Processes works on Linux and macOS; pass a concurrent.futures.ProcessPoolExecutor here"
            )
        if self.count is not None:
            number = check.count("count", self.count, what=" (processes), or None for one per processor")
            if number > MOST_PROCESSES:
                raise ValueError(f"count must be at most {MOST_PROCESSES} (processes), not {number}")

    @property
    def number(self) -> int:
        """The number of processes."""
        if self.count is not None:
            return int(self.count)
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
