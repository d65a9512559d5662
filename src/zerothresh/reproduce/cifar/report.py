"""The report of the attacks: curves, the paper's table with real pictures, tables with intervals, and verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zerothresh.api.plot import COLOURS
from zerothresh.attack import pictures
from zerothresh.comparison.summary import Estimate, difference, mean
from zerothresh.datasets.cifar10 import CLASSES
from zerothresh.reports.figures import AXES, DASHES, Drawn, claim_figure, dress, saved
from zerothresh.reports.folder import MANIFEST, save, versions
from zerothresh.reports.page import Section, page
from zerothresh.reports.tables import Table, case_table, verdict_table
from zerothresh.reports.verdict import Case, Verdict, clear, verdict_of
from zerothresh.reproduce.cifar.experiment import BEST, BUDGET, LABELS, PRINTED, REDUCED, Attacks, Entry, K, Plan, Score

COLOUR = {label: COLOURS[place % len(COLOURS)] for place, label in enumerate(LABELS)} | {BEST: "#1d2430"}


# Figures.


def curves(of: Attacks) -> Drawn:
    """F against #IZO and #NHT, one run a method, as in the paper."""
    from matplotlib.figure import Figure

    name = of.victims.name
    figure = Figure(figsize=(9.3, 4.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, counter in zip(axes, AXES, strict=True):
        for place, entry in enumerate(of.entries):
            trace = entry.outcome.trace
            if counter == "nht" and not trace.nht.any():
                continue  # best needs no hard thresholding
            style: dict[str, Any] = {"color": COLOUR[entry.label], "linestyle": DASHES[place % len(DASHES)]}
            axis.plot(getattr(trace, counter), trace.fun, label=entry.label, linewidth=1.5, **style)
        dress(axis, counter, r"$F(\theta)$" if counter == "nfev" else "")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=5, frameon=False, fontsize="small")
    ends = ", ".join(f"{entry.label} {_lowest(entry):.2f}" for entry in of.entries)
    alt = f"Curves of the mean loss against #IZO and #NHT, side by side. The lowest values: {ends}."
    caption = "The mean loss over the ten images along one run of each method, as in the paper's figure."
    return Drawn(f"attack-{name}-curves", f"{name}: the loss", alt, caption, *saved(figure), wide=True)


def table_of_pictures(of: Attacks) -> Drawn:
    """The paper's table: a row a method, the perturbation and then the ten attacked images."""
    held = of.victims
    wrong = (~held.right).tolist()
    names = pictures.names_of(CLASSES, held.before)
    originals = list(pictures.shown(held.stack, held.stack.flat))
    rows = [pictures.Row("original", None, originals, names, [False] * len(names), wrong)]
    for entry in of.entries:
        theta = entry.score.theta
        attacked = np.clip(held.stack.flat + theta.astype(np.float32), *held.stack.bounds)
        rows.append(
            pictures.Row(
                entry.label,
                pictures.perturbation(held.stack, theta),
                list(pictures.shown(held.stack, attacked)),
                pictures.names_of(CLASSES, entry.score.after),
                entry.score.fooled.tolist(),
                wrong,
            )
        )
    figure = pictures.draw(rows, [str(number) for number in held.ids])
    told = "; ".join(f"{e.label} fools {int(e.score.fooled.sum())} of {int(held.right.sum())}" for e in of.entries)
    alt = f"The perturbation of each method and the ten attacked images of the class {held.name}: {told}."
    caption = (
        "The run of the curves at its last iterate. Left: θ, grey where it is 0. Under "
        "each image what the net says, bold and red where the attack changed it; in brackets where the net was wrong "
        "before, which counts for nothing."
    )
    return Drawn(
        f"attack-{held.name}-pictures", f"{held.name}: the attacked images", alt, caption, *saved(figure), True
    )


# Tables.


def _lowest(entry: Entry) -> float:
    return float(np.nanmin(entry.outcome.trace.fun, initial=np.inf))


def _printed(name: str, label: str) -> tuple[str, str]:
    """How many labels of the paper's row differ from the class, and the row."""
    row = PRINTED[name].get(label)
    if row is None:
        return "-", "-"
    own = {"airplane": "plane"}.get(name, name)
    return f"{sum(word != own for word in row.split())} of 10", row


def as_in_the_paper(of: Attacks) -> Table:
    """One run a method at the paper's settings, beside what the paper prints."""
    held = of.victims
    header = ["method", "η", "fooled", "paper", "lowest F", "pixels", "channels", "l2", "#IZO", "#NHT"]
    rows, data = [], []
    for entry in of.entries:
        made, rate = entry.score, f"{entry.eta:g}" if entry.eta else "-"
        count = f"{int(made.fooled.sum())} of {int(held.right.sum())}"
        touched = int(np.unique(held.stack.groups[np.flatnonzero(made.theta)]).size)
        numbers = [touched, made.channels, made.l2, entry.outcome.nfev, entry.outcome.nht]
        shown = [str(n) if isinstance(n, int) else f"{n:.3g}" for n in numbers]
        rows.append([entry.label, rate, count, _printed(held.name, entry.label)[0], f"{_lowest(entry):.3g}", *shown])
        data.append([entry.label, entry.eta, int(made.fooled.sum()), int(held.right.sum()), _lowest(entry), *numbers])
    names = ["method", "eta", "fooled", "right", "lowest_F", "pixels", "channels", "l2", "nfev", "nht"]
    note = (
        "One run, the η with the smallest value reached. The paper's net is another one; its labels that differ from "
        "the class are counted, whatever is set in bold there."
    )
    return Table(f"attack-{held.name}-paper", f"{held.name}: as in the paper", header, rows, names, data, note)


def labels(of: Attacks) -> Table:
    """What the net says of each attacked image, and the paper's net."""
    held = of.victims
    header = ["method", "net", *(str(number) for number in held.ids)]
    before = pictures.names_of(CLASSES, held.before)
    rows = [["as they are", "ours", *before]]
    for entry in of.entries:
        rows.append([entry.label, "ours", *pictures.names_of(CLASSES, entry.score.after)])
        if entry.label in PRINTED[held.name]:
            rows.append([entry.label, "the paper's", *PRINTED[held.name][entry.label].split()])
    title = f"{held.name}: every label"
    return Table(f"attack-{held.name}-labels", title, header, rows, header, rows, "By the number of the image.", True)


def with_care(of: Attacks) -> Table:
    """Many runs, larger budgets, and images that the perturbation was not made for."""
    others = of.victims.others
    note = "Fresh runs with the η that other runs chose at the smallest budget; 95 % intervals of means. " + (
        "The data set was not at hand, so that other images were not tried: see --cifar10."
        if others is None
        else f"Other images: the {others.n} test images of the class that the net gets right, without the ten."
    )
    name, runs = of.victims.name, {entry.label: entry.more for entry in of.entries}
    return _runs_table(f"attack-{name}-care", f"{name}: with more care", runs, note)


def for_all(of: Attacks) -> Table:
    """One perturbation for all test images of the class."""
    assert of.crowd is not None
    assert of.crowd.others is not None
    note = (
        f"All {of.crowd.stack.n} test images of the class that the net gets right, and one perturbation for them; η as "
        f"in the table above. Other images: {of.crowd.others.n} training images of the class that the net gets right."
    )
    name, runs = of.victims.name, {entry.label: entry.crowd for entry in of.entries}
    return _runs_table(f"attack-{name}-all", f"{name}: all test images of the class", runs, note)


def _runs_table(name: str, title: str, runs: Mapping[str, Mapping[int, Sequence[Score]]], note: str) -> Table:
    """Success rates, losses and transfer by budget and method."""
    header = ["method", "queries", "runs", "success rate", "mean loss", "l2", "on other images"]
    names = [
        "method",
        "budget",
        "runs",
        "rate",
        "rate_low",
        "rate_high",
        "loss",
        "loss_low",
        "loss_high",
        "l2",
        "transfer",
    ]
    rows, data = [], []
    for budget in sorted({budget for found in runs.values() for budget in found}):
        for label, found in runs.items():
            scores = found[budget]
            rate, lost = mean([s.rate for s in scores]), mean([s.loss for s in scores])
            l2, transfer = float(np.mean([s.l2 for s in scores])), float(np.mean([s.transfer for s in scores]))
            told = "-" if np.isnan(transfer) else f"{transfer:.2f}"
            count = f"{budget:,}", str(len(scores))
            rows.append([label, *count, _interval(rate, 0, 1), _interval(lost, 0, np.inf), f"{l2:.3g}", told])
            spread = [rate.value, rate.low, rate.high, lost.value, lost.low, lost.high]
            data.append([label, budget, len(scores), *spread, l2, transfer])
    return Table(name, title, header, rows, names, data, note)


def _interval(estimate: Estimate, low: float, high: float) -> str:
    ends = max(estimate.low, low), min(estimate.high, high)
    return f"{estimate.value:.2f} [{ends[0]:.2f}, {ends[1]:.2f}]"


# Verdicts.


def verdicts(attacked: Sequence[Attacks]) -> list[Verdict]:
    """What the paper says of its attacks, and what we say of ours, by the fresh runs."""

    def cases(pairs: Sequence[tuple[str, str]], *, loss: bool = False) -> list[Case]:
        out = []
        for of in attacked:
            for one, other in pairs:
                for where, mine, theirs in _pairs(of, one, other):
                    if loss:
                        found = difference([s.loss for s in theirs], [s.loss for s in mine])
                    else:
                        found = difference([s.rate for s in mine], [s.rate for s in theirs])
                    out.append(Case(f"{where}, {one} and {other}", found, clear(found, 0.0), f"{one} and {other}"))
        return out

    reduced = [(one, other) for one in REDUCED for other in ("SZOHT", "FGZOHT")]
    lowest = [("SAGA-SZHT", other) for other in ("FGZOHT", "SZOHT", "VR-SZHT", "SARAH-SZHT")]
    ours = [(BEST, other) for other in LABELS if other != BEST]
    rate, lost = "success rate less that of the other", "mean loss of the other less its own"
    made = [
        verdict_of(
            "reduced",
            "Variance-reduced methods fool more images than FGZOHT and SZOHT",
            "Section 5 and the appendix, attacks",
            rate,
            cases(reduced),
            0.0,
        ),
        verdict_of(
            "saga", "SAGA-SZHT reaches the lowest loss", "Section 5, attacks", lost, cases(lowest, loss=True), 0.0
        ),
        verdict_of("best", "'best' fools more images than every other method", "zerothresh", rate, cases(ours), 0.0),
    ]
    return [verdict for verdict in made if verdict is not None]


def _pairs(of: Attacks, one: str, other: str) -> Iterator[tuple[str, list[Score], list[Score]]]:
    """Where two methods meet: the ten images, and all of the class."""
    mine, theirs = of.entry(one), of.entry(other)
    for budget, scores in mine.more.items():
        yield f"{of.victims.name}, {budget:,} queries", scores, theirs.more[budget]
    for budget, scores in mine.crowd.items():
        yield f"all of {of.victims.name}, {budget:,} queries", scores, theirs.crowd[budget]


# The folder.


def write(
    folder: Path, plan: Plan, attacked: Sequence[Attacks], wanted: Mapping[str, Any], seconds: float
) -> list[Verdict]:
    """Write the report into a folder that was accepted; the verdicts."""
    found = verdicts(attacked)
    shown = [claim_figure(verdict) for verdict in found]
    tables, drawn, sections = [verdict_table(found), case_table(found)], list(shown), []
    for of in attacked:
        held = of.victims
        own, made = [table_of_pictures(of), curves(of)], [as_in_the_paper(of), with_care(of), labels(of)]
        if of.crowd is not None:
            made.insert(2, for_all(of))
        told = (
            f"The ten test images {', '.join(str(number) for number in held.ids)} of the class {held.name}. The net "
            f"gets {int(held.right.sum())} of them right as they are; success rates are shares of these.",
        )
        sections.append(Section(held.name, f"Class {held.name}", told, own, made, COLOUR))
        tables += made
        drawn += own
    contents: dict[str, str | bytes] = {}
    for figure in drawn:
        contents |= {f"{figure.name}.png": figure.png, f"{figure.name}.pdf": figure.pdf}
    for table in tables:
        contents |= {f"{table.name}.csv": table.csv(), f"{table.name}.tex": table.latex()}
    words = ", ".join(f"{name} {number}" for name, number in versions().items())
    names = sorted([*contents, MANIFEST])
    title = "Universal few-pixel attacks on CIFAR-10, reproduced"
    pairs = list(zip(found, shown, strict=True))
    contents["index.html"] = page(title, _lead(plan), pairs, tables[1], sections, _notes(plan), names, words)
    promise = f"at most {K} non-zeros, values within [-0.5, 0.5], #IZO within the budget"
    save(folder, contents, "attack", wanted, found, seconds, promises={promise: "checked for every run"})
    return found


def _lead(plan: Plan) -> list[str]:
    quick = "A shortened look: few runs and the paper's budget alone. " if plan.quick else ""
    return [
        f"{quick}One perturbation for ten images of a class, with at most {K} of 3,072 numbers other than 0, from the "
        f"log-probabilities of a net alone (Yuan et al., ICLR 2024). {plan.runs:,} runs. The net is ours, because the "
        "paper's cannot be had; the images are the paper's.",
        "Verdicts come from fresh runs, seed for seed; a case is clear if the 95 % interval of the mean difference "
        "leaves no doubt.",
    ]


def _notes(plan: Plan) -> list[str]:
    return [
        f"k = {K}, μ = 0.001, q = 10, s2 = d, m = 10, η from 0.001, 0.005, 0.01 and 0.05 by the smallest value "
        f"reached, {BUDGET} queries: the paper's settings. A query is one image seen by the net. A round that would "
        "exceed the budget is not begun; the paper stops once it is exceeded.",
        "The loss is max(F_y - max F_j, 0) on log-probabilities of clip(x + θ), and is minimised. Directions are "
        "uniform on the sphere and fresh for each image.",
        "auto, and best (the default of `zerothresh attack`), are not the paper's. best keeps every entry of θ at -1 "
        "or 1, which makes a channel black or full; the others have no such bounds, and are clipped with the image.",
        "Every θ was checked: at most k non-zeros, attacked images within [-0.5, 0.5], no more queries than allowed.",
        f"Fresh runs by budget: {', '.join(f'{count} of {budget:,}' for budget, count in plan.judging.items())}"
        + "".join(f"; {count} of {budget:,} for all images of a class" for budget, count in plan.crowded.items())
        + ".",
    ]
