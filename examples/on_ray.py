"""Run the calls as tasks of Ray: a bridge of twenty lines.

python examples/on_ray.py
"""

from __future__ import annotations

from concurrent.futures import Executor

import zerothresh as zt


class OnRay(Executor):
    """A ``concurrent.futures.Executor`` on a Ray cluster; the function and its data are put into its store once."""

    def __init__(self, ray, workers):
        self._max_workers = workers  # zerothresh takes the width from here
        self.ray, self._stored = ray, (None, None)
        self._call = ray.remote(max_retries=0)(lambda fn, first, *rest: fn(first, *rest))  # zerothresh counts retries

    def submit(self, fn, /, first, *rest):
        if self._stored[0] is not first:  # the first argument is the objective, the same one in all calls
            self._stored = first, self.ray.put(first)
        return self._call.remote(fn, self._stored[1], *rest).future()


def loss(x):
    return float(((x[[1, 4]] - [1.0, -2.0]) ** 2).sum() + abs(x).sum() / 100)


def main():
    import ray

    ray.init(num_cpus=2, include_dashboard=False)  # ray.init("auto") on a cluster
    found = zt.minimize(loss, 6, 2, budget=200, method=zt.FGZOHT(eta=0.2), workers=OnRay(ray, 2), seed=0)
    print(f"{found.nfev} tasks, F = {found.fun:.3f}, support {found.support}")
    ray.shutdown()


if __name__ == "__main__":
    main()
