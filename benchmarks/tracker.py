"""One run of an optimiser on an instance: how many calls until F - F* <= tol (F(x0) - F*)."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
import zerothresh as zt
from suite import Instance

TOLERANCES = (1e-2, 1e-3, 1e-6)
_CHUNK = 4096  # points that are made at once


@dataclass
class Hits:
    """The calls after which each tolerance was reached; infinite if it was not."""

    seed: int
    budget: int  # what the run could have used
    nfev: int = 0
    either: list[float] = field(default_factory=lambda: [inf] * len(TOLERANCES))  # iterate or result, the better
    result: list[float] = field(default_factory=lambda: [inf] * len(TOLERANCES))  # result() alone
    gap: float = 1.0  # the smallest (F - F*) / (F(x0) - F*) of either
    ended: str = ""
    seconds: float = 0.0

    @property
    def solved(self) -> bool:
        """Whether there is nothing left to see."""
        return max(self.either) < inf and max(self.result) < inf


class Judge:
    """Turns points into gaps and notes when they are small enough."""

    def __init__(self, problem: Instance, hits: Hits) -> None:
        self.problem, self.hits = problem, hits
        self.low, self.span = problem.F_star, problem.F_start - problem.F_star

    def gap(self, x: np.ndarray) -> float:
        """(F - F*) / (F(x0) - F*)."""
        value = (self.problem.F(x) - self.low) / self.span
        return value if value == value else inf

    def note(self, nfev: int, either: float, result: float) -> None:
        """What is known after ``nfev`` calls."""
        hits = self.hits
        hits.gap = min(hits.gap, either)
        for place, tolerance in enumerate(TOLERANCES):
            if either <= tolerance and nfev < hits.either[place]:
                hits.either[place] = nfev
            if result <= tolerance and nfev < hits.result[place]:
                hits.result[place] = nfev


def run(
    problem: Instance,
    method: Any,
    *,
    seed: int,
    cap: float = inf,
    stall: float = inf,
    strict: bool = False,
    **arguments: Any,
) -> Hits:
    """Ask and tell until all is reached, the budget or ``cap`` is spent, or F is above 10 F(x0).

    With ``stall``, a run ends whose best F has not fallen by a hundredth since 1/stall of its calls. With
    ``strict``, it goes on until the result, and not only the iterate, is good enough.
    """
    hits = Hits(seed, problem.budget)
    judge = Judge(problem, hits)
    start = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        optimizer = zt.Optimizer(
            problem.x0, problem.k, budget=problem.budget, n=problem.n, method=method, seed=seed, **arguments
        )
        hits.ended = _loop(optimizer, problem, judge, hits, min(cap, problem.budget), stall, strict)
    hits.nfev, hits.seconds = optimizer.nfev, time.perf_counter() - start
    return hits


def _loop(
    optimizer: zt.Optimizer, problem: Instance, judge: Judge, hits: Hits, cap: float, stall: float, strict: bool
) -> str:
    theta = best = None
    here = there = inf
    improved, level = 1, inf
    far = 10 * abs(problem.F_start - problem.F_star) / judge.span
    while not optimizer.done:
        try:
            _answer(optimizer, problem)
        except ValueError as error:  # values that are not finite
            return f"diverged: {error}"
        search = optimizer.search
        if search.state.theta is not theta:
            theta = search.state.theta
            here = judge.gap(theta)
        if search.best_x is not best:
            best = search.best_x
            there = judge.gap(best)
        result = here if best is None else there
        nfev = optimizer.nfev
        judge.note(nfev, min(here, result), result)
        if hits.solved or (not strict and max(hits.either) < inf):
            return "solved"
        if hits.gap < 0.99 * level:
            improved, level = nfev, hits.gap
        if here > far or nfev >= cap or nfev > stall * improved:
            return "diverged" if here > far else "cut" if nfev >= cap else "stalled"
    result = judge.gap(optimizer.result().x)
    judge.note(optimizer.nfev, min(here, result), result)
    return optimizer.result().message


def _answer(optimizer: zt.Optimizer, problem: Instance) -> None:
    """One round."""
    batch = optimizer.ask()
    if len(batch) <= _CHUNK:
        optimizer.tell(batch, problem.values(batch.points, batch.components))
        return
    for start in range(0, len(batch), _CHUNK):
        part = batch[start : start + _CHUNK]
        optimizer.tell(part, problem.values(part.points, part.components))


def ert(runs: list[Hits], place: int, view: str = "either") -> float:
    """Expected running time: all calls until the hit, or the whole budget, over the number of hits."""
    calls = [getattr(hits, view)[place] for hits in runs]
    reached = [c for c in calls if c < inf]
    if not reached:
        return inf
    return (sum(reached) + sum(h.budget for h, c in zip(runs, calls, strict=True) if c == inf)) / len(reached)
