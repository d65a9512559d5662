"""Why a run ended."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Why a run ended; below 10 it ended well."""

    BUDGET = 0  # no further round fits into the budget
    CALLBACK = 1  # the callback raised StopIteration
    CONVERGED = 2  # the method had nothing more to ask
    STOPPED = 3  # Optimizer.stop()
    TIME = 4  # max_time has passed
    COST = 5  # no further round fits into max_cost
    FAILED = 10  # the objective raised an exception
    BAD_VALUE = 11  # the objective returned NaN, an infinity, or something of a wrong shape or type
    INTERRUPTED = 12  # Ctrl-C
    DIVERGED = 13  # an iterate left the floating-point numbers
    CALLBACK_FAILED = 14  # the callback or the monitor raised an exception
    DISK = 15  # the run folder cannot be written: a full disk, say
    METHOD_FAILED = 16  # the method raised an exception, or went on without asking for anything

    @property
    def success(self) -> bool:
        """Whether the run ended well."""
        return self < 10
