"""The run folder: which files it holds, how a run is recovered from them, and when a snapshot is due."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check, files
from zerothresh.runs import snapshot
from zerothresh.runs.errors import LockLost, RunError
from zerothresh.runs.failures import Failures
from zerothresh.runs.identity import ABSENT, compare, digest
from zerothresh.runs.journal import FSYNC_MODES, FailureLine, Journal, Place, ValueLine, read_between
from zerothresh.runs.lock import Lock
from zerothresh.runs.paths import (
    JOURNAL,
    PART,
    SNAPSHOT,
    numbered,
    read_plain,
    run_path,
    sync_folder,
    sync_plain,
    truncate_plain,
)
from zerothresh.runs.sessions import Sessions
from zerothresh.version import __version__

SCHEMA = 1  # the version of the format of run.json
SHARE = 1 / 300  # the share of a run's time that snapshots may take, so that the whole run folder costs at most 2 %
LONG_JOURNAL = 1 << 28  # bytes after which a snapshot is due at any price: the next session has to read them all
LARGEST_COUNT = 1 << 53  # beyond it a whole number in JSON may have been rounded
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
    starts: the round of each journal after the snapshot's round, by the number of lines before it: by then the search
        must have reached that round, or values have been lost.
    """

    budget: int | None = None
    meta: dict[str, Any] | None = None
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    lines: tuple[ValueLine | FailureLine, ...] = ()
    starts: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredSnapshot:
    """A snapshot as it was read; without arguments, the beginning of a run.

    Attributes
    ----------
    round: the number of the round before which it was taken.
    path: the file.
    meta, arrays: the counts and numbers, and the arrays.
    place: the place in the journals from which values count that the snapshot does not have.
    calls: the number of calls that it counts, with and without a value.
    """

    round: int = 0
    path: Path | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    place: Place = field(default_factory=lambda: Place(0, 0))
    calls: int = 0


def read_snapshot(number: int, path: Path) -> StoredSnapshot:
    """Read the snapshot of round ``number``, whose content is not trusted; `RunError` if it is not valid."""
    meta, arrays = snapshot.read(path)
    if meta.get("round") != number:
        raise RunError(f"{path} belongs to round {meta.get('round')!r:.40}")
    place = meta.get("journal", [number, meta.get("journal_bytes") or 0])  # the second one by earlier versions
    if not isinstance(place, list) or len(place) != 2:
        raise RunError(f"{path} names {place!r:.40} as its place in the journals, which no run writes")
    counts = [place[0], place[1], meta.get("nfev"), meta.get("failed_calls")]
    if any(type(count) is not int or not 0 <= count < LARGEST_COUNT for count in counts):
        raise RunError(f"{path} has counts that no run writes ({counts!r:.80})")
    return StoredSnapshot(number, path, meta, arrays, Place(place[0], place[1]), meta["nfev"] + meta["failed_calls"])


def _leads(old: StoredSnapshot, new: StoredSnapshot, journals: list[tuple[int, Path]]) -> bool:
    """Whether the journals hold every call between two snapshots, so that the old one leads to the new one again."""
    lines, _, _ = read_between(journals, old.place, new.place)
    return _calls(lines) >= new.calls - old.calls


def _calls(lines: list[ValueLine | FailureLine]) -> int:
    """Return how many calls lines of a journal stand for."""
    return sum(len(line.values) if isinstance(line, ValueLine) else line.calls for line in lines)


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
            self._remove_parts()
        except OSError as error:
            why = f"the run folder {self.folder} cannot be used ({error.strerror}): name another folder"
            raise RunError(why) from None
        self.open_journal: Journal | None = None  # None until something is written
        self._tail: tuple[Path, int, int] | None = None  # the journal to continue: its path, its round, its end
        self._used: list[tuple[Path, int, int]] = []  # the journals with values since the snapshot, likewise
        self._base = 0  # the round of the newest snapshot
        self._places: dict[int, Place] = {}  # of the snapshots, by their rounds: where the values since begin
        self._broken: list[Path] = []  # snapshots that cannot be read
        self.closed = False
        self._name = ""  # identifies the run in its snapshots
        self._cost = _FIRST_COST  # the seconds that the last snapshot took
        self._last = time.monotonic()  # when it was written
        self.failures = Failures(self.folder)
        self.sessions = Sessions(self.folder)

    # Opening.

    def _remove_parts(self) -> None:
        """Remove what a process left that was killed while it wrote."""
        try:
            for name in filter(PART.fullmatch, os.listdir(self.folder)):
                (self.folder / name).unlink()
        except BaseException:
            self._lock.release()
            raise

    def recover(
        self,
        identity: dict[str, Any],
        budget: int,
        has_trace: Callable[[dict[str, Any]], bool] = lambda meta: True,
    ) -> Recovered:
        """Read what the folder knows about a run, or describe the run in it if the folder is new.

        Arguments
        ---------
        identity: the arguments that make the run what it is, from `identity_of`.
        budget: the budget of the run, which may be larger than before but not smaller.
        has_trace: whether the trace up to a snapshot, whose counts and numbers are given, is undamaged. If it is not,
            an older snapshot is preferred whose trace is, as long as the journals have all values since: then the
            trace is made again.

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
        return self._newest(described["budget"], has_trace)

    def _describe(self, identity: dict[str, Any], budget: int) -> None:
        """Write run.json."""
        if self.fsync != "never":
            self._sync_parents()
        first = stored_budget(self.folder)
        description = {"schema": SCHEMA, "zerothresh": __version__, "identity": identity, "budget": budget}
        description["first_budget"] = budget if first is None else first
        files.write(self.folder / "run.json", json.dumps(description, indent=1) + "\n")
        sync_folder(self.folder)

    def _newest(self, budget: int, has_trace: Callable[[dict[str, Any]], bool]) -> Recovered:
        """Read the newest valid snapshot, or the newest one that gives the whole trace, and the values since."""
        journals = numbered(self.folder, JOURNAL)
        stored, reasons = self._stored_snapshots()
        if not stored and reasons and not (journals and journals[0][0] == 0):
            raise RunError(
                f"no snapshot of {self.folder} can be read: {'; '.join(reasons)}. Restore one from a copy, or name "
                "another folder"
            )
        stored.append(StoredSnapshot())  # the beginning of the run
        chosen = newest = stored[0]
        if not has_trace(newest.meta):
            chosen = next((old for old in stored[1:] if has_trace(old.meta) and _leads(old, newest, journals)), newest)
        lines, ends, torn = read_between(journals, chosen.place)
        if torn:
            truncate_plain(ends[-1][0], ends[-1][2])  # or it would hide the journals that will follow it
        # Only a journal with values since the snapshot is continued, or the one that a new one would be named like: the
        # others belong to older snapshots, and are removed with them.
        used = [one for one in ends if one[2] > (chosen.place.byte if one[1] == chosen.place.number else 0)]
        used += [one for one in ends if not used and one[1] == chosen.round]
        self._used = [(path, number, end) for path, number, end, _ in used]
        self._tail = self._used[-1] if used else None
        starts = {before: number for _, number, _, before in reversed(used) if number > chosen.round}
        last = chosen.place.number if self._tail is None else self._tail[1]
        for number, path in journals:
            if number > last:  # empty, or after a gap: then its values belong to points that may not be asked for again
                path.unlink()
        self._places = {old.round: old.place for old in stored}
        if self._tail is None:
            self._places[chosen.round] = Place(chosen.round, 0)
        if chosen is newest and chosen.path is not None:
            self._check_fallback(chosen, stored[1], journals)
        if self.fsync != "never":
            self._make_durable()
        self._base = chosen.round
        meta = None if chosen.path is None else chosen.meta
        return Recovered(budget, meta, chosen.arrays, tuple(lines), starts)

    def drop_journals(self, first: int) -> None:
        """Remove the journals from number ``first`` on, because values before them have been lost."""
        for number, path in numbered(self.folder, JOURNAL):
            if number >= first:
                path.unlink()
        sync_folder(self.folder)  # or they could come back after a power failure, and repeat what is written now
        self._used = [one for one in self._used if one[1] < first]
        self._tail = self._used[-1] if self._used else None

    def _sync_parents(self) -> None:
        """Flush the name of the folder, and those of its parents: this or an earlier session may have made them."""
        for parent in self.folder.parents:
            with suppress(OSError):  # a parent that may not be read was not made by a run
                sync_folder(parent)

    def _make_durable(self) -> None:
        """Flush what the run goes on from to the disk: an earlier session may have left that to the system."""
        self._sync_parents()
        for _, path in numbered(self.folder, SNAPSHOT) + numbered(self.folder, JOURNAL):
            if path not in self._broken:
                sync_plain(path)
        for name in ("run.json", "trace.csv"):
            if os.path.lexists(self.folder / name):
                sync_plain(self.folder / name)
        sync_folder(self.folder)

    def _stored_snapshots(self) -> tuple[list[StoredSnapshot], list[str]]:
        """Read the snapshots of this run, the newest first; the others are broken, for the reasons that follow."""
        stored, reasons = list[StoredSnapshot](), list[str]()
        for number, path in reversed(numbered(self.folder, SNAPSHOT)):
            try:
                found = read_snapshot(number, path)
                if found.meta.get("run") != self._name:
                    raise RunError(f"{path} belongs to another run")
                stored.append(found)
            except RunError as error:
                reasons.append(str(error))
                self._broken.append(path)
        return stored, reasons

    def _check_fallback(self, newest: StoredSnapshot, old: StoredSnapshot, journals: list[tuple[int, Path]]) -> None:
        """Make sure that the run could fall back to the snapshot before this one without a gap in its values.

        An incomplete end of a journal between the two, which a power failure can leave, is cut off. If values were
        lost with it, these journals and the older snapshots are removed.
        """
        place = newest.place
        lines, ends, torn = read_between(journals, old.place, place)
        if torn and ends[-1][1] < place.number:
            truncate_plain(ends[-1][0], ends[-1][2])
        if _calls(lines) >= newest.calls - old.calls:
            return
        for number, path in numbered(self.folder, SNAPSHOT):
            if number < newest.round:
                path.unlink()
        for number, path in journals:
            behind = number == place.number and path.stat().st_size > place.byte  # values that the snapshot lacks
            if number < newest.round and number <= place.number and not behind and path != self._tail_path():
                path.unlink()

    def _tail_path(self) -> Path | None:
        """Return the journal that is continued, if there is one."""
        return None if self._tail is None else self._tail[0]

    # Writing.

    def journal(self) -> Journal:
        """Return the journal that follows the newest snapshot, and open it if necessary."""
        if self.closed:
            raise RunError(f"the run {self.folder} has been closed: open it again to continue it")
        self._lock.check_process()
        if self.open_journal is None:
            if self._tail is None:
                self._tail = self.folder / f"journal-{self._base:010d}.jsonl", self._base, 0
            path, _, end = self._tail
            self.open_journal = Journal(path, self.fsync, end)
            if end == 0 and self.fsync != "never":
                sync_folder(self.folder)  # or a power failure could destroy the name of a file whose content is safe
        return self.open_journal

    def due(self) -> bool:
        """Whether a snapshot is due: it would stay within its share of the run's time, or the journal is long."""
        if self.open_journal is not None and self.open_journal.size > LONG_JOURNAL:
            return True
        return time.monotonic() - self._last >= self._cost / SHARE

    def save(self, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Write a snapshot, and remove what is older than the snapshot before it.

        Arguments
        ---------
        meta: the counts and numbers of the search; it is the state before round ``meta["round"]``.
        arrays: the arrays of the search, from `flatten`.
        """
        begun = self._last = time.monotonic()
        self._lock.check()
        number = int(meta["round"])
        same = self._tail is not None and self._tail[1] == number  # no round has ended since the last snapshot
        if self._tail is None:
            place = Place(number, 0)
        else:  # an open journal may have grown since it was opened
            _, journal, end = self._tail
            place = Place(journal, end if self.open_journal is None else self.open_journal.mark())
        if self.open_journal is not None:
            self.open_journal.sync()  # the values before the snapshot must be on the disk before it is
        path = self.folder / f"snapshot-{number:010d}.npz"
        snapshot.write(path, {**meta, "run": self._name, "journal": place}, arrays)
        # From here on a new session begins with this snapshot, and reads what was written behind its place.
        self._base, self._places[number] = number, place
        if not same:
            old, self.open_journal, self._tail = self.open_journal, None, None
            self._places[number] = Place(number, 0)  # nothing more goes into the journal before
            if old is not None:
                old.close()
        sync_folder(
            self.folder
        )  # in all modes, before anything older is removed: the share of the time limits its cost
        while self._broken:  # they must not count as one of the two that are kept
            broken = self._broken.pop()
            if broken != path:
                broken.unlink(missing_ok=True)
        newest = [n for n, _ in numbered(self.folder, SNAPSHOT)][-2:]
        oldest = 0 if len(newest) < 2 else newest[0]
        since = self._places.get(oldest, Place(oldest, 0)).number  # the journal with the first values that it lacks
        for pattern, first in ((SNAPSHOT, oldest), (JOURNAL, min(oldest, since))):
            for n, old_path in numbered(self.folder, pattern):
                if n < first:
                    old_path.unlink(missing_ok=True)
        now = time.monotonic()
        self._cost, self._last = max(0.0, now - begun), now

    def close(self) -> None:
        """Close the journal and release the lock; in a forked child, both are left to the parent."""
        self.closed = True
        if self.open_journal is not None:
            with suppress(OSError):
                self.open_journal.close(whole=self.is_ours())
            self.open_journal = None
        self._lock.release()

    def check(self) -> None:
        """Raise `LockLost` or `RunError` unless this process may still write into the folder."""
        self._lock.check()

    def is_ours(self) -> bool:
        """Whether this process may still write into the folder."""
        try:
            self._lock.check()
        except (LockLost, RunError):
            return False
        return True


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


def stored_width(folder: str | os.PathLike[str] | None) -> int | None:
    """Return the declared width of the rounds of the run in a folder, or None if it holds no run."""
    if folder is None or not os.path.lexists((path := run_path(folder)) / "run.json"):
        return None
    width = read_description(path)["identity"].get("parallel", ABSENT["parallel"])
    return width if type(width) is int and width > 0 else None


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
