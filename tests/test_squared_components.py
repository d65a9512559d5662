"""The arm for components that are squares: their roots are linearised, whatever F's unit and offset are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.methods.auto.arms.squared_components import SquaredComponents

N, D, K = 50, 30, 5
DATA = np.random.default_rng(4)
FIRST, SECOND, TRUTH = DATA.standard_normal((N, D)), DATA.standard_normal((N, D)), np.zeros(D)
TRUTH[[2, 7, 13, 20, 28]] = [1.0, -1.5, 0.8, 1.2, -0.9]
NAME = SquaredComponents.name


def response(x, rows):
    return np.tanh(FIRST[rows] @ x) + 0.5 * np.tanh(SECOND[rows] @ x)


def square(x, i):
    return float((response(x, i) - response(TRUTH, i)) ** 2)


def solved(fun, **given):
    return zt.minimize(fun, D, K, n=N, budget=given.pop("budget", 40_000), seed=1, progress=False, **given)


def led(found):
    """Whether the arm led, and for how many calls."""
    stages = [*found.stages, (found.nfev, "")]
    return sum(end - begin for (begin, name), (end, _) in itertools.pairwise(stages) if name == NAME)


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (1e-3, 70.0), (50.0, -1.0)])
def test_squares_above_any_level_are_recognised_and_solved(a, b):
    found = solved(lambda x, i: a * square(x, i) + b)
    assert found.support.tolist() == np.flatnonzero(TRUTH).tolist()
    assert found.fun - b < 1e-4 * a * np.mean([square(np.zeros(D), i) for i in range(N)])
    assert led(found) > N * D
    assert any("look like squares" in text for _, text in found.remarks)


def test_components_that_are_no_squares_cost_a_few_calls_only():
    found = solved(lambda x, i: float(np.logaddexp(0, 2 * response(x, i) - FIRST[i, 0]) + 0.1 * x @ x), budget=8000)
    assert led(found) <= N + 6
    assert f"{NAME}: The components are not squares above one level." in [text for _, text in found.remarks]


def test_the_arm_keeps_to_few_components_per_non_zero():
    """With many components, a sample of them tells more per call than all of them."""
    found = zt.minimize(square, D, 2, n=N, budget=6000, seed=1, progress=False)
    assert NAME not in {name for _, name in found.stages}


def test_bounds_and_forced_coordinates_are_kept():
    points = []

    def watched(x, i):
        points.append(x)
        return square(x, i)

    found = solved(watched, bounds=(-1.0, 1.0), include=[0], exclude=[7], budget=12_000)
    assert led(found) > 0
    assert np.abs(points).max() <= 1
    assert found.x[7] == 0
    assert np.count_nonzero(found.x) <= K
    assert found.fun < np.mean([square(np.zeros(D), i) for i in range(N)])
