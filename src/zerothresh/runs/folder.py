"""The run folder: what is in it, how it is opened again, and when a snapshot is due."""

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
from zerothresh.runs.journal import FSYNC, FailureLine, Journal, ValueLine
from zerothresh.runs.journal import read as read_journal
from zerothresh.runs.lock import Lock
from zerothresh.runs.paths import JOURNAL, PART, SNAPSHOT, numbered, read_plain, sync_folder
from zerothresh.runs.sessions import Sessions
from zerothresh.version import __version__

SCHEMA = 1
SHARE = 1 / 300  # of the run's time that snapshots may take, so that all of a run folder stays within 2 %
_MOST_WORDS = 1 << 20


@dataclass(frozen=True)
class Recovered:
    """What a run folder knows of a run."""

    budget: int | None = None  # None: the folder is new
    meta: dict[str, Any] | None = None  # of the newest good snapshot; None: from the start
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    lines: tuple[ValueLine | FailureLine, ...] = ()


class Run:
    """A run folder, locked by this process.

    ``run.json`` says which run it is; ``snapshot-R.npz`` is the search before round R;
    ``journal-R.jsonl`` has the values that arrived since. Two snapshots are kept, and the journals
    since the older one, so that a broken snapshot falls back to the one before.
    """

    def __init__(self, folder: str | os.PathLike[str], *, fsync: str = "batch") -> None:
        try:
            self.folder = Path(folder).absolute()  # an objective may change the current folder
        except TypeError:
            raise RunError(f"run must be the path of a folder, not {folder!r}") from None
        self.fsync = check.one_of("fsync", fsync, FSYNC)
        if self.folder.exists() and not self.folder.is_dir():
            raise RunError(f"{self.folder} is not a folder: name a new folder, or one of an earlier run")
        known = self.folder / "run.json"
        if self.folder.is_dir() and not os.path.lexists(known) and not all(map(_is_begun, os.listdir(self.folder))):
            raise RunError(f"{self.folder} holds other files and no run.json: name a new folder for the run")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(self.folder)
            for name in filter(PART.fullmatch, os.listdir(self.folder)):
                (self.folder / name).unlink()  # of a holder that was killed while it wrote
        except OSError as error:
            raise RunError(f"the run folder {self.folder} cannot be used: {error.strerror}") from None
        self.open_journal: Journal | None = None  # the journal, once something has been written
        self._tail: tuple[Path, int, int] | None = None  # the journal to go on with: path, its round, its end
        self._base = 0  # the round of the newest snapshot
        self._broken: list[Path] = []
        self.closed = False
        self._name = ""  # of the run, in its snapshots
        self._cost = 0.005  # seconds that a snapshot takes: a guess, until one has been written
        self._last = time.monotonic()
        self.failures = Failures(self.folder)
        self.sessions = Sessions(self.folder)

    # Opening.

    def recover(self, identity: dict[str, Any], budget: int) -> Recovered:
        """What is known of this run; a folder of another run is refused."""
        self._name = run_name(identity)
        if not os.path.lexists(self.folder / "run.json"):
            self._describe(identity, budget)
            return Recovered()
        words = read_words(self.folder)
        compare(self.folder, words["identity"], json.loads(json.dumps(identity)))
        if budget < words["budget"]:
            raise RunError(
                f"the run in {self.folder} has a budget of {words['budget']} calls, and {budget} is less: a budget "
                "may stay or grow"
            )
        if budget > words["budget"]:
            self._describe(identity, budget)
        return self._newest(words["budget"])

    def _describe(self, identity: dict[str, Any], budget: int) -> None:
        first = stored_budget(self.folder)
        words = {"schema": SCHEMA, "zerothresh": __version__, "identity": identity, "budget": budget}
        words["first_budget"] = budget if first is None else first
        files.write(self.folder / "run.json", json.dumps(words, indent=1) + "\n")
        sync_folder(self.folder)

    def _newest(self, budget: int) -> Recovered:
        """The newest good snapshot and the journals since."""
        journals = numbered(self.folder, JOURNAL)
        reasons = []
        for number, path in [*reversed(numbered(self.folder, SNAPSHOT)), (0, None)]:
            meta: dict[str, Any] | None = None
            arrays: dict[str, NDArray[Any]] = {}
            if path is not None:
                try:
                    meta, arrays = snapshot.read(path)
                    if meta.get("round") != number or meta.get("run") != self._name:
                        raise RunError(f"{path} is of another run, or of another round")
                except RunError as error:
                    reasons.append(str(error))
                    self._broken.append(path)
                    continue
            elif reasons and not (journals and journals[0][0] == 0):
                raise RunError(f"no snapshot of {self.folder} can be read: {'; '.join(reasons)}")
            begin = 0 if meta is None else int(meta.get("journal_bytes") or 0)
            lines = self._lines_since(number, begin, journals)
            if meta is not None:
                self._check_fallback(number, meta, journals)
            self._base = number
            return Recovered(budget, meta, arrays, tuple(lines))
        raise AssertionError("unreachable")

    def _check_fallback(self, number: int, meta: dict[str, Any], journals: list[tuple[int, Path]]) -> None:
        """The journal between the snapshot before and this one must be whole, or falling back would end in a gap.

        A tail that a power cut tore off is cut; if values went with it, the older snapshot goes too.
        """
        older = [(old, path) for old, path in numbered(self.folder, SNAPSHOT) if old < number]
        back = older[-1][0] if older else 0
        known = 0
        with suppress(RunError, OSError, KeyError, TypeError):
            known = int(snapshot.read(older[-1][1])[0]["nfev"]) if older else 0
        between = [path for base, path in journals if back <= base < number]
        for path in between:
            lines, end, torn = read_journal(path)
            known += sum(line.values.size for line in lines if isinstance(line, ValueLine) and line.round >= back)
            if torn:
                os.truncate(path, end)
        if between and known < int(meta.get("nfev") or 0):
            for path in [*between, *(path for _, path in older)]:
                path.unlink(missing_ok=True)

    def _lines_since(self, number: int, begin: int, journals: list[tuple[int, Path]]) -> list[ValueLine | FailureLine]:
        """The journaled values since a snapshot; the last journal is the one to go on with."""
        lines: list[ValueLine | FailureLine] = []
        torn = False
        for base, path in journals:
            if base < number:
                continue
            if torn:  # values after a gap belong to points that may never be asked for again
                path.unlink()
                continue
            found, end, torn = read_journal(path, begin if base == number else 0)
            lines += found
            self._tail = path, base, end
        return lines

    # Writing.

    def journal(self) -> Journal:
        """The journal that follows the newest snapshot."""
        if self.closed:
            raise RunError(f"the run {self.folder} has been closed: open it again to go on")
        if self.open_journal is None:
            if self._tail is None:
                self._tail = self.folder / f"journal-{self._base:010d}.jsonl", self._base, 0
            path, _, end = self._tail
            self.open_journal = Journal(path, self.fsync, end)
            if end == 0 and self.fsync != "never":
                sync_folder(self.folder)  # a power cut must not take the name of a file whose content is safe
        return self.open_journal

    def due(self) -> bool:
        """Whether a snapshot would stay within its share of the run's time."""
        return time.monotonic() - self._last >= self._cost / SHARE

    def save(self, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Write a snapshot of the search before round meta["round"], and remove what is older than the one before."""
        begun = self._last = time.monotonic()
        number = int(meta["round"])
        meta = {**meta, "run": self._name}
        same = self._tail is not None and self._tail[1] == number  # no round since the last snapshot
        if same:
            meta = {**meta, "journal_bytes": self.journal().mark()}
        if self.open_journal is not None:
            self.open_journal.sync()  # the values before the snapshot are safe before it is
        snapshot.write(self.folder / f"snapshot-{number:010d}.npz", meta, arrays, sync=self.fsync != "never")
        if not same:
            if self.open_journal is not None:
                self.open_journal.close()
            self.open_journal, self._tail = None, None
        self._base = number
        while self._broken:  # they must not take the place of a good one
            broken = self._broken.pop()
            if broken.name != f"snapshot-{number:010d}.npz":
                broken.unlink(missing_ok=True)
        kept = [n for n, _ in numbered(self.folder, SNAPSHOT)][-2:]
        oldest = 0 if len(kept) < 2 else kept[0]
        for pattern in (SNAPSHOT, JOURNAL):
            for n, path in numbered(self.folder, pattern):
                if n < oldest:
                    path.unlink(missing_ok=True)
        now = time.monotonic()
        self._cost, self._last = max(0.0, now - begun), now

    def close(self) -> None:
        """Let go of the folder."""
        self.closed = True
        if self.open_journal is not None:
            with suppress(OSError):
                self.open_journal.close()
            self.open_journal = None
        self._lock.release()


def _is_begun(name: str) -> bool:
    """Whether a file may be there before run.json is: of a run that was killed at its very beginning."""
    return name == "lock" or PART.fullmatch(name) is not None


def run_name(identity: dict[str, Any]) -> str:
    """A short name for a run, which its snapshots bear."""
    return digest(np.frombuffer(json.dumps(identity).encode(), np.uint8))


def stored_seed(folder: str | os.PathLike[str] | None) -> int | None:
    """The seed of the run that a folder holds, if it holds one."""
    if folder is None or not os.path.lexists(Path(folder) / "run.json"):
        return None
    seed = read_words(Path(folder))["identity"].get("seed")
    return seed if type(seed) is int and seed >= 0 else None


def stored_budget(folder: str | os.PathLike[str] | None) -> int | None:
    """The budget that the run in a folder began with: a method may have planned with it."""
    if folder is None or not os.path.lexists(Path(folder) / "run.json"):
        return None
    words = read_words(Path(folder))
    first = words.get("first_budget", words["budget"])
    return first if type(first) is int and first > 0 else None


def read_words(folder: Path) -> dict[str, Any]:
    """run.json, checked."""
    path = folder / "run.json"
    try:
        words = json.loads(read_plain(path, _MOST_WORDS))
        if not isinstance(words, dict):
            raise ValueError
        if words.get("schema") != SCHEMA:
            raise RunError(f"{path} has schema {words.get('schema')!r:.40}, and this version reads schema {SCHEMA}")
        if not isinstance(words.get("identity"), dict) or type(words.get("budget")) is not int:
            raise ValueError
    except RunError:
        raise
    except FileNotFoundError:
        raise RunError(f"{folder} is no run folder: it has no run.json") from None
    except (ValueError, RecursionError):
        raise RunError(f"{path} is not what a run writes: the folder is refused") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
    return words
