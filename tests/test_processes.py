"""Worker processes: the bits of a serial run, deaths, timeouts, counts, and no orphans."""

from __future__ import annotations

import builtins
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from far_objectives import (
    GOAL,
    Counted,
    D,
    Heavy,
    K,
    Mortal,
    Unloadable,
    batch,
    f,
    fail,
    go,
    hang,
    kill_myself,
    leave,
    residuals,
    segfault,
)
from waiting import PATIENCE, until

import zerothresh as zt
from zerothresh.evaluate import process_pool
from zerothresh.evaluate.base import WorkerDied
from zerothresh.evaluate.process_worker import files_of_modules
from zerothresh.runs.failures import Failures

ROOT = Path(__file__).parents[1]


def alive(number):
    """Whether a process exists and is no zombie, which nobody may have taken note of yet."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("count", [1, 2, 5])
def test_any_number_of_processes_gives_the_bits_of_the_serial_run(count):
    alone, apart = go(), go(workers=zt.Processes(count))
    assert np.array_equal(alone.x, apart.x)
    assert alone.trace == apart.trace
    assert alone.nfev == apart.nfev


def test_auto_vectorised_functions_and_outputs_give_the_bits_of_the_serial_run():
    for options in (
        {"method": "auto", "budget": 120, "estimator": None},
        {"fun": batch, "vectorized": True, "chunk": 3},
        {"fun": residuals, "outputs": "residuals", "method": "auto", "estimator": None, "budget": 60},
    ):
        alone, apart = go(parallel=2, **options), go(workers=zt.Processes(2), **options)
        assert np.array_equal(alone.x, apart.x)
        assert alone.fun == apart.fun
        assert alone.nfev == apart.nfev


@pytest.mark.parametrize("act", [segfault, leave, kill_myself])
def test_a_process_that_dies_is_replaced_and_its_call_made_again(act, tmp_path):
    alone = go()
    folder = tmp_path / "run"
    fun = Counted(tmp_path, act, {5, 40})
    found = go(fun, workers=zt.Processes(2), run=folder, budget=152)
    assert found.success
    assert np.array_equal(alone.x, found.x)
    assert found.nfev == fun.calls == alone.nfev + 2
    failures = Failures(folder).read()
    assert len(failures) == 2
    how = {segfault: "was killed by SIGSEGV", leave: "ended with exit code 3", kill_myself: "was killed by SIGKILL"}
    assert all(f"the worker process {how[act]}" in line["error"] for line in failures)
    again = go(fun, run=folder, budget=152)  # the journal has every call
    assert again.nfev == found.nfev == fun.calls
    assert np.array_equal(again.x, found.x)


def test_a_process_that_is_killed_from_outside_is_replaced(tmp_path):
    def kill_others(progress):
        victims = [number for number in fun.processes if alive(number)]
        if progress.nit in (3, 9):
            assert victims
            for number in victims:
                os.kill(number, signal.SIGKILL)
            until(lambda: not any(map(alive, victims)))

    fun = Counted(tmp_path)
    found, alone = go(fun, workers=zt.Processes(2), callback=kill_others), go()
    assert found.success
    assert np.array_equal(found.x, alone.x)
    assert found.nfev == fun.calls == alone.nfev  # they were idle: no call was lost


def test_a_call_that_always_kills_its_process_fails_after_its_retries(tmp_path):
    for retries, tries in ((0, 2), (3, 4)):
        folder = tmp_path / str(retries)
        folder.mkdir()
        fun = Counted(folder, leave, range(20, 99))
        found = go(fun, workers=zt.Processes(1), retries=retries)
        assert found.status is zt.Status.FAILED
        assert isinstance(found.failure.error, WorkerDied)
        assert (
            f"the worker process ended with exit code 3 during the call (component 0, call {19 + tries}"
            in found.message
        )
        assert found.nfev == fun.calls
        assert found.nfev >= 19 + tries


def test_a_call_that_takes_too_long_is_given_up_with_its_process(tmp_path):
    fun = Counted(tmp_path, hang, {7})
    found, alone = go(fun, workers=zt.Processes(2), timeout=5, retries=30, budget=160), go()
    assert found.success
    assert found.nfev == fun.calls > alone.nfev
    assert not any(map(alive, fun.processes))
    stopped = go(Counted(tmp_path, hang, range(10**4)), workers=zt.Processes(2), timeout=0.5)
    assert stopped.status is zt.Status.FAILED
    assert "took longer than timeout = 0.5 s, and its process was killed" in stopped.message


def test_exceptions_come_back_with_the_traceback_of_their_process():
    def broken(x):
        fail()

    found = go(broken, workers=zt.Processes(1))
    assert isinstance(found.failure.error, OSError)
    assert "in fail" in found.failure.traceback
    assert go(lambda x: "nonsense", workers=zt.Processes(1)).status is zt.Status.BAD_VALUE
    assert go(lambda x: sys.exit("enough"), workers=zt.Processes(1)).status is zt.Status.FAILED

    class Odd(Exception):
        def __init__(self, one, two):
            super().__init__("odd")

    def odd(x):
        raise Odd(1, 2)

    assert "Odd: odd" in go(odd, workers=zt.Processes(1)).message


def test_nan_counts_as_the_worst_value_in_processes_too():
    def holes(x):
        return np.nan if x[0] > 0 else f(x)

    alone, apart = go(holes, on_nan="worst"), go(holes, on_nan="worst", workers=zt.Processes(2))
    assert alone.success
    assert np.array_equal(alone.x, apart.x)


def test_the_function_is_pickled_once_and_sent_once_per_process(tmp_path):
    path = tmp_path / "notes"
    found = go(Heavy(path), workers=zt.Processes(3))
    notes = [line.split() for line in path.read_text().splitlines()]
    assert [process for word, process in notes if word == "out"] == [str(os.getpid())]
    loaded = [process for word, process in notes if word == "in"]
    assert len(loaded) == len(set(loaded)) <= 3
    assert {process for word, process in notes if word == "call"} <= set(loaded)
    assert sum(word == "call" for word, _ in notes) == found.nfev


def test_a_process_loads_what_its_function_needs_and_no_method():
    def loaded(x):
        assert not [name for name in sys.modules if name.startswith(("zerothresh.methods", "numba", "scipy", "pytest"))]
        return f(x)

    assert go(loaded, workers=zt.Processes(1), budget=20).success


def test_what_cannot_be_sent_is_refused_before_the_first_call(monkeypatch, tmp_path):
    lock = threading.Lock()
    with pytest.raises(ValueError, match=r"fun cannot be sent to worker processes \(.*cloudpickle"):
        go(lambda x: f(x) + lock.locked(), workers=zt.Processes(1), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    real = builtins.__import__

    def without(name, *rest, **named):
        if name == "cloudpickle":
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ValueError, match=r"install cloudpickle \(zerothresh\[processes\]\)"):
        go(lambda x: f(x), workers=zt.Processes(1))
    assert np.array_equal(go(f, workers=zt.Processes(1), budget=40).x, go(f, budget=40).x)


def test_a_function_that_no_process_can_load_ends_the_run_without_a_call():
    found = go(Unloadable(), workers=zt.Processes(2))
    assert found.status is zt.Status.FAILED
    assert found.nfev == 0
    assert "could not load the function (RuntimeError: no licence in this process)" in found.message


def test_processes_that_die_before_their_first_call_are_given_up_without_a_charge():
    found = go(Mortal(), workers=zt.Processes(1))
    assert found.status is zt.Status.FAILED
    assert found.nfev == 0
    assert f"{process_pool.MOST_STARTS} worker processes in a row ended before they began a call" in found.message
    assert "ended with exit code 7" in found.message


def test_no_process_is_left_after_a_run(tmp_path):
    fun = Counted(tmp_path)
    go(fun, workers=zt.Processes(3))
    assert fun.processes
    assert os.getpid() not in fun.processes
    assert not any(map(alive, fun.processes))


def script(tmp_path, text):
    """Start a program in a process of its own; it needs no guard around what it runs."""
    path = tmp_path / "program.py"
    path.write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])}
    return subprocess.Popen([sys.executable, str(path)], env=environment, cwd=tmp_path)


ORPHANS = """
import os, time
import zerothresh as zt
from zerothresh.evaluate import process_handle
process_handle.BY_SIGNAL = {by_signal}
def waits(x):
    with open("processes", "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    time.sleep(10**5)
zt.minimize(waits, 8, 2, budget=100, method=zt.SZOHT(0.1), workers=zt.Processes(3))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks into /proc")
@pytest.mark.parametrize("by_signal", [True, False])
def test_no_process_outlives_a_parent_that_is_killed(by_signal, tmp_path):
    program, notes = script(tmp_path, ORPHANS.format(by_signal=by_signal)), tmp_path / "processes"
    until(lambda: program.poll() is not None or (notes.exists() and len(notes.read_text().split()) == 3))
    workers = list(map(int, notes.read_text().split()))
    assert all(map(alive, workers))
    program.kill()
    program.wait(PATIENCE)
    until(lambda: not any(map(alive, workers)))


INTERRUPTED = """
import os, pathlib, sys, time
import numpy as np
import zerothresh as zt
from far_objectives import D, K, f
def slow(x):
    with open("calls", "a") as file:
        file.write(f"{os.getpid()}\\n")
    if not os.path.exists("fast"):
        while not os.path.exists("go"):
            time.sleep(0.01)
    return f(x)
slow.fingerprint = "slow"
found = zt.minimize(slow, D, K, budget=150, method=zt.SZOHT(0.05), estimator=zt.Estimator(q=4), seed=3,
                    workers=zt.Processes(2), run="run", progress=False)
np.save("x.npy", found.x)
pathlib.Path("status").write_text(f"{found.status.name} {found.nfev}")
"""


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_leaves_the_run_resumable(presses, tmp_path):
    program, notes = script(tmp_path, INTERRUPTED), tmp_path / "calls"
    until(lambda: program.poll() is not None or (notes.exists() and len(notes.read_text().split()) == 2))
    workers = list(map(int, notes.read_text().split()))
    for _ in range(presses):
        for number in (*workers, program.pid):  # as a terminal does
            os.kill(number, signal.SIGINT)
        time.sleep(0.5)  # two signals at once are one
    if presses == 1:
        (tmp_path / "go").touch()
    program.wait(PATIENCE)
    assert (tmp_path / "status").read_text() == "INTERRUPTED 2"
    assert len(notes.read_text().split()) == 2
    assert not any(map(alive, workers))
    (tmp_path / "fast").touch()
    assert script(tmp_path, INTERRUPTED).wait(PATIENCE) == 0
    alone = go()
    assert np.array_equal(np.load(tmp_path / "x.npy"), alone.x)
    repeated = 0 if presses == 1 else 2  # calls that were given up count, and are made again
    status, nfev = (tmp_path / "status").read_text().split()
    assert status == "BUDGET"
    assert int(nfev) == len(notes.read_text().split())
    assert repeated or int(nfev) == alone.nfev


def test_a_file_whose_module_has_another_name_is_found(tmp_path):
    (tmp_path / "box.py").write_text(
        "import os\nfrom pathlib import Path\n"
        "def loss(x):\n    Path(f'by-{os.getpid()}').touch()\n    return float(((x - 1) ** 2).sum())\n"
    )
    out = tmp_path / "out.json"
    problem, rest = ["box.py:loss", "--dim", "6", "-k", "2", "--budget", "60"], ["--seed", "0", "--quiet"]
    arguments = ["solve", *problem, *rest, "--processes", "2", "--out"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    start = "import sys; from zerothresh.cli.app import main; main()"
    program = [sys.executable, "-c", start]
    done = subprocess.run(
        [*program, *arguments, str(out)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("by-*"))
    wrong = subprocess.run(
        [*program, *arguments, str(tmp_path / "other"), "--workers", "2"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert wrong.returncode == 2
    assert "give one of the two" in wrong.stderr


def test_modules_with_names_of_their_own_files_are_left_to_the_usual_import():
    assert "test_processes" not in files_of_modules()
    assert "numpy" not in files_of_modules()


def test_the_number_of_processes_is_checked():
    assert zt.Processes().number >= 1
    for wrong in (0, -1, 2.5, "4", True, 10**6):
        with pytest.raises(ValueError, match="count must be"):
            zt.Processes(wrong)
    with pytest.raises(ValueError, match="not the class Processes: pass an instance"):
        go(workers=zt.Processes)
    assert pickle.loads(pickle.dumps(zt.Processes(3))) == zt.Processes(3)  # noqa: S301


def test_iterate_ends_its_processes_when_the_loop_is_left(tmp_path):
    fun = Counted(tmp_path)
    for state in zt.iterate(fun, D, K, budget=150, method=zt.SZOHT(0.05), seed=3, workers=zt.Processes(2)):
        if state.nit == 2:
            break
    del state
    until(lambda: not any(map(alive, fun.processes)))


class Forks:
    """Forks in some calls, and lets the child come back from them."""

    def __init__(self, folder, when):
        self.counted, self.when, self.notes = Counted(folder), when, folder / "children"

    def __call__(self, x):
        value = self.counted(x)
        if self.counted.calls in self.when and (child := os.fork()):
            with self.notes.open("a") as file:
                file.write(f"{child}\n")
        return value


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")  # forked on purpose
@pytest.mark.parametrize("workers", [2, zt.Processes(2)], ids=str)
def test_a_child_that_comes_back_from_a_call_answers_nothing_and_ends(workers, tmp_path):
    fun = Forks(tmp_path, {5, 6, 40})  # calls at the same time may all see the last one's number
    found, alone = go(fun, workers=workers), go()
    assert found.success
    assert np.array_equal(found.x, alone.x)
    assert found.nfev == fun.counted.calls == alone.nfev
    children = list(map(int, fun.notes.read_text().split()))
    assert children
    until(lambda: not any(map(alive, children)))


class Locked(np.ndarray):
    """Outputs that cannot be sent to another process."""

    def __reduce__(self):
        raise TypeError("cannot pickle a lock")


def test_outputs_that_cannot_be_pickled_are_sent_as_numbers():
    def locked(x):
        return residuals(x).view(Locked)

    options = {"outputs": "residuals", "method": "auto", "estimator": None, "budget": 40}
    alone, apart = go(residuals, parallel=2, **options), go(locked, workers=zt.Processes(2), **options)
    assert np.array_equal(alone.x, apart.x)


class Unsent:
    """An objective whose answers cannot be pickled."""

    def known(self):
        return ()

    def learn(self, known):
        pass

    def value(self, point):
        return threading.Lock()


def test_an_answer_that_cannot_be_pickled_fails_its_call_and_not_its_process():
    pool = process_pool.ProcessPool(Unsent(), 1)
    try:
        for _ in range(2):
            with pytest.raises(TypeError, match="cannot pickle"):
                pool.submit(Unsent.value, None, GOAL).result(PATIENCE)
    finally:
        pool.shutdown()


def sleeps_at_first(x):
    if not hasattr(builtins, "zerothresh_has_slept"):
        builtins.zerothresh_has_slept = True
        hang()
    return f(x)


def test_a_timeout_of_the_first_call_of_a_process_says_what_may_have_taken_so_long():
    found = go(sleeps_at_first, workers=zt.Processes(1), timeout=0.2)
    assert found.status is zt.Status.FAILED
    assert "it was the first call of that process: the timeout has to leave time for what it imports" in found.message
