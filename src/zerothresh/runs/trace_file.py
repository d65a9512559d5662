"""``trace.csv``: the rows of a trace, which only grows; a snapshot says how much of it is good, with a checksum."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard
from zlib import crc32

from zerothresh.runs.errors import RunError
from zerothresh.runs.paths import open_plain, truncate_plain
from zerothresh.session.trace import Trace

NAME = "trace.csv"
_MOST = 1 << 40  # rows or bytes; a snapshot that counts more is forged
_PIECE = 1 << 20  # bytes that are read at once


class Extent(NamedTuple):
    """How much of the file belongs to a snapshot."""

    rows: int = 0
    bytes: int = 0
    crc: int | None = 0  # of these bytes; None in folders of earlier versions, which had none


class TraceFile:
    """The file of a run's trace.

    Arguments
    ---------
    folder: the run folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.extent = Extent()

    def matches(self, meta: dict[str, Any]) -> bool:
        """Whether the file still holds the rows that belong to a snapshot, as they were written."""
        extent = extent_of(meta)
        return extent.bytes == 0 or _checksum(self.path, extent) is not None

    def resume(self, meta: dict[str, Any]) -> Extent:
        """Go on behind the rows of a snapshot; rows that are newer come again. Return how much is kept.

        A damaged file is set aside, and the trace begins anew.
        """
        extent = extent_of(meta)
        crc = _checksum(self.path, extent) if extent.bytes else 0
        if crc is None:
            if os.path.lexists(self.path):
                os.replace(self.path, self._aside())
            extent, crc = Extent(), 0
        if os.path.lexists(self.path):
            truncate_plain(self.path, extent.bytes)
        self.extent = extent._replace(crc=crc)
        return self.extent

    def _aside(self) -> Path:
        """Return a name for a damaged file that is not in use yet."""
        number = 1
        while os.path.lexists(path := self.path.with_name(f"trace-damaged-{number}.csv")):
            number += 1
        return path

    def append(self, trace: Trace) -> None:
        """Append the rows that are not in the file yet."""
        rows, size, crc = self.extent
        text = trace.flush_text(rows).encode()
        if not text:
            return
        fd = open_plain(self.path, os.O_WRONLY | os.O_CREAT)
        try:
            done = 0
            while done < len(text):
                done += os.pwrite(fd, text[done:], size + done)
            os.fsync(fd)
        finally:
            os.close(fd)
        self.extent = Extent(len(trace), size + len(text), crc32(text, crc or 0))


def extent_of(meta: dict[str, Any]) -> Extent:
    """Return how much of the file belongs to a snapshot, whose counts are not trusted; none at the beginning."""
    counts = meta.get("trace", {"rows": 0, "bytes": 0})
    if not isinstance(counts, dict):
        counts = {}
    rows, size, crc = counts.get("rows"), counts.get("bytes"), counts.get("crc")
    if not (_is_count(rows) and _is_count(size) and (crc is None or _is_count(crc))):
        raise RunError(f"the snapshot counts {counts!r:.80} for {NAME}, which no run writes")
    return Extent(rows, size, crc)


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _MOST


def _checksum(path: Path, extent: Extent) -> int | None:
    """Return the checksum of the rows that belong to a snapshot; None if they are damaged, or not there."""
    crc, left = 0, extent.bytes
    try:
        fd = open_plain(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with open(fd, "rb") as file:
        while left > 0 and (piece := file.read(min(left, _PIECE))):
            crc, left = crc32(piece, crc), left - len(piece)
    return crc if left == 0 and extent.crc in (None, crc) else None


def reader(path: Path, extent: Extent) -> Callable[[], str]:
    """Return a function that reads the rows of a snapshot, whenever somebody looks at them."""
    return partial(_read, path.absolute(), extent)


def _read(path: Path, extent: Extent) -> str:
    with open(open_plain(path, os.O_RDONLY), "rb") as file:
        data = file.read(extent.bytes)
    if len(data) < extent.bytes or extent.crc not in (None, crc32(data)):
        raise RunError(f"{path} has been changed or cut off since the run wrote it: continue the run, or use a copy")
    return data.decode("ascii")
