"""The report of the ridge experiments: its text, and the folder that it is written to."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from zerothresh.comparison.cell import FORMAT, ROWS
from zerothresh.comparison.summary import RESAMPLES
from zerothresh.reports.figures import claim_figure
from zerothresh.reports.html_page import Section, render_page
from zerothresh.reports.report_folder import MANIFEST, files_of, save, versions_line
from zerothresh.reports.tables import case_table, verdict_table
from zerothresh.reports.verdict import AGREE, CLEAR, Verdict
from zerothresh.reproduce.ridge.claims import verdicts_on
from zerothresh.reproduce.ridge.experiments import PAPER_NAME
from zerothresh.reproduce.ridge.protocol import Experiment
from zerothresh.reproduce.ridge.ridge_figures import colours, figures
from zerothresh.reproduce.ridge.ridge_tables import tables
from zerothresh.reproduce.ridge.study import Study
from zerothresh.version import __version__

_TITLE = "Variance-reduced zeroth-order hard thresholding, reproduced"


def identity(experiments: Sequence[Experiment], *, quick: bool) -> dict[str, Any]:
    """Return what must be the same for earlier work in a folder to be continued."""
    return {
        "experiments": [experiment.name for experiment in experiments],
        "quick": quick,
        "seed": experiments[0].seed,
        "budgets": [experiment.budget for experiment in experiments],
        "version": __version__,
        "format": FORMAT,
    }


def write(folder: Path, studies: Sequence[Study], identity: Mapping[str, Any], seconds: float) -> list[Verdict]:
    """Write the report of studies into a folder that `prepare` has accepted.

    Arguments
    ---------
    folder: the folder.
    studies: the experiments that have been run.
    identity: what `identity` returned for them.
    seconds: how long this session took.

    Returns the verdicts.
    """
    verdicts = verdicts_on(studies)
    claim_figures = [claim_figure(verdict) for verdict in verdicts]
    cases = case_table(verdicts)
    contents = files_of(claim_figures, [verdict_table(verdicts), cases])
    sections = []
    for study in studies:
        experiment = study.experiment
        section = Section(
            experiment.name,
            experiment.title,
            experiment.description,
            figures(study),
            tables(study),
            colours(study),
        )
        contents |= files_of(section.figures, section.tables)
        contents[f"{experiment.name}-traces.csv"] = _traces(study)
        sections.append(section)
    contents["index.html"] = render_page(
        _TITLE,
        _lead(studies),
        list(zip(verdicts, claim_figures, strict=True)),
        cases,
        sections,
        _notes(studies),
        sorted([*contents, MANIFEST]),
        versions_line(),
    )
    name = "+".join(study.experiment.name for study in studies)
    save(folder, contents, name, identity, verdicts, seconds, studies=[_described(study) for study in studies])
    return verdicts


def _described(study: Study) -> dict[str, Any]:
    """Describe an experiment in the manifest, in enough detail to repeat it."""
    experiment = study.experiment
    return {
        "name": experiment.name,
        "n": experiment.n,
        "d": experiment.d,
        "budget": experiment.budget,
        "etas": list(experiment.etas),
        "runs": experiment.runs,
        "races": [
            {
                "method": result.race.entry.label,
                "panel": str(result.race.entry.panel),
                "switch": result.race.entry.switch,
                "budget": experiment.budget_of(result.race),
                "etas": list(experiment.etas_of(result.race)) if result.race.entry.tuned else [],
                "rule": result.race.rule,
                "estimator": asdict(result.race.entry.estimator),
                "chosen": repr(result.race.entry.make(result.eta)),
                "choose": [list(place) for place in result.race.protocol.choose],
                "judge": [list(place) for place in result.race.protocol.judge],
            }
            for result in study.results
        ],
    }


def _traces(study: Study) -> str:
    """Return the curves of the chosen entries as CSV, one row per step that was kept."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["runs", "k", "q", "method", "switch", "eta", "problem", "seed", "nfev", "nht", "F", "own"])
    for result in study.compared():
        entry, protocol = result.race.entry, result.race.protocol
        if entry.switch or protocol.name != PAPER_NAME:
            continue
        head = [protocol.name, entry.panel.k, entry.panel.q, entry.label, entry.switch, result.eta]
        for place, run in zip(protocol.choose, result.chosen, strict=True):
            columns = (run.trace.nfev, run.trace.nht, run.trace.fun, run.trace.own)
            for row in zip(*(column.tolist() for column in columns), strict=True):
                writer.writerow([*head, *place, *row])
    return out.getvalue()


def _lead(studies: Sequence[Study]) -> list[str]:
    """Return the paragraphs below the title."""
    titles = ", ".join(study.experiment.title.lower() for study in studies)
    count = sum(study.experiment.runs for study in studies)
    quick = studies[0].experiment.quick
    other_budget = any(study.experiment.budget != study.experiment.paper_budget for study in studies)
    warning = []
    if quick or other_budget:
        less = [what for what, so in (("one panel and fewer runs", quick), ("another budget", other_budget)) if so]
        warning = [
            f"This is a shortened version ({'; '.join(less)}), not the paper's experiment. With few runs, many claims "
            "stay undecided."
        ]
    return [
        *warning,
        f"The ridge regression experiments of Yuan et al. (ICLR 2024): {titles}. {count:,} runs. Each method has the "
        "learning rate of the grid that is best for it, measured by F at the last iterate. F* is the best k-sparse "
        "value, found by trying every support; no method sees it.",
        "The verdicts are computed from fresh runs. In each case two quantities are compared, run by run where the "
        "runs share problem and seed. A case says yes or no if its 95 % interval excludes the value that separates "
        "the two; otherwise it is unclear. A claim is undecided if fewer "
        f"than {CLEAR:.0%} of its cases are clear. Otherwise it holds if at least {AGREE:.0%} of the clear cases say "
        "yes, and does not hold if as many say no. In between, or if it holds in one setting and not in another, it "
        "depends; the sentence below it names the settings. If the paper says “often”, more than half of all cases "
        "are enough; if it says “some”, one method with such a majority is.",
    ]


def _notes(studies: Sequence[Study]) -> list[str]:
    """Return the notes on how the numbers were computed."""
    budgets = " and ".join(f"{b:,}" for b in sorted({study.experiment.budget for study in studies}))
    labels = {label for study in studies for label in study.labels()}
    variants = [
        "p-SAGA-SZHT refreshes p = 2 rows of its memory per step. LSVRG-SZHT refreshes all rows with probability 1/n. "
        "The paper describes both and does not run them."
    ]
    return [
        "Gradients are estimated by eq. (3) with forward differences and directions uniform on the sphere, drawn "
        "separately for each component. The two estimates of a difference use the same directions; the paper does not "
        "say which directions it uses there. An epoch returns its last iterate. The tables of switches show what each "
        "of these choices changes.",
        f"Each run may make {budgets} calls of a single component (#IZO). F is computed exactly for the curves, and "
        "these calls are not counted. A round that would exceed the budget is not begun.",
        "The memory of SAGA-SZHT begins with one full estimate at the start, which is counted.",
        "When η is chosen, a run that stops with an error has F = ∞. When the chosen η is judged, a run that stops "
        "with an error or ends above F(0) has diverged, and counts as a run that ends at F(0).",
        *(variants if "LSVRG-SZHT" in labels else []),
        "Intervals of medians lie between two of the values and are valid for any distribution; fewer than 6 runs give "
        f"none. Intervals of means are the wider of Student's interval and of {RESAMPLES:,} bootstrap resamples. "
        "Intervals of shares are Wilson's. They hold for each case alone: of a hundred clear cases, a few may be clear "
        "by chance.",
        f"The curves hold at most {ROWS} rows per run, evenly spaced in #IZO. All numbers in tables and verdicts come "
        "from whole runs, not from these curves. The folder “cells” holds the outcome and the curve of each run; the "
        "tables of runs name the files.",
    ]
