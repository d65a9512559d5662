"""Run an optimiser on an instance and count the calls needed to reach F - F* <= tol (F(x0) - F*)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from suite import Instance

import zerothresh as zt

TOLERANCES = (1e-2, 1e-3, 1e-6)
_CHUNK = 4096  # the largest number of points that are held at once


@dataclass
class Hits:
    """The calls after which a run reached each tolerance; infinite if it did not."""

    seed: int
    budget: int  # the calls that the run was allowed
    nfev: int = 0
    either: list[float] = field(default_factory=lambda: [inf] * len(TOLERANCES))  # by the better of iterate and result
    result: list[float] = field(default_factory=lambda: [inf] * len(TOLERANCES))  # by result() alone
    gap: float = 1.0  # the smallest (F - F*) / (F(x0) - F*) of both
    ended: str = ""
    seconds: float = 0.0


class Judge:
    """Measures the gap of points, and records when it is small enough."""

    def __init__(self, problem: Instance, hits: Hits) -> None:
        self.problem, self.hits = problem, hits
        self.low, self.span = problem.F_star, problem.F_start - problem.F_star

    def gap(self, x: np.ndarray) -> float:
        """Return (F - F*) / (F(x0) - F*) at a point."""
        value = (self.problem.F(x) - self.low) / self.span
        return value if value == value else inf

    def note(self, nfev: int, either: float, result: float) -> None:
        """Record the two gaps after ``nfev`` calls."""
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
    goals: Sequence[int] = (0, 1, 2),
    cap: float = inf,
    stall: float = inf,
    view: str = "either",
    **arguments: Any,
) -> Hits:
    """Run a method until it reaches the goals (indices into TOLERANCES), or spends its budget or ``cap`` calls.

    A run whose gap is above 10 is abandoned, unless outliers may be the reason. With ``stall``, a run is also abandoned
    if its smallest gap has not fallen by a tenth since 1/stall of its calls, once a sixteenth of the budget is spent.
    """
    hits = Hits(seed, problem.budget)
    judge = Judge(problem, hits)
    far = 1e6 if problem.outliers else 10.0
    start = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        optimizer = zt.Optimizer(
            problem.x0, problem.k, budget=problem.budget, n=problem.n, method=method, seed=seed, **arguments
        )
        reached = getattr(hits, view)
        theta = best = None
        here, there, improved, level = 1.0, 1.0, 1, inf
        while not optimizer.done:
            if not _answer(optimizer, problem):
                hits.ended = "diverged"
                break
            standing, nfev = optimizer.session.standing, optimizer.nfev
            if standing.theta is not theta:
                theta = standing.theta
                here = judge.gap(theta)
            if standing.best_x is not best:
                best = standing.best_x
                there = judge.gap(best)
            result = here if best is None else there
            judge.note(nfev, min(here, result), result)
            if hits.gap < 0.9 * level:
                improved, level = nfev, hits.gap
            if all(reached[place] < inf for place in goals):
                hits.ended = "solved"
            elif here > far:
                hits.ended = "diverged"
            elif nfev >= cap or nfev > max(stall * improved, problem.budget / 16):
                hits.ended = "cut"
            if hits.ended:
                break
        else:
            result = judge.gap(optimizer.result().x)
            judge.note(optimizer.nfev, min(here, result), result)
            hits.ended = optimizer.result().message
    hits.nfev, hits.seconds = optimizer.nfev, time.perf_counter() - start
    return hits


def _answer(optimizer: zt.Optimizer, problem: Instance) -> bool:
    """Evaluate one round through the session, which is cheaper than ask and tell; False if a value is not finite."""
    session = optimizer.session
    assert session.open_round is not None
    plan = session.open_round.plan
    for start in range(0, plan.calls, _CHUNK):
        stop = min(start + _CHUNK, plan.calls)
        values = problem.values(plan.points(start, stop), plan.components[start:stop])
        if not np.isfinite(values.sum()):
            return False
        session.deliver(start, values)
    return True


def ert(runs: list[Hits], place: int, view: str = "either") -> float:
    """Return the expected running time: the calls until the goal, or the whole budget, over the number of successes."""
    calls = [getattr(hits, view)[place] for hits in runs]
    reached = [c for c in calls if c < inf]
    if not reached:
        return inf
    return (sum(reached) + sum(h.budget for h, c in zip(runs, calls, strict=True) if c == inf)) / len(reached)
