"""The time that `auto` needs to reach a goal with 50 workers, against one call after the other; `scaling.py` prints it.

Time is counted in calls that take equally long: a round of r calls takes ceil(r / 50) of them on 50 workers. The serial
run has parallel=1, and the wide run parallel=50; everything else is the same. Both have twice the budget of the
problem, because wide rounds may cost more calls, and the budget alone must not decide.

The six problems have nothing in common but their sparsity. In the development set their parameters are as usual; in the
judging set the parameters, the unit and the offset of F are random (`goal_problem.py`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import ceil, exp, inf, log, nan

import numpy as np
from families import make
from goal_problem import Draw, GoalProblem, family
from objectives import Array, Indices, Linear, Logistic

import zerothresh as zt

WORKERS = 50
FASTER, DEARER = 8.0, 2.0  # the goals: so many times faster, with at most so many times the calls
SIX = {
    "mixture": "the README's mixture, as F",
    "bowl-100": "a quadratic, d = 100",
    "hartmann-1000": "Hartmann's function in d = 1,000",
    "simulator-crn": "a noisy simulator, 20 seeds",
    "classes-200": "logistic regression, n = 200",
    "rosenbrock-plain": "Rosenbrock's function in d = 1,000",
}


@family("bowl-100")
def bowl(draw: Draw) -> GoalProblem:
    """An ill-conditioned quadratic of 100 coordinates, of which 10 may be non-zero; given as F."""
    k = draw.whole(10, 6, 12)
    made = zt.problems.quadratic(d=100, k_true=k, n=1, condition=draw.scale(100.0, 30.0, 300.0), seed=draw.seed)

    def F(x: Array) -> float:
        return float(made.values(x[None], np.zeros(1, np.int64))[0])

    return GoalProblem(made.values, F, 100, k, 6000, F_star=F(made.centre))


@family("classes-200")
def classes(draw: Draw) -> GoalProblem:
    """Logistic regression with 200 components in 50 coordinates, of which 5 matter."""
    from scipy.optimize import minimize

    n, d, k = draw.whole(200, 150, 250), draw.whole(50, 40, 60), draw.whole(5, 3, 6)
    X, truth = draw.rng.standard_normal((n, d)), draw.sparse(d, k, 1.0, 2.0)
    y = np.where(draw.rng.random(n) < 1 / (1 + np.exp(-X @ truth)), 1.0, -1.0)
    loss, support = Linear(X, y, Logistic(), 0.01), np.flatnonzero(truth)

    def on_support(z: Array) -> float:
        x = np.zeros(d)
        x[support] = z
        return loss.F(x)

    best = float(minimize(on_support, truth[support]).fun)
    return GoalProblem(loss.values, loss.F, d, k, 60_000, n=n, F_star=best, truth=support)


@dataclass
class Reached:
    """What it took to reach the goal; a run that does not reach it has spent its budget in vain."""

    calls: int
    waves: int
    goal: bool


def reach(name: str, seed: int, width: int) -> Reached:
    """Run `auto` with rounds for ``width`` workers until its iterate is as good as the goal."""
    problem = make(name, seed)
    start = problem.d if problem.x0 is None else problem.x0
    calls = waves = 0
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        opt = zt.Optimizer(
            start,
            problem.k,
            n=problem.n,
            budget=2 * problem.budget,
            bounds=problem.bounds,
            seed=seed,
            parallel=width,
        )
        seen: Array | None = None
        while not opt.done:
            batch = opt.ask()
            components: Indices | None = None if problem.n is None else batch.components
            opt.tell(batch, problem.black_box(batch.points, components))
            calls, waves = calls + len(batch), waves + ceil(len(batch) / width)
            x = opt.progress().x
            if x is not seen and problem.F(x) <= problem.target:
                return Reached(calls, waves, True)
            seen = x
    return Reached(calls, waves, False)


def per_goal(runs: list[Reached], of: str) -> float:
    """Return the calls (or waves) of all runs for each goal that was reached."""
    goals = sum(run.goal for run in runs)
    return sum(getattr(run, of) for run in runs) / goals if goals else inf


def measure(seeds: range, only: str = "") -> tuple[float, float]:
    """Print the table of the six problems, and return the geometric means: times faster, times the calls."""
    print(f"{'time to goal':36s} {'serial':>8s} {'wide':>8s} {'waves':>8s}  faster  calls   reached")
    ratios = []
    for name, title in SIX.items():
        if only not in name:
            continue
        serial, wide = ([reach(name, seed, width) for seed in seeds] for width in (1, WORKERS))
        alone, calls, waves = per_goal(serial, "calls"), per_goal(wide, "calls"), per_goal(wide, "waves")
        faster, dearer = (alone / waves, calls / alone) if alone < inf and waves < inf else (nan, nan)
        ratios.append((faster, dearer))
        both = f"{sum(run.goal for run in serial)} and {sum(run.goal for run in wide)} of {len(seeds)}"
        print(f"{title:36s} {alone:8.0f} {calls:8.0f} {waves:8.1f} {faster:6.1f}x {dearer:5.2f}x   {both}", flush=True)
    mean = [exp(sum(log(ratio) for ratio in column) / len(column)) for column in zip(*ratios, strict=True)]
    good = mean[0] >= FASTER and mean[1] <= DEARER
    print(
        f"geometric mean: {mean[0]:.1f} times faster (goal: {FASTER:g}) with {mean[1]:.2f} times the calls (goal: at "
        f"most {DEARER:g}): {'met' if good else 'NOT met'}"
    )
    return mean[0], mean[1]
