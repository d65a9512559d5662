"""Find out which 5 of 60 terms drive a differential equation, from noisy trajectories, on 8 workers.

    python examples/calibrate.py [picture.png]

One run of the simulator returns the whole time series: 12 trajectories of three species, sampled ten times. Each run
takes a moment, as a real simulator would, so that eight of them run at once. The program is killed in the middle and
continues from its folder: no finished run is lost, and none is made twice.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import zerothresh as zt

PROBLEM = zt.problems.ode(noise=0.01, seed=4)
WORKERS, SECONDS, DIES_IN = 8, 0.02, 90


def calibrate(folder: str, dies_in: int | None = None) -> tuple[zt.Result, int]:
    """Calibrate the differential equation; return the result and the number of runs of this process.

    Arguments
    ---------
    folder: str, the run folder.
    dies_in: int, the run of the simulator that kills the process; None (the default) for never.
    """
    runs, lock = 0, threading.Lock()

    def simulator(x: np.ndarray) -> np.ndarray:
        """One run: the residuals of all trajectories, an array of shape (360,)."""
        nonlocal runs
        with lock:
            runs += 1
            if runs == dies_in:
                os.kill(os.getpid(), signal.SIGKILL)  # like the time limit of a cluster
        time.sleep(SECONDS)
        return PROBLEM.outputs(x[None])[0]

    result = zt.minimize(
        simulator, 60, 5, outputs="residuals", budget=600, workers=WORKERS, seed=0, run=folder, progress=False
    )
    return result, runs


def main(picture: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/run"
        first = get_context("spawn").Process(target=calibrate, args=(place, DIES_IN))
        first.start()
        first.join()
        print(f"The first process was killed by signal {-first.exitcode} in run {DIES_IN}.")
        result, runs = calibrate(place)
        print(f"The second process made {runs} runs; {result.nfev} of {result.budget} are counted in all.")
    print(result.fit)
    print("The true terms were found:", np.array_equal(result.support, np.flatnonzero(PROBLEM.truth)))
    if picture is not None:
        result.plot(kind="fit", measured=PROBLEM.measured).savefig(picture, dpi=110)
        print("picture:", Path(picture).name)


if __name__ == "__main__":
    main(*sys.argv[1:2])
