"""The fast runs of benchmarks/plane.py against runs of the library's methods on the same problems."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerothresh as zt


@pytest.fixture(scope="module")
def plane() -> Any:
    folder = str(Path(__file__).parents[1] / "benchmarks")
    sys.path.insert(0, folder)
    try:
        import plane

        return plane
    finally:
        sys.path.remove(folder)


ETA, Q, KS = 0.1, 32, (2, 8)
SEEDS = 9  # the medians of two such samples differ by a factor of up to 1.7, methods by orders of magnitude
FACTOR = 2.5


@pytest.fixture(scope="module")
def fast(plane: Any) -> np.ndarray:
    """The medians over seeds of the gap left, (method, k)."""
    return np.median([plane.runs(ETA, Q, KS, seed)[0] for seed in range(SEEDS)], axis=0)


@pytest.mark.parametrize("name", ["SZOHT", "FGZOHT", "SAGA-SZHT", "VR-SZHT", "SARAH-SZHT"])
def test_the_fast_runs_are_those_of_the_library(plane, fast, name):
    epochs = {"m": plane.M}
    method = {
        "SZOHT": zt.SZOHT(ETA),
        "FGZOHT": zt.FGZOHT(ETA),
        "SAGA-SZHT": zt.SAGASZHT(ETA),
        "VR-SZHT": zt.VRSZHT(ETA, **epochs),
        "SARAH-SZHT": zt.SARAHSZHT(ETA, **epochs),
    }[name]
    steps = plane.steps_of(ETA)
    for k, expected in zip(KS, fast[plane.METHODS.index(name)], strict=True):
        ends = []
        for seed in range(SEEDS):
            box = plane.problem(seed)
            estimator = zt.Estimator(q=Q, mu=plane.MU, directions="sphere")
            first, gaps, calls = box.gap(np.zeros(box.d)), [], 0
            for state in zt.iterate(
                box, None, k, budget=10**9, method=method, estimator=estimator, seed=seed, monitor=box.gap
            ):
                if state.nht > len(gaps):
                    gaps.append(state.fun)
                if state.nht == steps:
                    calls = state.nfev
                    break
            assert calls == plane.calls_of(name, steps, Q)
            ends.append(np.median(gaps[-plane.LAST :]) / first)
        assert 1 / FACTOR < np.median(ends) / expected < FACTOR


def test_what_diverges_is_infinite_and_a_small_learning_rate_mends_it(plane):
    j, k = plane.METHODS.index("VR-SZHT"), (32,)
    assert plane.runs(0.1, 1, k, 0)[0][j, 0] == np.inf
    left, below = plane.runs(0.001, 1, k, 0)
    assert left[j, 0] < 1e-3
    assert 0 < below[0, j, 0] < below[1, j, 0]
