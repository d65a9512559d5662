"""What comes back: a `scipy.optimize.OptimizeResult` that knows why it stopped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


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
        from zerothresh.api import plot

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
