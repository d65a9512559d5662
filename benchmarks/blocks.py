"""Measure what an orthonormal block of directions costs, as a ratio to a block of independent ones.

    python benchmarks/blocks.py [repeats]

A block is drawn, q points are displaced along it, and its directions are combined once, as in a round. The table has
the time with the family "orthogonal" divided by that with the family "sphere", for q directions in d dimensions; the
goal is at most 3 everywhere. A star marks blocks that Gram-Schmidt makes, of which each direction is uniform; the
others are rows of the Hartley transform. A second table has directions with s2 < d non-zeros.

The two sides of a ratio are timed in turn (processor time), and the least time of each is taken, because other
programs can only add to it.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from zerothresh.sampling.directions import draw, is_small, is_small_in_pieces

GOAL = 3.0
QS = (2, 5, 10, 11, 20, 50, 100, 400, 2000)
DS = (2, 3, 5, 8, 12, 16, 24, 40, 64, 100, 300, 1000, 1024, 10_000, 20_000, 100_003, 1_000_000)
SPARSE = ((50, 8, 2), (400, 8, 7), (100, 100, 10), (20, 100, 50), (100, 100, 99), (400, 1000, 500), (1000, 1000, 50))
SPARSE += ((400, 20_000, 500), (400, 20_000, 10_000), (20, 10**6, 100), (20, 10**6, 10**5))
LARGEST = 5 * 10**7  # numbers of a block, 400 MB of points
LEAST = 20_000  # numbers that are drawn at least in one measurement, in several blocks if they are small


def seconds(family: str, s2: int, points: np.ndarray) -> float:
    """Return the time of a round with one block."""
    q, d = points.shape
    theta, coefficients = np.zeros(d), np.ones(q)
    blocks = max(1, LEAST // points.size)
    start = time.process_time()
    for round_ in range(blocks):
        block = draw(family, q, d, s2, key=1, round=round_, tag=0)
        block.displace(theta, 0.1, points)
        block.combine(coefficients)
    return (time.process_time() - start) / blocks


def ratio(q: int, d: int, s2: int, repeats: int) -> tuple[float, float]:
    """Return the ratio of the two times, and the time of the orthonormal block in seconds."""
    points = np.empty((q, d))
    repeats = repeats if points.size < 10**7 else 2
    times = [(seconds("orthogonal", s2, points), seconds("sphere", s2, points)) for _ in range(repeats)]
    orthonormal, sphere = (min(column) for column in zip(*times, strict=True))
    return orthonormal / sphere, orthonormal


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    worst = (0.0, "")
    ratio(3, 5, 5, 1), ratio(40, 40, 40, 1), ratio(5, 5, 2, 1), ratio(40, 40, 20, 1)  # compile
    print(f"orthogonal / sphere; the goal is at most {GOAL:g}; * = Gram-Schmidt")
    print("      d \\ q" + "".join(f"{q:>8d}" for q in QS))
    for d in DS:
        line = f"{d:>11,d}"
        for q in QS:
            if q * d > LARGEST:
                continue
            cost, _ = ratio(q, d, d, repeats)
            worst = max(worst, (cost, f"q = {q}, d = {d:,d}"))
            line += f"{cost:>7.2f}{'*' if is_small(q, d) else ' '}"
        print(line, flush=True)
    print("\nq, d, s2: orthogonal / sphere, time of the orthonormal block")
    for q, d, s2 in SPARSE:
        cost, took = ratio(q, d, s2, repeats)
        worst = max(worst, (cost, f"q = {q}, d = {d:,d}, s2 = {s2:,d}"))
        mark = "*" if is_small_in_pieces(q, d, s2) else " "
        print(f"{q:>5d} {d:>10,d} {s2:>8,d}: {cost:.2f}{mark} {1e3 * took:.2f} ms", flush=True)
    print(f"\nThe largest ratio is {worst[0]:.2f} at {worst[1]}; the goal is at most {GOAL:g}.")


if __name__ == "__main__":
    main()
