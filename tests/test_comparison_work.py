"""A comparison over several processes: the same results, and nothing lost or left behind if processes are killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from compared import CHUNK, RIDGE, Faulty, Ill, Mine, Noted, asked, die, die_once, files_of, go
from waiting import PATIENCE, until

import zerothresh as zt
from zerothresh.comparison.cell import CellFailed

HERE = Path(__file__).parent


def test_the_number_of_processes_changes_nothing():
    methods = {"szoht": "szoht", "vr": zt.VRSZHT(1.0, m=4), "mine": Mine(1.0), "far": [zt.FGZOHT(1e9)]}
    one = go(methods=methods)
    assert go(methods=methods, jobs=2).to_csv() == one.to_csv()
    assert "DIVERGED" in one.to_csv()


def test_a_process_that_is_killed_is_replaced_and_its_run_goes_on(tmp_path):
    ledger, whole = tmp_path / "ledger", tmp_path / "whole"
    found = go(Noted(ledger, act=die_once, before=400), jobs=2, folder=tmp_path / "kept")
    assert ledger.with_suffix(".died").exists()
    assert found.to_csv() == go(Noted(whole)).to_csv()
    assert asked(whole) <= asked(ledger) <= asked(whole) + 2 * CHUNK  # what was under way


@pytest.mark.slow
def test_processes_that_are_killed_again_and_again_end_it_and_what_is_done_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("zerothresh.comparison.work.DEATHS", 2)
    ledger, folder = tmp_path / "ledger", tmp_path / "kept"
    go(Noted(ledger), runs=1, folder=folder)
    paid, kept = asked(ledger), files_of(folder)
    with pytest.raises(ValueError, match=r"killed 2 times while they worked on szoht, seed 1.*run it again with fewer"):
        go(Noted(ledger, act=die), jobs=2, folder=folder)
    assert kept.items() <= files_of(folder).items()
    assert asked(ledger) == paid
    assert multiprocessing.active_children() == []
    assert go(Noted(ledger), folder=folder).to_csv() == go(Noted(ledger)).to_csv()


def test_a_problem_that_cannot_be_sent_to_other_processes_says_what_to_do():
    unfit = Ill(F=RIDGE.F, secret=lambda x: x)
    for problem in (lambda x: float(x @ x), unfit, Ill(lock=threading.Lock())):
        with pytest.raises(ValueError, match=r"cannot be sent to other processes \(.*\): .*or use jobs=1"):
            go(problem, x0=5, jobs=2)


def test_an_exception_that_cannot_travel_between_processes_arrives_in_words():
    for jobs in (1, 2):
        with pytest.raises(CellFailed, match=r"(?s)seed \d: .*in update.*Odd: divided by the wrong thing \(7\)"):
            go(methods=Faulty(1.0), jobs=jobs)
    assert multiprocessing.active_children() == []


def python(*arguments, **options):
    places = os.pathsep.join(filter(None, [str(HERE), str(HERE.parent / "examples"), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *map(str, arguments)], env=env, **streams, **options)


def test_a_method_of_ones_own_is_compared_by_its_name():
    process = python(  # of its own, because importing the file registers the method
        "-c",
        "import zerothresh as zt, own_method\n"
        "grid = {'eta': [0.01, 0.05], 'beta': [0.2, 0.5]}\n"
        "found = zt.compare(zt.problems.ridge(seed=1), ['heavy-ball', 'fgzoht'], 3, budget=1000, grid=grid, fresh=1)\n"
        "print([len(contender.candidates) for contender in found.contenders], found.rows()[0]['chosen'])",
    )
    out, errors = process.communicate(timeout=PATIENCE)
    assert out == "[4, 2] HeavyBall(eta=0.05, beta=0.5)\n", errors


@pytest.mark.slow
def test_at_a_prompt_several_processes_are_refused_with_what_to_do():
    process = python(
        "-c",
        "import zerothresh as zt\n"
        "class Mine(type(zt.problems.ridge())): pass\n"
        "problem = zt.problems.ridge(); problem.__class__ = Mine\n"
        "zt.compare(problem, 'szoht', 3, budget=300, grid={'eta': [0.1]}, jobs=2)",
    )
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert errors.count("Can't get attribute 'Mine'") <= 2  # it is not tried again and again
    last = errors.splitlines()[-1]
    assert "a worker process ended by itself with exit code 1" in last
    assert last.endswith("use jobs=1")


def told(pid, word):
    """What the system says of a process; nothing if there is none."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return ""
    return next(line.split()[1] for line in lines if line.startswith(f"{word}:"))


def alive(pid):
    return told(pid, "State") not in ("", "Z", "X")


def deaf(pid):
    return bool(int(told(pid, "SigIgn"), 16) >> (signal.SIGINT - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes through /proc")
@pytest.mark.parametrize("stop", ["Ctrl-C", pytest.param("kill -9", marks=pytest.mark.slow)])
def test_stopped_from_outside_no_process_is_left_and_the_next_call_goes_on(stop, tmp_path):
    ledger, folder, whole = tmp_path / "ledger", tmp_path / "kept", tmp_path / "whole"
    script = tmp_path / "use.py"
    script.write_text(f"""
from compared import endlessly

if __name__ == "__main__":
    endlessly({str(ledger)!r}, {str(folder)!r})
""")
    process = python(script, start_new_session=True)

    def workers():
        return {int(line.split()[0]) for line in ledger.read_text().splitlines()} if ledger.exists() else set()

    try:
        until(lambda: asked(ledger) == 10 * CHUNK or process.poll() is not None)
        assert len(workers()) == 2
        assert all(map(deaf, workers()))  # the parent alone answers Ctrl-C
        if stop == "Ctrl-C":
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        else:
            os.kill(process.pid, signal.SIGKILL)
        _, errors = process.communicate(timeout=PATIENCE)
        until(lambda: not any(map(alive, workers())))
    finally:
        for pid in workers():
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        process.kill()
    if stop == "Ctrl-C":
        assert errors.count("Traceback") == 1
        assert errors.splitlines()[-1] == "KeyboardInterrupt"
    found = go(Noted(ledger), folder=folder)
    assert found.to_csv() == go(Noted(whole)).to_csv()
    assert asked(ledger) == asked(whole)
