"""The recorder of a run: writes what a session learns into its run folder, and gives it back.

It wraps a session from outside (`zerothresh.session.recorded`): the session knows nothing of folders.
"""

from __future__ import annotations

import errno
import warnings
import weakref
from contextlib import suppress
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.basics.text import shorten
from zerothresh.constraint.threshold import Diverged
from zerothresh.evaluate.base import Failure
from zerothresh.rounds.advance import Standing, advance
from zerothresh.rounds.states import Arrays, StateError
from zerothresh.rounds.task import Task
from zerothresh.runs.errors import LockLost, RunError
from zerothresh.runs.folder import LARGEST_COUNT, Run
from zerothresh.runs.identity import identity_of
from zerothresh.runs.journal import FailureLine, ValueLine
from zerothresh.runs.trace_file import TraceFile, extent_of, reader
from zerothresh.session.machine import Session
from zerothresh.session.status import Status

COUNTS = ("nht", "nit")  # of a standing, as whole numbers in a snapshot
NUMBERS = ("fun", "best_fun", "recent")  # of a standing, as numbers or null
ANY_FLOAT = ("fun", "recent")  # a monitor may say NaN, and a mean of huge values may overflow
OUTPUTS = ("first_outputs", "worst_outputs")  # of a session whose calls return many outputs
BEST_OUTPUTS = "best_outputs"  # of a standing
FIRST_WIDTH = 1 << 16  # outputs of the first call for which room on the disk is claimed: it tells how many there are
MOST_REASON = 200  # characters of an error that a message repeats
LARGEST_TRIAL = 1 << 24  # calls of a round that is still tried out with zeros
REFUSED = "the folder is refused; restore it from a copy, or name another one"
# Ends that are not between two rounds.
WITHOUT_SNAPSHOT = (Status.INTERRUPTED, Status.DIVERGED, Status.DISK, Status.METHOD_FAILED)


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
        self._trace = TraceFile(run.folder)
        self._ended = False  # whether the end of the session has been dealt with
        self._changed = False  # whether something has been learnt since the folder was opened
        self._lost: LockLost | None = None  # why nothing more may be written
        self._ends: dict[int, dict[int, Any]] = {}  # values of F at earlier ends, by round and component
        task, search = session.task, session.standing.search
        try:
            search.restored(search.arrays(), 0)  # a state that cannot be kept is refused before anything is paid for
        except StateError as error:
            raise RunError(str(error)) from None
        recovered = run.recover(identity_of(task, fingerprint), task.budget, self._trace.matches)
        self._lines, self._starts = recovered.lines, recovered.starts
        self._base = 0  # the round of the snapshot
        self._settled = 0  # the round at which a snapshot was last considered
        if recovered.meta is not None:
            self._restore(session, recovered.meta, recovered.arrays)
        else:
            self._trace.resume({})  # rows of a run that is gone through again from its start come again

    # Going on.

    def _restore(self, session: Session, meta: dict[str, Any], arrays: Arrays) -> None:
        """Put a snapshot into the session, after checking that it fits."""
        task, folder = session.task, self._run.folder
        try:
            counts = {name: _count(meta, name) for name in (*COUNTS, "round", "nfev", "failed_calls")}
            numbers = {name: _number(meta, name, finite=name not in ANY_FLOAT) for name in (*NUMBERS, "worst", "spent")}
            final_round, changes = _count(meta, "final_round", low=-1), _count(meta.get("trace"), "changes", low=-1)
            replaced = _count(meta, "replaced") if "replaced" in meta else 0  # which older versions did not count
            if task.outputs is not None and meta.get("outputs") is not None:  # None: before the first call
                session.learn_outputs(_count(meta, "outputs", low=1))
                task = session.task
            search = session.standing.search.restored(arrays, counts["round"])
            best = arrays.get("best_x")
            points = [search.incumbent.theta] if best is None else [search.incumbent.theta, best]
            kept_outputs = {name: arrays[name] for name in (*OUTPUTS, BEST_OUTPUTS) if name in arrays}
            m = None if task.outputs is None else task.outputs.m
            if any(
                o.dtype != np.float64 or o.shape != (m,) or not session.fits(o[None]) for o in kept_outputs.values()
            ):
                raise RunError("its outputs are not one number per output")
            if any(p.shape != (task.d,) or p.dtype != np.float64 or not np.isfinite(p).all() for p in points):
                raise RunError("its points are not d finite numbers")
            known: dict[str, Any] = {name: counts[name] for name in COUNTS} | {name: numbers[name] for name in NUMBERS}
            standing = Standing(search, best_x=best, best_outputs=kept_outputs.pop(BEST_OUTPUTS, None), **known)
            if not self._run.sessions.ended_as(Status.METHOD_FAILED.name):  # then the method is to blame, not the state
                self._try(task, standing)
            support = arrays.get("trace_support", np.empty(0, np.int64)).astype(np.int64)
            if support.ndim != 1 or not ((support >= 0) & (support < task.d)).all():
                raise RunError("its support is not one of d coordinates")
        except Exception as error:  # whatever a forged state makes the method raise
            why = shorten(str(error) or type(error).__name__, MOST_REASON)
            raise RunError(f"a snapshot in {folder} does not fit this run ({why}): {REFUSED}") from None
        whole, kept = extent_of(meta), self._trace.resume(meta)
        if kept.rows < whole.rows:
            warnings.warn(
                f"the trace up to step {counts['nit']} is lost: trace.csv in {folder} was damaged or removed, and the "
                "values to make it again are no longer there. The values and the result are not affected",
                stacklevel=2,
            )
            changes = max(0, changes) - 1  # the first row of the new trace has a support, which is not a change
        session.resume(standing, worst=numbers["worst"], final_round=final_round, replaced=replaced)
        for name, outputs in kept_outputs.items():
            setattr(session, name, outputs)
        session.ledger.resume(counts["nfev"], counts["failed_calls"], numbers["spent"])
        session.trace.resume(reader(self._trace.path, kept), kept.rows, changes, support)
        self._base = standing.round

    @staticmethod
    def _try(task: Task, standing: Standing) -> None:
        """Go through a round with zeros for values: a state whose parts do not fit together fails here."""
        try:
            with np.errstate(all="ignore"):
                probes = standing.search.request
                if probes is not None:
                    plan = task.plan(probes, standing.round)
                    if plan.size < LARGEST_TRIAL and plan.numbers < LARGEST_TRIAL:
                        advance(task, standing, plan, plan.zeros())
        except Diverged:
            pass
        except Exception as error:
            raise RunError(f"{type(error).__name__}: {shorten(str(error), MOST_REASON)}") from None

    def open(self, session: Session) -> None:
        """Open the session, and give it the values of the journal."""
        session.replaying = bool(self._lines)
        session.open()
        for place, line in enumerate(self._lines):
            if session.standing.round < self._starts.get(place, 0):  # a power failure has destroyed values before it
                self._run.drop_journals(self._starts[place])
                break
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
        if line.final and not session.is_final:
            self._replay_earlier_end(session, line)
            return
        wrong = RunError(f"the journal in {self._run.folder} does not fit the run at round {line.round}: {REFUSED}")
        if current is None or line.round != current.plan.round or line.final != session.is_final:
            raise wrong
        rows = np.arange(line.start, line.start + len(line.values))
        if rows[-1] >= current.plan.calls or current.known(rows).any() or not session.fits(line.values):
            raise wrong
        session.deliver(line.start, line.values)

    def _replay_earlier_end(self, session: Session, line: ValueLine) -> None:
        """Give back values of F at an end that is none any more, because the budget has grown since.

        They were paid for. Once those of all components are there, F at that point is known, as it was then.
        """
        n = session.task.n if session.task.outputs is None else 1
        for component in np.arange(line.start, line.start + len(line.values)) % n:
            session.ledger.fail(int(component), 1)
        if line.round == session.standing.round and line.start + len(line.values) <= n and session.fits(line.values):
            values = self._ends.setdefault(line.round, {})
            values.update(zip(range(line.start, n), line.values, strict=False))
            if len(values) == n:
                session.know_value(np.array([values[i] for i in range(n)]))

    # Writing.

    def claim(self, session: Session) -> None:
        """Claim the disk space for what is missing of the open round."""
        current = session.open_round
        if current is not None:
            self._check_lock()
            self.trouble = None
            outputs = session.task.outputs
            self._run.journal().claim(current.unanswered, None if outputs is None else outputs.m or FIRST_WIDTH)

    def values(self, session: Session, start: int, values: Array) -> None:
        """Write values of the open round into the journal."""
        self._check_lock()
        self._changed = True
        journal = self._run.open_journal
        if journal is None:
            journal = self._run.journal()
        journal.values(session.standing.round, session.is_final, start, values)
        if journal.trouble is not None:
            self.trouble = journal.trouble

    def failure(self, session: Session, failure: Failure) -> None:
        """Write a failed call into the journal, where it has a place, and then into the list of failures."""
        self._changed = True
        journal = self._run.journal()
        journal.failure(session.standing.round, failure.row, failure.component, failure.charged)
        self.trouble = self.trouble or journal.trouble
        self.replaced(session, failure)

    def replaced(self, session: Session, failure: Failure) -> None:
        """Write a failed call into the list of failures only; the journal has it with its values."""
        try:
            self._run.failures.add(
                round=session.standing.round,
                row=failure.row,
                component=failure.component,
                point=failure.point,
                error=failure.summary,
                trace=failure.traceback,
                calls=failure.charged,
            )
        except OSError as error:  # the call counts all the same
            self.trouble = error
        except RunError as error:
            self.trouble = OSError(errno.EPERM, str(error))

    def _check_lock(self) -> None:
        """Raise `LockLost` if the lock was found lost: nothing more may be written."""
        if self._lost is not None:
            raise self._lost

    def settle(self, session: Session) -> None:
        """After the session has moved: write its end, or a snapshot if that is cheap enough by now.

        A snapshot that fails costs nothing, because the journal has every value, unless it failed because the folder
        is another process's by now.
        """
        if session.done:
            self._end(session)
        elif session.standing.round > self._settled:  # a round is over, and the next one has not begun
            self._settled = session.standing.round
            if self._run.due() and session.status not in WITHOUT_SNAPSHOT:
                try:
                    self._save(session)
                except LockLost as lost:
                    self.trouble = self._lost = lost
                except StateError as error:
                    session.stop_for_method(error)
                except OSError:
                    pass

    def _save(self, session: Session) -> None:
        standing, ledger = session.standing, session.ledger
        self._run.check()
        try:
            arrays = standing.search.arrays()
        except Exception as error:
            raise StateError(f"{type(error).__name__}: {error}") from error
        self._trace.append(session.trace)
        meta = {
            **{name: getattr(standing, name) for name in ("round", *COUNTS, *NUMBERS)},
            "nfev": ledger.completed,
            "failed_calls": ledger.failed,
            "spent": None if ledger.prices is None else ledger.spent,
            "worst": session.worst,
            "final_round": session.final_round,
            "replaced": session.replaced,
            "trace": {**self._trace.extent._asdict(), "changes": session.trace.support_changes},
        }
        if session.task.outputs is not None:
            meta["outputs"] = session.task.outputs.m
            arrays |= {name: found for name in OUTPUTS if (found := getattr(session, name)) is not None}
        if standing.best_x is not None:
            arrays["best_x"] = standing.best_x
        if standing.best_outputs is not None:
            arrays[BEST_OUTPUTS] = standing.best_outputs
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
                with suppress(StateError):  # the journal has every value
                    self._save(session)
            self._run.sessions.end(session.nfev, "" if status is None else status.name, session.closing_message)
        except OSError as error:
            warnings.warn(
                f"the end of the run could not be written into {self._run.folder} ({error.strerror or error}); the "
                "journal has every value that was written, and the same call goes on from there",
                stacklevel=2,
            )

    def close(self, session: Session) -> None:
        """Let go of the folder; what is no longer this process's is not touched."""
        if not self._ended and self._finalizer.alive and self._run.is_ours():
            with suppress(OSError):
                self._run.sessions.end(session.nfev, "CLOSED", "closed before its end; it can go on")
        self._finalizer()


def _count(meta: Any, name: str, *, low: int = 0) -> int:
    """Return a whole number from a snapshot, whose content is not trusted."""
    value = meta.get(name) if isinstance(meta, dict) else None
    if type(value) is not int or not low <= value < LARGEST_COUNT:
        raise RunError(f"{name} = {value!r:.40}")
    return value


def _number(meta: dict[str, Any], name: str, *, finite: bool) -> float | None:
    """Return a number, or None, from a snapshot."""
    value = meta.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or (finite and not abs(value) < np.inf):
        raise RunError(f"{name} = {value!r:.40}")
    return float(value)
