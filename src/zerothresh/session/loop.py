"""The only loop: ask for the open round, evaluate, deliver."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from zerothresh.evaluate.base import Arrival, ClusterLost, Evaluator, Failure, WorkerDied
from zerothresh.objective.forms import BadValue
from zerothresh.session.faults import Faults
from zerothresh.session.recorded import RecordedSession
from zerothresh.session.status import Status

FULL = (errno.ENOSPC, errno.EDQUOT)  # what the system says of a full disk
POLL = 0.1  # seconds between two looks at whether somebody wants to stop, during a pause


def steps(
    run: RecordedSession,
    evaluator: Evaluator,
    faults: Faults,
    tick: Callable[[], None] = lambda: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[None]:
    """Drive a session to its end; yield after each step, and call ``tick`` after each arrival.

    Once ``stopping()`` is true, no more calls are begun, and the run ends as `Status.INTERRUPTED`.
    """
    session = run.session
    deadline = np.inf if faults.max_time is None else time.monotonic() + faults.max_time
    evaluator.deadline = deadline
    while (current := session.open_round) is not None:
        if stopping():
            interrupt(run, evaluator)
            return
        if time.monotonic() >= deadline:
            _time_is_up(run, faults)
            return
        missing, tried, stepped = current.missing(), dict[int, int](), False
        while missing and session.open_round is current and not stopping():
            stepped, failures, late = _evaluate(run, evaluator, missing, faults, tried, deadline, tick, stopping)
            missing = current.missing() if session.open_round is current and current.unanswered else []
            lost = next((f for f in failures if not faults.may_retry(f.error, tried[f.row])), None)
            trouble = run.record.trouble
            if trouble is not None:
                _disk(run, trouble)
            elif stopping():
                break
            elif lost is not None:
                _give_up(run, faults, lost, tried[lost.row])
            elif late and session.open_round is current:
                _time_is_up(run, faults)
            elif missing and run.check_fit(missing):
                _pause(run, faults, max(tried.values(), default=1), deadline, stopping)
        if stepped:
            yield


def _evaluate(
    run: RecordedSession,
    evaluator: Evaluator,
    missing: list[tuple[int, int]],
    faults: Faults,
    tried: dict[int, int],
    deadline: float,
    tick: Callable[[], None],
    stopping: Callable[[], bool],
) -> tuple[bool, list[Failure], bool]:
    """Ask for some rows of the open round and deliver what comes.

    No more is asked for once a call has failed for good, time is up, somebody wants to stop, or the record is in
    trouble. Returns whether a step was made, the failures, and whether time was up.
    """
    current = run.session.open_round
    assert current is not None
    stepped, failures, late = False, list[Failure](), False
    try:
        run.claim()
    except OSError as error:
        run.record.trouble = error
        return stepped, failures, late
    timed = deadline != np.inf
    for answer in evaluator.evaluate(current.plan, missing):
        if isinstance(answer, Arrival):
            stepped = run.deliver(answer.start, answer.values, paid=True)
        else:
            tried[answer.row] = tried.get(answer.row, 0) + 1
            lost = not faults.may_retry(answer.error, tried[answer.row])
            if lost and faults.takes_worst(answer) and run.session.can_replace:
                del tried[answer.row]
                stepped = run.replace(answer)
            else:
                if lost:
                    evaluator.halt()
                failures.append(answer)
                run.fail(answer)
        if timed and time.monotonic() >= deadline:
            late = True
        if late or run.record.trouble is not None or stopping():
            evaluator.halt()  # calls under way are still waited for, and have a place on the disk
        tick()
    return stepped, failures, late or (timed and time.monotonic() >= deadline)


def _pause(run: RecordedSession, faults: Faults, tried: int, deadline: float, stopping: Callable[[], bool]) -> None:
    """Wait before calls are made again, but not beyond the time that there is."""
    wait, until_deadline = faults.pause(tried), deadline - time.monotonic()
    left = min(wait, until_deadline)
    while left > 0 and not stopping():
        time.sleep(min(POLL, left))
        left -= POLL
    if until_deadline <= wait and not stopping():
        _time_is_up(run, faults)


def _disk(run: RecordedSession, trouble: OSError) -> None:
    """The record cannot be kept: stop before anything else is paid for."""
    reason = f"the run folder cannot be written ({trouble.strerror or trouble})"
    remedy = "make room" if trouble.errno in FULL else "mend that"
    message = f"{reason}: {remedy}, and run it again; nothing that was paid for is lost"
    run.finish(Status.DISK, message, final=False)


def _time_is_up(run: RecordedSession, faults: Faults) -> None:
    calls = f"{run.session.nfev} of {run.session.task.budget} calls"
    run.finish(Status.TIME, f"max_time = {faults.max_time:g} s have passed after {calls}", final=False)


def _give_up(run: RecordedSession, faults: Faults, failure: Failure, tried: int) -> None:
    """The objective failed for good: stop with its own message."""
    error = failure.error
    times = "" if tried == 1 else f", {tried} times"
    call = f"call {run.session.nfev}{times}"
    where = call if run.session.task.outputs is not None else f"component {failure.component}, {call}"
    if isinstance(error, BadValue):
        run.finish(Status.BAD_VALUE, f"{error} ({where})", failure=failure, final=False)
        return
    if isinstance(error, ClusterLost):
        made = f"{run.session.nfev} of {run.session.task.budget} calls"
        run.finish(Status.FAILED, f"{error} (after {made})", failure=failure, final=False)
        return
    what = "the objective raised" if failure.begun else "a call could not be made:"
    if isinstance(error, WorkerDied):
        what = "a call failed:"
    message = f"{what} {failure.summary} ({where}); result.failure has the traceback"
    if faults.takes_worst(failure):
        message += "; it was the first call, so that there is no worst value to take instead"
    run.finish(Status.FAILED, message, failure=failure, final=False)


def interrupt(run: RecordedSession, evaluator: Evaluator) -> None:
    """Stop after Ctrl-C, or because the task that waits for the run was cancelled.

    What the calls in progress return is kept, unless nobody waits for them; then they failed.
    """
    for answer in evaluator.drain():
        if isinstance(answer, Failure):
            run.fail(answer)
        elif run.session.open_round is not None:
            run.deliver(answer.start, answer.values, paid=True)
    for failure in evaluator.abandon(KeyboardInterrupt("the call was broken off by Ctrl-C or SIGTERM")):
        run.fail(failure)
    message = "stopped by Ctrl-C or SIGTERM; the best point so far is returned"
    if evaluator.cancelled:
        message = f"the task was cancelled after {run.session.nfev} of {run.session.task.budget} calls"
    run.finish(Status.INTERRUPTED, message, final=False)


def leave(run: RecordedSession, evaluator: Evaluator, error: BaseException) -> None:
    """Leave a run because of an exception that is somebody else's to handle: a timeout of a framework, say.

    The calls in progress are charged, and the run gets its status; the exception, which goes on, gets a note.
    """
    with suppress(Exception):  # a forked child, for one, has no right to write anything
        for failure in evaluator.abandon(error):
            run.fail(failure)
        made = f"{run.session.nfev} of {run.session.task.budget} calls"
        run.finish(Status.INTERRUPTED, f"{type(error).__name__} was raised after {made}", final=False)
        error.add_note(f"zerothresh: the run was left after {made}")


def call_back(run: RecordedSession, callback: Callable[[Any], Any], progress: Any) -> None:
    """Call the user's callback; StopIteration ends the run well, any other exception as a failure."""
    try:
        callback(progress)
    except StopIteration as stop:
        reason = f": {stop.value}" if stop.value is not None else ""
        run.finish(Status.CALLBACK, f"the callback stopped the run{reason}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        run.stop_for_user_error("callback", error)
        if isinstance(error, SystemExit):  # the user wants to leave the program, and the run has its status
            raise
