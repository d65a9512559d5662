"""The tables of benchmarks/residuals.py: what each draw gives, and the goals that are judged by it.

A measurement is a dictionary with the table, the case, the seed, the solver, and what it gave; the goals are functions
of all of them, so that files of several tables can be joined and judged together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import residual_workers
from more_wild import PROBLEMS, draw
from residual_peers import AFTER, OWN_SECONDS, SECONDS, SOLVERS, Runs, solve
from residual_problems import CASES, contaminated, noisy, regression

import zerothresh as zt

Measured = dict[str, Any]
LEVELS = (1e-3, 1e-5, 1e-7)  # of the distance to the best F that gauss-newton or DFO-LS found
NOISE, OUTLIERS, SCALE = 1e-3, 0.1, 0.05
DENSE_BUDGET = 100  # runs per coordinate, and one time more
SPARSE_BUDGET = 20  # runs per coordinate
LOSSES = {"squared": zt.losses.Squared(), "huber": zt.losses.Huber(SCALE), "cauchy": zt.losses.Cauchy(SCALE)}
RIVALS = ("gauss-newton", "dfols")  # the two that the goals of the table dense compare


def dense(problem: str, seed: int, name: str) -> Measured:
    """The falls of F on a problem of the Moré-Wild set, k = d."""
    fun, x0 = draw(seed)[problem]
    budget = DENSE_BUDGET * (x0.size + 1)
    runs = Runs(fun, x0.size, budget, seconds=OWN_SECONDS if SOLVERS[name].own else SECONDS)
    solve(name, runs, x0, x0.size, None, seed)
    falls = np.flatnonzero(np.diff(runs.values, prepend=np.inf) < 0)
    return {"budget": budget, "late": runs.late, "falls": [[int(i) + 1, float(runs.values[i])] for i in falls]}


def sparse(case: str, seed: int, name: str) -> Measured:
    """Runs to the right support and a small F; those of all columns, and in all, if the solver ends by itself."""
    problem = CASES[case](seed)
    seconds, after = (OWN_SECONDS, AFTER) if SOLVERS[name].own else (SECONDS, 0)
    runs = Runs(problem.fun, problem.k, SPARSE_BUDGET * problem.d, problem.truth, seconds, after)
    columns = solve(name, runs, problem.start, problem.k, problem.low, seed)
    return {"runs": runs.hit, "columns": columns, "all": len(runs.values), "late": runs.late, "d": problem.d}


def noise(case: str, seed: int, name: str) -> Measured:
    """Runs until the solver ends with the right support, with noise in every output of every run."""
    clean = CASES[case](seed)
    problem = noisy(clean, NOISE, seed)
    runs = Runs(problem.fun, clean.k, SPARSE_BUDGET * clean.d, seconds=OWN_SECONDS if SOLVERS[name].own else SECONDS)
    solve(name, runs, problem.start, clean.k, problem.low, seed)
    right = runs.x is not None and np.array_equal(runs.x != 0, clean.truth != 0)
    return {"runs": len(runs.values) if right else None, "all": len(runs.values), "late": runs.late, "d": clean.d}


def robust(loss: str, seed: int, name: str) -> Measured:
    """Runs until gauss-newton ends with the right support, with gross errors in a share of the data."""
    clean = regression(seed, 100, 5, 100, "tanh")
    problem = contaminated(clean, OUTLIERS, seed)
    result = zt.minimize(
        problem.fun,
        problem.start,
        clean.k,
        outputs="residuals",
        loss=LOSSES[loss],
        method=name,
        budget=SPARSE_BUDGET * clean.d,
        seed=seed,
    )
    right = np.array_equal(result.x != 0, clean.truth != 0)
    return {"runs": result.nfev if right else None, "all": result.nfev, "late": False, "d": clean.d}


def workers(case: str, seed: int, name: str) -> Measured:
    """Seconds and runs in each of the ways of benchmarks/residual_workers.py."""
    made = {way: residual_workers.measure(seed, case, name, way) for way in residual_workers.WAYS}
    return {way: list(found) for way, found in made.items()}


@dataclass(frozen=True)
class Table:
    """What is measured, on which cases, by whom, and on how many draws; a peer may have a limit of its own."""

    one: Callable[[str, int, str], Measured]
    cases: tuple[str, ...]
    solvers: tuple[str, ...]
    draws: int
    more: dict[str, int]  # draws of single cases, or of single solvers

    def count(self, case: str, name: str, draws: int | None) -> int:
        """Return the number of draws of a case by a solver."""
        asked = draws or self.more.get(case, self.more.get(name, self.draws))
        limit = SOLVERS[name].draws
        return asked if limit is None or name in self.more else min(asked, limit)


NOISY = ("mixture", "exp-100", "logit-100", "two-100", "exp-500", "ode", "deconvolution")
TABLES = {
    "dense": Table(dense, tuple(PROBLEMS), ("gauss-newton", "dfols", "scipy", "bobyqa", "auto-on-F"), 3,
                   {"dfols": 3, "bobyqa": 1, "auto-on-F": 1}),
    "sparse": Table(sparse, tuple(CASES), tuple(SOLVERS), 10, {"mixture": 20}),
    "noise": Table(noise, NOISY, ("gauss-newton",), 10, {"exp-500": 3}),
    "robust": Table(robust, tuple(LOSSES), ("gauss-newton",), 10, {}),
    "workers": Table(workers, tuple(residual_workers.CASES), ("gauss-newton", "auto"), 2, {"auto": 2}),
}  # fmt: skip


def measure(
    table: str, seeds: Callable[[int], range], cases: list[str], names: list[str], draws: int | None
) -> Iterator[Measured]:
    """Measure a table, one draw of a case by all solvers after the other."""
    of = TABLES[table]
    for case in cases:
        solvers = [name for name in names if _affordable(table, case, name)]
        for place, seed in enumerate(seeds(max((of.count(case, name, draws) for name in solvers), default=0))):
            for name in solvers:
                if place < of.count(case, name, draws):
                    began = time.perf_counter()
                    found = of.one(case, seed, name)
                    yield (
                        {"table": table, "case": case, "seed": seed, "solver": name}
                        | found
                        | {"seconds": time.perf_counter() - began}
                    )


def _affordable(table: str, case: str, name: str) -> bool:
    """Whether a solver gets anywhere on a case in its time."""
    return table not in ("sparse", "noise") or CASES[case](0).d <= SOLVERS[name].largest


# What the measurements say.


def runs_to(falls: list[list[float]], goal: float) -> int | None:
    """Return the number of runs after which F was at most a value."""
    return next((int(runs) for runs, value in falls if value <= goal), None)


Profile = list[tuple[str, int, list[int | None], list[int | None]]]


def by_problem(measured: list[Measured]) -> dict[str, dict[str, Measured]]:
    """Return what each solver gave on each problem of the table dense that both rivals ran, from a finite F."""
    by: dict[str, dict[str, Measured]] = {}
    for row in measured:
        if row["table"] == "dense":
            by.setdefault(f"{row['case']}#{row['seed']}", {})[row["solver"]] = row
    begun = {problem: made for problem, made in by.items() if all(rival in made for rival in RIVALS)}
    return {problem: made for problem, made in begun.items() if all(made[rival]["falls"] for rival in RIVALS)}


def levels(made: dict[str, Measured]) -> list[float]:
    """Return the values of F that count on a problem."""
    best, first = min(made[rival]["falls"][-1][1] for rival in RIVALS), made["dfols"]["falls"][0][1]
    return [best + level * (first - best) for level in LEVELS]


def profile(measured: list[Measured], name: str) -> Profile:
    """Return the problems of the table dense that a solver ran: the budget, the runs of DFO-LS, and its own."""
    rows = []
    for problem, made in by_problem(measured).items():
        if name in made:
            to = [[runs_to(made[one]["falls"], goal) for goal in levels(made)] for one in ("dfols", name)]
            rows.append((problem, made["dfols"]["budget"], to[0], to[1]))
    return rows


def thinned(measured: list[Measured]) -> list[Measured]:
    """Return the measurements with only those falls of F that count: the first, the last, and those to a level."""
    by = by_problem(measured)
    return [
        row | {"falls": _counting(row["falls"], levels(by[name]))}
        if row["table"] == "dense" and (name := f"{row['case']}#{row['seed']}") in by
        else row
        for row in measured
    ]


def _counting(falls: list[list[float]], goals: list[float]) -> list[list[float]]:
    reached = [next((fall for fall in falls if fall[1] <= goal), falls[0]) for goal in goals]
    return [fall for fall in falls if fall in (falls[0], *reached, falls[-1])]


def fewer(rows: Profile, place: int) -> float:
    """Return how many times fewer runs a solver takes than DFO-LS; the unsolved are charged the whole budget."""
    return float(np.exp(np.mean([np.log((theirs[place] or b) / (ours[place] or b)) for _, b, theirs, ours in rows])))


def lost(rows: Profile) -> list[str]:
    """Return the problems that a solver leaves unsolved at some level, and DFO-LS does not."""
    return [
        problem
        for problem, _, theirs, ours in rows
        if any(a is not None and b is None for a, b in zip(theirs, ours, strict=True))
    ]


@dataclass(frozen=True)
class Goal:
    """A goal, and what was measured."""

    table: str
    case: str
    goal: str
    measured: str
    met: bool


def of_case(measured: list[Measured], table: str, case: str, name: str = "gauss-newton") -> list[Measured]:
    """Return the draws of a case by a solver."""
    key = (table, case, name)
    return [row for row in measured if (row["table"], row["case"], row["solver"]) == key]


def spread(rows: list[Measured]) -> str:
    """Return the solved draws, and the median and range of their runs."""
    solved = [row["runs"] for row in rows if row["runs"] is not None]
    if not solved:
        return f"0 of {len(rows)}"
    return f"{len(solved)} of {len(rows)}, {np.median(solved):.0f} ({min(solved)} to {max(solved)})"


def _limits() -> Iterator[tuple[str, str, float, str, float]]:
    """Yield table, case, the share of draws that must be solved, the statistic of runs, and its limit."""
    infinite = float("inf")
    for case in CASES:
        d = CASES[case](0).d
        special = {"mixture": ("most", 55), "ode": ("median", 210), "deconvolution": ("median", 520),
                   "logit-2000": ("most", 650)}  # fmt: skip
        yield "sparse", case, 1.0, *special.get(case, ("most", int(1.05 * d) + 20))
    for case in NOISY:
        yield "noise", case, 0.9 if case in ("ode", "deconvolution") else 1.0, "most", infinite
    for case in ("huber", "cauchy"):
        yield "robust", case, 1.0, "most", 300


def goals(measured: list[Measured]) -> list[Goal]:
    """Judge all goals whose cases were measured."""
    found = []
    rows = profile(measured, "gauss-newton")
    for place, (level, least) in enumerate(zip(LEVELS, (1.1, 1.2, 1.3), strict=True)):
        if rows:
            ratio = fewer(rows, place)
            said = f"{ratio:.3f} times fewer than DFO-LS, {len(rows)} starts"
            found.append(Goal("dense", f"runs to {level:g}", f"at least {least:g} times fewer", said, ratio >= least))
    if rows:
        gone = lost(rows)
        found.append(Goal("dense", "unsolved, but by DFO-LS", "none", ", ".join(gone) or "none", not gone))
    for table, case, share, statistic, limit in _limits():
        draws = of_case(measured, table, case)
        solved = [row["runs"] for row in draws if row["runs"] is not None]
        if draws:
            runs = (np.median if statistic == "median" else np.max)(solved) if solved else np.inf
            asked = f"{share:.0%} of draws" + (f", {statistic} at most {limit:.0f} runs" if limit < np.inf else "")
            met = len(solved) >= share * len(draws) - 1e-9 and bool(runs <= limit)
            found.append(Goal(table, case, asked, spread(draws), met))
    pools = [row for row in measured if row["table"] == "sparse" and (row.get("columns") or 0) > row["d"]]
    if wide := [row for row in pools if row["d"] > CASES["exp-100"](0).d]:
        worst = max(row["columns"] / row["d"] - 1 for row in wide)
        said = f"{worst:.1%} at most in {len(wide)} draws"
        found.append(Goal("sparse", "pools that fail", "cost at most 5% of d", said, worst <= 0.05))
    for name in TABLES["workers"].solvers:
        for case in residual_workers.CASES:
            if draws := of_case(measured, "workers", case, name):
                seconds, waves = residual_workers.faster(draws)
                said = f"{seconds:.1f} times faster in {len(draws)} draws ({waves:.1f} in waves of runs)"
                goal = f"at least {residual_workers.GOAL:g} times faster"
                found.append(Goal("workers", f"{name}, {case}", goal, said, seconds >= residual_workers.GOAL))
    return found
