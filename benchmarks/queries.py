"""Count the calls needed to reach F - F* <= tol (F(x0) - F*): `auto`, the paper's methods at their best, and peers.

    python benchmarks/queries.py                      run everything that is not yet in benchmarks/.cache
    python benchmarks/queries.py --only auto          run the contestant alone; take the others from the cache
    python benchmarks/queries.py --only paper|peers   only fill the cache
    python benchmarks/queries.py --problems ridge-3,logistic --seeds 5
    python benchmarks/queries.py --method niht        judge another method, with its defaults, instead of auto
    python benchmarks/queries.py --plot docs/pictures/data-profiles.png

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
PAGE = """# How many calls `auto` needs

This page is made by `python benchmarks/queries.py --plot docs/pictures/data-profiles.png --page docs/queries.md`. Only
the text above the tables is written by hand. `benchmarks/suite.py` defines the problems.

![The share of problems solved against the number of calls](pictures/data-profiles.png)

## How to read the tables

- Each table has one goal: `F - F*` falls to a given share of `F(x0) - F*`.
- `auto` has no settings.
- `paper` is the best of the paper's methods on that problem, with its name and its settings. The learning rate and the
  number of directions (and `mu`, if there is noise) were searched in its favour for each problem and each goal, in
  units of the true curvature, which no user knows. The calls of that search are not counted.
- `peer` is the best of several other packages. A peer minimises F with the hard thresholding inside the objective, so
  each of its values costs n calls.
- The numbers of calls are expected running times over {seeds} seeds (5 for peers): the calls of all seeds until they
  reach the goal, with the whole budget for a seed that misses it, divided by the number of seeds that reach it. A dash
  means that no seed reached the goal.
- A ratio is the number of calls of the other method divided by that of `auto`. `>` and `<` mark bounds, where one of
  the two never reached the goal.
- A problem has index structure if each component is a loss of one linear score of theta.

## What to keep in mind

- The search for the paper's best settings is long, but not exhaustive. Its first version gave up slow starters. With
  the present version it was repeated for FGZOHT and SZOHT on all problems, and for all methods on the problems with one
  component, ridge-3, quadratics, two scores, AUC and attack. Among these, the best number of calls fell only on AUC, by
  a factor of 1.8. On the other problems, SAGA and its variants have the settings that the first version found, so
  ratios of 1 to 3 there are uncertain.
- On diabetes, least squares and the net, some of the paper's methods are missing. On least squares few learning rates
  were tried: 465,000 calls are known to be enough, which is a ratio of about 22.
- The settings were chosen on the same seeds that judge them, which is in the paper's favour. One setting for
  ridge-3-noise (SZOHT, 289 calls) was picked by hand.
- Several of the paper's numbers rest on one or two seeds that reached the goal.
- The problem with outliers has a ratio of more than a thousand. Without it, the geometric means are smaller by a fifth.
- The problems attack and net were changed after first results had been seen, so that at least one method solves them.
- `auto` was developed with these problems at hand. On yours it may do better or worse.
- The optimum of AUC is the best one known, not a proven one.

## The tables

```
{tables}
```
"""


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
    parser.add_argument("--page", type=Path, metavar="PATH", help="write the tables as a documentation page")
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
    if arguments.page:
        arguments.page.write_text(PAGE.format(tables=tables.getvalue().strip("\n"), seeds=len(rows[0].own)))
    if arguments.plot:
        profiles(rows, arguments.method, arguments.plot)


if __name__ == "__main__":
    main()
