"""Files that are written completely or not at all, and checks that a file can be written."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write(path: Path, content: str | bytes) -> None:
    """Replace the content of a file atomically: a reader sees the old content or the new one, never a part of it.

    The content goes to a temporary file in the same folder, which is flushed to the disk and then renamed.

    Arguments
    ---------
    path: the file to create or to replace.
    content: the new content; text is encoded as UTF-8.
    """
    data = content.encode() if isinstance(content, str) else content
    part = _part(path)
    part.unlink(missing_ok=True)  # left by a process that was killed, or a link that somebody put there
    try:
        with open(part, "xb") as file:  # a new file: a link is not followed
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def _part(path: Path) -> Path:
    """Return the temporary file into which this process writes the content of a file."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def is_part(name: str) -> bool:
    """Whether a file name is that of a temporary file, which `write` leaves behind if the process is killed."""
    return name.startswith(".") and name.endswith(".part")


def check_folder(folder: Path) -> None:
    """Raise ``ValueError`` unless files can be written into a folder.

    A temporary file is created to find out, because the permissions alone do not tell (a disk may be read-only).
    """
    if not folder.exists():
        raise ValueError(f"the folder {folder} does not exist: create it first, or name another folder")
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder: name a folder that files can be written into")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"the folder {folder} cannot be written into ({error.strerror}): name another folder"
        ) from None


def check_file(path: Path, *, overwrite: bool) -> None:
    """Raise ``ValueError`` if a file could not be written, before work is spent on its content.

    Arguments
    ---------
    path: the file that will be written.
    overwrite: whether a file that exists already may be replaced.
    """
    try:
        check_folder(path.parent)
        if path.exists() and not path.is_file():
            raise ValueError(f"{path} is not a regular file: name another file")
        _part(path).exists()
    except OSError as error:  # a name that is too long, or a folder that may not be searched
        raise ValueError(f"{path} cannot be written ({error.strerror}): name another file") from None
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists already: name another file, or overwrite it with --force")
