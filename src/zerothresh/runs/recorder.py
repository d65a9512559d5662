"""The recorder of a run: writes what a session learns into its run folder, and gives it back.

It wraps a session from outside (`zerothresh.session.recorded`): the session knows nothing of folders.
"""

from __future__ import annotations

import warnings
import weakref
from contextlib import suppress
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import Diverged
from zerothresh.evaluate.base import Failure
from zerothresh.rounds.advance import Standing, advance
from zerothresh.rounds.states import Arrays, StateError
from zerothresh.rounds.task import Task
from zerothresh.runs.errors import RunError
from zerothresh.runs.folder import Run
from zerothresh.runs.identity import identity_of
from zerothresh.runs.journal import FailureLine, ValueLine
from zerothresh.runs.trace_file import TraceFile, reader
from zerothresh.session.machine import Session
from zerothresh.session.status import MonitorFailed, Status

COUNTS = ("nht", "nit")  # of a standing, as whole numbers in a snapshot
NUMBERS = ("fun", "best_fun", "recent")  # of a standing, as numbers or null
LARGEST_COUNT = 1 << 53  # beyond it a whole number in JSON may have been rounded
LARGEST_TRIAL = 1 << 24  # calls of a round that is still tried out with zeros
REFUSED = "the folder is refused; restore it from a copy, or name another one"
WITHOUT_SNAPSHOT = (Status.INTERRUPTED, Status.DIVERGED, Status.DISK)  # ends that are not between two rounds


class Recorder:
    """The record of a session in a run folder.

    Arguments
    ---------
    run: Run, the locked folder.
    session: Session that has not been opened; if the folder has a snapshot, it is restored into the session.
    fingerprint: str or None, what tells the user's function from another one.
    """

    def __init__(self, run: Run, session: Session, fingerprint: str | None) -> None:
        self._run = run
        self._finalizer = weakref.finalize(self, run.close)
        self.trouble: OSError | None = None
        self._trace = TraceFile(run.folder, sync=run.fsync != "never")
        self._ended = False  # whether the end of the session has been dealt with
        self._changed = False  # whether something has been learnt since the folder was opened
        task, search = session.task, session.standing.search
        try:
            search.restored(search.arrays(), 0)  # a state that cannot be kept is refused before anything is paid for
        except StateError as error:
            raise RunError(str(error)) from None
        recovered = run.recover(identity_of(task, fingerprint), task.budget)
        self._lines = recovered.lines
        self._base = 0  # the round of the snapshot
        self._settled = 0  # the round at which a snapshot was last considered
        if recovered.meta is not None:
            self._restore(session, recovered.meta, recovered.arrays)

    # Going on.

    def _restore(self, session: Session, meta: dict[str, Any], arrays: Arrays) -> None:
        """Put a snapshot into the session, after checking that it fits."""
        task, folder = session.task, self._run.folder
        try:
            counts = [meta[name] for name in (*COUNTS, "round", "nfev", "failed_calls")]
            if any(type(count) is not int or not 0 <= count < LARGEST_COUNT for count in counts):
                raise RunError("counts")
            numbers = [meta[name] for name in (*NUMBERS, "worst", "spent")]
            if any(number is not None and type(number) not in (int, float) for number in numbers):
                raise RunError("numbers")
            search = session.standing.search.restored(arrays, meta["round"])
            best = arrays.get("best_x")
            points = [search.incumbent.theta] if best is None else [search.incumbent.theta, best]
            if any(p.shape != (task.d,) or p.dtype != np.float64 or not np.isfinite(p).all() for p in points):
                raise RunError("points")
            standing = Standing(search, best_x=best, **{name: meta[name] for name in (*COUNTS, *NUMBERS)})
            self._try(task, standing)
            rows, size, changes = (int(meta["trace"][name]) for name in ("rows", "bytes", "changes"))
            self._trace.cut(rows, size)
            support = arrays.get("trace_support", np.empty(0, np.int64)).astype(np.int64)
        except (RunError, KeyError, TypeError, ValueError) as error:
            raise RunError(f"a snapshot in {folder} does not fit this run ({error}): {REFUSED}") from None
        session.resume(standing, worst=meta["worst"], final_round=int(meta["final_round"]))
        spent = None if meta["spent"] is None else float(meta["spent"])
        session.ledger.resume(meta["nfev"], meta["failed_calls"], spent)
        session.trace.resume(reader(self._trace.path, size), rows, changes, support)
        self._base = standing.round

    @staticmethod
    def _try(task: Task, standing: Standing) -> None:
        """Go through a round with zeros for values: a state whose parts do not fit together fails here."""
        try:
            with np.errstate(all="ignore"):
                probes = standing.search.request
                if probes is not None:
                    plan = task.plan(probes, standing.round)
                    if plan.calls < LARGEST_TRIAL:
                        advance(task, standing, plan, np.zeros(plan.calls))
        except Diverged:
            pass
        except Exception as error:
            raise RunError(f"{type(error).__name__}: {error}") from None

    def open(self, session: Session) -> None:
        """Open the session, and give it the values of the journal."""
        session.replaying = bool(self._lines)
        session.open()
        for line in self._lines:
            if line.round < self._base:
                continue
            if isinstance(line, FailureLine):
                if line.component >= session.task.n:
                    raise RunError(f"the journal in {self._run.folder} names component {line.component}: {REFUSED}")
                session.ledger.fail(line.component, line.calls)
            else:
                self._replay(session, line)
        self._changed, self._lines = bool(self._lines), ()
        self._settled = session.standing.round
        session.replaying = False
        session.check_fit()
        if not session.done or self._changed:
            self._run.sessions.begin(session.nfev)
        self.settle(session)

    def _replay(self, session: Session, line: ValueLine) -> None:
        """Give one line of the journal to the session, if it fits."""
        current = session.open_round
        if line.final and not session.is_final:  # the budget has grown since: it was paid for, and is not needed
            for component in np.arange(line.start, line.start + line.values.size) % session.task.n:
                session.ledger.fail(int(component), 1)
            return
        wrong = RunError(f"the journal in {self._run.folder} does not fit the run at round {line.round}: {REFUSED}")
        if current is None or line.round != current.plan.round or line.final != session.is_final:
            raise wrong
        rows = np.arange(line.start, line.start + line.values.size)
        if rows[-1] >= current.plan.calls or current.known(rows).any():
            raise wrong
        if session.on_nan != "worst" and not np.isfinite(line.values).all():
            raise wrong
        with suppress(MonitorFailed):
            session.deliver(line.start, line.values)

    # Writing.

    def claim(self, session: Session) -> None:
        """Claim the disk space for what is missing of the open round."""
        current = session.open_round
        if current is not None:
            self.trouble = None
            self._run.journal().claim(current.plan.calls - current.told)

    def values(self, session: Session, start: int, values: Array) -> None:
        """Write values of the open round into the journal."""
        self._changed = True
        journal = self._run.open_journal
        if journal is None:
            journal = self._run.journal()
        journal.values(session.standing.round, session.is_final, start, values)
        if journal.trouble is not None:
            self.trouble = journal.trouble

    def failure(self, session: Session, failure: Failure) -> None:
        """Write a failed call into the journal and into the list of failures."""
        round_ = session.standing.round
        self._run.failures.add(
            round=round_,
            row=failure.row,
            component=failure.component,
            point=failure.point,
            error=failure.summary,
            trace=failure.traceback,
            calls=failure.charged,
        )
        self._changed = True
        self._run.journal().failure(round_, failure.row, failure.component, failure.charged)

    def settle(self, session: Session) -> None:
        """After the session has moved: write its end, or a snapshot if that is cheap enough by now.

        A snapshot that fails costs nothing: the journal has every value.
        """
        if session.done:
            self._end(session)
        elif session.standing.round > self._settled:  # a round is over, and the next one has not begun
            self._settled = session.standing.round
            if self._run.due():
                with suppress(OSError):
                    self._save(session)

    def _save(self, session: Session) -> None:
        standing, ledger = session.standing, session.ledger
        self._trace.append(session.trace)
        meta = {
            **{name: getattr(standing, name) for name in ("round", *COUNTS, *NUMBERS)},
            "nfev": ledger.completed,
            "failed_calls": ledger.failed,
            "spent": None if ledger.prices is None else ledger.spent,
            "worst": session.worst,
            "final_round": session.final_round,
            "trace": {
                "rows": self._trace.rows,
                "bytes": self._trace.bytes,
                "changes": session.trace.support_changes,
            },
        }
        arrays = standing.search.arrays()
        if standing.best_x is not None:
            arrays["best_x"] = standing.best_x
        arrays["trace_support"] = session.trace.last_support
        self._run.save(meta, arrays)

    def _end(self, session: Session) -> None:
        """Keep all of a run that has ended, for now, and why it ended.

        No snapshot is written if the open round had values, or if the end was not between two rounds: the journal
        has everything, and going on from there leads to the same end.
        """
        if self._ended:
            return
        self._ended = True
        if not self._changed:
            return
        status = session.status
        whole = status not in WITHOUT_SNAPSHOT and not session.ended_within_round
        try:
            if whole:
                self._save(session)
            self._run.sessions.end(session.nfev, "" if status is None else status.name, session.closing_message)
        except OSError as error:
            warnings.warn(
                f"the end of the run could not be written into {self._run.folder} ({error.strerror or error}); the "
                "journal has every value that was written, and the same call goes on from there",
                stacklevel=2,
            )

    def close(self, session: Session) -> None:
        """Let go of the folder."""
        if not self._ended and self._finalizer.alive:
            with suppress(OSError):
                self._run.sessions.end(session.nfev, "CLOSED", "closed before its end; it can go on")
        self._finalizer()
