"""How many calls until F - F* <= tol (F(x0) - F*)? `auto` with nothing set, the paper's methods at their best, peers.

    python benchmarks/queries.py                      all; what is in benchmarks/.cache is not run again
    python benchmarks/queries.py --only auto          the contestant alone, the others from the cache
    python benchmarks/queries.py --only paper|peers   fill the cache
    python benchmarks/queries.py --problems ridge-3,logistic --seeds 5
    python benchmarks/queries.py --method niht        another method with its defaults in the place of auto
    python benchmarks/queries.py --plot docs/pictures/data-profiles.png

Expected running time: the calls of all seeds until the hit, with the whole budget for a seed that failed, over the
number of hits. suite.py has the problems, tuning.py the search for the best settings of the paper's methods.
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
say = partial(print, flush=True)
PAGE = """# How many calls

Made by `python benchmarks/queries.py --plot docs/pictures/data-profiles.png --page docs/queries.md`; nothing on this
page is written by hand but these lines.

`auto` has nothing set. Each method of the paper has its learning rate and its number of directions (and `mu`, if there
is noise) searched in its favour, problem by problem and goal by goal, with the true curvature as a unit that no user
knows; the calls of that search are not counted. Expected running time over {seeds} seeds: the calls of all seeds until
the goal, with the whole budget for a seed that missed it, over the number of those that reached it. `>` and `<` mark
bounds where one side never got there. Peers get F with hard thresholding inside, n calls a value.
`benchmarks/suite.py` has the problems.

What to keep in mind. The search for the paper's best settings is long, and not exhaustive. Its first version gave up
slow starters; with the present one it was made again for FGZOHT and SZOHT everywhere, and for all methods on the
problems with one component, ridge-3, quadratics, two scores, AUC and attack. There the best number fell on AUC alone,
by a factor of 1.8; on the others SAGA and its kin have what the first version found, so ratios of 1 to 3 there are
uncertain. On diabetes, least squares and the net some of the paper's methods are missing, and least squares had a short
ladder: 465,000 calls are known to be enough, a ratio of about 22. Settings were chosen on the
seeds that judge them, which is in the paper's favour; one of ridge-3-noise (SZOHT, 289) was picked by hand. Several of
the paper's numbers rest on one or two hits. The problem with outliers is a ratio of over a thousand: without it, the
geometric means are smaller by a fifth. Attack and net were changed after first results had been seen, so that somebody
solves them, and `auto` was developed with these problems at hand: on yours it may do better or worse. The optimum of
AUC is the best one known.

![The share of problems solved against calls](pictures/data-profiles.png)

```
{tables}
```
"""


def contest(name: str, arguments: argparse.Namespace) -> list[Hits]:
    """The contestant's runs; each stops when its result is good enough, or at the end of its budget."""
    runs = []
    for seed in range(arguments.seeds):
        problem = make(name, seed)
        options = json.loads(arguments.options) if arguments.options else None
        runs.append(run(problem, arguments.method, seed=seed, view="result", options=options))
    keep(CACHE / "runs" / arguments.method / f"{name}.json", [asdict(one) for one in runs])
    found = "  ".join(f"{ert(runs, place):9.0f}" for place in range(len(TOLERANCES)))
    missed = sum(one.either[1] == inf for one in runs)
    seconds = sum(one.seconds for one in runs)
    say(f"{name:22s} {arguments.method:8s} {found}  {missed} of {len(runs)} missed 1e-3  {seconds:6.1f} s")
    return runs


def gather(name: str, arguments: argparse.Namespace) -> Row:
    """All runs on a problem, made now or kept."""
    only = arguments.only
    paper, rivals, own = tuning.kept(name), {}, []
    if only in (None, "paper"):
        paper = tuning.baseline(name, again=arguments.again and only == "paper", say=say)
    if not arguments.no_peers:
        rivals = others.kept(name)
        if only in (None, "peers"):
            rivals = others.peers(name, again=arguments.again and only == "peers", say=say)
    path = CACHE / "runs" / arguments.method / f"{name}.json"
    if only in ("paper", "peers") or arguments.kept:
        own = [Hits(**one) for one in json.loads(path.read_text())] if path.exists() else []
    elif arguments.method in zt.methods.available():
        own = contest(name, arguments)
    return row_of(name, own, paper, rivals)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="the contestant's name (or auto), paper or peers: run only these")
    parser.add_argument("--method", default="auto", help="the contestant: a registered method")
    parser.add_argument("--options", help="its hyper-parameters as JSON, if it needs some")
    parser.add_argument("--problems", default="", help="names, with commas between")
    parser.add_argument("--seeds", type=int, default=tuning.SEEDS, help="runs of the contestant on a problem")
    parser.add_argument("--quick", action="store_true", help="a few problems, 3 seeds")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--again", action="store_true", help="with --only paper or peers: do not use the cache")
    parser.add_argument("--kept", action="store_true", help="the contestant's last runs, no new ones")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="data profiles as a picture")
    parser.add_argument("--page", type=Path, metavar="PATH", help="the tables as a page of the documentation")
    arguments = parser.parse_args()
    names = arguments.problems.split(",") if arguments.problems else list(QUICK if arguments.quick else NAMES)
    for name in names:
        if name not in NAMES:
            parser.error(f"no problem {name!r}: there are {', '.join(NAMES)}")
    if arguments.quick:
        arguments.seeds = min(arguments.seeds, 3)
    if arguments.only not in (None, "paper", "peers"):
        arguments.method = arguments.only if arguments.only != "auto" else arguments.method
    if MISSING:
        say(f"without scikit-learn, no {', '.join(MISSING)}, and the attack is on made-up pictures")
    if others.ABSENT:
        say(f"not installed: {', '.join(others.ABSENT)}")
    if arguments.method not in zt.methods.available():
        say(f"no method {arguments.method!r} yet: only the others")
    rows = [gather(name, arguments) for name in names]
    told = io.StringIO()
    with redirect_stdout(told):
        show(rows, arguments.method)
    print(told.getvalue())
    if arguments.page:
        arguments.page.write_text(PAGE.format(tables=told.getvalue().strip("\n"), seeds=len(rows[0].own)))
    if arguments.plot:
        profiles(rows, arguments.method, arguments.plot)


if __name__ == "__main__":
    main()
