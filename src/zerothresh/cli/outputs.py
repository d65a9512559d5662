"""Which files a command may overwrite: any with --force, and otherwise those that the same run wrote before."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from zerothresh.basics import files
from zerothresh.runs import lines

_NOTES = "outputs.jsonl"  # in the run folder: the path and the digest of each file that was written


def check(path: Path, run: Path | None, *, force: bool) -> None:
    """Refuse a file that cannot be written, or that exists and is not what this run wrote."""
    if run is not None and _resolved(path).parent == _resolved(run):
        raise ValueError(f"{path} is in the run folder {run}, which holds only the run's own files: name another path")
    files.check_file(path, overwrite=force or (run is not None and _is_of(run, path)))


def note(run: Path, path: Path, text: str) -> None:
    """Record that the run is about to write a file; if that fails, the next session needs --force."""
    with suppress(OSError, ValueError):
        lines.append(run / _NOTES, {"file": _place(run, path), "digest": _digest(text.encode())})


def _is_of(run: Path, path: Path) -> bool:
    """Return whether a file is what the run wrote, unchanged."""
    try:
        if not path.is_file():  # a pipe has no content to compare
            return False
        wanted = {"file": _place(run, path), "digest": _digest(path.read_bytes())}
        return wanted in lines.read(run / _NOTES)
    except (OSError, ValueError):
        return False


def _place(run: Path, path: Path) -> str:
    """Return the path of a file relative to the run folder, so that both can be moved together."""
    return os.path.relpath(_resolved(path), _resolved(run))


def _resolved(path: Path) -> Path:
    """Return a path without links; ValueError if they lead in a circle."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        raise ValueError(f"{path} does not lead to any place: name another path") from None


def _digest(content: bytes) -> str:
    """Return the digest of a file's content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
