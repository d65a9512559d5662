"""Kill a run without warning and continue it: no value is lost, and none is paid for twice."""

from __future__ import annotations

import os
import signal
import tempfile
from multiprocessing import get_context

import numpy as np

import zerothresh as zt


def solve(run: str | None = None, dies_in: int | None = None) -> tuple[zt.Result, int]:
    """Minimise a function and count the calls of this process.

    Arguments
    ---------
    run: str, the run folder; None (the default) keeps no run.
    dies_in: int, the call in which the function kills its own process; None (the default) for never.

    Returns the result and the number of calls that this process made.
    """
    calls = 0

    def loss(x: np.ndarray) -> float:
        nonlocal calls
        calls += 1
        if calls == dies_in:
            os.kill(os.getpid(), signal.SIGKILL)  # like a power switch or the time limit of a cluster
        return float(((x[[3, 8, 21]] - [1, -2, 3]) ** 2).sum() + np.sin(x).sum() ** 2)

    return zt.minimize(loss, 30, 3, budget=2_000, method=zt.FGZOHT(eta=0.02), seed=0, run=run), calls


if __name__ == "__main__":
    whole, all_calls = solve()
    with tempfile.TemporaryDirectory() as folder:
        first = get_context("spawn").Process(target=solve, args=(f"{folder}/run", 700))
        first.start()
        first.join()
        print(f"The first process was killed by signal {-first.exitcode} in call 700: 699 values had arrived.")
        result, calls = solve(f"{folder}/run")
        same = result.x.tobytes() == whole.x.tobytes() and result.trace == whole.trace
    print(f"After that, {calls} calls were made: {699 + calls} in all, and {all_calls} in a run that was not killed.")
    print("The results are the same to the bit:", same)
