"""The report of one attack on one's own model: what `zerothresh attack` writes."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from zerothresh.attack import Attacked, pictures
from zerothresh.basics import files
from zerothresh.reports.figures import Drawn, saved
from zerothresh.reports.html_page import Section, render_page
from zerothresh.reports.report_folder import versions
from zerothresh.reports.tables import ReportTable

SHOWN = 40  # images at the most


def facts(found: Attacked) -> dict[str, Any]:
    """The attack in numbers."""
    low, high = found.stack.bounds
    return {
        "model": found.classifier.name,
        "images": found.stack.n,
        "right": int(found.right.sum()),
        "attacked": int(found.attacked.sum()),
        "fooled": int(found.fooled.sum()),
        "success_rate": found.success_rate if found.attacked.any() else None,
        "k": found.k,
        "granularity": found.granularity,
        "pixels": found.pixels,
        "channels": found.channels,
        "l2": found.l2,
        "queries": found.queries,
        "budget": found.budget,
        "calls_of_the_model_in_this_session": found.classifier.calls,
        "seconds_in_the_model_in_this_session": round(found.classifier.seconds, 3),
        "scores": found.classifier.scores,
        "bounds": [low, high],
        "bounds_declared": found.stack.bounds_declared,
        "seed": None if found.search is None else found.search.seed,
        "complete": found.complete,
        "stopped": found.ended,
        "promises": found.promises(),
    }


def write(folder: Path, found: Attacked) -> None:
    """A page, the picture, the labels, the numbers, and the perturbation itself."""
    told = facts(found)
    stream = io.BytesIO()
    np.savez_compressed(stream, perturbation=found.perturbation, images=found.images, labels=found.labels)
    kept: dict[str, str | bytes] = {"attack.npz": stream.getvalue(), "attack.json": json.dumps(told, indent=1) + "\n"}
    for name, content in kept.items():  # first what was paid for, whatever becomes of the page
        files.write(folder / name, content)
    names = found.classifier.classes
    header = ["image", "label", "as it is", "attacked", "fooled"]
    words = [pictures.names_of(names, column) for column in (found.labels, found.before, found.after)]
    data = [
        [number, *row, bool(fooled)]
        for number, (*row, fooled) in enumerate(zip(*words, found.fooled.tolist(), strict=True))
    ]
    rows = [[str(cell) for cell in row[:-1]] + [_word(row[-1], bool(found.right[row[0]]))] for row in data]
    listed = ReportTable(
        "labels", "Every image", header, rows, header, data, "What the model says.", folded=len(rows) > 20
    )
    numbers = [[name.replace("_", " "), _shown(value)] for name, value in told.items() if name != "promises"]
    numbers += [[f"promise: {promise}", "kept" if kept else "BROKEN"] for promise, kept in told["promises"].items()]
    summary = ReportTable("summary", "In numbers", ["", ""], numbers, ["name", "value"], numbers)
    drawn = [_figure(found)]
    contents: dict[str, str | bytes] = {**kept}
    for figure in drawn:
        contents |= {f"{figure.name}.png": figure.png, f"{figure.name}.pdf": figure.pdf}
    for table in (summary, listed):
        contents |= {f"{table.name}.csv": table.csv(), f"{table.name}.tex": table.latex()}
    early = [] if found.complete else [f"The search ended early, and says little: {found.ended}"]
    lead = [
        *early,
        f"{told['fooled']} of {told['attacked']} images that {told['model']} gets right are fooled by one perturbation "
        f"of {told['pixels']} pixels ({told['channels']} channels), after {told['queries']:,} of {told['budget']:,} "
        "queries.",
    ]
    section = Section("attack", "The attack", [], drawn, [summary, listed], {})
    notes = [
        "A query is one image that the model was asked for, counted inside the classifier. All are in the budget: the "
        "look at the images as they are, the search, and the look at what came out.",
        "Images that the model gets wrong as they are are shown in brackets, and count for nothing.",
    ]
    made = f"{', '.join(f'{n} {v}' for n, v in versions().items())}, {datetime.now(UTC):%Y-%m-%d}"
    title = "A universal few-pixel attack"
    contents["index.html"] = render_page(title, lead, [], None, [section], notes, sorted(contents), made)
    for name, content in contents.items():
        files.write(folder / name, content)


def _word(fooled: Any, right: bool) -> str:
    return "yes" if fooled else "no" if right else "was wrong before"


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _figure(found: Attacked) -> Drawn:
    """The images as they are and attacked, ten in a row."""
    rows = []
    for at in range(0, min(found.stack.n, SHOWN), 10):
        some = slice(at, min(at + 10, SHOWN))
        rows += pictures.rows_of(found, "attacked", some)
    caption = (
        "Left: the perturbation, grey where it is 0. Under each image what the model says, bold and red where the "
        "attack changed it."
    ) + (f" The first {SHOWN} of {found.stack.n} images." if found.stack.n > SHOWN else "")
    alt = f"The images as they are and attacked: {found!r}."
    return Drawn("attack", "The attacked images", alt, caption, *saved(pictures.draw(rows)), wide=True)
