"""Plots of runs: F against #IZO and #NHT, with mean and standard deviation over runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zerothresh.methods.registry import name_of

if TYPE_CHECKING:
    from zerothresh.api.result import Result

Array = NDArray[np.float64]


class Plotted(Protocol):
    """A run that can be drawn: its ``trace`` has the columns nfev, nht and fun."""

    @property
    def trace(self) -> Any: ...


# The palette of Okabe and Ito, which colour-blind readers can distinguish.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
_POINTS = 400  # at which the mean of several curves is computed


def compare(
    results: Iterable[Result] | Mapping[str, Sequence[Plotted]],
    *,
    optimum: float = 0.0,
    log: bool | None = None,
    title: str = "",
    axes: Any = None,
) -> Any:
    """Draw F against #IZO and #NHT: one curve per method, with a band of one standard deviation over its runs.

    Arguments
    ---------
    results: results of `minimize`, which are grouped by method; or a dict of lists of results by label.
    optimum: float, default 0: what is subtracted from F, for example F*.
    log: bool, whether the y axis is logarithmic; default: if all values are positive.
    title: str, a title above the figure; default: none.
    axes: a pair of matplotlib axes to draw on; default: a new figure.

    Returns the matplotlib figure. Raises ValueError if there are no results, or if one has no values of F in its trace.
    """
    pyplot = _pyplot()
    grouped = _grouped(results)
    if axes is None:
        figure, axes = pyplot.subplots(1, 2, figsize=(9.5, 3.8), sharey=True, layout="constrained")
    else:
        figure = axes[0].figure
    curves = [curve(runs, "nfev", optimum)[1] for runs in grouped.values()]
    if log is None:
        log = min(float(mean.min()) for mean in curves) > 0
    for place, (label, runs) in enumerate(grouped.items()):
        colour = COLOURS[place % len(COLOURS)]
        for axis, column in zip(axes, ("nfev", "nht"), strict=True):
            at, mean, deviation = curve(runs, column, optimum)
            axis.plot(at, mean, color=colour, label=label, linewidth=1.6, drawstyle="steps-post")
            lower = mean - deviation
            if deviation.any():
                lower = np.where(lower > 0, lower, mean * 0.1) if log else lower
                axis.fill_between(at, lower, mean + deviation, color=colour, alpha=0.15, linewidth=0, step="post")
    if log:
        axes[0].set_yscale("log")
        axes[1].set_yscale("log")
    axes[0].set_xlabel("#IZO (calls of $f_i$)")
    axes[1].set_xlabel("#NHT (hard thresholdings)")
    axes[0].set_ylabel(r"$F(\theta)$" if optimum == 0 else r"$F(\theta) - F^*$")
    for axis in axes:
        axis.grid(True, which="major", linewidth=0.4, alpha=0.5)
        axis.spines[["top", "right"]].set_visible(False)
    if len(grouped) > 1 or title == "":
        axes[1].legend(frameon=False, fontsize="small")
    if title:
        figure.suptitle(title)
    return figure


def curve(runs: Sequence[Plotted], column: str, optimum: float = 0.0) -> tuple[Array, Array, Array]:
    """Return the mean and standard deviation of F - optimum over runs.

    Arguments
    ---------
    runs: results of runs.
    column: what the curve runs along, "nfev" or "nht".
    optimum: float, default 0: what is subtracted from F.

    Returns three arrays of one shape: where the curve is evaluated, which is where all runs have values, the means
    and the standard deviations.
    """
    histories = []
    for run in runs:
        fun = run.trace.fun - optimum
        known = np.isfinite(fun)
        if not known.any():
            raise ValueError(
                "a result has no values of F in its trace, so that there is nothing to draw: pass monitor=F to minimize"
            )
        histories.append((getattr(run.trace, column)[known], fun[known]))
    first = max(at[0] for at, _ in histories)
    last = min(at[-1] for at, _ in histories)
    if len(histories) == 1:
        at, fun = histories[0]
        return at.astype(float), fun, np.zeros_like(fun)
    grid = np.unique(np.linspace(first, max(first, last), _POINTS).round())
    rows = np.array([fun[np.searchsorted(at, grid, side="right") - 1] for at, fun in histories])
    return grid, rows.mean(axis=0), rows.std(axis=0)


def _grouped(results: Iterable[Result] | Mapping[str, Sequence[Plotted]]) -> dict[str, list[Plotted]]:
    """Return the results by label."""
    if isinstance(results, Mapping):
        return {label: list(runs) for label, runs in results.items()}
    grouped: dict[str, list[Plotted]] = {}
    for result in results:
        grouped.setdefault(name_of(result.method), []).append(result)
    if not grouped:
        raise ValueError("there are no results to draw")
    return grouped


def _pyplot() -> Any:
    """Import matplotlib, which is an optional dependency."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'zerothresh[plot]'") from None
    return pyplot
