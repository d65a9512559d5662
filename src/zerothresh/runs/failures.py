"""The record of calls that failed: the point, the component, the error and the time of each."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import numpy as np

from zerothresh.runs import lines
from zerothresh.runs.paths import open_plain

_LONG = 10_000  # points with more coordinates than this are stored in files of their own
_MOST_TRACEBACK = 10_000  # characters of a traceback that are stored, counted from its end


class Failures:
    """The failed calls of a run: ``failures.jsonl``, and ``failure-N.npy`` for points with many coordinates.

    Arguments
    ---------
    folder: the run folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "failures.jsonl"

    def add(self, *, round: int, row: int, component: int, point: Any, error: str, trace: str, calls: int) -> None:
        """Add a failed call to the record.

        Arguments
        ---------
        round: the number of the round.
        row: the row of the round that the call was for (the first one, if it was for several).
        component: the component of that row.
        point: the point of that row, shape (d,).
        error: the error in one line.
        trace: the traceback of the error.
        calls: the number of calls that were charged to the budget.
        """
        entry: dict[str, Any] = {
            "time": lines.stamp(),
            "round": round,
            "row": row,
            "component": component,
            "calls": calls,
            "error": error,
            "traceback": trace[-_MOST_TRACEBACK:],
            "d": int(point.size),
        }
        if point.size <= _LONG:
            entry["point"] = base64.b64encode(np.asarray(point, "<f8").tobytes()).decode()
        else:
            entry["point_file"] = self._save(point)
        lines.append(self.path, entry)

    def _save(self, point: Any) -> str:
        """Store a point in a file of its own, and return the name of the file."""
        number = 1
        while (path := self.folder / f"failure-{number:06d}.npy").exists():
            number += 1
        with open(open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            np.save(file, np.asarray(point), allow_pickle=False)
        return path.name

    def read(self) -> list[dict[str, Any]]:
        """Return the records of all failed calls, oldest first."""
        return lines.read(self.path)
