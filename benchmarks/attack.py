"""Universal few-pixel attacks at equal queries: success rate and loss, on our net and on an independent ResNet-8.

    python benchmarks/attack.py [--nets small resnet8.onnx] [--budgets 600 6000 60000] [--seeds 20] [--page FILE]
    python benchmarks/attack.py --cifar10 <archive or folder> --many-seeds 5 ...

The paper's images of four classes, those that the net gets right; at most 60 of 3,072 numbers other than 0 for all,
which is 20 whole pixels. Every contestant sees the classifier through one counter, and is held to the budget by it.
Learning rates of the paper's methods are chosen from its grid by the mean loss of two other seeds at the same budget
(at 6,000 queries if it is larger).

Contestants: the paper's methods; `auto`; a plain random search over 20 whole pixels at extreme colours (one
pixel is swapped, taken if the mean loss falls); the same with 60 single channels; Sparse-RS's schedule of swap sizes on
whole pixels; and 'best' with 60 channels (the paper's count; whole pixels are not raced) and with 20 whole pixels.

With --cifar10, also one perturbation for all test images of a class that the net gets right (about 800) at 6,000 and
60,000 queries, and how many of 1,000 training images of the class, which the search has not seen, it fools.

With --page docs/attack-benchmark.md, the numbers in the text of docs/attack.md are written anew too.

What is done is kept in benchmarks/.cache, so that a stopped benchmark goes on. Seeds are interleaved: all contestants
have their first seed before any has its second.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attack_summary
import numpy as np

import zerothresh as zt
from zerothresh.attack import FewPixel, Universal, wrap
from zerothresh.attack.corner_moves import CornerMoves, random_subsets
from zerothresh.attack.images import stack_images
from zerothresh.comparison.summary import difference, mean
from zerothresh.datasets.cifar10 import CLASSES, PAPER_IDS
from zerothresh.reproduce.cifar.experiment import ETAS, FIGURE, PAPER, M, small_net

CACHE = Path(__file__).parent / ".cache"
K = 60
TUNING = 6000  # the largest budget at which learning rates are chosen
RANDOM, SPARSE_RS, BEST, BEST_PIXELS = "random search", "Sparse-RS", "best", "best, 20 pixels"
RANDOM_CHANNELS = "random search, 60 channels"


TEN = "## The paper's ten images of a class"
MANY = """## All test images of a class that the net classifies correctly

These are about 800 images, with one perturbation for all of them. Only these queries are counted, and the learning
rates are those for the ten images. "On unseen images" is the share of 1,000 training images of the class, classified
correctly before the attack, that the perturbation also fools."""

PAGE = """# Benchmark of few-pixel attacks

This page is made by `benchmarks/attack.py`. Only the text is written by hand, not the tables.

## How to read the tables

- The rates are success rates on the paper's images of four classes that the net classifies correctly, at equal numbers
  of queries.
- Every attack may change at most 60 of 3,072 numbers, as many as 20 whole pixels have.
- `small` is the net that comes with the package. `resnet8` is the ResNet-8 of `benchmarks/resnet8.py`.
- The paper's methods have their learning rate chosen from the paper's grid for each class, net and budget, by two other
  seeds (for 60,000 queries, at 6,000). The queries of that choice are not counted.
- "All classes" is the mean over the four classes, with a 95 % interval over seeds.
- "Queries used" is the mean number of queries after which the attack stopped. An attack that has fooled all images
  stops. The factor after it is a multiple of the queries of `best` (a geometric mean, with its interval).
- "Best minus this" is the mean difference between the rate of `best` and that of the attack, over pairs of runs with
  the same seed, with its interval.

## What to keep in mind

- `best` was run with `FewPixel(grid, mixed=False)`: its tables are older than the race between whole pixels and single
  channels, which `attack="best"` has where k counts channels. `benchmarks/attack_ks.py` compares the two.
- The settings of `best` were chosen on these nets with random test images of all ten classes, not with the paper's
  images.
- "Runs per class" is the number of seeds. At 60,000 queries there are few seeds for the slow attacks.
- Random search swaps one pixel at a time. Sparse-RS swaps more of them at first, by its published schedule.
- If two attacks both fool all images, their rates cannot show a difference, and the table says so.

{tables}"""


@dataclass(frozen=True)
class RandomSearch(zt.Program):
    """Swap places at random corners, all components at once, taken if F falls: one place, or as Sparse-RS has it."""

    schedule: bool = False

    def search(self, context: Any) -> Any:
        moves, total = CornerMoves(context), context.left
        theta, held = moves.start(context)
        best = float((yield from context.values([theta])).mean())
        context.move(theta, best)
        while best > 0:
            size = 1
            if self.schedule:  # alpha_init = 0.3, falling in steps as in Sparse-RS (10,000 there is the budget here)
                part = 10_000 * (1 - context.left / total)
                steps = (50, 200, 500, 1000, 2000, 4000, 6000, 8000)
                alpha = 0.3 / (1, 2, 4, 5, 6, 8, 10, 15, 20)[sum(part > step for step in steps)]
                size = max(1, int(alpha * held.size))
            points, supports = moves.swaps(theta, held, random_subsets(held.size, size, 1, context), context)
            value = float((yield from context.values([points[0]])).mean())
            if value < best:
                theta, held, best = points[0].copy(), supports[0], value
                context.move(theta, best)


def problem_of(net: str, table: Any, most: int | None = None) -> Universal:
    """The images of a table that a net gets right."""
    classifier = small_net() if net == "small" else wrap(net, bounds=(-0.5, 0.5))
    images = table.data.astype(np.float32) / 255 - 0.5
    whole = Universal(classifier, stack_images(images, classifier, layout="NHWC", bounds=(-0.5, 0.5)), table.target)
    right = np.flatnonzero(whole.predictions(np.zeros(whole.d)) == table.target)[:most]
    part = stack_images(images[right], classifier, layout="NHWC", bounds=(-0.5, 0.5))
    return Universal(classifier, part, table.target[right])


def of_class(table: Any, name: str) -> SimpleNamespace:
    """The images of one class."""
    chosen = table.target == CLASSES.index(name)
    return SimpleNamespace(data=table.data[chosen], target=table.target[chosen])


def attacked(
    problem: Universal, label: str, eta: float, budget: int, seed: int, other: Universal | None = None
) -> dict[str, Any]:
    """One run, recounted by the classifier's own counter."""
    classifier, box = problem.classifier, {"bounds": (-1.0, 1.0)}
    pixels = {**box, "groups": problem.stack.groups}
    makers: dict[str, Callable[[], tuple[Any, int, dict[str, Any]]]] = {
        RANDOM: lambda: (RandomSearch(), K // 3, pixels),
        RANDOM_CHANNELS: lambda: (RandomSearch(), K, box),
        SPARSE_RS: lambda: (RandomSearch(schedule=True), K // 3, pixels),
        BEST: lambda: (FewPixel(problem.stack.grid, mixed=False), K, box),
        BEST_PIXELS: lambda: (FewPixel(problem.stack.grid), K // 3, pixels),
        "auto": lambda: ("auto", K, box),
    }
    if label in makers:
        method, k, arguments = makers[label]()
    else:
        method, k, arguments = FIGURE[label](eta, M), K, {"estimator": PAPER}
    queries, seconds, began = classifier.queries, classifier.seconds, time.perf_counter()
    found = zt.minimize(problem, None, k, budget=budget, method=method, seed=seed, progress=False, **arguments)
    wall, queries, seconds = time.perf_counter() - began, classifier.queries - queries, classifier.seconds - seconds
    theta = found.x_last if label in FIGURE else found.x
    assert np.count_nonzero(theta) <= K
    assert queries == found.nfev <= budget
    values = problem.values(np.broadcast_to(theta, (problem.n, problem.d)), np.arange(problem.n))
    rate = float((problem.predictions(theta) != problem.labels).mean())
    told = {"rate": rate, "loss": float(values.mean()), "queries": queries, "inside": seconds / wall}
    if other is not None:
        told["transfer"] = float((other.predictions(theta) != other.labels).mean())
    return told


class Kept:
    """Runs by their name, a line each."""

    def __init__(self, path: Path, *, closed: bool = False) -> None:
        self.closed = closed  # whether nothing new is run
        path.parent.mkdir(exist_ok=True)
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.runs = {tuple(row["run"]): row for row in map(json.loads, lines)}

    def get(self, key: tuple[Any, ...], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if key not in self.runs and self.closed:
            return {"rate": np.nan, "loss": np.nan, "queries": np.nan}
        if key not in self.runs:
            self.runs[key] = {"run": list(key), **make()}
            with self.path.open("a") as file:
                file.write(json.dumps(self.runs[key]) + "\n")
        return self.runs[key]


def tuned(
    kept: Kept, net: str, problems: dict[str, Universal], labels: set[str], budget: int
) -> dict[tuple[str, str], float]:
    """The learning rate of each of the paper's methods on each class, by two seeds that are not used again."""
    out = {}
    for name, problem in problems.items():
        for label in (label for label in FIGURE if label in labels):

            def lost(eta: float, label: str = label, name: str = name, problem: Universal = problem) -> float:
                runs = [
                    kept.get((net, name, label, budget, s, eta), partial(attacked, problem, label, eta, budget, s))
                    for s in (900, 901)
                ]
                return float(np.nan_to_num(np.mean([run["loss"] for run in runs]), nan=np.inf))

            out[name, label] = min(ETAS, key=lost)
    return out


Found = dict[tuple[int, str], Any]  # (seeds, classes, numbers) of each budget and contestant
NUMBERS = ("rate", "loss", "queries", "transfer")


def race(kept: Kept, net: str, budgets: list[int], seeds: dict[str, int]) -> Found:
    """All contestants on the paper's ten images of each class."""
    problems = {name: problem_of(net, zt.datasets.load_cifar10_paper(name)) for name in PAPER_IDS}
    found: Found = {}
    for budget in budgets:
        etas = tuned(kept, net, problems, {label for label, count in seeds.items() if count}, min(budget, TUNING))
        for seed, label, name in turns(seeds):
            eta = etas.get((name, label), 0.0)
            run = partial(attacked, problems[name], label, eta, budget, seed)
            note(found, budget, label, seed, kept.get((net, name, label, budget, seed, eta), run))
    return tables_of(found)


def race_many(kept: Kept, net: str, cifar10: Path, budgets: list[int], seeds: dict[str, int]) -> Found:
    """All contestants on all test images of each class that the net gets right; learning rates as for the ten."""
    test, train = (zt.datasets.load_cifar10(cifar10, split=split) for split in ("test", "train"))
    few = {name: problem_of(net, zt.datasets.load_cifar10_paper(name)) for name in PAPER_IDS}
    problems = {name: problem_of(net, of_class(test, name)) for name in PAPER_IDS}
    others = {name: problem_of(net, of_class(train, name), 1000) for name in PAPER_IDS}
    etas = tuned(kept, net, few, {label for label, count in seeds.items() if count}, TUNING)
    found: Found = {}
    for budget in budgets:
        for seed, label, name in turns(seeds):
            eta = etas.get((name, label), 0.0)
            run = partial(attacked, problems[name], label, eta, budget, seed, others[name])
            note(found, budget, label, seed, kept.get((net, f"all {name}", label, budget, seed, eta), run))
    return tables_of(found)


def turns(seeds: dict[str, int]) -> Iterator[tuple[int, str, str]]:
    """Seed by seed, all contestants, all classes."""
    for seed in range(max(seeds.values(), default=0)):
        yield from ((seed, label, name) for label, count in seeds.items() if seed < count for name in PAPER_IDS)


def note(found: Found, budget: int, label: str, seed: int, run: dict[str, Any]) -> None:
    """Put a run into its place."""
    row = [run.get(name, np.nan) for name in NUMBERS]
    found.setdefault((budget, label), {}).setdefault(seed, []).append(row)


def tables_of(found: Found) -> Found:
    """Runs as arrays; a seed that has not been run for all classes is NaN, so that seeds still meet their like."""
    tables = {key: np.array(list(runs.values())) for key, runs in found.items()}
    for runs in tables.values():
        runs[np.isnan(runs[:, :, 0]).any(axis=1)] = np.nan
    return {key: runs for key, runs in tables.items() if np.isfinite(runs[:, :, 0]).any()}


def done(runs: Any) -> Any:
    """The seeds that were run."""
    return runs[np.isfinite(runs[:, :, 0]).all(axis=1)]


def lines_of(net: str, found: Found) -> list[str]:
    """The table of a net in Markdown."""
    many = any(np.isfinite(runs[:, :, 3]).any() for runs in found.values())
    last = "on unseen images" if many else "queries used"
    names = [f"{name}" for name in PAPER_IDS]
    header = ["net", "queries", "attack", "runs per class", *names, "all classes", "mean loss", last, "best minus this"]
    out = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    for (budget, label), runs in found.items():
        best = found.get((budget, BEST))
        rates, losses, queries, transfer = (done(runs)[:, :, place] for place in range(len(NUMBERS)))
        whole = mean(rates.mean(axis=1))
        less = ""
        if best is not None and label != BEST:
            less = _gap(*(each[:, :, 0].mean(axis=1) for each in paired(best, runs)))
        each = [f"{rate:.2f}" for rate in rates.mean(axis=0)]
        interval = f"{whole.value:.3f} [{max(0, whole.low):.3f}, {min(1, whole.high):.3f}]"
        shown = f"**{label}**" if label.startswith("best") else label
        times = "" if label == BEST or best is None else _times(*paired(runs, best))
        more = f"{transfer.mean():.3f}" if many else f"{queries.mean():,.0f}{times}"
        row = [net, f"{budget:,}", shown, str(len(rates)), *each, interval, f"{losses.mean():.3f}", more, less]
        out.append(f"| {' | '.join(row)} |")
    return out


def paired(one: Any, other: Any) -> tuple[Any, Any]:
    """The seeds that were run for both."""
    count = min(len(one), len(other))
    both = np.isfinite(one[:count, :, 0] + other[:count, :, 0]).all(axis=1)
    return one[:count][both], other[:count][both]


def _times(runs: Any, best: Any) -> str:
    """How many times the queries of best, with its interval: both go on until nothing is left to fool."""
    if len(runs) < 2:
        return ""
    ratio = mean(np.log(runs[:, :, 2] / best[:, :, 2]).mean(axis=1))
    return f", x {np.exp(ratio.value):.1f} [{np.exp(ratio.low):.1f}, {np.exp(ratio.high):.1f}]"


def _gap(best: Any, other: Any) -> str:
    """The mean difference, its interval, and what that says."""
    if len(best) < 2:
        return f"{float(np.mean(best - other)):+.3f}, one run"
    gap = difference(best, other)
    said = "ahead" if gap.low > 0 else "behind" if gap.high < 0 else "**no clear difference**"
    return f"{gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}] {said}"


def together(every: list[Found]) -> list[str]:
    """The difference of best to each other attack, seed for seed, over all classes of all nets."""
    out = ["| queries | attack | seeds | success rate | best minus this |", "|---|---|---|---|---|"]
    for budget, label in every[0]:
        parts = [(found.get((budget, label)), found.get((budget, BEST))) for found in every]
        if label == BEST or any(one is None or best is None for one, best in parts):
            continue
        count = min(len(array) for pair in parts for array in pair)
        whole = np.concatenate([array[:count, :, :1] for pair in parts for array in pair], axis=1)
        common = np.isfinite(whole).all(axis=(1, 2))  # seeds that were run for both, on all nets
        count = int(common.sum())
        if not count:
            continue
        means = [[array[: common.size][common][:, :, 0].mean(axis=1) for array in pair] for pair in parts]
        rates = np.mean(means, axis=0)
        out.append(f"| {budget:,} | {label} | {count} | {rates[0].mean():.3f} | {_gap(rates[1], rates[0])} |")
    return out


def speed() -> str:
    """60,000 queries against the shipped net; one pixel is too few to fool all, so that none are saved."""
    table = zt.datasets.load_cifar10_paper("airplane")
    images, net = table.data.astype(np.float32) / 255 - 0.5, small_net()
    zt.attack.universal(net, images, table.target, k=1, budget=300, seed=0)  # what is compiled is compiled
    began = time.perf_counter()
    found = zt.attack.universal(net, images, table.target, k=1, budget=60_000, seed=0)
    wall, inside = time.perf_counter() - began, found.classifier.seconds
    return f"{found.queries:,} queries in {wall:.1f} s, {inside / wall:.1%} of it inside the model"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", nargs="+", default=["small"], help="small, or ONNX files")
    parser.add_argument("--budgets", nargs="+", type=int, default=[600])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--gradient-seeds", type=int, help="of the paper's methods and auto, which are slow")
    parser.add_argument("--cifar10", type=Path, help="archive or folder of the data set: all images of a class too")
    parser.add_argument("--many-seeds", type=int, default=20, help="of the attacks on all images of a class")
    parser.add_argument("--only", nargs="+", help="some of the contestants")
    parser.add_argument("--kept", action="store_true", help="run nothing: tables of what is in the cache")
    parser.add_argument("--speed", action="store_true", help="only the share of time inside the model, 60,000 queries")
    parser.add_argument("--page", type=Path, help="write the tables into this file too; docs/attack.md from the docs'")
    told = parser.parse_args()
    kept = Kept(CACHE / "attack.jsonl", closed=told.kept)
    few = told.seeds if told.gradient_seeds is None else told.gradient_seeds
    counts = {**dict.fromkeys(FIGURE, few), "auto": few}
    counts |= dict.fromkeys((RANDOM, SPARSE_RS, RANDOM_CHANNELS, BEST_PIXELS, BEST), told.seeds)
    if told.only:
        counts = {label: count for label, count in counts.items() if label in told.only}
    if told.speed:
        print(speed())
        return
    page = []
    races = [(TEN, lambda net: race(kept, net, told.budgets, counts))]
    if told.cifar10:
        budgets = [budget for budget in told.budgets if budget > 600]
        most = {label: min(count, told.many_seeds) for label, count in counts.items()}
        races.append((MANY, lambda net: race_many(kept, net, told.cifar10, budgets, most)))
    for title, run in races:
        every = []
        page += [title, ""]
        for net in told.nets:
            every.append(run(net))
            lines = lines_of(Path(net).stem, every[-1])
            print("\n".join(lines), flush=True)
            page += [*lines, ""]
        if len(every) > 1:
            lines = ["All nets together:", "", *together(every)]
            print("\n".join(lines), flush=True)
            page += [*lines, ""]
    if told.page:
        told.page.write_text(PAGE.format(tables="\n".join(page).rstrip()) + "\n")
        if told.page.resolve() == attack_summary.BENCHMARK.resolve():
            attack_summary.main()


if __name__ == "__main__":
    main()
