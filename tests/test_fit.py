"""Standard errors and confidence intervals of calibrated coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import zerothresh as zt
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


@dataclass(frozen=True)
class OneStep(zt.Program):
    """One Gauss-Newton step of a linear model, and what it has learnt of the derivatives of the outputs."""

    def search(self, context):
        R = yield from context.outputs([context.theta0, *np.eye(context.d)])
        J = (R[1:] - R[0]).T
        context.linearised(np.arange(context.d), J)
        x = context.H(np.linalg.lstsq(J, -R[0])[0])
        r = yield from context.outputs([x])
        context.move(x, float(np.mean(r**2)))


MEASURED = DESIGN @ [1.0, 0.0, 0.5] + 0.01 * np.random.default_rng(3).standard_normal(ROWS)


def solved(**given):
    return zt.minimize(lambda x: DESIGN @ x - MEASURED, 3, 2, budget=10, method=OneStep(), outputs="residuals", **given)


def test_a_result_has_the_fit_on_its_support():
    result = solved()
    assert result.support.tolist() == [0, 2]
    assert np.allclose(result.jacobian, DESIGN[:, [0, 2]])
    assert np.array_equal(result.residuals, DESIGN @ result.x - MEASURED)
    assert result.fit.noise == pytest.approx(0.01, rel=0.5)
    low, high = result.fit.intervals(0.999).T
    assert (low < [1.0, 0.5]).all()
    assert (high > [1.0, 0.5]).all()
    assert result.fit.calls == 4  # the Jacobian was measured by the first round


def test_a_run_that_is_opened_again_has_the_same_fit(tmp_path):
    first, again = solved(run=tmp_path / "run"), solved(run=tmp_path / "run")
    assert again.nfev == first.nfev
    assert np.array_equal(again.jacobian, first.jacobian)
    assert again.fit.calls == first.fit.calls


def test_methods_that_measure_no_derivatives_have_no_fit():
    result = zt.minimize(
        lambda x: DESIGN @ x - MEASURED, 3, 2, budget=60, method=zt.FGZOHT(eta=0.01), outputs="residuals"
    )
    assert result.fit is None
    assert result.jacobian is None
    with pytest.raises(ValueError, match="there is no fit to draw"):
        result.plot(kind="fit")


def test_the_picture_shows_coefficients_data_and_residuals():
    figure = solved().plot(kind="fit", measured=MEASURED)
    left, middle, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["0", "2"]
    assert {line.get_label() for line in middle.get_lines()} == {"measured", "fitted"}
    assert right.get_ylabel() == "residual"
    with pytest.raises(ValueError, match="measured must have shape"):
        solved().plot(kind="fit", measured=[1.0])


def test_a_coefficient_on_its_bound_has_no_interval_and_the_others_take_it_as_known():
    result = solved(bounds=(None, [0.5, np.inf, np.inf]))
    assert result.x[0] == 0.5
    shown, at = result.fit, result.fit.support.tolist().index(0)
    assert shown.bound.tolist() == [j == at for j in range(shown.support.size)]
    assert np.isnan(shown.intervals()[at]).all()
    assert np.isfinite(np.delete(shown.standard_errors, at)).all()
    others = np.flatnonzero(~shown.bound)
    alone = Fit(shown.support[others], shown.values[others], shown.residuals, shown.jacobian[:, others], 1)
    assert np.array_equal(shown.covariance[np.ix_(others, others)], alone.covariance)
    assert "On a bound, where no standard error or interval holds: 0;" in str(shown)
    assert "On a bound" not in str(solved(bounds=(-9, 9)).fit)
