"""Measure how noisy a step is: E||g - grad F||^2 near the anchor, for each way of sharing directions.

    python benchmarks/variance.py [draws]

The problem is the paper's ridge problem with n = 10, d = 100 and q = 10, at a random sparse anchor, with theta one
small step away. Each row is the mean over draws of the error of the step direction g that the method itself takes, with
its standard error. With k = d, H_k is the identity and g can be read off the step.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

import zerothresh as zt
from zerothresh.rounds.advance import Standing, advance, start
from zerothresh.rounds.search import Stepwise
from zerothresh.rounds.task import Task

N, D, Q, MU = 10, 100, 10, 1e-4


def after_round(task: Task, standing: Standing, problem: Any) -> Standing:
    """Return where a run stands after one more round."""
    plan = task.plan(standing.search.request, standing.round)
    return advance(task, standing, plan, problem.values(plan.points(), plan.components))


def errors(method: Any, estimator: zt.Estimator, draws: int) -> np.ndarray:
    """Return ||g - grad F(theta)||^2 of the step after the anchor, an array with one entry per seed."""
    problem = zt.problems.ridge(n=N, d=D, seed=0)
    rng = np.random.default_rng(1)
    anchor = np.zeros(D)
    anchor[rng.choice(D, 10, replace=False)] = rng.standard_normal(10)
    theta = anchor - 1e-3 * problem.gradient(anchor)
    out = np.empty(draws)
    for seed in range(draws):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library warns that k = d thresholds nothing, which is intended here
            task = zt.Optimizer(anchor, D, n=N, budget=10**9, method=method, estimator=estimator, seed=seed).task
        standing = start(task)
        if hasattr(standing.search.state, "anchor"):  # VR-SZHT begins with a round at the anchor
            standing = after_round(task, standing, problem)
        moved = Stepwise(task, replace(standing.search.state, theta=theta), standing.round)
        after = after_round(task, standing._replace(search=moved), problem)
        g = (theta - after.theta) / method.eta
        out[seed] = ((g - problem.gradient(theta)) ** 2).sum()
    return out


def table(draws: int) -> dict[str, tuple[float, float]]:
    """Return mean and standard error by name."""
    rows = {}
    for family in ("sphere", "orthogonal"):
        plain = zt.Estimator(q=Q, mu=MU, directions=family, common=False)
        one_block = replace(plain, common=True)
        for name, method, estimator in [
            ("SZOHT", zt.SZOHT(eta=1.0), plain),
            ("VR, independent", zt.VRSZHT(eta=1.0), replace(plain, shared=False)),
            ("VR, shared", zt.VRSZHT(eta=1.0), plain),
            ("VR, shared, one block per round", zt.VRSZHT(eta=1.0), one_block),
            ("FGZOHT", zt.FGZOHT(eta=1.0), plain),
            ("FGZOHT, one block per round", zt.FGZOHT(eta=1.0), one_block),
        ]:
            found = errors(method, estimator, draws)
            rows[f"{family}: {name}"] = (float(found.mean()), float(found.std(ddof=1) / np.sqrt(draws)))
    exact = zt.Estimator(q=D, mu=MU, directions="orthogonal")
    found = errors(zt.VRSZHT(eta=1.0), exact, max(20, draws // 50))
    rows[f"orthogonal, q = d = {D}: VR, shared"] = (float(found.mean()), float(found.std(ddof=1) / np.sqrt(len(found))))
    return rows


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rows = table(draws)
    plain = rows["sphere: SZOHT"][0]
    print(f"E||g - grad F||^2 near the anchor; n = {N}, d = {D}, q = {Q}, {draws} draws")
    print(f"{'':44s} {'mean':>10s} {'+-':>8s} {'SZOHT/this':>11s}")
    for name, (mean, error) in rows.items():
        print(f"{name:44s} {mean:10.4g} {error:8.2g} {plain / mean:11.4g}")
    print(f"ratio SZOHT / VR shared (sphere): {plain / rows['sphere: VR, shared'][0]:.2f} (should be at least 5)")
    print(
        f"ratio VR independent / SZOHT (sphere): {rows['sphere: VR, independent'][0] / plain:.2f} (should be above 1)"
    )


if __name__ == "__main__":
    main()
