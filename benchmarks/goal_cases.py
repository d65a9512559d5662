"""What `goals.py` measures: each case runs one draw after another, and says whether its goal is met."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from families import make
from few_coordinates import FUNCTIONS, VARIANTS
from goal_problem import GoalProblem, solve

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
    """

    name: str
    goal: str
    one: Callable[[int, Any], Outcome]
    judge: Callable[[Sequence[Outcome]], Verdict]
    draws: int = 10


def _enough(outcomes: Sequence[Outcome], key: str, share: float) -> tuple[str, bool]:
    """How many outcomes hold, and whether these are at least the share that is asked for."""
    good = sum(bool(outcome[key]) for outcome in outcomes)
    return f"{good} of {len(outcomes)}", good >= share * len(outcomes) - 1e-9


def _column(outcomes: Sequence[Outcome], key: str) -> np.ndarray:
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
        calls = _column(outcomes, "calls")
        for outcome in outcomes:
            outcome["met"] = outcome["calls"] <= limit and outcome["end"]
        good, met = _enough(outcomes, "met", share)
        at_end, _ = _enough(outcomes, "end", share)
        wrong = sum(not outcome["end"] and outcome["status"] == "CONVERGED" for outcome in outcomes)
        text = f"{good} (at the end {at_end}), median {np.median(calls):.0f}, most {calls.max():.0f}"
        return text + f", wrongly CONVERGED {wrong}" * bool(wrong), met and float(np.median(calls)) <= median

    return judge


def _solved(name: str, goal: str, limit: float, share: float, median: float = inf, draws: int = 10) -> Case:
    return Case(name, goal, reach(name), within(limit, share, median), draws)


SOLVED = [
    _solved("hartmann-1000", "20 of 20 in 200, median <= 90", 200, 1.0, 90, 20),
    _solved("hartmann-10000", "20 of 20 in 250, median <= 90", 250, 1.0, 90, 20),
    *(_solved(f"{name}-{kind}", "9 of 10 in 300", 300, 0.9) for name in FUNCTIONS for kind in VARIANTS),
    _solved("dense", "1 % in d/2 calls, 9 of 10", inf, 0.9),
    _solved("mixture-200", "10 of 10", inf, 1.0),
    _solved("mixture", "10 of 10", inf, 1.0),
    _solved("correlated", "9 of 10", inf, 0.9),
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
        gap, calls = np.median(_column(outcomes, "gap")), np.median(_column(outcomes, "calls"))
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
    found = _column(outcomes, "found")
    left = np.median(_column(outcomes, "left"))
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


def _lasso(start: str, budget: int, goal: float) -> Case:
    def one(seed: int, method: Any) -> Outcome:
        problem = make(f"lasso-{start}", seed)
        run = solve(problem, seed, method=method, budget=budget, watch=False)
        return {"F": run.F, "nfev": run.nfev, "found": problem.found(run.x), "status": run.status, "ms": run.seconds}

    def judge(outcomes: Sequence[Outcome]) -> Verdict:
        F, nfev = _column(outcomes, "F"), _column(outcomes, "nfev")
        return f"median {np.median(F):.3f}, worst {F.max():.3f}, {nfev.mean():.0f} calls", bool(np.median(F) <= goal)

    return Case(f"lasso-{start}-{budget}", f"<= {goal:g} (median)", one, judge, 3)


def _attack(seed: int, method: Any) -> Outcome:
    problem = make("cifar", seed)
    run = solve(problem, seed, method=method, watch=False)
    assert problem.rate is not None
    return {"rate": problem.rate(run.x), "F": run.F, "nfev": run.nfev}


def _attacked(outcomes: Sequence[Outcome]) -> Verdict:
    rate = _column(outcomes, "rate").mean()
    return f"{rate:.3f}", bool(rate >= 0.8)


APPLICATIONS = [
    _lasso("flat", 1500, 1.05),
    _lasso("middle", 1500, 1.05),
    _lasso("flat", 5000, 0.90),
    _lasso("middle", 5000, 0.90),
    Case("cifar", "success rate >= .80", _attack, _attacked, 20),
    _support("simulator", 0.8, "exact support in 8 of 10"),
    _support("simulator-crn", 0.9, "exact support in 9 of 10"),
]


# --- Trust: offsets, good starts, time ------------------------------------------------------------------------------


def _offsets(seed: int, method: Any) -> Outcome:
    """The same problem with other offsets and another unit of F: calls to the target, and the gap that is left."""
    out: Outcome = {"calls": {}, "gap": {}, "nfev": {}}
    start = make("ridge-300", seed).F_start
    for label, scale, offset in (
        ("F", 1.0, 0.0),
        ("F - 1", 1.0, -1.0),
        ("F - F(x0)", 1.0, -start),
        ("128 F", 128.0, 0.0),
    ):
        problem = make("ridge-300", seed)
        problem.offset += problem.scale * offset
        problem.scale *= scale
        run = solve(problem, seed, method=method, stop=False)
        out["calls"][label], out["gap"][label], out["nfev"][label] = run.calls, problem.gap(run.x), run.nfev
    return out


def _same(outcomes: Sequence[Outcome]) -> Verdict:
    calls = np.array([list(outcome["calls"].values()) for outcome in outcomes])
    nfev = np.array([list(outcome["nfev"].values()) for outcome in outcomes])
    shown = " / ".join(f"{value:.0f}" for value in np.median(calls, axis=0))
    both = np.hstack([nfev / nfev[:, :1], calls / calls[:, :1]])
    same = np.all(np.abs(both - 1) <= 0.01, axis=1)  # rounding may move a decision; NaN where two runs miss the target
    return f"calls {shown}; the same run in {same.sum()} of {len(same)}", bool(same.all() and np.isfinite(calls).all())


def _auc(seed: int, method: Any) -> Outcome:
    out: Outcome = {}
    for start in ("cold", "warm"):
        problem = make(f"auc-{start}", seed)
        run = solve(problem, seed, method=method, watch=False)
        out |= {start: run.F, f"{start}_nfev": run.nfev, f"{start}_start": problem.F_start}
    return out


def _warm(outcomes: Sequence[Outcome]) -> Verdict:
    """A warm start may be behind by the noise of such runs, which is the spread of the cold ones."""
    warm, cold = _column(outcomes, "warm"), _column(outcomes, "cold")
    late = np.median(warm - cold)
    text = f"warm {np.median(warm):.4f}, cold {np.median(cold):.4f}, worst difference {(warm - cold).max():.4f}"
    return text, bool(late <= 1e-4 and np.all(warm <= _column(outcomes, "warm_start")))


def _portfolio(seed: int, method: Any) -> Outcome:
    """How much F still falls along a single coordinate of the support, over what the run has gained."""
    problem = make("portfolio", seed)
    run = solve(problem, seed, method=method, watch=False)
    support, best = np.flatnonzero(run.x), run.F
    for j in support:
        for factor in (0.5, 0.8, 0.9, 0.95, 0.99, 1.01, 1.05, 1.1, 1.25, 2.0):
            x = run.x.copy()
            x[j] *= factor
            best = min(best, problem.F(x))
    gain = max(problem.F_start - run.F, 1e-300)
    return {"more": (run.F - best) / gain, "gain": problem.F_start - run.F, "status": run.status, "nfev": run.nfev}


def _exhausted(outcomes: Sequence[Outcome]) -> Verdict:
    more = _column(outcomes, "more")
    stuck = sum(outcome["more"] > 1e-3 for outcome in outcomes)
    worst = min(more.max(), 1e3)
    return f"still improves: {stuck} of {len(more)}, by at most {worst:.2g} of the gain", stuck == 0


TIMED = 30.0  # seconds for a run whose own time is measured; its budget may be larger than that


def _timed(name: str) -> Callable[[int, Any], Outcome]:
    def one(seed: int, method: Any) -> Outcome:
        problem = make(name, seed)
        run = solve(problem, seed, method=method, watch=False, max_time=TIMED)
        left = run.F / problem.F_start
        return {"ms": 1e3 * run.seconds / max(run.nfev, 1), "left": left, "nfev": run.nfev, "success": run.success}

    return one


def _fast(limit: float) -> Callable[[Sequence[Outcome]], Verdict]:
    def judge(outcomes: Sequence[Outcome]) -> Verdict:
        ms, left = np.median(_column(outcomes, "ms")), _column(outcomes, "left")
        calls = np.median(_column(outcomes, "nfev"))
        text = f"{ms:.2f} ms per call, {calls:.0f} calls, F/F(x0) {np.median(left):.4f}"
        return text, bool(ms < limit and np.all(left < 1))

    return judge


def _late(seed: int, method: Any, allowed: float = 2.0) -> Outcome:
    """By how many seconds runs end after max_time."""
    late = {}
    for name in ("wide-10000", "wide-100000", "logistic-10000", "net-97510"):
        problem = make(name, seed)
        began = time.perf_counter()
        solve(problem, seed, method=method, watch=False, max_time=allowed)
        late[name] = time.perf_counter() - began - allowed
    return {"late": late}


def _in_time(outcomes: Sequence[Outcome]) -> Verdict:
    late = [max(outcome["late"][name] for outcome in outcomes) for name in outcomes[0]["late"]]
    return "late by " + ", ".join(f"{value:.1f} s" for value in late), max(late) <= 1


TRUST = [
    Case("offset", "the same run for F, F - 1, F - F(x0), 128 F", _offsets, _same, 5),
    Case("auc", "warm start not behind cold start", _auc, _warm, 5),
    Case("portfolio", "no coordinate of the support improves F", _portfolio, _exhausted, 5),
    Case("net-97510", "< 20 ms per call, F < F(x0)", _timed("net-97510"), _fast(20), 1),
    Case("wide-10000", "< 1 ms per call, F < F(x0)", _timed("wide-10000"), _fast(1), 1),
    Case("wide-100000", "< 20 ms per call, F < F(x0)", _timed("wide-100000"), _fast(20), 1),
    Case("max-time", "at most 1 s late", _late, _in_time, 1),
]

CASES = (*SOLVED, *BUDGETS, *APPLICATIONS, *TRUST)
