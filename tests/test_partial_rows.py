"""Single entries of rows, where the budget does not pay for whole rows: what is asked, and what is found."""

from __future__ import annotations

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.methods.auto.models.entry_screen import EntryScreen, shrunk_sizes


def regression(seed, n, d, k, noise, unit=1.0, offset=0.0):
    """Return the coordinates that matter, and the components of a least-squares regression."""
    rng = np.random.default_rng(seed)
    X, truth = rng.standard_normal((n, d)), np.zeros(d)
    support = np.sort(rng.choice(d, k, replace=False))
    truth[support] = rng.choice([-1.0, 1.0], k) * rng.uniform(1, 2, k)
    y = X @ truth + noise * rng.standard_normal(n)
    return support, lambda P, I: unit * (0.5 * (np.einsum("bd,bd->b", P, X[I]) - y[I]) ** 2 + offset)


def solve(f, n, d, k, budget, **options):
    return zt.minimize(f, d, k, n=n, budget=budget, seed=0, vectorized=True, progress=False, **options)


@pytest.mark.parametrize("seed", range(3))
def test_the_coordinates_that_matter_are_found_with_a_third_of_all_entries(seed):
    n, d, k = 200, 1000, 5
    support, f = regression(seed, n, d, k, noise=1.0)
    result = solve(f, n, d, k, budget=65_000)
    assert ("single index") in [name for _, name in result.stages]
    assert np.isin(support, np.flatnonzero(result.x)).sum() >= k - 1


def test_the_start_counts_towards_the_support():
    n, d, k = 200, 1000, 5
    support, f = regression(0, n, d, k, noise=1.0)
    x0 = np.zeros(d)
    x0[[support[0], (support[0] + 1) % d]] = 1.0
    result = zt.minimize(f, x0, k, n=n, budget=65_000, seed=0, vectorized=True, progress=False)
    assert np.count_nonzero(result.x) <= k
    assert np.isin(support, np.flatnonzero(result.x)).sum() >= k - 1


def test_neither_unit_nor_offset_of_F_changes_a_decision():
    n, d, k = 150, 800, 3
    plain = solve(regression(0, n, d, k, noise=1.0)[1], n, d, k, budget=40_000)
    other = solve(regression(0, n, d, k, noise=1.0, unit=128.0, offset=-16.0)[1], n, d, k, budget=40_000)
    assert np.array_equal(np.flatnonzero(plain.x), np.flatnonzero(other.x))
    assert np.allclose(plain.x, other.x, rtol=1e-3)


def test_odds_rise_with_a_slope_and_fall_without_one():
    rng, n, d = np.random.default_rng(0), 400, 300
    entries = rng.standard_normal((n, d))
    entries[:, 7] += 0.4
    screen = EntryScreen(n, d, np.ones(n))
    for row in range(250):  # a score of about 6
        screen.add(np.full(d, row), np.arange(d), entries[row])
    odds = screen.log_odds()
    assert np.argmax(odds) == 7
    assert odds[7] > 0
    assert np.median(odds) < 0


def test_components_with_the_largest_gradients_are_asked_first_and_known_entries_never_again():
    n, d = 30, 5
    screen = EntryScreen(n, d, np.ones(n))
    ratio = np.linspace(0.1, 1.0, n)
    screen.reweigh(ratio)
    assert screen.missing(np.arange(d)).tolist() == [n - 1] * d
    screen.add(np.full(2, n - 1), np.array([1, 3]), np.ones(2))
    assert screen.missing(np.arange(d)).tolist() == [n - 1, n - 2, n - 1, n - 2, n - 1]


def test_weights_of_a_new_point_apply_to_what_was_seen_before():
    rng, n, d = np.random.default_rng(1), 50, 20
    entries, ratio = rng.standard_normal((n, d)), rng.uniform(0, 1, n)
    before, after = EntryScreen(n, d, np.ones(n)), EntryScreen(n, d, np.ones(n))
    after.reweigh(ratio)
    for row in range(n):
        before.add(np.full(d, row), np.arange(d), entries[row])
        after.add(np.full(d, row), np.arange(d), entries[row])
    before.reweigh(ratio)
    terms = ratio[:, None] * entries
    expected = np.abs(terms.sum(axis=0)) / np.sqrt((terms**2).sum(axis=0))
    assert np.allclose(before.scores(), expected)
    assert np.allclose(after.scores(), expected)
    assert np.array_equal(before.columns(np.array([4, 9])), entries[:, [4, 9]])
    assert before.complete().size == d


def test_chance_alone_makes_no_component_look_large():
    """With 2,000 columns the share that chance explains is known to about 0.05."""
    rng = np.random.default_rng(2)
    alike = rng.standard_normal((3, 2000))
    assert shrunk_sizes(alike).std() < 0.25 * np.sqrt(np.square(alike).mean(axis=0)).std()
    true = np.where(np.arange(2000) % 2, 0.1, 3.0)
    sizes = shrunk_sizes(true * alike)
    assert sizes[true > 1].mean() > 1.4 * sizes[true < 1].mean()
