"""Run optimisers of other packages, as far as they are installed, on the same problems.

A peer minimises x -> F(H_k(x)), with the hard thresholding inside the objective, and a value of F costs n calls. Three
things are in its favour: its first step has the size of the optimum, it is restarted from a random point when it gives
up, and every point that it evaluates counts as found.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from objectives import Array
from optima import CACHE, keep
from suite import Instance, full_name, make
from tracker import Hits, Judge

SEEDS = 5


class Enough(Exception):
    """Stops a peer: it reached all goals, spent the budget, or made no progress in nine tenths of its calls."""


class Thresholded:
    """The objective of a peer: thresholds the point, counts the calls, and records when goals are reached."""

    def __init__(self, problem: Instance, seed: int, stall: float = 10.0) -> None:
        self.problem, self.stall = problem, stall
        self.hits = Hits(seed, problem.budget)
        self.judge = Judge(problem, self.hits)
        self.rng = np.random.default_rng([seed, 3])
        self.scale = max(float(np.abs(problem.x_star).max()), 1e-3)
        self._improved, self._level = 1, inf
        self._all = np.arange(problem.n)

    def __call__(self, x: Any, *_: Any) -> float:
        p, hits = self.problem, self.hits
        if hits.nfev + p.n > p.budget:
            raise Enough
        x = np.array(x, dtype=float)
        x[np.argpartition(np.abs(x), p.d - p.k)[: p.d - p.k]] = 0.0
        hits.nfev += p.n
        value = p.F(x)
        gap = (value - self.judge.low) / self.judge.span
        self.judge.note(hits.nfev, gap, gap)
        if hits.gap < 0.9 * self._level:
            self._improved, self._level = hits.nfev, hits.gap
        if max(hits.either) < inf or hits.nfev > max(self.stall * self._improved, 0.2 * p.budget):
            raise Enough
        return float(p.values(np.repeat(x[None], p.n, axis=0), self._all).mean()) if p.noisy else value

    def start(self) -> Array:
        """Return a random start for a restart."""
        return self.scale * self.rng.standard_normal(self.problem.d)


def sbplx(fun: Thresholded) -> None:
    """Run Subplex of NLopt."""
    import nlopt

    x = fun.problem.x0.copy()
    while True:
        tool = nlopt.opt(nlopt.LN_SBPLX, fun.problem.d)
        tool.set_min_objective(lambda z, gradient: fun(z))
        tool.set_initial_step(0.5 * fun.scale)
        tool.set_xtol_rel(1e-10)
        tool.set_maxeval(fun.problem.budget)
        tool.optimize(x)
        x = fun.start()


def powell(fun: Thresholded) -> None:
    """Run Powell's method of SciPy."""
    from scipy.optimize import minimize

    x = fun.problem.x0
    while True:
        directions = 0.5 * fun.scale * np.eye(fun.problem.d)
        minimize(fun, x, method="Powell", options={"direc": directions, "xtol": 1e-8, "ftol": 1e-12})
        x = fun.start()


def cma(fun: Thresholded) -> None:
    """Run CMA-ES of pycma."""
    from cma import CMAEvolutionStrategy

    x, seed = fun.problem.x0, fun.hits.seed + 1
    while True:
        tool = CMAEvolutionStrategy(x, 0.5 * fun.scale, {"verbose": -9, "seed": seed})
        while not tool.stop():
            points = tool.ask()
            tool.tell(points, [fun(point) for point in points])
        x, seed = fun.start(), seed + 1000


def one_plus_one(fun: Thresholded) -> None:
    """Run OnePlusOne of nevergrad."""
    import nevergrad

    space = nevergrad.p.Array(init=fun.problem.x0).set_mutation(sigma=fun.scale)
    space.random_state.seed(fun.hits.seed)
    tool = nevergrad.optimizers.OnePlusOne(space, budget=fun.problem.budget // fun.problem.n)
    while True:
        candidate = tool.ask()
        tool.tell(candidate, fun(candidate.value))


def sparse(fun: Thresholded) -> None:
    """Run a random search over supports and values.

    It swaps fewer and fewer coordinates as the budget is spent, and adapts the size of its steps on the support.
    """
    p, rng, size = fun.problem, fun.rng, fun.scale
    best = np.zeros(p.d)
    best[rng.choice(p.d, p.k, replace=False)] = fun.scale * rng.choice([-1.0, 1.0], p.k)
    lowest = fun(best)
    while True:
        support, x = np.flatnonzero(best), best.copy()
        swap = rng.random() < 0.5 or len(support) < p.k
        if swap:
            share = 1 - fun.hits.nfev / p.budget
            leaving = rng.permutation(support)[: max(1, round(0.5 * p.k * share**4))]
            x[leaving] = 0.0
            free = p.k - np.count_nonzero(x)
            x[rng.choice(np.flatnonzero(x == 0), free, replace=False)] = fun.scale * rng.standard_normal(free)
        else:
            x[support] += size * rng.standard_normal(len(support))
        value = fun(x)
        better = value < lowest
        if value <= lowest:
            best, lowest = x, value
        if not swap:
            size = min(size * (1.5 if better else 0.9), fun.scale)


PEERS: dict[str, tuple[str, Callable[[Thresholded], None]]] = {
    "sbplx": ("nlopt", sbplx),
    "powell": ("scipy", powell),
    "cma": ("cma", cma),
    "ng-1+1": ("nevergrad", one_plus_one),
    "random": ("numpy", sparse),
}
ABSENT = [name for name, (package, _) in PEERS.items() if find_spec(package) is None]


def path_of(name: str, peer: str) -> Path:
    """Return the cache file of a peer's runs on a problem."""
    return CACHE / "peers" / full_name(name) / f"{peer}.json"


def peers(name: str, seeds: int = SEEDS, *, again: bool = False, report: Any = print) -> dict[str, list[Hits]]:
    """Return the runs of each peer on a problem, from the cache or made now.

    A peer that is not installed may still have runs in the cache.
    """
    results = {}
    for peer, (_, search) in PEERS.items():
        path = path_of(name, peer)
        kept = json.loads(path.read_text()) if path.exists() and not again else []
        if len(kept) < seeds and peer not in ABSENT:
            start = time.perf_counter()
            kept = [asdict(_run(name, seed, search)) for seed in range(seeds)]
            keep(path, kept)
            report(f"{name:22s} {peer:8s} {time.perf_counter() - start:6.1f} s")
        if kept:
            results[peer] = [Hits(**one) for one in kept[:seeds]]
    return results


def kept(name: str) -> dict[str, list[Hits]]:
    """Return the cached runs of each peer on a problem."""
    paths = {peer: path_of(name, peer) for peer in PEERS}
    return {peer: [Hits(**one) for one in json.loads(p.read_text())] for peer, p in paths.items() if p.exists()}


def _run(name: str, seed: int, search: Callable[[Thresholded], None]) -> Hits:
    fun = Thresholded(make(name, seed), seed)
    start = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            search(fun)
        except Enough:
            fun.hits.ended = "enough"
    fun.hits.seconds = time.perf_counter() - start
    return fun.hits
