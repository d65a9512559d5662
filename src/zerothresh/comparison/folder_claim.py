"""Folders that belong to one comparison or report: taken, continued, or refused and left as they are."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zerothresh.basics import files
from zerothresh.runs.errors import RunError
from zerothresh.runs.paths import read_plain

_MOST_BYTES = 1 << 20  # that are read of an identity; a larger file was not written by us


def claim_folder(path: Path, identity: Mapping[str, Any]) -> bool:
    """Take the folder of ``path``, a file that says which work the folder belongs to.

    Arguments
    ---------
    path: the file of the identity, inside the folder.
    identity: what must be the same for earlier work to be continued; must be representable as JSON.

    Returns True if the folder holds earlier work with the same identity. Raises ValueError if it holds
    anything else, and leaves it as it is.
    """
    try:
        return _claimed(path, json.loads(json.dumps(dict(identity))))
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"the folder {path.parent} cannot be used ({reason}): name another folder") from None


def folder_path(folder: Any) -> Path:
    """Return what a user named as a folder as an absolute path, because an objective may change the current folder."""
    if not isinstance(folder, (str, os.PathLike)) or not isinstance(text := os.fspath(folder), str):
        raise ValueError(f"folder must be the path of a folder, not {folder!r}")
    if not text or "\0" in text:
        why = "it contains a null character" if text else 'the current folder is "."'
        raise ValueError(f"folder must be the path of a folder, not {text!r}: {why}")
    return Path(text).absolute()


def _claimed(path: Path, wanted: dict[str, Any]) -> bool:
    """Take the folder, as `claim_folder` says; OSError if the system does not let us."""
    folder = path.parent
    if folder.is_dir() and any(not files.is_part(entry.name) for entry in folder.iterdir()):
        earlier = _read(path)
        for name, value in wanted.items():
            if earlier.get(name) != value:
                raise ValueError(
                    f"the folder {folder} holds results with {name} = {earlier.get(name)!r:.60}, not {value!r:.60}: "
                    "name another folder, or remove that one"
                )
        files.check_folder(folder)
        return True
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"the folder {folder} cannot be made ({error.strerror}): name another folder") from None
    files.check_folder(folder)
    files.write(path, json.dumps(wanted, indent=1) + "\n")
    return False


def _read(path: Path) -> dict[str, Any]:
    """Read the identity of a folder; ValueError if there is none."""
    try:
        earlier = json.loads(read_plain(path, _MOST_BYTES))
        if isinstance(earlier, dict):
            return earlier
    except (OSError, ValueError, RecursionError, RunError):
        pass
    raise ValueError(
        f"the folder {path.parent} holds other files, but no readable {path.name} of earlier work to continue: name a "
        "new or empty folder"
    )
