"""Measure the goals of `auto` on problems that are made by families.py, and print each figure beside its goal.

    python benchmarks/goals.py                                     all cases of the development set
    python benchmarks/goals.py --only hartmann,dense --draws 5     cases whose names begin so, with fewer draws
    python benchmarks/goals.py --set judge                         random parameters, seeds from 11000 on
    python benchmarks/goals.py --set former                        the same with seeds from 1000 on: for development
    python benchmarks/goals.py --jobs 2 --json goals.json          two processes; keep what each draw gave
    python benchmarks/goals.py --list                              the cases and their goals
    python benchmarks/goals.py --only race                         `auto` against each of its arms alone

The problems are called through `zt.minimize(..., method="auto")`, as a user would. Calls are counted by the problem
itself, and F is measured without noise at the point that the run would return. The development set has fixed
parameters and seeds from 0 on. The judging set is run to judge, never to choose a constant.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import goal_cases
from goal_cases import Case, Outcome
from goal_problem import FIRST_SEED
from goal_race import RACE
from goal_suite import SUITE
from goal_trust import TRUST

CASES = {case.name: case for case in (*goal_cases.CASES, *TRUST, SUITE, RACE)}


def measure(name: str, seed: int, method: Any) -> Outcome:
    """One draw of a case, with its duration."""
    began = time.perf_counter()
    try:
        outcome = CASES[name].one(seed, method)
    except Exception as error:  # a case that fails must not hide the others
        return {"failed": f"seed {seed}: {type(error).__name__}: {error}"}
    return {**outcome, "seed": seed, "took": time.perf_counter() - began}


def processes(jobs: int) -> ProcessPoolExecutor:
    """A pool of processes that use one thread each."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # a spawned process reads it before it imports NumPy
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))


def row(case: Case, outcomes: list[Outcome]) -> dict[str, Any]:
    """Judge a case, and print its row."""
    failed = [outcome["failed"] for outcome in outcomes if "failed" in outcome]
    if failed:
        print(f"{case.name:24s} FAILED in {len(failed)} of {len(outcomes)} draws: {failed[0]}", flush=True)
        return {"case": case.name, "goal": case.goal, "met": False, "failed": failed}
    measured, met = case.judge(outcomes)
    seconds = sum(outcome["took"] for outcome in outcomes)
    verdict = "met" if met else "NOT MET"
    print(f"{case.name:24s} {measured:64s} {case.goal:48s} {verdict:8s}{seconds:7.1f} s", flush=True)
    return {"case": case.name, "measured": measured, "goal": case.goal, "met": met, "outcomes": outcomes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=sorted(FIRST_SEED), default="dev", help="development, former or judging set")
    parser.add_argument("--only", default="", help="beginnings of the names of cases, separated by commas")
    parser.add_argument("--draws", type=int, help="draws per case; by default as many as its goal speaks of")
    parser.add_argument("--first", type=int, default=0, help="the number of the first draw")
    parser.add_argument("--method", default="auto", help="another registered method instead of auto")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", type=Path, metavar="PATH", help="keep what each draw gave in this file")
    parser.add_argument("--list", action="store_true", help="print the cases and their goals")
    arguments = parser.parse_args()
    named = [case for case in CASES.values() if case.name.startswith(tuple(arguments.only.split(",")))]
    chosen = [case for case in named if arguments.set == "judge" or not case.judging]
    if not chosen:
        parser.error(f"There is no case {arguments.only!r} in this set. The cases are {', '.join(CASES)}.")
    if arguments.list:
        for case in chosen:
            print(f"{case.name:24s} {case.goal:48s} {case.draws} draws")
        return
    first = FIRST_SEED[arguments.set] + arguments.first
    with processes(arguments.jobs) as pool:
        waiting = []
        for case in chosen:
            seeds = range(first, first + (arguments.draws or case.draws))
            waiting.append((case, [pool.submit(measure, case.name, seed, arguments.method) for seed in seeds]))
        rows = [row(case, [future.result() for future in futures]) for case, futures in waiting]
    print(f"{sum(one['met'] for one in rows)} of {len(rows)} goals met")
    if arguments.json:
        kept = {"set": arguments.set, "method": arguments.method, "rows": rows}
        arguments.json.write_text(json.dumps(kept, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
