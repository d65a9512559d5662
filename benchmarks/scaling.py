"""How the library scales with the number of workers.

    python benchmarks/scaling.py [--quick] [--engines threads processes] [--draws 3] [--judge]

1. Engines. Calls of 5 ms and of 50 ms, which wait and do nothing else, on 1 to 64 workers: threads, asyncio, processes
   and Dask. Rounds are 64 calls wide, so that W workers could be W times as fast as one. Shown is the share of that:
   the time of 64 calls one after the other, without the library, divided by W times the time of a round. The start of
   the workers is not measured: time runs from the end of the first round.
2. Scheduling on Dask. Short calls on two workers of one thread, in rounds of so many calls that each worker has a
   second of work: the share of the workers' time in which they make no call, which should be at most 5 %.
3. Time to goal. How much faster `auto` reaches its goal with 50 workers on six problems, and how many more calls that
   takes: `time_to_goal.py`.

The share at 50 ms should be at least 0.9 for threads and asyncio and at least 0.8 for processes and Dask. Rounds of 64
calls make full waves on all of these numbers of workers, so that W is the ideal. On a machine with few cores, the
processes of 64 workers wait for each other; the 64 threads of Dask belong to four of them.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from goal_problem import FIRST_SEED
from time_to_goal import measure
from waiting_calls import Waiting

import zerothresh as zt

WIDTH = 64  # calls in a round
D, K = 100, 5
SECONDS = (0.005, 0.05)
WORKERS = (1, 2, 4, 8, 16, 32, 64)
QUICK = (4, 64)
JUDGED_AT = 0.05  # seconds per call
GOALS = {"threads": 0.9, "asyncio": 0.9, "processes": 0.8, "dask": 0.8}
LEAST, MOST = 3, 30  # rounds that are measured
LONG = 2.0  # seconds that they take together, if the most of them are not too few for that
DASK_PROCESSES = 4  # the workers of Dask are threads of so many processes
SHORT = (0.001, 0.005, 0.02)  # seconds per call, for the cost of scheduling
WORK = 1.0  # seconds of calls per worker and round there
MOST_IDLE = 0.05


class Clock:
    """A callback that notes when each round ends."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, progress: Any) -> None:
        self.times.append(time.perf_counter())

    @property
    def per_round(self) -> float:
        """Seconds per round, from the end of the first one."""
        return (self.times[-1] - self.times[0]) / (len(self.times) - 1)


def settings(rounds: int, clock: Clock, width: int = WIDTH) -> dict[str, Any]:
    """Return the arguments of a run that makes so many rounds of ``width`` calls after the first one."""
    return {
        "budget": width * (rounds + 1) + 1,  # one call is for F at the result
        "method": zt.FGZOHT(eta=1e-3),
        "estimator": zt.Estimator(q=width - 1, mu=1e-3),
        "seed": 0,
        "callback": clock,
        "progress": False,
    }


def threads(seconds: float, workers: int, rounds: int, clock: Clock) -> None:
    """Run on threads of this process."""
    zt.minimize(Waiting(seconds), D, K, workers=workers, **settings(rounds, clock))


def processes(seconds: float, workers: int, rounds: int, clock: Clock) -> None:
    """Run on worker processes."""
    zt.minimize(Waiting(seconds), D, K, workers=zt.Processes(workers), **settings(rounds, clock))


def awaited(seconds: float, workers: int, rounds: int, clock: Clock) -> None:
    """Run on an event loop."""
    asyncio.run(zt.minimize_async(Waiting(seconds).awaited, D, K, concurrency=workers, **settings(rounds, clock)))


def dask(seconds: float, workers: int, rounds: int, clock: Clock) -> None:
    """Run on a local cluster of Dask."""
    from distributed import Client, LocalCluster

    hosts = min(DASK_PROCESSES, workers)
    with (
        LocalCluster(n_workers=hosts, threads_per_worker=workers // hosts, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        zt.minimize(Waiting(seconds), D, K, workers=client, **settings(rounds, clock))


Engine = Callable[[float, int, int, Clock], None]
ENGINES: dict[str, Engine] = {"threads": threads, "asyncio": awaited, "processes": processes, "dask": dask}


def missing(name: str) -> str:
    """Return why an engine cannot be measured, or an empty text."""
    if name == "dask":
        try:
            import distributed  # noqa: F401
        except ImportError:
            return "the package distributed is not installed (pip install 'zerothresh[dask]')"
    return ""


def share(engine: Engine, seconds: float, workers: int, repeats: int) -> float:
    """Return the speed-up over calls one after the other, as a share of the number of workers.

    The largest share of several runs counts, because other programs on the machine can only make it smaller.
    """
    ideal = seconds * WIDTH / workers
    rounds = min(MOST, max(LEAST, int(LONG / ideal)))
    found = []
    for _ in range(repeats):
        clock = Clock()
        engine(seconds, workers, rounds, clock)
        found.append(alone(seconds) * WIDTH / workers / clock.per_round)
    return max(found)


def scheduling(repeats: int) -> bool:
    """Print the share of the time in which two workers of Dask make no call, and return whether the goal is met."""
    from distributed import Client, LocalCluster

    workers, met = 2, True
    print("scheduling of short calls on two workers of Dask: the share of their time without a call")
    for seconds in SHORT:
        width, idle = int(WORK * workers / seconds), []
        for _ in range(repeats):
            clock = Clock()
            with (
                LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
                Client(cluster) as client,
            ):
                zt.minimize(Waiting(seconds), D, K, workers=client, **settings(LEAST, clock, width))
            idle.append(1 - alone(seconds) * width / workers / clock.per_round)
        met = met and min(idle) <= MOST_IDLE
        verdict = "met" if min(idle) <= MOST_IDLE else "NOT met"
        print(
            f"{'':12s} {1000 * seconds:3.0f} ms   {100 * min(idle):6.1f} %  goal: {100 * MOST_IDLE:.0f} %, {verdict}",
            flush=True,
        )
    return met


def alone(seconds: float, calls: int = 20) -> float:
    """Return how long a call takes in this process, without the library: a little longer than it is told to wait."""
    fun, x = Waiting(seconds), np.zeros(D)
    began = time.perf_counter()
    for _ in range(calls):
        fun(x)
    return (time.perf_counter() - began) / calls


def engines(names: list[str], sizes: tuple[int, ...], repeats: int) -> bool:
    """Print the table of engines, and return whether all goals that were judged are met."""
    met = True
    print(f"speed-up as a share of the workers, rounds of {WIDTH} calls")
    print(f"{'':22s}" + "".join(f"{workers:>6d}" for workers in sizes) + "  workers")
    for name in names:
        reason = missing(name)
        if reason:
            print(f"{name}: skipped, because {reason}.")
            continue
        for seconds in SECONDS:
            print(f"{name:12s} {1000 * seconds:3.0f} ms   ", end="", flush=True)
            shares = []
            for workers in sizes:
                shares.append(share(ENGINES[name], seconds, workers, repeats))
                print(f"{shares[-1]:6.2f}", end="", flush=True)
            good = min(shares) >= GOALS[name]
            judged = seconds == JUDGED_AT
            met = met and (good or not judged)
            verdict = f"  goal: {GOALS[name]}, {'met' if good else f'NOT met ({min(shares):.2f})'}"
            print(verdict if judged else "", flush=True)
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4 and 64 workers only")
    parser.add_argument("--engines", nargs="*", default=list(ENGINES), choices=list(ENGINES), help="none: no engines")
    parser.add_argument("--repeats", type=int, default=2, help="runs of each engine, of which the best one counts")
    parser.add_argument("--draws", type=int, default=3, help="seeds of each of the six problems; 0 leaves them out")
    parser.add_argument("--judge", action="store_true", help=f"seeds from {FIRST_SEED['judge']} on, random parameters")
    parser.add_argument("--only", default="", help="a part of the names of problems")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    if given.engines:
        engines(given.engines, QUICK if given.quick else WORKERS, given.repeats)
        if "dask" in given.engines and not missing("dask"):
            scheduling(given.repeats)
    if given.draws:
        first = FIRST_SEED["judge" if given.judge else "dev"]
        measure(range(first, first + given.draws), given.only)


if __name__ == "__main__":
    main()
