"""The examples run, and show what they say."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from waiting import PATIENCE

import zerothresh as zt

EXAMPLES = Path(__file__).parents[1] / "examples"
SHOWN = {
    "ask_tell.py": ["STOPPED: good enough", "ingredient  4:  1.5", "ingredient 11: -", "ingredient 26:"],
    "async_service.py": [
        "The run was cancelled;",
        "ended well: True",
        "Every call that began was counted once: True",
        "valve  4:  1.5",
        "valve 11: -2.0",
        "valve 26:  1.0",
    ],
    "attack_digits.py": [
        "of 44 images fooled, 3 pixels",
        "kept: at most 3 pixels changed",
        "kept: at most 3000 queries",
    ],
    "attack_http.py": ["killed the first process after", "images fooled, 2 pixels", "images, and the budget is 1500"],
    "calibrate.py": [
        "The first process was killed by signal 9 in run 90.",
        "360 residuals, standard deviation 0.00",
        "The true terms were found: True",
    ],
    "compare_methods.py": ["1140 supports", "FGZOHT", "SARAHSZHT", "picture:"],
    "knobs.py": ["7   0.500   0.500", "21  -0.400  -0.400", "38   0.300   0.300", "52  -0."],
    "mixture.py": ["at most 5 ingredients in each: True", "every mixture sums to 1: True", "of the best is 0.6"],
    "noisy_simulator.py": [
        "The first process was killed by signal 9; its workers ended with it.",
        "on 2 workers; the budget was 400.",
        "knob ",
    ],
    "on_ray.py": ["tasks, F = "],
    "on_submitit.py": ["jobs, F = "],
    "own_method.py": ["SZOHT(eta=0.5", "HeavyBall(eta=0.5, beta=0.5)", "HeavyBall(eta=0.5, beta=0.8)"],
    "portfolio.py": ["the shares sum to 1.000000", "at most 30 %: True", "the best one has a risk of 0.03"],
    "resume.py": [
        "signal 9 in call 700: 699 values had arrived",
        "1293 calls were made: 1992 in all, and 1992 in a run",
        "the same to the bit: True",
    ],
    "select_features.py": [
        "The first process was killed by signal 9 in fit 75.",
        "A process that is not killed makes 144 fits: 144 in all.",
        "the same features: True",
        "balanced accuracy in the folds: 0.9",
    ],
}


def run(name: str, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "MPLBACKEND": "agg"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# Several seconds and processes each; their parts are tested in test_attack_*, test_fit, test_processes, test_comparison.
SLOW = {"attack_digits.py", "attack_http.py", "calibrate.py", "compare_methods.py", "noisy_simulator.py"}
ARGUMENTS = {"compare_methods.py": ["picture.png"], "noisy_simulator.py": ["400", "2"]}
NEEDS = {"on_ray.py": "ray", "on_submitit.py": "submitit"}  # too large to be installed for a test
NAMES = sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in NAMES]
)
def test_the_example_runs_and_shows_what_it_says(name, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    arguments = ARGUMENTS.get(name, [])
    out = run(name, tmp_path, *arguments)
    assert all(piece in out for piece in SHOWN[name]), out
    assert [path.name for path in tmp_path.iterdir()] == [name for name in arguments if "." in name]


class Job:
    """What a job of submitit and a reference of Ray have in common here: a result that comes later."""

    def __init__(self, work):
        self.work = work

    def result(self):
        return self.work()

    def future(self):
        done = Future()
        done.set_running_or_notify_cancel()
        try:
            done.set_result(self.work())
        except Exception as error:
            done.set_exception(error)
        return done


class Ray:
    """The three functions of Ray that the bridge calls."""

    def __init__(self):
        self.stored = []

    def put(self, thing):
        self.stored.append(thing)
        return thing

    def remote(self, max_retries):
        assert max_retries == 0
        return lambda fn: SimpleNamespace(remote=lambda *arguments: Job(lambda: fn(*arguments)))


class Submitit:
    """The one function of a submitit executor that the bridge calls."""

    def submit(self, fn, *args, **kwargs):
        return Job(lambda: fn(*args, **kwargs))


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("name", ["on_ray", "on_submitit"])
def test_a_bridge_gives_the_bits_of_the_serial_run(name, fails, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    module, ray = importlib.import_module(name), Ray()
    bridge = module.OnRay(ray, 2) if name == "on_ray" else module.OnSubmitit(Submitit(), 2)

    def broken(x):
        raise OSError("the licence server is down")

    options = {"budget": 80, "method": zt.FGZOHT(eta=0.2), "seed": 0}
    found = zt.minimize(broken if fails else module.loss, 6, 2, workers=bridge, **options)
    if fails:
        assert "the licence server is down" in found.message
        return
    assert np.array_equal(found.x, zt.minimize(module.loss, 6, 2, parallel=2, **options).x)
    assert len(ray.stored) == (name == "on_ray")  # the function and its data, once


@pytest.mark.slow
def test_an_attack_that_is_called_again_says_what_this_session_asked(tmp_path):
    run("attack_http.py", tmp_path, "run")
    again = run("attack_http.py", tmp_path, "run")
    assert "the first process ended after 0 images" in again
    assert "queries of this session alone: 0" in again
    assert "this time the server saw 0 images" in again
