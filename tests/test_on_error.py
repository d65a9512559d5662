"""Calls that fail count as the worst value seen, if the user says so: `on_error="worst"`."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from far_objectives import D, K, f, holes, in_a_hole, leave, residuals
from killing import die, killed
from waiting import PATIENCE

import zerothresh as zt
from zerothresh.runs.failures import Failures

SMALL = zt.SZOHT(0.02)
COARSE = zt.Estimator(q=4, mu=0.5)  # an invented value is no slope: steps must not be multiplied by a thousand


def go(fun=holes, **options):
    made = {"budget": 200, "method": SMALL, "estimator": COARSE, "seed": 3, "backoff": 0}
    return zt.minimize(fun, D, K, **{**made, "on_error": "worst", **options})


class Counting:
    """Counts its calls, and those that fail."""

    fingerprint = "counting"

    def __init__(self, fun=holes):
        self.fun, self.calls, self.failed, self.lock = fun, 0, 0, threading.Lock()

    def __call__(self, x):
        with self.lock:
            self.calls += 1
            self.failed += in_a_hole(x)
        return self.fun(x)


def told(result):
    """The number of calls of which the result says that they count as the worst value."""
    sentences = [sentence for _, sentence in result.remarks if "as the worst value seen" in sentence]
    assert len(sentences) <= 1
    return int(sentences[0].split()[0].replace(",", "")) if sentences else 0


def test_a_run_goes_on_through_holes_and_says_how_many_there_were():
    fun = Counting()
    found = go(fun)
    assert found.success
    assert fun.failed > 2
    assert found.nfev == fun.calls <= 200
    assert told(found) == fun.failed
    assert "because the function failed there" in found.remarks[-1][1]
    assert found.fun < f(np.zeros(D))
    assert go(fun, on_error="stop").status is zt.Status.FAILED
    clean = go(f)
    assert told(clean) == 0
    assert np.array_equal(clean.x, go(f, on_error="stop").x)


def test_it_is_the_same_as_returning_nan_with_on_nan_worst():
    def nan(x):
        return np.nan if in_a_hole(x) else f(x)

    failed, bad = go(), go(nan, on_error="stop", on_nan="worst")
    assert np.array_equal(failed.x, bad.x)
    assert failed.fun == bad.fun
    assert failed.trace == bad.trace or failed.trace.nfev.tolist() == bad.trace.nfev.tolist()
    assert told(failed) == told(bad) > 0
    assert "returned no finite number" in bad.remarks[-1][1]


@pytest.mark.parametrize("act", [None, leave])
def test_processes_give_the_bits_of_the_serial_run(act):
    alone = go()
    apart = go(partial(holes, act=act), workers=zt.Processes(2), budget=200 if act is None else 60)
    if act is None:
        assert apart.nfev == alone.nfev
        assert np.array_equal(alone.x, apart.x)
        assert told(apart) == told(alone)
    else:
        assert apart.success  # each point that kills its process is tried twice, and then counts as the worst
        assert told(apart) > 0


def test_threads_and_executors_give_the_bits_of_the_serial_run():
    alone = go()
    with ThreadPoolExecutor(3) as pool:
        for workers in (2, 5, pool):
            apart = go(workers=workers)
            assert np.array_equal(alone.x, apart.x)
            assert alone.nfev == apart.nfev
            assert told(alone) == told(apart)


@pytest.mark.parametrize("method", ["auto", zt.FGZOHT(eta=0.02), zt.methods.Outside("cma")], ids=str)
def test_every_kind_of_method_goes_on(method):
    fun = Counting()
    found = go(fun, method=method, budget=400)
    assert found.status.success
    assert found.nfev == fun.calls <= 400
    assert told(found) == fun.failed


def test_a_failed_call_is_first_made_again_and_every_attempt_counts():
    fun = Counting()
    found, alone = (
        go(fun, retries=2, budget=10**4, callback=stop_at(20)),
        go(budget=10**4, callback=stop_at(20)),
    )
    assert np.array_equal(found.x_last, alone.x_last)
    assert told(found) == told(alone) == fun.failed / 3
    assert found.nfev == fun.calls == alone.nfev + 2 * told(alone)


def stop_at(steps):
    def callback(progress):
        if progress.nit == steps:
            raise StopIteration

    return callback


def test_a_call_that_takes_too_long_counts_as_the_worst():
    ended = threading.Event()

    def waits(x):
        if in_a_hole(x):
            ended.wait(PATIENCE)
        return f(x)

    try:
        found = go(waits, timeout=2, workers=2, budget=40)
    finally:
        ended.set()
    assert found.success
    assert told(found) > 0


def test_vector_outputs_are_replaced_by_those_of_the_worst_call():
    fun = Counting(partial(holes, fun=residuals))
    for method in ("auto", SMALL):
        fun.calls = fun.failed = 0
        found = go(fun, outputs="residuals", method=method)
        assert found.success
        assert found.nfev == fun.calls
        assert told(found) == fun.failed
        masked = go(fun.fun, outputs="residuals", method=method, on_nan="mask")
        assert np.array_equal(found.x, masked.x)


def test_vectorised_calls_count_as_the_worst_as_a_whole():
    def batch(X):
        return np.array([holes(x) for x in X])

    found = go(batch, vectorized=True, chunk=2)
    assert found.success
    assert told(found) > 0
    assert found.nfev <= 200


def always(x):
    raise OSError("the licence server is down")


def test_without_a_value_there_is_no_worst_one_and_the_run_can_go_on_later(tmp_path):
    always.fingerprint = "the same"
    mended = Counting()
    mended.fingerprint = "the same"
    session = partial(go, run=tmp_path / "run", budget=220)
    found = session(always)
    assert found.status is zt.Status.FAILED
    assert "no call of the round gave a value, and none before it" in found.message
    assert "the licence server is down" in found.message
    assert isinstance(found.failure.error, OSError)
    lost = found.nfev
    again = session(always)
    assert again.status is zt.Status.FAILED
    assert again.nfev == 2 * lost
    good = session(mended)
    assert good.success
    assert good.nfev == 2 * lost + mended.calls
    outputs = go(always, outputs="residuals")
    assert outputs.status is zt.Status.FAILED
    assert "it was the first call, so that there is no worst value to take instead" in outputs.message


def test_what_a_call_returns_is_left_to_on_nan():
    assert go(lambda x: np.nan if in_a_hole(x) else f(x)).status is zt.Status.BAD_VALUE
    assert go(lambda x: None).status is zt.Status.BAD_VALUE
    both = go(lambda x: np.nan if x[0] > 0.001 else holes(x), on_nan="worst")
    assert both.success
    assert "because the function failed there, or returned no finite number" in both.remarks[-1][1]


def test_a_call_that_was_never_made_is_not_replaced():
    pool = ThreadPoolExecutor(2)
    pool.shutdown()
    found = go(f, workers=pool)
    assert found.status is zt.Status.FAILED
    assert found.nfev == 0


@pytest.mark.parametrize("outputs", [None, "residuals"])
@pytest.mark.parametrize("method", [SMALL, "auto"], ids=["szoht", "auto"])
def test_a_run_that_is_killed_goes_on_with_the_same_bits(outputs, method, tmp_path):
    hole = partial(holes, fun=f if outputs is None else residuals, every=29 if outputs is None else 5)
    alone = go(Counting(hole), outputs=outputs, method=method)
    calls = 0

    def dies(x):
        nonlocal calls
        calls += 1
        if calls == 20:
            die()
        return hole(x)

    dies.fingerprint = "counting"
    session = partial(go, dies, outputs=outputs, method=method, run=tmp_path / "run")
    made = 0
    for _ in range(50):
        was_killed, count = killed(session, lambda: calls)
        made += count
        if not was_killed:
            break
    found = session()
    assert np.array_equal(found.x, alone.x)
    assert found.nfev == alone.nfev
    assert told(found) == told(alone) > 0
    failures = Failures(tmp_path / "run").read()
    assert len(failures) >= told(found)
    assert all("the solver did not converge" in line["error"] for line in failures)


def test_a_snapshot_keeps_the_number(tmp_path):
    fun = Counting()
    folder = tmp_path / "run"
    first = go(fun, run=folder, callback=stop_at(20), budget=400)
    more = go(fun, run=folder, budget=400)
    whole = go(Counting(), budget=400)
    assert told(first) <= told(more) == told(whole)
    assert np.array_equal(more.x, whole.x)
    assert go(fun, run=folder, budget=400, on_error="stop").nfev == more.nfev  # it has ended


def test_another_setting_refuses_a_folder_with_values_that_were_replaced(tmp_path):
    calls = 0

    def dies(x):
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError("no")
        if calls == 4:  # in the first round, before any snapshot
            die()
        return f(x)

    dies.fingerprint = "dies"
    assert killed(partial(go, dies, run=tmp_path / "run"), lambda: None)[0]
    with pytest.raises(zt.RunError, match="does not fit the run"):
        go(dies, run=tmp_path / "run", on_error="stop")
    calls = 4
    found = go(dies, run=tmp_path / "run")
    assert found.success
    assert told(found) == 1


def test_iterate_goes_on_too():
    states = list(zt.iterate(holes, D, K, budget=200, method=SMALL, estimator=COARSE, seed=3, on_error="worst"))
    assert states
    with pytest.raises(RuntimeError, match="did not converge"):
        list(zt.iterate(holes, D, K, budget=200, method=SMALL, estimator=COARSE, seed=3))


def test_the_command_takes_it(tmp_path):
    (tmp_path / "box.py").write_text(
        "def loss(x):\n    if int(abs(x).sum() * 1e6) % 13 == 5:\n        raise OSError('no')\n"
        "    return float(((x - 1) ** 2).sum())\n"
    )
    start = [sys.executable, "-c", "from zerothresh.cli.app import main; main()", "solve", "box.py:loss"]
    arguments = ["--dim", "6", "-k", "2", "--budget", "300", "--seed", "0", "-v"]
    for extra, code in ((["--on-error", "worst"], 0), ([], 1), (["--on-error", "best"], 2)):
        done = subprocess.run([*start, *arguments, *extra], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert ("as the worst value seen" in " ".join((done.stdout + done.stderr).split())) == (code == 0)
    assert "--on-error must be" in done.stderr
