"""Which files a command may write over: with --force any, and what the same run wrote before."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from zerothresh.basics import files
from zerothresh.runs import RunError, lines

_NOTES = "outputs.jsonl"  # in the run folder: the place and the digest of each file that was written


def check(path: Path, run: Path | None, *, force: bool) -> None:
    """Refuse a file that cannot be written, or exists and was not left by this run as it is now."""
    if run is not None and path.resolve().parent == run.resolve():
        raise ValueError(f"{path} is in the run folder {run}, which holds the run's own files: name another place")
    files.check_file(path, overwrite=force or (run is not None and path.is_file() and _is_of(run, path)))


def note(run: Path, path: Path, text: str) -> None:
    """Take down that the run is about to write a file; if that fails, the next session asks for --force."""
    with suppress(OSError, RunError):
        lines.append(run / _NOTES, {"file": _place(run, path), "digest": _digest(text.encode())})


def _is_of(run: Path, path: Path) -> bool:
    try:
        wanted = {"file": _place(run, path), "digest": _digest(path.read_bytes())}
        return wanted in lines.read(run / _NOTES)
    except (OSError, RunError):
        return False


def _place(run: Path, path: Path) -> str:
    """Where a file is, as seen from the run folder: both can be moved together."""
    return os.path.relpath(path.resolve(), run.resolve())


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
