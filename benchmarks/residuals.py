"""Functions whose calls return all residuals: gauss-newton beside DFO-LS, SciPy, Py-BOBYQA, and auto on F.

    python benchmarks/residuals.py --table dense --draws 4
    python benchmarks/residuals.py --table sparse --draws 10 --only mixture,ode --peers gauss-newton,dfols

Tables: dense (the Moré-Wild set, k = d), sparse, noise (1e-3 of the residuals at the start, in every output of every
run) and robust (10 % outliers). Draws are seeds 0, 1, ...; those from 5000 on are kept for judging (``--judge``).
A run is one call of the function. A sparse problem is solved when a feasible point has the right support and F at most
1e-6 of that at the start. DFO-LS and SciPy know no sparsity: they minimise over all coordinates, and then, with what is
left of their budget, over the k largest.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from more_wild import draw
from objectives import Array
from residual_problems import CASES, ResidualProblem, contaminated, noisy, regression
from scipy.optimize import least_squares

import zerothresh as zt

JUDGING = 5000  # the first seed that is never run while developing; some of those before were judged, and seen
LEVELS = (1e-3, 1e-5, 1e-7)  # of the distance to the best F that any solver found
TARGET = 1e-6  # of F at the start, for sparse problems
NOISE, OUTLIERS, SCALE = 1e-3, 0.1, 0.05
SECONDS = 120.0  # a solver that takes longer on one problem is stopped
DENSE_BUDGET = 100  # runs per coordinate, and one time more
SPARSE_BUDGET = 20  # runs per coordinate


class Stop(Exception):
    """The budget is spent, or the target is reached."""


@dataclass
class Runs:
    """A function that counts its calls, keeps F of feasible points, and stops at the target."""

    fun: Callable[[Array], Array]
    k: int
    budget: int
    truth: Array | None = None
    values: list[float] = field(default_factory=list)
    hit: int | None = None
    first: float = np.nan
    best: float = np.inf
    x: Array | None = None

    def __post_init__(self) -> None:
        self.end = time.monotonic() + SECONDS

    def __call__(self, x: Array) -> Array:
        if len(self.values) >= self.budget or time.monotonic() > self.end:
            raise Stop
        r = np.asarray(self.fun(np.asarray(x, dtype=float)))
        value = float(np.mean(r**2)) if np.isfinite(r).all() else np.inf
        self.first = self.first if self.values else value
        if np.count_nonzero(x) <= self.k and value < self.best:
            self.best, self.x = value, np.array(x, dtype=float)
        self.values.append(self.best)
        if self.truth is not None and value <= TARGET * self.first and np.array_equal(x != 0, self.truth != 0):
            self.hit = len(self.values)
            raise Stop
        return np.nan_to_num(r, nan=1e100, posinf=1e100, neginf=-1e100)

    def runs_to(self, value: float) -> int | None:
        """Return the number of runs after which F was at most a value."""
        below = np.flatnonzero(np.array(self.values) <= value)
        return int(below[0]) + 1 if below.size else None


Solver = Callable[[Runs, Array, int, float | None, int], None]


def by_gauss_newton(runs: Runs, x0: Array, k: int, low: float | None, seed: int) -> None:
    limits = {} if low is None else {"bounds": (low, None)}
    zt.minimize(runs, x0, k, outputs="residuals", method="gauss-newton", budget=runs.budget, seed=seed, **limits)


def by_auto_on_F(runs: Runs, x0: Array, k: int, low: float | None, seed: int) -> None:
    limits = {} if low is None else {"bounds": (low, None)}
    zt.minimize(lambda x: float(np.mean(runs(x) ** 2)), x0, k, budget=runs.budget, seed=seed, **limits)


def in_two_phases(solve: Callable[[Callable[[Array], Array], Array, int, float | None], Array]) -> Solver:
    """A solver without sparsity: all coordinates, and then the k largest."""

    def solver(runs: Runs, x0: Array, k: int, low: float | None, seed: int) -> None:
        start = x0 if low is None or x0.any() else np.full(x0.size, low + 0.1)  # they want to start inside
        x = solve(runs, start, runs.budget if k == x0.size else int(0.8 * runs.budget), low)
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


SOLVERS: dict[str, Solver] = {
    "gauss-newton": by_gauss_newton,
    "dfols": in_two_phases(dfols_solve),
    "scipy": in_two_phases(scipy_solve),
    "bobyqa": in_two_phases(bobyqa_solve),
    "auto": by_auto_on_F,
}


def solve(name: str, runs: Runs, x0: Array, k: int, low: float | None, seed: int) -> None:
    try:
        SOLVERS[name](runs, x0, k, low, seed)
    except Stop:
        pass
    except Exception as error:
        print(f"    {name}: {type(error).__name__}: {str(error)[:80]}")


def dense(names: list[str], seeds: range, only: list[str]) -> None:
    """Runs to each level against DFO-LS; an unsolved problem is charged the whole budget."""
    rows = []
    for seed in seeds:
        for problem, (fun, x0) in draw(seed).items():
            if only and problem not in only:
                continue
            budget = DENSE_BUDGET * (x0.size + 1)
            made = {name: Runs(fun, x0.size, budget) for name in names}
            for name, runs in made.items():
                solve(name, runs, x0, x0.size, None, seed)
            best = min(runs.best for runs in made.values())
            goals = [best + level * (next(iter(made.values())).first - best) for level in LEVELS]
            rows.append((f"{problem} {seed}", budget, {n: [r.runs_to(g) for g in goals] for n, r in made.items()}))
            print(f"{problem:24s} {seed:4d} " + "  ".join(f"{n} {rows[-1][2][n]}" for n in names), flush=True)
    for place, level in enumerate(LEVELS):
        for name in names:
            ratios = [(row["dfols"][place] or budget) / (row[name][place] or budget) for _, budget, row in rows]
            lost = [p for p, _, row in rows if row[name][place] is None and row["dfols"][place] is not None]
            ratio = float(np.exp(np.mean(np.log(ratios))))
            print(f"{level:g} {name:13s} {ratio:.3f} times fewer runs than dfols; unsolved, but by dfols: {lost}")


def sparse(
    names: list[str], seeds: range, only: list[str], change: Callable[[ResidualProblem, int], ResidualProblem]
) -> None:
    """Right supports, and the runs to them."""
    for case in only or CASES:
        for name in names:
            found, seconds = [], time.monotonic()
            for seed in seeds:
                clean = CASES[case](seed)
                problem = change(clean, seed)
                noise = problem is not clean
                runs = Runs(problem.fun, clean.k, SPARSE_BUDGET * clean.d, None if noise else clean.truth)
                solve(name, runs, problem.start, clean.k, problem.low, seed)
                right = runs.x is not None and np.array_equal(runs.x != 0, clean.truth != 0)
                found.append((len(runs.values) if right else None) if noise else runs.hit)
            report(case, name, found, seconds)


def robust(names: list[str], seeds: range, only: list[str]) -> None:
    """10 % outliers: gauss-newton with each loss, and runs in all."""
    for loss in only or ("squared", "huber", "cauchy"):
        found, seconds = [], time.monotonic()
        for seed in seeds:
            clean = regression(seed, 100, 5, 100, "tanh")
            problem, scaled = (
                contaminated(clean, OUTLIERS, seed),
                {"huber": zt.losses.Huber, "cauchy": zt.losses.Cauchy},
            )
            result = zt.minimize(
                problem.fun,
                problem.start,
                clean.k,
                outputs="residuals",
                loss=scaled[loss](SCALE) if loss in scaled else loss,
                method="gauss-newton",
                budget=SPARSE_BUDGET * clean.d,
                seed=seed,
            )
            found.append(result.nfev if np.array_equal(result.x != 0, clean.truth != 0) else None)
        report("10 % outliers", f"gauss-newton, {loss}", found, seconds)


def report(case: str, name: str, found: list[int | None], began: float) -> None:
    solved = [runs for runs in found if runs is not None]
    spread = f"{np.median(solved):.0f} ({min(solved)} to {max(solved)})" if solved else "-"
    seconds = (time.monotonic() - began) / len(found)
    print(f"{case:16s} {name:22s} {len(solved):2d} of {len(found)}  runs {spread:24s} {seconds:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", choices=("dense", "sparse", "noise", "robust"), default="sparse")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--judge", action="store_true", help=f"seeds from {JUDGING} on")
    parser.add_argument("--only", default="", help="problems, or losses for the table robust")
    parser.add_argument("--peers", default=",".join(SOLVERS), help="solvers, by name")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    first = JUDGING + given.first if given.judge else given.first
    if not given.judge and first + given.draws > JUDGING:
        parser.error(f"seeds from {JUDGING} on are for judging")
    seeds, only = range(first, first + given.draws), [name for name in given.only.split(",") if name]
    names = given.peers.split(",")
    if given.table == "dense":
        dense(names if "dfols" in names else [*names, "dfols"], seeds, only)
    elif given.table == "robust":
        robust(names, seeds, only)
    elif given.table == "noise":
        sparse(names, seeds, only, lambda problem, seed: noisy(problem, NOISE, seed))
    else:
        sparse(names, seeds, only, lambda problem, seed: problem)


if __name__ == "__main__":
    main()
