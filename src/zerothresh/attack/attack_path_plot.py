"""The picture of an attack for several k: the share of fooled images against k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zerothresh.api.arms_plot import COLOURS

if TYPE_CHECKING:
    from zerothresh.attack.attack_path import AttackPath

SIZE = (5.6, 3.4)  # inches
_LOG_FROM = 8.0  # the ratio of the largest to the smallest k from which the axis is logarithmic


def draw_rates(path: AttackPath, *, axes: Any = None) -> Any:
    """Draw the share of fooled images against k; returns the matplotlib figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'zerothresh[plot]'") from None
    if axes is None:
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.add_subplot()
    else:
        figure = axes.figure
    axes.plot(path.ks, path.success_rates, "o-", color=COLOURS[0], markersize=5, clip_on=False, zorder=3)
    smallest = path.smallest
    if smallest is not None:
        axes.axvline(smallest.k, color="0.6", linewidth=0.8, zorder=0)
        said = f"k = {smallest.k} fools all"
        axes.annotate(said, (smallest.k, 0.03), (4, 0), xycoords=("data", "axes fraction"), textcoords="offset points",
                      fontsize=8)  # fmt: skip
    if path.ks[-1] >= _LOG_FROM * path.ks[0]:
        axes.set_xscale("log")
    axes.set_xticks(path.ks, [str(k) for k in path.ks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(0, 1.05)
    axes.grid(axis="y", color="0.92")
    axes.set(xlabel=f"k, the {path.results[0].granularity}s that may be changed", ylabel="share of images fooled")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure
