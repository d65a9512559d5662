"""Folders that belong to one comparison: taken, gone on with, or refused and left alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zerothresh.basics import files
from zerothresh.runs.errors import RunError
from zerothresh.runs.paths import read_plain

_MOST = 1 << 20  # bytes of an identity that are read at the most


def claim(path: Path, identity: Mapping[str, Any]) -> bool:
    """Take the folder of ``path``, a file that says whose it is; True if it goes on with earlier work."""
    folder, wanted = path.parent, json.loads(json.dumps(dict(identity)))
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
        raise ValueError(f"the folder {folder} cannot be made ({error.strerror}): name another") from None
    files.check_folder(folder)
    files.write(path, json.dumps(wanted, indent=1) + "\n")
    return False


def _read(path: Path) -> dict[str, Any]:
    try:
        earlier = json.loads(read_plain(path, _MOST))
        if isinstance(earlier, dict):
            return earlier
    except (OSError, ValueError, RecursionError, RunError):
        pass
    raise ValueError(
        f"the folder {path.parent} holds other files, and no {path.name} that could go on: name a new or empty folder"
    )
