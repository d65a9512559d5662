"""The report that `zerothresh attack --ks` writes: success against k, and the smallest attack that fools all images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zerothresh.attack import AttackPath
from zerothresh.reports import attack_page
from zerothresh.reports.figures import Drawn, saved
from zerothresh.reports.html_page import Section
from zerothresh.reports.report_folder import files_of
from zerothresh.reports.tables import ReportTable


def path_facts(found: AttackPath) -> dict[str, Any]:
    """Return the attack in numbers, as ``attack.json`` has them: those of the best k, and the table of all k."""
    columns = found.columns()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if not found.best.attacked.any():
        rows = [row | {"success_rate": None} for row in rows]  # NaN is no JSON
    numbers = attack_page.facts(found.best) | {"stopped": found.ended, "promises": found.promises()}
    smallest = None if found.smallest is None else found.smallest.k
    return {"ks": list(found.ks), "smallest_k": smallest, "path": rows} | numbers


def write_path(folder: Path, found: AttackPath) -> None:
    """Write the report: a page, the curve, the pictures for the best k, the numbers, and all perturbations."""
    best, numbers = found.best, path_facts(found)
    arrays: dict[str, Any] = {f"perturbation_{result.k}": result.perturbation for result in found}
    arrays |= {"perturbation": best.perturbation, "images": best.images, "labels": best.labels}
    contents = attack_page.keep(folder, numbers, arrays)
    curve, images = _curve(found), attack_page.images_figure(best)
    tables = [_table(found)], [attack_page.summary_table(numbers), attack_page.image_table(best)]
    contents |= files_of([curve, images], [*tables[0], *tables[1]])
    lead = [f"{found.summary[0].upper()}{found.summary[1:]}."]
    if not found.complete:
        lead.insert(0, f"The search ended early, so that few fooled images prove little: {found.ended}")
    unit = best.granularity
    sections = [
        Section("path", f"Success against the number of {unit}s", [], [curve], tables[0], {}),
        Section("attack", f"The attack with {best.k} {unit}s", [], [images], tables[1], {}),
    ]
    notes = [
        "One search serves all k: each k goes on from what smaller ones have found, and what fools all images with few "
        "changes is the result for larger k as well.",
        "A query is one image shown to the model, counted inside the classifier. The budget includes all of them: the "
        "evaluation of all images before the search, the search itself, and the evaluation of each perturbation after "
        "it.",
        "Images that the model gets wrong before the attack are shown in brackets and do not count.",
    ]
    attack_page.finish(folder, contents, lead, sections, notes)


def _curve(found: AttackPath) -> Drawn:
    """The share of fooled images against k."""
    shares = ", ".join(f"{rate:.2f} with k = {k}" for k, rate in zip(found.ks, found.success_rates, strict=True))
    caption = "The share of the images that the model gets right which the perturbation for each k fools."
    return Drawn("path", "Success against k", f"Success rates: {shares}.", caption, *saved(found.plot()))


def _table(found: AttackPath) -> ReportTable:
    """A row per k."""
    heads, rows = found.cells()
    columns = found.columns()
    data = [list(row) for row in zip(*columns.values(), strict=True)]
    note = "" if found.smallest is None else "* the smallest k that fools all images"
    return ReportTable("ks", "For each k", heads, rows, list(columns), data, note)
