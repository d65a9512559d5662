"""The run folder: which files it holds, how a run is recovered from them, and when a snapshot is due."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check, files
from zerothresh.runs import snapshot
from zerothresh.runs.errors import RunError
from zerothresh.runs.failures import Failures
from zerothresh.runs.identity import compare, digest
from zerothresh.runs.journal import FSYNC_MODES, FailureLine, Journal, ValueLine
from zerothresh.runs.journal import read as read_journal
from zerothresh.runs.lock import Lock
from zerothresh.runs.paths import JOURNAL, PART, SNAPSHOT, numbered, read_plain, run_path, sync_folder
from zerothresh.runs.sessions import Sessions
from zerothresh.version import __version__

SCHEMA = 1  # the version of the format of run.json
SHARE = 1 / 300  # the share of a run's time that snapshots may take, so that the whole run folder costs at most 2 %
_MOST_BYTES = 1 << 20  # a longer run.json is refused
_FIRST_COST = 0.005  # seconds; an assumption about the time of a snapshot, until one has been written


@dataclass(frozen=True)
class Recovered:
    """What a run folder knows about a run.

    Attributes
    ----------
    budget: the budget of the previous session; None if the folder is new.
    meta: the counts and numbers of the newest valid snapshot; None if the run must be replayed from its start.
    arrays: the arrays of that snapshot.
    lines: the values and failures that the journals hold since then.
    """

    budget: int | None = None
    meta: dict[str, Any] | None = None
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    lines: tuple[ValueLine | FailureLine, ...] = ()


class Run:
    """A run folder that this process has locked.

    ``run.json`` says which run it is, ``snapshot-R.npz`` holds the state of the search before round R, and
    ``journal-R.jsonl`` holds the values that have arrived since. The last two snapshots are kept, and the journals
    since the older one, so that a run can fall back to the older snapshot if the newer one is damaged.

    Arguments
    ---------
    folder: the path of the folder, which is created if it does not exist.
    fsync: when journaled values are forced to the disk, one of ``FSYNC_MODES``; "batch" by default.
    """

    def __init__(self, folder: str | os.PathLike[str], *, fsync: str = "batch") -> None:
        self.folder = run_path(folder).absolute()  # absolute, because an objective may change the current folder
        self.fsync = check.one_of("fsync", fsync, FSYNC_MODES)
        if self.folder.exists() and not self.folder.is_dir():
            raise RunError(f"{self.folder} is not a folder: name a new folder, or the folder of an earlier run")
        described = os.path.lexists(self.folder / "run.json")
        if self.folder.is_dir() and not described and not all(map(_may_precede_description, os.listdir(self.folder))):
            raise RunError(f"{self.folder} holds other files and no run.json: name a new or empty folder for the run")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(self.folder)
            for name in filter(PART.fullmatch, os.listdir(self.folder)):
                (self.folder / name).unlink()  # left by a process that was killed while it wrote
        except OSError as error:
            why = f"the run folder {self.folder} cannot be used ({error.strerror}): name another folder"
            raise RunError(why) from None
        self.open_journal: Journal | None = None  # None until something is written
        self._tail: tuple[Path, int, int] | None = None  # the journal to continue: its path, its round, its end
        self._base = 0  # the round of the newest snapshot
        self._broken: list[Path] = []  # snapshots that cannot be read
        self.closed = False
        self._name = ""  # identifies the run in its snapshots
        self._cost = _FIRST_COST  # the seconds that the last snapshot took
        self._last = time.monotonic()  # when it was written
        self.failures = Failures(self.folder)
        self.sessions = Sessions(self.folder)

    # Opening.

    def recover(self, identity: dict[str, Any], budget: int) -> Recovered:
        """Read what the folder knows about a run, or describe the run in it if the folder is new.

        Arguments
        ---------
        identity: the arguments that make the run what it is, from `identity_of`.
        budget: the budget of the run, which may be larger than before but not smaller.

        Returns
        -------
        The newest valid snapshot and the values since. Raises `RunError` if the folder belongs to another run.
        """
        self._name = run_name(identity)
        if not os.path.lexists(self.folder / "run.json"):
            self._describe(identity, budget)
            return Recovered()
        described = read_description(self.folder)
        compare(self.folder, described["identity"], json.loads(json.dumps(identity)))
        if budget < described["budget"]:
            raise RunError(
                f"the run in {self.folder} has a budget of {described['budget']} calls, which is more than the "
                f"{budget} that were given now: a budget may stay or grow"
            )
        if budget > described["budget"]:
            self._describe(identity, budget)
        return self._newest(described["budget"])

    def _describe(self, identity: dict[str, Any], budget: int) -> None:
        """Write run.json."""
        first = stored_budget(self.folder)
        description = {"schema": SCHEMA, "zerothresh": __version__, "identity": identity, "budget": budget}
        description["first_budget"] = budget if first is None else first
        files.write(self.folder / "run.json", json.dumps(description, indent=1) + "\n")
        sync_folder(self.folder)

    def _newest(self, budget: int) -> Recovered:
        """Read the newest valid snapshot and the journals since."""
        journals = numbered(self.folder, JOURNAL)
        reasons = []
        for number, path in [*reversed(numbered(self.folder, SNAPSHOT)), (0, None)]:
            meta: dict[str, Any] | None = None
            arrays: dict[str, NDArray[Any]] = {}
            if path is not None:
                try:
                    meta, arrays = snapshot.read(path)
                    if meta.get("round") != number or meta.get("run") != self._name:
                        raise RunError(f"{path} belongs to another run or another round")
                except RunError as error:
                    reasons.append(str(error))
                    self._broken.append(path)
                    continue
            elif reasons and not (journals and journals[0][0] == 0):
                raise RunError(
                    f"no snapshot of {self.folder} can be read: {'; '.join(reasons)}. Restore one from a copy, or name "
                    "another folder"
                )
            begin = 0 if meta is None else int(meta.get("journal_bytes") or 0)
            lines = self._lines_since(number, begin, journals)
            if meta is not None:
                self._check_fallback(number, meta, journals)
            self._base = number
            return Recovered(budget, meta, arrays, tuple(lines))
        raise AssertionError("unreachable")

    def _check_fallback(self, number: int, meta: dict[str, Any], journals: list[tuple[int, Path]]) -> None:
        """Make sure that the run could fall back to the snapshot before this one without a gap in its values.

        An incomplete end of a journal between the two, which a power failure can leave, is cut off. If values were
        lost with it, these journals and the older snapshots are removed.
        """
        older = [(old, path) for old, path in numbered(self.folder, SNAPSHOT) if old < number]
        back = older[-1][0] if older else 0
        count = 0
        with suppress(RunError, OSError, KeyError, TypeError):
            count = int(snapshot.read(older[-1][1])[0]["nfev"]) if older else 0
        between = [path for base, path in journals if back <= base < number]
        for path in between:
            lines, end, torn = read_journal(path)
            count += sum(line.values.size for line in lines if isinstance(line, ValueLine) and line.round >= back)
            if torn:
                os.truncate(path, end)
        if between and count < int(meta.get("nfev") or 0):
            for path in [*between, *(path for _, path in older)]:
                path.unlink(missing_ok=True)

    def _lines_since(self, number: int, begin: int, journals: list[tuple[int, Path]]) -> list[ValueLine | FailureLine]:
        """Read the journals since a snapshot from byte ``begin`` on; the last one is the journal to continue."""
        lines: list[ValueLine | FailureLine] = []
        torn = False
        for base, path in journals:
            if base < number:
                continue
            if torn:  # values after a gap belong to points that may not be asked for again
                path.unlink()
                continue
            found, end, torn = read_journal(path, begin if base == number else 0)
            lines += found
            self._tail = path, base, end
        return lines

    # Writing.

    def journal(self) -> Journal:
        """Return the journal that follows the newest snapshot, and open it if necessary."""
        if self.closed:
            raise RunError(f"the run {self.folder} has been closed: open it again to continue it")
        if self.open_journal is None:
            if self._tail is None:
                self._tail = self.folder / f"journal-{self._base:010d}.jsonl", self._base, 0
            path, _, end = self._tail
            self.open_journal = Journal(path, self.fsync, end)
            if end == 0 and self.fsync != "never":
                sync_folder(self.folder)  # or a power failure could destroy the name of a file whose content is safe
        return self.open_journal

    def due(self) -> bool:
        """Whether a snapshot now would keep snapshots within their share of the run's time."""
        return time.monotonic() - self._last >= self._cost / SHARE

    def save(self, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Write a snapshot, and remove what is older than the snapshot before it.

        Arguments
        ---------
        meta: the counts and numbers of the search; it is the state before round ``meta["round"]``.
        arrays: the arrays of the search, from `flatten`.
        """
        begun = self._last = time.monotonic()
        number = int(meta["round"])
        meta = {**meta, "run": self._name}
        same = self._tail is not None and self._tail[1] == number  # no round has ended since the last snapshot
        if same:
            meta = {**meta, "journal_bytes": self.journal().mark()}
        if self.open_journal is not None:
            self.open_journal.sync()  # the values before the snapshot must be on the disk before it is
        snapshot.write(self.folder / f"snapshot-{number:010d}.npz", meta, arrays, sync=self.fsync != "never")
        if not same:
            if self.open_journal is not None:
                self.open_journal.close()
            self.open_journal, self._tail = None, None
        self._base = number
        while self._broken:  # they must not count as one of the two that are kept
            broken = self._broken.pop()
            if broken.name != f"snapshot-{number:010d}.npz":
                broken.unlink(missing_ok=True)
        newest = [n for n, _ in numbered(self.folder, SNAPSHOT)][-2:]
        oldest = 0 if len(newest) < 2 else newest[0]
        for pattern in (SNAPSHOT, JOURNAL):
            for n, path in numbered(self.folder, pattern):
                if n < oldest:
                    path.unlink(missing_ok=True)
        now = time.monotonic()
        self._cost, self._last = max(0.0, now - begun), now

    def close(self) -> None:
        """Close the journal and release the lock."""
        self.closed = True
        if self.open_journal is not None:
            with suppress(OSError):
                self.open_journal.close()
            self.open_journal = None
        self._lock.release()


def _may_precede_description(name: str) -> bool:
    """Whether a file may exist without run.json: a run that was killed at its very beginning leaves such files."""
    return name == "lock" or PART.fullmatch(name) is not None


def run_name(identity: dict[str, Any]) -> str:
    """Return a digest of the identity of a run, which its snapshots contain."""
    return digest(np.frombuffer(json.dumps(identity).encode(), np.uint8))


def stored_seed(folder: str | os.PathLike[str] | None) -> int | None:
    """Return the seed of the run in a folder, or None if it holds no run."""
    if folder is None or not os.path.lexists((path := run_path(folder)) / "run.json"):
        return None
    seed = read_description(path)["identity"].get("seed")
    return seed if type(seed) is int and seed >= 0 else None


def stored_budget(folder: str | os.PathLike[str] | None) -> int | None:
    """Return the budget that the run in a folder began with, or None if it holds no run.

    A continued run with a larger budget needs it, because the method may have planned with the first one.
    """
    if folder is None or not os.path.lexists((path := run_path(folder)) / "run.json"):
        return None
    description = read_description(path)
    first = description.get("first_budget", description["budget"])
    return first if type(first) is int and first > 0 else None


def read_description(folder: Path) -> dict[str, Any]:
    """Read and check run.json, which describes the run.

    Arguments
    ---------
    folder: the run folder.

    Returns
    -------
    The content: "schema", "zerothresh" (the version), "identity", "budget" and "first_budget". Raises `RunError`
    if the folder is no run folder, or if the file is not valid.
    """
    path = folder / "run.json"
    try:
        description = json.loads(read_plain(path, _MOST_BYTES))
        if not isinstance(description, dict):
            raise ValueError
        if description.get("schema") != SCHEMA:
            raise RunError(
                f"{path} has schema {description.get('schema')!r:.40}, but this version reads schema {SCHEMA}: "
                "continue the run with the version of zerothresh that wrote it"
            )
        if not isinstance(description.get("identity"), dict) or type(description.get("budget")) is not int:
            raise ValueError
    except RunError:
        raise
    except FileNotFoundError:
        raise RunError(f"{folder} is not a run folder, because it has no run.json: name the folder of a run") from None
    except (ValueError, RecursionError):
        raise RunError(f"{path} is not what a run writes: restore it from a copy, or name another folder") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
    return description
