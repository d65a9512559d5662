"""A Dask cluster: the bits of a serial run, workers that die, counts that agree, and a scheduler that is killed."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from far_objectives import Counted, Heavy, Unloadable, batch, f, fail, go, kill_myself, residuals
from test_processes import ROOT
from waiting import PATIENCE, until

import zerothresh as zt
from zerothresh.evaluate.base import ClusterLost, WorkerDied
from zerothresh.evaluate.choose import evaluator_for
from zerothresh.evaluate.dask_chunks import DaskChunks
from zerothresh.evaluate.dask_worker import Taken, _pickled
from zerothresh.evaluate.packing import unpacked
from zerothresh.evaluate.task_sizes import MOST_DEPTH, MOST_OVERHEAD, TaskSizes
from zerothresh.objective.forms import wrap
from zerothresh.runs.failures import Failures

distributed = pytest.importorskip("distributed", reason="the package distributed is not installed")
pytestmark = pytest.mark.xdist_group("dask")  # the processes of one cluster are enough for a machine with two cores


def cluster(workers, threads):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=threads, dashboard_address=":0", memory_limit=0
    )


@pytest.fixture(scope="module")
def client():
    """Two worker processes of one thread."""
    with cluster(2, 1) as made, distributed.Client(made) as connected:
        yield connected


@pytest.fixture
def mortal():
    """A cluster of its own, for a test that kills workers."""
    with cluster(2, 1) as made, distributed.Client(made) as connected:
        yield connected


def test_dask_gives_the_bits_of_the_serial_run(client):
    for workers in (client, client.get_executor()):
        alone, apart = go(parallel=2), go(workers=workers)
        assert np.array_equal(alone.x, apart.x)
        assert alone.trace == apart.trace
        assert alone.nfev == apart.nfev


def test_auto_vectorised_functions_and_outputs_give_the_bits_of_the_serial_run_on_dask(client):
    for options in (
        {"method": "auto", "budget": 120, "estimator": None},
        {"fun": batch, "vectorized": True, "chunk": 3},
        {"fun": residuals, "outputs": "residuals", "method": "auto", "estimator": None, "budget": 60},
    ):
        alone, apart = go(parallel=2, **options), go(workers=client, **options)
        assert np.array_equal(alone.x, apart.x)
        assert alone.fun == apart.fun
        assert alone.nfev == apart.nfev


def test_the_objective_is_pickled_once_and_loaded_once_per_worker(client, tmp_path):
    path = tmp_path / "notes"
    found = go(Heavy(path), workers=client)
    notes = [line.split() for line in path.read_text().splitlines()]
    assert notes.count(["out", str(os.getpid())]) == 1
    loaded = [process for word, process in notes if word == "in"]
    assert len(loaded) == len(set(loaded)) <= 2
    assert sum(word == "call" for word, _ in notes) == found.nfev


@pytest.fixture
def one_by_one(monkeypatch):
    """Calls that are long beside what a task costs, on a machine of any speed."""
    monkeypatch.setattr(TaskSizes, "alone", True)


def test_a_worker_that_is_killed_costs_its_call_and_nothing_else(mortal, tmp_path, one_by_one):
    alone, folder = go(parallel=2), tmp_path / "run"
    fun = Counted(tmp_path, kill_myself, {5, 40})
    found = go(fun, workers=mortal, run=folder, budget=152)
    assert found.success
    assert np.array_equal(alone.x, found.x)
    assert found.nfev == fun.calls == alone.nfev + 2
    failures = Failures(folder).read()
    assert len(failures) == 2
    assert all("was lost during the call" in line["error"] for line in failures)
    again = go(fun, run=folder, budget=152)  # the journal has every call
    assert again.nfev == found.nfev == fun.calls
    assert np.array_equal(again.x, found.x)


@pytest.mark.slow
def test_calls_that_were_sent_together_are_charged_together(mortal, tmp_path):
    alone, fun = go(parallel=2, budget=400), Counted(tmp_path, kill_myself, {100})
    found = go(fun, workers=mortal, budget=400)
    steps = min(alone.nit, found.nit)
    assert steps > 60
    assert np.array_equal(alone.trace.fun[:steps], found.trace.fun[:steps], equal_nan=True)
    assert fun.calls <= found.nfev <= 400
    assert found.nfev <= fun.calls + 4  # a round has five calls


@pytest.mark.slow
def test_a_call_that_always_kills_its_worker_fails_after_its_retry(mortal, tmp_path, one_by_one):
    fun = Counted(tmp_path, kill_myself, range(20, 99))
    found = go(fun, workers=mortal, parallel=1)
    assert found.status is zt.Status.FAILED
    assert isinstance(found.failure.error, WorkerDied)
    assert found.nfev == fun.calls


class Deadly:
    """Kills its process in a part of the space, or raises there."""

    def __init__(self, dies):
        self.dies = dies

    def __call__(self, x):
        if x[3] > 0.7:
            if self.dies:
                os._exit(3)
            raise ValueError("no mesh")
        time.sleep(0.01)
        return f(x)


def test_a_call_that_kills_its_worker_is_told_from_those_beside_it():
    options = {"on_error": "worst", "budget": 40, "method": zt.SZOHT(0.3), "estimator": zt.Estimator(q=7, mu=0.5)}
    alone = go(Deadly(dies=False), parallel=4, **options)
    with cluster(1, 4) as made, distributed.Client(made) as client:
        apart = go(Deadly(dies=True), workers=client, **{**options, "budget": 90})
    worst = [entry for entry in (alone, apart) if entry.status is zt.Status.BUDGET]
    assert len(worst) == 2
    steps = min(alone.nit, apart.nit)
    assert steps >= 2
    assert apart.nfev > 40
    assert np.array_equal(alone.trace.fun[:steps], apart.trace.fun[:steps], equal_nan=True)


def test_a_function_that_no_worker_can_load_ends_the_run_without_a_call(client):
    found = go(Unloadable(), workers=client)
    assert found.status is zt.Status.FAILED
    assert found.nfev == 0
    assert "could load the function (RuntimeError: no licence in this process)" in found.message


def test_exceptions_come_back_from_dask_with_their_traceback(client):
    def broken(x):
        fail()

    found = go(broken, workers=client)
    assert isinstance(found.failure.error, OSError)
    assert "in fail" in found.failure.traceback
    assert go(lambda x: "nonsense", workers=client).status is zt.Status.BAD_VALUE


def test_a_call_that_takes_too_long_is_left_behind(client, tmp_path):
    marker = tmp_path / "hung"

    def hangs_once(x):
        if not marker.exists():
            marker.touch()
            until((tmp_path / "end").exists)
        return f(x)

    found, alone = go(hangs_once, workers=client, timeout=1, retries=30, budget=170), go(parallel=2)
    (tmp_path / "end").touch()
    assert found.success
    assert found.nfev > alone.nfev


def run(arguments, **options):
    """Start a part of a cluster as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])}
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, arguments)], env=environment, stderr=subprocess.DEVNULL, **options
    )


class Gate:
    """Lets nobody through until a file exists."""

    def __init__(self, file):
        self.file = file

    def __call__(self):
        until(self.file.exists)


def test_a_scheduler_that_is_killed_leaves_a_run_that_can_be_continued(tmp_path, one_by_one):
    file, gate, parts = tmp_path / "scheduler.json", tmp_path / "open", []
    fun, folder, options = Counted(tmp_path, Gate(gate), range(22, 200)), tmp_path / "run", {"budget": 152}
    try:
        place = ["--scheduler-file", file]
        parts.append(run(["distributed.cli.dask_scheduler", "--port", 0, "--no-dashboard", *place]))
        rest = ["--nthreads", 2, "--no-nanny", "--no-dashboard", "--local-directory", tmp_path / "space"]
        parts.append(run(["distributed.cli.dask_worker", *place, *rest]))
        until(file.exists)
        with distributed.Client(scheduler_file=str(file), timeout="60s") as client:
            client.wait_for_workers(1, timeout=PATIENCE)
            killer = threading.Thread(target=lambda: (until(lambda: fun.calls == 23), parts[0].kill()))
            killer.start()  # two calls are under way
            found = go(fun, workers=client, run=folder, **options)
            killer.join()
            assert found.status is zt.Status.FAILED
            assert isinstance(found.failure.error, ClusterLost)
            assert re.fullmatch(
                r"the Dask scheduler at tcp://[\d.:]+ was lost: start the cluster again .* \(after 23 of 152 calls\)",
                found.message,
            )
            assert found.nfev == fun.calls == 23
            with pytest.raises(ValueError, match="pass one that is connected to a scheduler"):
                go(workers=client)
    finally:
        gate.touch()
        for part in parts:
            part.kill()
            part.wait(PATIENCE)
    alone, resumed = go(parallel=2), go(fun, run=folder, **options)
    assert resumed.success
    assert np.array_equal(resumed.x, alone.x)
    assert resumed.nfev == fun.calls == alone.nfev + 2


def test_what_is_no_usable_cluster_is_refused_with_a_sentence(client):
    with pytest.raises(ValueError, match="not its cluster: pass distributed"):
        go(workers=client.cluster)
    lock = threading.Lock()
    with pytest.raises(ValueError, match="fun cannot be sent to Dask's workers"):
        go(lambda x: f(x) + lock.locked(), workers=client)
    with pytest.raises(ValueError, match=r"no workers yet.*client.wait_for_workers\(50\)"):
        go(workers=client.get_executor(workers=["somewhere else"]))


def test_calls_are_restricted_to_the_workers_of_an_executor(client, tmp_path):
    address = next(iter(client.scheduler_info()["workers"]))
    fun = Counted(tmp_path)
    found = go(fun, workers=client.get_executor(workers=[address]))
    assert found.success
    assert len(fun.processes) == 1


def test_the_width_is_the_number_of_threads_unless_it_is_given(client):
    evaluator = evaluator_for(wrap(f, 12, None, False), client)
    assert evaluator.width == 2
    evaluator.close()
    evaluator.close()


@pytest.mark.parametrize(("cost", "overhead"), [(0.005, 0.004), (1e-3, 0.01), (0.05, 0.02)])
def test_scheduling_takes_at_most_a_twentieth_of_small_calls(cost, overhead):
    sizes = TaskSizes()
    assert sizes.alone  # while nothing is known: the calls may be long
    sizes.note(1, cost, overhead, alone=True)
    assert not sizes.alone
    sizes.note(4, 4 * cost, overhead, alone=False)
    assert overhead <= MOST_OVERHEAD * sizes.depth * cost
    assert overhead > MOST_OVERHEAD * (sizes.depth - 1) * cost


def test_long_calls_are_sent_one_by_one_and_no_task_has_too_many():
    sizes = TaskSizes()
    sizes.note(1, 2.0, 0.05, alone=True)
    assert sizes.alone
    assert sizes.depth == 1
    sizes = TaskSizes()
    sizes.note(1, 0.0, 0.05, alone=True)
    sizes.note(1, 0.0, 0.05, alone=False)
    assert sizes.depth == MOST_DEPTH


def test_small_calls_make_few_tasks(client, monkeypatch):
    made, start = [], DaskChunks._start
    monkeypatch.setattr(DaskChunks, "_start", lambda self, *what: (made.append(len(what[1])), start(self, *what))[1])
    found = go(workers=client, budget=2000, estimator=zt.Estimator(q=400), method=zt.FGZOHT(0.05))
    assert sum(made) == found.nfev
    assert max(made) > 20


def waits(x):
    time.sleep(0.01)
    return f(x)


def test_a_worker_has_the_next_short_calls_before_it_has_answered(client, monkeypatch):
    monkeypatch.setattr(TaskSizes, "alone", False)
    at_once, start = [], DaskChunks._start

    def noted(self, host, calls):
        start(self, host, calls)
        at_once.append(len(host.chunks))

    monkeypatch.setattr(DaskChunks, "_start", noted)
    found, alone = go(waits, workers=client, estimator=zt.Estimator(q=20)), go(parallel=2, estimator=zt.Estimator(q=20))
    assert max(at_once) == 2
    assert np.array_equal(found.x, alone.x)


def test_dask_knows_for_as_long_as_a_run_lasts_that_its_workers_are_in_use(client):
    scheduler, seen = client.cluster.scheduler, []

    def look(progress):
        seen.append(sum(bool(worker.processing) for worker in scheduler.workers.values()))

    go(workers=client, callback=look, budget=40)
    assert seen[-1] == 2
    until(lambda: not scheduler.tasks)


def test_a_worker_makes_as_many_calls_at_a_time_as_its_resources_allow():
    options = {"n_workers": 1, "threads_per_worker": 4, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options, resources={"licence": 5}) as made, distributed.Client(made) as client:
        for needed, width in ((1, 4), (2, 2), (5, 1)):
            evaluator = evaluator_for(wrap(f, 12, None, False), client.get_executor(resources={"licence": needed}))
            assert evaluator.width == width
            evaluator.close()
        with pytest.raises(ValueError, match="no workers yet"):
            go(workers=client.get_executor(resources={"licence": 6}))
        assert go(workers=client.get_executor(resources={"licence": 2}), budget=60).success


def many_outputs(x):
    return np.concatenate([residuals(x), np.ones(1000)])


def test_outcomes_that_are_too_large_for_a_message_are_fetched(client):
    options = {"outputs": "residuals", "method": "auto", "estimator": None, "budget": 40}
    alone, apart = go(many_outputs, parallel=2, **options), go(many_outputs, workers=client, **options)
    assert np.array_equal(alone.x, apart.x)
    assert alone.nfev == apart.nfev


def test_an_outcome_that_cannot_be_pickled_fails_its_call_and_no_other_one():
    good, bad = Taken(0, 0, (True, 1.0), 0.1, 0.1), Taken(0, 1, (True, threading.Lock()), 0.1, 0.1)
    first, second = pickle.loads(_pickled([good, bad]))  # noqa: S301
    assert first == good
    assert not second.outcome[0]
    assert "cannot pickle" in str(unpacked(*second.outcome[1]))
