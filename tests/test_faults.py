"""Faults of the objective, and budgets in other currencies."""

from __future__ import annotations

import base64
import json
import os
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest
from killing import die, killed
from waiting import PATIENCE, until

import zerothresh as zt
from zerothresh.runs.failures import Failures
from zerothresh.session.interrupts import Interrupts

PROBLEM = zt.problems.ridge(seed=0)


def value(x, i):
    return PROBLEM.values(x[None], np.array([i]))[0]


class Flaky:
    """Misbehaves at some calls."""

    fingerprint = "flaky"

    def __init__(self, when, act):
        self.when, self.act, self.calls = set(when), act, 0
        self.lock = threading.Lock()

    def __call__(self, x, i):
        with self.lock:
            self.calls += 1
            mine = self.calls
        return self.act() if mine in self.when else value(x, i)


def raises():
    raise ConnectionError("the line is busy")


def go(fun=value, **options):
    made = {
        "n": 10,
        "budget": 500,
        "method": zt.SZOHT(0.02),
        "seed": 3,
        "estimator": zt.Estimator(q=3, mu=1e-3),
        "backoff": 0,
    }
    return zt.minimize(fun, 5, 2, **{**made, **options})


@pytest.mark.parametrize("workers", [1, 3])
def test_a_retried_call_changes_nothing_but_the_bill(workers):
    plain = go()
    flaky = Flaky({3, 50, 51, 52, 300}, raises)
    result = go(flaky, retries=3, workers=workers, budget=505)
    assert result.success
    assert np.array_equal(result.x, plain.x)
    assert result.nfev == flaky.calls == plain.nfev + 5


def test_retries_run_out_and_the_words_say_how_often_it_was_tried():
    result = go(Flaky(range(20, 99), raises), retries=2)
    assert result.status is zt.Status.FAILED
    assert "the line is busy" in result.message
    assert "3 times" in result.message
    assert result.nfev == 22


def test_retries_never_exceed_the_budget():
    flaky = Flaky(range(2, 10_000, 2), raises)
    result = go(flaky, retries=10**6, budget=120)
    assert result.status is zt.Status.BUDGET
    assert result.nfev == flaky.calls <= 120
    endless = Flaky(range(20, 10**6), raises)
    result = go(endless, retries=10**6, budget=120)
    assert result.status is zt.Status.BUDGET
    assert "calls that failed used it up" in result.message
    assert result.nfev == endless.calls <= 120


def test_a_wait_before_each_retry_of_one_call(monkeypatch):
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)

    class Stubborn:
        """One point fails four times."""

        def __init__(self):
            self.bad, self.left, self.waited = None, 4, []

        def __call__(self, x, i):
            self.bad = x.tobytes() if self.bad is None else self.bad
            if x.tobytes() == self.bad and len(self.waited) <= 4:
                self.waited.append(sum(waits))
            if x.tobytes() == self.bad and self.left:
                self.left -= 1
                raise OSError("not yet")
            return value(x, i)

    stubborn = Stubborn()
    assert go(stubborn, retries=4, backoff=0.5).success
    assert np.diff(stubborn.waited) == pytest.approx([0.5, 1.0, 2.0, 4.0])
    assert sum(waits) == stubborn.waited[-1]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_call_that_hangs_is_given_up_and_made_again(workers):
    hung = threading.Event()

    def hangs():
        hung.wait(PATIENCE)
        return float("nan")  # nobody gave up

    def enough(state):
        if state.nit == 60:
            raise StopIteration

    try:
        flaky = Flaky({7, 200}, hangs)
        options = {"budget": 2000, "monitor": PROBLEM.F, "callback": enough}
        result = go(flaky, timeout=0.5, retries=30, workers=workers, **options)
        stopped = go(Flaky({7}, hangs), timeout=0.5)
    finally:
        hung.set()
    plain = go(**options)
    assert result.status is plain.status is zt.Status.CALLBACK
    assert np.array_equal(result.x, plain.x)
    assert result.nfev == flaky.calls >= plain.nfev + 2  # more if the machine is so busy that another call took as long
    assert stopped.status is zt.Status.FAILED
    assert "TimeoutError: " in stopped.message  # it took longer than 0.5 s, or no thread was free for so long


def test_nan_stops_or_is_made_again_or_counts_as_the_worst():
    nan = lambda: float("nan")
    assert go(Flaky({40}, nan)).status is zt.Status.BAD_VALUE
    assert go(Flaky({40}, nan), retries=3).status is zt.Status.BAD_VALUE  # only on_nan="retry" makes it again
    again = go(Flaky({40}, nan), retries=3, on_nan="retry")
    assert again.success
    worst = Flaky({1, 40, 300}, nan)
    result = go(worst, on_nan="worst")
    assert result.success
    assert worst.calls == result.nfev <= 500
    assert np.isfinite(result.fun)
    infinite = go(Flaky({40}, lambda: float("inf")), on_nan="worst")
    assert infinite.success


def test_the_worst_value_does_not_depend_on_the_workers_or_on_a_crash(tmp_path):
    def holes(x, i):
        nonlocal seen
        hole = int(abs(x[0]) * 1e7) % 97 == 1
        seen += hole
        return float("nan") if hole else value(x, i)

    seen = 0
    holes.fingerprint = "holes"
    alone = go(holes, on_nan="worst")
    assert seen > 0
    assert alone.nfev > 250
    assert np.array_equal(alone.x, go(holes, on_nan="worst", workers=4).x)
    calls = 0

    def dies(x, i):
        nonlocal calls
        calls += 1
        if calls in (100, 180):
            die()
        return holes(x, i)

    dies.fingerprint = "holes"
    session = partial(go, dies, on_nan="worst", run=tmp_path / "a")
    assert killed(session, lambda: None)[0]
    calls = 100
    assert killed(session, lambda: None)[0]
    calls = 180
    assert np.array_equal(alone.x, go(dies, on_nan="worst", run=tmp_path / "a").x)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_failure_is_recorded_and_leaves_a_run_that_goes_on(workers, tmp_path):
    plain = go()
    flaky = Flaky({120}, raises)
    stopped = go(flaky, run=tmp_path / "a", workers=workers, budget=501)
    assert stopped.status is zt.Status.FAILED
    (record,) = Failures(tmp_path / "a").read()
    assert record["error"] == "ConnectionError: the line is busy"
    assert "in raises" in record["traceback"]
    assert 0 <= record["component"] < 10
    assert np.frombuffer(base64.b64decode(record["point"])).tolist() == stopped.failure.point.tolist()
    assert record["time"]
    resumed = go(flaky, run=tmp_path / "a", workers=workers, budget=501)
    assert np.array_equal(resumed.x, plain.x)
    assert resumed.nfev == flaky.calls == plain.nfev + 1  # the failed one is charged, and no other is made again


def test_long_points_of_failures_go_into_files_of_their_own(tmp_path):
    def fails(x):
        raise ValueError("no")

    zt.minimize(fails, 20_000, 5, budget=100, method=zt.SZOHT(0.1), seed=0, run=tmp_path / "a")
    (record,) = Failures(tmp_path / "a").read()
    point = np.load(tmp_path / "a" / record["point_file"], allow_pickle=False)
    assert point.shape == (20_000,)


def test_failures_stay_counted_through_crashes_and_snapshots(tmp_path, monkeypatch):
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda self: True)
    flaky = Flaky({5, 30, 60, 61, 200}, raises)
    dead = [80, 150, 250]

    def sometimes(x, i):
        if flaky.calls + 1 in dead:
            die()
        return flaky(x, i)

    sometimes.fingerprint = "sometimes"
    session = partial(go, sometimes, retries=2, run=tmp_path / "a", budget=520)
    while dead:
        was_killed, flaky.calls = killed(session, lambda: flaky.calls)
        assert was_killed
        del dead[0]
    result = go(sometimes, retries=2, run=tmp_path / "a", budget=520)
    assert result.nfev == flaky.calls
    assert len(Failures(tmp_path / "a").read()) == 5
    again = go(sometimes, retries=2, run=tmp_path / "a", budget=520)
    assert again.nfev == result.nfev


@pytest.mark.parametrize("workers", [1, 3])
def test_ctrl_c_leaves_a_run_that_goes_on(workers, tmp_path, capfd):
    """The call in progress is finished, and its value is kept: nothing is asked for twice."""
    plain, asked, lock = go(), [], threading.Lock()

    def kept(x, i):
        with lock:
            asked.append((x.tobytes(), i))
            mine = len(asked)
        if mine == 120:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
        return value(x, i)

    stopped = go(kept, run=tmp_path / "a", workers=workers)
    assert stopped.status is zt.Status.INTERRUPTED
    assert stopped.nfev == len(asked) < 125
    assert "press Ctrl-C again to give them up" in capfd.readouterr().err
    resumed = go(kept, run=tmp_path / "a", workers=workers)
    assert np.array_equal(resumed.x, plain.x)
    assert resumed.nfev == len(asked) == plain.nfev


@pytest.mark.parametrize("workers", [1, 3])
def test_a_call_that_a_second_ctrl_c_gives_up_counts_in_this_session_and_in_the_next(workers, tmp_path, monkeypatch):
    asked, lock, given_up = [], threading.Lock(), threading.Event()
    seen, take = [], Interrupts._take

    def watched(self):
        seen.append(True)
        take(self)

    monkeypatch.setattr(Interrupts, "_take", watched)

    def stubborn(x, i):
        with lock:
            asked.append((x.tobytes(), i))
            mine = len(asked)
        if mine == 120:
            for number in (1, 2):
                os.kill(os.getpid(), signal.SIGINT)
                until(lambda number=number: len(seen) == number)  # two at once may count as one
            assert given_up.wait(PATIENCE)  # a call that does not end by itself
        return value(x, i)

    stopped = go(stubborn, run=tmp_path / "a", workers=workers, budget=520)
    given_up.set()
    assert stopped.status is zt.Status.INTERRUPTED
    assert stopped.nfev == len(asked)
    record = Failures(tmp_path / "a").read()[-1]
    assert record["error"] == "KeyboardInterrupt: the call was broken off by Ctrl-C or SIGTERM"
    resumed = go(stubborn, run=tmp_path / "a", workers=workers, budget=520)
    assert resumed.status is zt.Status.BUDGET
    assert resumed.nfev == len(asked)


class Clock:
    """A steady clock that goes on only when it is told to."""

    def __init__(self, monkeypatch):
        self.now, self.sleeps = 0.0, []
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds):
        self.sleeps.append(seconds)
        self.now += seconds


def test_time_that_is_up_ends_the_session_and_the_run_goes_on(tmp_path, monkeypatch):
    clock = Clock(monkeypatch)

    def slow(x, i):
        clock.now += 0.002
        return value(x, i)

    slow.fingerprint = "slow"
    sessions = 0
    while True:
        result = go(slow, run=tmp_path / "a", max_time=0.2)
        sessions += 1
        if result.status is not zt.Status.TIME:
            break
        assert result.success
        assert "max_time = 0.2 s have passed after" in result.message
    assert sessions == 5  # of 100 calls at most, and 500 in all
    assert np.array_equal(result.x, go().x)
    assert result.nfev == go().nfev


def test_cost_is_a_budget_of_its_own():
    price = lambda i: 2.5 if i < 5 else 1.0
    paid = 0.0

    def priced(x, i):
        nonlocal paid
        paid += price(i)
        return value(x, i)

    for limit in (60.0, 100.0, 333.0):
        paid = 0.0
        result = go(priced, cost=price, max_cost=limit)
        assert result.status is zt.Status.COST
        assert result.success
        assert result.spent == pytest.approx(paid)
        assert paid <= limit
        assert "the cost limit is reached" in result.message
    roomy = go(priced, cost=price, max_cost=1e9)
    assert roomy.status is zt.Status.BUDGET
    assert roomy.spent > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"retries": -1}, "retries must be at least 0"),
        ({"backoff": -1}, r"backoff must be a finite number of at least 0 \(seconds\), not -1"),
        ({"timeout": 0}, "timeout must be a finite number above 0"),
        ({"on_nan": "ignore"}, "on_nan must be one of 'stop', 'worst', 'retry'"),
        ({"max_time": 0}, "max_time must be a finite number above 0"),
        ({"max_cost": 3}, "max_cost needs cost"),
        ({"cost": 3}, "cost must be a function"),
        ({"cost": lambda i: -1.0, "max_cost": 3}, r"cost\(0\) is -1.0; a cost must be a finite number of at least 0"),
        ({"cost": lambda i: 1.0, "max_cost": -3}, "max_cost must be a finite number above 0"),
        ({"cost": lambda i: 1.0, "max_cost": 3}, "max_cost = 3 is too small"),
        ({"fsync": "always", "run": "x"}, "fsync must be one of 'value', 'batch', 'never'"),
    ],
)
def test_wrong_settings_are_refused(options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=words):
        go(**options)


def test_sessions_are_told_apart(tmp_path):
    flaky = Flaky({120}, raises)
    go(flaky, run=tmp_path / "a")
    go(flaky, run=tmp_path / "a")
    lines = [json.loads(line) for line in (tmp_path / "a" / "sessions.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["begin", "end", "begin", "end"]
    assert [line["status"] for line in lines if "status" in line] == ["FAILED", "BUDGET"]


# What a review found once, and must not come back.


def test_a_resumed_run_with_failures_keeps_to_its_budget(tmp_path):
    for retries in (0, 3):
        flaky = Flaky({8}, raises)
        folder = tmp_path / str(retries)
        options = {"n": None, "budget": 12, "method": zt.FGZOHT(0.01), "estimator": zt.Estimator(q=10)}
        single = lambda x, flaky=flaky: flaky(x, 0)
        for _ in range(3):
            result = go(single, run=folder, retries=retries, **options)
        assert flaky.calls == result.nfev <= 12
        assert result.status is zt.Status.BUDGET


def test_a_budget_that_grows_after_a_stop_in_the_final_round_is_kept(tmp_path):
    flaky = Flaky({23}, raises)
    options = {"n": 5, "method": zt.FGZOHT(0.01), "estimator": zt.Estimator(q=3)}
    assert go(flaky, run=tmp_path / "a", budget=25, **options).status is zt.Status.FAILED
    result = go(flaky, run=tmp_path / "a", budget=45, **options)
    assert flaky.calls == result.nfev <= 45


def test_stopping_in_the_middle_of_a_round_keeps_what_was_told(tmp_path):
    def opened():
        return zt.Optimizer(5, 2, budget=60, method=zt.FGZOHT(0.05), seed=0, run=tmp_path / "a")

    f = lambda batch: (batch.points**2).sum(axis=1)
    opt = opened()
    part = opt.ask()[:5]
    opt.tell(part, f(part))
    opt.stop()
    last = opt.ask()
    opt.tell(last, f(last))
    assert opt.done
    assert opt.nfev == 6
    opt.close()
    again = opened()
    assert again.nfev == 6
    assert len(again.ask()) == 6
    again.close()


def test_a_closed_run_is_left_alone(tmp_path):
    opt = zt.Optimizer(5, 2, budget=60, method=zt.FGZOHT(0.05), seed=0, run=tmp_path / "a")
    batch = opt.ask()
    opt.tell(batch, np.ones(len(batch)))
    opt.close()
    with pytest.raises(zt.RunError, match="has been closed: open it again"):
        opt.ask()
    again = zt.Optimizer(5, 2, budget=60, method=zt.FGZOHT(0.05), seed=0, run=tmp_path / "a")
    assert again.nfev == 11
    again.close()


@pytest.mark.parametrize("workers", [1, 4])
def test_a_disk_that_fills_up_loses_no_value_in_flight(workers, tmp_path, monkeypatch):
    import errno

    from zerothresh.runs.journal import Journal

    real, full = Journal._claim, [False]

    def claim(self):
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self)

    monkeypatch.setattr(Journal, "_claim", claim)
    monkeypatch.setattr("zerothresh.runs.journal._AHEAD", 64)
    asked = []

    def slow(x, i):
        asked.append((x.tobytes(), i))
        time.sleep(0.001)
        full[0] = len(asked) == 40 or full[0]
        return value(x, i)

    slow.fingerprint = "slow"
    stopped = go(slow, run=tmp_path / "a", workers=workers)
    assert stopped.status is zt.Status.DISK
    assert "make room" in stopped.message
    assert stopped.nfev == len(asked)
    full[0], before = False, len(asked)
    result = go(slow, run=tmp_path / "a", workers=workers)
    assert np.array_equal(result.x, go().x)
    assert result.nfev == len(asked) > before


def test_values_that_were_made_up_are_no_evidence():
    calls = 0

    def f(x):
        nonlocal calls
        calls += 1
        return float("nan") if calls in range(20, 31) else 100 + float(((x - [3, 0, 0, 0, -2]) ** 2).sum())

    result = go(f, n=None, on_nan="worst", method=zt.FGZOHT(0.05), budget=400)
    assert result.fun >= 100
    silent = go(lambda x: float("nan"), n=None, on_nan="worst")
    assert silent.status is zt.Status.BAD_VALUE
    assert "no value of the round was finite" in silent.message


def test_retries_keep_to_the_cost_limit_and_a_stop_tells_what_was_spent():
    result = go(Flaky(range(5, 400), raises), retries=100, cost=lambda i: 1.0, max_cost=24)
    assert result.status is zt.Status.COST
    assert result.spent == result.nfev <= 24
    stopped = go(Flaky({19}, raises), cost=lambda i: 1.0, max_cost=100)
    assert stopped.spent == stopped.nfev == 19


@pytest.mark.parametrize("eager", [False, True])
def test_a_cost_limit_may_come_later(eager, tmp_path, monkeypatch):
    if eager:  # a snapshot after each round, as a slow machine may have them
        monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda self: True)
    assert killed(lambda: go(Flaky({60}, die), run=tmp_path / "a"), lambda: None)[0]
    result = go(Flaky((), raises), run=tmp_path / "a", cost=lambda i: 1.0, max_cost=30)
    assert result.status is zt.Status.COST
    assert result.nfev == 59


def test_an_error_in_the_last_step_is_not_passed_over():
    steps = go(monitor=PROBLEM.F).nit

    def fails_last(state):
        if state.nit == steps:
            raise RuntimeError("too late")

    result = go(monitor=PROBLEM.F, callback=fails_last)
    assert result.status is zt.Status.CALLBACK_FAILED
    assert "too late" in result.message


def test_a_broken_pool_is_a_failure_and_not_an_exception():
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(2)
    pool.shutdown()
    result = go(workers=pool, retries=1)
    assert result.status is zt.Status.FAILED
    assert result.nfev == 0
    with pytest.raises(ValueError, match="not the class ThreadPoolExecutor"):
        go(workers=ThreadPoolExecutor)


def test_back_off_does_not_outlast_the_time(monkeypatch):
    clock = Clock(monkeypatch)
    result = go(Flaky(range(5, 99), raises), retries=50, backoff=30, max_time=0.3)
    assert result.status is zt.Status.TIME
    assert sum(clock.sleeps) == pytest.approx(0.3)


def test_a_function_that_exits_or_cannot_say_what_is_wrong_has_failed():
    def leaves():
        raise SystemExit(0)

    class Mute(Exception):
        def __str__(self):
            raise ValueError("no words")

    def mute():
        raise Mute

    for act, words in ((leaves, "SystemExit"), (mute, "Mute")):
        for workers in (1, 2):
            result = go(Flaky({30}, act), workers=workers)
            assert result.status is zt.Status.FAILED
            assert f"the objective raised {words}" in result.message


def test_masked_values_are_not_numbers():
    masked = lambda X: np.ma.masked_greater(np.ones(len(X)), 0)
    assert go(masked, n=None, vectorized=True).status is zt.Status.BAD_VALUE
    assert go(lambda x: np.ma.masked, n=None).status is zt.Status.BAD_VALUE


def test_a_function_that_changes_the_folder_does_not_move_the_run(tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)

    def wanders(x, i):
        os.chdir(tmp_path / "other")
        return value(x, i)

    result = go(wanders, run="runs/a")
    assert result.success
    assert len(result.trace.nfev) == result.nit
    assert os.listdir(tmp_path / "other") == []
    assert any(name.startswith("snapshot") for name in os.listdir(tmp_path / "runs" / "a"))


def test_an_end_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zerothresh.runs.snapshot.write", full)
    with pytest.warns(UserWarning, match="the end of the run could not be written"):
        result = go(run=tmp_path / "a")
    assert result.success


def test_a_run_whose_end_was_only_in_the_journal_is_ended_when_it_is_opened(tmp_path, monkeypatch):
    from zerothresh.runs.inspection import inspect

    with monkeypatch.context() as patch:
        patch.setattr("zerothresh.runs.recorder.Recorder._end", lambda self, session: setattr(self, "_ended", True))
        reference = go(run=tmp_path / "a")
    again = go(run=tmp_path / "a")
    assert np.array_equal(again.x, reference.x)
    assert again.nfev == reference.nfev
    assert inspect(tmp_path / "a").steps == reference.nit
