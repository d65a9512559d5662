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

    Arguments
    ---------
    result: a result of `minimize` with ``method="auto"``.
    optimum: float, default 0: what is subtracted from F, for example F*.
    log: bool, whether the y axis is logarithmic; default: if all values are positive.

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
    height = 2.6 + 0.32 * len(stretches)
    figure, (above, below) = pyplot.subplots(
        2, 1, figsize=(8.0, height), sharex=True, layout="constrained", height_ratios=[2.2, 0.32 * len(stretches)]
    )
    known = np.isfinite(result.trace.fun)
    if known.any():
        lowest = np.minimum.accumulate(result.trace.fun[known]) - optimum
        calls = np.append(result.trace.nfev[known], result.nfev)
        above.plot(calls, np.append(lowest, lowest[-1]), color="black", drawstyle="steps-post", linewidth=1.4)
        if lowest.min() > 0 if log is None else log:
            above.set_yscale("log")
    above.set_ylabel(r"lowest $F(\theta)$" if optimum == 0 else r"lowest $F(\theta) - F^*$")
    for row, bars in enumerate(stretches.values()):
        colour = COLOURS[row % len(COLOURS)]
        below.broken_barh(bars, (row - _BAR / 2, _BAR), color=colour)
        for begin, length in bars:
            above.axvspan(begin, begin + length, color=colour, alpha=_TINT, linewidth=0)
        total = sum(length for _, length in bars)
        below.annotate(
            f"{total:,}", (1.01, row), xycoords=("axes fraction", "data"), va="center", fontsize="small", color=colour
        )
    below.set_yticks(range(len(stretches)), list(stretches))
    below.invert_yaxis()
    below.set_xlabel("#IZO (calls of $f_i$); at the right, the calls of each strategy")
    for axis in (above, below):
        axis.grid(True, which="major", linewidth=0.4, alpha=0.5)
        axis.spines[["top", "right"]].set_visible(False)
    above.set_xlim(0, max(result.nfev, 1))
    return figure
