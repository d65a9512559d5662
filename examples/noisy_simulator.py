"""Calibrate a noisy simulator on 50 workers: common random numbers, a process that dies now and then, and a restart.

    python examples/noisy_simulator.py [calls] [workers]

Customers arrive at a service with 40 knobs, of which 3 matter. One run of the simulator is a random day: its result has
noise. F is the mean over 20 days. Each day is a component, whose number is the seed of its random numbers, so that two
settings of the knobs are compared on the same days, and most of the noise cancels. Sometimes a run crashes its process;
this process is replaced, and the run is made again. The whole program is killed once, and continues from its folder.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from multiprocessing import get_context

import numpy as np

import zerothresh as zt
from zerothresh.runs.inspection import inspect

KNOBS, DAYS = 40, 20
TRUTH = np.zeros(KNOBS)
TRUTH[[4, 17, 33]] = 1.0, -0.8, 0.6
SECONDS = 0.002  # per run; a real simulator takes longer
CRASHES = 0.001  # the share of runs that crash


def simulate(x: np.ndarray, seed: int) -> float:
    """Return the loss of one random day: a cost that depends on three knobs, in a day's own demand."""
    day = np.random.default_rng(seed)
    demand, weights = day.normal(0, 0.5), day.gamma(20, 1 / 20, KNOBS)
    time.sleep(SECONDS)
    if np.random.default_rng().random() < CRASHES:  # a bug that nobody can reproduce
        os._exit(1)
    return float((weights * (x - TRUTH) ** 2).sum() + demand)


def calibrate(folder: str, calls: int, workers: int) -> zt.Result:
    """Calibrate, or continue to; the folder keeps every run of the simulator.

    Arguments
    ---------
    folder: str, the run folder.
    calls, workers: int, the budget and the number of worker processes.
    """
    return zt.minimize(
        simulate,  # fun(x, i): the component i is the seed of the day
        KNOBS,
        3,
        n=DAYS,
        budget=calls,
        workers=zt.Processes(workers),
        retries=5,
        on_error="worst",  # a setting whose runs always crash is a bad setting
        run=folder,
        seed=0,
        progress=False,
    )


def runs_in(folder: str) -> int:
    """Return how many runs a folder has, also while another process writes it."""
    try:
        return inspect(folder).calls
    except zt.RunError:  # it has not begun yet
        return 0


def main(calls: int = 20_000, workers: int = 50) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = f"{place}/run"
        first = get_context("spawn").Process(target=calibrate, args=(folder, calls, workers))
        first.start()
        while first.is_alive() and runs_in(folder) < calls / 4:
            time.sleep(0.01)
        first.kill()  # like the time limit of a cluster
        first.join()
        print(f"The first process was killed by signal {-first.exitcode}; its workers ended with it.")
        result = calibrate(folder, calls, workers)
    print(f"{result.nfev} runs in all, on {workers} workers; the budget was {calls}.")
    for knob in result.support:
        print(f"knob {knob:2d}: {result.x[knob]:5.2f}   (true: {TRUTH[knob]:.2f})")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
