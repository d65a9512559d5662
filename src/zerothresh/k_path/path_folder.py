"""The folder of a path: what was asked for so far, and beside it the run folder with every value."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from zerothresh.basics import files
from zerothresh.k_path.path_program import Segment
from zerothresh.runs import RunError
from zerothresh.runs.paths import read_plain, run_path, sync_folder
from zerothresh.version import __version__

SCHEMA = 1
FILE, CALLS = "path.json", "calls"
MOST_BYTES = 1 << 24


class PathFolder:
    """A folder with the file ``path.json`` and the run folder ``calls``.

    Arguments
    ---------
    folder: path; it may not exist yet.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = run_path(folder).absolute()
        self.calls = self.folder / CALLS

    @property
    def exists(self) -> bool:
        """Whether a path has been kept here."""
        return os.path.lexists(self.folder / FILE)

    def segments(self) -> list[Segment]:
        """Return what was asked for so far."""
        return [Segment(tuple(s["ks"]), s["budget"], s["cv"]) for s in self.read()["segments"]] if self.exists else []

    def read(self) -> dict[str, Any]:
        """Return the content of path.json, which is checked."""
        path = self.folder / FILE
        try:
            content = json.loads(read_plain(path, MOST_BYTES))
            if content["schema"] != SCHEMA:
                raise RunError(f"{path} has a schema of another version of zerothresh: continue it with that version")
            for segment in content["segments"]:
                ks = segment["ks"]
                counts = [*ks, segment["budget"]]
                if any(type(count) is not int or count < 1 for count in counts) or type(segment["cv"]) is not int:
                    raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise RunError(
                f"{path} is not what a path writes: restore it from a copy, or name another folder"
            ) from None
        return dict(content)

    def write(self, segments: Sequence[Segment], table: dict[str, list[Any]] | None = None) -> None:
        """Write what is asked for, and the table of what was found."""
        content = {
            "schema": SCHEMA,
            "zerothresh": __version__,
            "segments": [segment._asdict() for segment in segments],
            "table": table,
        }
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            files.write(self.folder / FILE, json.dumps(content, indent=1) + "\n")
            sync_folder(self.folder)
        except OSError as error:
            raise RunError(f"the folder {self.folder} cannot be used: {error.strerror or error}") from None

    def writer(self, segments: Sequence[Segment]) -> Callable[[], bool]:
        """Return a function that writes what is asked for, if there is a run folder, and keeps the earlier table.

        It returns whether there is one: until then a call may still be refused, and must leave nothing behind.
        """
        table = self.read().get("table") if self.exists else None

        def write() -> bool:
            there = self.calls.exists()
            if there:
                self.write(segments, table)
            return there

        return write

    def check_new(self) -> None:
        """Refuse a folder that holds something else."""
        if self.exists or not os.path.lexists(self.folder):
            return
        if not self.folder.is_dir():
            raise RunError(f"{self.folder} is not a folder: name a new folder, or the folder of an earlier path")
        if os.path.lexists(self.folder / "run.json"):
            raise RunError(f"{self.folder} holds a single run, not a path: name another folder")
        names = {name for name in os.listdir(self.folder) if not files.is_part(name)}
        if names - {CALLS}:  # a path that was killed before its first call has this alone
            raise RunError(f"{self.folder} holds other files and no {FILE}: name a new or empty folder for the path")
