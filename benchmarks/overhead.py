"""Measure the library's own cost, as a ratio to the time that drawing the random numbers takes.

    python benchmarks/overhead.py [repeats]

1. d = 5, q = 200: a whole round of `minimize` without the objective, divided by ``rng.standard_normal((200, 5))``.
   The ratio should be at most 12.
2. d = 1e6, q = 20, sphere directions: ask and tell, divided by drawing 20 x 1e6 normals with NumPy's SFC64 in float64.
   The ratio should be at most 1.3.

The two sides of a ratio are timed in turn, and the median over the repeats is printed.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import zerothresh as zt


def clock(function: object, *arguments: object) -> float:
    """Return the seconds that a call takes."""
    start = time.perf_counter()
    function(*arguments)  # type: ignore[operator]
    return time.perf_counter() - start


class Timed:
    """A vectorised objective that does as little as possible and measures its own time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.weights = np.arange(5.0)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        start = time.perf_counter()
        values = points @ self.weights
        self.seconds += time.perf_counter() - start
        return values


def small(directions: str, repeats: int, rounds: int = 400) -> float:
    """Return the ratio at d = 5, q = 200."""
    rng = np.random.default_rng(0)
    estimator = zt.Estimator(q=200, mu=1e-4, directions=directions)

    def run() -> float:
        fun = Timed()
        start = time.perf_counter()
        result = zt.minimize(
            fun, 5, 3, budget=201 * rounds + 1, method=zt.SZOHT(eta=1e-9), estimator=estimator, vectorized=True, seed=1
        )
        return (time.perf_counter() - start - fun.seconds) / result.nit

    def normals() -> None:
        for _ in range(rounds):
            rng.standard_normal((200, 5))

    run()
    ratios = []
    for _ in range(repeats):
        drawing = clock(normals) / rounds
        ratios.append(run() / drawing)
    return float(np.median(ratios))


def large(directions: str, repeats: int, d: int = 10**6, q: int = 20) -> float:
    """Return the ratio of ask and tell to drawing the normals at d = 1e6."""
    rng = np.random.Generator(np.random.SFC64(0))
    opt = zt.Optimizer(
        d,
        100,
        budget=10**9,
        method=zt.SZOHT(eta=1e-3),
        estimator=zt.Estimator(q=q, mu=1e-3, directions=directions),
        seed=1,
    )
    values = np.random.default_rng(2).standard_normal(q + 1)
    normals = np.empty((q, d))

    def round_() -> None:
        batch = opt.ask()
        assert batch.points.shape == (q + 1, d)
        opt.tell(batch, values)

    round_()
    ratios = []
    for _ in range(repeats):
        drawing = clock(lambda: rng.standard_normal(out=normals))
        ratios.append(clock(round_) / drawing)
    return float(np.median(ratios))


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    for directions in ("sphere", "orthogonal", "rademacher", "coordinate"):
        ratio = small(directions, repeats)
        print(f"d = 5, q = 200, {directions:10s}: a round of minimize / drawing the normals = {ratio:.2f}")
    print("The ratio should be at most 12.")
    for directions in ("sphere", "orthogonal"):
        print(f"d = 1e6, q = 20, {directions:10s}: ask + tell / drawing the normals = {large(directions, repeats):.2f}")
    print("The ratio should be at most 1.3 for sphere directions.")


if __name__ == "__main__":
    main()
