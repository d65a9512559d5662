"""Async functions: the bits of the serial run, exact counts, cancellation, rate limits, and what runs in which thread."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from waiting import PATIENCE, until

import zerothresh as zt
from zerothresh.evaluate import evaluator_for, event_loop
from zerothresh.evaluate.base import CancelledBeforehand
from zerothresh.evaluate.rate_limit import RateLimit
from zerothresh.objective.forms import wrap
from zerothresh.runs.failures import Failures
from zerothresh.runs.inspection import inspect
from zerothresh.sampling import kernels
from zerothresh.session.faults import Faults

D, K, M = 12, 3, 6
GOAL = np.zeros(D)
GOAL[[2, 7]] = 2.0, -1.0
MATRIX = np.random.default_rng(0).normal(size=(M, D))
FIXED = {"method": zt.SZOHT(0.05), "estimator": zt.Estimator(q=8), "seed": 3, "backoff": 0}
AUTO = {"method": "auto", "seed": 3, "backoff": 0}
SERVICE = contextvars.ContextVar("SERVICE", default="none")


def f(x):
    return float(((x - GOAL) ** 2).sum())


def component(x, i):
    return float((MATRIX[i] @ (x - GOAL)) ** 2)


def many(X):
    return ((X - GOAL) ** 2).sum(axis=1)


def many_components(X, I):
    return ((MATRIX[I] * (X - GOAL)).sum(axis=1)) ** 2


def residuals(x):
    return MATRIX @ (x - GOAL)


def many_residuals(X):
    return np.stack([residuals(x) for x in X])


class Table:
    """A problem object."""

    d, n = D, M

    def values(self, points, components):
        return many_components(points, components)


class AsyncTable(Table):
    """The same behind a service."""

    async def values(self, points, components):
        await asyncio.sleep(0)
        return many_components(points, components)


def awaited(fun):
    """The same function, but async, and answered in another order than asked."""
    number = 0

    async def later(*arguments):
        nonlocal number
        number += 1
        for _ in range(number % 5):
            await asyncio.sleep(0)
        return fun(*arguments)

    return later


def go(fun, concurrency=4, **options):
    return asyncio.run(zt.minimize_async(fun, D, K, **{"concurrency": concurrency, "budget": 150, **FIXED, **options}))


def serial(fun=f, **options):
    return zt.minimize(fun, D, K, **{"budget": 150, **FIXED, **options})


def same(one, two):
    assert np.array_equal(one.x, two.x)
    assert one.fun == two.fun or (np.isnan(one.fun) and np.isnan(two.fun))
    assert one.trace == two.trace
    assert (one.nfev, one.nit, one.status, one.spent) == (two.nfev, two.nit, two.status, two.spent)
    assert one.remarks == two.remarks


class Counted:
    """Counts the calls that begin, and those that end without a value; acts in some of them."""

    fingerprint = "counted"

    def __init__(self, act=None, when=(), fun=f):
        self.act, self.when, self.fun = act, set(when), fun
        self.calls = self.broken = self.busy = self.most = 0

    async def __call__(self, *arguments):
        self.calls += 1
        number = self.calls
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            await asyncio.sleep(0)
            if number in self.when:
                done = self.act()
                if asyncio.iscoroutine(done):
                    await done
            return self.fun(*arguments)
        except BaseException:
            self.broken += 1
            raise
        finally:
            self.busy -= 1


async def hang():
    await asyncio.Event().wait()


def fail():
    raise OSError("the service is down")


# The bits.


@pytest.mark.parametrize(
    ("fun", "options"),
    [
        (f, {}),
        (f, AUTO | {"estimator": None}),
        (component, {"n": M}),
        (component, AUTO | {"n": M, "estimator": None, "budget": 400}),
        (many, {"vectorized": True, "chunk": 3}),
        (many_components, {"vectorized": True, "n": M, "chunk": 4}),
        (residuals, {"outputs": "residuals"}),
        (residuals, AUTO | {"outputs": "residuals", "loss": "huber", "estimator": None}),
        (many_residuals, {"outputs": "residuals", "vectorized": True, "chunk": 2}),
        (many_residuals, {"outputs": "components", "vectorized": True, "on_nan": "mask"}),
    ],
)
def test_every_form_gives_the_bits_of_the_serial_run(fun, options):
    same(go(awaited(fun), **options), serial(fun, parallel=4, **options))
    same(go(awaited(fun), 7, parallel=1, **options), serial(fun, **options))


def test_a_problem_object_whose_values_are_async_gives_the_bits_of_the_serial_run():
    options = {**FIXED, "budget": 150, "parallel": 3, "chunk": 2}
    apart = asyncio.run(zt.minimize_async(AsyncTable(), None, K, concurrency=3, **options))
    same(apart, zt.minimize(Table(), None, K, **options))


@pytest.mark.parametrize(
    "options",
    [
        {"monitor": f},
        {"cost": lambda i: 0.5, "max_cost": 40.0},
        {"bounds": (-0.5, 1.5), "include": [1], "exclude": [7]},
        {"callback": lambda progress: None, "progress": True},
        {"fun": lambda x: np.nan if x[2] > 0.02 else f(x)},
        {"fun": lambda x: np.nan if x[2] > 0.02 else f(x), "on_nan": "worst"},
        {"fun": lambda x: fail() if x[2] > 0.02 else f(x), "on_error": "worst", "retries": 1},
        {"fun": lambda x: fail() if x[2] > 0.02 else f(x)},
    ],
)
def test_every_option_means_the_same_as_in_minimize(options):
    options = dict(options)
    fun = options.pop("fun", f)
    apart, alone = go(awaited(fun), 1, **options), serial(fun, **options)
    same(apart, alone)
    assert apart.message == alone.message
    assert (apart.failure is None) == (alone.failure is None)


def test_runs_side_by_side_on_one_loop_do_not_disturb_each_other():
    async def both():
        runs = [zt.minimize_async(awaited(f), D, K, budget=150, concurrency=c, **FIXED, parallel=c) for c in (2, 5)]
        return await asyncio.gather(*runs)

    for width, found in zip((2, 5), asyncio.run(both()), strict=True):
        same(found, serial(parallel=width))


# How many calls, and where.


def test_as_many_calls_are_in_progress_as_was_said_and_never_more():
    fun = Counted()

    async def wait():
        while fun.most < 5:
            await asyncio.sleep(0)

    fun.act, fun.when = wait, range(1, 10_000)
    found = go(fun, 5)
    assert fun.most == 5
    assert found.nfev == fun.calls


def test_the_search_has_its_own_thread_and_what_the_user_gives_is_called_where_it_says():
    threads = {"fun": set(), "callback": set(), "monitor": set(), "loss": set()}

    def here(name):
        threads[name].add(threading.get_ident())

    async def fun(x):
        here("fun")
        return f(x)

    async def monitor(x):
        await asyncio.sleep(0)
        here("loss")
        return f(x)

    def plain_monitor(x):
        here("monitor")
        return f(x)

    go(fun, callback=lambda progress: here("callback"), monitor=plain_monitor)
    found = go(fun, monitor=monitor)
    same(found, serial(parallel=4, monitor=f))
    loop = {threading.get_ident()}
    assert threads["fun"] == threads["callback"] == threads["loss"] == loop
    assert len(threads["monitor"]) == 1
    assert threads["monitor"] != loop


def test_the_loops_of_the_search_let_other_threads_run():
    compiled = [kernel for kernel in vars(kernels).values() if hasattr(kernel, "targetoptions")]
    assert len(compiled) > 10
    assert all(kernel.targetoptions["nogil"] for kernel in compiled)


def test_an_async_callback_is_awaited_and_may_stop_the_run():
    seen = []

    async def callback(progress):
        await asyncio.sleep(0)
        seen.append(progress.nit)
        if progress.nit == 3:
            raise StopIteration("enough")

    found = go(awaited(f), callback=callback)
    assert found.status is zt.Status.CALLBACK
    assert found.message == "the callback stopped the run: enough"
    assert seen == [1, 2, 3]

    def plain(progress):
        raise StopIteration

    assert go(awaited(f), callback=plain).status is zt.Status.CALLBACK
    assert go(awaited(f), callback=lambda progress: fail()).status is zt.Status.CALLBACK_FAILED


def test_calls_see_the_context_variables_of_the_caller():
    seen = set()

    async def fun(x):
        seen.add(SERVICE.get())
        return f(x)

    async def main():
        SERVICE.set("mine")
        return await zt.minimize_async(fun, D, K, budget=60, **FIXED)

    asyncio.run(main())
    assert seen == {"mine"}


# Calls that fail.


def test_a_call_that_raises_is_made_again_and_every_attempt_is_counted():
    fun = Counted(fail, {5, 40, 41})
    found = go(fun, retries=1, budget=153)
    assert found.nfev == fun.calls
    assert fun.broken == 3
    assert np.array_equal(found.x, serial(parallel=4).x)


def test_a_call_that_takes_too_long_is_cancelled_and_made_again():
    fun = Counted(hang, {7})
    found = go(fun, timeout=1.0, retries=50, budget=1000, callback=stop_after(8))
    assert fun.broken >= 1
    assert fun.busy == 0
    assert found.nfev == fun.calls  # others may take long, too, on a machine that is busy
    assert np.array_equal(found.x, serial(budget=1000, parallel=4, callback=stop_after(8)).x)


def stop_after(steps):
    def callback(progress):
        if progress.nit == steps:
            raise StopIteration

    return callback


def test_a_call_that_hangs_for_good_ends_the_run_or_counts_as_the_worst():
    fun = Counted(hang, {7})
    found = go(fun, 1, timeout=0.3)
    assert found.status is zt.Status.FAILED
    assert "timeout = 0.3 s and was cancelled" in found.message
    assert found.nfev == fun.calls

    async def holes(x):
        if x[2] > 0.02:
            await hang()
        return f(x)

    found = go(holes, 8, timeout=0.3, on_error="worst", budget=60)
    assert found.success
    assert "as the worst value seen" in found.remarks[-1][1]


@pytest.mark.parametrize("error", [SystemExit, asyncio.CancelledError, OSError])
def test_whatever_a_call_raises_is_a_call_that_failed(error):
    def leave():
        raise error("over")

    fun = Counted(leave, {5})
    found = go(fun, retries=1, budget=151)
    assert found.success
    assert found.nfev == fun.calls
    assert go(Counted(leave, {5})).status is zt.Status.FAILED


# Cancellation.


async def run_and_cancel(fun, **options):
    """Run, with a function that cancels the task when it likes."""
    task = asyncio.current_task()
    fun.act = task.cancel
    await zt.minimize_async(fun, D, K, **{**FIXED, **options})


@pytest.mark.parametrize("concurrency", [1, 6])
@pytest.mark.parametrize("options", [FIXED, FIXED | {"on_error": "worst"}, AUTO | {"estimator": None}])
def test_a_cancelled_run_goes_on_where_it_was_and_every_call_counts_once(concurrency, options, tmp_path):
    options = {"concurrency": concurrency, "budget": 400, "callback": stop_after(6), **options}
    alone = go(awaited(f), **options)
    fun = Counted(None, {9, 27, 45})
    for _ in range(3):
        with pytest.raises(asyncio.CancelledError) as left:
            asyncio.run(run_and_cancel(fun, run=tmp_path / "run", **options))
        assert fun.busy == 0
        assert f"the run was left after {fun.calls} of 400 calls" in left.value.__notes__[0]
        assert len(Failures(tmp_path / "run").read()) == fun.broken
    found = go(fun, run=tmp_path / "run", **options)
    assert found.nfev == fun.calls == alone.nfev + fun.broken
    assert np.array_equal(found.x, alone.x)
    assert inspect(tmp_path / "run").calls == fun.calls
    assert fun.broken < 3 * concurrency  # the call that cancels the run returns its value, which is kept


def test_a_value_that_comes_in_spite_of_the_cancellation_is_kept(tmp_path):
    async def stubborn(x):
        try:
            await asyncio.sleep(0)
            if fun.calls == 20:
                asyncio.current_task().get_loop().call_soon(task.cancel)
                await asyncio.shield(asyncio.sleep(0.05))
        except asyncio.CancelledError:
            return f(x)
        return f(x)

    class Known(Counted):
        async def __call__(self, x):
            self.calls += 1
            return await stubborn(x)

    fun, task = Known(), None

    async def main():
        nonlocal task
        task = asyncio.current_task()
        await zt.minimize_async(fun, D, K, budget=150, run=tmp_path / "run", **FIXED)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert Failures(tmp_path / "run").read() == []
    found = go(fun, 1, run=tmp_path / "run")
    assert found.nfev == fun.calls
    same(found, serial())


def test_a_call_that_does_not_heed_its_cancellation_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(event_loop, "GRACE", 0.01)
    begun, run = 0, tmp_path / "run"

    async def main():
        task, released = asyncio.current_task(), asyncio.Event()

        async def deaf(x):
            nonlocal begun
            begun += 1
            if begun == 10:
                task.cancel()
            while begun == 10 and not released.is_set():
                with suppress(asyncio.CancelledError):
                    await released.wait()
            return f(x)

        try:
            await zt.minimize_async(deaf, D, K, budget=150, run=run, **FIXED)
        finally:
            released.set()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert len(Failures(run).read()) == 1
    assert inspect(run).calls == begun == 10


def test_a_call_that_is_cancelled_before_it_began_is_not_charged():
    async def main():
        fun, loop = Counted(), asyncio.get_running_loop()
        calls = event_loop.OnEventLoop(loop, 1)
        evaluator = evaluator_for(wrap(fun, D, None, False), calls)
        future = calls.submit(None, evaluator.objective, np.zeros(D), 0)
        loop.call_soon(calls.cancel)  # after the task was made, and before its first step
        while not future.done():
            await asyncio.sleep(0)
        plan = SimpleNamespace(point=lambda row: np.zeros(D), components=[0])
        failure = evaluator._answer(future, plan, 0, 1)
        assert (fun.calls, failure.charged) == (0, 0)
        assert isinstance(failure.error, CancelledBeforehand)

    asyncio.run(main())


def test_a_timeout_around_the_run_leaves_it_resumable(tmp_path):
    fun = Counted(hang, range(30, 40))

    async def main():
        await asyncio.wait_for(
            zt.minimize_async(fun, D, K, concurrency=4, budget=200, run=tmp_path / "run", **FIXED), 2
        )

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(main())
    fun.when = set()
    found = go(fun, run=tmp_path / "run", budget=200)
    assert found.nfev == fun.calls


def test_a_run_that_waits_to_retry_or_for_its_turn_can_be_cancelled(tmp_path):
    for options in ({"retries": 3, "backoff": 1e6}, {"per_second": 1e-3}):
        fun = Counted(fail, {1})

        async def main(fun=fun, options=options):
            run = asyncio.ensure_future(zt.minimize_async(fun, D, K, budget=200, **{**FIXED, **options}))
            while fun.busy or not fun.calls:
                await asyncio.sleep(0)
            run.cancel()
            await run

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(main())
        assert fun.calls == 1


SCRIPT = """
import asyncio, os, signal, sys
import zerothresh as zt

calls = 0

async def fun(x):
    global calls
    number = calls = calls + 1
    await asyncio.sleep(0)
    if number == 30 and len(sys.argv) > 2:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
    return float(((x - 1) ** 2).sum())

try:
    found = asyncio.run(zt.minimize_async(
        fun, 12, 3, budget=300, concurrency=4, method=zt.SZOHT(0.05), seed=1, run=sys.argv[1], progress=False))
    print(calls, found.nfev)
except KeyboardInterrupt:
    print(calls)
"""


def test_ctrl_c_ends_the_run_cleanly(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def run(*arguments):
        command = [sys.executable, str(script), str(tmp_path / "run"), *arguments]
        restored = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, preexec_fn=restored)
        assert done.returncode == 0, done.stderr
        return list(map(int, done.stdout.split()))

    (first,) = run("interrupted")
    second, charged = run()
    assert charged == first + second


def test_a_loop_that_is_closed_in_the_middle_leaves_no_thread_and_a_run_that_goes_on(tmp_path):
    fun = Counted(hang, {20})

    def searches():
        return [thread for thread in threading.enumerate() if thread.name == "zerothresh-search"]

    loop = asyncio.new_event_loop()

    async def main():
        run = asyncio.ensure_future(zt.minimize_async(fun, D, K, budget=150, run=tmp_path / "run", **FIXED))
        while fun.calls < 20:
            await asyncio.sleep(0)
        return run

    run = loop.run_until_complete(main())
    assert len(searches()) == 1
    run._log_destroy_pending = False
    for call in asyncio.all_tasks(loop):
        call._log_destroy_pending = False
    loop.close()
    run.get_coro().close()
    del run
    gc.collect()
    until(lambda: not searches())
    found = go(fun, 1, run=tmp_path / "run", budget=151)
    assert found.nfev == fun.calls


# The rate.


def test_a_rate_limit_never_lets_more_calls_begin_than_it_says():
    now = 0.0
    limit = RateLimit(4, lambda: now)
    rng, begun = np.random.default_rng(0), []
    for _ in range(500):
        if limit.wait() == 0:
            limit.begin()
            begun.append(now)
        now += float(rng.exponential(0.05))
    gaps = np.diff(begun)
    assert gaps.min() >= 0.25
    assert len(begun) > 50
    assert limit.wait() <= 0.25


@pytest.mark.parametrize("workers", [1, 3, "processes", "asyncio"])
def test_calls_begin_no_faster_than_per_second_on_any_kind_of_worker(workers):
    times = []

    def timed(x):
        times.append(time.monotonic())
        return f(x)

    async def timed_async(x):
        times.append(time.monotonic())
        return f(x)

    began, options = time.monotonic(), {"per_second": 100.0, "budget": 20, "parallel": 2}
    if workers == "asyncio":
        found = go(timed_async, 3, **options)
    elif workers == "processes":
        found = serial(workers=zt.Processes(2), **options)
    else:
        found = serial(timed, workers=workers, **options)
    if workers != "processes":
        assert all(at - began >= number / 100 for number, at in enumerate(sorted(times)))
    assert time.monotonic() - began >= (found.nfev - 1) / 100
    assert np.array_equal(found.x, serial(budget=20, parallel=2).x)


@pytest.mark.parametrize("workers", [1, 3, "asyncio"])
def test_no_call_begins_after_max_time_because_it_had_to_wait_for_its_turn(workers):
    options = {"per_second": 1e-3, "max_time": 0.5}
    fun = awaited(f)
    found = go(fun, **options) if workers == "asyncio" else serial(workers=workers, **options)
    assert found.status is zt.Status.TIME
    assert found.nfev <= 1


def test_iterate_keeps_the_rate_too():
    began = time.monotonic()
    for progress in zt.iterate(f, D, K, budget=20, per_second=100.0, **FIXED):
        assert time.monotonic() - began >= (progress.nfev - 1) / 100


def test_jitter_spreads_the_pauses_around_the_backoff():
    exact = [Faults(retries=3, backoff=2.0).pause(tried) for tried in (1, 2, 3)]
    assert exact == [2.0, 4.0, 8.0]
    spread = [Faults(retries=3, backoff=2.0, jitter=0.5).pause(2) for _ in range(200)]
    assert all(2.0 <= pause <= 6.0 for pause in spread)
    assert len(set(spread)) > 100


# Bad arguments.


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"concurrency": 0}, "concurrency must be at least 1 (calls in progress), not 0"),
        ({"concurrency": 2.5}, "concurrency must be a whole number"),
        ({"concurrency": 10**6}, "concurrency must be at most 65536"),
        ({"workers": 4}, "minimize_async takes concurrency, the number of calls in progress, instead of workers"),
        ({"per_second": 0}, "per_second must be a finite number above 0 (calls that begin per second), or None"),
        ({"per_second": "fast"}, "per_second must be a number above 0"),
        ({"jitter": 1.5}, "jitter must be at most 1 (a share of the pause), not 1.5"),
        ({"jitter": -1}, "jitter must be a finite number of at least 0"),
        ({"timeout": 0}, "timeout must be a finite number above 0"),
        ({"callback": 3}, "callback must be a function"),
        ({"callback": lambda: None}, "callback has the signature"),
        ({"fun": f}, "fun must be an async function for minimize_async, but f is an ordinary one: write `async def`"),
        ({"fun": 3.0}, "fun must be a function of x"),
    ],
)
def test_bad_arguments_are_refused_with_one_sentence_before_the_first_call(options, sentence):
    options = dict(options)
    fun = options.pop("fun", Counted())
    with pytest.raises(ValueError) as refused:
        go(fun, **options)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert getattr(fun, "calls", 0) == 0


def test_a_function_that_turns_out_to_be_an_ordinary_one_ends_the_run_with_a_sentence():
    found = go(lambda x: f(x))
    assert found.status is zt.Status.BAD_VALUE
    assert "fun returned float instead of something to await" in found.message


def test_a_lambda_that_returns_something_to_await_will_do():
    fun = awaited(f)
    same(go(lambda x: fun(x)), serial(parallel=4))


@pytest.mark.parametrize("call", [zt.minimize, lambda *a, **o: list(zt.iterate(*a, **o))])
@pytest.mark.parametrize("fun", [awaited(f), Counted(), AsyncTable()])
def test_an_async_function_is_refused_where_nobody_awaits_it(call, fun):
    with pytest.raises(ValueError, match=r"is an async function: call it by `await zt\.minimize_async"):
        call(fun, None if isinstance(fun, AsyncTable) else D, K, budget=100, **FIXED)


def test_without_a_running_loop_there_is_one_sentence():
    run = zt.minimize_async(awaited(f), D, K, budget=100)
    with pytest.raises(RuntimeError, match=r"needs a running event loop of asyncio: await it in a coroutine"):
        run.send(None)


def test_the_example_of_ask_and_tell_in_the_guide_gives_the_same_bits():
    async def main():
        opt = zt.Optimizer(D, K, budget=150, parallel=4, **{k: v for k, v in FIXED.items() if k != "backoff"})
        while not opt.done:
            batch = opt.ask()
            values = await asyncio.gather(*map(awaited(f), batch.points))
            await asyncio.to_thread(opt.tell, batch, values)
        return opt.result()

    assert np.array_equal(asyncio.run(main()).x, serial(parallel=4).x)


def test_the_top_level_has_the_name():
    assert zt.minimize_async.__module__ == "zerothresh.api.awaiting"
    assert Path(event_loop.__file__).name == "event_loop.py"
