"""Files of records that are only ever appended to: one JSON object per line."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from zerothresh.runs.paths import open_plain, read_plain

_MOST = 1 << 28  # bytes; a longer file is refused


def stamp() -> str:
    """Return the present date and time, with the time zone, in ISO 8601 format."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def append(path: Path, record: dict[str, Any], *, sync: bool = True) -> None:
    """Append a record to a file.

    If the process that wrote the previous line was killed in the middle of it, that line is ended first.

    Arguments
    ---------
    path: the file, which is created if it does not exist.
    record: the JSON object.
    sync: whether to wait until the line is on the disk; True by default.
    """
    fd = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        size = os.fstat(fd).st_size
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        os.write(fd, (b"\n" if torn else b"") + json.dumps(record).encode() + b"\n")
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file; incomplete lines are skipped, and a file that does not exist has no records."""
    if not os.path.lexists(path):
        return []
    found = []
    for line in read_plain(path, _MOST).splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            found.append(record)
    return found
