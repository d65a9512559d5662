"""Calls until F - F* <= 1e-3 (F(x0) - F*), for every method, on six problems: the last column of docs/methods.md.

    python benchmarks/methods.py                   all methods, all six problems: minutes; writes docs/methods.json
    python benchmarks/methods.py --only zoro,grace      these anew, the others as they are in the file
    python scripts/make_methods_page.py            the page, from the code and that file

A learning rate is the best of a ladder of four on the first seed, with 10 directions and with d, in units of the
problem's own curvature, which no user knows; first steps are the size of the optimum. Then all seeds, and the expected
running time: the calls of all seeds until the goal, with the cap for one that missed it, over the number of hits.
Methods without the l0 constraint hand out H_k(x) here, so that all solve one problem.
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

FILE = Path(__file__).parents[1] / "docs" / "methods.json"
PROBLEMS = ("ridge-3", "ridge-4", "quadratic-10", "quadratic-100", "quadratics", "two-scores")
GOAL = TOLERANCES.index(1e-3)
CAP = 30_000  # calls
SEEDS = 3
LADDER = (1.0, 0.3, 0.1, 0.03)
OWN = {"zoro", "ada-zoro", "zo-spider", "zo-prox-svrg", "szoht-theory", "ht-es"}  # q is not the user's


def names() -> list[str]:
    """The methods, and each package behind `outside`."""
    return [name for name in zt.methods.available() if name != "outside"] + [f"outside {solver}" for solver in SOLVERS]


def settings(name: str, problem: Instance) -> list[list[dict[str, Any]]]:
    """What `zt.Optimizer` gets: ladders of learning rates, or a single entry."""
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
    ladders = []
    for q in dict.fromkeys((min(problem.d, 10), problem.d)) if name not in OWN else (problem.d,):
        trial: dict[str, Any] = {"method": name, "options": options | ({"tau": float(q)} if name == "hzo-ht" else {})}
        if not issubclass(method, zt.Program):
            trial["estimator"] = zt.Estimator(q=q, mu=1e-4 * size)
        unit = size if name == "zo-adamm" else q / problem.d / L
        rates = [step * unit for step in LADDER] if "eta" in parameters else []
        rungs = [{**trial, "options": {**trial["options"], "eta": eta}} for eta in rates]
        ladders.append(rungs or [trial])
        if issubclass(method, zt.Program):
            break
    return ladders


def measure(name: str, problem: str) -> dict[str, Any]:
    """The best setting, and its expected running time."""
    best: tuple[float, float, dict[str, Any], Hits] | None = None
    for ladder in settings(name, make(problem, 0)):
        reached = inf
        for trial in ladder:
            try:
                hits = once(problem, trial, 0)
            except ValueError:  # its first step is beyond the cap
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
    words = {key: value for key, value in best[2].get("options", {}).items() if isinstance(value, (int, float))}
    words |= {"q": best[2]["estimator"].q} if "estimator" in best[2] and name not in OWN else {}
    return {"calls": None if calls == inf else calls, "hits": sum(h.either[GOAL] < inf for h in runs), "options": words}


def once(name: str, trial: dict[str, Any], seed: int) -> Hits:
    """One run, up to the cap."""
    problem = make(name, seed)
    problem.budget = min(problem.budget, CAP)
    method = trial["method"]
    kind = zt.methods.available()[method] if isinstance(method, str) else type(method)
    stall = inf if issubclass(kind, zt.Program) else 6.0  # programs may be silent for long
    return run(problem, seed=seed, goals=[GOAL], stall=stall, **trial)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="methods to measure anew, with commas between")
    arguments = parser.parse_args()
    chosen = arguments.only.split(",") if arguments.only else names()
    for name in chosen:
        if name not in names():
            parser.error(f"no method {name!r}: there are {', '.join(names())}")
    kept = json.loads(FILE.read_text())["methods"] if arguments.only and FILE.exists() else {}
    start = time.perf_counter()
    for name in chosen:
        began = time.perf_counter()
        try:
            kept[name] = {problem: measure(name, problem) for problem in PROBLEMS}
        except ImportError as error:
            print(f"{name:18s} left out: {error}", flush=True)
            continue
        told = " ".join(f"{cell['calls'] or inf:9.0f}" for cell in kept[name].values())
        print(f"{name:18s} {told}  {time.perf_counter() - began:6.1f} s", flush=True)
    ordered = {name: kept[name] for name in names() if name in kept}
    words = {"problems": PROBLEMS, "cap": CAP, "seeds": SEEDS, "tolerance": TOLERANCES[GOAL], "methods": ordered}
    FILE.write_text(json.dumps(words, indent=1) + "\n")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
