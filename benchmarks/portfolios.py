"""Portfolios of the OR-Library: the gap of `auto` to a quadratic program that sees the whole problem.

    python benchmarks/portfolios.py FOLDER [--budget 20000] [--seed 0] [--only 1,2] [--strict] [--weights .2,.5,.8]
                                           [--json FILE]

FOLDER holds port1.txt to port5.txt of the OR-Library, which are not part of this repository. The objective is that of
Chang, Meade, Beasley and Sharaiha (2000): lambda times the variance minus (1 - lambda) times the return, where at most
K = 10 assets are held, each with a share from 0.01 to 1, and the shares sum to 1. `auto` sees values of this function
alone. The reference knows the covariances: a quadratic program (SciPy's SLSQP) on each support, from several starts,
and swaps of one asset until none helps.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.optimize import minimize as scipy_minimize

import zerothresh as zt

K, LOW, HIGH = 10, 0.01, 1.0
GOAL = 0.01  # per cent
KEPT = 100  # points of a curve


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean returns (d,) and the covariances (d, d) of a file of the OR-Library."""
    numbers = path.read_text().split()
    d = int(numbers[0])
    table = np.array(numbers[1 : 1 + 2 * d], float).reshape(d, 2)
    correlation = np.zeros((d, d))
    rest = np.array(numbers[1 + 2 * d :], float).reshape(-1, 3)
    i, j = rest[:, 0].astype(int) - 1, rest[:, 1].astype(int) - 1
    correlation[i, j] = correlation[j, i] = rest[:, 2]
    return table[:, 0], correlation * np.outer(table[:, 1], table[:, 1])


class Portfolio:
    """The objective, and the best point on a support by a quadratic program.

    Arguments
    ---------
    mean, covariance: arrays (d,) and (d, d).
    weight: lambda, from 0 (the return alone) to 1 (the variance alone).
    """

    def __init__(self, mean: np.ndarray, covariance: np.ndarray, weight: float) -> None:
        self.g, self.H = -(1 - weight) * mean, 2 * weight * covariance
        self.scale = max(np.abs(self.g).max(), np.abs(self.H).max())
        self.solved: dict[tuple[int, ...], tuple[float, np.ndarray]] = {}

    def __call__(self, x: np.ndarray) -> float:
        return float(self.g @ x + 0.5 * x @ self.H @ x)

    def on(self, support: tuple[int, ...]) -> tuple[float, np.ndarray]:
        """Minimise on a support; return the value and the shares."""
        if support not in self.solved:
            S = list(support)
            g, H = self.g[S] / self.scale, self.H[np.ix_(S, S)] / self.scale
            done = scipy_minimize(
                lambda x: g @ x + 0.5 * x @ H @ x,
                np.full(len(S), 1 / len(S)),
                jac=lambda x: g + H @ x,
                bounds=[(LOW, HIGH)] * len(S),
                constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones_like(x)},
                method="SLSQP",
                options={"ftol": 1e-14, "maxiter": 300},
            )
            x = np.zeros(self.g.size)
            x[S] = done.x
            self.solved[support] = self(x), x
        return self.solved[support]

    def swapped(self, support: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        """Swap, add and drop assets until none helps; those outside that the slopes favour come first."""
        value, x = self.on(support)
        while True:
            slope = self.g + self.H @ x
            outside = [j for j in np.argsort(slope).tolist() if j not in support]
            kept = [tuple(s for s in support if s != i) for i in support] if len(support) > 1 else []
            bases = kept + ([support] if len(support) < K else [])
            trials = [tuple(sorted((*base, j))) for j in outside for base in bases] + kept
            for trial in trials:
                candidate, point = self.on(trial)
                if candidate < value - 1e-12 * self.scale:
                    value, support, x = candidate, trial, point
                    break
            else:
                return value, support

    def reference(self, *supports: np.ndarray) -> float:
        """Return the lowest value found by swaps from several supports."""
        d = self.g.size
        risk = np.diag(self.H)
        starts = [np.argsort(self.g)[:K], np.argsort(risk)[:K], np.argsort(self.g / np.sqrt(risk))[:K], *supports]
        starts += [np.random.default_rng(0).choice(d, K, replace=False)]
        return min(self.swapped(tuple(sorted(map(int, start))))[0] for start in starts if len(start))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="1,2,3,4,5")
    parser.add_argument("--weights", default="0.2,0.5,0.8")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--json", type=Path, help="where the gaps are added, for practice_page.py")
    options = parser.parse_args()
    constraint = zt.Budget(total=1, low=LOW, high=HIGH)
    worst = 0.0
    rows = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    print(
        f"{'file':6s} {'d':>4s} {'lambda':>6s} {'calls':>7s} {'auto':>14s} {'QP and swaps':>14s} {'gap in %':>9s}  time"
    )
    for number in options.only.split(","):
        mean, covariance = load(options.folder / f"port{number}.txt")
        for weight in map(float, options.weights.split(",")):
            problem = Portfolio(mean, covariance, weight)
            begun = time.perf_counter()
            found = zt.minimize(
                problem, mean.size, K, budget=options.budget, constraint=constraint, strict=options.strict,
                seed=options.seed, progress=False,
            )  # fmt: skip
            seconds = time.perf_counter() - begun
            best = problem.reference(found.support)
            gap = 100 * (found.fun - best) / abs(best)
            worst = max(worst, gap)
            trace = list(zip(found.trace.nfev.tolist(), found.trace.fun.tolist(), strict=True))
            rows.append({
                "example": "portfolios", "split": options.seed, "file": int(number), "assets": mean.size,
                "weight": weight, "calls": found.nfev, "gap": gap, "seconds": seconds,
                "curve": [[at, 100 * (F - best) / abs(best)] for at, F in trace][:: max(1, len(trace) // KEPT)],
            })  # fmt: skip
            if options.json:
                options.json.parent.mkdir(parents=True, exist_ok=True)
                options.json.write_text(json.dumps(rows))
            print(
                f"port{number:2s} {mean.size:4d} {weight:6.2f} {found.nfev:7,d} {found.fun:14.9f} {best:14.9f} "
                f"{gap:9.5f}  {seconds:.0f} s", flush=True,
            )  # fmt: skip
    verdict = "reached" if worst < GOAL else "missed"
    print(f"largest gap {worst:.5f} %, goal below {GOAL} %: {worst / GOAL:.2g} of the goal, {verdict}")


if __name__ == "__main__":
    main()
