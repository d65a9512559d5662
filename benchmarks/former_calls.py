"""Measure the former `auto` on given seeds of the 24 problems, so that the present one is compared on the same seeds.

    git worktree add ../former 88073cc
    PYTHONPATH=../former/src python benchmarks/former_calls.py --first 11000 --draws 8
    python benchmarks/former_calls.py --list

88073cc is the last commit before `auto` was rebuilt. The script runs the version of zerothresh that it imports, which
has to be that one. Its calls are added to benchmarks/former_calls.json: for each problem and seed the calls to 1e-2
and to 1e-3 of the gap, null for a goal that was missed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from math import inf
from pathlib import Path

import suite
from tracker import run

KEPT = Path(__file__).parent / "former_calls.json"
Calls = tuple[float, float]  # to 1e-2 and to 1e-3 of the gap; infinite where a goal was missed


def former_calls() -> dict[str, dict[int, Calls]]:
    """Return what is kept: the calls of the former version by problem and seed."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return {
        name: {int(seed): (inf if a is None else a, inf if b is None else b) for seed, (a, b) in of_seeds.items()}
        for name, of_seeds in kept.items()
    }


def on_seeds(name: str, seeds: Sequence[int]) -> list[Calls]:
    """Return the calls of the former version on these seeds; nothing unless all of them were measured."""
    known = former_calls().get(name, {})
    return [known[seed] for seed in seeds] if all(seed in known for seed in seeds) else []


def keep(calls: dict[str, dict[int, Calls]]) -> None:
    """Write the calls, one problem per line."""
    lines = []
    for name in suite.RECIPES:
        rows = {str(seed): [None if c == inf else int(c) for c in calls[name][seed]] for seed in sorted(calls[name])}
        lines.append(f"{json.dumps(name)}: {json.dumps(rows)}")
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--draws", type=int, default=8, help="how many seeds")
    parser.add_argument("--only", default="", help="names of problems, separated by commas; by default all of them")
    parser.add_argument("--list", action="store_true", help="print which seeds are known")
    given = parser.parse_args()
    calls = {name: former_calls().get(name, {}) for name in suite.RECIPES}
    if given.list:
        for name, of_seeds in calls.items():
            print(f"{name:24s} {', '.join(map(str, sorted(of_seeds)))}")
        return
    for name in given.only.split(",") if given.only else suite.NAMES:
        for seed in range(given.first, given.first + given.draws):
            if seed not in calls[name]:
                hits = run(suite.make(name, seed), "auto", seed=seed, goals=(0, 1), view="result")
                calls[name][seed] = (hits.result[0], hits.result[1])
        keep(calls)


if __name__ == "__main__":
    main()
