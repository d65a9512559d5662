"""Attacks at several k in one search, and whole pixels raced against single channels, at equal numbers of queries.

    python benchmarks/attack_ks.py [--nets small resnet8.onnx] [--seeds 10] [--page docs/attack.md]

On the images of the paper's four classes that the net gets right. None of the rules was chosen on them.

The race: at most 60 single numbers, 600 queries. `race` is what attack="best" does with granularity="channel";
`channels` and `pixels` are its two kinds of moves alone, and the random search swaps one whole pixel at a time.

The path: k = 1, 2, 5, 10, 20 pixels with 3,000 queries in all, against runs of their own with 600 queries for each k.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from attack import K, RandomSearch, problem_of

import zerothresh as zt
from zerothresh.attack import FewPixel, Universal
from zerothresh.attack.few_pixel_path import FewPixelPath
from zerothresh.comparison.summary import difference, mean
from zerothresh.datasets.cifar10 import PAPER_IDS

QUERIES = 600  # of a race, and for each k
KS = (1, 2, 5, 10, 20)
MARK = "<!-- attack path -->"


def rate(problem: Universal, theta: Any) -> float:
    """The share of the images that a perturbation fools, by the model's predictions."""
    return float((problem.predictions(theta) != problem.labels).mean())


def solved(problem: Universal, method: Any, k: int, budget: int, seed: int, *, pixels: bool) -> Any:
    """One run, recounted by the classifier's own counter."""
    groups = problem.stack.groups if pixels else None
    before, box = problem.classifier.queries, {"bounds": (-1.0, 1.0), "groups": groups, "progress": False}
    found = zt.minimize(problem, None, k, budget=budget, method=method, seed=seed, **box)
    assert problem.classifier.queries - before == found.nfev <= budget
    return found


def race(problem: Universal, seed: int) -> dict[str, float]:
    """The success rate of each search with at most 60 numbers."""
    grid = problem.stack.grid
    searches: dict[str, tuple[Any, bool]] = {
        "race": (FewPixel(grid), False),
        "channels": (FewPixel(grid, mixed=False), False),
        "pixels": (FewPixel(grid), True),
        "random search over pixels": (RandomSearch(), True),
    }
    found = {}
    for label, (method, pixels) in searches.items():
        x = solved(problem, method, K // 3 if pixels else K, QUERIES, seed, pixels=pixels).x
        assert np.count_nonzero(x) <= K
        found[label] = rate(problem, x)
    return found


def path(problem: Universal, seed: int) -> dict[str, list[float]]:
    """The success rates against k of one path, and of runs of their own; what fools more with a smaller k counts."""
    method = FewPixelPath(KS, FewPixel(problem.stack.grid))
    solved(problem, method, KS[-1], QUERIES * len(KS), seed, pixels=True)
    alone = {k: solved(problem, FewPixel(problem.stack.grid), k, QUERIES, seed, pixels=True).x for k in KS}
    rates = [[rate(problem, points[k]) for k in KS if k in points] for points in (method.points, alone)]
    curves = [np.maximum.accumulate([*found, *found[-1:] * (len(KS) - len(found))]) for found in rates]
    return dict(zip(("one path", "runs of their own"), (curve.tolist() for curve in curves), strict=True))


def lines(net: str, races: list[list[dict[str, float]]], paths: list[list[dict[str, list[float]]]]) -> list[str]:
    """The two tables of a net; the runs are (seeds, classes)."""
    out = [
        f"Net `{net}`, {len(races)} seeds of four classes, {QUERIES} queries, at most {K} numbers:",
        "",
        f"| search | {' | '.join(PAPER_IDS)} | all | the race minus this |",
        "|---" * (len(PAPER_IDS) + 3) + "|",
    ]
    table = {label: np.array([[one[label] for one in row] for row in races]) for label in races[0][0]}
    for label, runs in table.items():
        less = "" if label == "race" else _gap(table["race"].mean(axis=1), runs.mean(axis=1))
        each = " | ".join(f"{value:.2f}" for value in runs.mean(axis=0))
        out.append(f"| {label} | {each} | {mean(runs.mean(axis=1)).value:.3f} | {less} |")
    out += [
        "",
        f"Net `{net}`, {QUERIES * len(KS):,} queries for all k:",
        "",
        f"| | {' | '.join(f'k = {k}' for k in KS)} | mean |",
        "|---" * (len(KS) + 2) + "|",
    ]
    curves = {label: np.array([[one[label] for one in row] for row in paths]) for label in paths[0][0]}
    for label, runs in curves.items():
        each = " | ".join(f"{value:.2f}" for value in runs.mean(axis=(0, 1)))
        out.append(f"| {label} | {each} | {runs.mean():.3f} |")
    one, other = (runs.mean(axis=(1, 2)) for runs in curves.values())
    by_k = curves["one path"].mean(axis=1) - curves["runs of their own"].mean(axis=1)
    gaps = " | ".join(f"{value:+.2f}" for value in by_k.mean(axis=0))
    return [*out, f"| difference | {gaps} | {_gap(one, other)} |", ""]


def _gap(one: Any, other: Any) -> str:
    gap = difference(one, other)
    return f"{gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", nargs="+", default=["small"], help="small, or ONNX files")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--page", type=Path, help="write the tables into this page too")
    told = parser.parse_args()
    page = []
    for net in told.nets:
        problems = [problem_of(net, zt.datasets.load_cifar10_paper(name)) for name in PAPER_IDS]
        races = [[race(problem, seed) for problem in problems] for seed in range(told.seeds)]
        paths = [[path(problem, seed) for problem in problems] for seed in range(told.seeds)]
        page += lines(Path(net).stem, races, paths)
        print("\n".join(lines(Path(net).stem, races, paths)), flush=True)
    if told.page:
        before, _, after = told.page.read_text().split(MARK)
        told.page.write_text(f"{before}{MARK}\n" + "\n".join(page).rstrip() + f"\n{MARK}{after}")


if __name__ == "__main__":
    main()
