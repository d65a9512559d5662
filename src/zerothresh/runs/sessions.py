"""The sessions of a run: when it was worked on, how long, how fast, and how each session ended."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from zerothresh.runs import lines


class Sessions:
    """``sessions.jsonl``: a line when a session begins, and one when it ends in order."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "sessions.jsonl"
        self._begun = time.monotonic()
        self._open = False

    def begin(self, nfev: int) -> None:
        """A session begins with so many calls made."""
        self._begun, self._open = time.monotonic(), True
        words = {"time": lines.stamp(), "event": "begin", "pid": os.getpid(), "nfev": nfev}
        lines.append(self.path, words, sync=False)  # no value hangs on it

    def end(self, nfev: int, status: str, message: str) -> None:
        """The session ends in order."""
        if self._open:
            self._open = False
            seconds = round(max(0.0, time.monotonic() - self._begun), 3)
            words = {"event": "end", "nfev": nfev, "seconds": seconds, "status": status, "message": message}
            lines.append(self.path, {"time": lines.stamp(), **words}, sync=False)

    def read(self) -> list[dict[str, Any]]:
        """All lines."""
        return lines.read(self.path)
