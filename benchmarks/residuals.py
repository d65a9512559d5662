"""Functions whose calls return all residuals: gauss-newton and auto beside DFO-LS, SciPy, Py-BOBYQA, and auto on F.

    python benchmarks/residuals.py                                          all tables, seeds from 0 on
    python benchmarks/residuals.py --table sparse --only mixture,ode --solvers gauss-newton --draws 3
    python benchmarks/residuals.py --set former --json former.json          seeds from 1000 on, and keep what was found
    python benchmarks/residuals.py --set judge --json judge.json            seeds from 11000 on, for judging only
    python benchmarks/residual_page.py former.json judge.json               write docs/residuals.md

Tables: dense (the Moré-Wild set, k = d), sparse, noise (1e-3 of the residuals at the start, in every output of every
run), robust (10 % outliers) and workers (16 of them, on runs that take 50 ms). A run is one call of the function. A
sparse problem is solved when a feasible point has the right support and F at most 1e-6 of that at the start. DFO-LS,
SciPy and Py-BOBYQA know no sparsity: they minimise over all coordinates, and then, with what is left of their budget,
over the k largest. They are slow on many coordinates, so they get fewer draws, and seconds that limit each of them.
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from pathlib import Path

import numpy as np
from goal_problem import FIRST_SEED
from residual_peers import SOLVERS
from residual_tables import LEVELS, TABLES, Measured, fewer, goals, lost, measure, profile, spread


def show(measured: list[Measured]) -> None:
    """Print the figures of all solvers, and the goals."""
    for name in SOLVERS:
        if rows := profile(measured, name):
            ratios = " / ".join(f"{fewer(rows, place):.3f}" for place in range(len(LEVELS)))
            print(f"dense    {name:13s} {ratios} times fewer runs than DFO-LS; unsolved, but by DFO-LS: {lost(rows)}")
    for table in TABLES:
        groups: dict[tuple[str, str], list[Measured]] = {}
        for row in measured:
            if row["table"] == table and "runs" in row:
                groups.setdefault((row["case"], row["solver"]), []).append(row)
        for (case, name), rows in groups.items():
            late = sum(row["late"] for row in rows)
            stopped = f", {late} stopped by the clock" if late else ""
            seconds = np.mean([row["seconds"] for row in rows])
            print(f"{table:8s} {case:14s} {name:13s} {spread(rows):34s} {seconds:6.1f} s{stopped}")
    judged = goals(measured)
    for one in judged:
        print(f"{one.table:8s} {one.case:28s} {one.measured:56s} {one.goal:42s} {'met' if one.met else 'NOT MET'}")
    print(f"{sum(one.met for one in judged)} of {len(judged)} goals met")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", default=",".join(TABLES), help="tables, separated by commas")
    parser.add_argument("--set", choices=sorted(FIRST_SEED), default="dev", help="development, former or judging set")
    parser.add_argument("--draws", type=int, help="draws of each case; by default as many as its goal speaks of")
    parser.add_argument("--first", type=int, default=0, help="the number of the first draw")
    parser.add_argument("--only", default="", help="problems, or losses for the table robust")
    parser.add_argument("--solvers", default="", help="solvers, by name")
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="keep what each draw gave in this file, and add to it"
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    first = FIRST_SEED[given.set] + given.first
    last = min((seed for seed in FIRST_SEED.values() if seed > FIRST_SEED[given.set]), default=np.inf)
    only, names = ([name for name in text.split(",") if name] for text in (given.only, given.solvers))
    measured: list[Measured] = []
    if given.json and given.json.exists():
        kept = json.loads(given.json.read_text())
        if kept["set"] != given.set:
            parser.error(f"{given.json} holds the set {kept['set']}")
        measured = kept["measured"]
    for table in given.table.split(","):
        of = TABLES[table]
        chosen = [case for case in of.cases if not only or case in only]
        solvers = [name for name in of.solvers if not names or name in names]
        for row in measure(table, lambda draws: range(first, min(first + draws, last)), chosen, solvers, given.draws):
            key = [row[part] for part in ("table", "case", "seed", "solver")]
            measured = [old for old in measured if [old[part] for part in ("table", "case", "seed", "solver")] != key]
            measured.append(row)
            brief = {name: value for name, value in row.items() if name not in ("falls", "table")}
            print(table, *brief.values(), flush=True)
            if given.json:
                given.json.write_text(json.dumps({"set": given.set, "measured": measured}) + "\n")
    show(measured)


if __name__ == "__main__":
    main()
