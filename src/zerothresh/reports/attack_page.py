"""The report that `zerothresh attack` writes: one attack on a user's own model."""

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
from zerothresh.reports.report_folder import files_of, versions_line
from zerothresh.reports.tables import ReportTable

MOST_IMAGES_DRAWN = 40
_IMAGES_PER_ROW = 10
_TABLES = ("promises", "path")  # the facts that are tables
_LONGEST_OPEN_TABLE = 20  # rows; longer tables are folded


def facts(found: Attacked) -> dict[str, Any]:
    """Return the attack in numbers, as ``attack.json`` has them."""
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
    """Write the report: a page, the pictures, the labels, the numbers, and the perturbation itself."""
    numbers = facts(found)
    arrays = {"perturbation": found.perturbation, "images": found.images, "labels": found.labels}
    contents = keep(folder, numbers, arrays)
    tables = [summary_table(numbers), image_table(found)]
    figure = images_figure(found)
    contents |= files_of([figure], tables)
    lead = [
        f"{numbers['fooled']} of {numbers['attacked']} images that {numbers['model']} gets right are fooled by one "
        f"perturbation of {numbers['pixels']} pixels ({numbers['channels']} channels), after {numbers['queries']:,} of "
        f"{numbers['budget']:,} queries.",
    ]
    if not found.complete:
        lead.insert(0, f"The search ended early, so that few fooled images prove little: {found.ended}")
    notes = [
        "A query is one image shown to the model, counted inside the classifier. The budget includes all of them: the "
        "evaluation of all images before the search, the search itself, and the evaluation after it.",
        "Images that the model gets wrong before the attack are shown in brackets and do not count.",
    ]
    finish(folder, contents, lead, [Section("attack", "The attack", [], [figure], tables, {})], notes)


def keep(folder: Path, numbers: dict[str, Any], arrays: dict[str, Any]) -> dict[str, str | bytes]:
    """Write what was paid for, before anything else may fail; return these files by name."""
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    contents: dict[str, str | bytes] = {
        "attack.npz": stream.getvalue(),
        "attack.json": json.dumps(numbers, indent=1) + "\n",
    }
    for name, content in contents.items():
        files.write(folder / name, content)
    return contents


def finish(
    folder: Path, contents: dict[str, str | bytes], lead: list[str], sections: list[Section], notes: list[str]
) -> None:
    """Write the page, and all files that it links to."""
    versions = f"{versions_line()}, {datetime.now(UTC):%Y-%m-%d}"
    page = render_page("A universal few-pixel attack", lead, [], None, sections, notes, sorted(contents), versions)
    for name, content in {**contents, "index.html": page}.items():
        files.write(folder / name, content)


def summary_table(numbers: dict[str, Any]) -> ReportTable:
    """The facts and the promises, one row each; what is a table of its own is left out."""
    rows = [[name.replace("_", " "), _formatted(value)] for name, value in numbers.items() if name not in _TABLES]
    rows += [[f"promise: {promise}", "kept" if kept else "BROKEN"] for promise, kept in numbers["promises"].items()]
    return ReportTable("summary", "In numbers", ["", ""], rows, ["name", "value"], rows)


def image_table(found: Attacked) -> ReportTable:
    """The classes of every image: the true one, and the predicted ones before and after the attack."""
    header = ["image", "label", "as it is", "attacked", "fooled"]
    columns = [
        pictures.class_names(found.classifier.classes, labels) for labels in (found.labels, found.before, found.after)
    ]
    fooled, right = found.fooled.tolist(), found.right.tolist()
    data = [[number, *names, fooled[number]] for number, names in enumerate(zip(*columns, strict=True))]
    rows = [
        [*(str(cell) for cell in row[:-1]), _outcome(was_fooled, was_right)]
        for row, was_fooled, was_right in zip(data, fooled, right, strict=True)
    ]
    note = "The classes that the model predicts, before and after the attack."
    return ReportTable(
        "labels", "Every image", header, rows, header, data, note, folded=len(rows) > _LONGEST_OPEN_TABLE
    )


def _outcome(fooled: bool, right: bool) -> str:
    return "yes" if fooled else "no" if right else "was wrong before"


def _formatted(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_formatted, value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def images_figure(found: Attacked) -> Drawn:
    """The images as they are and attacked, ten per row."""
    rows = []
    for at in range(0, min(found.stack.n, MOST_IMAGES_DRAWN), _IMAGES_PER_ROW):
        rows += pictures.rows_before_and_after(found, slice(at, min(at + _IMAGES_PER_ROW, MOST_IMAGES_DRAWN)))
    caption = (
        "Left: the perturbation, grey where it is 0. Under each image is the class that the model predicts, bold and "
        "red where the attack changed it."
    )
    if found.stack.n > MOST_IMAGES_DRAWN:
        caption += f" The first {MOST_IMAGES_DRAWN} of {found.stack.n} images."
    alt = f"The images as they are and attacked: {found!r}."
    return Drawn("attack", "The attacked images", alt, caption, *saved(pictures.draw(rows)), wide=True)
