"""Figures of a report: in all file formats, with one style for axes, and forest plots of estimates with intervals."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerothresh.comparison.summary import Estimate
from zerothresh.reports.verdict import Verdict, grouped

SMALLEST = 1e-16  # drawn on a logarithmic axis in place of anything smaller, such as 0
DASHES: tuple[Any, ...] = ("-", (0, (5, 1)), (0, (1, 1)), "-.", (0, (3, 1, 1, 1, 1, 1)), "--", ":")
AXES = {"nfev": "#IZO (calls of $f_i$)", "nht": "#NHT (hard thresholdings)"}
ANSWER_COLOURS = {True: "#1a7f4b", False: "#b3261e", None: "#7a8494"}

_TICKS = 5  # on an x axis at most, so that long numbers do not run into each other
_LINE_HEIGHT = 0.45  # of one estimate in a forest plot, where a name takes at least 1


@dataclass(frozen=True)
class Drawn:
    """A figure in all its file formats, with its text.

    Attributes
    ----------
    name: the name of its files, without the suffix.
    title, caption: what the page shows below it.
    alt: what it shows, in words, for readers who cannot see it.
    svg, png, pdf: the figure itself.
    wide: whether it has several columns, so that a phone should scroll it rather than shrink it.
    """

    name: str
    title: str
    alt: str
    caption: str
    svg: bytes
    png: bytes
    pdf: bytes
    wide: bool = False


def dress(axis: Any, counter: str, label: str) -> None:
    """Style an axis: labels, thousands separators and a light grid.

    Arguments
    ---------
    axis: matplotlib axes.
    counter: what runs along the x axis, a key of `AXES`.
    label: the label of the y axis.
    """
    axis.set_xlabel(AXES[counter])
    axis.set_ylabel(label)
    axis.locator_params(axis="x", nbins=_TICKS)
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.tick_params(axis="x", labelsize="small")
    axis.grid(True, which="major", linewidth=0.4, alpha=0.5)
    axis.spines[["top", "right"]].set_visible(False)


def claim_figure(verdict: Verdict) -> Drawn:
    """Draw every case of a claim with its name and interval, group by group, coloured by what the case says."""
    cases = [case for members in grouped(verdict.cases).values() for case in members]
    marks = [(case.where, [(case.estimate, ANSWER_COLOURS[case.says])]) for case in reversed(cases)]
    log = verdict.bar > 0
    label = verdict.strength.format("…") or ("ratio" if log else "difference")
    figure = forest_plot(marks, f"{label} (with 95 % intervals)", log=log, bar=verdict.bar)
    alt = f"The cases of “{verdict.claim}”: {verdict.tally}. {verdict.evidence}"
    caption = (
        f"{verdict.measure}. Each point is one case with its 95 % interval: green says yes, red says no, grey is "
        "unclear. The vertical line is the value that the cases are compared with."
    )
    return Drawn(f"claim-{verdict.name}", verdict.claim, alt, caption, *saved(figure), wide=True)


def forest_plot(
    marks: Sequence[tuple[str, Sequence[tuple[Estimate, str]]]], label: str, *, log: bool, bar: float | None
) -> Any:
    """Draw estimates as points with intervals.

    Arguments
    ---------
    marks: for each name, from the bottom up, its estimates with their colours, one below the other.
    label: the label of the x axis.
    log: whether the x axis is logarithmic.
    bar: where to draw a vertical line; None for no line.

    Returns the matplotlib figure.
    """
    from matplotlib.figure import Figure

    lines = sum(max(1.0, _LINE_HEIGHT * len(estimates)) for _, estimates in marks)
    figure = Figure(figsize=(8.6, 1.2 + 0.27 * lines), layout="constrained")
    axis = figure.subplots()
    numbers = np.array([(e.value, e.low, e.high) for _, estimates in marks for e, _ in estimates]).ravel()
    finite = numbers[np.isfinite(numbers) & ((numbers > 0) | (not log))].tolist() + ([] if bar is None else [bar])
    ends = (min(finite, default=0.1), max(finite, default=1.0))
    ends = (max(ends[0], SMALLEST) / 2, ends[1] * 2) if log else (ends[0] - 0.02, ends[1] + 0.02)
    bottom, ticks = 0.0, []
    for _, estimates in marks:
        height = max(1.0, _LINE_HEIGHT * len(estimates))
        places = bottom + height / 2 + (np.arange(len(estimates)) - (len(estimates) - 1) / 2) * _LINE_HEIGHT
        for place, (estimate, colour) in zip(places, estimates, strict=True):
            axis.plot(np.clip([estimate.low, estimate.high], *ends), [place, place], color=colour, linewidth=1.2)
            if not np.isnan(estimate.value):
                mark = "<" if estimate.value < ends[0] else ">" if estimate.value > ends[1] else "o"
                axis.plot(np.clip(estimate.value, *ends), place, mark, color=colour, markersize=4)
        ticks.append(bottom + height / 2)
        bottom += height
    if bar is not None:
        axis.axvline(bar, color="#1d2430", linewidth=0.8)
    if log:
        axis.set_xscale("log")
    axis.set_xlim(*ends)
    axis.set_ylim(-0.4, bottom + 0.4)
    axis.set_yticks(ticks, [name for name, _ in marks], fontsize="small")
    axis.set_xlabel(label)
    axis.grid(True, axis="x", linewidth=0.4, alpha=0.5)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def saved(figure: Any) -> tuple[bytes, bytes, bytes]:
    """Return a matplotlib figure as SVG, PNG and PDF, with the same bytes for the same runs: no dates, no random id."""
    from matplotlib import rc_context

    out = []
    undated: dict[str, dict[str, Any]] = {
        "svg": {"Date": None},
        "png": {"Software": None},
        "pdf": {"CreationDate": None},
    }
    with rc_context({"svg.hashsalt": "zerothresh", "svg.fonttype": "none"}), np.errstate(all="ignore"):
        for kind, metadata in undated.items():
            stream = io.BytesIO()
            figure.savefig(stream, format=kind, dpi=150, metadata=metadata)
            out.append(stream.getvalue())
    return out[0], out[1], out[2]
