"""A regression on all coordinates finds the support through strong noise, in any unit, and stays within its limits."""

from __future__ import annotations

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.methods.auto.moves.sparse_surface import SparseSurface
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context

D, K = 20, 3
GOAL = np.zeros(D)
GOAL[[2, 7, 11]] = 1.0, -1.5, 0.8


class RegressionOnly(Program):
    """A regression alone, for a number of rounds."""

    def __init__(self, rounds: int, radius: float = 1.0) -> None:
        self.rounds, self.radius = rounds, radius

    def search(self, context: Context) -> Asks:
        yield from context.values([context.theta0])
        context.random = True
        self.surface = SparseSurface(context, self.radius)
        for _ in range(self.rounds):
            if self.surface.round_size > context.left:
                return
            theta = yield from self.surface.search()
            context.move(theta, self.surface.F)


def minimise(fun, rounds=12, *, seed=0, budget=5000, radius=1.0, **options):
    """Run the regression; returns the result, the surface, and the points that were asked for."""
    method, rng, asked = RegressionOnly(rounds, radius), np.random.default_rng(seed), []

    def noisy(x):
        asked.append(x)
        return fun(x) + 0.5 * rng.standard_normal()

    result = zt.minimize(noisy, D, K, budget=budget, method=method, seed=seed, **options)
    return result, method.surface, np.array(asked)


def quadratic(x):
    move = x - GOAL
    return float(move @ move + 0.3 * move.sum() ** 2 / D)


def curved(x):
    return float(np.logaddexp(0.0, 3 * (x - GOAL)).sum() - 1.5 * (x - GOAL).sum())


@pytest.mark.parametrize("fun", [quadratic, curved])
def test_the_support_is_found_although_noise_hides_every_single_slope(fun):
    """A slope of 2 seen over a coordinate's share 1 / sqrt(20) of the radius changes F less than the noise of 0.5."""
    found = 0
    for seed in range(10):
        result = minimise(fun, seed=seed)[0]
        found += set(np.flatnonzero(result.x_last)) == set(np.flatnonzero(GOAL))
    assert found >= 9


def test_coordinates_that_do_not_matter_are_moved_no_more():
    _, surface, asked = minimise(quadratic)
    assert surface.settled
    assert surface.T.size == 2 * K
    assert np.isin(np.flatnonzero(GOAL), surface.T).all()
    assert ((asked[-20:] != 0).sum(axis=1) <= 2 * K + K).all()


@pytest.mark.parametrize("c", [2.0**-20, 2.0**30])
def test_the_unit_of_x_does_not_matter(c):
    plain = minimise(quadratic)[2]
    scaled = minimise(lambda x: quadratic(x / c), radius=c)[2]
    np.testing.assert_allclose(scaled / c, plain, rtol=1e-6, atol=1e-6)


def test_a_radius_that_is_far_too_long_is_shortened():
    def narrow(x):
        return float(-3 * np.exp(-((x - 0.3 * GOAL) ** 2).sum()))

    radii = [minimise(narrow, 15, seed=seed, radius=20.0)[1].radius for seed in range(6)]
    assert np.median(radii) < 10.0


def test_no_point_leaves_the_bounds():
    _, _, asked = minimise(quadratic, bounds=(-0.7, 0.7))
    assert np.abs(asked).max() <= 0.7


@pytest.mark.parametrize("budget", [180, 400, 1001])
def test_no_budget_is_exceeded(budget):
    result, _, asked = minimise(quadratic, 50, budget=budget)
    assert len(asked) == result.nfev <= budget
