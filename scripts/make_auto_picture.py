"""Draw the picture of docs/auto.md: which strategies of `auto` made the calls of a run.

    python scripts/make_auto_picture.py [picture.png]

A plant has 60 valves between -1 and 1, and 6 of them may be opened. Its 40 sensors saturate, and the function is their
mean absolute error, so that it has kinks and many local minima. The script takes a few seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import numpy as np

import zerothresh as zt

DEFAULT = Path(__file__).parents[1] / "docs" / "pictures" / "auto-arms.png"


def plant(sensors: int = 40, d: int = 60, k: int = 6, seed: int = 0) -> zt.Result:
    """Return the result of a run of `auto` on a plant whose sensors saturate."""
    rng = np.random.default_rng(seed)
    response = 6 * rng.standard_normal((sensors, d)) / np.sqrt(d)
    truth = np.zeros(d)
    truth[rng.choice(d, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    measured = np.tanh(response @ truth)

    def loss(x: np.ndarray) -> float:
        return float(np.mean(np.abs(np.tanh(response @ x) - measured)))

    return zt.minimize(loss, d, k, budget=2000, bounds=(-1, 1), seed=0)


def main() -> None:
    """Make the run, draw it, and print what it found."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    result = plant()
    result.plot(kind="arms").savefig(path, dpi=110)
    print(result.fun, result.support, result.message)
    for calls, remark in result.remarks:
        print(f"after {calls:,} calls: {remark}")


if __name__ == "__main__":
    main()
