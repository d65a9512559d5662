"""Sixteen workers on runs that take 50 ms and return all residuals, d = 100: how much faster than one after the other.

    python benchmarks/residuals.py --table workers --draws 2

Every draw is solved one run after the other, and with ``workers=16``, where every step also measures the columns of its
support and others that may be wanted next. The goal compares these two, so that runs made only because workers are
idle count for nothing. A round of r runs takes ceil(r / 16) waves; the same ratio in waves is printed beside it. It
does not depend on the machine, and counts neither the time of the method itself nor that of its threads.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from objectives import Array
from residual_problems import regression

import zerothresh as zt

WORKERS, SECONDS, GOAL = 16, 0.05, 8.0
CASES = {  # link and k: d, k, n, link
    "logit-5": (100, 5, 50, "logit"),
    "exp-5": (100, 5, 100, "exp"),
    "two-5": (100, 5, 100, "two"),
    "logit-10": (100, 10, 150, "logit"),
    "exp-10": (100, 10, 150, "exp"),
    "two-10": (100, 10, 150, "two"),
}
WAYS = {"serial": 1, "16 workers": WORKERS}


def measure(seed: int, case: str, method: str, way: str) -> tuple[float, int, int, bool]:
    """Return the seconds, the runs, the waves of runs, and whether the support is right."""
    problem, width, waves = regression(seed, *CASES[case]), WAYS[way], 0

    def fun(x: Array) -> Array:
        time.sleep(SECONDS)
        return problem.fun(x)

    def rounds(X: Array) -> Array:
        nonlocal waves
        waves += math.ceil(len(X) / width)
        return np.array([problem.fun(x) for x in X])

    options: dict[str, Any] = {"outputs": "residuals", "method": method, "budget": 2000, "seed": seed}
    began = time.perf_counter()
    result = zt.minimize(fun, problem.start, problem.k, workers=width, **options)
    seconds = time.perf_counter() - began
    zt.minimize(rounds, problem.start, problem.k, vectorized=True, parallel=width, **options)
    return seconds, result.nfev, waves, bool(np.array_equal(result.x != 0, problem.truth != 0))


def faster(draws: list[dict[str, Any]]) -> tuple[float, float]:
    """Return how many times faster 16 workers are than one: in seconds, and in waves of runs; medians of draws."""
    ratios = [(one["serial"][0] / one["16 workers"][0], one["serial"][2] / one["16 workers"][2]) for one in draws]
    seconds, waves = np.median(ratios, axis=0)
    return float(seconds), float(waves)
