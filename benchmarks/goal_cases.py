"""What `goals.py` measures: each case runs one draw after another, and says whether its goal is met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from families import make
from few_coordinates import FUNCTIONS, VARIANTS
from goal_problem import GoalProblem, solve
from unseen import HIDDEN, REGRESSIONS

Outcome = dict[str, Any]  # what one draw gave, as JSON can keep it
Verdict = tuple[str, bool]  # what all draws together gave, and whether that meets the goal


@dataclass(frozen=True)
class Case:
    """A goal, and how it is measured.

    Attributes
    ----------
    name: what `--only` takes.
    goal: the goal in words.
    one: measures the problem with a seed, solved by a method.
    judge: summarises the outcomes of all draws.
    draws: how many draws the goal speaks of.
    judging: whether it belongs to the judging set alone.
    """

    name: str
    goal: str
    one: Callable[[int, Any], Outcome]
    judge: Callable[[Sequence[Outcome]], Verdict]
    draws: int = 10
    judging: bool = False


def _enough(outcomes: Sequence[Outcome], key: str, share: float) -> tuple[str, bool]:
    """How many outcomes hold, and whether these are at least the share that is asked for."""
    good = sum(bool(outcome[key]) for outcome in outcomes)
    return f"{good} of {len(outcomes)}", good >= share * len(outcomes) - 1e-9


def column(outcomes: Sequence[Outcome], key: str) -> np.ndarray:
    return np.array([outcome[key] for outcome in outcomes], float)


# --- The calls needed to reach a target -----------------------------------------------------------------------------


def reach(name: str) -> Callable[[int, Any], Outcome]:
    """The calls needed to reach the target, and whether the point that is returned has reached it."""

    def one(seed: int, method: Any) -> Outcome:
        problem = make(name, seed)
        run = solve(problem, seed, method=method)
        gap, support = problem.gap(run.x), problem.found(run.x)
        ended = {
            "status": run.status,
            "nfev": run.nfev,
            "gap": gap,
            "found": support,
            "ms": 1e3 * run.seconds / run.nfev,
        }
        return {"calls": run.calls, "end": problem.target >= run.F, **ended}

    return one


def within(limit: float, share: float, median: float = inf) -> Callable[[Sequence[Outcome]], Verdict]:
    """Whether enough draws reach the target within a number of calls, and still have it at the end."""

    def judge(outcomes: Sequence[Outcome]) -> Verdict:
        calls = column(outcomes, "calls")
        for outcome in outcomes:
            outcome["met"] = outcome["calls"] <= limit and outcome["end"]
        good, met = _enough(outcomes, "met", share)
        at_end, _ = _enough(outcomes, "end", share)
        wrong = sum(not outcome["end"] and outcome["status"] == "CONVERGED" for outcome in outcomes)
        text = f"{good} (at the end {at_end}), median {np.median(calls):.0f}, most {calls.max():.0f}"
        return text + f", wrongly CONVERGED {wrong}" * bool(wrong), met and float(np.median(calls)) <= median

    return judge


def _solved(
    name: str, goal: str, limit: float, share: float, median: float = inf, draws: int = 10, judging: bool = False
) -> Case:
    return Case(name, goal, reach(name), within(limit, share, median), draws, judging)


SOLVED = [
    _solved("hartmann-1000", "20 of 20 in 200, median <= 90", 200, 1.0, 90, 20),
    _solved("hartmann-10000", "20 of 20 in 250, median <= 90", 250, 1.0, 90, 20),
    *(_solved(f"{name}-{kind}", "9 of 10 in 300", 300, 0.9) for name in FUNCTIONS for kind in VARIANTS),
    _solved("dense", "1 % in d/2 calls, 9 of 10", inf, 0.9),
    _solved("mixture-200", "10 of 10", inf, 1.0),
    _solved("mixture", "10 of 10", inf, 1.0),
    _solved("correlated", "9 of 10", inf, 0.9),
    _solved("growing-noise", "95 % of the gap in 5 d + 600 calls, 9 of 10", inf, 0.9),
]
UNSEEN = [
    *(_solved(f"{name}-{kind}", "9 of 10 in 300", 300, 0.9, judging=True) for name in HIDDEN for kind in VARIANTS),
    *(_solved(name, "9 of 10", inf, 0.9, judging=True) for name in REGRESSIONS),
]


# --- Exact supports under noise -------------------------------------------------------------------------------------


def _support(name: str, share: float, goal: str) -> Case:
    def one(seed: int, method: Any) -> Outcome:
        problem = make(name, seed)
        run = solve(problem, seed, method=method)
        exact = problem.truth is not None and np.array_equal(np.flatnonzero(run.x), problem.truth)
        return {"exact": bool(exact), "calls": run.calls, "gap": problem.gap(run.x), "better": problem.F_start > run.F}

    def judge(outcomes: Sequence[Outcome]) -> Verdict:
        good, met = _enough(outcomes, "exact", share)
        gap, calls = np.median(column(outcomes, "gap")), np.median(column(outcomes, "calls"))
        return f"{good}, gap left {gap:.2g} (median), 1 % after {calls:.0f}", met

    return Case(name, goal, one, judge)


# --- F at several budgets -------------------------------------------------------------------------------------------


def budgets(name: str, sizes: Callable[[GoalProblem], Sequence[int]]) -> Callable[[int, Any], Outcome]:
    """F of the point returned for several budgets, in units of F at the start."""

    def one(seed: int, method: Any) -> Outcome:
        out: Outcome = {"left": {}, "ms": {}, "success": {}}
        for budget in sizes(make(name, seed)):
            problem = make(name, seed)
            run = solve(problem, seed, method=method, budget=budget, watch=False)
            out["left"][budget] = run.F / problem.F_start
            out["ms"][budget] = 1e3 * run.seconds / max(run.nfev, 1)
            out["success"][budget] = run.success
        return out

    return one


def _falling(first: int) -> Callable[[Sequence[Outcome]], Verdict]:
    """Whether all draws are better than the start from the budget number ``first`` on, and more calls do not harm."""

    def judge(outcomes: Sequence[Outcome]) -> Verdict:
        rows = np.array([list(outcome["left"].values()) for outcome in outcomes])
        falling = bool(np.all(np.diff(rows, axis=1) <= 1e-9))
        shown = " ".join(f"{value:.4f}" for value in np.median(rows, axis=0))
        return f"F/F(x0) {shown}, worst {rows.max():.4f}", falling and bool(np.all(rows[:, first:] < 1))

    return judge


def _no_cliff(outcomes: Sequence[Outcome]) -> Verdict:
    rows = np.array([list(outcome["left"].values()) for outcome in outcomes])
    better = (rows < 1).mean(axis=0)
    shown = " ".join(f"{value:.2f}" for value in np.median(rows, axis=0))
    return f"better: {' '.join(f'{share:.0%}' for share in better)}; F/F(x0) {shown}", bool(np.all(better >= 0.9))


def _components(kind: str) -> Case:
    name = f"components-150-{kind}"
    sizes = budgets(name, lambda problem: [round(part * (problem.n or 1)) for part in (1.1, 1.5, 2, 4)])
    return Case(name, "1.1n, 1.5n, 2n, 4n calls: 90 % below F(x0)", sizes, _no_cliff)


def _wide_truth(seed: int, method: Any) -> Outcome:
    problem = make("logistic-10000", seed)
    run = solve(problem, seed, method=method, watch=False)
    return {"found": problem.found(run.x) / problem.k, "left": run.F / problem.F_start, "seconds": run.seconds}


def _wide_found(outcomes: Sequence[Outcome]) -> Verdict:
    found = column(outcomes, "found")
    left = np.median(column(outcomes, "left"))
    return f"{np.median(found):.0%} found (least {found.min():.0%}), F/F(x0) {left:.3f}", bool(np.median(found) >= 0.8)


BUDGETS = [
    Case(
        "logistic-10000",
        "600, 2k, 20k, 100k: F < F(x0) from 2k on, falling",
        budgets("logistic-10000", lambda problem: (round(1.2 * (problem.n or 1)), 2000, 20_000, 100_000)),
        _falling(1),
        3,
    ),
    Case("logistic-400k", "80 % of the true coordinates", _wide_truth, _wide_found, 3),
    _components("squares"),
    _components("logistic"),
]


# --- LassoBench, images -----------------------------------------------------------------------------------------------


def _lasso(start: str, budget: int, goal: float, kind: str = "") -> Case:
    def one(seed: int, method: Any) -> Outcome:
        problem = make(f"lasso-{start}{kind}", seed)
        run = solve(problem, seed, method=method, budget=budget, watch=False)
        return {"F": run.F, "nfev": run.nfev, "found": problem.found(run.x), "status": run.status, "ms": run.seconds}

    def judge(outcomes: Sequence[Outcome]) -> Verdict:
        F, nfev = column(outcomes, "F"), column(outcomes, "nfev")
        return f"median {np.median(F):.3f}, worst {F.max():.3f}, {nfev.mean():.0f} calls", bool(np.median(F) <= goal)

    return Case(f"lasso-{start}-{budget}{kind}", f"<= {goal:g} (median)", one, judge, 3)


def _attack(seed: int, method: Any) -> Outcome:
    problem = make("cifar", seed)
    run = solve(problem, seed, method=method, watch=False)
    assert problem.rate is not None
    return {"rate": problem.rate(run.x), "F": run.F, "nfev": run.nfev}


def _attacked(outcomes: Sequence[Outcome]) -> Verdict:
    rate = column(outcomes, "rate").mean()
    return f"{rate:.3f}", bool(rate >= 0.8)


APPLICATIONS = [
    *(_lasso(start, 1500, 1.05) for start in ("flat", "middle")),
    *(_lasso(start, 5000, 0.90, kind) for start in ("flat", "middle") for kind in ("", "-k60")),
    Case("cifar", "success rate >= .80", _attack, _attacked, 20),
    _support("simulator", 0.8, "exact support in 8 of 10"),
    _support("simulator-crn", 0.9, "exact support in 9 of 10"),
]


CASES = (*SOLVED, *UNSEEN, *BUDGETS, *APPLICATIONS)
