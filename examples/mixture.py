"""Mix at most 5 of 10 ingredients, whose shares sum to 1, in 60 measurements of the strength.

Every mixture that is measured could be made (``strict=True``): it has at most 5 ingredients, no negative share, and
nothing is left over.
"""

from __future__ import annotations

import numpy as np

import zerothresh as zt

rng = np.random.default_rng(1)
SINGLE = rng.uniform(0, 1, 10)
PAIRS = np.triu(rng.normal(0, 3, (10, 10)) * (rng.uniform(size=(10, 10)) < 0.5), 1)
measured = []


def weakness(x: np.ndarray) -> float:
    """Return the negative strength of a mixture: effects of single ingredients and of pairs, which level off."""
    measured.append(x)
    return -float(np.tanh(0.5 * (SINGLE @ x + x @ PAIRS @ x)))


if __name__ == "__main__":
    names = [f"ingredient {j}" for j in range(10)]
    found = zt.minimize(
        weakness, 10, 5, budget=60, constraint=zt.Simplex(1.0), strict=True, names=names, seed=0, progress=False
    )
    shares = np.array(measured)
    print(f"{len(shares)} mixtures were measured; the strength of the best is {-found.fun:.3f}")
    print(f"the strongest ingredient alone: {-min(map(weakness, np.eye(10))):.3f}")
    for j in found.support:
        print(f"{names[j]:14s} {100 * found.x[j]:5.1f} %")
    print("at most 5 ingredients in each:", bool(((shares != 0).sum(axis=1) <= 5).all()))
    print("every mixture sums to 1:", bool(np.allclose(shares.sum(axis=1), 1)))
