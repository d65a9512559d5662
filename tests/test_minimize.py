"""The loop: forms of the objective, faults, stops, workers, and what comes back."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from waiting import PATIENCE

import zerothresh as zt

GOAL = np.array([0, 3.0, 0, 0, -2.0, 0])


def f(x):
    return float(((x - GOAL) ** 2).sum())


def component(x, i):
    return f(x) + 0.1 * i


def go(fun=f, x0=6, k=2, **options):
    made: dict = {"budget": 600, "method": zt.SZOHT(eta=0.05), "seed": 0}
    return zt.minimize(fun, x0, k, **{**made, **options})


class FailsAt:
    """An objective that misbehaves at its n-th call."""

    def __init__(self, call, act):
        self.call, self.act, self.calls = call, act, 0

    def __call__(self, x):
        self.calls += 1
        return self.act(x) if self.calls == self.call else f(x)


def test_all_forms_of_the_objective_give_the_same_bits():
    class Both:
        d, n = 6, 3

        def values(self, points, components):
            return np.array([component(x, i) for x, i in zip(points, components, strict=True)])

    plain = [go(), go(lambda X: np.array([f(x) for x in X]), vectorized=True)]
    summed = [
        go(component, n=3),
        go(lambda X, I: np.array([component(x, i) for x, i in zip(X, I, strict=True)]), n=3, vectorized=True),
        go(Both(), None),
        go(Both(), 6),
    ]
    for results in (plain, summed):
        for result in results:
            assert np.array_equal(result.x, results[0].x)
            assert result.trace == results[0].trace
        assert results[0].support.tolist() == [1, 4]


@pytest.mark.parametrize("number", [np.float32(2), 3, np.array(1.5), np.array([1.5]), True])
def test_numbers_of_any_real_kind_are_values(number):
    assert go(lambda x: number, budget=50).success


def test_points_are_read_only_so_that_writing_into_them_fails_loudly():
    def writes(x):
        x[0] = 0
        return 0.0

    for options in ({}, {"workers": 2}):
        result = go(writes, **options)
        assert result.status is zt.Status.FAILED
        assert "read-only" in result.message
    result = go(lambda X: writes(X[0]) + X[:, 0], vectorized=True)
    assert "read-only" in result.message


def test_an_exception_stops_with_the_best_point_and_the_users_own_traceback():
    def broken_simulator(x):
        raise RuntimeError("valve 7 is stuck")

    fun = FailsAt(200, broken_simulator)
    result = go(fun)
    assert not result.success
    assert result.status is zt.Status.FAILED
    assert "RuntimeError: valve 7 is stuck" in result.message
    assert "broken_simulator" in result.failure.traceback
    assert result.nfev == fun.calls == 200
    assert result.fun < f(np.zeros(6))
    assert result.fun == f(result.x)
    assert result.failure.point.shape == (6,)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "returned nan; it must return a finite number"),
        (np.inf, "returned inf"),
        (-np.inf, "returned -inf"),
        (None, "returned None; it must return one number"),
        ("1", "it must return one real number"),
        (1 + 2j, "it must return one real number"),
        (np.zeros(3), r"returned an array of shape \(3,\); it must return one number"),
    ],
)
def test_a_value_that_is_no_finite_number_stops_with_its_reason(value, words):
    result = go(FailsAt(100, lambda x: value))
    assert result.status is zt.Status.BAD_VALUE
    assert result.nfev == 100
    assert not result.success
    import re

    assert re.search(words, result.message)
    assert result.fun < f(np.zeros(6))


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda X: X, r"returned shape \(11, 6\) for 11 points; it must return shape \(11,\)"),
        (lambda X: 1.0, r"returned shape \(\) for 11 points"),
        (lambda X: np.full(len(X), np.nan), "returned np.float64\\(nan\\) for point 0|returned nan for point 0"),
        (lambda X: np.array(["a"] * len(X)), "it must return real numbers"),
        (lambda X: None, "returned None; it must return 11 numbers"),
    ],
)
def test_a_vectorised_function_that_returns_the_wrong_thing_stops_with_its_reason(act, words):
    import re

    result = go(act, vectorized=True)
    assert result.status is zt.Status.BAD_VALUE
    assert re.search(words, result.message)
    assert result.nfev == 11


@pytest.mark.parametrize("workers", [1, 3])
def test_ctrl_c_stops_with_the_best_point_so_far(workers):
    def interrupts(x):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        return f(x)

    result = go(FailsAt(200, interrupts), workers=workers)
    assert result.status is zt.Status.INTERRUPTED
    assert "Ctrl-C" in result.message
    assert 200 <= result.nfev <= 200 + workers
    assert result.fun < f(np.zeros(6))


def test_a_callback_sees_each_step_and_stops_by_stop_iteration():
    seen = []

    def callback(state):
        seen.append((state.nit, state.nfev, state.nht, state.x.copy()))
        if state.nit == 5:
            raise StopIteration

    result = go(callback=callback)
    assert [row[0] for row in seen] == [1, 2, 3, 4, 5]
    assert result.status is zt.Status.CALLBACK
    assert result.success
    assert result.nfev == 5 * 11 + 1  # F at the result is still paid for
    assert np.array_equal(seen[-1][3], result.x_last)


def test_a_callback_that_fails_loses_nothing():
    def callback(state):
        if state.nit == 4:
            raise KeyError("no such colour")

    result = go(callback=callback)
    assert result.status is zt.Status.CALLBACK_FAILED
    assert "no such colour" in result.message
    assert result.nit == 4


def test_a_monitor_gives_the_curve_is_not_charged_and_fails_without_loss():
    calls = []
    result = go(component, n=4, monitor=lambda x: calls.append(1) or f(x))
    assert len(calls) == result.nit
    assert np.isfinite(result.trace.fun).all()
    assert result.nfev == result.trace.nfev[-1]  # nothing is kept back for F
    assert result.fun == min(result.trace.fun)
    failed = go(component, n=4, monitor=lambda x: 1 / 0)
    assert failed.status is zt.Status.CALLBACK_FAILED
    assert "ZeroDivisionError" in failed.message


def test_a_step_too_large_diverges_with_a_status_and_the_best_known_point():
    for method in (zt.FGZOHT(eta=1e3), zt.SZOHT(eta=1e3)):
        with np.errstate(all="ignore"):
            result = go(component, n=4, method=method, budget=200_000)
        assert not result.success
        assert result.status in (zt.Status.DIVERGED, zt.Status.BAD_VALUE)
        assert np.isfinite(result.x).all()
        assert np.isnan(result.fun) or result.fun <= f(np.zeros(6)) + 1


def test_the_result_is_the_best_point_known_and_keeps_the_last_iterate():
    result = go(method=zt.FGZOHT(eta=0.9), budget=3000)  # too large a step: it dances
    assert result.fun <= f(result.x_last)
    assert result.fun == f(result.x)


def test_the_trace_becomes_records_a_frame_and_csv():
    result = go(monitor=f)
    records = result.trace.to_records()
    assert records.nfev[-1] == result.nfev
    assert records.support[-1].tolist() == result.support.tolist()
    frame = result.trace.to_frame()
    assert list(frame.columns) == ["step", "nfev", "nht", "fun", "support"]
    lines = result.trace.to_csv().splitlines()
    assert len(lines) == result.nit + 1
    assert float(lines[-1].split(",")[3]) == result.trace.fun[-1]


def test_iterate_is_the_same_run_as_minimize():
    states = list(zt.iterate(f, 6, 2, budget=600, method=zt.SZOHT(eta=0.05), seed=0))
    result = go()
    assert [s.nfev for s in states] == result.trace.nfev.tolist()
    assert np.array_equal(states[-1].x, result.x_last)


def test_iterate_raises_when_the_objective_fails():
    with pytest.raises(RuntimeError, match="valve") as error:
        list(
            zt.iterate(FailsAt(50, lambda x: 1 / 0 if x is None else _valve()), 6, 2, budget=600, method=zt.SZOHT(0.1))
        )
    assert isinstance(error.value.__cause__, OSError)


def _valve():
    raise OSError("valve")


def test_processes_give_the_same_bits():
    with ProcessPoolExecutor(2) as pool:
        shared = go(component, n=3, workers=pool, budget=200)
    alone = go(component, n=3, budget=200)
    assert np.array_equal(alone.x, shared.x)
    assert alone.trace == shared.trace


def test_an_executor_of_the_user_is_left_running():
    with ThreadPoolExecutor(2) as pool:
        go(workers=pool, budget=100)
        assert pool.submit(int, "3").result() == 3


def test_no_more_calls_are_under_way_than_there_are_workers():
    lock, running, most = threading.Lock(), 0, 0
    together = threading.Event()  # two calls are under way: the first waits for the second

    def slow(x):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if most > 1:
                together.set()
        assert together.wait(PATIENCE)
        time.sleep(0.001)
        with lock:
            running -= 1
        return f(x)

    go(slow, workers=3, budget=100)
    assert 2 <= most <= 3


def test_a_failure_on_one_of_many_workers_counts_what_was_begun():
    lock, begun = threading.Lock(), 0

    def sometimes(x):
        nonlocal begun
        with lock:
            begun += 1
            mine = begun
        time.sleep(0.01)
        if mine == 30:
            raise ValueError("worker down")
        return f(x)

    result = go(sometimes, workers=4)
    assert result.status is zt.Status.FAILED
    assert result.nfev == begun <= 33  # the third round of eleven calls is the last


def test_stop_ends_an_ask_tell_run_after_the_final_value():
    opt = zt.Optimizer(6, 2, budget=600, method=zt.SZOHT(0.05), seed=0)
    batch = opt.ask()
    opt.tell(batch, [f(x) for x in batch.points])
    opt.stop()
    batch = opt.ask()
    assert len(batch) == 1
    opt.tell(batch, [f(x) for x in batch.points])
    assert opt.done
    result = opt.result()
    assert result.status is zt.Status.STOPPED
    assert result.success
    assert result.nfev == 12


def test_a_method_that_has_nothing_more_to_ask_ends_the_run():
    from dataclasses import dataclass

    from zerothresh.rounds.method import Iterate

    @dataclass(frozen=True)
    class Twice:
        def init(self, theta):
            return Iterate(theta)

        def plan(self, state, n, rng):
            return None if state.theta.any() else zt.Probes.gradients(at=[state.theta], of=range(n))

        def update(self, state, answers, H):
            return Iterate(H(state.theta - 0.1 * answers.mean()))

    result = go(method=Twice())
    assert result.status is zt.Status.CONVERGED
    assert result.nit == 1
    assert result.success


def test_the_result_is_a_scipy_result_that_prints():
    from scipy.optimize import OptimizeResult

    result = go()
    assert isinstance(result, OptimizeResult)
    assert "message: the budget is spent" in repr(result)
    assert "SZOHT(eta=0.05" in repr(result)
    assert str(result) == repr(result)
    assert repr(zt.Result(x=1)) == " x: 1"


def test_a_result_prints_its_point_with_names_in_80_columns():
    pandas = pytest.importorskip("pandas")
    goal = np.array([0.0, 5.0, 0.0, -2.0])

    def fun(x):
        return float(((x - goal) ** 2).sum())

    start = pandas.Series(np.zeros(4), index=["a", "valve", "c", "<d>"])
    for result in (
        zt.minimize(fun, start, 2, budget=200, seed=0),
        zt.minimize(fun, 4, 2, budget=200, seed=0, names=["a", "valve", "c", "<d>"]),
    ):
        assert "valve   5\n" in repr(result)
        assert "calls: " in repr(result)
        assert max(map(len, repr(result).splitlines())) <= 80
        assert "valve = 5" in result._repr_html_()
        assert "&lt;d&gt; = -2" in result._repr_html_()
    with pytest.raises(ValueError, match="names must be 4 names"):
        zt.minimize(fun, 4, 2, budget=200, names=["a"])


def test_the_last_remark_is_part_of_the_message_only_if_the_run_ended_well():
    def stop(progress):
        raise RuntimeError("no more")

    whole = zt.minimize(lambda x: ((x - 1) ** 2).sum(), 6, 2, budget=200, seed=0)
    assert whole.success
    assert whole.message.endswith(f"({whole.remarks[-1][1]})")
    failed = zt.minimize(lambda x: ((x - 1) ** 2).sum(), 6, 2, budget=200, seed=0, callback=stop)
    assert failed.status is zt.Status.CALLBACK_FAILED
    assert failed.remarks
    assert failed.message == "the callback raised RuntimeError: no more; result.failure has the traceback"


@pytest.mark.parametrize(("n", "reserved"), [(None, "1 call is reserved"), (3, "3 calls are reserved")])
def test_the_message_about_a_spent_budget_says_what_is_reserved(n, reserved):
    fun = (lambda x: (x**2).sum()) if n is None else (lambda x, i: (x**2).sum())
    found = zt.minimize(fun, 6, 2, n=n, budget=100, method=zt.FGZOHT(eta=0.1), seed=0)
    assert f"({reserved} for F at the result)" in found.message


@pytest.mark.parametrize(("values", "known"), [(2, False), (3, False), (4, True)])
def test_auto_keeps_calls_for_the_value_only_if_the_budget_is_many_times_its_price(values, known):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 40)), rng.standard_normal(60)
    found = zt.minimize(lambda x, i: (X[i] @ x - y[i]) ** 2, 40, 3, n=60, budget=60 * values, seed=0)
    assert found.nfev <= 60 * values
    assert np.isfinite(found.fun) == known
    assert ("reserved" in found.message) == known
    assert found.x.any()


def test_calls_that_are_left_over_tell_the_value_even_if_none_were_kept():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 40)), rng.standard_normal(60)

    def f(x, i):
        return (X[i] @ x - y[i]) ** 2

    opt = zt.Optimizer(40, 3, n=60, budget=170, seed=0)
    batch = opt.ask()
    opt.tell(batch, [f(x, i) for x, i in zip(batch.points, batch.components, strict=True)])
    opt.stop()
    batch = opt.ask()
    assert len(batch) == 60
    opt.tell(batch, [f(x, i) for x, i in zip(batch.points, batch.components, strict=True)])
    assert opt.result().fun == pytest.approx(float((y**2).mean()))


def test_a_problem_object_that_returns_a_wrong_shape_is_named_by_its_function():
    class Wrong:
        d, n = 6, 3

        def values(self, points, components):
            return np.zeros(1)

    found = zt.minimize(Wrong(), None, 2, budget=100, method=zt.FGZOHT(eta=0.1), seed=0)
    assert found.message.startswith("values(points, components) returned shape (1,) for")
