"""The result of a run, and the progress that callbacks receive."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult

from zerothresh.basics import check

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Result(OptimizeResult):  # type: ignore[misc]  # scipy has no types
    """The result of a run: a `scipy.optimize.OptimizeResult` with these entries, which are also attributes.

    ============ =================================================================================
    x            the best point whose F is known (otherwise x_last), shape (d,)
    fun          F(x), or NaN if it is not known
    support      the coordinates of x that are not zero
    residuals    the outputs of the call at x, if calls return many (``outputs=...``) and the ones
                 there are known; None otherwise
    fit          how well the model fits: a `zerothresh.api.fit.Fit` with the Jacobian on the
                 support, standard errors and confidence intervals; None if the method did not
                 measure the derivatives of outputs
    jacobian     the derivatives of the outputs by the coordinates of the support, shape (m, s), as
                 they were last refreshed; None if they are not known
    nfev         the number of calls of f_i: the paper's #IZO; with ``outputs``, of the function
    nht          the number of hard thresholdings: the paper's #NHT
    nit          the number of steps
    x_last       what the method itself returns: the last iterate; with output="random" (VR-SZHT,
                 SARAH-SZHT) the outgoing iterate of the last complete epoch, or the start
    success      whether the run ended as intended, and, with ``auto``, with something better than
                 the start
    status       why it ended, a `zerothresh.Status`
    message      why it ended, as a sentence
    remarks      what the method found and chose, as pairs (calls made by then, sentence);
                 most methods make no remarks
    stages       what the calls were made for, as pairs (calls made before, name); ``auto`` names
                 the strategies that it raced
    trace        the history, with one row per step: a `zerothresh.Trace`
    failure      the call that failed (point, component, error, traceback), or None
    spent        the cost of the calls, if ``cost`` was given
    seed         the seed, even if none was given
    method       the method, with its hyper-parameters
    estimator    the estimator
    names        the names of the coordinates, or None
    ============ =================================================================================
    """

    def plot(self, kind: str = "history", **options: Any) -> Any:
        """Draw F against #IZO and #NHT, or which strategy of ``auto`` made which calls, or how well a model fits.

        Matplotlib comes with the extra ``zerothresh[plot]``. The trace has no F without a ``monitor``, except where a
        step happens to see all components.

        Arguments
        ---------
        kind: str, default "history": what is drawn. "arms" draws the lowest F so far and, below it, which strategy of
            ``auto`` made which calls. "fit" draws the coefficients with their confidence intervals and the residuals of
            a calibration (``outputs="residuals"``); ``measured=data`` draws the data beside the fitted outputs.
        options: passed on to `zerothresh.plot.compare` ("history"; ``best=False`` leaves the lowest F so far out) or
            `zerothresh.plot.arms` or `zerothresh.plot.fit`.

        Returns
        -------
        The matplotlib figure.
        """
        from zerothresh.api import plot

        check.one_of("kind", kind, ("history", "arms", "fit"))
        if kind == "arms":
            return plot.arms(self, **options)
        if kind == "fit":
            return plot.fit(self, **options)
        return plot.compare([self], **{"best": True, **options})

    def __repr__(self) -> str:
        if not {"x", "fun", "support", "nfev", "nit", "status", "message", "success"} <= self.keys():
            return str(super().__repr__())  # a part of a result, as somebody may make it
        from zerothresh.api.result_text import as_text

        return as_text(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        from zerothresh.api.result_text import as_html

        return as_html(self)


class Progress:
    """The progress of a run after a step, which callbacks receive.

    Attributes
    ----------
    x: the point that the method would return now, usually the iterate; shape (d,), read-only.
    fun: F(x), or None if it is not known.
    support: the non-zero coordinates of x.
    nfev: the number of calls of f_i so far (#IZO).
    nht: the number of hard thresholdings so far (#NHT).
    nit: the number of steps so far.
    budget: the largest number of calls.
    best_fun: the lowest F known so far, or None.
    recent: a running mean of the component values at the iterates, or None.
    """

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
        self.x = x
        self.fun = fun
        self.support = support
        self.nfev, self.nht, self.nit, self.budget = nfev, nht, nit, budget
        self.best_fun = best_fun
        self.recent = recent

    def __repr__(self) -> str:
        fun = "?" if self.fun is None else f"{self.fun:.6g}"
        return f"<step {self.nit}: F = {fun}, {self.nfev} of {self.budget} calls, {self.support.size} non-zeros>"
