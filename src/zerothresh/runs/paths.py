"""Opening the files of a run folder: only regular files of the folder itself, never the target of a link."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

from zerothresh.basics import check
from zerothresh.basics.text import shorten
from zerothresh.runs.errors import RunError

_GUARD = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK if os.name == "posix" else 0

SNAPSHOT = re.compile(r"snapshot-(\d{10})\.npz")
JOURNAL = re.compile(r"journal-(\d{10})\.jsonl")
PART = re.compile(
    r"\.run\.json\.\d+\.part|snapshot-\d{10}\.npz\.part"
)  # temporary files, which are renamed when they are complete


def run_path(folder: object) -> Path:
    """Check that a value can be the path of a run folder, which need not exist yet.

    Arguments
    ---------
    folder: what the user passed as ``run``: a string, or another path.

    Returns
    -------
    The path. Raises `RunError` if the value is no path, or if the system cannot look for files in the folder.
    """
    try:
        text = os.fspath(folder) if isinstance(folder, (str, os.PathLike)) else None
    except Exception:  # an object that says it is a path, and cannot say which
        text = None
    if not isinstance(text, str):
        raise RunError(f"run must be the path of a folder, not {check.shown(folder)}")
    if not text or "\0" in text:
        why = "it contains a null character" if text else 'the current folder is "."'
        raise RunError(f"run must be the path of a folder, not {check.shown(text)}: {why}")
    path = Path(text)
    try:
        os.lstat(path / "run.json")
    except (FileNotFoundError, NotADirectoryError):  # a new folder; the callers refuse what is no folder
        pass
    except OSError as error:
        shown = shorten(text, check.LONGEST_SHOWN)
        raise RunError(f"the run folder {shown} cannot be used ({error.strerror}): name another folder") from None
    return path


def open_plain(path: Path, flags: int) -> int:
    """Open a regular file; links, pipes and devices are refused with `RunError`.

    So is a file with a second name (a hard link) if it is opened for writing: the other name may be anybody's.

    Arguments
    ---------
    path: the file.
    flags: the flags of ``os.open``.

    Returns
    -------
    The file descriptor.
    """
    try:
        fd = os.open(path, flags | _GUARD, 0o644)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise RunError(f"{path} is a link, but a run folder holds only regular files: it is not opened") from None
        raise
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise RunError(f"{path} is not a regular file, but a run folder holds only regular files: it is not opened")
    if found.st_nlink > 1 and flags & (os.O_WRONLY | os.O_RDWR):
        os.close(fd)
        raise RunError(
            f"{path} has another name elsewhere (a hard link), whose content would change too: it is not written; "
            "copy the folder, and name the copy"
        )
    return fd


def read_plain(path: Path, most: int) -> bytes:
    """Return the content of a regular file; a file of more than ``most`` bytes is refused with `RunError`."""
    fd = open_plain(path, os.O_RDONLY)
    with open(fd, "rb") as file:
        size = os.fstat(fd).st_size
        if size > most:
            raise RunError(f"{path} has {size:,} bytes, but at most {most:,} are expected: it is not read")
        return file.read(most + 1)


def truncate_plain(path: Path, size: int) -> None:
    """Cut a regular file off after ``size`` bytes; see `open_plain`."""
    fd = open_plain(path, os.O_WRONLY)
    try:
        os.ftruncate(fd, size)
    finally:
        os.close(fd)


def numbered(folder: Path, pattern: re.Pattern[str]) -> list[tuple[int, Path]]:
    """Return the files of a folder whose names match a pattern, with their numbers, in increasing order."""
    found = [(int(match[1]), folder / name) for name in os.listdir(folder) if (match := pattern.fullmatch(name))]
    return sorted(found)


def sync_plain(path: Path) -> None:
    """Flush the content of a regular file to the disk."""
    fd = open_plain(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk, so that new file names survive a power failure."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
