"""The losses: their values, and that each derivative is the derivative of what it says."""

from __future__ import annotations

import numpy as np
import pytest

from zerothresh import losses

R = np.array([-7.3, -1.9, -0.8, -0.31, 0.07, 0.45, 0.9, 2.2, 5.1])
COUNTS = np.array([0.0, 1.0, 4.0, 2.0, 0.0, 7.0, 3.0, 9.0, 160.0])
ALL = [
    losses.Squared(),
    losses.Huber(),
    losses.Huber(0.4),
    losses.Cauchy(),
    losses.Cauchy(0.3),
    losses.Quantile(),
    losses.Quantile(0.9),
    losses.Poisson(COUNTS),
    losses.Itself(),
    losses.Custom(lambda r: np.log(np.cosh(r)), lambda r: np.tanh(r), lambda r: 1 - np.tanh(r) ** 2),
    losses.Custom(lambda r: np.log(np.cosh(r)), lambda r: np.tanh(r)),
    losses.Custom(lambda r: np.log(np.cosh(r))),
]
each = pytest.mark.parametrize("loss", ALL, ids=[f"{type(loss).__name__}{place}" for place, loss in enumerate(ALL)])


@each
def test_the_derivative_is_that_of_the_value(loss):
    h = 1e-6
    by_differences = (loss.value(R + h) - loss.value(R - h)) / (2 * h)
    assert np.allclose(loss.derivative(R), by_differences, rtol=1e-6, atol=1e-7)


@each
def test_the_second_derivative_is_that_of_the_first(loss):
    h = 1e-5
    by_differences = (loss.derivative(R + h) - loss.derivative(R - h)) / (2 * h)
    assert np.allclose(loss.second(R), by_differences, rtol=1e-4, atol=1e-4)


@each
def test_rows_are_calls_and_a_missing_output_stays_missing(loss):
    table = np.stack([R, R[::-1], np.where(R > 1, np.nan, R)])
    for function in (loss.value, loss.derivative, loss.second):
        found = function(table)
        assert found.shape == table.shape
        assert np.array_equal(np.isnan(found), np.isnan(table))
    assert np.array_equal(loss.value(table)[0], loss.value(R))


@pytest.mark.parametrize("loss", [losses.Huber(0.5), losses.Cauchy(0.5)], ids=repr)
def test_robust_losses_are_the_square_near_0_and_below_it_elsewhere(loss):
    small = np.array([1e-5, -1e-4])
    assert np.allclose(loss.value(small), small**2, rtol=1e-6)
    assert (loss.value(R) <= R**2).all()
    assert loss.value(np.array([100.0]))[0] < 1e3


def test_the_pinball_loss_is_smallest_at_the_quantile():
    data = np.random.default_rng(0).exponential(size=2001)
    levels = np.quantile(data, [0.1, 0.5, 0.9])
    for q, level in zip((0.1, 0.5, 0.9), levels, strict=True):
        values = [losses.Quantile(q).value(c - data).mean() for c in levels]
        assert values[int(np.argmin(values))] == losses.Quantile(q).value(level - data).mean()


def test_the_poisson_loss_is_0_where_the_rate_is_the_count_and_above_0_elsewhere():
    y = COUNTS[COUNTS > 0]
    assert np.allclose(losses.Poisson(y).value(np.log(y)), 0, atol=1e-12)
    assert (losses.Poisson(COUNTS).value(R) >= 0).all()
    assert losses.Poisson([0]).value(np.array([-800.0]))[0] == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: losses.Huber(0), "delta must be"),
        (lambda: losses.Huber("x"), "delta must be"),
        (lambda: losses.Cauchy(-1), "scale must be"),
        (lambda: losses.Quantile(1), "between 0 and 1"),
        (lambda: losses.Poisson([1, -2]), "at least 0"),
        (lambda: losses.Poisson([[1]]), "vector of numbers"),
        (lambda: losses.Poisson("abc"), "vector of numbers"),
        (lambda: losses.loss_of(3.5), "loss must be one of"),
        (lambda: losses.loss_of("poisson"), "needs the counts"),
        (lambda: losses.loss_of(lambda: 1), "signature"),
        (lambda: losses.Custom(lambda r: r.sum()).value(R), "one real number per entry"),
        (lambda: losses.Custom(lambda r: None).value(R), "one real number per entry"),
        (lambda: losses.Custom(lambda r: r, lambda r: r[:2]).derivative(R), "the derivative of the loss"),
    ],
)
def test_what_cannot_be_a_loss_is_refused_with_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_names_objects_and_functions_become_losses():
    assert losses.loss_of(None) == losses.loss_of("squared") == losses.Squared()
    assert losses.loss_of("quantile") == losses.Quantile(0.5)
    huber = losses.Huber(2.0)
    assert losses.loss_of(huber) is huber

    class Mine:
        def value(self, r):
            return r**4

        def derivative(self, r):
            return 4 * r**3

    mine = losses.loss_of(Mine())
    assert np.array_equal(mine.derivative(R), 4 * R**3)
    assert np.allclose(mine.second(R), 12 * R**2, rtol=1e-6)
    assert np.allclose(losses.loss_of(np.abs).derivative(R), np.sign(R))
