"""What a path over k costs beside one solve of the largest k, and what it finds beside single runs.

    python benchmarks/paths.py [--seeds 1] [--only diabetes ridge logistic absolute black-box]

Each single run has the budget of its problem. The path gets one and a half times the calls that the run for the
largest k alone has made, which is the goal for its price. The excess of a k is F of the path minus F of the single run
for that k, as a share of the fall from the start to the single run's F; below 0, the path has found something better.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import zerothresh as zt

GOAL = 1.5  # times one solve of the largest k
SAME = 1e-3  # an excess that nobody would notice


@dataclass(frozen=True)
class Case:
    """A problem, made from a seed, the values of k, and the budget of a single run."""

    make: Callable[[int], Any]
    ks: tuple[int, ...]
    budget: int


def diabetes(seed: int) -> Any:
    """Least squares on scikit-learn's diabetes data, the target in its standard deviations."""
    from sklearn.datasets import load_diabetes

    table = load_diabetes()
    X, y = zt.problems.standardise(table.data), (table.target - table.target.mean()) / table.target.std()
    return zt.problems.Ridge(X, y, lam=0.0)


class Absolute:
    """Absolute losses of a linear model with four true coefficients and heavy-tailed noise."""

    n, d = 60, 12

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.X = rng.standard_normal((self.n, self.d))
        self.y = self.X[:, :4] @ [2.0, -1.5, 1.0, 0.5] + 0.2 * rng.standard_t(2, self.n)

    def values(self, points: Any, components: Any) -> Any:
        return np.abs((self.X[components] * points).sum(axis=1) - self.y[components])


class BlackBox:
    """One value per call: a bent valley between pairs of coordinates, whose minimum has no zeros."""

    n, d = 1, 20

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.goal, self.weight = rng.uniform(0.5, 2.0, self.d), 2.0 ** -rng.permutation(self.d)

    def values(self, points: Any, components: Any) -> Any:
        away = points - self.goal
        return (self.weight * (away**2 + 0.2 * np.roll(away, 1, axis=1) ** 2 * points**2)).sum(axis=1)


CASES = {
    "diabetes": Case(diabetes, tuple(range(1, 11)), 20_000),
    "ridge": Case(lambda seed: zt.problems.ridge(100, 100, 0.1, seed), (1, 2, 5, 10, 20), 40_000),
    "logistic": Case(lambda seed: zt.problems.logistic(100, 20, 3, 0.01, seed), (1, 2, 3, 5, 10), 20_000),
    "absolute": Case(Absolute, (1, 2, 3, 4, 6), 20_000),
    "black-box": Case(BlackBox, (1, 2, 3, 5, 10), 4_000),
}


def compare(case: Case, seed: int) -> dict[str, Any]:
    """The calls of the single runs, of the largest k alone and of the path, and the excess of each k."""
    problem = case.make(seed)
    start = float(np.mean(problem.values(np.zeros((problem.n, problem.d)), np.arange(problem.n))))
    alone = [zt.minimize(problem, None, k, budget=case.budget, seed=seed, progress=False) for k in case.ks]
    single, largest = np.minimum.accumulate([run.fun for run in alone]), alone[-1].nfev
    path = zt.path(problem, None, case.ks, budget=int(GOAL * largest), seed=seed, progress=False)
    excess = (path.fun - single) / (start - single)
    return {
        "single": sum(run.nfev for run in alone),
        "largest": largest,
        "path": path.nfev,
        "excess": excess,
        "certified": alone[-1].status is zt.Status.CONVERGED,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    told = parser.parse_args()
    print(f"| problem | seed | single runs | largest k alone | the path | ratio (goal {GOAL}) | excess for each k |")
    print("|---|---|---|---|---|---|---|")
    for name in told.only:
        for seed in range(told.seeds):
            found = compare(CASES[name], seed)
            each = ", ".join(f"{k}: {value:+.0e}" for k, value in zip(CASES[name].ks, found["excess"], strict=True))
            good = int((found["excess"] <= SAME).sum())
            proof = "" if found["certified"] else " (no proof)"
            calls = f"{found['single']:,} | {found['largest']:,}{proof} | {found['path']:,}"
            ratio = found["path"] / found["largest"]
            said = f"{good} of {len(found['excess'])} within {SAME:g}: {each}"
            print(f"| {name} | {seed} | {calls} | {ratio:.2f} | {said} |", flush=True)


if __name__ == "__main__":
    main()
