"""Mixtures of at most 5 of 10 ingredients, each judged by one measurement: `auto`, random mixtures and BayBE.

    python benchmarks/practice_mixture.py auto random --json report/practice-mixture.json
    python benchmarks/practice_mixture.py baybe --splits 5 --calls 30 --json report/practice-baybe.json

BayBE brings PyTorch and asks for newer releases of other packages than this library needs, so that the second command
is meant for an environment of its own; of zerothresh it imports nothing. Each split is another plant with other
ingredients. The lowest F of each is found by SciPy's SLSQP on every support of 5, which sees slopes.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

D, K = 10, 5
FIRST = 10  # random mixtures with which BayBE begins
INTERACTING = 0.5  # share of the pairs
STRONG = 3.0  # standard deviation of their effect, in units of the largest effect of a single ingredient
EXACT = 1e-3  # how far the shares of a mixture may sum to something else than 1


class Plant:
    """The negative strength of a mixture: effects of ingredients and of pairs, which level off."""

    def __init__(self, split: int) -> None:
        rng = np.random.default_rng(900 + split)
        self.single = rng.uniform(0, 1, D)
        pairs = np.triu(rng.normal(0, STRONG, (D, D)) * (rng.uniform(size=(D, D)) < INTERACTING), 1)
        self.pairs = pairs + pairs.T
        self.seen: list[float] = []

    def strength(self, x: np.ndarray) -> float:
        """Return the strength before it levels off."""
        return float(self.single @ x + 0.5 * x @ self.pairs @ x)

    def __call__(self, x: np.ndarray) -> float:
        value = -float(np.tanh(0.5 * self.strength(x)))
        self.seen.append(value)
        return value

    def lowest(self) -> float:
        """Return the lowest F of all mixtures of at most K ingredients."""
        from scipy.optimize import minimize

        best = 0.0
        for support in combinations(range(D), K):
            S = list(support)
            b, B = self.single[S], self.pairs[np.ix_(S, S)]
            for start in [np.full(K, 1 / K), *(0.6 * np.eye(K) + 0.4 / K)]:
                found = minimize(
                    lambda x, b=b, B=B: -(b @ x + 0.5 * x @ B @ x),
                    start,
                    jac=lambda x, b=b, B=B: -(b + B @ x),
                    bounds=[(0, 1)] * K,
                    constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones_like(x)},
                    method="SLSQP",
                )
                best = min(best, float(found.fun))
        return -float(np.tanh(-0.5 * best))


def mix_auto(plant: Plant, split: int, calls: int) -> None:
    import zerothresh as zt

    zt.minimize(plant, D, K, budget=calls, constraint=zt.Simplex(1.0), strict=True, seed=split, progress=False)


def mix_random(plant: Plant, split: int, calls: int) -> None:
    rng = np.random.default_rng(split)
    for _ in range(calls):
        x = np.zeros(D)
        x[rng.choice(D, K, replace=False)] = rng.dirichlet(np.ones(K))
        plant(x)


def mix_baybe(plant: Plant, split: int, calls: int) -> None:
    import pandas as pd
    from baybe import Campaign
    from baybe.constraints import ContinuousCardinalityConstraint, ContinuousLinearConstraint
    from baybe.parameters import NumericalContinuousParameter
    from baybe.recommenders import BotorchRecommender, RandomRecommender, TwoPhaseMetaRecommender
    from baybe.searchspace import SearchSpace
    from baybe.settings import Settings
    from baybe.targets import NumericalTarget

    Settings(random_seed=split).activate()
    names = [f"x{j}" for j in range(D)]
    space = SearchSpace.from_product(
        [NumericalContinuousParameter(name, bounds=(0, 1)) for name in names],
        [
            ContinuousLinearConstraint(parameters=names, operator="=", coefficients=[1.0] * D, rhs=1.0),
            ContinuousCardinalityConstraint(parameters=names, max_cardinality=K),
        ],
    )
    recommender = TwoPhaseMetaRecommender(
        initial_recommender=RandomRecommender(), recommender=BotorchRecommender(), switch_after=FIRST
    )
    campaign = Campaign(space, NumericalTarget("F", minimize=True), recommender)
    while len(plant.seen) < calls:
        points: Any = campaign.recommend(batch_size=FIRST if not plant.seen else 1)
        values = []
        for x in points[names].to_numpy():
            if (x != 0).sum() > K or abs(x.sum() - 1) > EXACT:
                raise RuntimeError(f"the mixture {x} is not allowed")
            values.append(plant(x))
        campaign.add_measurements(pd.concat([points, pd.Series(values, index=points.index, name="F")], axis=1))


SOLVERS = {"auto": mix_auto, "random": mix_random, "baybe": mix_baybe}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("solvers", nargs="+", choices=SOLVERS)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--json", type=Path)
    told = parser.parse_args()
    rows = json.loads(told.json.read_text()) if told.json and told.json.exists() else []
    for split in range(told.splits):
        lowest = Plant(split).lowest()
        for name in told.solvers:
            plant, begun = Plant(split), time.perf_counter()
            SOLVERS[name](plant, split, told.calls)
            seen = np.minimum.accumulate(plant.seen)
            # what is lost, as a share of the lowest F, after each call
            rows.append({
                "example": "mixture", "split": split, "method": name, "budget": told.calls, "calls": len(plant.seen),
                "curve": [round(float(v), 5) for v in 1 - seen / lowest], "seconds": time.perf_counter() - begun,
            })  # fmt: skip
            print(
                split,
                name,
                f"{rows[-1]['curve'][-1]:.4f} of the best is missing",
                f"{rows[-1]['seconds']:.0f} s",
                flush=True,
            )
            if told.json:
                told.json.parent.mkdir(parents=True, exist_ok=True)
                told.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
