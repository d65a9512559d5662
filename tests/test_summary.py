"""Means, medians, ratios and shares with their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from zerothresh.comparison import summary as statistics


@pytest.mark.parametrize(
    ("successes", "of", "low", "high"),
    [  # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_a_share_has_wilsons_interval(successes, of, low, high):
    share = statistics.share(successes, of)
    assert share.value == successes / of
    assert (share.low, share.high) == pytest.approx((low, high), abs=5e-5)
    mirrored = statistics.share(of - successes, of)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((share.low, share.high))


def test_a_share_of_nothing_is_not_known():
    assert np.isnan(statistics.share(0, 0).value)


def test_the_same_values_have_the_same_interval_and_it_is_about_the_mean():
    values = np.random.default_rng(0).normal(3.0, 2.0, 50)
    one = statistics.mean(values)
    assert one == statistics.mean(values.tolist())
    half = 2.0096 * values.std(ddof=1) / np.sqrt(50)  # Student's t with 49 degrees of freedom
    assert one.value == values.mean()
    assert (one.value - one.low, one.high - one.value) == pytest.approx((half, half), rel=0.1)
    assert one.low <= one.value - half * 0.9999
    assert statistics.mean([2.0, 2.0, 2.0]) == statistics.Estimate(2.0, 2.0, 2.0)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, np.inf, 2.0]])
def test_too_few_or_infinite_values_leave_the_mean_without_an_interval(values):
    found = statistics.mean(values)
    assert (found.low, found.high) == (-np.inf, np.inf)
    assert found.value == pytest.approx({0: np.nan, 1: 1.0, 3: np.inf}[len(values)], nan_ok=True)


@pytest.mark.parametrize(
    ("size", "low", "high"),
    [(5, -np.inf, np.inf), (6, 1, 6), (8, 1, 8), (9, 2, 8), (20, 6, 15), (50, 18, 33), (100, 40, 61)],
)
def test_a_median_lies_between_the_values_of_the_sign_tests_table(size, low, high):
    values = np.random.default_rng(0).permutation(np.arange(1.0, size + 1))
    assert statistics.median(values) == statistics.Estimate((size + 1) / 2, low, high)


def test_a_few_infinite_values_leave_the_median_finite():
    found = statistics.median([1.0, 2.0, 3.0, 4.0, 5.0, np.inf, np.inf])
    assert found == statistics.Estimate(4.0, 1.0, np.inf)
    assert np.isnan(statistics.median([1.0, np.nan]).value)
    assert np.isnan(statistics.median([]).value)


@pytest.mark.parametrize(
    ("above", "below", "value"),
    [
        ([2.0, 8.0, 9.0], [1.0, 2.0, 3.0], 3.0),
        ([np.inf] * 3, [1.0, 2.0, 3.0], np.inf),
        ([1.0, 2.0, 3.0], [np.inf] * 3, 0.0),
        ([1.0] * 3, [0.0] * 3, np.inf),
        ([np.inf, 2.0, 2.0], [np.inf, 1.0, 1.0], 2.0),
        ([np.inf, np.inf, 2.0], [np.inf, np.inf, 1.0], np.nan),  # mostly alike: nothing is told
        ([0.0] * 3, [0.0] * 3, np.nan),
        ([np.nan, 1.0, 1.0], [1.0] * 3, np.nan),
        ([], [], np.nan),
    ],
)
def test_a_ratio_is_taken_pair_by_pair_and_copes_with_infinities_and_zeros(above, below, value):
    found = statistics.ratio(above, below)
    assert found.value == pytest.approx(value, nan_ok=True)
    assert not found.low > found.high


def test_a_difference_is_taken_pair_by_pair():
    found = statistics.difference([11.0, 102.0, 1003.0], [10.0, 100.0, 1000.0])
    assert found.value == 2.0
    assert found == statistics.mean([1.0, 2.0, 3.0])
    assert np.isnan(statistics.difference([np.inf, 1.0], [np.inf, 1.0]).value)


def test_a_few_equal_differences_do_not_show_how_much_they_vary():
    few = statistics.difference([1.0] * 3, [0.9] * 3)
    assert (few.value, few.low, few.high) == (pytest.approx(0.1), -np.inf, np.inf)
    assert statistics.difference([1.0] * 6, [0.9] * 6).low == pytest.approx(0.1)
    assert np.isfinite(statistics.difference([1.0, 1.1, 1.2], [0.9] * 3).low)
