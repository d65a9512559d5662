"""Whether `auto` can be trusted: offsets and units of F, good starts, own time, and time limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from families import make
from goal_cases import Case, Outcome, Verdict, column
from goal_problem import solve


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
    known = np.where(np.isfinite(calls), calls, -1.0)  # -1 where the target was missed
    both = np.hstack([nfev / nfev[:, :1], known / known[:, :1]])
    same = np.all(np.abs(both - 1) <= 0.01, axis=1)  # rounding may move a decision
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
    warm, cold = column(outcomes, "warm"), column(outcomes, "cold")
    late = np.median(warm - cold)
    text = f"warm {np.median(warm):.4f}, cold {np.median(cold):.4f}, worst difference {(warm - cold).max():.4f}"
    return text, bool(late <= 1e-4 and np.all(warm <= column(outcomes, "warm_start")))


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
    more = column(outcomes, "more")
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
        ms, left = np.median(column(outcomes, "ms")), column(outcomes, "left")
        calls = np.median(column(outcomes, "nfev"))
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
