"""Reading a run folder from outside: nothing is locked or changed, even while another process writes it."""

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

from zerothresh.runs.errors import RunError
from zerothresh.runs.failures import Failures
from zerothresh.runs.folder import StoredSnapshot, read_description, read_snapshot
from zerothresh.runs.journal import FailureLine, read_between
from zerothresh.runs.lock import holder_of
from zerothresh.runs.paths import JOURNAL, SNAPSHOT, numbered, run_path
from zerothresh.runs.sessions import Sessions
from zerothresh.runs.trace_file import extent_of, reader
from zerothresh.session.trace import Trace

Array = NDArray[np.float64]

_ATTEMPTS, _PAUSE = 50, 0.01  # a writer may remove files that are being read: read again after a pause in seconds
_MOST_FAILURES = 5  # the number of latest failures that are reported
_FINAL = ("BUDGET", "CONVERGED", "DIVERGED")  # after these, the same command does not continue the run


@dataclass(frozen=True)
class StoredRun:
    """The newest valid snapshot of a run, and how much the journals hold beyond it.

    Attributes
    ----------
    folder: the run folder.
    description: the content of run.json.
    meta: the counts and numbers of the snapshot; None if there is no snapshot yet.
    arrays: the arrays of the snapshot.
    values: the number of values in the journals since the snapshot.
    failed: the number of failed calls in the journals since the snapshot.
    broken: for each snapshot that cannot be read, the reason.
    """

    folder: Path
    description: dict[str, Any]
    meta: dict[str, Any] | None
    arrays: dict[str, NDArray[Any]]
    values: int
    failed: int
    broken: tuple[str, ...]

    def best(self) -> Array:
        """Return the best point whose F is known, shape (d,), or the last iterate if there is none."""
        if self.meta is None:
            raise RunError(f"{self.folder} has no snapshot yet, so there is no point: continue the run first")
        point = self.arrays.get("best_x", self.arrays.get("state.theta"))
        d = self.description["identity"].get("d")
        if point is None or point.shape != (d,) or point.dtype != np.float64 or not np.isfinite(point).all():
            raise RunError(
                f"the snapshot in {self.folder} has no valid point of d = {d!r:.40} numbers: restore it from a copy"
            )
        return point

    def trace(self) -> Trace:
        """Return the history of the run up to the snapshot."""
        trace = Trace()
        counts = {} if self.meta is None else self.meta.get("trace")
        extent, changes = extent_of(self.meta or {}), _count(self.folder, counts, "changes", 0)
        if not extent.rows:
            return trace
        path = self.folder / "trace.csv"
        try:
            trace.resume(reader(path, extent), extent.rows, changes, np.empty(0, np.int64))
            found = len(trace.nfev)
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}") from None
        except RunError:
            raise
        except ValueError as error:
            raise RunError(f"{path} is not what a run writes ({error}): restore it from a copy") from None
        if found != extent.rows:
            raise RunError(f"{path} has {found} rows, but the snapshot counts {extent.rows}: restore it from a copy")
        return trace


@dataclass(frozen=True)
class Fault:
    """A call that failed.

    Attributes
    ----------
    time: when it failed, in ISO 8601 format.
    component: the component that was called.
    calls: the number of calls that were charged to the budget.
    error: the error in one line.
    """

    time: str
    component: int
    calls: int
    error: str


@dataclass(frozen=True)
class Inspection:
    """The state and the progress of a run, as its folder shows them.

    Attributes
    ----------
    folder: the path of the run folder.
    state: "new", "running", "ended", or "stopped" or "crashed", which the same command continues.
    holder: the process that writes the folder at present; None if there is none.
    status: the name of the `zerothresh.Status` of the latest end; None if the run has not ended normally.
    message: the same in a sentence.
    identity: the method, hyper-parameters, estimator, seed, d, n, k and problem of the run.
    budget: the largest number of calls.
    calls: the number of calls made, including those in the journals.
    since_snapshot: the number of calls in the journals since the latest snapshot.
    failed_calls: the number of calls that failed.
    spent: the cost of the calls at the snapshot, in the user's currency; None if no cost was given.
    best_fun: the lowest F known at the snapshot; None if F is not known at any point.
    recent: a running mean of component values at the snapshot, for when F is not known.
    steps: the number of steps at the snapshot.
    nht: the number of hard thresholdings at the snapshot (#NHT).
    support: the non-zero coordinates of the best point at the snapshot; None if there is no snapshot.
    support_changes: the number of changes of the support up to the snapshot.
    sessions: the number of sessions.
    crashes: the number of sessions that did not end normally.
    failures: the number of recorded failures.
    last_failures: the latest of them.
    speed: the calls per second in the latest session; None if it is not known.
    seconds_left: the time that the rest of the budget takes at that speed; None if it is not known.
    broken: for each snapshot that cannot be read, the reason.
    """

    folder: str
    state: str
    holder: str | None
    status: str | None
    message: str | None
    identity: dict[str, Any]
    budget: int
    calls: int
    since_snapshot: int
    failed_calls: int
    spent: float | None
    best_fun: float | None
    recent: float | None
    steps: int
    nht: int
    support: list[int] | None
    support_changes: int
    sessions: int
    crashes: int
    failures: int
    last_failures: list[Fault]
    speed: float | None
    seconds_left: float | None
    broken: list[str]


def read_run(folder: str | os.PathLike[str]) -> StoredRun:
    """Read the newest valid snapshot of a run, and count the values and failures since.

    Arguments
    ---------
    folder: the run folder, which another process may be writing.

    Returns
    -------
    A consistent view of the folder. Raises `RunError` if it is not a run folder, or if it cannot be read.
    """
    path = _run_folder(folder)
    for _ in range(_ATTEMPTS):
        try:
            before = _names(path)
            found = _read_once(path)
            if _names(path) == before:
                return found
        except FileNotFoundError:
            pass
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}") from None
        time.sleep(_PAUSE)
    raise RunError(f"{path} changed during each of {_ATTEMPTS} attempts to read it: try again later")


def _run_folder(folder: str | os.PathLike[str]) -> Path:
    """Check that a folder is a run folder."""
    path = run_path(folder)
    if not path.exists():
        raise RunError(f"the folder {path} does not exist: name the folder of a run")
    if not path.is_dir():
        raise RunError(f"{path} is not a folder: name the folder of a run")
    read_description(path)
    return path


def _names(folder: Path) -> list[tuple[int, Path]]:
    """List the snapshots and the journals of a run."""
    return numbered(folder, SNAPSHOT) + numbered(folder, JOURNAL)


def _read_once(folder: Path) -> StoredRun:
    """Read the newest valid snapshot and the journals; another process may change them meanwhile."""
    description = read_description(folder)
    newest, broken = StoredSnapshot(), list[str]()
    for number, path in reversed(numbered(folder, SNAPSHOT)):
        try:
            newest = read_snapshot(number, path)
            break
        except RunError as error:
            broken.append(str(error))
    journals = numbered(folder, JOURNAL)
    if broken and newest.path is None and not (journals and journals[0][0] == 0):
        raise RunError(f"no snapshot of {folder} can be read: {'; '.join(broken)}. Restore one from a copy")
    values = failed = 0
    for line in read_between(journals, newest.place)[0]:  # values after a gap are not used
        if line.round >= newest.round:
            if isinstance(line, FailureLine):
                failed += line.calls
            else:
                values += len(line.values)
    meta = None if newest.path is None else newest.meta
    return StoredRun(folder, description, meta, newest.arrays, values, failed, tuple(broken))


def inspect(folder: str | os.PathLike[str]) -> Inspection:
    """Report the state, the spending, the best value, the sessions, the failures and the speed of a run.

    Arguments
    ---------
    folder: the run folder, which another process may be writing.

    Returns
    -------
    The report. Raises `RunError` if the folder is not a run folder, or if it cannot be read.

    >>> import tempfile
    >>> import zerothresh as zt
    >>> with tempfile.TemporaryDirectory() as run:
    ...     found = zt.minimize(lambda x: (x**2).sum(), 4, 2, budget=99, method=zt.FGZOHT(0.1), seed=0, run=run)
    ...     report = inspect(run)
    >>> report.state, report.status, report.calls == found.nfev, report.best_fun == found.fun
    ('ended', 'BUDGET', True, True)
    """
    path = _run_folder(folder)
    try:
        holder, lines = _sessions(path)
        faults = Failures(path).read()
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
    stored = read_run(path)
    meta, budget = stored.meta or {}, int(stored.description["budget"])
    failed = _count(path, meta, "failed_calls", 0) + stored.failed
    calls = _count(path, meta, "nfev", 0) + failed + stored.values
    state, status, message = _state(holder, lines, calls)
    sessions = sum(line["event"] == "begin" for line in lines)
    ends = sum(one["event"] == "begin" and two["event"] == "end" for one, two in pairwise(lines))
    crashes = sessions - ends - (1 if state == "running" and lines and lines[-1]["event"] == "begin" else 0)
    speed = _speed(path, lines, calls, running=state == "running")
    left = None if not speed or state == "ended" else max(0, budget - calls) / speed
    trace_counts = meta.get("trace") if meta else {}
    return Inspection(
        folder=str(path),
        state=state,
        holder=holder,
        status=status,
        message=message,
        identity=stored.description["identity"],
        budget=budget,
        calls=calls,
        since_snapshot=stored.values + stored.failed,
        failed_calls=failed,
        spent=_number(meta.get("spent")) or None,
        best_fun=_number(meta.get("best_fun")),
        recent=_number(meta.get("recent")),
        steps=_count(path, meta, "nit", 0),
        nht=_count(path, meta, "nht", 0),
        support=None if stored.meta is None else np.flatnonzero(stored.best()).tolist(),
        support_changes=max(0, _count(path, trace_counts, "changes", 0)),
        sessions=sessions,
        crashes=crashes,
        failures=len(faults),
        last_failures=[_fault(record) for record in faults[-_MOST_FAILURES:]],
        speed=speed,
        seconds_left=left,
        broken=list(stored.broken),
    )


def _sessions(folder: Path) -> tuple[str | None, list[dict[str, Any]]]:
    """Return the process that writes the run and the lines of its sessions, as they were at one instant.

    Otherwise a run that ends between the two readings would look like a crash.
    """
    holder = holder_of(folder)
    for _ in range(_ATTEMPTS):
        lines = [line for line in Sessions(folder).read() if line.get("event") in ("begin", "end")]
        again = holder_of(folder)
        if again == holder:
            break
        holder = again
    return holder, lines


def _state(holder: str | None, lines: list[dict[str, Any]], calls: int) -> tuple[str, str | None, str | None]:
    """Return the state, the status and the message that the lock and the latest line of the sessions imply.

    ``calls`` is the number of calls made: a run without any line that has made calls has lost its sessions.jsonl.
    """
    if holder is not None:
        return "running", None, None
    if not lines and calls:
        return "stopped", None, "sessions.jsonl is missing or damaged, so that it is not known how the run ended"
    if not lines:
        return "new", None, None
    if lines[-1]["event"] == "begin":
        return "crashed", None, None
    status, message = (str(lines[-1].get(name) or "") for name in ("status", "message"))
    return "ended" if status in _FINAL else "stopped", status or None, message or None


def _speed(folder: Path, lines: list[dict[str, Any]], calls: int, *, running: bool) -> float | None:
    """Return the calls per second in the latest session, or None if it is too short to tell."""
    begin = next((line for line in reversed(lines) if line["event"] == "begin"), None)
    if begin is None:
        return None
    first = _number(begin.get("nfev")) or 0.0
    if lines[-1]["event"] == "end":
        seconds, calls = _number(lines[-1].get("seconds")) or 0.0, int(_number(lines[-1].get("nfev")) or 0)
        shortest = 0.0
    else:
        try:
            since = datetime.fromisoformat(str(begin.get("time"))).timestamp()
        except (ValueError, OverflowError):
            return None
        until = time.time() if running else _last_written(folder)
        seconds, shortest = until - since, 1.0  # these times are stored in whole seconds
    made = calls - first
    return made / seconds if seconds > shortest and made > 0 else None


def _last_written(folder: Path) -> float:
    """Return the time at which a snapshot or a journal was last written."""
    times = [0.0]
    for _, path in _names(folder):
        try:
            times.append(path.lstat().st_mtime)
        except OSError:
            continue
    return max(times)


def _fault(record: dict[str, Any]) -> Fault:
    """Convert a line of failures.jsonl, whose content is not trusted."""
    component, calls = (int(_number(record.get(name)) or 0) for name in ("component", "calls"))
    return Fault(str(record.get("time"))[:40], component, calls, str(record.get("error"))[:1000])


def _count(folder: Path, counts: Any, name: str, default: int) -> int:
    """Return a whole number from the counts of a snapshot, which are not trusted, or the default."""
    value = counts.get(name, default) if isinstance(counts, dict) else None
    if name == "changes" and value == -1:
        return -1  # no step yet
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise RunError(
            f"the snapshot in {folder} has {name} = {value!r:.40}, which no run writes: restore it from a copy"
        )
    return value


def _number(value: Any) -> float | None:
    """Return a value as a finite number, or None if it is none."""
    return float(value) if type(value) in (int, float) and abs(value) < math.inf else None
