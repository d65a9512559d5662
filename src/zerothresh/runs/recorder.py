"""The keeper of a run: writes what an optimiser learns into its run folder, and gives it back."""

from __future__ import annotations

import os
import warnings
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.constraint.threshold import Diverged
from zerothresh.evaluate.base import Failure
from zerothresh.rounds.search import Search, advance, next_probes, plan_of
from zerothresh.runs import FailureLine, Run, RunError, ValueLine, identity_of
from zerothresh.runs.paths import open_plain
from zerothresh.runs.snapshot import flatten, restore
from zerothresh.session.batch import OpenRound
from zerothresh.session.status import MonitorFailed, Status

if TYPE_CHECKING:
    from zerothresh.api.optimizer import Optimizer

Array = NDArray[np.float64]

_COUNTS = ("round", "nfev", "nht", "nit")
_NUMBERS = ("fun", "best_fun", "recent")


class Keeper:
    """Between an optimiser and its folder."""

    def __init__(self, run: Run, optimizer: Optimizer, fingerprint: str | None) -> None:
        self._run = run
        self._optimizer = weakref.proxy(optimizer)
        self._finalizer = weakref.finalize(self, run.close)
        self._flushed_rows, self._flushed_bytes = 0, 0
        self._ended = False
        self._partly = False  # the run ended with a round partly told
        self._changed = False  # something has been learnt since the folder was opened
        state = optimizer.search.state
        restore(state, flatten(state))  # a state that cannot be kept is refused before anything is paid for
        recovered = run.recover(identity_of(optimizer.task, fingerprint), optimizer.task.budget)
        self._lines = recovered.lines
        self._base = 0
        if recovered.meta is not None:
            self._restore(optimizer, recovered.meta, recovered.arrays)

    # Going on.

    def _restore(self, optimizer: Optimizer, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Put a snapshot into the optimiser, after checking that it fits."""
        task, folder = optimizer.task, self._run.folder
        try:
            if any(type(meta[name]) is not int or not 0 <= meta[name] < 1 << 53 for name in (*_COUNTS, "failed_calls")):
                raise RunError("counts")
            numbers = [meta[name] for name in (*_NUMBERS, "worst", "spent")]
            if any(number is not None and type(number) not in (int, float) for number in numbers):
                raise RunError("numbers")
            state = restore(optimizer.search.state, arrays)
            best = arrays.get("best_x")
            points = [state.theta] if best is None else [state.theta, best]
            if any(p.shape != (task.d,) or p.dtype != np.float64 or not np.isfinite(p).all() for p in points):
                raise RunError("points")
            counts = {name: meta[name] for name in _COUNTS}
            search = Search(state=state, best_x=best, **counts, **{name: meta[name] for name in _NUMBERS})
            self._try(task, search)
            rows, size, changes = (int(meta["trace"][name]) for name in ("rows", "bytes", "changes"))
            self._cut_trace(rows, size)
            support = arrays.get("trace_support", np.empty(0, np.int64)).astype(np.int64)
        except (RunError, KeyError, TypeError, ValueError) as error:
            raise RunError(f"a snapshot in {folder} does not fit this run ({error}): the folder is refused") from None
        optimizer.search = search
        optimizer.failed_calls, optimizer.worst = meta["failed_calls"], meta["worst"]
        optimizer.final_round = int(meta["final_round"])
        optimizer.spending.resume(None if meta["spent"] is None else float(meta["spent"]), optimizer.nfev)
        optimizer.trace.resume(self._trace_path, size, rows, changes, support)
        self._base = search.round

    @staticmethod
    def _try(task: Any, search: Search) -> None:
        """Go through a round with zeros: a state whose parts do not fit together fails here."""
        try:
            with np.errstate(all="ignore"):
                probes = next_probes(task, search)
                if probes is not None:
                    plan = plan_of(task, probes, search.round)
                    if plan.calls < 1 << 24:
                        advance(task, search, plan, np.zeros(plan.calls))
        except Diverged:
            pass
        except Exception as error:
            raise RunError(f"{type(error).__name__}: {error}") from None

    @property
    def replaying(self) -> bool:
        """Whether values of the journal are still to come."""
        return bool(self._lines)

    def replay(self) -> None:
        """Give the optimiser the values of the journal."""
        optimizer = self._optimizer
        for line in self._lines:
            if line.round < self._base:
                continue
            if isinstance(line, FailureLine):
                if line.component >= optimizer.task.n:
                    raise RunError(f"the journal in {self._run.folder} names component {line.component}: it is refused")
                optimizer.lose(line.component, line.calls)
            else:
                self._replay(line)
        self._changed, self._lines = bool(self._lines), ()
        optimizer.check_fit()
        if not self._ended or self._changed:
            self._run.sessions.begin(optimizer.nfev)
        if self._ended:  # the values of the journal led to the end
            self._ended = False
            self.end(self._partly)

    def _replay(self, line: ValueLine) -> None:
        optimizer, current = self._optimizer, self._optimizer.open_round
        if line.final and not optimizer.is_final:  # the budget has grown since: paid for, and not needed
            for component in np.arange(line.start, line.start + line.values.size) % optimizer.task.n:
                optimizer.lose(int(component), 1)
            return
        wrong = RunError(f"the journal in {self._run.folder} does not fit the run at round {line.round}: it is refused")
        if current is None or line.round != current.plan.round or line.final != optimizer.is_final:
            raise wrong
        rows = np.arange(line.start, line.start + line.values.size)
        if rows[-1] >= current.plan.calls or current.known(rows).any():
            raise wrong
        if optimizer.on_nan != "worst" and not np.isfinite(line.values).all():
            raise wrong
        with suppress(MonitorFailed):
            optimizer.deliver(line.start, line.values, journal=False)

    # Writing.

    def claim(self, current: OpenRound) -> None:
        """Claim the disk space for what is missing of a round."""
        self._run.journal().claim(current.plan.calls - current.told)

    def values(self, round_: int, final: bool, start: int, values: Array) -> None:
        """Write values of the open round down."""
        self._changed = True
        journal = self._run.open_journal
        if journal is None:
            journal = self._run.journal()
        journal.values(round_, final, start, values)
        if journal.trouble is not None:
            self._optimizer.disk_trouble = journal.trouble

    def failure(self, failure: Failure) -> None:
        """Write a failure down."""
        round_ = self._optimizer.search.round
        self._run.failures.add(
            round=round_,
            row=failure.row,
            component=failure.component,
            point=failure.point,
            error=failure.words,
            trace=failure.traceback,
            calls=failure.charged,
        )
        self._changed = True
        self._run.journal().failure(round_, failure.row, failure.component, failure.charged)

    def save_if_due(self) -> None:
        """A snapshot between two rounds, if it is cheap enough by now; the journal holds all if it fails."""
        if self._run.due() and not self._lines:
            with suppress(OSError):
                self._save()

    def _save(self) -> None:
        optimizer = self._optimizer
        search = optimizer.search
        self._flush_trace()
        meta = {
            **{name: getattr(search, name) for name in (*_COUNTS, *_NUMBERS)},
            "failed_calls": optimizer.failed_calls,
            "spent": None if optimizer.spending.prices is None else optimizer.spent,
            "worst": optimizer.worst,
            "final_round": optimizer.final_round,
            "trace": {
                "rows": self._flushed_rows,
                "bytes": self._flushed_bytes,
                "changes": optimizer.trace.support_changes,
            },
        }
        arrays = flatten(search.state)
        if search.best_x is not None:
            arrays["best_x"] = search.best_x
        arrays["trace_support"] = optimizer.trace.last_support
        self._run.save(meta, arrays)

    def end(self, partly_told: bool) -> None:
        """The run has ended, for now: keep all of it, and tell why it ended.

        No snapshot if the open round has values, or if the end was not between two rounds: the
        journal has it all, and going on from there leads to the same end.
        """
        optimizer = self._optimizer
        if self._ended:
            return
        self._ended, self._partly = True, partly_told
        if self._lines or not self._changed:
            return
        status = optimizer.status
        whole = status not in (Status.INTERRUPTED, Status.DIVERGED, Status.DISK) and not partly_told
        try:
            if whole:
                self._save()
            self._run.sessions.end(optimizer.nfev, "" if status is None else status.name, optimizer.result().message)
        except OSError as error:
            warnings.warn(
                f"the end of the run could not be written into {self._run.folder} ({error.strerror or error}); the "
                "journal has every value that was written, and the same call goes on from there",
                stacklevel=2,
            )

    def close(self) -> None:
        """Let go of the folder."""
        if not self._ended and self._finalizer.alive:
            with suppress(OSError, ReferenceError):
                self._run.sessions.end(self._optimizer.nfev, "CLOSED", "closed before its end; it can go on")
        self._finalizer()

    # The trace, which only grows, is kept in a file of its own.

    @property
    def _trace_path(self) -> Path:
        return self._run.folder / "trace.csv"

    def _cut_trace(self, rows: int, size: int) -> None:
        """Cut off rows that are newer than the snapshot: they come again."""
        self._flushed_rows, self._flushed_bytes = rows, size
        fd = open_plain(self._trace_path, os.O_RDWR | os.O_CREAT)
        try:
            if os.fstat(fd).st_size < size or size < 0 or rows < 0:
                raise RunError(f"trace.csv is shorter than {size} bytes")
            os.ftruncate(fd, size)
        finally:
            os.close(fd)

    def _flush_trace(self) -> None:
        trace = self._optimizer.trace
        text = trace.flush_text(self._flushed_rows).encode()
        if not text:
            return
        fd = open_plain(self._trace_path, os.O_WRONLY | os.O_CREAT)
        try:
            done = 0
            while done < len(text):
                done += os.pwrite(fd, text[done:], self._flushed_bytes + done)
            if self._run.fsync != "never":
                os.fsync(fd)
        finally:
            os.close(fd)
        self._flushed_rows, self._flushed_bytes = len(trace), self._flushed_bytes + len(text)
