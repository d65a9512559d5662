"""The report of the attacks: curves, the paper's table of pictures, tables with intervals, and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zerothresh.api.plot import COLOURS
from zerothresh.attack import pictures
from zerothresh.comparison.summary import Estimate, mean
from zerothresh.datasets.cifar10 import CLASSES
from zerothresh.reports.figures import AXES, DASHES, Drawn, claim_figure, dress, saved
from zerothresh.reports.html_page import Section, render_page
from zerothresh.reports.report_folder import MANIFEST, files_of, save, versions_line
from zerothresh.reports.tables import ReportTable, case_table, verdict_table
from zerothresh.reports.verdict import Verdict
from zerothresh.reproduce.cifar.attack_claims import candidate, gain, shares_of_lowest, verdicts_on
from zerothresh.reproduce.cifar.experiment import (
    BEST,
    BUDGET,
    LABELS,
    PRINTED,
    PRINTED_ETAS,
    REDUCED,
    VANILLA,
    AttackEntry,
    AttackPlan,
    Attacks,
    K,
    Score,
)

COLOUR = {label: COLOURS[place % len(COLOURS)] for place, label in enumerate(LABELS)} | {BEST: "#1d2430"}


# Figures.


def curves(of: Attacks) -> Drawn:
    """Draw F against #IZO and #NHT, one run per method, as in the paper."""
    from matplotlib.figure import Figure

    name = of.victims.name
    figure = Figure(figsize=(9.3, 4.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, counter in zip(axes, AXES, strict=True):
        for place, entry in enumerate(of.entries):
            trace = entry.outcome.trace
            if counter == "nht" and not trace.nht.any():
                continue  # `best` does no hard thresholding
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
    """Draw the paper's table: one row per method, with its perturbation and the ten attacked images."""
    victims = of.victims
    wrong = (~victims.right).tolist()
    names = pictures.class_names(CLASSES, victims.before)
    originals = list(pictures.as_pictures(victims.stack, victims.stack.flat))
    rows = [pictures.PictureRow("original", None, originals, names, [False] * len(names), wrong)]
    for entry in of.entries:
        theta = entry.score.theta
        attacked = np.clip(victims.stack.flat + theta.astype(np.float32), *victims.stack.bounds)
        rows.append(
            pictures.PictureRow(
                entry.label,
                pictures.perturbation_picture(victims.stack, theta),
                list(pictures.as_pictures(victims.stack, attacked)),
                pictures.class_names(CLASSES, entry.score.after),
                entry.score.fooled.tolist(),
                wrong,
            )
        )
    figure = pictures.draw(rows, [str(number) for number in victims.ids])
    summary = "; ".join(
        f"{e.label} fools {int(e.score.fooled.sum())} of {int(victims.right.sum())}" for e in of.entries
    )
    alt = f"The perturbation of each method and the ten attacked images of the class {victims.name}: {summary}."
    caption = (
        "The last iterate of the runs that the curves show. Left: the perturbation θ, grey where it is 0. Below each "
        "image is the label that the net gives it: bold and red where the attack changed it, in brackets where the net "
        "was wrong before the attack, which does not count."
    )
    return Drawn(
        f"attack-{victims.name}-pictures", f"{victims.name}: the attacked images", alt, caption, *saved(figure), True
    )


# Tables.


def _lowest(entry: AttackEntry) -> float:
    """Return the lowest value of F along the run."""
    return entry.outcome.lowest


def _printed(name: str, label: str) -> tuple[str, str]:
    """Return how many labels in the paper's row differ from the class, and the row."""
    row = PRINTED[name].get(label)
    if row is None:
        return "-", "-"
    own = {"airplane": "plane"}.get(name, name)
    return f"{sum(word != own for word in row.split())} of 10", row


def as_in_the_paper(of: Attacks) -> ReportTable:
    """Return the table of one run per method with the paper's settings, beside what the paper prints."""
    victims = of.victims
    header = ["method", "η", "η, paper", "fooled", "paper", "lowest F", "pixels", "channels", "l2", "#IZO", "#NHT"]
    rows, data = [], []
    for entry in of.entries:
        made, printed = entry.score, PRINTED_ETAS.get(victims.name, {}).get(entry.label, 0.0)
        differ = _printed(victims.name, entry.label)[0]
        count = f"{int(made.fooled.sum())} of {int(victims.right.sum())}"
        touched = int(np.unique(victims.stack.groups[np.flatnonzero(made.theta)]).size)
        numbers = [touched, made.channels, made.l2, entry.outcome.nfev, entry.outcome.nht]
        shown = [str(n) if isinstance(n, int) else f"{n:.3g}" for n in numbers]
        rates = [_rate(entry.eta), _rate(printed)]
        rows.append([entry.label, *rates, count, differ, f"{_lowest(entry):.3g}", *shown])
        fooled = [int(made.fooled.sum()), int(victims.right.sum()), differ.split()[0].replace("-", "")]
        data.append([entry.label, entry.eta, printed or "", *fooled, _lowest(entry), *numbers])
    names = ["method", "eta", "eta_paper", "fooled", "right", "differ_paper", "lowest_F", "pixels", "channels", "l2"]
    names += ["nfev", "nht"]
    note = (
        "One run per method, with the η that reaches the lowest value. The paper has another net; it prints η for "
        "airplane only. The column “paper” counts the labels in its table that differ from the class, whether they are "
        "printed in bold or not."
    )
    return ReportTable(
        f"attack-{victims.name}-paper", f"{victims.name}: as in the paper", header, rows, names, data, note
    )


def _rate(eta: float) -> str:
    """Format a learning rate, where 0 stands for none."""
    return f"{eta:g}" if eta else "-"


def labels(of: Attacks) -> ReportTable:
    """Return the table of the labels that our net and the paper's net give each attacked image."""
    victims = of.victims
    header = ["method", "net", *(str(number) for number in victims.ids)]
    before = pictures.class_names(CLASSES, victims.before)
    rows = [["no attack", "ours", *before]]
    for entry in of.entries:
        rows.append([entry.label, "ours", *pictures.class_names(CLASSES, entry.score.after)])
        if entry.label in PRINTED[victims.name]:
            rows.append([entry.label, "the paper's", *PRINTED[victims.name][entry.label].split()])
    title = f"{victims.name}: all labels"
    return ReportTable(
        f"attack-{victims.name}-labels",
        title,
        header,
        rows,
        header,
        rows,
        "The columns are the numbers of the images in the test set.",
        True,
    )


def with_care(of: Attacks) -> ReportTable:
    """Return the table of fresh runs, with larger budgets, and on images that the perturbation was not computed for."""
    others = of.victims.others
    note = "Fresh runs with the η that other runs chose at the smallest budget. Means with 95 % intervals. " + (
        "Other images were not tried, because the data set was not available: name it with --cifar10."
        if others is None
        else f"Other images: the {others.n} other test images of the class that the net classifies correctly."
    )
    name, runs = of.victims.name, {entry.label: entry.more for entry in of.entries}
    return _runs_table(f"attack-{name}-care", f"{name}: with more care", runs, _fresh_etas(of), note)


def for_all(of: Attacks) -> ReportTable:
    """Return the table of perturbations for all test images of the class at once."""
    assert of.crowd is not None
    assert of.crowd.others is not None
    note = (
        f"One perturbation for all {of.crowd.stack.n} test images of the class that the net classifies correctly, with "
        f"the η of the table above. Other images: {of.crowd.others.n} training images of the class that the net "
        "classifies correctly."
    )
    name, runs = of.victims.name, {entry.label: entry.crowd for entry in of.entries}
    return _runs_table(f"attack-{name}-all", f"{name}: all test images of the class", runs, _fresh_etas(of), note)


def all_runs(of: Attacks) -> ReportTable:
    """Return the table of all fresh runs on the ten images, which the verdicts can be computed from again."""
    header = ["method", "budget", "run", "rate", "loss", "l2", "queries"]
    rows = [
        [entry.label, budget, place, made.rate, made.loss, made.l2, made.queries]
        for entry in of.entries
        for budget, scores in entry.more.items()
        for place, made in enumerate(scores)
    ]
    return ReportTable(f"attack-{of.victims.name}-runs", f"{of.victims.name}: all fresh runs", [], [], header, rows)


def gains(attacked: Sequence[Attacks]) -> ReportTable:
    """Return the table of how much lower than the vanilla methods each variance-reduced method ends, by class."""
    header = ["class", "method", "chosen by other runs", *(f"loss below that of {other}" for other in VANILLA)]
    ends = [f"{part}{other}" for other in VANILLA for part in ("", "low_", "high_")]
    rows, data = [], []
    for of in attacked:
        chosen = candidate(of)
        for label in REDUCED:
            found = [gain(of, label, other) for other in VANILLA]
            mark = "yes" if label == chosen else ""
            rows.append([of.victims.name, label, mark, *(_interval(each, -np.inf, np.inf) for each in found)])
            numbers = [number for each in found for number in (each.value, each.low, each.high)]
            data.append([of.victims.name, label, mark, *numbers])
    note = (
        "Fresh runs with the paper's budget: the mean loss of the vanilla method minus that of the method, with 95 % "
        "intervals. Above 0, the method is lower. The chosen one was the lowest of the three in the runs that chose η."
    )
    names = ["class", "method", "chosen", *ends]
    return ReportTable(
        "attack-gains", "Each variance-reduced method and the vanilla ones", header, rows, names, data, note
    )


def lowest_shares(attacked: Sequence[Attacks]) -> ReportTable:
    """Return the table of how often each of the paper's methods ends lowest, if each is run once."""
    header, rows, data = ["class"], [], []
    for of in attacked:
        shares = shares_of_lowest(of)
        header = ["class", *shares, "a variance-reduced one"]
        together = mean(np.sum([shares[label] for label in REDUCED], axis=0))
        numbers = [float(each.mean()) for each in shares.values()]
        rows.append([of.victims.name, *(f"{number:.2f}" for number in numbers), _interval(together, 0, 1)])
        data.append([of.victims.name, *numbers, together.value, together.low, together.high])
    note = (
        "The share of seeds with which a method ends with the lowest loss of the five, each run once as in the paper. "
        f"If the methods did not differ, {len(REDUCED)} of {len(REDUCED) + len(VANILLA)} lowest ones would be "
        "variance-reduced by chance."
    )
    names = [*header[:-1], "reduced", "reduced_low", "reduced_high"]
    return ReportTable("attack-lowest", "Which method ends lowest in single runs", header, rows, names, data, note)


def _fresh_etas(of: Attacks) -> dict[str, float]:
    """Return the learning rates of the fresh runs, by method."""
    return {entry.label: entry.fresh_eta for entry in of.entries}


def _runs_table(
    name: str,
    title: str,
    runs: Mapping[str, Mapping[int, Sequence[Score]]],
    etas: Mapping[str, float],
    note: str,
) -> ReportTable:
    """Return a table of success rates, losses and transfer by budget and method."""
    header = ["method", "queries", "runs", "η", "success rate", "mean loss", "l2", "on other images"]
    names = [
        "method",
        "budget",
        "runs",
        "eta",
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
            on_others = "-" if np.isnan(transfer) else f"{transfer:.2f}"
            count = f"{budget:,}", str(len(scores)), _rate(etas[label])
            rows.append([label, *count, _interval(rate, 0, 1), _interval(lost, 0, np.inf), f"{l2:.3g}", on_others])
            spread = [rate.value, rate.low, rate.high, lost.value, lost.low, lost.high]
            data.append([label, budget, len(scores), etas[label] or "", *spread, l2, transfer])
    return ReportTable(name, title, header, rows, names, data, note)


def _interval(estimate: Estimate, low: float, high: float) -> str:
    """Format an estimate whose interval cannot go beyond ``low`` and ``high``."""
    ends = max(estimate.low, low), min(estimate.high, high)
    return f"{estimate.value:.2f} [{ends[0]:.2f}, {ends[1]:.2f}]"


# The folder.


def write(
    folder: Path, plan: AttackPlan, attacked: Sequence[Attacks], identity: Mapping[str, Any], seconds: float
) -> list[Verdict]:
    """Write the report into a folder that `prepare` has accepted.

    Arguments
    ---------
    folder: the folder.
    plan: how many runs were made.
    attacked: the results, one per class.
    identity: what `identity` returned for the plan.
    seconds: how long this session took.

    Returns the verdicts.
    """
    found = verdicts_on(attacked)
    shown = [claim_figure(verdict) for verdict in found]
    compared = [gains(attacked), lowest_shares(attacked)]
    tables, drawn = [verdict_table(found), case_table(found), *compared], list(shown)
    sections = [Section("reduction", "Variance reduction in each class", (), [], compared, COLOUR)]
    for of in attacked:
        victims = of.victims
        own, made = [table_of_pictures(of), curves(of)], [as_in_the_paper(of), with_care(of), labels(of)]
        if of.crowd is not None:
            made.insert(2, for_all(of))
        paragraphs = (
            f"The ten test images {', '.join(str(number) for number in victims.ids)} of the class {victims.name}. The "
            f"net classifies {int(victims.right.sum())} of them correctly before the attack; success rates are shares "
            "of these.",
        )
        sections.append(Section(victims.name, f"Class {victims.name}", paragraphs, own, made, COLOUR))
        tables += made
        drawn += own
    contents = files_of(drawn, tables)
    contents |= {f"{table.name}.csv": table.csv() for table in map(all_runs, attacked)}
    contents["index.html"] = render_page(
        "Universal few-pixel attacks on CIFAR-10, reproduced",
        _lead(plan),
        list(zip(found, shown, strict=True)),
        tables[1],
        sections,
        _notes(plan),
        sorted([*contents, MANIFEST]),
        versions_line(),
    )
    promise = f"at most {K} non-zeros, values within [-0.5, 0.5], #IZO within the budget"
    right = {of.victims.name: int(of.victims.right.sum()) for of in attacked}
    promises = {promise: "checked for every run"}
    save(folder, contents, "attack", identity, found, seconds, runs=plan.runs, right=right, promises=promises)
    return found


def _lead(plan: AttackPlan) -> list[str]:
    """Return the paragraphs below the title."""
    quick = "This is a shortened version with few runs and only the paper's budget. " if plan.quick else ""
    return [
        f"{quick}One perturbation for ten images of a class, with at most {K} of 3,072 numbers other than 0, found "
        f"from the log-probabilities of a net alone (Yuan et al., ICLR 2024). {plan.runs:,} runs. The images are the "
        "paper's. The net is ours, because the paper's net is not available.",
        "The verdicts are computed from fresh runs, which are paired by seed, and those on the paper's claims from "
        "runs with its budget. A case is clear if its 95 % interval does not contain 0. The paper shows one run per "
        "method on another net, so that a verdict here says what to expect of the methods on this net, and not that a "
        "figure of the paper is wrong.",
    ]


def _notes(plan: AttackPlan) -> list[str]:
    """Return the notes on how the numbers were computed."""
    return [
        f"The paper's settings: k = {K}, μ = 0.001, q = 10, s2 = d, m = 10, {BUDGET} queries, and the η out of 0.001, "
        "0.005, 0.01 and 0.05 that reaches the lowest value. A query is one image that the net classifies. A round "
        "that would exceed the budget is not begun; the paper stops once the budget is exceeded.",
        "The loss is max(F_y - max F_j, 0) on log-probabilities of clip(x + θ), and is minimised. Directions are "
        "uniform on the sphere and drawn separately for each image.",
        "auto, and best (the default of `zerothresh attack`), are not from the paper. best keeps every entry of θ at "
        "-1 or 1, which sets a channel to its lowest or highest value. The other methods have no such bounds; their "
        "perturbations are clipped with the image.",
        "Every θ was checked: at most k non-zeros, attacked images within [-0.5, 0.5], and no more queries than the "
        "budget.",
        f"The learning rates of the fresh runs were chosen by {plan.choosing} other runs for each rate, by the mean of "
        "the lowest values along them.",
        f"Fresh runs by budget: {', '.join(f'{count} of {budget:,}' for budget, count in plan.judging.items())}"
        + "".join(f"; {count} of {budget:,} for all images of a class" for budget, count in plan.crowded.items())
        + ".",
    ]
