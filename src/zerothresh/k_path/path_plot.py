"""The picture of a path: F, and held-out F with its standard errors, against k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zerothresh.api.arms_plot import COLOURS

if TYPE_CHECKING:
    from zerothresh.k_path.path_result import PathResult

SIZE = (5.6, 3.6)  # inches
LOG_FROM = 50.0  # the ratio of the largest to the smallest value from which the axis is logarithmic


def draw(path: PathResult, *, axes: Any = None, title: str = "") -> Any:
    """Draw a path; returns the matplotlib figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'zerothresh[plot]'") from None
    if axes is None:
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.add_subplot()
    else:
        figure = axes.figure
    axes.plot(path.ks, path.fun, "o-", color=COLOURS[0], markersize=4, label="F")
    drawn = [value for value in path.fun if value == value]
    if path.held_out is not None:
        style = {"fmt": "s--", "markersize": 4, "capsize": 3}
        axes.errorbar(path.ks, path.held_out, path.held_out_error, color=COLOURS[1], label="held-out F", **style)
        drawn += [value for value in path.held_out if value == value]
    if path.best_k is not None:
        axes.axvline(path.best_k, color="0.6", linewidth=0.8, zorder=0)
        axes.annotate(f"k = {path.best_k}", (path.best_k, 1.0), xycoords=("data", "axes fraction"), fontsize=8)
    if drawn and min(drawn) > 0 and max(drawn) > LOG_FROM * min(drawn):
        axes.set_yscale("log")
    axes.set(xlabel="k, the non-zero coordinates that are allowed", ylabel="F", title=title)
    axes.legend(frameon=False)
    return figure
