"""Counting at the edges: calls that are broken off, cancelled or interrupted, and users' functions that misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest
from waiting import PATIENCE

import zerothresh as zt
from zerothresh.runs.failures import Failures
from zerothresh.runs.inspection import inspect
from zerothresh.session.interrupts import Deferred

ARGUMENTS = {"budget": 300, "method": zt.FGZOHT(eta=0.05), "seed": 0}


class Odd(BaseException):
    """An exception that is somebody else's to handle, such as the timeout of a framework."""


def sphere(x):
    return float(((x - 1) ** 2).sum())


class Raises:
    """Raises once, at a given call."""

    fingerprint = "raises"

    def __init__(self, at, error):
        self.at, self.error, self.calls, self.lock = at, error, 0, threading.Lock()

    def __call__(self, x):
        with self.lock:
            self.calls += 1
            mine = self.calls
        if mine == self.at:
            raise self.error
        return sphere(x)


# Exceptions that are not the objective's failure.


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    "error", [Odd("odd"), asyncio.CancelledError(), GeneratorExit()], ids=lambda e: type(e).__name__
)
def test_a_foreign_exception_goes_on_and_leaves_a_run_with_a_status_and_the_right_count(error, workers, tmp_path):
    fun = Raises(57, error)
    with pytest.raises(type(error)) as caught:
        zt.minimize(fun, 6, 2, run=tmp_path / "a", workers=workers, **ARGUMENTS)
    assert caught.value.__notes__ == [f"zerothresh: the run was left after {fun.calls} of 300 calls"]
    del error.__notes__
    told = inspect(tmp_path / "a")
    assert (told.state, told.status, told.calls) == ("stopped", "INTERRUPTED", fun.calls)
    assert type(error).__name__ in told.message
    result = zt.minimize(fun, 6, 2, run=tmp_path / "a", workers=workers, **ARGUMENTS)
    assert result.status is zt.Status.BUDGET
    assert result.nfev == fun.calls <= 300


def test_a_step_of_iterate_that_is_left_counts_too(tmp_path):
    fun = Raises(57, Odd("odd"))
    with pytest.raises(Odd):
        for _ in zt.iterate(fun, 6, 2, run=tmp_path / "a", **ARGUMENTS):
            pass
    assert inspect(tmp_path / "a").calls == fun.calls == 57


@pytest.mark.parametrize(
    "error", [Odd("odd"), asyncio.CancelledError(), ValueError("no")], ids=lambda e: type(e).__name__
)
def test_a_callback_or_monitor_that_raises_anything_ends_the_run_with_a_status(error):
    def fails(state):
        raise error

    for options in ({"callback": fails}, {"monitor": fails}):
        result = zt.minimize(sphere, 6, 2, **ARGUMENTS, **options)
        assert result.status is zt.Status.CALLBACK_FAILED
        assert f"the {next(iter(options))} raised {type(error).__name__}" in result.message
        assert result.failure.error is error


def test_a_callback_may_leave_the_program_and_the_run_has_its_status(tmp_path):
    def leaves(state):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        zt.minimize(sphere, 6, 2, callback=leaves, run=tmp_path / "a", **ARGUMENTS)
    assert inspect(tmp_path / "a").status == "CALLBACK_FAILED"


def test_a_monitor_that_raises_in_ask_and_tell_ends_the_run_with_a_sentence():
    def broken(x):
        raise KeyError("the monitor is broken")

    optimizer = zt.Optimizer(6, 2, monitor=broken, **ARGUMENTS)
    while not optimizer.done:
        batch = optimizer.ask()
        optimizer.tell(batch, [sphere(x) for x in batch.points])
    result = optimizer.result()
    assert result.status is zt.Status.CALLBACK_FAILED
    assert result.message == "the monitor raised KeyError: 'the monitor is broken'; result.failure has the traceback"
    assert result.nfev == 11


# Ctrl-C.


def test_ctrl_c_before_the_first_call_and_after_the_last_one_is_not_passed_over():
    calls = 0

    def first(x):
        nonlocal calls
        calls += 1
        os.kill(os.getpid(), signal.SIGINT)
        return sphere(x)

    assert zt.minimize(first, 6, 2, **ARGUMENTS).status is zt.Status.INTERRUPTED
    assert calls == 1

    def last(state):
        if state.nfev > 290:
            os.kill(os.getpid(), signal.SIGINT)

    result = zt.minimize(sphere, 6, 2, callback=last, **ARGUMENTS)
    assert result.status is zt.Status.INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_the_last_call_of_iterate_or_while_a_run_is_closed_is_raised(tmp_path, monkeypatch):
    whole = zt.minimize(sphere, 6, 2, **ARGUMENTS)
    calls = 0

    def last(x):
        nonlocal calls
        calls += 1
        if calls == whole.nfev:
            os.kill(os.getpid(), signal.SIGINT)
        return sphere(x)

    with pytest.raises(KeyboardInterrupt):
        for _ in zt.iterate(last, 6, 2, **ARGUMENTS):
            pass
    close = zt.Optimizer.close

    def pressed(self):
        os.kill(os.getpid(), signal.SIGINT)
        close(self)

    monkeypatch.setattr(zt.Optimizer, "close", pressed)
    with pytest.raises(KeyboardInterrupt):
        zt.minimize(sphere, 6, 2, run=tmp_path / "a", **ARGUMENTS)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_optimizer_goes_on_after_a_monitor_was_interrupted(error):
    looks = 0

    def once(x):
        nonlocal looks
        looks += 1
        if looks == 3:
            raise error
        return sphere(x)

    optimizer, caught = zt.Optimizer(6, 2, monitor=once, **ARGUMENTS), 0
    while not optimizer.done:
        batch = optimizer.ask()
        try:
            optimizer.tell(batch, [sphere(x) for x in batch.points])
        except error:
            caught += 1
    assert caught == 1
    assert optimizer.result().status is zt.Status.BUDGET
    assert len(optimizer.trace) == optimizer.result().nit


def test_a_failed_submit_does_not_lead_beyond_the_budget():
    class Breaks(ThreadPoolExecutor):
        submitted = 0

        def submit(self, *arguments):
            self.submitted += 1
            if self.submitted == 5:
                raise RuntimeError("no")
            return super().submit(*arguments)

    calls, lock = 0, threading.Lock()

    def fails_at_first(x):
        nonlocal calls
        with lock:
            calls += 1
            mine = calls
        if mine <= 4:
            raise ValueError("not yet")
        return sphere(x)

    with Breaks(4) as pool:
        settings = {**ARGUMENTS, "budget": 12}
        result = zt.minimize(fails_at_first, 6, 2, workers=pool, retries=3, backoff=0, **settings)
    assert result.nfev == calls <= 12


def test_ctrl_c_in_a_pause_ends_the_run_at_once():
    fun = Raises(5, ConnectionError("busy"))
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))

    def fails(x):
        if fun.calls == 10:  # the last one of the round: the pause follows
            timer.start()
        return fun(x)

    result = zt.minimize(fails, 6, 2, retries=1, backoff=PATIENCE, **ARGUMENTS)
    timer.join()
    assert result.status is zt.Status.INTERRUPTED
    assert result.nfev == 11


def test_a_handler_of_the_users_own_is_left_alone():
    seen = []

    def mine(number, frame):
        seen.append(number)

    def presses(x):
        if not seen:
            os.kill(os.getpid(), signal.SIGINT)
        return sphere(x)

    before = signal.signal(signal.SIGINT, mine)
    try:
        assert zt.minimize(presses, 6, 2, **ARGUMENTS).status is zt.Status.BUDGET
        assert signal.getsignal(signal.SIGINT) is mine
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_what_must_not_be_broken_off_is_finished_before_ctrl_c_is_raised():
    done = []
    with pytest.raises(KeyboardInterrupt), Deferred():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        done.append(True)
    assert done
    with pytest.raises(KeyboardInterrupt), Deferred():  # noqa: PT012
        for _ in range(3):  # the third one is meant seriously
            os.kill(os.getpid(), signal.SIGINT)
        done.append(False)
    assert done == [True]


def test_a_tell_that_ctrl_c_hits_is_whole_and_the_run_goes_on(tmp_path, monkeypatch):
    """Otherwise a value could be in the journal twice, and the folder would be refused."""
    from zerothresh.session.machine import Session

    plain = zt.minimize(sphere, 6, 2, **ARGUMENTS)
    deliver, pressed = Session.deliver, []

    def pressing(self, start, values):
        if not pressed and self.nfev > 50:
            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)
        return deliver(self, start, values)

    monkeypatch.setattr(Session, "deliver", pressing)
    optimizer = zt.Optimizer(6, 2, run=tmp_path / "a", **ARGUMENTS)
    interrupts = 0
    while not optimizer.done:
        batch = optimizer.ask()
        try:
            optimizer.tell(batch, [sphere(x) for x in batch.points])
        except KeyboardInterrupt:
            interrupts += 1
    optimizer.close()
    assert interrupts == 1
    with zt.Optimizer(6, 2, run=tmp_path / "a", **ARGUMENTS) as again:
        assert again.nfev == plain.nfev
        assert np.array_equal(again.result().x, plain.x)


# Executors.


def test_calls_that_an_executor_cancels_are_failures_with_a_sentence():
    hold, begun = threading.Event(), threading.Event()
    pool = ThreadPoolExecutor(2)
    for _ in range(2):
        pool.submit(hold.wait, PATIENCE)  # other work on the same executor

    def shuts_down():
        begun.wait(PATIENCE)
        pool.shutdown(wait=False, cancel_futures=True)
        hold.set()

    class Watched:
        """Says when the first call waits in the queue of the executor."""

        _max_workers = 2

        def submit(self, *arguments):
            future = pool.submit(*arguments)
            begun.set()
            return future

    closer = threading.Thread(target=shuts_down)
    closer.start()
    result = zt.minimize(sphere, 6, 2, workers=Watched(), **ARGUMENTS)
    closer.join()
    assert result.status is zt.Status.FAILED
    assert result.nfev == 0
    assert "cancel" in result.message or "after shutdown" in result.message


def test_a_cancelled_call_that_never_began_is_not_charged_and_is_made_again():
    class Cancels:
        """Cancels its third call."""

        _max_workers, calls = 1, 0

        def submit(self, function, *arguments):
            self.calls += 1
            future = Future()
            if self.calls == 3:
                future.cancel()
            else:
                future.set_result(function(*arguments))
            return future

    result = zt.minimize(sphere, 6, 2, workers=Cancels(), retries=1, backoff=0, **ARGUMENTS)
    assert np.array_equal(result.x, zt.minimize(sphere, 6, 2, **ARGUMENTS).x)
    stopped = zt.minimize(sphere, 6, 2, workers=Cancels(), **ARGUMENTS)
    assert stopped.status is zt.Status.FAILED
    assert stopped.nfev == 2
    assert "a call could not be made: RuntimeError: the executor cancelled the call before it began" in stopped.message


# Texts.


def test_endless_texts_of_a_users_function_are_cut(tmp_path):
    def boom(x):
        raise ValueError("y" * 3_000_000)

    result = zt.minimize(boom, 6, 2, retries=3, backoff=0, run=tmp_path / "a", **ARGUMENTS)
    assert result.status is zt.Status.FAILED
    assert len(result.message) <= 2000
    assert result.message.endswith("; result.failure has the traceback")
    records = Failures(tmp_path / "a").read()
    assert all(len(json.dumps(record)) < 20_000 for record in records)
    assert sum(path.stat().st_size for path in (tmp_path / "a").iterdir() if "journal" not in path.name) < 1_000_000
    returned = zt.minimize(lambda x: "x" * 3_000_000, 6, 2, run=tmp_path / "b", **ARGUMENTS)
    assert returned.status is zt.Status.BAD_VALUE
    assert len(returned.message) <= 2000

    def stops(state):
        raise StopIteration("z" * 3_000_000)

    assert len(zt.minimize(sphere, 6, 2, callback=stops, **ARGUMENTS).message) <= 2000
