"""Measure the cost of a run folder, as a ratio to the same run without one.

    python benchmarks/journal.py [repeats]

It measures d = 5 and d = 3072 and each fsync policy, with an objective that does next to nothing (vectorised, and one
point per call) and with one whose calls take 1 ms. With fsync="batch" the ratios should be at most 1.5 and 1.02. The
two sides of a ratio are timed in turn, and the median over the repeats is printed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import zerothresh as zt


def many(X: np.ndarray) -> np.ndarray:
    """A trivial vectorised objective."""
    return X[:, 0] * 1.0


def one(x: np.ndarray) -> float:
    """A trivial objective of one point."""
    return float(x[0])


def slow(x: np.ndarray) -> float:
    """An objective that takes 1 ms per call."""
    end = time.perf_counter() + 1e-3
    while time.perf_counter() < end:
        pass
    return float(x[0])


def seconds(fun: Any, d: int, budget: int, folder: Path | None, fsync: str) -> float:
    """Return the seconds that a run takes, with or without a run folder."""
    estimator = zt.Estimator(q=200 if d == 5 else 10, mu=1e-3)
    start = time.perf_counter()
    zt.minimize(
        fun, d, 3, budget=budget, method=zt.SZOHT(eta=1e-9), estimator=estimator, seed=0, vectorized=fun is many,
        run=folder, fsync=fsync, progress=False,
    )  # fmt: skip
    return time.perf_counter() - start


def ratio(fun: Any, d: int, budget: int, fsync: str, repeats: int, where: Path) -> float:
    """Return the time with a run folder divided by the time without, the median over the repeats."""
    found = []
    for number in range(repeats):
        plain = seconds(fun, d, budget, None, fsync)
        kept = seconds(fun, d, budget, where / f"{fun.__name__}-{d}-{fsync}-{number}", fsync)
        found.append(kept / plain)
    return float(np.median(found))


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print("time with a run folder / time without")
    print(f"{'objective':32s} {'d':>6s} {'value':>8s} {'batch':>8s} {'never':>8s}")
    # in the project's folder, because the system's folder for temporary files may be in memory
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".journal-") as scratch:
        where = Path(scratch)
        for fun, words, budgets in (
            (many, "trivial, vectorised", {5: 2_000_000, 3072: 60_000}),
            (one, "trivial, one point per call", {5: 300_000, 3072: 60_000}),
            (slow, "1 ms per call", {5: 3000, 3072: 3000}),
        ):
            for d, budget in budgets.items():
                seconds(fun, d, budget // 2, None, "never")  # compile
                row = []
                for fsync in (
                    "value",
                    "batch",
                    "never",
                ):  # "value" waits for the disk after each value: use fewer calls
                    share = (budget // 20 if budget > 10_000 else budget, 2) if fsync == "value" else (budget, repeats)
                    row.append(ratio(fun, d, share[0], fsync, share[1], where))
                print(f"{words:32s} {d:6d} " + " ".join(f"{r:8.3f}" for r in row), flush=True)
    print('With "batch", the ratio should be at most 1.5 for trivial objectives and at most 1.02 at 1 ms per call.')


if __name__ == "__main__":
    main()
