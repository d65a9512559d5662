"""The picture of a calibrated model: its coefficients with intervals, and its residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from zerothresh.api.arms_plot import COLOURS

if TYPE_CHECKING:
    from zerothresh.api.fit import Fit
    from zerothresh.api.result import Result

_WIDTH, _HEIGHT = 10.5, 3.6  # inches
_BINS = 30  # of the histogram of the residuals


def fit(result: Result, *, level: float = 0.95, measured: Any = None) -> Any:
    """Draw the coefficients with their confidence intervals, the residuals in their order, and their distribution.

    Arguments
    ---------
    result: a result of `minimize` with ``outputs="residuals"`` and a method that measures derivatives of outputs.
    level: float, default 0.95: of the confidence intervals.
    measured: array (m,), default None: the measured data. If they are given, the data and the fitted outputs, which
        are the data plus the residuals, are drawn instead of the residuals in their order.

    Returns the matplotlib figure. Raises ValueError if the result has no fit.
    """
    found: Fit | None = getattr(result, "fit", None)
    if found is None:
        raise ValueError(
            "there is no fit to draw: it needs outputs='residuals' and a method that measures their derivatives, such "
            "as auto or gauss-newton"
        )
    data = None if measured is None else np.asarray(measured, dtype=float)
    if data is not None and data.shape != found.residuals.shape:
        raise ValueError(f"measured must have shape {found.residuals.shape}, one number per output, not {data.shape}")
    intervals = found.intervals(level)
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'zerothresh[plot]'") from None
    figure, (left, middle, right) = pyplot.subplots(
        1, 3, figsize=(_WIDTH, _HEIGHT), width_ratios=(3, 4, 2), layout="constrained"
    )
    places = np.arange(found.support.size)
    sizes = np.nan_to_num(np.abs(intervals - found.values[:, None]).T)
    left.errorbar(found.values, places, xerr=sizes, fmt="o", color=COLOURS[0], capsize=3)
    left.axvline(0.0, color="grey", linewidth=0.8)
    left.set_yticks(places, [str(j) for j in found.support])
    left.invert_yaxis()
    left.set(xlabel=f"value, with {level:.0%} intervals", ylabel="coordinate")
    order = np.arange(found.residuals.size)
    if data is None:
        middle.plot(order, found.residuals, ".", color=COLOURS[0], markersize=3)
        middle.axhline(0.0, color="grey", linewidth=0.8)
        middle.set(xlabel="output", ylabel="residual")
    else:
        middle.plot(order, data, ".", color=COLOURS[1], markersize=4, label="measured")
        middle.plot(order, data + found.residuals, color=COLOURS[0], linewidth=1.2, label="fitted")
        middle.set(xlabel="output", ylabel="value")
        middle.legend(frameon=False)
    right.hist(found.residuals[np.isfinite(found.residuals)], bins=_BINS, color=COLOURS[0], orientation="horizontal")
    right.set(xlabel="number", ylabel="residual")
    return figure
