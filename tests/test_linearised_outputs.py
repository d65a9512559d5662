"""`auto` where one call returns many outputs: Gauss-Newton leads, and others compete where it predicts badly."""

from __future__ import annotations

import numpy as np
import pytest

import zerothresh as zt

D, ROWS = 40, 60
DATA = np.random.default_rng(8)
DESIGN, TRUTH = DATA.standard_normal((ROWS, D)), np.zeros(D)
TRUTH[[4, 19, 33]] = [1.5, -2.0, 1.0]
NAMES = {"diagnosis", "local descent", "active subset", "long steps", "corner swaps", "grouped slopes"}


def smooth(x):
    return np.tanh(0.3 * DESIGN @ x) - np.tanh(0.3 * DESIGN @ TRUTH)


def rough(x):
    """Outputs with an error that looks random, so that short differences show nothing else."""
    return 0.3 * DESIGN @ (x - TRUTH) + np.modf(1e4 * np.abs(np.sin(1e3 * (DESIGN @ x + 0.1))))[0]


def solved(fun, budget, seed=0, **given):
    return zt.minimize(fun, D, 3, outputs=given.pop("outputs", "residuals"), budget=budget, seed=seed, **given)


def test_gauss_newton_leads_from_the_first_call_and_ends_with_a_certificate():
    found = solved(smooth, 400)
    assert found.support.tolist() == [4, 19, 33]
    assert found.status is zt.Status.CONVERGED
    assert {name for _, name in found.stages} == {"gauss-newton"}
    assert found.nfev <= 1.05 * D + 20
    assert found.remarks[-1][1] == "gauss-newton: The residuals are zero up to rounding or their noise."
    assert found.fit.standard_errors.max() < 1e-6


def test_others_compete_where_the_linear_model_predicts_nothing():
    """The diagnosis sees the natural length of `rough` in about half of the draws: in 7 of 14, with a sigma of 1.9."""
    start, lower, badly = np.mean(rough(np.zeros(D)) ** 2), 0, 0
    for seed in range(14):
        found = solved(rough, 1500, seed)
        lower += found.fun < 0.5 * start
        names = [name for _, name in found.stages]
        assert names[0] == "gauss-newton"
        assert NAMES & set(names[1:])
        sentences = [text for _, text in found.remarks]
        assert "Other strategies compete for the rest of the budget." in sentences
        predicted_badly = any("The linear model of the outputs predicts badly" in text for text in sentences)
        assert predicted_badly or any("No exchange and no restart" in text for text in sentences)
        badly += predicted_badly
        assert found.nfev <= 1500
    assert lower >= 3  # two sigma below
    assert badly >= 7  # in the others, nothing that Gauss-Newton suggests lowers F any more


def test_the_point_returned_is_the_best_one_of_all_strategies():
    found = solved(rough, 600)
    assert found.fun == pytest.approx(np.mean(rough(found.x) ** 2), rel=1e-12)
    assert np.array_equal(found.residuals, rough(found.x))


def test_components_are_not_linearised():
    found = solved(lambda x: smooth(x) ** 2, 600, outputs="components")
    assert "gauss-newton" not in {name for _, name in found.stages}
    assert found.support.tolist() == [4, 19, 33]


def test_patience_ends_a_calibration_of_noisy_data():
    noisy = np.tanh(0.3 * DESIGN @ TRUTH) + 0.01 * np.random.default_rng(1).standard_normal(ROWS)
    found = solved(lambda x: np.tanh(0.3 * DESIGN @ x) - noisy, 3000, patience=100)
    assert found.support.tolist() == [4, 19, 33]
    assert found.nfev <= 400
    low, high = found.fit.intervals(0.999).T
    assert ((low < TRUTH[found.support]) & (TRUTH[found.support] < high)).all()


@pytest.mark.parametrize("given", [{"bounds": (-1.0, 2.0)}, {"include": [7]}, {"exclude": [19]}])
def test_constraints_hold_at_the_result(given):
    found = solved(smooth, 300, **given)
    assert np.count_nonzero(found.x) <= 3
    assert found.x.min() >= -1.0 or "bounds" not in given
    assert 7 in found.support or "include" not in given
    assert 19 not in found.support or "exclude" not in given


@pytest.mark.parametrize("method", ["auto", "gauss-newton"])
@pytest.mark.parametrize("k", [1, 5])
def test_where_all_coordinates_may_be_non_zero_the_start_may_be_zero(method, k):
    A, truth = np.random.default_rng(0).standard_normal((30, k)), np.arange(1.0, k + 1)
    with pytest.warns(UserWarning, match="nothing is thresholded"):
        found = zt.minimize(lambda x: A @ (x - truth), k, k, outputs="residuals", budget=100, method=method, seed=0)
    assert found.success
    assert np.allclose(found.x, truth, atol=1e-6)
    assert found.nfev < k + 6
    assert found.fit.support.size == k


def test_a_result_without_non_zeros_has_no_fit_and_prints():
    found = zt.minimize(lambda x: np.ones(4), 6, 2, outputs="residuals", include=[0], budget=40, seed=0)
    assert not found.success
    assert found.fit is None
    assert "nothing better" in str(found)


def test_columns_that_look_like_noise_are_not_measured_again_at_the_same_points():
    A, truth, points = np.abs(np.random.default_rng(1).standard_normal((50, 30))), np.zeros(30), []
    truth[[3, 9, 15]] = -1, -2, -0.5

    def residuals(x):
        points.append(x.tobytes())
        return A @ (x - truth)

    found = zt.minimize(residuals, 30, 3, outputs="residuals", budget=300, seed=0)
    assert found.support.tolist() == [3, 9, 15]
    assert len(points) == len(set(points)) == found.nfev < 40


@pytest.mark.parametrize("seed", range(8))
def test_bounds_may_fix_coordinates_at_zero(seed):
    rng = np.random.default_rng(seed)
    A, truth, high = rng.standard_normal((20, 8)), rng.standard_normal(8), np.where(rng.random(8) < 0.4, 0.0, 2.0)
    found = zt.minimize(lambda x: A @ (x - truth), 8, 3, outputs="residuals", bounds=(-high, high), budget=60, seed=0)
    assert found.success
    assert not found.x[high == 0].any()


@pytest.mark.parametrize("method", ["auto", "gauss-newton"])
@pytest.mark.parametrize("unit", [1.0, 1e-3])
def test_the_value_of_f_is_that_of_the_residuals(method, unit):
    """Steps of the method state F themselves, in the unit of the run."""
    noisy = np.tanh(0.3 * DESIGN @ TRUTH) + 0.05 * np.random.default_rng(1).standard_normal(ROWS)
    found = solved(lambda x: unit * (np.tanh(0.3 * DESIGN @ x) - noisy), 250, method=method)
    assert found.fun == pytest.approx(np.mean(found.residuals**2), rel=1e-12)
    known = np.isfinite(found.trace.fun)
    assert known.any()
    assert found.trace.fun[known].min() >= found.fun * (1 - 1e-12)
    assert found.trace.fun[known][0] <= np.mean((unit * noisy) ** 2) * (1 + 1e-12)
