"""Looking into a run folder from outside: nothing is locked or changed, also while another process writes it."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.runs import snapshot
from zerothresh.runs.errors import RunError
from zerothresh.runs.failures import Failures
from zerothresh.runs.folder import read_words
from zerothresh.runs.journal import FailureLine
from zerothresh.runs.journal import read as read_journal
from zerothresh.runs.lock import holder_of
from zerothresh.runs.paths import JOURNAL, SNAPSHOT, numbered, open_plain
from zerothresh.runs.sessions import Sessions
from zerothresh.session.trace import Trace

Array = NDArray[np.float64]

_TRIES = 50  # a writer removes old files while they are read: then all is read again
_LAST = 5  # failures that are told
_OVER = ("BUDGET", "CONVERGED", "DIVERGED")  # ends that the same command does not take further


@dataclass(frozen=True)
class Diagnosis:
    """The newest good snapshot of a run, and what the journal has beyond it."""

    folder: Path
    words: dict[str, Any]  # run.json
    meta: dict[str, Any] | None  # of the snapshot; None: there is none yet
    arrays: dict[str, NDArray[Any]]
    values: int  # in the journal, since the snapshot
    failed: int  # calls that failed, the same
    broken: tuple[str, ...]  # snapshots that cannot be read, and why

    def best(self) -> Array:
        """The best point whose F is known, else the iterate."""
        if self.meta is None:
            raise RunError(f"{self.folder} has no snapshot yet, so there is no point: go on with the run first")
        point = self.arrays.get("best_x", self.arrays.get("state.theta"))
        d = self.words["identity"].get("d")
        if point is None or point.shape != (d,) or point.dtype != np.float64 or not np.isfinite(point).all():
            raise RunError(f"the snapshot in {self.folder} has no point of d = {d!r:.40} numbers: it is refused")
        return point

    def trace(self) -> Trace:
        """The steps up to the snapshot."""
        trace = Trace()
        kept = {} if self.meta is None else self.meta.get("trace")
        rows, size, changes = (_count(self.folder, kept, name, 0) for name in ("rows", "bytes", "changes"))
        if not rows:
            return trace
        path = self.folder / "trace.csv"
        try:
            os.close(open_plain(path, os.O_RDONLY))
            trace.resume(path, size, rows, changes, np.empty(0, np.int64))
            found = len(trace.nfev)
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, OverflowError, IndexError) as error:
            raise RunError(f"{path} is not what a run writes ({error})") from None
        if found != rows:
            raise RunError(f"{path} has {found} of the {rows} rows that the snapshot speaks of: it is broken")
        return trace


@dataclass(frozen=True)
class Fault:
    """A call that failed."""

    time: str
    component: int
    calls: int
    error: str


@dataclass(frozen=True)
class Inspection:
    """What a run folder tells."""

    folder: str
    state: str  # running, ended, stopped (goes on by the same command), crashed (the same), new
    holder: str | None  # who writes it now
    status: str | None  # of the latest end: a `zerothresh.Status` by name
    message: str | None  # the same in a sentence
    identity: dict[str, Any]  # method, hyper-parameters, estimator, seed, d, n, k, problem
    budget: int
    calls: int  # made, those in the journal too
    since_snapshot: int  # those in the journal
    failed_calls: int
    spent: float | None  # in the user's currency, at the snapshot; None if no cost was given
    best_fun: float | None
    recent: float | None  # a running mean of component values, for when no F is known
    steps: int  # at the snapshot, as all that follow
    nht: int
    support: list[int] | None  # of the best point
    support_changes: int
    sessions: int
    crashes: int  # sessions that did not end in order
    failures: int
    last_failures: list[Fault]
    speed: float | None  # calls a second, of the latest session
    seconds_left: float | None  # for the calls that the budget still has, at that speed
    broken: list[str]


def look(folder: str | os.PathLike[str]) -> Diagnosis:
    """Read the newest good snapshot and count what came after it."""
    path = _folder(folder)
    for _ in range(_TRIES):
        try:
            before = _names(path)
            found = _look(path)
            if _names(path) == before:
                return found
        except FileNotFoundError:
            pass
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}") from None
        time.sleep(0.01)
    raise RunError(f"{path} changed each time it was read: try again")


def _folder(folder: str | os.PathLike[str]) -> Path:
    path = Path(folder)
    if not path.exists():
        raise RunError(f"there is no folder {path}: name the folder of a run")
    if not path.is_dir():
        raise RunError(f"{path} is not a folder: name the folder of a run")
    read_words(path)
    return path


def _names(folder: Path) -> list[tuple[int, Path]]:
    return numbered(folder, SNAPSHOT) + numbered(folder, JOURNAL)


def _look(folder: Path) -> Diagnosis:
    words = read_words(folder)
    meta: dict[str, Any] | None = None
    arrays: dict[str, NDArray[Any]] = {}
    base, broken = 0, []
    for number, path in reversed(numbered(folder, SNAPSHOT)):
        try:
            meta, arrays = snapshot.read(path)
            if meta.get("round") != number:
                raise RunError(f"{path} is of round {meta.get('round')!r:.40}")
            base = number
            break
        except RunError as error:
            meta, arrays = None, {}
            broken.append(str(error))
    journals = [(number, path) for number, path in numbered(folder, JOURNAL) if number >= base]
    if broken and meta is None and not (journals and journals[0][0] == 0):
        raise RunError(f"no snapshot of {folder} can be read: {'; '.join(broken)}")
    begin = 0 if meta is None else _count(folder, meta, "journal_bytes", 0)
    values = failed = 0
    for number, path in journals:
        lines, _, torn = read_journal(path, begin if number == base else 0)
        for line in lines:
            if line.round >= base:
                if isinstance(line, FailureLine):
                    failed += line.calls
                else:
                    values += line.values.size
        if torn:  # what follows a gap is not used
            break
    return Diagnosis(folder, words, meta, arrays, values, failed, tuple(broken))


def inspect(folder: str | os.PathLike[str]) -> Inspection:
    """State, spend, best value, sessions, failures and speed of a run.

    >>> import tempfile
    >>> import zerothresh as zt
    >>> with tempfile.TemporaryDirectory() as run:
    ...     found = zt.minimize(lambda x: (x**2).sum(), 4, 2, budget=99, method=zt.FGZOHT(0.1), seed=0, run=run)
    ...     told = inspect(run)
    >>> told.state, told.status, told.calls == found.nfev, told.best_fun == found.fun
    ('ended', 'BUDGET', True, True)
    """
    path = _folder(folder)
    try:
        holder, lines = _sessions(path)
        faults = Failures(path).read()
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
    seen = look(path)
    meta, budget = seen.meta or {}, int(seen.words["budget"])
    state, status, message = _state(holder, lines)
    sessions = sum(line["event"] == "begin" for line in lines)
    ends = sum(one["event"] == "begin" and two["event"] == "end" for one, two in pairwise(lines))
    crashes = sessions - ends - (1 if state == "running" and lines and lines[-1]["event"] == "begin" else 0)
    failed = _count(path, meta, "failed_calls", 0) + seen.failed
    calls = _count(path, meta, "nfev", 0) + failed + seen.values
    speed = _speed(path, lines, calls, running=state == "running")
    left = None if not speed or state == "ended" else max(0, budget - calls) / speed
    kept = meta.get("trace") if meta else {}
    return Inspection(
        folder=str(path),
        state=state,
        holder=holder,
        status=status,
        message=message,
        identity=seen.words["identity"],
        budget=budget,
        calls=calls,
        since_snapshot=seen.values + seen.failed,
        failed_calls=failed,
        spent=_number(meta.get("spent")) or None,
        best_fun=_number(meta.get("best_fun")),
        recent=_number(meta.get("recent")),
        steps=_count(path, meta, "nit", 0),
        nht=_count(path, meta, "nht", 0),
        support=None if seen.meta is None else np.flatnonzero(seen.best()).tolist(),
        support_changes=max(0, _count(path, kept, "changes", 0)),
        sessions=sessions,
        crashes=crashes,
        failures=len(faults),
        last_failures=[_fault(words) for words in faults[-_LAST:]],
        speed=speed,
        seconds_left=left,
        broken=list(seen.broken),
    )


def _sessions(folder: Path) -> tuple[str | None, list[dict[str, Any]]]:
    """Who writes the run, and its sessions, at one instant: else a run that has just ended looks like a crash."""
    holder = holder_of(folder)
    for _ in range(_TRIES):
        lines = [line for line in Sessions(folder).read() if line.get("event") in ("begin", "end")]
        again = holder_of(folder)
        if again == holder:
            break
        holder = again
    return holder, lines


def _state(holder: str | None, lines: list[dict[str, Any]]) -> tuple[str, str | None, str | None]:
    """State, status and message, from the lock and the latest line of the sessions."""
    if holder is not None:
        return "running", None, None
    if not lines:
        return "new", None, None
    if lines[-1]["event"] == "begin":
        return "crashed", None, None
    status, message = (str(lines[-1].get(name) or "") for name in ("status", "message"))
    return "ended" if status in _OVER else "stopped", status or None, message or None


def _speed(folder: Path, lines: list[dict[str, Any]], calls: int, *, running: bool) -> float | None:
    """Calls a second in the latest session, if it is long enough to tell."""
    begin = next((line for line in reversed(lines) if line["event"] == "begin"), None)
    if begin is None:
        return None
    first = _number(begin.get("nfev")) or 0.0
    if lines[-1]["event"] == "end":
        seconds, calls = _number(lines[-1].get("seconds")) or 0.0, int(_number(lines[-1].get("nfev")) or 0)
        least = 0.0
    else:
        try:
            since = datetime.fromisoformat(str(begin.get("time"))).timestamp()
        except (ValueError, OverflowError):
            return None
        until = time.time() if running else _last_written(folder)
        seconds, least = until - since, 1.0  # times of day are kept in whole seconds
    made = calls - first
    return made / seconds if seconds > least and made > 0 else None


def _last_written(folder: Path) -> float:
    times = [0.0]
    for _, path in _names(folder):
        try:
            times.append(path.lstat().st_mtime)
        except OSError:
            continue
    return max(times)


def _fault(words: dict[str, Any]) -> Fault:
    component, calls = (int(_number(words.get(name)) or 0) for name in ("component", "calls"))
    return Fault(str(words.get("time"))[:40], component, calls, str(words.get("error"))[:1000])


def _count(folder: Path, words: Any, name: str, default: int) -> int:
    """A whole number of a snapshot's meta data; what is not there is 0."""
    value = words.get(name, default) if isinstance(words, dict) else None
    if name == "changes" and value == -1:
        return -1  # no step yet
    if value is None and name == "journal_bytes":
        return 0
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise RunError(f"the snapshot in {folder} has {name} = {value!r:.40}, which no run writes: it is refused")
    return value


def _number(value: Any) -> float | None:
    """A finite number, or None."""
    return float(value) if type(value) in (int, float) and abs(value) < math.inf else None
