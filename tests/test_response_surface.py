"""A response surface finds the minimum of a quadratic as far as the noise allows, and its radius adapts to F."""

from __future__ import annotations

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.methods.auto.models.cubic_bias import cubic_terms, shrunk_bias
from zerothresh.methods.auto.moves.response_surface import ResponseSurface
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context

GOAL = np.array([0.0, 1.0, 0.0, -2.0, 0.0, 0.5])


class SurfaceOnly(Program):
    """A response surface alone, from a point on the right support."""

    def __init__(self, calls: int, radius: float = 0.5, noise: float = 0.1) -> None:
        self.calls, self.radius, self.noise = calls, radius, noise

    def search(self, context: Context) -> Asks:
        yield from context.values([context.theta0])
        context.random = True
        self.surface = ResponseSurface(context, 0.8 * GOAL, np.eye(3), self.radius, self.noise)
        theta = yield from self.surface.search(self.calls, context.everything)
        context.move(theta, self.surface.F)


def minimise(fun, calls=600, *, seed=0, budget=5000, **options):
    method = SurfaceOnly(calls, **options)
    rng = np.random.default_rng(seed)
    result = zt.minimize(lambda x: fun(x, rng), 6, 3, budget=budget, method=method, seed=seed)
    return result, method.surface


def noisy_quadratic(x, rng):
    return float((np.array([1, 2, 1, 1, 1, 0.5]) * (x - GOAL) ** 2).sum()) + 0.1 * rng.standard_normal()


def test_the_minimum_is_found_as_far_as_noise_allows():
    """600 values with noise 0.1 over a radius of 0.5 and more leave a gap of about 3 * 0.01 / (600 * 0.08) = 6e-4 in F.

    The mean of 20 runs may be 4 times that; single pairs of values around a point would leave a gap of 1e-1.
    """
    gaps = []
    for seed in range(20):
        x = minimise(noisy_quadratic, seed=seed)[0].x
        gaps.append(float((np.array([1, 2, 1, 1, 1, 0.5]) * (x - GOAL) ** 2).sum()))
    assert np.mean(gaps) < 2.4e-3


def test_more_calls_lead_closer_to_the_minimum():
    few, many = (
        np.mean([((minimise(noisy_quadratic, calls, seed=seed)[0].x - GOAL) ** 2).sum() for seed in range(10)])
        for calls in (100, 2000)
    )
    assert many < few / 5


def test_the_radius_shrinks_if_f_is_not_quadratic_and_grows_if_it_is():
    def steep(x, rng):
        z = 3 * (x - GOAL)
        return float((np.exp(z) - z).sum()) + 0.01 * rng.standard_normal()

    def radius(fun):
        return np.exp(np.mean([np.log(minimise(fun, 2000, seed=seed, radius=1.0)[1].radius) for seed in range(8)]))

    assert radius(steep) < 0.3
    assert radius(noisy_quadratic) > 1.0


def test_noise_is_estimated_from_pairs_even_if_it_grows_with_the_distance():
    def growing(x, rng):
        away = float(((x - GOAL) ** 2).sum())
        return away + (0.05 + away) * 0.2 * rng.standard_normal()

    runs = [minimise(growing, 2000, seed=seed) for seed in range(8)]
    assert (
        np.exp(np.mean([np.log(surface.radius) for _, surface in runs])) > 0.4
    )  # noise is no reason for a shorter radius
    assert np.mean([((result.x - GOAL) ** 2).sum() for result, _ in runs]) < 0.01


@pytest.mark.parametrize("calls", [0, 5, 11, 12, 13, 100])
def test_it_makes_no_more_calls_than_allowed(calls):
    asked = []

    def counted(x, rng):
        asked.append(x)
        return noisy_quadratic(x, rng)

    result, _ = minimise(counted, calls, budget=400)
    assert len(asked) == result.nfev <= calls + 2  # the start, and F at the result
    assert result.support.tolist() == [1, 3, 5]


def test_it_stays_within_bounds():
    asked = []

    def counted(x, rng):
        asked.append(x.copy())
        return noisy_quadratic(x, rng)

    method = SurfaceOnly(400)
    rng = np.random.default_rng(0)
    zt.minimize(lambda x: counted(x, rng), 6, 3, budget=1000, method=method, seed=0, bounds=(-1.7, 0.9))
    assert np.min(asked) >= -1.7
    assert np.max(asked) <= 0.9


@pytest.mark.parametrize("value", [0.0, 3.0, 1e200])
def test_constant_values_leave_the_point_unchanged(value):
    result, surface = minimise(lambda x, rng: value, 400)
    np.testing.assert_allclose(result.x, 0.8 * GOAL, atol=1e-6)
    assert np.isfinite(surface.F)


def test_cubic_terms_do_not_move_a_slope_where_values_lie_around_another_centre():
    """A term x1^2 x2 has no part of the form x |x|^2; around a centre two away from it, it changes the slope of x2."""
    rng = np.random.default_rng(0)
    moves = rng.standard_normal((400, 3)) + np.array([2.0, 0.0, 0.0])
    slopes = np.array([0.3, -0.5, 0.2])
    values = moves @ slopes + 0.5 * np.square(moves).sum(axis=1) + 0.1 * moves[:, 0] ** 2 * moves[:, 1]
    values += 0.05 * rng.standard_normal(400)
    rows, columns = np.triu_indices(3)
    X = np.column_stack([np.ones(400), moves, moves[:, rows] * moves[:, columns]])
    A = X.T @ X
    w = np.linalg.solve(A, X.T @ values)
    corrected = w - shrunk_bias(X, cubic_terms(moves), values - X @ w, A, np.full(400, 0.05**2)).bias
    assert np.abs(w[1:4] - slopes).max() > 0.2
    assert np.abs(corrected[1:4] - slopes).max() < 0.03


def test_too_few_values_tell_no_cubic_terms():
    rng = np.random.default_rng(0)
    moves = rng.standard_normal((20, 3))
    X = np.column_stack([np.ones(20), moves])
    assert shrunk_bias(X, cubic_terms(moves), rng.standard_normal(20), X.T @ X, np.ones(20)) is None
