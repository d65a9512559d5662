"""The folder of a report: taken for a new report, continued, or refused; and written with a manifest of its files."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from zerothresh.basics import files
from zerothresh.comparison.folder_claim import claim_folder
from zerothresh.reports.figures import Drawn
from zerothresh.reports.tables import ReportTable
from zerothresh.reports.verdict import Verdict
from zerothresh.version import __version__

MANIFEST, IDENTITY = "manifest.json", "study.json"
_PACKAGES = ("numpy", "scipy", "numba", "matplotlib")


def prepare(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Take a folder for a report before anything is computed.

    Arguments
    ---------
    folder: the folder, which is made if it does not exist.
    identity: what must be the same for earlier work in the folder to be continued.

    Returns True if the folder holds earlier work of the same report, which is then continued. Raises
    ValueError if it holds anything else, or if matplotlib is missing.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError("a report is drawn with matplotlib: pip install 'zerothresh[plot]'") from None
    return claim_folder(folder / IDENTITY, identity)


def files_of(figures: Iterable[Drawn], tables: Iterable[ReportTable]) -> dict[str, str | bytes]:
    """Return the files of figures and tables, by name."""
    contents: dict[str, str | bytes] = {}
    for figure in figures:
        contents |= {f"{figure.name}.png": figure.png, f"{figure.name}.pdf": figure.pdf}
    for table in tables:
        contents |= {f"{table.name}.csv": table.csv(), f"{table.name}.tex": table.latex()}
    return contents


def save(
    folder: Path,
    contents: dict[str, str | bytes],
    experiment: str,
    identity: Mapping[str, Any],
    verdicts: Sequence[Verdict],
    seconds: float,
    **details: Any,
) -> None:
    """Write the files of a report, and last the manifest that lists them.

    Arguments
    ---------
    folder: a folder that `prepare` has accepted.
    contents: the files by name; the manifest is added to them.
    experiment: the name of the experiment.
    identity: as for `prepare`.
    verdicts: the verdicts, which the manifest holds too.
    seconds: how long this session took.
    details: further entries of the manifest.
    """
    manifest = {
        "experiment": experiment,
        **identity,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds_of_this_session": round(seconds, 1),
        "versions": versions(),
        **details,
        "verdicts": [
            {
                "claim": v.claim,
                "source": v.source,
                "verdict": v.outcome,
                "sentence": v.sentence,
                "cases": v.tally,
                "evidence": v.evidence,
            }
            for v in verdicts
        ],
        "files": sorted([*contents, MANIFEST, IDENTITY]),
    }
    contents[MANIFEST] = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    for name, content in contents.items():
        files.write(folder / name, content)


def versions() -> dict[str, str]:
    """Return the versions of the software that computed the numbers."""
    numbers = {name: version(name) for name in _PACKAGES}
    return {"zerothresh": __version__, "python": platform.python_version(), **numbers}


def versions_line() -> str:
    """Return the versions in one line, for the foot of a page."""
    return ", ".join(f"{name} {number}" for name, number in versions().items())
