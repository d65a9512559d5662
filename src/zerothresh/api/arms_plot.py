"""The picture of a run of `auto`: which strategy made which calls, and the lowest F meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from zerothresh.basics import check

if TYPE_CHECKING:
    from zerothresh.api.result import Result

# The palette of Okabe and Ito, which colour-blind readers can distinguish.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
_TINT = 0.12  # opacity of the background behind the curve: it must not hide the grid
_BAR = 0.7  # height of a bar, as a share of its row
_ROW = 0.32  # height of a row, in inches
_CURVE = 2.4  # height of the curve, in inches
_DECADE = 10.0  # values that span less than this factor are easier to read on a linear axis


def spans(result: Result) -> dict[str, list[tuple[int, int]]]:
    """Return the stretches of calls that each strategy made, as pairs (calls before it, number of calls).

    >>> from types import SimpleNamespace
    >>> spans(SimpleNamespace(stages=[(0, "diagnosis"), (4, "descent"), (20, "swaps"), (25, "descent")], nfev=40))
    {'diagnosis': [(0, 4)], 'descent': [(4, 16), (25, 15)], 'swaps': [(20, 5)]}
    """
    ends = [*(begin for begin, _ in result.stages[1:]), result.nfev]
    out: dict[str, list[tuple[int, int]]] = {}
    for (begin, name), end in zip(result.stages, ends, strict=True):
        if end > begin:
            out.setdefault(name, []).append((begin, end - begin))
    return out


def arms(result: Result, *, optimum: float = 0.0, log: bool | None = None) -> Any:
    """Draw the lowest F so far against the calls, and below it which strategy of `auto` made them.

    The background and the dots have the colour of the strategy: a dot is a step that reached a new lowest F.

    Arguments
    ---------
    result: a result of `minimize` with ``method="auto"``.
    optimum: float, default 0: what is subtracted from F, for example F*.
    log: bool, whether the y axis is logarithmic; default: if all values are positive and span more than a decade.

    Returns the matplotlib figure. Raises ValueError if the run has no stages, as those of other methods.
    """
    optimum = check.finite("optimum", optimum)
    log = None if log is None else check.flag("log", log)
    stretches = spans(result) if getattr(result, "stages", None) else {}
    if not stretches:
        raise ValueError("there are no strategies to draw: only runs of method='auto' have them")
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'zerothresh[plot]'") from None
    rows = _ROW * (len(stretches) + 1)
    figure, (above, below) = pyplot.subplots(
        2, 1, figsize=(8.0, _CURVE + rows + 0.4), sharex=True, layout="constrained", height_ratios=[_CURVE, rows]
    )
    colours = {name: COLOURS[row % len(COLOURS)] for row, name in enumerate(stretches)}
    _draw_curve(above, result, stretches, colours, optimum, log)
    for row, (name, bars) in enumerate(stretches.items()):
        below.broken_barh(bars, (row - _BAR / 2, _BAR), color=colours[name])
        for begin, length in bars:
            above.axvspan(begin, begin + length, color=colours[name], alpha=_TINT, linewidth=0)
        total = sum(length for _, length in bars)
        calls = f"{total:,} calls" if total > 1 else "1 call"
        below.annotate(calls, (1.01, row), xycoords=("axes fraction", "data"), va="center", fontsize="small")
    below.set_yticks(range(len(stretches)), list(stretches))
    for label, colour in zip(below.get_yticklabels(), colours.values(), strict=True):
        label.set_color(colour)
    below.set_ylim(len(stretches) - 0.5, -0.5)
    below.set_xlabel("#IZO (calls of $f_i$)")
    for axis in (above, below):
        axis.grid(True, which="major", linewidth=0.4, alpha=0.5)
        axis.spines[["top", "right"]].set_visible(False)
    above.set_xlim(0, max(result.nfev, 1))
    return figure


def _draw_curve(
    axis: Any,
    result: Result,
    stretches: dict[str, list[tuple[int, int]]],
    colours: dict[str, str],
    optimum: float,
    log: bool | None,
) -> None:
    """Draw the lowest F so far, with a dot in the colour of the strategy at each new lowest value."""
    axis.set_ylabel(r"lowest $F(\theta)$" if optimum == 0 else r"lowest $F(\theta) - F^*$")
    known = np.isfinite(result.trace.fun)
    if not known.any():
        return
    calls, lowest = result.trace.nfev[known], np.minimum.accumulate(result.trace.fun[known]) - optimum
    axis.plot(
        np.append(calls, result.nfev), np.append(lowest, lowest[-1]), color="black", drawstyle="steps-post", lw=1.0
    )
    lower = np.append(True, np.diff(lowest) < 0)
    for name, bars in stretches.items():
        made = lower & np.any([(begin < calls) & (calls <= begin + length) for begin, length in bars], axis=0)
        axis.plot(calls[made], lowest[made], "o", color=colours[name], markersize=4, zorder=3)
    if lowest.min() > 0 and lowest.max() > _DECADE * lowest.min() if log is None else log:
        axis.set_yscale("log")
