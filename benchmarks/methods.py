"""Measure how many calls each method needs for F - F* <= 1e-3 (F(x0) - F*): the last column of docs/methods.md.

    python benchmarks/methods.py                      measure all methods (minutes), and write docs/methods.json
    python benchmarks/methods.py --only zoro,grace    measure these methods again, and keep the others of the file
    python scripts/make_methods_page.py               make the page from the code and from that file

The learning rate is the best of four on the first seed, with 10 directions and with d, in units of the problem's
curvature, which no user knows; initial steps have the size of the optimum. The chosen setting runs on all seeds. The
expected running time is the number of calls of all seeds, counting the cap for a seed that misses the goal, divided by
the number of seeds that reach it. Methods without the l0 constraint return H_k(x) here, so that all solve one problem.
"""

from __future__ import annotations

import argparse
import inspect
import json
import time
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from suite import Instance, make
from tracker import TOLERANCES, Hits, ert, run
from tuning import _extra, curvature

import zerothresh as zt
from zerothresh.methods.external.solvers import SOLVERS
from zerothresh.methods.registry import needs_outputs
from zerothresh.rounds.method import chooses_steps

FILE = Path(__file__).parents[1] / "docs" / "methods.json"
PROBLEMS = ("ridge-3", "ridge-4", "quadratic-10", "quadratic-100", "quadratics", "two-scores")
GOAL = TOLERANCES.index(1e-3)
CAP = 30_000  # calls per run
SEEDS = 3
RATES = (1.0, 0.3, 0.1, 0.03)  # learning rates to try, in units of 1 / curvature
# These methods choose q themselves, so that trying two values of it would measure the same twice.
CHOOSE_Q = {"zoro", "ada-zoro", "zo-spider", "zo-prox-svrg", "szoht-theory", "ht-es"}


def names() -> list[str]:
    """All methods, and instead of `outside` one entry per package that it can run."""
    values = [name for name, method in zt.methods.available().items() if not needs_outputs(method)]
    return [name for name in values if name != "outside"] + [f"outside {solver}" for solver in SOLVERS]


def settings(name: str, problem: Instance) -> list[list[dict[str, Any]]]:
    """The arguments of `zt.Optimizer` to try: for each q, one entry per learning rate, or a single entry."""
    size, length = max(float(np.abs(problem.x_star).max()), 1e-3), float(np.abs(problem.x_star).sum())
    if name.startswith("outside "):
        return [[{"method": zt.methods.Outside(name.removeprefix("outside "), size=size)}]]
    method, L = zt.methods.available()[name], curvature(problem)
    parameters = inspect.signature(method).parameters
    m = 10 if problem.n <= 10 else problem.n // 2
    known = {"size": size, "radius": 1.1 * length, "lam": 1e-3 * problem.F_start / max(length, 1e-3)}
    known |= {"s": 1 if name == "ada-zoro" else problem.k, "threshold": True, "k_star": problem.k}
    known |= {"rho_plus": L, "rho_minus": L / 10, "m": 4 * m if name == "sarah-plus" else m, **_extra(name, problem.n)}
    options = {key: value for key, value in known.items() if key in parameters}
    lists = []
    for q in dict.fromkeys((min(problem.d, 10), problem.d)) if name not in CHOOSE_Q else (problem.d,):
        trial: dict[str, Any] = {"method": name, "options": options | ({"tau": float(q)} if name == "hzo-ht" else {})}
        if not chooses_steps(method):
            trial["estimator"] = zt.Estimator(q=q, mu=1e-4 * size)
        unit = size if name == "zo-adamm" else q / problem.d / L
        rates = [rate * unit for rate in RATES] if "eta" in parameters else []
        trials = [{**trial, "options": {**trial["options"], "eta": eta}} for eta in rates]
        lists.append(trials or [trial])
        if chooses_steps(method):
            break  # it takes no estimator, so that q does not matter
    return lists


def measure(name: str, problem: str) -> dict[str, Any]:
    """The best setting of a method on a problem, and its expected running time."""
    best: tuple[float, float, dict[str, Any], Hits] | None = None
    for trials in settings(name, make(problem, 0)):
        reached = inf
        for trial in trials:
            try:
                hits = once(problem, trial, 0)
            except ValueError:  # the first step needs more calls than the cap allows
                hits = Hits(0, CAP)
            found = (hits.either[GOAL], hits.gap, trial, hits)
            best = found if best is None or found[:2] < best[:2] else best
            if reached < hits.either[GOAL]:
                break  # shorter steps will not be faster
            reached = min(reached, hits.either[GOAL])
    assert best is not None
    runs = [best[3]]
    if best[0] < inf:
        runs += [once(problem, best[2], seed) for seed in range(1, SEEDS)]
    calls = ert(runs, GOAL)
    options = {key: value for key, value in best[2].get("options", {}).items() if isinstance(value, (int, float))}
    options |= {"q": best[2]["estimator"].q} if "estimator" in best[2] and name not in CHOOSE_Q else {}
    hits = sum(h.either[GOAL] < inf for h in runs)
    return {"calls": None if calls == inf else calls, "hits": hits, "options": options}


def once(name: str, trial: dict[str, Any], seed: int) -> Hits:
    """Run a setting once, with at most `CAP` calls."""
    problem = make(name, seed)
    problem.budget = min(problem.budget, CAP)
    method = trial["method"]
    kind = zt.methods.available()[method] if isinstance(method, str) else type(method)
    stall = inf if chooses_steps(kind) else 6.0  # such methods may need many calls between two improvements
    return run(problem, seed=seed, goals=[GOAL], stall=stall, **trial)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="measure only these methods again, separated by commas")
    arguments = parser.parse_args()
    chosen = arguments.only.split(",") if arguments.only else names()
    for name in chosen:
        if name not in names():
            parser.error(f"there is no method {name!r}; choose from {', '.join(names())}")
    measured = json.loads(FILE.read_text())["methods"] if arguments.only and FILE.exists() else {}
    start = time.perf_counter()
    for name in chosen:
        began = time.perf_counter()
        try:
            measured[name] = {problem: measure(name, problem) for problem in PROBLEMS}
        except ImportError as error:
            print(f"{name:18s} skipped: {error}", flush=True)
            continue
        numbers = " ".join(f"{cell['calls'] or inf:9.0f}" for cell in measured[name].values())
        print(f"{name:18s} {numbers}  {time.perf_counter() - began:6.1f} s", flush=True)
    ordered = {name: measured[name] for name in names() if name in measured}
    table = {"problems": PROBLEMS, "cap": CAP, "seeds": SEEDS, "tolerance": TOLERANCES[GOAL], "methods": ordered}
    FILE.write_text(json.dumps(table, indent=1) + "\n")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
