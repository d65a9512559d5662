"""Plots of runs: F against #IZO and #NHT, with the mean over runs and a band around it; and the arms of `auto`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zerothresh.api.arms_plot import COLOURS, arms
from zerothresh.api.fit_plot import fit
from zerothresh.basics import check
from zerothresh.methods.registry import name_of

if TYPE_CHECKING:
    from zerothresh.api.result import Result

Array = NDArray[np.float64]


__all__ = ["COLOURS", "arms", "compare", "curve", "fit"]


class Plotted(Protocol):
    """A run that can be drawn: its ``trace`` has the columns nfev, nht and fun."""

    @property
    def trace(self) -> Any: ...


BEST_COLOUR = "#000000"  # of the best F so far of a single method: it runs along the trace, so it has another colour
TRACE_WIDTH, BEST_WIDTH = 1.6, 0.8  # line widths in points: the thin line lies on the thick one and leaves it visible
STOP_SIZE = 5  # of the point that marks where a method stopped by itself
BAND = (10, 90)  # percentiles over runs: on a logarithmic axis, a standard deviation would often reach down to 0
_POINTS = 400  # at which the mean of several curves is computed


def compare(
    results: Iterable[Result] | Mapping[str, Sequence[Plotted]],
    *,
    optimum: float = 0.0,
    log: bool | None = None,
    title: str = "",
    axes: Any = None,
    best: bool = False,
) -> Any:
    """Draw F against #IZO and #NHT: one curve per method, the mean over its runs.

    The band around a curve is one standard deviation over the runs, and on a logarithmic axis from their 10 % to their
    90 % quantile. The curve of a method that stopped by itself, before its budget was spent, is continued to the right
    edge at the value that it had found; a point marks where it stopped.

    Arguments
    ---------
    results: results of `minimize`, which are grouped by method; or a dict of lists of results by label.
    optimum: float, default 0: what is subtracted from F, for example F*.
    log: bool, whether the y axis is logarithmic; default: if all values are positive.
    title: str, a title above the figure; default: none.
    axes: a pair of matplotlib axes to draw on; default: a new figure.
    best: bool, default False: draw the lowest F so far as well, as a thin line.

    Returns the matplotlib figure. Raises ValueError if there are no results, or if one has no values of F in its trace.
    Values of F that are not known (NaN) are left out.
    """
    grouped = _grouped(results)
    optimum = check.finite("optimum", optimum)
    log = None if log is None else check.flag("log", log)
    best = check.flag("best", best)
    if not isinstance(title, str):
        raise ValueError(f"title must be a string, not {check.shown(title)}")
    axes = None if axes is None else _pair_of_axes(axes)
    pyplot = _pyplot()
    if axes is None:
        figure, axes = pyplot.subplots(1, 2, figsize=(9.5, 3.8), sharey=True, layout="constrained")
    else:
        figure = axes[0].figure
    curves = [curve(runs, "nfev", optimum, best=best)[1] for runs in grouped.values()]  # the lowest that are drawn
    edges = {
        column: max(float(getattr(run.trace, column)[-1]) for runs in grouped.values() for run in runs)
        for column in ("nfev", "nht")
    }
    if log is None:
        log = min(float(mean.min()) for mean in curves) > 0
    for place, (label, runs) in enumerate(grouped.items()):
        colour = COLOURS[place % len(COLOURS)]
        for axis, column in zip(axes, ("nfev", "nht"), strict=True):
            converged = all(map(_converged, runs))
            at, values = _values(runs, column, optimum, until=edges[column] if converged else None)
            mean, deviation = values.mean(axis=0), values.std(axis=0)
            axis.plot(at, mean, color=colour, label=label, linewidth=TRACE_WIDTH, drawstyle="steps-post")
            low, high = np.percentile(values, BAND, axis=0) if log else (mean - deviation, mean + deviation)
            if deviation.any():
                axis.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0, step="post")
            stop = float(np.median([getattr(run.trace, column)[-1] for run in runs]))
            if converged and stop < edges[column]:
                height = mean[np.searchsorted(at, stop, side="right") - 1]
                axis.plot(stop, height, "o", color=colour, markersize=STOP_SIZE)
            if best:
                alone = len(grouped) == 1
                lowest = _values(runs, column, optimum, best=True, until=edges[column] if converged else None)
                axis.plot(
                    lowest[0],
                    lowest[1].mean(axis=0),
                    color=BEST_COLOUR if alone else colour,
                    label="best so far" if alone else f"{label}, best so far",
                    linewidth=BEST_WIDTH,
                    drawstyle="steps-post",
                )
    if log:
        axes[0].set_yscale("log")
        axes[1].set_yscale("log")
    axes[0].set_xlabel("#IZO (calls of $f_i$)")
    axes[1].set_xlabel("#NHT (hard thresholdings)")
    axes[0].set_ylabel(r"$F(\theta)$" if optimum == 0 else r"$F(\theta) - F^*$")
    for axis in axes:
        axis.grid(True, which="major", linewidth=0.4, alpha=0.5)
        axis.spines[["top", "right"]].set_visible(False)
    if len(grouped) > 1 or best or title == "":
        axes[1].legend(frameon=False, fontsize="small")
    if title:
        figure.suptitle(title)
    return figure


def curve(
    runs: Sequence[Plotted], column: str, optimum: float = 0.0, *, best: bool = False
) -> tuple[Array, Array, Array]:
    """Return the mean and standard deviation of F - optimum over runs.

    Arguments
    ---------
    runs: results of runs.
    column: what the curve runs along, "nfev" or "nht".
    optimum: float, default 0: what is subtracted from F.
    best: bool, default False: take the lowest F of each run so far instead of F.

    Returns three arrays of one shape: where the curve is evaluated, which is where all runs have values, the means
    and the standard deviations.
    """
    check.one_of("column", column, ("nfev", "nht"))
    at, values = _values(runs, column, optimum, best=best)
    return at, values.mean(axis=0), values.std(axis=0)


def _values(
    runs: Sequence[Plotted], column: str, optimum: float = 0.0, *, best: bool = False, until: float | None = None
) -> tuple[Array, Array]:
    """Return where all runs have values, and F - optimum of each run there, one row per run.

    With ``until``, each run keeps its last value up to there.
    """
    histories = []
    for run in runs:
        fun = run.trace.fun - optimum
        known = np.isfinite(fun)
        if not fun.size:
            raise ValueError("a result has an empty trace, because its run made no step: there is nothing to draw")
        if not known.any():
            raise ValueError(
                "a result has no values of F in its trace, so that there is nothing to draw: pass monitor=F to minimize"
            )
        fun = np.minimum.accumulate(fun[known]) if best else fun[known]
        histories.append((getattr(run.trace, column)[known], fun))
    first = max(at[0] for at, _ in histories)
    last = min(at[-1] for at, _ in histories) if until is None else until
    if len(histories) == 1:
        at, fun = histories[0]
        if last > at[-1]:
            at, fun = np.append(at, last), np.append(fun, fun[-1])
        return at.astype(float), fun[None]
    grid = np.unique(np.linspace(first, max(first, last), _POINTS).round())
    return grid, np.array([fun[np.searchsorted(at, grid, side="right") - 1] for at, fun in histories])


def _converged(run: Plotted) -> bool:
    """Return whether a run stopped because its method had nothing left to do; its status may be the name of one."""
    status = getattr(run, "status", None)
    return getattr(status, "name", status) == "CONVERGED"


def _grouped(results: Iterable[Result] | Mapping[str, Sequence[Plotted]]) -> dict[str, list[Plotted]]:
    """Return the results by label."""
    grouped: dict[str, list[Plotted]] = {}
    if isinstance(results, Mapping):
        for label, runs in results.items():
            grouped[str(label)] = _runs(f"results[{check.shown(label)}]", runs)
    else:
        for result in _runs("results", results):
            if not hasattr(result, "method"):
                raise ValueError("results of another kind than those of minimize need labels: pass a dict of lists")
            grouped.setdefault(name_of(result.method), []).append(result)
    if not any(grouped.values()):
        raise ValueError("there are no results to draw")
    return {label: runs for label, runs in grouped.items() if runs}


def _runs(name: str, given: Any) -> list[Any]:
    """Check that an argument is a list of results, and return it as one."""
    try:
        runs = list(given)
    except Exception:
        runs = [None]
    if isinstance(given, (str, bytes, Mapping)) or not all(_can_be_drawn(run) for run in runs):
        raise ValueError(f"{name} must be a list of results of minimize, not {check.shown(given)}")
    return runs


def _can_be_drawn(run: Any) -> bool:
    """Whether an object has a trace with the columns of a run."""
    try:
        return all(hasattr(run.trace, column) for column in ("fun", "nfev", "nht"))
    except Exception:
        return False


def _pair_of_axes(axes: Any) -> Any:
    """Check that ``axes`` are two axes of matplotlib."""
    try:
        first, second = axes
        if all(callable(getattr(axis, "plot", None)) and hasattr(axis, "figure") for axis in (first, second)):
            return axes
    except Exception:
        pass
    raise ValueError(f"axes must be a pair of matplotlib's axes, or None, not {check.shown(axes)}")


def _pyplot() -> Any:
    """Import matplotlib, which is an optional dependency."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'zerothresh[plot]'") from None
    return pyplot
