"""The figures of a ridge study: the curves of the paper, the curves of other measures, and the open choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.api.plot import BAND, COLOURS, STOP_SIZE
from zerothresh.comparison.summary import Estimate, median
from zerothresh.reports.figures import AXES, DASHES, SMALLEST, Drawn, dress, forest_plot, saved
from zerothresh.reproduce.ridge.protocol import Entry, Panel
from zerothresh.reproduce.ridge.study import Measures, Study
from zerothresh.session.status import Status

_POINTS = 120  # at which a curve is evaluated

# The measures that are drawn; each is also the end of the figure's file name.
GAP, OWN, RIGHT = "", "-own", "-right"
_MEASURES = {GAP: "F minus its optimum", OWN: "the own-support error", RIGHT: "the share of runs on the best support"}
_LABELS = {GAP: r"$F(\theta) - F^*$", OWN: "own-support error / $(F(0)-F^*)$", RIGHT: "runs on the best support"}
_CAPTIONS = {
    GAP: "F - F* as in the paper: the mean over the runs, with a band from the 10 % to the 90 % quantile. (The paper's "
    "band is one standard deviation, which on a logarithmic axis reaches down to 0.)",
    OWN: "The own-support error, F minus its minimum on the current support, as a share of F(0) - F*: median and "
    "quartiles over the fresh runs.",
    RIGHT: "The share of fresh runs whose current support is the best one.",
}
_STOPPED = (
    " A point marks where a method stopped by itself, at the median over its runs; its curve goes on at the value that "
    "it had found."
)


def figures(study: Study) -> list[Drawn]:
    """Return all figures of a study."""
    drawn = []
    experiment = study.experiment
    ridge = experiment.name == "ridge"
    ks = sorted({panel.k for panel in experiment.panels})
    for k in ks if ridge else [0]:  # the paper has one figure per k for synthetic data, and one in all for real data
        panels = [panel for panel in experiment.panels if not ridge or panel.k == k]
        name = f"{experiment.name}-k{k}" if ridge else experiment.name
        title = f"{experiment.title}, k = {k}" if ridge else experiment.title
        drawn += [_curves(study, panels, name, title, kind) for kind in (GAP, OWN, RIGHT)]
    if any(result.race.entry.switch and result.judged for result in study.compared()):
        drawn.append(_switches(study))
    if study.ladders():
        drawn.append(_ladders(study))
    return drawn


def colours(study: Study) -> dict[str, str]:
    """Return a colour for each method, the same in all figures and tables."""
    return {label: COLOURS[place % len(COLOURS)] for place, label in enumerate(study.labels())}


# Curves.


def _curves(study: Study, panels: Sequence[Panel], name: str, title: str, kind: str) -> Drawn:
    """Draw a measure against #IZO above and #NHT below, one column per panel; side by side if there is one panel."""
    from matplotlib.figure import Figure

    single = len(panels) == 1
    figure = Figure(figsize=(9.3, 3.9) if single else (3.1 * len(panels), 6.0), layout="constrained")
    axes = figure.subplots(*((1, 2) if single else (2, len(panels))), sharey=True, squeeze=False)
    axes = axes.T if single else axes
    ends, drawn = list[str](), list[Measures]()
    handles: dict[str, Any] = {}
    for column, panel in enumerate(panels):
        curves = _drawable(study, panel, fresh=kind != GAP)
        for row, counter in enumerate(AXES):
            axis = axes[row, column]
            edge = max((_ends(measures, counter).max() for measures in curves.values()), default=0.0)
            for place, (label, measures) in enumerate(curves.items()):
                style = {"color": colours(study)[label], "linestyle": DASHES[place % len(DASHES)]}
                handles[label] = _draw(axis, measures, counter, kind, style, edge)
            dress(axis, counter, "" if column and not single else _LABELS[kind])
            if kind != RIGHT:
                axis.set_yscale("log")
            if row == 0 or single:
                axis.set_title(str(panel), fontsize="medium")
        drawn += curves.values()
        ends.append(f"{panel}: " + ", ".join(f"{label} {_end(m, kind)}" for label, m in curves.items()))
    _limit(axes, drawn, kind)
    left_out = sum(int(measures.diverged.sum()) for measures in drawn)
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=4, frameon=False, fontsize="small")
    against = "#IZO and #NHT, side by side" if single else "#IZO (above) and #NHT (below)"
    alt = f"Curves of {_MEASURES[kind]} against {against}. At the end, {'; '.join(ends)}."
    caption = _CAPTIONS[kind] + _STOPPED + (f" Runs that diverged are left out: {left_out}." if left_out else "")
    return Drawn(name + kind, f"{title}: {_MEASURES[kind]}", alt, caption, *saved(figure), wide=not single)


def _drawable(study: Study, panel: Panel, fresh: bool) -> dict[str, Measures]:
    """Return the measures of the methods with at least one run that can be drawn."""
    found = {label: study.measures(label, panel, fresh=fresh) for label in study.labels()}
    return {label: m for label, m in found.items() if m is not None and _drawable_runs(m)}


def _drawable_runs(measures: Measures) -> list[int]:
    """Return the places of the runs that did not diverge and made a step, which a tiny budget may not allow."""
    return [place for place in np.flatnonzero(~measures.diverged).tolist() if measures.runs[place].trace.nfev.size]


def _ends(measures: Measures, counter: str) -> NDArray[np.float64]:
    """Return where the curves of the runs end."""
    return np.array([float(getattr(measures.runs[at].trace, counter)[-1]) for at in _drawable_runs(measures)])


def _draw(axis: Any, measures: Measures, counter: str, kind: str, style: Mapping[str, Any], edge: float) -> Any:
    """Draw a curve with its band, and return the line.

    A method that stops by itself before the budget is spent keeps what it has found: its curve is continued to the
    right edge of the panel, and a point marks where the runs stopped.
    """
    histories = []
    for place in _drawable_runs(measures):
        trace = measures.runs[place].trace
        if kind == GAP:
            y = trace.fun - measures.best[place]
        else:
            y = trace.own / measures.start[place] if kind == OWN else measures.on_best_support(place)
        histories.append((getattr(trace, counter), y))
    stopped = all(measures.runs[at].status == Status.CONVERGED.name for at in _drawable_runs(measures))
    first, last = max(x[0] for x, _ in histories), edge if stopped else min(x[-1] for x, _ in histories)
    stop = float(np.median(_ends(measures, counter)))
    at = np.unique(np.append(np.linspace(first, max(first, last), _POINTS), stop if stopped else first).round())
    at = at[at >= first]
    values = np.array([y[np.searchsorted(x, at, side="right") - 1] for x, y in histories])
    if kind == OWN:
        low, middle, high = np.percentile(values, [25, 50, 75], axis=0)
    else:
        middle = values.mean(axis=0)
        low, high = np.percentile(values, BAND, axis=0)
    if kind != RIGHT:  # a band around a share of runs would say nothing
        low, middle, high = (np.maximum(part, SMALLEST) for part in (low, middle, high))
        axis.fill_between(at, low, high, color=style["color"], alpha=0.15, linewidth=0)
    (line,) = axis.plot(at, middle, linewidth=1.5, **style)
    if stopped:
        axis.plot(stop, np.interp(stop, at, middle), "o", color=style["color"], markersize=STOP_SIZE, clip_on=False)
    return line


def _end(measures: Measures, kind: str) -> str:
    """Format the value at the end of a curve, for the alternative text."""
    if kind == RIGHT:
        return f"{measures.right.mean():.0%}"
    return f"{np.median(measures.relative) if kind == OWN else measures.gap.mean():.1e}"


def _limit(axes: Any, drawn: Sequence[Measures], kind: str) -> None:
    """Fit the y axis to the curves, not to overshoots at the start, nor to bands that reach 0."""
    if kind == RIGHT:
        axes[0, 0].set_ylim(0, 1)  # all axes share it
        return
    lines = [line.get_ydata() for axis in axes.flat for line in axis.get_lines()]
    if lines:
        top = 3.0 if kind == OWN else 3 * max(float(measures.start.max()) for measures in drawn)
        below, above = axes[0, 0].get_ylim()
        lowest = min(float(np.min(line)) for line in lines) / 10
        axes[0, 0].set_ylim(max(below, lowest), min(above, top))


# The open choices.


def _switches(study: Study) -> Drawn:
    """Draw the own-support error of each entry with a switch, beside that of the same entry without it."""
    rows: dict[str, tuple[str, Estimate]] = {}
    for result in study.compared():
        entry = result.race.entry
        few_directions = not entry.switch and entry.panel not in study.experiment.panels
        if not result.judged or not (entry.switch or few_directions):
            continue
        if entry.switch and (base := study.measures(entry.label, entry.panel)) is not None:
            rows[f"{entry.label}, {entry.panel}"] = entry.label, median(base.relative)
        rows[f"{entry.name}, {entry.panel}"] = entry.label, median(result.measures(fresh=True).relative)
    order = study.labels()
    names = sorted(rows, key=lambda name: (-order.index(rows[name][0]), -rows[name][1].value))
    marks = [(name, [(rows[name][1], colours(study)[rows[name][0]])]) for name in names]
    label = "own-support error at the end / $(F(0)-F^*)$: median, 95 % interval"
    figure = forest_plot(marks, label, log=True, bar=None)
    alt = "Medians of the own-support error: " + "; ".join(f"{name} {rows[name][1].value:.1e}" for name in names) + "."
    caption = (
        "The own-support error at the end for the choices that the paper leaves open, and for few directions: fresh "
        "runs, with a learning rate chosen for each entry."
    )
    title = f"{study.experiment.title}: the open choices"
    return Drawn(f"{study.experiment.name}-switches", title, alt, caption, *saved(figure), wide=True)


# Budgets a decade apart.


def _ladders(study: Study) -> Drawn:
    """Draw the own-support error against the budget, with the best learning rate for each, one line per entry."""
    from matplotlib.figure import Figure

    ladders = study.ladders()
    panels = list(dict.fromkeys(entry.panel for entry in ladders))
    figure = Figure(figsize=(3.1 * len(panels), 3.9), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    handles: dict[str, Any] = {}
    told = []
    for axis, panel in zip(axes, panels, strict=True):
        for entry in (entry for entry in ladders if entry.panel == panel):
            errors = [median(step.measures(fresh=True).relative) for step in ladders[entry]]
            budgets = [study.experiment.budget_of(step.race) for step in ladders[entry]]
            middle, low, high = (
                np.maximum([getattr(error, part) for error in errors], SMALLEST) for part in ("value", "low", "high")
            )
            style = {"color": colours(study)[entry.label], "linestyle": DASHES[2] if entry.switch else "-"}
            (handles[entry.name],) = axis.plot(budgets, middle, marker="o", markersize=4, linewidth=1.5, **style)
            axis.fill_between(budgets, low, high, color=style["color"], alpha=0.15, linewidth=0)
            told.append(_told(entry, middle))
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_title(str(panel), fontsize="medium")
        axis.set_xlabel("budget (calls of $f_i$)")
        axis.grid(True, which="major", linewidth=0.4, alpha=0.5)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("own-support error / $(F(0)-F^*)$")
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=4, frameon=False, fontsize="small")
    alt = f"The own-support error at the end against the budget. {'; '.join(told)}."
    caption = (
        "The own-support error at the end for a tenth, once and ten times the budget, each with the η that is "
        "best for it: medians over fresh runs with 95 % intervals. A floor would be a horizontal line."
    )
    title = f"{study.experiment.title}: does the error go on falling?"
    return Drawn(f"{study.experiment.name}-ladders", title, alt, caption, *saved(figure), wide=True)


def _told(entry: Entry, errors: NDArray[np.float64]) -> str:
    """Return the errors of a ladder in words, for the alternative text."""
    return f"{entry.name} at {entry.panel}: " + ", ".join(f"{error:.1e}" for error in errors)
