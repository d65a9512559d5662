"""The paper's synthetic ridge regression (Section 5): all methods at 80,000 #IZO."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh import check
from zerothresh.methods import FGZOHT, LSVRGSZHT, PSAGASZHT, SAGASZHT, SARAHSZHT, SZOHT, VRSZHT, Method
from zerothresh.plan import Estimator
from zerothresh.problems import Ridge, ridge
from zerothresh.reproduce.compare import Cell, Contender, Setting, compare
from zerothresh.result import Result

Array = NDArray[np.float64]

ETAS = (0.005, 0.01, 0.05, 0.1, 0.5)  # the paper's grid
BUDGET = 80_000
ESTIMATOR = Estimator(q=200, mu=1e-4, s2=5, directions="sphere", common=False)  # the letter of eq. (3)
M = 10  # "for the variance reduced algorithms, we choose m = 10"

# The five of the paper's figure, then two more laws of J.
METHODS: dict[str, Callable[[float], Method]] = {
    "FGZOHT": lambda eta: FGZOHT(eta),
    "SZOHT": lambda eta: SZOHT(eta),
    "VR-SZHT": lambda eta: VRSZHT(eta, m=M),
    "SAGA-SZHT": lambda eta: SAGASZHT(eta),
    "SARAH-SZHT": lambda eta: SARAHSZHT(eta, m=M),
    "p-SAGA-SZHT": lambda eta: PSAGASZHT(eta, p=2),
    "LSVRG-SZHT": lambda eta: LSVRGSZHT(eta, p=1.0),
}


@dataclass(frozen=True)
class RidgeComparison:
    """The outcome, before anything is shown or written."""

    problem: Ridge
    setting: Setting
    etas: tuple[float, ...]
    seed: int  # of the problem, and of the first run
    seeds: tuple[int, ...]  # of the runs
    contenders: tuple[Contender, ...]
    optimum_x: Array
    optimum: float
    seconds: float


def run_ridge(
    *,
    runs: int = 3,
    seed: int = 0,
    k: int = 3,
    budget: int = BUDGET,
    etas: Sequence[float] = ETAS,
    estimator: Estimator = ESTIMATOR,
    methods: Sequence[str] = tuple(METHODS),
    jobs: int = 1,
    done: Callable[[Cell, Result], None] | None = None,
) -> RidgeComparison:
    """Compute the comparison: one problem, drawn from ``seed``, and runs with the seeds seed, seed + 1, ...

    >>> found = run_ridge(runs=1, budget=9_000, etas=[0.1], methods=["FGZOHT"])
    >>> round(found.contenders[0].best.mean - found.optimum, 3)
    0.055
    """
    seeds = tuple(range(seed, seed + check.count("runs", runs)))
    problem = ridge(n=10, d=5, lam=0.5, seed=seed)
    optimum_x, optimum = problem.optimum(k)
    setting = Setting(problem, k, budget, estimator)
    grids = {check.one_of("a method", label, METHODS): [METHODS[label](eta) for eta in etas] for label in methods}
    begun = time.perf_counter()
    contenders = compare(setting, grids, seeds, jobs=jobs, done=done)
    seconds = time.perf_counter() - begun
    return RidgeComparison(problem, setting, tuple(etas), seed, seeds, contenders, optimum_x, optimum, seconds)


def eta_of(method: Any) -> float:
    """The learning rate of a method of the comparison."""
    return float(method.eta)
