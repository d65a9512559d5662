"""Search for the best settings of the paper's methods: eta and q, and mu if there is noise, in their favour.

Learning rates and mu are in units that no user knows: 1/L, where L is the largest curvature of the exact F of the very
instance, and the size of its optimum. The search for a method on a problem has three stages:

1. Try every q and mu with a ladder of learning rates, on two seeds and an eighth of the budget. A ladder grows if the
   best learning rate is at one of its ends.
2. Run the best few settings for each tolerance again, with the whole budget and more seeds, and also with a smaller and
   a larger learning rate.
3. Run the best two settings for each tolerance with all seeds and the whole budget. The better expected running time is
   that of the method.

A run stops when it cannot win any more: when it diverges, or when it reaches 1.5 times the best expected running time
of any method at the last tolerance. A setting that falls behind the best in stage 2, or certainly will in stage 3,
keeps the number that it has then, and is marked as not whole; SZOHT's settings are always whole.

The variants of SAGA start from the settings that were good for SAGA. With n = 1, all methods except FGZOHT only try
settings that were good for FGZOHT, because most of the methods are then the same.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from math import inf, log
from pathlib import Path
from typing import Any

import numpy as np
from objectives import Auc, Linear, Minibatch
from optima import CACHE, keep, mark
from suite import Instance, full_name, make
from tracker import TOLERANCES, Hits, ert, run

import zerothresh as zt

SEEDS = 8
METHODS = ("fgzoht", "szoht", "saga-szht", "sarah-szht", "vr-szht", "lsvrg-szht", "p-saga-szht", "pm-szht")
SAGAS = METHODS[-3:]  # their search starts from SAGA's best settings
GOALS = range(len(TOLERANCES))


@dataclass(frozen=True)
class Setting:
    """Hyper-parameters in units of the instance: eta = step (q/d) / L, mu = radius |x*|."""

    q: int
    step: float
    radius: float

    def eta(self, problem: Instance) -> float:
        """Return the learning rate for an instance."""
        return self.step * self.q / problem.d / curvature(problem)

    def trial(self, problem: Instance, method: str) -> dict[str, Any]:
        """Return the arguments for the optimiser."""
        mu = self.radius * max(float(np.abs(problem.x_star).max()), 1e-3)
        chosen = {"eta": self.eta(problem), **_extra(method, problem.n)}
        return {"method": method, "options": chosen, "estimator": zt.Estimator(q=self.q, mu=mu)}


def _extra(method: str, n: int) -> dict[str, Any]:
    """Return the hyper-parameters that the paper fixes: m = n for its small problem and n/2 for others."""
    if method in ("vr-szht", "sarah-szht"):
        return {"m": 10 if n <= 10 else n // 2}
    if method == "pm-szht":
        return {"law": zt.methods.FixedSize(max(1, n // 3))}
    return {"p": 2} if method == "p-saga-szht" else {}


_curvatures: dict[str, float] = {}


def curvature(problem: Instance) -> float:
    """Return the largest curvature of F at the start and at the optimum."""
    name = f"{problem.name}-{mark(problem.objective)}"
    if name not in _curvatures:
        _curvatures[name] = max(_largest(problem.objective, x) for x in (problem.x0, problem.x_star))
    return _curvatures[name]


def _largest(objective: Any, x: np.ndarray) -> float:
    objective = objective.whole if isinstance(objective, Minibatch) else objective
    if isinstance(objective, Auc):  # piecewise constant: it has no curvature
        return 1.0
    if hasattr(getattr(objective, "loss", None), "delta"):
        objective = Linear(objective.X, objective.y, type(objective.loss)(), objective.lam)
        objective.loss.delta = 0.5
    if hasattr(objective, "local"):
        H = objective.local(x)[1]
    else:
        h, unit = 0.05, np.eye(objective.d)
        slopes = [[objective.F(x + h * u + h * v) - objective.F(x + h * u - h * v) for v in unit] for u in unit]
        back = [[objective.F(x - h * u + h * v) - objective.F(x - h * u - h * v) for v in unit] for u in unit]
        H = (np.array(slopes) - np.array(back)) / (4 * h * h)
    return max(float(np.abs(np.linalg.eigvalsh(H)).max()), 1e-6)


@dataclass
class Tried:
    """A setting with the runs that tried it."""

    setting: Setting
    runs: list[Hits]

    def rank(self, place: int) -> tuple[float, float]:
        """Return the sort key: the expected running time, then the mean logarithm of the smallest gaps."""
        return ert(self.runs, place), sum(log(max(h.gap, 1e-12)) for h in self.runs) / len(self.runs)


class Race:
    """The search for a method's best settings on a problem.

    ``bars`` are the best expected running times so far of any method, one per tolerance.
    """

    def __init__(
        self, name: str, method: str, bars: list[float], hits: list[float], hints: list[Setting], seeds: int
    ) -> None:
        self.name, self.method, self.bars, self.hints, self.seeds = name, method, list(bars), hints, seeds
        self.problem = make(name, 0)
        self.own = [inf] * len(TOLERANCES)
        self.made = 0
        self.hits = list(hits)  # calls that the best settings needed to reach each tolerance

    def ladder(self) -> list[Setting]:
        """Return the settings that the search starts with."""
        p = self.problem
        if p.n == 1 and self.method != "fgzoht":
            steps = (1.0,) if self.method not in ("vr-szht", "sarah-szht") else (1 / 3, 1.0)
            return [replace(hint, step=hint.step * step) for hint in self.hints for step in steps]
        if self.hints and self.method in SAGAS:
            return [replace(hint, step=hint.step * step) for hint in self.hints for step in (1 / 3, 1.0, 3.0)]
        sizes = sorted({q for q in (1, 5 if p.k > 6 else p.k + 1, p.k + 1, p.d) if q <= p.d})
        radii: tuple[float, ...] = (1e-6,)
        if p.noisy:
            sizes, radii = sorted({1, min(p.k + 1, p.d), p.d}), (1e-2, 1e-1, 1.0)
        elif p.name in ("absolute", "hinge"):
            radii = (1e-6, 3e-2)
        elif p.name in ("auc", "attack"):
            radii = (1e-2, 1e-1, 1.0)
        steps = (1 / 3, 1.0, 3.0) if p.n == 1 or self.method == "fgzoht" else (1 / 27, 1 / 9, 1 / 3, 1.0)
        return [Setting(q, step, radius) for q in sizes for radius in radii for step in steps]

    def trial(self, setting: Setting, seed: int, **limits: Any) -> Hits:
        """Make one run of a setting."""
        problem = make(self.name, seed)
        self.made += 1
        return run(problem, seed=seed, **setting.trial(problem, self.method), **limits)

    def cap(self, share: float, times: float) -> float:
        """Return the calls after which a run is cut: a share of the budget, or less if the best runs succeed early."""
        late = max(self.hits) if max(self.hits) < inf else max([h for h in self.hits if h < inf], default=inf) * 4
        return min(share * self.problem.budget, times * late, 1.5 * max(self.bars))

    def learn(self, tried: Tried, place: int) -> None:
        """Record after how many calls the successful runs of a setting reached a tolerance."""
        calls = sorted(h.either[place] for h in tried.runs if h.either[place] < inf)
        if calls:
            self.hits[place] = min(self.hits[place], calls[len(calls) // 2])

    def best(self, tried: dict[Setting, Tried], count: int) -> dict[Setting, list[int]]:
        """Return the best few settings for each tolerance, with the tolerances that they are good for."""
        chosen: dict[Setting, list[int]] = {}
        for place in GOALS:
            for one in self._ranked(tried, place)[:count]:
                chosen.setdefault(one.setting, []).append(place)
        return chosen

    def first(self) -> dict[Setting, Tried]:
        """Run stage 1: ladders of learning rates, which grow at their ends."""
        known: dict[Setting, Tried] = {}
        waiting, grown = self.ladder(), 0
        while waiting:
            for setting in waiting:
                if setting not in known:
                    runs = [self.trial(setting, 0, cap=self.cap(1 / 8, 4), stall=5)]
                    if runs[0].ended != "diverged":
                        runs.append(self.trial(setting, 1, cap=self.cap(1 / 8, 4), stall=5))
                    known[setting] = Tried(setting, runs)
                    for place in GOALS:
                        self.learn(known[setting], place)
            waiting = []
            for q, radius in {(s.q, s.radius) for s in known}:
                line = sorted((s for s in known if (s.q, s.radius) == (q, radius)), key=lambda s: s.step)
                for place in GOALS:
                    top = min(line, key=lambda s: known[s].rank(place))
                    waiting += [replace(top, step=top.step / 3)] if top is line[0] else []
                    waiting += [replace(top, step=top.step * 3)] if top is line[-1] else []
            grown += 1
            if grown > 3 or (self.problem.n == 1 and self.method != "fgzoht"):
                break
            waiting = sorted(set(waiting), key=lambda s: (s.q, s.radius, s.step))
        return known

    def search(self) -> dict[str, Any]:
        """Run all three stages and return the record for the cache."""
        start = time.perf_counter()
        second: dict[Setting, Tried] = {}
        for setting, goals in self.best(self.first(), 3).items():
            self._again(second, setting, goals)
        for setting, goals in self.best(second, 1).items():
            for factor in (0.58, 1.73):
                self._again(second, replace(setting, step=setting.step * factor), goals)
        final = [self.final(one, place) for place in GOALS for one in self._ranked(second, place)[:2]]
        return {
            "problem": self.name,
            "method": self.method,
            "seeds": self.seeds,
            "budget": self.problem.budget,
            "runs": self.made,
            "seconds": time.perf_counter() - start,
            "final": final,
        }

    @staticmethod
    def _ranked(tried: dict[Setting, Tried], place: int) -> list[Tried]:
        return sorted(tried.values(), key=lambda one: one.rank(place))

    def final(self, one: Tried, place: int) -> dict[str, Any]:
        """Run a setting with all seeds at one tolerance, unless it is or becomes clear that it cannot win."""
        value, runs = ert(one.runs, place), one.runs
        limit = 1.5 * (self.own[place] if self.method == "szoht" else min(self.bars[place], self.own[place]))
        whole = value < inf and value <= 1.5 * limit
        if whole:
            runs, spent, misses = [], 0.0, 0
            for seed in range(self.seeds):
                runs.append(self.trial(one.setting, seed, goals=(place,), cap=limit * (self.seeds - misses) - spent))
                spent += min(runs[-1].either[place], self.problem.budget)
                misses += runs[-1].either[place] == inf
                if spent > limit * (self.seeds - misses):  # even if all remaining seeds succeeded at no cost
                    whole = False
                    break
            value = ert(runs, place)
            if whole:
                self.own[place] = min(self.own[place], value)
        return {
            "tolerance": TOLERANCES[place],
            "ert": value,
            "setting": asdict(one.setting),
            "eta": one.setting.eta(self.problem),
            "whole": whole,
            "calls": [h.either[place] for h in runs],
            "gap": max(h.gap for h in runs),
        }

    def _again(self, second: dict[Setting, Tried], setting: Setting, goals: list[int]) -> None:
        if setting not in second:
            runs: list[Hits] = []
            for seed in range(min(4, self.seeds)):
                runs.append(self.trial(setting, seed, goals=goals, cap=self.cap(1.0, 10), stall=8))
                if runs[-1].ended == "diverged" and runs[-1].gap > 0.5:
                    break
            second[setting] = Tried(setting, runs)
            for place in goals:
                self.learn(second[setting], place)


def path_of(name: str, method: str) -> Path:
    """Return the cache file of a method's best settings on a problem."""
    return CACHE / "paper" / full_name(name) / f"{method}.json"


def baseline(name: str, seeds: int = SEEDS, *, again: bool = False, report: Any = print) -> dict[str, dict[str, Any]]:
    """Return the best settings of each of the paper's methods on a problem, from the cache or searched for now."""
    bars, hits, hints, results = [inf] * len(TOLERANCES), [inf] * len(TOLERANCES), [], {}
    for method in METHODS:
        path = path_of(name, method)
        kept = json.loads(path.read_text()) if path.exists() and not again else None
        if kept is None or kept["seeds"] < seeds:
            kept = Race(name, method, bars, hits, hints, seeds).search()
            keep(path, kept)
            report(f"{name:22s} {method:12s} {kept['seconds']:6.1f} s {kept['runs']:4d} runs  " + _brief(kept))
        results[method] = kept
        for place, tolerance in enumerate(TOLERANCES):
            for one in kept["final"]:
                if one["tolerance"] == tolerance and one["whole"]:
                    bars[place] = min(bars[place], one["ert"])
                    hits[place] = min(hits[place], float(np.median([c for c in one["calls"] if c < inf])))
        if method == ("fgzoht" if make(name).n == 1 else "saga-szht"):
            hints = list(dict.fromkeys(Setting(**one["setting"]) for one in kept["final"]))
    return results


def kept(name: str) -> dict[str, dict[str, Any]]:
    """Return the cached settings of each method on a problem."""
    paths = {method: path_of(name, method) for method in METHODS}
    return {method: json.loads(path.read_text()) for method, path in paths.items() if path.exists()}


def best_of(kept: dict[str, Any], tolerance: float, *, whole: bool = True) -> dict[str, Any] | None:
    """Return a method's best setting at a tolerance, among those that were run with all seeds."""
    fit = [one for one in kept["final"] if one["tolerance"] == tolerance and (one["whole"] or not whole)]
    return min(fit, key=lambda one: one["ert"], default=None)


def _brief(kept: dict[str, Any]) -> str:
    tops = [best_of(kept, tolerance, whole=False) for tolerance in TOLERANCES]
    return "  ".join(f"{top['ert']:.4g} (q {top['setting']['q']}, eta {top['eta']:.3g})" for top in tops if top)
