"""The report folder of an experiment: a page that stands alone, two figures, the numbers, a manifest."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from zerothresh import files, plot
from zerothresh.result import Result

MANIFEST = "manifest.json"
_FORMAT = 1
_PACKAGES = ("numpy", "scipy", "numba", "matplotlib")


@dataclass(frozen=True)
class Table:
    """A table: on the page as text, in its own file as numbers."""

    file: str
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    data_header: Sequence[str]
    data: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Report:
    """What an experiment has to tell."""

    experiment: str  # a folder with a report is replaced only by one of the same experiment
    title: str
    lead: Sequence[str]  # paragraphs above the figures
    notes: Sequence[str]  # a list at the end
    tables: Sequence[Table]
    runs: Mapping[str, Sequence[Result]]  # by label; what the figures draw
    optimum: float
    manifest: Mapping[str, Any] = field(default_factory=dict)


def prepare(folder: Path, experiment: str) -> None:
    """Make the folder, or refuse it: before anything is computed."""
    plot.require_matplotlib()
    if folder.is_dir() and any(folder.iterdir()):
        earlier = _experiment_in(folder)
        if earlier != experiment:
            holds = "other files" if earlier is None else f"a report of the experiment {earlier!r}"
            raise ValueError(
                f"the folder {folder} holds {holds}: name an empty or new folder, "
                f"or one with an earlier report of {experiment!r}, which is then replaced"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"the folder {folder} cannot be made ({error.strerror}): name another") from None
    files.check_folder(folder)


def _experiment_in(folder: Path) -> str | None:
    try:
        experiment = json.loads((folder / MANIFEST).read_text())["experiment"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return experiment if isinstance(experiment, str) else None


def write(folder: Path, report: Report) -> list[Path]:
    """Write the report into a folder that `prepare` has accepted; files of others in it stay as they are."""
    figures = _figures(report)
    contents: dict[str, str | bytes] = {
        "index.html": _page(report, figures),
        "izo.png": figures["izo"]["png"],
        "nht.png": figures["nht"]["png"],
        "curves.csv": _curves(report.runs),
    }
    for table in report.tables:
        contents[table.file] = _csv(table.data_header, table.data)
    manifest = {
        "experiment": report.experiment,
        "format": _FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": _versions(),
        **report.manifest,
        "files": sorted([*contents, MANIFEST]),
    }
    # The manifest first: if what follows is cut short, the folder is still known as ours.
    contents = {MANIFEST: json.dumps(manifest, indent=2) + "\n", **contents}
    for name, content in contents.items():
        files.write(folder / name, content)
    return [folder / name for name in contents]


def _versions() -> dict[str, str]:
    from zerothresh import __version__

    return {
        "zerothresh": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def _csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def _curves(runs: Mapping[str, Sequence[Result]]) -> str:
    """A row a step of each run: what the figures are drawn from."""
    rows = []
    for label, results in runs.items():
        for number, result in enumerate(results, start=1):
            for step in result.trace.to_records():
                support = " ".join(map(str, step.support.tolist()))
                rows.append([label, number, result.seed, step.step, step.nfev, step.nht, repr(float(step.fun)), support])
    return _csv(["method", "run", "seed", "step", "nfev", "nht", "fun", "support"], rows)


def _figures(report: Report) -> dict[str, dict[str, bytes]]:
    """F - F* against #IZO and against #NHT, each as PNG for others and as SVG for the page."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Runs without a single finite F cannot be drawn; the table tells of them.
    drawn = {label: runs for label, runs in report.runs.items() if all(np.isfinite(r.trace.fun).any() for r in runs)}
    colours = [plot.COLOURS[place % len(plot.COLOURS)] for place in range(len(report.runs))]
    out: dict[str, dict[str, bytes]] = {"izo": {}, "nht": {}}
    # A fixed salt and no date: the same report has the same bytes.
    with rc_context({"svg.hashsalt": "zerothresh", "font.size": 11}):
        figures = {name: Figure(figsize=(8, 4.8), layout="constrained") for name in out}
        axes = {name: figure.add_subplot() for name, figure in figures.items()}
        if drawn:
            plot.compare(drawn, optimum=report.optimum, axes=(axes["izo"], axes["nht"]))
        for name, figure in figures.items():
            axis = axes[name]
            _frame(axis, drawn, report.optimum)
            if drawn:
                axis.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
            for kind, options in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
                stream = io.BytesIO()
                FigureCanvasAgg(figure)
                figure.savefig(stream, format=kind, **options)
                out[name][kind] = stream.getvalue()
    del colours
    return out
