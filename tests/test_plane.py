"""The fast runs of benchmarks/plane.py against runs of the library's methods on the same problems."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerothresh as zt

COMMON = partial(zt.Estimator, directions="sphere", common=True)


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


@pytest.fixture(scope="module", params=[True, False], ids=["own", "common"])
def law(request: Any, plane: Any) -> tuple[bool, np.ndarray]:
    """Whether components have their own directions, and the medians over seeds of the gap left, (method, k)."""
    own = request.param
    return own, np.median([plane.runs(ETA, Q, KS, seed, own)[0] for seed in range(SEEDS)], axis=0)


@pytest.mark.parametrize("name", ["SZOHT", "FGZOHT", "SAGA-SZHT", "VR-SZHT", "SARAH-SZHT"])
def test_the_fast_runs_are_those_of_the_library(plane, law, name):
    own, fast = law
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
            estimator = zt.Estimator.paper(q=Q, mu=plane.MU) if own else COMMON(q=Q, mu=plane.MU)
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


@pytest.mark.parametrize("q", [1, 7])
def test_the_mean_of_estimates_with_own_directions_has_the_moments_of_eq_3(plane, q):
    rng = np.random.Generator(np.random.SFC64(q))
    centres = plane.problem(0).centres.astype(np.float32)
    theta = np.zeros((1, plane.D), np.float32)
    theta[0, :3] = 2.0, -1.0, 0.5
    residuals = theta - centres
    gradient = residuals.mean(axis=0)

    def drawn() -> np.ndarray:
        blocks = [plane.unit_vectors(rng, q) for _ in centres]
        return np.mean(
            [plane.estimates(r[None], u)[0] + plane.part_of_mu(u) for r, u in zip(residuals, blocks, strict=True)],
            axis=0,
        )

    draws = 1500  # the standard error of a mean square is then a few percent
    slow = np.array([drawn() for _ in range(draws)]) - gradient
    fast = np.array([plane.mean_of_own(rng, theta, centres, q)[0] for _ in range(draws)]) - gradient
    error = (slow**2).mean() ** 0.5 * draws**-0.5
    for sample in (slow, fast):
        assert abs(sample.mean()) < 5 * error / plane.D**0.5
    towards = gradient / np.linalg.norm(gradient)
    for measure in (lambda x: (x**2).sum(axis=1), lambda x: (x @ towards) ** 2, lambda x: x[:, 0] ** 2):
        one, other = measure(slow), measure(fast)
        noise = np.hypot(one.std(), other.std()) * draws**-0.5
        assert abs(one.mean() - other.mean()) < 4 * noise


def test_what_diverges_is_infinite_and_a_small_learning_rate_mends_it(plane):
    j, k = plane.METHODS.index("VR-SZHT"), (32,)
    assert plane.runs(0.1, 1, k, 0)[0][j, 0] == np.inf
    left, below = plane.runs(0.001, 1, k, 0)
    assert left[j, 0] < 1e-3
    assert 0 < below[0, j, 0] < below[1, j, 0]
