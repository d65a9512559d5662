"""The figures of a study: curves as in the paper, curves of the own-support error, and the switches."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.comparison.statistics import median
from zerothresh.plot import COLOURS
from zerothresh.reproduce.protocol import Panel
from zerothresh.reproduce.study import Measures, Study

Array = NDArray[np.float64]

_POINTS = 120  # of a drawn curve
AXES = {"nfev": "#IZO (calls of $f_i$)", "nht": "#NHT (hard thresholdings)"}


@dataclass(frozen=True)
class Drawn:
    """A figure in all its forms."""

    name: str
    title: str
    alt: str
    caption: str
    svg: bytes
    png: bytes
    pdf: bytes


def figures(study: Study) -> list[Drawn]:
    """All figures of a study."""
    out = []
    ridge = study.experiment.name == "ridge"
    ks = sorted({panel.k for panel in study.experiment.panels})
    for k in ks if ridge else [0]:  # the paper has a figure for each k; for real data, one
        panels = [panel for panel in study.experiment.panels if not ridge or panel.k == k]
        name = f"{study.experiment.name}-k{k}" if ridge else study.experiment.name
        words = f"{study.experiment.title}, k = {k}" if ridge else study.experiment.title
        out.append(_curves(study, panels, name, words, own=False))
        out.append(_curves(study, panels, f"{name}-own", words, own=True))
    if any(raced.race.entry.switch and raced.judged for raced in study.raced):
        out.append(_switches(study))
    return out


def colours(study: Study) -> dict[str, str]:
    """A colour for each method, the same in all figures and tables."""
    return {label: COLOURS[place % len(COLOURS)] for place, label in enumerate(study.labels())}


def _curves(study: Study, panels: Sequence[Panel], name: str, title: str, *, own: bool) -> Drawn:
    """#IZO above, #NHT below, a column a panel: F - F* as in the paper, or the own-support error of fresh runs."""
    from matplotlib.figure import Figure

    ends: list[str] = []

    def draw() -> Any:
        if len(panels) == 1:  # side by side
            figure = Figure(figsize=(9.3, 3.9), layout="constrained")
            axes = figure.subplots(1, 2, sharey=True, squeeze=False).T
        else:
            figure = Figure(figsize=(3.1 * len(panels), 6.0), layout="constrained")
            axes = figure.subplots(2, len(panels), sharey=True, squeeze=False)
        ends.clear()
        for column, panel in enumerate(panels):
            shown = _shown(study, panel, own)
            for row, counter in enumerate(AXES):
                axis = axes[row, column]
                for label, measures in shown.items():
                    _draw(axis, measures, counter, own, colours(study)[label], label)
                axis.set_yscale("log")
                axis.set_xlabel(AXES[counter])
                axis.xaxis.set_major_formatter("{x:,.0f}")
                axis.tick_params(axis="x", labelsize="small")
                axis.grid(True, which="major", linewidth=0.4, alpha=0.5)
                axis.spines[["top", "right"]].set_visible(False)
                if row == 0:
                    axis.set_title(str(panel), fontsize="medium")
                if column == 0:
                    axis.set_ylabel("own-support error / $(F(0)-F^*)$" if own else r"$F(\theta) - F^*$")
            _limit(axes[0, column], shown, own)
            ends.append(f"{panel}: " + ", ".join(f"{label} {_end(m, own):.1e}" for label, m in shown.items()))
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False, fontsize="small")
        return figure

    svg, png, pdf = _saved(draw())
    what = "the own-support error" if own else "F less its optimum"
    if own:
        caption = (
            "The own-support error, F less its minimum on the current support, as a share of F(0) - F*: median and "
            "quartiles over the fresh runs."
        )
    else:
        caption = "F - F* as in the paper: mean over the runs, with a band of one standard deviation."
    alt = f"Curves of {what} against #IZO (above) and #NHT (below), logarithmic. At the end, {'; '.join(ends)}."
    return Drawn(name, f"{title}: {'own-support error' if own else 'F - F*'}", alt, caption, svg, png, pdf)


def _shown(study: Study, panel: Panel, own: bool) -> dict[str, Measures]:
    """What can be drawn: runs that diverged are told by the tables."""
    out = {}
    for label in study.labels():
        measures = study.measures(label, panel, fresh=own)
        if measures is not None and not measures.diverged:
            out[label] = measures
    return out


def _histories(measures: Measures, counter: str, own: bool) -> list[tuple[Array, Array]]:
    """x and y of each run."""
    out = []
    for (problem, _), run, start in zip(measures.places, measures.runs, measures.start, strict=True):
        x = getattr(run.trace, counter)
        y = run.trace.own / start if own else run.trace.fun - measures.study.optimum(problem, measures.k)[1]
        out.append((x, np.maximum(y, 1e-16)))
    return out


def _draw(axis: Any, measures: Measures, counter: str, own: bool, colour: str, label: str) -> None:
    """A curve and its band."""
    histories = _histories(measures, counter, own)
    first, last = max(x[0] for x, _ in histories), min(x[-1] for x, _ in histories)
    at = np.unique(np.linspace(first, max(first, last), _POINTS).round())
    many = np.array([y[np.searchsorted(x, at, side="right") - 1] for x, y in histories])
    if own:
        low, middle, high = np.percentile(many, [25, 50, 75], axis=0)
    else:
        middle, deviation = many.mean(axis=0), many.std(axis=0)
        low, high = middle - deviation, middle + deviation
        low = np.where(low > 0, low, middle * 0.1)
    axis.plot(at, middle, color=colour, label=label, linewidth=1.5)
    axis.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)


def _end(measures: Measures, own: bool) -> float:
    return float(np.median(measures.own / measures.start) if own else measures.gap.mean())


def _limit(axis: Any, shown: Mapping[str, Measures], own: bool) -> None:
    """No room for what overshoots at the start."""
    if shown:
        top = 3.0 if own else 3 * max(float(m.start.max()) for m in shown.values())
        bottom, highest = axis.get_ylim()
        axis.set_ylim(bottom, min(highest, top))


def _switches(study: Study) -> Drawn:
    """The own-support error of each entry with a switch, beside the same without."""
    from matplotlib.figure import Figure

    rows: list[tuple[str, str, Any]] = []
    for raced in study.raced:
        entry = raced.race.entry
        swept = not entry.switch and entry.panel not in study.experiment.panels
        if not raced.judged or not (entry.switch or swept):
            continue
        if entry.switch and (base := study.measures(entry.label, entry.panel)) is not None:
            rows.append((f"{entry.label}, {entry.panel}", entry.label, median(base.own / base.start)))
        measures = raced.measures(fresh=True)
        rows.append((f"{entry.name}, {entry.panel}", entry.label, median(measures.own / measures.start)))
    rows = list({name: (name, label, estimate) for name, label, estimate in rows}.values())
    rows.sort(key=lambda row: (study.labels().index(row[1]), row[2].value), reverse=True)

    def draw() -> Any:
        figure = Figure(figsize=(8.6, 0.9 + 0.27 * len(rows)), layout="constrained")
        axis = figure.subplots()
        for place, (_, label, estimate) in enumerate(rows):
            value = max(estimate.value, 1e-16)
            if np.isfinite(value):
                axis.plot(
                    [max(estimate.low, 1e-16), min(estimate.high, 1e3)], [place, place], color=colours(study)[label]
                )
                axis.plot(value, place, "o", color=colours(study)[label], markersize=5)
            else:
                axis.text(1.0, place, "diverged", fontsize="small", va="center", color=colours(study)[label])
        axis.set_xscale("log")
        axis.set_yticks(range(len(rows)), [name for name, _, _ in rows], fontsize="small")
        axis.set_xlabel("own-support error at the end / $(F(0)-F^*)$: median, 95 % interval")
        axis.grid(True, axis="x", linewidth=0.4, alpha=0.5)
        axis.spines[["top", "right"]].set_visible(False)
        return figure

    svg, png, pdf = _saved(draw())
    alt = "Medians of the own-support error: " + "; ".join(f"{name} {e.value:.1e}" for name, _, e in rows) + "."
    caption = (
        "The own-support error at the end with the choices that the paper leaves open, and with few directions: fresh "
        "runs, each entry with a learning rate of its own."
    )
    title = f"{study.experiment.title}: the open choices"
    return Drawn(f"{study.experiment.name}-switches", title, alt, caption, svg, png, pdf)


def _saved(figure: Any) -> tuple[bytes, bytes, bytes]:
    """A fixed salt and no date: the same runs give the same bytes."""
    from matplotlib import rc_context

    out = []
    dated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}
    with rc_context({"svg.hashsalt": "zerothresh", "svg.fonttype": "none"}), np.errstate(all="ignore"):
        for kind, metadata in dated.items():
            stream = io.BytesIO()
            figure.savefig(stream, format=kind, dpi=150, metadata=metadata)
            out.append(stream.getvalue())
    return out[0], out[1], out[2]
