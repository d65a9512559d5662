"""Sixteen workers on runs that take 50 ms and return all residuals, d = 100: how much faster than one after the other.

    python benchmarks/residual_workers.py --draws 2

Every draw is solved by gauss-newton as it is and with width=16, where every step measures the columns of its support in
the same round; each one run after the other and on 16 threads. The four take turns. The goal compares width=16 on 16
threads with the search that is fastest one run after the other, as it is, so that runs made only because workers are
idle count for nothing; how much faster the same search becomes is shown beside it.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings

import numpy as np
from objectives import Array
from residual_problems import regression
from residuals import JUDGING

import zerothresh as zt

WORKERS, SECONDS, GOAL = 16, 0.05, 8.0
CASES = {  # d, k, n, link
    "logit, k = 5": (100, 5, 50, "logit"),
    "exp, k = 5": (100, 5, 100, "exp"),
    "two, k = 5": (100, 5, 100, "two"),
    "logit, k = 10": (100, 10, 150, "logit"),
    "exp, k = 10": (100, 10, 150, "exp"),
    "two, k = 10": (100, 10, 150, "two"),
}
WAYS = {  # width, workers
    "serial": (1, 1),
    "16 workers": (1, WORKERS),
    "width=16, serial": (WORKERS, 1),
    "width=16, 16 workers": (WORKERS, WORKERS),
}


def measure(seed: int, case: str, width: int, workers: int) -> tuple[float, int, bool]:
    """Return the seconds, the runs, and whether the support is right."""
    problem = regression(seed, *CASES[case])

    def fun(x: Array) -> Array:
        time.sleep(SECONDS)
        return problem.fun(x)

    began = time.perf_counter()
    method = zt.methods.GaussNewton(width=width)
    result = zt.minimize(
        fun, problem.start, problem.k, outputs="residuals", method=method, budget=2000, seed=seed, workers=workers
    )
    right = np.array_equal(result.x != 0, problem.truth != 0)
    return time.perf_counter() - began, result.nfev, right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--judge", action="store_true", help=f"seeds from {JUDGING} on")
    parser.add_argument("--only", default="", help="a part of the names of cases")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    first = JUDGING + given.first if given.judge else given.first
    if not given.judge and first + given.draws > JUDGING:
        parser.error(f"seeds from {JUDGING} on are for judging")
    for case in (name for name in CASES if given.only in name):
        ratios = []
        for seed in range(first, first + given.draws):
            made = {way: measure(seed, case, *WAYS[way]) for way in WAYS}
            serial, plain, wide_serial, wide = (seconds for seconds, _, _ in made.values())
            ratios.append([serial / plain, serial / wide, wide_serial / wide])
            shown = "; ".join(
                f"{way}: {runs} runs, {seconds:.2f} s" + ("" if right else ", wrong support")
                for way, (seconds, runs, right) in made.items()
            )
            print(f"  {case} {seed}: {shown}", flush=True)
        plain, wide, same = np.median(ratios, axis=0)
        print(
            f"{case:14s} times faster on 16 workers: {plain:.1f} as it is, {wide:.1f} with width=16 (goal: {GOAL:g}); "
            f"{same:.1f} than width=16 on one",
            flush=True,
        )


if __name__ == "__main__":
    main()
