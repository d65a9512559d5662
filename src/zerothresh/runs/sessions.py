"""The record of the sessions of a run: when each process began to work on it, and how and when it ended."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from zerothresh.runs import lines


class Sessions:
    """The sessions of a run in ``sessions.jsonl``: one line when a session begins, and one when it ends normally.

    A session that was killed has no line for its end.

    Arguments
    ---------
    folder: the run folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "sessions.jsonl"
        self._begun = time.monotonic()
        self._open = False

    def begin(self, nfev: int) -> None:
        """Record the beginning of a session; ``nfev`` calls had been made before it."""
        self._begun, self._open = time.monotonic(), True
        entry = {"time": lines.stamp(), "event": "begin", "pid": os.getpid(), "nfev": nfev}
        lines.append(self.path, entry, sync=False)  # no value would be lost with this line

    def end(self, nfev: int, status: str, message: str) -> None:
        """Record the end of the session: the calls made by then, the name of the `Status` and its message."""
        if self._open:
            self._open = False
            seconds = round(max(0.0, time.monotonic() - self._begun), 3)
            entry = {"event": "end", "nfev": nfev, "seconds": seconds, "status": status, "message": message}
            lines.append(self.path, {"time": lines.stamp(), **entry}, sync=False)

    def ended_as(self, status: str) -> bool:
        """Whether the latest session ended, and with this status."""
        records = [record for record in self.read() if record.get("event") in ("begin", "end")]
        return bool(records) and records[-1].get("event") == "end" and records[-1].get("status") == status

    def read(self) -> list[dict[str, Any]]:
        """Return the records of all sessions, oldest first."""
        return lines.read(self.path)
