"""Run the calls as jobs of submitit, on Slurm or on this machine: a bridge of twenty lines.

    python examples/on_submitit.py

Each call is a job of its own, so that this is for calls of minutes and more. For shorter ones, let Slurm start the
workers of a Dask cluster (docs/beyond-one-machine.md).
"""

from __future__ import annotations

import tempfile
import threading
from concurrent.futures import Executor, Future

import zerothresh as zt


class OnSubmitit(Executor):
    """A ``concurrent.futures.Executor`` that submits each call as a job, with a thread that waits for it."""

    def __init__(self, executor, jobs):
        self.executor, self._max_workers = executor, jobs  # zerothresh takes the width from _max_workers

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_running_or_notify_cancel()
        threading.Thread(target=self._wait, args=(future, fn, args, kwargs), daemon=True).start()
        return future

    def _wait(self, future, fn, args, kwargs):
        try:
            future.set_result(self.executor.submit(fn, *args, **kwargs).result())
        except BaseException as error:
            future.set_exception(error)


def loss(x):
    return float(((x[[1, 4]] - [1.0, -2.0]) ** 2).sum() + abs(x).sum() / 100)


def main():
    import submitit

    with tempfile.TemporaryDirectory() as folder:
        executor = submitit.AutoExecutor(folder, cluster="local")  # cluster="slurm" on a cluster
        executor.update_parameters(timeout_min=10)  # and slurm_partition=..., mem_gb=...
        method = zt.FGZOHT(eta=0.2)
        found = zt.minimize(loss, 6, 2, budget=12, method=method, workers=OnSubmitit(executor, 2), seed=0)
    print(f"{found.nfev} jobs, F = {found.fun:.3f}")


if __name__ == "__main__":
    main()
