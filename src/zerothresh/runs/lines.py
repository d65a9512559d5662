"""Records that are only ever added to: a line of JSON each."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from zerothresh.runs.paths import open_plain, read_plain

_MOST = 1 << 28


def stamp() -> str:
    """The time of day, with its zone."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def append(path: Path, words: dict[str, Any], *, sync: bool = True) -> None:
    """Add a line (and bring it to the disk); a torn line before it is ended first."""
    fd = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        size = os.fstat(fd).st_size
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        os.write(fd, (b"\n" if torn else b"") + json.dumps(words).encode() + b"\n")
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def read(path: Path) -> list[dict[str, Any]]:
    """All lines that can be read; a torn one is passed over."""
    if not os.path.lexists(path):
        return []
    found = []
    for line in read_plain(path, _MOST).splitlines():
        try:
            words = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(words, dict):
            found.append(words)
    return found
