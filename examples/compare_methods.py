"""Four methods on one problem: a table, and a picture of F against the calls and the thresholdings.

    python examples/compare_methods.py [picture.png]

Sparse logistic regression, 100 samples and 20 features, three runs a method.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import zerothresh as zt

path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="zerothresh-")) / "methods.png"
problem = zt.problems.logistic(n=100, d=20, k_true=3, seed=1)
x_best, F_best = problem.optimum(3)  # by trying all 1140 supports, with exact gradients

results = {}
print(f"best support {np.flatnonzero(x_best)}, F* = {F_best:.5f}\nmethod        F - F* at the end, three runs")
for method in (
    zt.FGZOHT(eta=3.0),
    zt.SZOHT(eta=0.1, batch=5),
    zt.VRSZHT(eta=0.5, batch=5),
    zt.SARAHSZHT(eta=0.5, batch=5),
):
    name = type(method).__name__
    results[name] = [
        zt.minimize(
            problem, None, 3, budget=100_000, method=method, estimator=zt.Estimator(q=20), seed=seed, monitor=problem.F
        )
        for seed in range(3)
    ]
    print(f"{name:12}", *(f"{run.trace.fun[-1] - F_best:10.1e}" for run in results[name]))

figure = zt.plot.compare(results, optimum=F_best, title="Sparse logistic regression, n = 100, d = 20, k = 3")
figure.savefig(path, dpi=100)
print(f"picture: {path}")
