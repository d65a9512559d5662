"""Count the calls needed to reach F - F* <= tol (F(x0) - F*): `auto`, the paper's methods at their best, and peers.

    python benchmarks/queries.py                      run everything that is not yet in benchmarks/.cache
    python benchmarks/queries.py --only auto          run the contestant alone; take the others from the cache
    python benchmarks/queries.py --only paper|peers   only fill the cache
    python benchmarks/queries.py --problems ridge-3,logistic --seeds 5
    python benchmarks/queries.py --method niht        judge another method, with its defaults, instead of auto
    python benchmarks/queries.py --plot report/data-profiles.png

The expected running time is the calls of all seeds until they reach the goal, with the whole budget for a seed that
misses it, divided by the number of seeds that reach it. suite.py defines the problems, and tuning.py searches for the
best settings of the paper's methods.
"""

from __future__ import annotations

import argparse
import io
import json
from contextlib import redirect_stdout
from dataclasses import asdict
from functools import partial
from math import inf
from pathlib import Path

import peers as others
import tuning
from optima import CACHE, keep
from suite import MISSING, NAMES, make
from table import Row, profiles, row_of, show
from tracker import TOLERANCES, Hits, ert, run

import zerothresh as zt

QUICK = ("ridge-3", "bodyfat", "quadratic-10", "quadratics", "two-scores", "attack", "quadratic-10-noise")
report = partial(print, flush=True)


def contest(name: str, arguments: argparse.Namespace) -> list[Hits]:
    """Run the contestant on a problem; each run stops when it has reached all goals or spent its budget."""
    runs = []
    for seed in range(arguments.seeds):
        problem = make(name, seed)
        options = json.loads(arguments.options) if arguments.options else None
        runs.append(run(problem, arguments.method, seed=seed, view="result", options=options))
    keep(CACHE / "runs" / arguments.method / f"{name}.json", [asdict(one) for one in runs])
    found = "  ".join(f"{ert(runs, place):9.0f}" for place in range(len(TOLERANCES)))
    missed = sum(one.either[1] == inf for one in runs)
    seconds = sum(one.seconds for one in runs)
    report(f"{name:22s} {arguments.method:8s} {found}  {missed} of {len(runs)} missed 1e-3  {seconds:6.1f} s")
    return runs


def gather(name: str, arguments: argparse.Namespace) -> Row:
    """Collect all runs on a problem, from the cache or made now."""
    only = arguments.only
    paper, peers, own = tuning.kept(name), {}, []
    if only in (None, "paper"):
        paper = tuning.baseline(name, again=arguments.again and only == "paper", report=report)
    if not arguments.no_peers:
        peers = others.kept(name)
        if only in (None, "peers"):
            peers = others.peers(name, again=arguments.again and only == "peers", report=report)
    path = CACHE / "runs" / arguments.method / f"{name}.json"
    if only in ("paper", "peers") or arguments.kept:
        own = [Hits(**one) for one in json.loads(path.read_text())] if path.exists() else []
    elif arguments.method in zt.methods.available():
        own = contest(name, arguments)
    return row_of(name, own, paper, peers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="run only these: auto or another method, paper, or peers")
    parser.add_argument("--method", default="auto", help="the contestant: the name of a registered method")
    parser.add_argument("--options", help="the contestant's hyper-parameters as JSON")
    parser.add_argument("--problems", default="", help="names of problems, separated by commas")
    parser.add_argument("--seeds", type=int, default=tuning.SEEDS, help="runs of the contestant per problem")
    parser.add_argument("--quick", action="store_true", help="use a few problems and 3 seeds")
    parser.add_argument("--no-peers", action="store_true", help="leave out the peers")
    parser.add_argument("--again", action="store_true", help="with --only paper or peers: ignore the cache")
    parser.add_argument("--kept", action="store_true", help="use the contestant's last runs and make no new ones")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="draw the data profiles into this file")
    arguments = parser.parse_args()
    names = arguments.problems.split(",") if arguments.problems else list(QUICK if arguments.quick else NAMES)
    for name in names:
        if name not in NAMES:
            parser.error(f"There is no problem {name!r}. The problems are {', '.join(NAMES)}.")
    if arguments.quick:
        arguments.seeds = min(arguments.seeds, 3)
    if arguments.only not in (None, "paper", "peers"):
        arguments.method = arguments.only if arguments.only != "auto" else arguments.method
    if MISSING:
        report(f"scikit-learn is not installed: {', '.join(MISSING)} are left out; attack uses synthetic pictures.")
    if others.ABSENT:
        report(f"These peers are not installed: {', '.join(others.ABSENT)}")
    if arguments.method not in zt.methods.available():
        report(f"There is no method {arguments.method!r}: only the others are run.")
    rows = [gather(name, arguments) for name in names]
    tables = io.StringIO()
    with redirect_stdout(tables):
        show(rows, arguments.method)
    print(tables.getvalue())
    if arguments.plot:
        profiles(rows, arguments.method, arguments.plot)


if __name__ == "__main__":
    main()
