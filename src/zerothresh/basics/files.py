"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write(path: Path, content: str | bytes) -> None:
    """Write beside, flush to the disk, rename: a reader sees the old file or the new one, never a half."""
    data = content.encode() if isinstance(content, str) else content
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def is_part(name: str) -> bool:
    """Whether a file is what `write` leaves behind when it is killed."""
    return name.startswith(".") and name.endswith(".part")


def check_folder(folder: Path) -> None:
    """Refuse a folder that nothing can be written into, by trying: permissions alone do not tell."""
    if not folder.exists():
        raise ValueError(f"the folder {folder} does not exist: create it first, or name another")
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder: name a folder that files can be written into")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"the folder {folder} cannot be written into ({error.strerror}): name another") from None


def check_file(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that could not be written, or that is there already, before work is spent on its content."""
    check_folder(path.parent)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a plain file: name a file")
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists already: name another file, or overwrite it with --force")
