"""Standard errors and confidence intervals of calibrated coefficients."""

from __future__ import annotations

import numpy as np
import pytest

from zerothresh.api.fit import Fit

DRAWS, ROWS, SIGMA = 600, 40, 0.3
DESIGN = np.random.default_rng(0).standard_normal((ROWS, 3)) * [1.0, 5.0, 0.2]
TRUTH = np.array([1.0, -2.0, 0.5])


class PseudoHuber:
    """A smooth robust loss: sqrt(1 + r^2) - 1."""

    def minimise(self, y):
        x = np.zeros(3)
        for _ in range(60):
            r = DESIGN @ x - y
            curvature = DESIGN.T @ (DESIGN / np.sqrt(1 + r**2)[:, None])
            x = x - np.linalg.solve(curvature, DESIGN.T @ self.derivative(r))
        return x

    def derivative(self, r):
        return r / np.sqrt(1 + r**2)

    def second(self, r):
        return (1 + r**2) ** -1.5


def fitted(y, loss=None):
    x = np.linalg.lstsq(DESIGN, y)[0] if loss is None else loss.minimise(y)
    return Fit(np.arange(3), x, DESIGN @ x - y, DESIGN, 1, loss)


@pytest.mark.parametrize("loss", [None, PseudoHuber()], ids=["squares", "robust"])
def test_intervals_hold_the_truth_as_often_as_they_say(loss):
    rng = np.random.default_rng(1)
    held = np.zeros(3)
    for _ in range(DRAWS):
        error = rng.standard_normal(ROWS) if loss is None else rng.standard_t(3, ROWS)
        low, high = fitted(DESIGN @ TRUTH + SIGMA * error, loss).intervals(0.9).T
        held += (low <= TRUTH) & (high >= TRUTH)
    three_sigma = 3 * np.sqrt(0.9 * 0.1 / DRAWS)
    slack = 0.0 if loss is None else 0.02  # the sandwich is asymptotic, and there are only 40 rows
    assert np.abs(held / DRAWS - 0.9).max() <= three_sigma + slack


def test_standard_errors_have_the_unit_of_their_coordinate():
    fit = fitted(DESIGN @ TRUTH + SIGMA * np.random.default_rng(2).standard_normal(ROWS))
    other = Fit(fit.support, 1e6 * fit.values, fit.residuals, 1e-6 * fit.jacobian, 1)
    assert other.standard_errors == pytest.approx(1e6 * fit.standard_errors)
    assert fit.noise == pytest.approx(SIGMA, rel=0.4)


def test_missing_residuals_are_left_out():
    y = DESIGN @ TRUTH + SIGMA * np.random.default_rng(2).standard_normal(ROWS)
    fit = fitted(y)
    holes = fit.residuals.copy()
    holes[::4] = np.nan
    there = np.isfinite(holes)
    shorter = Fit(fit.support, fit.values, fit.residuals[there], DESIGN[there], 1)
    assert np.array_equal(Fit(fit.support, fit.values, holes, DESIGN, 1).covariance, shorter.covariance)


@pytest.mark.parametrize(
    "jacobian",
    [DESIGN[:, [0, 0, 1]], DESIGN * [1.0, 0.0, 1.0], DESIGN[:3]],
    ids=["two columns alike", "no influence", "as many coefficients as residuals"],
)
def test_what_the_data_do_not_determine_is_nan(jacobian):
    fit = Fit(np.arange(3), TRUTH, np.full(len(jacobian), 0.1), jacobian, 1)
    assert np.isnan(fit.standard_errors).all()
    assert np.isnan(fit.intervals()).all()
    assert "nan" in str(fit)


@pytest.mark.parametrize("level", [0.0, 1.0, 1.5, "x", np.nan])
def test_a_level_is_a_probability(level):
    with pytest.raises(ValueError, match="level must be"):
        fitted(DESIGN @ TRUTH).intervals(level)


def test_the_table_can_be_read():
    text = str(fitted(DESIGN @ TRUTH + SIGMA * np.random.default_rng(2).standard_normal(ROWS)))
    assert text.splitlines()[0].startswith("coordinate")
    assert text.splitlines()[-1].startswith("40 residuals, standard deviation 0.")
    assert max(map(len, text.splitlines())) <= 80
