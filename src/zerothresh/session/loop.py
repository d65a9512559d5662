"""The only loop: ask for the open round, evaluate, deliver."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from zerothresh.evaluate.base import Arrival, Evaluator, Failure
from zerothresh.objective.forms import BadValue
from zerothresh.session.faults import Faults
from zerothresh.session.recorded import RecordedSession
from zerothresh.session.status import MonitorFailed, Status


def steps(
    run: RecordedSession, evaluator: Evaluator, faults: Faults, tick: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Drive a session to its end; yield after each step, and call ``tick`` after each arrival."""
    session = run.session
    deadline = np.inf if faults.max_time is None else time.monotonic() + faults.max_time
    while (current := session.open_round) is not None:
        if time.monotonic() >= deadline:
            _time_is_up(run, faults)
            return
        missing, tried, stepped = current.missing(), dict[int, int](), False
        while missing and session.open_round is current:
            try:
                stepped, failures, late, trouble = _evaluate(run, evaluator, missing, faults, tried, deadline, tick)
            except MonitorFailed as failed:
                stop_for_user_error(run, "monitor", failed.__cause__)
                return
            missing = [(failure.row, failure.row + failure.calls) for failure in failures]
            lost = next((f for f in failures if not faults.may_retry(f.error, tried[f.row])), None)
            if trouble is not None:
                reason = f"the run folder cannot be written ({trouble.strerror or trouble})"
                message = f"{reason}: make room, and run it again; nothing that was paid for is lost"
                run.finish(Status.DISK, message, final=False)
            elif lost is not None:
                _give_up(run, lost, tried[lost.row])
            elif late and session.open_round is current:
                _time_is_up(run, faults)
            elif missing and run.check_fit(missing):
                _pause(run, faults, max(tried.values()), deadline)
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
) -> tuple[bool, list[Failure], bool, OSError | None]:
    """Ask for some rows of the open round and deliver what comes.

    No more is asked for once a call has failed for good, time is up, or the run folder cannot be written. Returns
    whether a step was made, the failures, whether time was up, and why the run folder cannot be written.
    """
    current = run.session.open_round
    assert current is not None
    stepped, failures, late = False, list[Failure](), False
    try:
        run.claim()
    except OSError as error:
        return stepped, failures, late, error
    trouble: OSError | None = None
    timed = deadline != np.inf
    for answer in evaluator.evaluate(current.plan, missing):
        try:
            if isinstance(answer, Arrival):
                stepped = run.deliver(answer.start, answer.values)
            else:
                failures.append(answer)
                tried[answer.row] = tried.get(answer.row, 0) + 1
                if not faults.may_retry(answer.error, tried[answer.row]):
                    evaluator.halt()
                run.fail(answer)
        except OSError as error:
            trouble = error
        trouble = trouble or run.record.trouble
        if timed and time.monotonic() >= deadline:
            late = True
        if late or trouble is not None:
            evaluator.halt()  # calls under way are still waited for, and have a place on the disk
        tick()
    return stepped, failures, late, trouble


def _pause(run: RecordedSession, faults: Faults, tried: int, deadline: float) -> None:
    """Wait before calls are made again, but not beyond the time that there is."""
    wait = faults.pause(tried)
    left = deadline - time.monotonic()
    time.sleep(max(0.0, min(wait, left)))
    if left <= wait:
        _time_is_up(run, faults)


def _time_is_up(run: RecordedSession, faults: Faults) -> None:
    calls = f"{run.session.nfev} of {run.session.task.budget} calls"
    run.finish(Status.TIME, f"max_time = {faults.max_time:g} s have passed after {calls}", final=False)


def _give_up(run: RecordedSession, failure: Failure, tried: int) -> None:
    """The objective failed for good: stop with its own message."""
    error = failure.error
    times = "" if tried == 1 else f", {tried} times"
    where = f"component {failure.component}, call {run.session.nfev}{times}"
    if isinstance(error, BadValue):
        run.finish(Status.BAD_VALUE, f"{error} ({where})", failure=failure, final=False)
        return
    message = f"the objective raised {failure.summary} ({where}); result.failure has the traceback"
    run.finish(Status.FAILED, message, failure=failure, final=False)


def interrupt(run: RecordedSession, evaluator: Evaluator) -> None:
    """Stop after Ctrl-C: wait for calls under way, so that none is paid for in vain; a second Ctrl-C does not wait."""
    with suppress(KeyboardInterrupt, OSError, MonitorFailed):
        if evaluator.outstanding and evaluator.parallel:
            message = f"waiting for {evaluator.outstanding} calls under way; press Ctrl-C again to leave them"
            print(f"zerothresh: {message}", file=sys.stderr, flush=True)
        for answer in evaluator.drain():
            if isinstance(answer, Failure):
                run.fail(answer)
            elif run.session.open_round is not None:
                run.deliver(answer.start, answer.values)
    run.session.ledger.lose(evaluator.outstanding)
    run.finish(Status.INTERRUPTED, "stopped by Ctrl-C or SIGTERM; the best point so far is returned", final=False)


def call_back(run: RecordedSession, callback: Callable[[Any], Any], progress: Any) -> None:
    """Call the user's callback; StopIteration ends the run well, any other exception as a failure."""
    try:
        callback(progress)
    except StopIteration as stop:
        reason = f": {stop.value}" if stop.value is not None else ""
        run.finish(Status.CALLBACK, f"the callback stopped the run{reason}")
    except Exception as error:
        stop_for_user_error(run, "callback", error)


def stop_for_user_error(run: RecordedSession, function: str, error: BaseException | None) -> None:
    """Stop because the callback or the monitor failed, and keep what was found."""
    assert error is not None
    failure = Failure(-1, run.session.standing.theta, -1, error, 0)
    message = f"the {function} raised {failure.summary}; result.failure has the traceback"
    run.finish(Status.CALLBACK_FAILED, message, failure=failure, final=False)
