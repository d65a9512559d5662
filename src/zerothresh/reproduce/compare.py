"""Methods compared on a problem: a grid of hyper-parameters each, several runs, the best by F at the end."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from zerothresh import check
from zerothresh.engine import minimize
from zerothresh.methods import Method
from zerothresh.plan import Estimator
from zerothresh.problem import Problem
from zerothresh.result import Result, Status

Array = NDArray[np.float64]


class Known(Problem, Protocol):
    """A problem whose F is known exactly, so that curves can be drawn."""

    def F(self, x: Array) -> float:
        """The mean of all components."""


@dataclass(frozen=True)
class Setting:
    """What all runs of a comparison share."""

    problem: Known
    k: int
    budget: int
    estimator: Estimator


@dataclass(frozen=True)
class Cell:
    """One run: a method with its hyper-parameters, and a seed."""

    label: str
    method: Method
    seed: int


@dataclass(frozen=True)
class Trial:
    """A method with its hyper-parameters, and its runs, one a seed."""

    method: Method
    runs: tuple[Result, ...]

    @property
    def ends(self) -> Array:
        """F at the end of each run."""
        return np.array([end_of(run) for run in self.runs])

    @property
    def mean(self) -> float:
        """Of F at the end over the runs; infinite if one of them diverged."""
        return float(self.ends.mean())

    @property
    def deviation(self) -> float:
        """The standard deviation of F at the end over the runs (divided by their number, as in the figures)."""
        return float(self.ends.std()) if np.isfinite(self.ends).all() else np.nan

    @property
    def nfev(self) -> float:
        """#IZO, the mean over the runs."""
        return float(np.mean([run.nfev for run in self.runs]))

    @property
    def nht(self) -> float:
        """#NHT, the mean over the runs."""
        return float(np.mean([run.nht for run in self.runs]))

    def with_support(self, x: Array) -> int:
        """In how many runs the last iterate has the support of x."""
        support = np.flatnonzero(x)
        return sum(np.array_equal(np.flatnonzero(run.x_last), support) for run in self.runs)


@dataclass(frozen=True)
class Contender:
    """A label, and its trials, one for each point of the grid."""

    label: str
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The trial with the lowest F at the end, on average over the runs; the first of equals."""
        return min(self.trials, key=lambda trial: trial.mean)


def end_of(run: Result) -> float:
    """F at the last iterate, which the paper's methods return; infinity if the run diverged."""
    last = run.trace.fun[-1] if run.success and len(run.trace) else np.inf
    return float(last) if np.isfinite(last) else np.inf


def compare(
    setting: Setting,
    candidates: Mapping[str, Sequence[Method]],
    seeds: Sequence[int],
    *,
    jobs: int = 1,
    done: Callable[[Cell, Result], None] | None = None,
) -> tuple[Contender, ...]:
    """Run every candidate with every seed; a run that diverges counts as F = infinity.

    Arguments
    ---------
    setting: the problem, k, the budget and the estimator.
    candidates: for each label the grid, a list of methods.
    seeds: one a run, the same for all methods.
    jobs: processes; the results do not depend on it.
    done: called with each run as it comes, in any order.
    """
    cells = [Cell(label, method, seed) for label, grid in candidates.items() for method in grid for seed in seeds]
    results: dict[int, Result] = {}
    for place, result in _all(setting, cells, check.count("jobs", jobs, what=" (processes)")):
        results[place] = result
        if done is not None:
            done(cells[place], result)
    ordered = iter([results[place] for place in range(len(cells))])
    return tuple(
        Contender(label, tuple(Trial(method, tuple(next(ordered) for _ in seeds)) for method in grid))
        for label, grid in candidates.items()
    )


def run(setting: Setting, cell: Cell) -> Result:
    """One run, with F known at every step."""
    with np.errstate(all="ignore"):  # a step that is too long overflows, and is told as divergence
        result = minimize(
            setting.problem,
            None,
            setting.k,
            budget=setting.budget,
            method=cell.method,
            estimator=setting.estimator,
            seed=cell.seed,
            monitor=setting.problem.F,
            progress=False,
        )
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt  # Ctrl-C is for the whole comparison
    return result


def _all(setting: Setting, cells: Sequence[Cell], jobs: int) -> Iterator[tuple[int, Result]]:
    """The runs with their places, as they come."""
    if jobs == 1:
        for place, cell in enumerate(cells):
            yield place, run(setting, cell)
        return
    # Spawned, not forked: a fork would copy the threads' locks of a live display.
    context: Any = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(cells)), mp_context=context)
    try:
        with _deaf_children():
            futures = {pool.submit(run, setting, cell): place for place, cell in enumerate(cells)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes started here ignore Ctrl-C, which a terminal sends to all: the parent alone answers it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say so, and only it gets Ctrl-C
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
