"""Opening files of a run folder: plain files of the folder itself, never what a link points at."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

from zerothresh.runs.errors import RunError

_GUARD = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK if os.name == "posix" else 0

SNAPSHOT = re.compile(r"snapshot-(\d{10})\.npz")
JOURNAL = re.compile(r"journal-(\d{10})\.jsonl")
PART = re.compile(r"\.run\.json\.\d+\.part|snapshot-\d{10}\.npz\.part")  # half-written, on the way to a rename


def open_plain(path: Path, flags: int) -> int:
    """A descriptor of a plain file; links, pipes and devices are refused."""
    try:
        fd = os.open(path, flags | _GUARD, 0o644)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise RunError(f"{path} is a link; a run folder holds plain files only, so it is not opened") from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise RunError(f"{path} is not a plain file; a run folder holds plain files only, so it is not opened")
    return fd


def read_plain(path: Path, most: int) -> bytes:
    """The content of a plain file of at most so many bytes."""
    fd = open_plain(path, os.O_RDONLY)
    with open(fd, "rb") as file:
        size = os.fstat(fd).st_size
        if size > most:
            raise RunError(f"{path} has {size:,} bytes; at most {most:,} are expected, so it is not read")
        return file.read(most + 1)


def numbered(folder: Path, pattern: re.Pattern[str]) -> list[tuple[int, Path]]:
    """The files of a kind with their numbers, in order; other names are left alone."""
    found = [(int(match[1]), folder / name) for name in os.listdir(folder) if (match := pattern.fullmatch(name))]
    return sorted(found)


def sync_folder(folder: Path) -> None:
    """Make new names last through a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
