"""Compare four methods on one problem, each with the best learning rate of a grid. Prints a table, draws a picture.

    python examples/compare_methods.py [picture.png]

The problem is sparse logistic regression with 100 samples and 20 features.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import zerothresh as zt

path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="zerothresh-")) / "methods.png"
problem = zt.problems.logistic(n=100, d=20, k_true=3, seed=1)

found = zt.compare(
    problem,
    {
        "full gradient": zt.FGZOHT(eta=1.0),
        "SZOHT": zt.SZOHT(eta=1.0, batch=5),
        "VR-SZHT": zt.VRSZHT(eta=1.0, batch=5),
        "SARAH-SZHT": zt.SARAHSZHT(eta=1.0, batch=5),
    },
    3,
    budget=50_000,
    grid={"eta": [0.1, 0.5, 3.0]},  # replaces the eta above
    runs=2,  # runs per learning rate, which choose the best one
    fresh=3,  # runs that judge it, with new seeds
    estimator=zt.Estimator(q=20),
)
print(f"F* = {found.optimum:.5f}, found by trying all 1140 supports\n{found}")
figure = found.plot(title="Sparse logistic regression, n = 100, d = 20, k = 3")
figure.savefig(path, dpi=100)
print(f"picture: {path}")
