"""Draw the picture of docs/compare.md: five methods on a regression with 100 unknowns, of which 8 are non-zero.

    python scripts/make_methods_picture.py [picture.png]

Each method has three runs. The script takes less than a minute.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import numpy as np

import zerothresh as zt

DEFAULT = Path(__file__).parents[1] / "docs" / "pictures" / "methods.png"


def regression(n: int = 1000, d: int = 100, k: int = 8, noise: float = 1.0, seed: int = 1) -> tuple[zt.Problem, float]:
    """Return a noisy least-squares problem, and F at the best fit on the true support."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    truth = np.zeros(d)
    truth[rng.choice(d, k, replace=False)] = rng.choice([-1.0, 1.0], k) * (1 + rng.random(k))
    problem = zt.problems.Ridge(X, X @ truth + noise * rng.standard_normal(n), lam=0.0)
    return problem, problem.F(problem.minimum_on(np.flatnonzero(truth)))


def main() -> None:
    """Run the methods, draw the picture, and print the final gap of each run."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    problem, best = regression()
    contenders = {
        "FGZOHT": zt.FGZOHT(eta=0.4),
        "SZOHT": zt.SZOHT(eta=0.02, batch=20),
        "VR-SZHT": zt.VRSZHT(eta=0.1, m=20, batch=20),
        "SARAH-SZHT": zt.SARAHSZHT(eta=0.1, m=20, batch=20),
        "LSVRG-SZHT": zt.LSVRGSZHT(eta=0.1, p=50, batch=20),
    }
    estimator = zt.Estimator(q=100, mu=1e-5)
    results = {}
    for label, method in contenders.items():
        results[label] = [
            zt.minimize(
                problem, None, 8, budget=2_000_000, method=method, estimator=estimator, seed=seed, monitor=problem.F
            )
            for seed in range(3)
        ]
        print(f"{label:12}", *(f"{run.trace.fun[-1] - best:10.1e}" for run in results[label]))
    figure = zt.plot.compare(
        results, optimum=best, title="Regression with noise: n = 1000, d = 100, k = 8; mean of three runs"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
