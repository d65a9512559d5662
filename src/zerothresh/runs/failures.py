"""The record of calls that failed: point, component, error and time."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import numpy as np

from zerothresh.runs import lines
from zerothresh.runs.paths import open_plain

_LONG = 10_000  # points longer than this go into a file of their own


class Failures:
    """``failures.jsonl``, and ``failure-N.npy`` for long points."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "failures.jsonl"

    def add(self, *, round: int, row: int, component: int, point: Any, error: str, trace: str, calls: int) -> None:
        """Write a failure down."""
        words: dict[str, Any] = {
            "time": lines.stamp(),
            "round": round,
            "row": row,
            "component": component,
            "calls": calls,
            "error": error,
            "traceback": trace[-10_000:],
            "d": int(point.size),
        }
        if point.size <= _LONG:
            words["point"] = base64.b64encode(np.asarray(point, "<f8").tobytes()).decode()
        else:
            words["point_file"] = self._save(point)
        lines.append(self.path, words)

    def _save(self, point: Any) -> str:
        number = 1
        while (path := self.folder / f"failure-{number:06d}.npy").exists():
            number += 1
        with open(open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            np.save(file, np.asarray(point), allow_pickle=False)
        return path.name

    def read(self) -> list[dict[str, Any]]:
        """All failures."""
        return lines.read(self.path)
