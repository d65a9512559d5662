"""How many waves of calls `auto` needs to reach a goal with 50 workers, against its calls one after the other.

    python benchmarks/waves.py --draws 3
    python benchmarks/waves.py --only mixture --profile     rounds by their rows and by the strategy that asked

A round of r rows takes ceil(r / 50) waves on 50 workers, if all calls take equally long. Each draw is solved with
parallel=1, whose time one call after the other is its number of calls, and with parallel=50. The goal is reached when
the incumbent closes all but a part of the gap between the start and the lowest F that is known; a run that never gets
there counts with its whole budget. Seeds of the judging set are those of `goals.py`.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from applications import simulator
from few_coordinates import FUNCTIONS, hidden_hartmann, hide
from goal_problem import FIRST_SEED, Draw, GoalProblem
from objectives import Array

import zerothresh as zt

WIDTH, GAP = 50, 1e-3


def mixture(draw: Draw) -> GoalProblem:
    """The mixture of the README, as a single number F: 3 of 40 substances."""
    rng, wave = draw.rng, np.linspace(0, 1, 200)
    spectra = sum(np.exp(-(((wave - rng.random((40, 1))) / 0.02) ** 2)) for _ in range(4))
    amounts = np.zeros(40)
    amounts[rng.choice(40, 3, replace=False)] = 0.8, 0.5, 0.3
    measured = np.exp(-amounts @ spectra)

    def values(points: Array, _: Any) -> Array:
        return ((np.exp(-points @ spectra) - measured) ** 2).mean(axis=1)

    return of(values, 40, 3, 3000, bounds=(0, None))


def quadratic(draw: Draw) -> GoalProblem:
    """A quadratic of 100 coordinates and condition 100, of which 10 may be non-zero."""
    problem = zt.problems.quadratic(d=100, k_true=10, n=1, condition=100, seed=draw.seed)
    return of(problem.values, 100, 10, 6000, F_star=problem.F(problem.centre))


def logistic(draw: Draw) -> GoalProblem:
    """Logistic regression on 200 examples with 50 features, 5 of which matter; each example is a component."""
    rng, d, n = draw.rng, 50, 200
    A, truth = rng.standard_normal((n, d)), draw.sparse(d, 5, 1.0, 2.0)
    labels = np.where(rng.random(n) < 1 / (1 + np.exp(-A @ truth)), 1.0, -1.0)

    def values(points: Array, components: Any) -> Array:
        scores = labels[components] * np.einsum("bj,bj->b", A[components], points)
        return np.logaddexp(0.0, -scores) + 0.005 * (points**2).sum(axis=1)

    return of(values, d, 5, 60_000, n=n, F_star=sparse_optimum(values, d, n, truth))


def sparse_optimum(values: Callable[[Array, Any], Array], d: int, n: int, truth: Array) -> float:
    """The lowest F on the true support."""
    from scipy.optimize import minimize

    S = np.flatnonzero(truth)

    def on_support(z: Array) -> float:
        x = np.zeros(d)
        x[S] = z
        return float(values(np.broadcast_to(x, (n, d)), np.arange(n)).mean())

    return float(minimize(on_support, truth[S]).fun)


def of(values: Callable[[Array, Any], Array], d: int, k: int, budget: int, **known: Any) -> GoalProblem:
    """Return a problem whose goal is to close all but a thousandth of the gap."""
    n = known.get("n") or 1

    def F(x: Array) -> float:
        return float(values(np.broadcast_to(x, (n, d)), np.arange(n)).mean())

    problem = GoalProblem(values, F, d, k, budget, **({"F_star": 0.0} | known))
    problem.target = problem.F_star + GAP * (problem.F_start - problem.F_star)
    return problem


PROBLEMS: dict[str, Callable[[Draw], GoalProblem]] = {
    "mixture": mixture,
    "quadratic": quadratic,
    "hartmann": lambda draw: hidden_hartmann(draw, 1000),
    "simulator": lambda draw: simulator(draw, 20),
    "logistic": logistic,
    "rosenbrock": lambda draw: hide(draw, FUNCTIONS["rosenbrock"], 1000, False, False, 1500),
}


@dataclass
class Timed:
    """A run until its goal."""

    calls: int
    waves: int
    rounds: int
    reached: bool
    by_stage: Counter[tuple[str, int]]


def timed(problem: GoalProblem, seed: int, width: int, workers: int) -> Timed:
    """Run until the goal is reached, and count."""
    problem.reseed(seed)
    opt = zt.Optimizer(
        problem.start, problem.k, n=problem.n, budget=problem.budget, bounds=problem.bounds, seed=seed, parallel=width
    )
    out = Timed(0, 0, 0, False, Counter())
    before: Array | None = None
    while not opt.done:
        batch = opt.ask()
        stages = opt.session.standing.search.stages
        opt.tell(batch, problem.black_box(batch.points, batch.components))
        out.calls += len(batch)
        out.waves += math.ceil(len(batch) / workers)
        out.rounds += 1
        out.by_stage[stages[-1][1] if stages else "?", len(batch)] += 1
        x = opt.session.standing.theta
        if x is not before and problem.F(x) <= problem.target:
            out.reached = True
            break
        before = x
    return out


def profile(run: Timed) -> None:
    """Print how many rounds each strategy asked for, by their rows."""
    for stage in dict.fromkeys(name for name, _ in run.by_stage):
        rows = sorted((count, rounds) for (name, count), rounds in run.by_stage.items() if name == stage)
        print(f"    {stage}: " + ", ".join(f"{rounds} x {count}" for count, rounds in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--judge", action="store_true", help="problems and seeds of the judging set")
    parser.add_argument("--only", default="", help="a part of the names of problems")
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    first = FIRST_SEED["judge" if given.judge else "dev"] + given.first
    speedups, prices = [], []
    for name, make in PROBLEMS.items():
        if given.only not in name:
            continue
        ratios = []
        for seed in range(first, first + given.draws):
            problem = make(Draw(name, seed, given.judge))
            alone, wide = timed(problem, seed, 1, 1), timed(problem, seed, WIDTH, WIDTH)
            ratios.append((alone.calls / wide.waves, wide.calls / alone.calls))
            missed = "" if alone.reached and wide.reached else f" (reached: {alone.reached}, {wide.reached})"
            print(
                f"  {name} {seed}: {alone.calls} calls; wide {wide.calls} calls, {wide.rounds} rounds, "
                f"{wide.waves} waves: {ratios[-1][0]:.1f} times faster, {ratios[-1][1]:.2f} times the calls{missed}",
                flush=True,
            )
            if given.profile:
                profile(alone)
                profile(wide)
        speed, price = np.exp(np.log(ratios).mean(axis=0))
        print(f"{name}: {speed:.1f} times faster with {price:.2f} times the calls")
        speedups.append(speed)
        prices.append(price)
    print(
        f"geometric mean: {np.exp(np.log(speedups).mean()):.1f} times faster (goal 8), "
        f"{np.exp(np.log(prices).mean()):.2f} times the calls (goal at most 2)"
    )


if __name__ == "__main__":
    main()
