"""After a descent, other supports are searched until the budget is spent or all of them have been tried."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.methods.auto.arms.descent import LocalDescent
from zerothresh.methods.auto.diagnosis import diagnose
from zerothresh.methods.auto.findings import Diagnosis
from zerothresh.methods.auto.models.measured_hessian import MeasuredHessian
from zerothresh.methods.auto.moves.support_step import SupportStep
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context


class OneArm(Program):
    """A local descent alone."""

    def search(self, context: Context) -> Asks:
        diagnosis = yield from diagnose(context)
        self.fits = LocalDescent().fits(context, diagnosis)
        self.ended = yield from LocalDescent().search(context, diagnosis)


def minimise(fun, d, k, *, budget, seed=0, **options):
    method = OneArm()
    return zt.minimize(fun, d, k, budget=budget, method=method, seed=seed, **options), method


def correlated(seed, d=30, k=4, m=50):
    """Least squares with columns of correlation 0.9 from one to the next; returns F and the true support."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, d))
    for j in range(1, d):
        A[:, j] = 0.9 * A[:, j - 1] + np.sqrt(0.19) * A[:, j]
    x = np.zeros(d)
    x[rng.choice(d, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(0.5, 1.5, k)
    return (lambda z: float(np.mean((A @ (z - x)) ** 2))), x


@pytest.mark.parametrize("seed", range(4))
def test_the_support_of_a_correlated_design_is_found(seed):
    fun, x = correlated(seed)
    result, _ = minimise(fun, 30, 4, budget=2500, seed=seed)
    assert result.support.tolist() == np.flatnonzero(x).tolist()
    assert result.fun < 1e-6 * fun(np.zeros(30))


def test_a_stationary_start_is_left():
    """Phase retrieval: F is even, so that its gradient vanishes at the start; a wrong basin may take all calls."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((60, 20))
        y = (A[:, [2, 7, 11]] @ [1.0, -0.7, 0.9]) ** 2

        def fun(x, A=A, y=y):
            return float(np.mean(((A @ x) ** 2 - y) ** 2))

        result, _ = minimise(fun, 20, 3, budget=3000, seed=seed)
        assert result.fun < 0.5 * fun(np.zeros(20))
        found.append(result.support.tolist() == [2, 7, 11])
    assert sum(found) >= 11


def test_all_supports_of_a_small_problem_are_tried_and_the_best_is_certified():
    fun, x = correlated(1, d=6, k=2)
    result, method = minimise(fun, 6, 2, budget=5000)
    assert result.support.tolist() == np.flatnonzero(x).tolist()
    assert method.ended.certified
    assert result.nfev < 5000


@pytest.mark.filterwarnings("ignore:k = d")
def test_the_minimum_of_a_quadratic_on_its_only_support_is_certified_and_other_minima_are_not():
    _, quadratic = minimise(lambda x: float(((x - 1) ** 2) @ [1.0, 2.0, 3.0]), 3, 3, budget=500)
    assert quadratic.ended.certified
    _, quartic = minimise(lambda x: float(((x - 1) ** 2).sum() + ((x - 1) ** 4).sum()), 3, 3, budget=500)
    assert not quartic.ended.certified


def test_the_budget_is_spent_on_other_supports_if_there_are_many():
    fun, _ = correlated(2)
    result, _ = minimise(fun, 30, 4, budget=1500)
    assert result.status is zt.Status.BUDGET
    assert result.nfev > 1400


@pytest.mark.parametrize("limits", [{"include": [5]}, {"exclude": [3, 4]}, {"bounds": (-0.4, 0.6)}])
def test_constraints_hold_at_every_result(limits):
    fun, _ = correlated(3)
    result, _ = minimise(fun, 30, 4, budget=1200, **limits)
    assert np.count_nonzero(result.x) <= 4
    assert all(5 in (*result.support, 5) for _ in limits.get("include", []))
    assert not np.isin(result.support, limits.get("exclude", [])).any()
    low, high = limits.get("bounds", (-np.inf, np.inf))
    assert ((result.x >= low) & (result.x <= high)).all()
    assert result.fun < fun(np.zeros(30))


def test_a_warm_start_goes_on_to_the_minimum_on_its_support():
    """Portfolio weights: F does not change with the size of x, so that a good start is close to flat."""
    rng = np.random.default_rng(0)
    R = rng.standard_normal((80, 20)) + 0.5 * rng.standard_normal((80, 1))
    C = np.cov(R.T)
    fun = lambda x: float(x @ C @ x / max(x.sum() ** 2, 1e-12))
    start = np.zeros(20)
    start[:4] = [0.4, 0.3, 0.2, 0.1]
    cold, _ = minimise(fun, start, 4, budget=2000, bounds=(0, 1))
    warm, _ = minimise(fun, np.round(cold.x, 2), 4, budget=2000, bounds=(0, 1))
    assert warm.fun <= cold.fun * (1 + 1e-6)
    for j in warm.support:
        for step in (1e-2, -1e-2, 1e-3, -1e-3):
            point = warm.x.copy()
            point[j] = np.clip(point[j] * (1 + step), 0, 1)
            assert fun(point) >= warm.fun * (1 - 1e-7)


def test_a_measured_hessian_predicts_exchanges_of_a_quadratic_exactly():
    rng = np.random.default_rng(4)
    M = rng.standard_normal((6, 6))
    A = M @ M.T + np.eye(6)
    x, b = np.array([1.0, -2.0, 0, 0, 0, 0]), rng.standard_normal(6)
    F = lambda z: 0.5 * z @ A @ z - b @ z
    hessian = MeasuredHessian(6)
    rows = np.array([0, 1, 3])
    for j in rows:
        hessian.add(rows, j, A[rows, j])
    assert not hessian.complete
    changes, points = hessian.exchanges(x, A @ x - b, np.array([0, 1]), 3, np.array([1]))
    assert np.flatnonzero(points[0]).tolist() == [1, 3]
    assert changes[0] == pytest.approx(F(points[0]) - F(x))
    assert changes[1] == np.inf  # coordinate 1 has to stay


@pytest.mark.parametrize("kink", [False, True])
def test_the_forecast_of_a_descent_pays_for_both_sides_of_its_first_gradient(kink):
    """Without the second side nothing can be gained, and the race would give the calls to another strategy."""
    told = Diagnosis(1e-13, False, 1.0, 1.0, 1.0, 1.0, False, kink)
    forecasts = list[int]()

    class Forecast(Program):
        def search(self, context: Context) -> Asks:
            forecasts.append(LocalDescent().forecast(context, told))
            yield from context.values([context.theta0])

    zt.minimize(lambda x: float(x @ x), 30, 3, budget=500, method=Forecast(), seed=0)
    assert forecasts[0] >= 30 * (1 + kink) + 3


@pytest.mark.parametrize(("known", "losses", "waits"), [(False, 0, False), (True, 0, True), (True, 2, False)])
def test_promising_slopes_wait_only_for_a_gauss_newton_model_that_has_been_tried_and_is_ahead(known, losses, waits):
    """All slopes of ten components on 30 coordinates cost 300 calls, those of the promising ones half of that."""
    at = SimpleNamespace(oracle=SimpleNamespace(m=10, coarse=False), context=SimpleNamespace(k=5), calls_available=1e4)
    assert SupportStep(known=known, losses=losses).models_scores(at) is waits
