"""What comes back: a `scipy.optimize.OptimizeResult` that knows why it stopped."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Status(IntEnum):
    """Why a run ended. Up to 9 it ended well."""

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

    @property
    def success(self) -> bool:
        """Whether the run ended as it should."""
        return self < 10


class MonitorFailed(Exception):
    """The user's monitor raised; its own exception is the cause."""


class Result(OptimizeResult):  # type: ignore[misc]  # scipy has no types
    """The outcome of a run.

    ============ =================================================================================
    x            the best point whose F is known (else the last iterate), at most k non-zeros
    fun          F(x), or NaN if it is not known
    support      the coordinates of x that are not zero
    nfev         calls of f_i made: the paper's #IZO
    nht          hard thresholdings: the paper's #NHT
    nit          steps
    x_last       the last iterate, which the paper's methods return
    success      whether the run ended as it should
    status       why it ended, a `zerothresh.Status`
    message      the same in a sentence
    remarks      what the method found and chose, as (calls made by then, words); empty for most
    trace        the history, a row a step: a `zerothresh.Trace`
    failure      the call that failed (point, component, error, traceback), or None
    spent        what the calls cost, if ``cost`` was given
    seed         the seed, also if none was given
    method       the method, with its hyper-parameters
    estimator    the estimator
    ============ =================================================================================
    """

    def plot(self, **options: Any) -> Any:
        """Draw F against #IZO and #NHT (needs matplotlib: the extra ``zerothresh[plot]``)."""
        from zerothresh import plot

        return plot.compare([self], **options)


class Progress:
    """A run after a step, for callbacks and loops."""

    __slots__ = ("best_fun", "budget", "fun", "nfev", "nht", "nit", "recent", "support", "x")

    def __init__(
        self,
        *,
        x: Array,
        fun: float | None,
        support: Indices,
        nfev: int,
        nht: int,
        nit: int,
        budget: int,
        best_fun: float | None,
        recent: float | None,
    ) -> None:
        self.x = x  # the iterate, read-only
        self.fun = fun  # F(x), or None if it is not known
        self.support = support
        self.nfev, self.nht, self.nit, self.budget = nfev, nht, nit, budget
        self.best_fun = best_fun  # the lowest F known so far, or None
        self.recent = recent  # a running mean of the component values seen at iterates, or None

    def __repr__(self) -> str:
        fun = "?" if self.fun is None else f"{self.fun:.6g}"
        return f"<step {self.nit}: F = {fun}, {self.nfev} of {self.budget} calls, {self.support.size} non-zeros>"
