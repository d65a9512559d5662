"""``trace.csv``: the rows of a trace, which only grows; a snapshot says how many bytes of it are good."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from zerothresh.runs.errors import RunError
from zerothresh.runs.paths import open_plain
from zerothresh.session.trace import Trace

NAME = "trace.csv"


class TraceFile:
    """The file of a run's trace.

    Attributes
    ----------
    rows, bytes: int, how many rows the file holds, and how many bytes they take.
    """

    def __init__(self, folder: Path, *, sync: bool) -> None:
        self.path, self._sync = folder / NAME, sync
        self.rows, self.bytes = 0, 0

    def cut(self, rows: int, size: int) -> None:
        """Cut off rows that are newer than the snapshot, which has ``rows`` of them: they come again."""
        self.rows, self.bytes = rows, size
        fd = open_plain(self.path, os.O_RDWR | os.O_CREAT)
        try:
            if os.fstat(fd).st_size < size or size < 0 or rows < 0:
                raise RunError(f"{NAME} is shorter than {size} bytes")
            os.ftruncate(fd, size)
        finally:
            os.close(fd)

    def append(self, trace: Trace) -> None:
        """Append the rows that are not in the file yet."""
        text = trace.flush_text(self.rows).encode()
        if not text:
            return
        fd = open_plain(self.path, os.O_WRONLY | os.O_CREAT)
        try:
            done = 0
            while done < len(text):
                done += os.pwrite(fd, text[done:], self.bytes + done)
            if self._sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        self.rows, self.bytes = len(trace), self.bytes + len(text)


def reader(path: Path, size: int) -> Callable[[], str]:
    """Return a function that reads the first ``size`` bytes of the file, whenever somebody looks at the rows."""
    return partial(_read, path.absolute(), size)


def _read(path: Path, size: int) -> str:
    with open(path, encoding="ascii", newline="") as file:
        return file.read(size)
