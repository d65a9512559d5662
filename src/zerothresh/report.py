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
    _need_matplotlib()
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
                rows.append(
                    [label, number, result.seed, step.step, step.nfev, step.nht, repr(float(step.fun)), support]
                )
    return _csv(["method", "run", "seed", "step", "nfev", "nht", "fun", "support"], rows)


def _need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError("a report is drawn with matplotlib: pip install 'zerothresh[plot]'") from None


def _drawn(report: Report) -> dict[str, Sequence[Result]]:
    """What can be drawn: runs without a single finite F are told by the table alone."""
    return {label: runs for label, runs in report.runs.items() if all(np.isfinite(r.trace.fun).any() for r in runs)}


def _figures(report: Report) -> dict[str, dict[str, bytes]]:
    """F - F* against #IZO and against #NHT, each as PNG for others and as SVG for the page."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    drawn = _drawn(report)
    out: dict[str, dict[str, bytes]] = {"izo": {}, "nht": {}}
    # A fixed salt and no date: the same runs give the same bytes.
    with rc_context({"svg.hashsalt": "zerothresh", "font.size": 11}), np.errstate(all="ignore"):
        figures = {name: Figure(figsize=(8, 4.8), layout="constrained") for name in out}
        axes = {name: figure.add_subplot() for name, figure in figures.items()}
        if drawn:
            plot.compare(drawn, optimum=report.optimum, axes=(axes["izo"], axes["nht"]))
        for name, figure in figures.items():
            _frame(axes[name], drawn, report.optimum)
            for kind, options in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
                stream = io.BytesIO()
                figure.savefig(stream, format=kind, **options)
                out[name][kind] = stream.getvalue()
    return out


def _frame(axis: Any, drawn: Mapping[str, Sequence[Result]], optimum: float) -> None:
    """A label on each figure, a legend that covers no curve, and no room for what diverged."""
    axis.set_ylabel(r"$F(\theta) - F^*$")
    axis.xaxis.set_major_formatter("{x:,.0f}")
    if not drawn:
        return
    starts = [run.trace.fun[np.isfinite(run.trace.fun)][0] - optimum for runs in drawn.values() for run in runs]
    if axis.get_ylim()[1] > 10 * max(starts) > 0:
        axis.set_ylim(top=10 * max(starts))
    axis.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4)


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ --ink: #1d2430; --soft: #5a6475; --paper: #fff; --line: #d8dde6; --band: #f4f6f9; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e6e9ef; --soft: #a3acbb; --paper: #14181f; --line: #333b48; --band: #1c222b; }}
}}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; max-width: 58rem; padding: 1.5rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; }}
h1 {{ font-size: 1.6rem; line-height: 1.25; margin: 0 0 .75rem; }}
h2 {{ font-size: 1.15rem; margin: 2.25rem 0 .5rem; }}
figure {{ margin: 1.25rem 0; }}
/* The figures' colours are made for white: they keep it in the dark. */
figure img {{ display: block; width: 100%; height: auto; background: #fff; border: 1px solid var(--line);
  border-radius: .5rem; }}
figcaption, footer, .soft {{ color: var(--soft); font-size: .9rem; }}
figcaption {{ margin-top: .4rem; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .93rem; }}
th, td {{ padding: .4rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }}
th:first-child, td:first-child {{ text-align: left; position: sticky; left: 0; background: var(--paper); }}
thead th {{ color: var(--soft); font-weight: 600; }}
.chip {{ display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .5em;
  border: 1px solid var(--soft); print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
li {{ margin: .3rem 0; }}
@media print {{
  :root {{ --ink: #000; --soft: #444; --paper: #fff; --line: #bbb; }}
  body {{ max-width: none; padding: 0; font-size: 10pt; }}
  figure, tr {{ break-inside: avoid; }}
  h2 {{ break-after: avoid; }}
  .wide {{ overflow: visible; }}
  figure img {{ width: 75%; }}
}}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
<footer><p>{footer}</p></footer>
</body>
</html>
"""


def _page(report: Report, figures: Mapping[str, Mapping[str, bytes]]) -> str:
    first, *others = report.tables
    body = [f"<p>{html.escape(paragraph)}</p>" for paragraph in report.lead]
    body.append(_table(first, _chips(report)))
    body += [_figure(report, name, figures[name]["svg"]) for name in ("izo", "nht")]
    body += [_table(table, _chips(report)) for table in others]
    body.append("<h2>How it was done</h2>\n<ul>")
    body += [f"<li>{html.escape(note)}</li>" for note in report.notes]
    body.append("</ul>")
    links = ["izo.png", "nht.png", *(table.file for table in report.tables), "curves.csv", MANIFEST]
    versions = ", ".join(f"{name} {number}" for name, number in _versions().items())
    footer = f"In this folder: {', '.join(f'<a href={name!r}>{name}</a>' for name in links)}.<br>Made with {versions}."
    return _PAGE.format(title=html.escape(report.title), body="\n".join(body), footer=footer)


def _chips(report: Report) -> dict[str, str]:
    """The colour of each curve, as in the figures."""
    return {label: plot.COLOURS[place % len(plot.COLOURS)] for place, label in enumerate(_drawn(report))}


def _table(table: Table, chips: Mapping[str, str]) -> str:
    def first(text: str) -> str:
        chip = f'<span class="chip" style="background:{chips[text]}"></span>' if text in chips else ""
        return f"<td>{chip}{html.escape(text)}</td>"

    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in table.header)
    rows = "\n".join(
        f"<tr>{first(row[0])}{''.join(f'<td>{html.escape(cell)}</td>' for cell in row[1:])}</tr>" for row in table.rows
    )
    return (
        f'<h2>{html.escape(table.title)}</h2>\n<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def _figure(report: Report, name: str, svg: bytes) -> str:
    counted = {"izo": "#IZO, the calls of a single component", "nht": "#NHT, the hard thresholdings"}[name]
    ends = "; ".join(f"{label} {_end(runs, report.optimum)}" for label, runs in _drawn(report).items())
    alt = f"Curves of F minus its optimum against {counted}, on a logarithmic axis. Means at the end: {ends}."
    caption = (
        f"F - F* against {counted}: the mean over the runs, with a band of one standard deviation "
        "(cut at a tenth of the mean where it would reach 0)."
    )
    source = base64.b64encode(svg).decode()
    return (
        f'<figure><img src="data:image/svg+xml;base64,{source}" alt="{html.escape(alt)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _end(runs: Sequence[Result], optimum: float) -> str:
    return f"{np.mean([run.trace.fun[-1] for run in runs]) - optimum:.2g}"
