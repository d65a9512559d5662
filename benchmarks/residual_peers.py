"""The solvers that benchmarks/residuals.py compares, and a function that counts their runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from objectives import Array
from scipy.optimize import least_squares

import zerothresh as zt

TARGET = 1e-6  # of F at the start, for sparse problems
SECONDS = 10.0  # a peer that takes longer on one draw is stopped
OWN_SECONDS = 120.0  # the same for the methods of this package
AFTER = 100  # runs after the target within which a method of this package should end by itself
SHARE = 0.8  # of the budget that solvers without sparsity spend on all coordinates


class Stop(Exception):
    """The budget or the time is spent, or the target is reached."""


@dataclass
class Runs:
    """A function that counts its runs, keeps F of feasible points, and stops at the target or ``after`` runs later."""

    fun: Callable[[Array], Array]
    k: int
    budget: int
    truth: Array | None = None
    seconds: float = SECONDS
    after: int = 0
    values: list[float] = field(default_factory=list)
    hit: int | None = None
    first: float = np.nan
    best: float = np.inf
    x: Array | None = None
    late: bool = False

    def __post_init__(self) -> None:
        self.end = time.monotonic() + self.seconds

    def __call__(self, x: Array) -> Array:
        self.late = time.monotonic() > self.end
        if self.late or len(self.values) >= (self.budget if self.hit is None else self.hit + self.after):
            raise Stop
        r = np.asarray(self.fun(np.asarray(x, dtype=float)))
        value = float(np.mean(r**2)) if np.isfinite(r).all() else np.inf
        self.first = self.first if self.values else value
        if np.count_nonzero(x) <= self.k and value < self.best:
            self.best, self.x = value, np.array(x, dtype=float)
        self.values.append(self.best)
        if self.hit is None and self.truth is not None and value <= TARGET * self.first and self.right(x):
            self.hit = len(self.values)
            if not self.after:
                raise Stop
        return np.nan_to_num(r, nan=1e100, posinf=1e100, neginf=-1e100)

    def right(self, x: Array | None) -> bool:
        """Whether a point has the true support."""
        return x is not None and self.truth is not None and np.array_equal(x != 0, self.truth != 0)

    def runs_to(self, value: float) -> int | None:
        """Return the number of runs after which F was at most a value."""
        below = np.flatnonzero(np.array(self.values) <= value)
        return int(below[0]) + 1 if below.size else None


Solve = Callable[[Runs, Array, int, float | None, int], int | None]


@dataclass(frozen=True)
class Solver:
    """A solver, and on how much it can be measured in reasonable time.

    Attributes
    ----------
    solve: runs it; returns the runs that were made before a support was chosen, if it says so.
    label: its name on the page.
    draws: at most so many draws of each problem; None: all.
    largest: the largest d.
    own: whether it is a method of this package that sees all residuals.
    """

    solve: Solve
    label: str
    draws: int | None = None
    largest: int = 10**9
    own: bool = False


def own(method: str) -> Solve:
    """A method of this package that sees all residuals."""

    def solver(runs: Runs, x0: Array, k: int, low: float | None, seed: int) -> int | None:
        limits = {} if low is None else {"bounds": (low, None)}
        made = zt.minimize(runs, x0, k, outputs="residuals", method=method, budget=runs.budget, seed=seed, **limits)
        return {name: used for used, name in made.stages or []}.get("support")

    return solver


def by_auto_on_F(runs: Runs, x0: Array, k: int, low: float | None, seed: int) -> None:
    limits = {} if low is None else {"bounds": (low, None)}
    zt.minimize(lambda x: float(np.mean(runs(x) ** 2)), x0, k, budget=runs.budget, seed=seed, **limits)


def in_two_phases(solve: Callable[[Callable[[Array], Array], Array, int, float | None], Array]) -> Solve:
    """A solver without sparsity: all coordinates, and then the k largest."""

    def solver(runs: Runs, x0: Array, k: int, low: float | None, seed: int) -> None:
        start = x0 if low is None or x0.any() else np.full(x0.size, low + 0.1)  # they want to start inside
        x = solve(runs, start, runs.budget if k == x0.size else int(SHARE * runs.budget), low)
        if k < x0.size:
            kept = np.argsort(-np.abs(x))[:k]

            def on_support(z: Array) -> Array:
                y = np.zeros(x0.size)
                y[kept] = z
                return runs(y)

            solve(on_support, x[kept], runs.budget - len(runs.values), low)

    return solver


def dfols_solve(fun: Callable[[Array], Array], x0: Array, budget: int, low: float | None) -> Array:
    import dfols

    limits = {} if low is None else {"bounds": (np.full(x0.size, low), np.full(x0.size, 1e20))}
    found = dfols.solve(fun, x0.copy(), maxfun=max(budget, x0.size + 2), **limits).x
    return x0 if found is None else np.asarray(found)


def scipy_solve(fun: Callable[[Array], Array], x0: Array, budget: int, low: float | None) -> Array:
    box = (-np.inf if low is None else low, np.inf)
    steps = max(budget // (x0.size + 1), 2)
    return np.asarray(least_squares(fun, np.maximum(x0, box[0]), bounds=box, max_nfev=steps, xtol=1e-15, ftol=1e-15).x)


def bobyqa_solve(fun: Callable[[Array], Array], x0: Array, budget: int, low: float | None) -> Array:
    import pybobyqa

    limits = {} if low is None else {"bounds": (np.full(x0.size, low), np.full(x0.size, 1e20))}
    found = pybobyqa.solve(
        lambda x: float(np.mean(fun(x) ** 2)), x0.copy(), maxfun=max(budget, x0.size + 2), **limits
    ).x
    return x0 if found is None else np.asarray(found)


FEW, WIDE = 2, 500  # draws of slow peers, and the largest d for them: beyond it none gets anywhere in its time
SOLVERS: dict[str, Solver] = {
    "gauss-newton": Solver(own("gauss-newton"), "gauss-newton", own=True),
    "auto": Solver(own("auto"), "auto", FEW, own=True),
    "dfols": Solver(in_two_phases(dfols_solve), "DFO-LS", FEW, WIDE),
    "scipy": Solver(in_two_phases(scipy_solve), "SciPy least_squares", FEW, WIDE),
    "bobyqa": Solver(in_two_phases(bobyqa_solve), "Py-BOBYQA on F", FEW, WIDE),
    "auto-on-F": Solver(by_auto_on_F, "auto on F", FEW, WIDE),
}


def solve(name: str, runs: Runs, x0: Array, k: int, low: float | None, seed: int) -> int | None:
    """Run a solver; return the runs before a support was chosen, if it says so."""
    try:
        return SOLVERS[name].solve(runs, x0, k, low, seed)
    except Stop:
        pass
    except Exception as error:
        print(f"    {name}: {type(error).__name__}: {str(error)[:80]}")
    return None
