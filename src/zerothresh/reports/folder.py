"""The folder of a report: taken, gone on with, or refused; and written whole."""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from zerothresh.basics import files
from zerothresh.comparison.cell import ROWS
from zerothresh.comparison.claim import claim
from zerothresh.comparison.summary import RESAMPLES
from zerothresh.reports.figures import claim_figure, colours, figures
from zerothresh.reports.page import Section, page
from zerothresh.reports.tables import case_table, tables, verdict_table
from zerothresh.reports.verdict import CLEAR, MOST, Verdict
from zerothresh.reproduce.ridge.claims import verdicts
from zerothresh.reproduce.ridge.experiments import PAPER_NAME
from zerothresh.reproduce.ridge.protocol import Experiment
from zerothresh.reproduce.ridge.study import Study
from zerothresh.version import __version__

MANIFEST, IDENTITY = "manifest.json", "study.json"
_PACKAGES = ("numpy", "scipy", "numba", "matplotlib")


def identity(experiments: Sequence[Experiment], *, quick: bool) -> dict[str, Any]:
    """What must be the same for a folder to go on."""
    return {
        "experiments": [experiment.name for experiment in experiments],
        "quick": quick,
        "seed": experiments[0].seed,
        "budgets": [experiment.budget for experiment in experiments],
        "version": __version__,
    }


def prepare(folder: Path, wanted: Mapping[str, Any]) -> bool:
    """Make the folder, or refuse it, before anything is computed; True if it goes on with earlier work."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError("a report is drawn with matplotlib: pip install 'zerothresh[plot]'") from None
    return claim(folder / IDENTITY, wanted)


def write(folder: Path, studies: Sequence[Study], wanted: Mapping[str, Any], seconds: float) -> list[Verdict]:
    """Write the report into a folder that `prepare` has accepted; the verdicts."""
    found = verdicts(studies)
    shown = [claim_figure(verdict) for verdict in found]
    made = [verdict_table(found), case_table(found)]
    contents: dict[str, str | bytes] = {}
    for figure in shown:
        contents |= {f"{figure.name}.png": figure.png, f"{figure.name}.pdf": figure.pdf}
    sections = []
    for study in studies:
        drawn, tabled = figures(study), tables(study)
        for figure in drawn:
            contents |= {f"{figure.name}.png": figure.png, f"{figure.name}.pdf": figure.pdf}
        made += tabled
        contents[f"{study.experiment.name}-traces.csv"] = _traces(study)
        experiment = study.experiment
        sections.append(Section(experiment.name, experiment.title, experiment.words, drawn, tabled, colours(study)))
    for table in made:
        contents |= {f"{table.name}.csv": table.csv(), f"{table.name}.tex": table.latex()}
    names = sorted([*contents, MANIFEST])
    words = ", ".join(f"{name} {number}" for name, number in versions().items())
    title = "Variance-reduced zeroth-order hard thresholding, reproduced"
    contents["index.html"] = page(
        title,
        _lead(studies),
        list(zip(found, shown, strict=True)),
        made[1],
        sections,
        _notes(studies),
        names,
        words,
    )
    name = "+".join(study.experiment.name for study in studies)
    save(folder, contents, name, wanted, found, seconds, studies=[_described(study) for study in studies])
    return found


def save(
    folder: Path,
    contents: dict[str, str | bytes],
    experiment: str,
    wanted: Mapping[str, Any],
    found: Sequence[Verdict],
    seconds: float,
    **own: Any,
) -> None:
    """Write the files of a report, and the manifest that lists them; ``own`` is what this experiment adds to it."""
    manifest = {
        "experiment": experiment,
        **wanted,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds_of_this_session": round(seconds, 1),
        "versions": versions(),
        **own,
        "verdicts": [
            {"claim": v.claim, "source": v.source, "verdict": v.outcome, "cases": v.tally, "evidence": v.evidence}
            for v in found
        ],
        "files": sorted([*contents, MANIFEST, IDENTITY]),
    }
    contents[MANIFEST] = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    for name, content in contents.items():
        files.write(folder / name, content)


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    numbers = {name: version(name) for name in _PACKAGES}
    return {"zerothresh": __version__, "python": platform.python_version(), **numbers}


def _described(study: Study) -> dict[str, Any]:
    """An experiment in the manifest: enough to do it again."""
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
                "method": raced.race.entry.label,
                "panel": str(raced.race.entry.panel),
                "switch": raced.race.entry.switch,
                "estimator": asdict(raced.race.entry.estimator),
                "chosen": repr(raced.race.entry.make(raced.eta)),
                "choose": [list(place) for place in raced.race.protocol.choose],
                "judge": [list(place) for place in raced.race.protocol.judge],
            }
            for raced in study.raced
        ],
    }


def _traces(study: Study) -> str:
    """The curves of the chosen entries, a row a step that was kept."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["runs", "k", "q", "method", "switch", "eta", "problem", "seed", "nfev", "nht", "F", "own"])
    for raced in study.raced:
        entry, protocol = raced.race.entry, raced.race.protocol
        if entry.switch or protocol.name != PAPER_NAME:
            continue
        head = [protocol.name, entry.panel.k, entry.panel.q, entry.label, entry.switch, raced.eta]
        for place, run in zip(protocol.choose, raced.chosen, strict=True):
            trace = run.trace
            for row in zip(
                trace.nfev.tolist(), trace.nht.tolist(), trace.fun.tolist(), trace.own.tolist(), strict=True
            ):
                writer.writerow([*head, *place, *row])
    return out.getvalue()


def _lead(studies: Sequence[Study]) -> list[str]:
    names = ", ".join(study.experiment.title.lower() for study in studies)
    count = sum(study.experiment.runs for study in studies)
    first = studies[0].experiment
    short = any(study.experiment.budget != study.experiment.paper_budget for study in studies)
    banner = []
    if first.quick or short:
        less = [words for words, said in (("one panel, fewer runs", first.quick), ("another budget", short)) if said]
        banner = [
            f"A shortened look ({' and '.join(less)}), not the paper's experiment. Few runs leave much undecided."
        ]
    return [
        *banner,
        f"The ridge experiments of Yuan et al. (ICLR 2024): {names}. {count:,} runs. Each method has the learning rate "
        "of the grid that is best for it, by F at the last iterate. F* is the best k-sparse value, found by trying "
        "every support; no method sees it.",
        "The verdicts are computed from fresh runs. In each case two things are compared, run for run where they share "
        "problem and seed; the case says yes or no if the 95 % interval leaves no doubt. A claim is undecided if fewer "
        f"than {CLEAR:.0%} of its cases are clear. Else it holds if at least {MOST:.0%} of the clear ones say yes, and "
        "does not hold if as many say no. In between, or if it turns on what the evidence "
        "names, it depends.",
    ]


def _notes(studies: Sequence[Study]) -> list[str]:
    budgets = " and ".join(f"{b:,}" for b in sorted({study.experiment.budget for study in studies}))
    labels = {label for study in studies for label in study.labels()}
    beside = [
        "p-SAGA-SZHT refreshes p = 2 rows a step, LSVRG-SZHT all rows with probability 1/n: the paper describes them "
        "and does not run them."
    ]
    return [
        "Estimates are eq. (3) with forward differences and directions uniform on the sphere, fresh a component. "
        "The two estimates of a difference use the same directions, on which the paper is silent. The last iterate of "
        "an epoch goes out. The tables of switches show what each of these choices changes, where they were tried.",
        f"Every run may make {budgets} calls of a single component (#IZO). F is computed exactly for the curves, and "
        "these calls are not counted. A round that would exceed the budget is not begun.",
        "The memory of SAGA-SZHT begins with one full estimate at the start, which is paid for.",
        "When η is chosen, a run that breaks off has F = ∞. When it is judged, a run that breaks off or ends above "
        "F(0) has diverged, and counts as one that ends at F(0).",
        *(beside if "LSVRG-SZHT" in labels else []),
        f"Intervals of medians lie between two of the values and hold for any law; fewer than 6 runs give none. Those "
        f"of means are the wider of Student's and of {RESAMPLES:,} bootstrap resamples; those of shares are Wilson's. "
        "They are for each case alone: of a hundred clear cases, a few may be so by chance.",
        f"Traces hold at most {ROWS} rows a run, evenly by #IZO. “cells” has the outcome and the curve of each run; "
        "the tables of runs name their files.",
    ]
