"""The figures of a report: curves as in the paper and of what drowns in them, the switches, and each claim's cases."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.api.plot import COLOURS
from zerothresh.comparison.summary import Estimate, median
from zerothresh.reports.verdict import Verdict, grouped
from zerothresh.reproduce.ridge.protocol import Panel
from zerothresh.reproduce.ridge.study import Measures, Study

Array = NDArray[np.float64]

_POINTS = 120  # of a drawn curve
_LOWEST = 1e-16  # what a logarithmic axis shows of 0
DASHES: tuple[Any, ...] = ("-", (0, (5, 1)), (0, (1, 1)), "-.", (0, (3, 1, 1, 1, 1, 1)), "--", ":")
AXES = {"nfev": "#IZO (calls of $f_i$)", "nht": "#NHT (hard thresholdings)"}
GAP, OWN, RIGHT = "", "-own", "-right"

_WHAT = {GAP: "F less its optimum", OWN: "the own-support error", RIGHT: "the share of runs on the best support"}
_LABELS = {GAP: r"$F(\theta) - F^*$", OWN: "own-support error / $(F(0)-F^*)$", RIGHT: "runs on the best support"}
_CAPTIONS = {
    GAP: "F - F* as in the paper: mean over the runs, with a band of one standard deviation.",
    OWN: "The own-support error, F less its minimum on the current support, as a share of F(0) - F*: median and "
    "quartiles over the fresh runs.",
    RIGHT: "The share of fresh runs whose current support is the best one.",
}


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
    wide: bool = False  # has columns, which a phone should scroll


def figures(study: Study) -> list[Drawn]:
    """All figures of a study."""
    out = []
    ridge = study.experiment.name == "ridge"
    ks = sorted({panel.k for panel in study.experiment.panels})
    for k in ks if ridge else [0]:  # the paper has a figure for each k; for real data, one
        panels = [panel for panel in study.experiment.panels if not ridge or panel.k == k]
        name = f"{study.experiment.name}-k{k}" if ridge else study.experiment.name
        words = f"{study.experiment.title}, k = {k}" if ridge else study.experiment.title
        out += [_curves(study, panels, name, words, kind) for kind in (GAP, OWN, RIGHT)]
    if any(raced.race.entry.switch and raced.judged for raced in study.raced):
        out.append(_switches(study))
    return out


def colours(study: Study) -> dict[str, str]:
    """A colour for each method, the same in all figures and tables."""
    return {label: COLOURS[place % len(COLOURS)] for place, label in enumerate(study.labels())}


# Curves.


def _curves(study: Study, panels: Sequence[Panel], name: str, title: str, kind: str) -> Drawn:
    """#IZO above, #NHT below, a column a panel; side by side if there is one panel."""
    from matplotlib.figure import Figure

    single = len(panels) == 1
    figure = Figure(figsize=(9.3, 3.9) if single else (3.1 * len(panels), 6.0), layout="constrained")
    axes = figure.subplots(*((1, 2) if single else (2, len(panels))), sharey=True, squeeze=False)
    axes = axes.T if single else axes
    ends, drawn = list[str](), list[Measures]()
    handles: dict[str, Any] = {}
    for column, panel in enumerate(panels):
        shown = _shown(study, panel, fresh=kind != GAP)
        for row, counter in enumerate(AXES):
            axis = axes[row, column]
            for place, (label, measures) in enumerate(shown.items()):
                style = {"color": colours(study)[label], "linestyle": DASHES[place % len(DASHES)]}
                handles[label] = _draw(axis, measures, counter, kind, style)
            dress(axis, counter, "" if column and not single else _LABELS[kind])
            if kind != RIGHT:
                axis.set_yscale("log")
            if row == 0 or single:
                axis.set_title(str(panel), fontsize="medium")
        drawn += shown.values()
        ends.append(f"{panel}: " + ", ".join(f"{label} {_end(m, kind)}" for label, m in shown.items()))
    _limit(axes, drawn, kind)
    left_out = sum(int(measures.diverged.sum()) for measures in drawn)
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=4, frameon=False, fontsize="small")
    against = "#IZO and #NHT, side by side" if single else "#IZO (above) and #NHT (below)"
    alt = f"Curves of {_WHAT[kind]} against {against}. At the end, {'; '.join(ends)}."
    caption = _CAPTIONS[kind] + (f" {left_out} runs that diverged are left out." if left_out else "")
    return Drawn(name + kind, f"{title}: {_WHAT[kind]}", alt, caption, *saved(figure), wide=not single)


def _shown(study: Study, panel: Panel, fresh: bool) -> dict[str, Measures]:
    """What can be drawn: methods with a run that did not diverge."""
    found = {label: study.measures(label, panel, fresh=fresh) for label in study.labels()}
    return {label: m for label, m in found.items() if m is not None and not m.diverged.all()}


def _draw(axis: Any, measures: Measures, counter: str, kind: str, style: Mapping[str, Any]) -> Any:
    """A curve and its band."""
    histories = []
    for place in np.flatnonzero(~measures.diverged).tolist():
        trace = measures.runs[place].trace
        if kind == GAP:
            y = trace.fun - measures.best[place]
        else:
            y = trace.own / measures.start[place] if kind == OWN else measures.on_best_support(place)
        histories.append((getattr(trace, counter), y))
    first, last = max(x[0] for x, _ in histories), min(x[-1] for x, _ in histories)
    at = np.unique(np.linspace(first, max(first, last), _POINTS).round())
    many = np.array([y[np.searchsorted(x, at, side="right") - 1] for x, y in histories])
    if kind == OWN:
        low, middle, high = np.percentile(many, [25, 50, 75], axis=0)
    else:
        middle, deviation = many.mean(axis=0), many.std(axis=0)
        low, high = middle - deviation, middle + deviation
    if kind != RIGHT:  # a share of runs has no band of its own
        low, middle, high = (np.maximum(part, _LOWEST) for part in (low, middle, high))
        axis.fill_between(at, low, high, color=style["color"], alpha=0.15, linewidth=0)
    (line,) = axis.plot(at, middle, linewidth=1.5, **style)
    return line


def dress(axis: Any, counter: str, label: str) -> None:
    """Labels, thousands, a light grid."""
    axis.set_xlabel(AXES[counter])
    axis.set_ylabel(label)
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.tick_params(axis="x", labelsize="small")
    axis.grid(True, which="major", linewidth=0.4, alpha=0.5)
    axis.spines[["top", "right"]].set_visible(False)


def _end(measures: Measures, kind: str) -> str:
    if kind == RIGHT:
        return f"{measures.right.mean():.0%}"
    return f"{np.median(measures.relative) if kind == OWN else measures.gap.mean():.1e}"


def _limit(axes: Any, drawn: Sequence[Measures], kind: str) -> None:
    """Context for the curves: not for what overshoots at the start, nor for bands that reach 0."""
    if kind == RIGHT:
        axes[0, 0].set_ylim(0, 1)  # the axes share it
        return
    lines = [line.get_ydata() for axis in axes.flat for line in axis.get_lines()]
    if lines:
        top = 3.0 if kind == OWN else 3 * max(float(measures.start.max()) for measures in drawn)
        below, above = axes[0, 0].get_ylim()
        lowest = min(float(np.min(line)) for line in lines) / 10
        axes[0, 0].set_ylim(max(below, lowest), min(above, top))


# Estimates with their intervals.


def _switches(study: Study) -> Drawn:
    """The own-support error of each entry with a switch, beside the same without."""
    rows: dict[str, tuple[str, Estimate]] = {}
    for raced in study.raced:
        entry = raced.race.entry
        swept = not entry.switch and entry.panel not in study.experiment.panels
        if not raced.judged or not (entry.switch or swept):
            continue
        if entry.switch and (base := study.measures(entry.label, entry.panel)) is not None:
            rows[f"{entry.label}, {entry.panel}"] = entry.label, median(base.relative)
        rows[f"{entry.name}, {entry.panel}"] = entry.label, median(raced.measures(fresh=True).relative)
    order = study.labels()
    names = sorted(rows, key=lambda name: (-order.index(rows[name][0]), -rows[name][1].value))
    marks = [(name, [(rows[name][1], colours(study)[rows[name][0]])]) for name in names]
    figure = _forest(marks, "own-support error at the end / $(F(0)-F^*)$: median, 95 % interval", log=True, bar=None)
    alt = "Medians of the own-support error: " + "; ".join(f"{name} {rows[name][1].value:.1e}" for name in names) + "."
    caption = (
        "The own-support error at the end with the choices that the paper leaves open, and with few directions: fresh "
        "runs, each entry with a learning rate of its own."
    )
    title = f"{study.experiment.title}: the open choices"
    return Drawn(f"{study.experiment.name}-switches", title, alt, caption, *saved(figure), wide=True)


SAID = {True: "#1a7f4b", False: "#b3261e", None: "#7a8494"}


def claim_figure(verdict: Verdict) -> Drawn:
    """Every case of a claim with its interval, by group; coloured by what it says."""
    groups = grouped(verdict.cases)
    marks = [(group, [(case.estimate, SAID[case.says]) for case in cases]) for group, cases in reversed(groups.items())]
    log = verdict.bar > 0
    figure = _forest(marks, "median ratio or share" if log else "mean difference", log=log, bar=verdict.bar)
    alt = f"The cases of “{verdict.claim}”: {verdict.tally}. {verdict.evidence}"
    caption = f"{verdict.measure}. Green: yes, red: no, grey: unclear; the line is what the numbers are compared with."
    return Drawn(f"claim-{verdict.name}", verdict.claim, alt, caption, *saved(figure), wide=True)


def _forest(
    marks: Sequence[tuple[str, Sequence[tuple[Estimate, str]]]], label: str, *, log: bool, bar: float | None
) -> Any:
    """Points with intervals, a row for each name; the estimates of one row one below the other."""
    from matplotlib.figure import Figure

    lines = sum(max(1.0, 0.45 * len(estimates)) for _, estimates in marks)
    figure = Figure(figsize=(8.6, 1.2 + 0.27 * lines), layout="constrained")
    axis = figure.subplots()
    numbers = np.array([(e.value, e.low, e.high) for _, estimates in marks for e, _ in estimates]).ravel()
    finite = numbers[np.isfinite(numbers) & ((numbers > 0) | (not log))].tolist() + ([] if bar is None else [bar])
    ends = (min(finite, default=0.1), max(finite, default=1.0))
    ends = (max(ends[0], _LOWEST) / 2, ends[1] * 2) if log else (ends[0] - 0.02, ends[1] + 0.02)
    at, ticks = 0.0, []
    for _, estimates in marks:
        height = max(1.0, 0.45 * len(estimates))
        places = at + height / 2 + (np.arange(len(estimates)) - (len(estimates) - 1) / 2) * 0.45
        for place, (estimate, colour) in zip(places, estimates, strict=True):
            axis.plot(np.clip([estimate.low, estimate.high], *ends), [place, place], color=colour, linewidth=1.2)
            if not np.isnan(estimate.value):
                mark = "<" if estimate.value < ends[0] else ">" if estimate.value > ends[1] else "o"
                axis.plot(np.clip(estimate.value, *ends), place, mark, color=colour, markersize=4)
        ticks.append(at + height / 2)
        at += height
    if bar is not None:
        axis.axvline(bar, color="#1d2430", linewidth=0.8)
    if log:
        axis.set_xscale("log")
    axis.set_xlim(*ends)
    axis.set_ylim(-0.4, at + 0.4)
    axis.set_yticks(ticks, [name for name, _ in marks], fontsize="small")
    axis.set_xlabel(label)
    axis.grid(True, axis="x", linewidth=0.4, alpha=0.5)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def saved(figure: Any) -> tuple[bytes, bytes, bytes]:
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
