"""Best-subset selection: exact for small models, exact costs of exchanges, and zeros for invalid input."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from zerothresh.constraint import splicing


def model(seed, d, rank=None, spread=1.0):
    """Return a positive (semi)definite A and a b in its range."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rank or 2 * d, d)) * np.exp(rng.uniform(-spread, spread, d))
    return X.T @ X / len(X), X.T @ rng.standard_normal(len(X)) / len(X)


def value(A, b, x):
    return 0.5 * float(x @ A @ x) - float(b @ x)


def minimum(A, b, S):
    """Return the minimum on a support, by its definition."""
    S = list(S)
    return -0.5 * float(b[S] @ np.linalg.solve(A[np.ix_(S, S)], b[S]))


def enumerated(A, b, k, forced=()):
    return min(minimum(A, b, S) for S in combinations(range(b.size), k) if set(forced) <= set(S))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("k", [1, 3, 5, 8])
def test_small_models_are_solved_exactly(seed, k):
    A, b = model(seed, 8)
    x = splicing.best_subset(A, b, k)
    assert np.count_nonzero(x) <= k
    assert value(A, b, x) == pytest.approx(enumerated(A, b, k), rel=1e-9)


def test_exchanges_find_the_optimum_of_a_larger_model_nearly_always(monkeypatch):
    """From three starts, at most 8 of 100 models end above the optimum, and none by more than 5 %."""
    monkeypatch.setattr(splicing, "MAX_ENUMERATED_SUPPORTS", 0)
    missed = 0
    for seed in range(100):
        A, b = model(seed, 10)
        best, found = enumerated(A, b, 3), value(A, b, splicing.best_subset(A, b, 3, starts=[np.array([0, 1, 2])]))
        assert best * (1 + 1e-9) <= found <= 0.95 * best
        missed += found > best * (1 - 1e-9)
    assert missed <= 8


@pytest.mark.parametrize("max_enumerated", [0, 4000])
@pytest.mark.parametrize("forced", [[5], [1, 6], [0, 1, 6]])
@pytest.mark.parametrize("starts", [[], [[2, 4, 5]], [[2]]])
def test_forced_coordinates_are_in_the_support_and_the_others_are_optimal(max_enumerated, forced, starts, monkeypatch):
    monkeypatch.setattr(splicing, "MAX_ENUMERATED_SUPPORTS", max_enumerated)
    A, b = model(4, 8)
    x = splicing.best_subset(A, b, 3, forced=np.array(forced), starts=[np.array(start) for start in starts])
    assert set(forced) <= set(np.flatnonzero(x).tolist())
    assert np.count_nonzero(x) == 3
    assert value(A, b, x) == pytest.approx(enumerated(A, b, 3, forced), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_cost_of_an_exchange_is_the_difference_of_two_minima(seed):
    A, b = model(seed, 7)
    S = np.array([4, 0, 2])
    change, here = splicing.exchange_costs(A, b, S), minimum(A, b, S)
    assert np.isinf(change[S]).all()
    for j in set(range(7)) - set(S.tolist()):
        for a in range(3):
            T = S.copy()
            T[a] = j
            assert change[j, a] == pytest.approx(minimum(A, b, T) - here, rel=1e-7, abs=1e-12)


def test_a_single_given_start_is_improved_and_never_worsened(monkeypatch):
    monkeypatch.setattr(splicing, "MAX_ENUMERATED_SUPPORTS", 0)
    for seed in range(20):
        A, b = model(seed, 12)
        start = np.array([1, 5, 9])
        x = splicing.best_subset(A, b, 3, starts=[start], only_given_starts=True)
        assert value(A, b, x) <= minimum(A, b, start) * (1 - 1e-12)
        assert np.isinf(splicing.exchange_costs(A, b, np.flatnonzero(x))).any()


@pytest.mark.parametrize("max_enumerated", [0, 4000])
@pytest.mark.parametrize("c", [1e-100, 1e-6, 1e6, 1e100])
def test_the_unit_of_the_values_and_of_the_coordinates_does_not_matter(max_enumerated, c, monkeypatch):
    monkeypatch.setattr(splicing, "MAX_ENUMERATED_SUPPORTS", max_enumerated)
    A, b = model(3, 8)
    x, root = splicing.best_subset(A, b, 3), np.sqrt(c)
    with np.errstate(all="ignore"):  # as in a run
        np.testing.assert_allclose(splicing.best_subset(c * A, c * b, 3), x, rtol=1e-8)
        np.testing.assert_allclose(splicing.best_subset(c * A, root * b, 3) * root, x, rtol=1e-8)


@pytest.mark.parametrize("max_enumerated", [0, 4000])
def test_the_order_of_the_coordinates_does_not_matter(max_enumerated, monkeypatch):
    monkeypatch.setattr(splicing, "MAX_ENUMERATED_SUPPORTS", max_enumerated)
    A, b = model(6, 9)
    order = np.random.default_rng(0).permutation(9)
    moved = splicing.best_subset(A[np.ix_(order, order)], b[order], 3)
    np.testing.assert_allclose(moved, splicing.best_subset(A, b, 3)[order], rtol=1e-8)


@pytest.mark.parametrize("max_enumerated", [0, 4000])
def test_a_singular_model_is_solved(max_enumerated, monkeypatch):
    monkeypatch.setattr(splicing, "MAX_ENUMERATED_SUPPORTS", max_enumerated)
    A, b = model(0, 8, rank=2)
    A[:, 3], A[3], b[3] = A[:, 4], A[4], b[4]  # two coordinates are identical
    x = splicing.best_subset(A, b, 4)
    assert np.isfinite(x).all()
    assert np.count_nonzero(x) <= 4
    assert value(A, b, x) <= 0.999 * enumerated(A + 1e-9 * np.eye(8), b, 2)  # two non-zeros are enough at rank 2


@pytest.mark.parametrize("max_enumerated", [0, 4000])
@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_zero_and_non_finite_models_give_zeros(max_enumerated, bad, monkeypatch):
    monkeypatch.setattr(splicing, "MAX_ENUMERATED_SUPPORTS", max_enumerated)
    A, b = model(0, 6)
    assert not splicing.best_subset(np.full((6, 6), bad), b, 2).any()
    assert not splicing.best_subset(A, np.full(6, bad), 2).any()
    one = A.copy()
    one[0, 1] = bad
    x = splicing.best_subset(one, b, 2)
    assert np.isfinite(x).all()
    assert np.count_nonzero(x) <= 2


@pytest.mark.parametrize("max_enumerated", [0, 4000])
def test_coordinates_without_influence_do_no_harm(max_enumerated, monkeypatch):
    """Rows of zeros are those of coordinates that F does not depend on."""
    monkeypatch.setattr(splicing, "MAX_ENUMERATED_SUPPORTS", max_enumerated)
    A, b = model(1, 8)
    A[2:], A[:, 2:], b[2:] = 0.0, 0.0, 0.0
    for k in (1, 2, 5, 8):
        x = splicing.best_subset(A, b, k)
        assert np.isfinite(x).all()
        assert value(A, b, x) == pytest.approx(enumerated(A[:2, :2], b[:2], min(k, 2)), rel=1e-6)


def test_a_k_above_d_counts_as_d():
    A, b = model(2, 4)
    np.testing.assert_allclose(splicing.best_subset(A, b, 9), np.linalg.solve(A, b), rtol=1e-6)
    np.testing.assert_allclose(splicing.best_subset(A[:1, :1], b[:1], 1), b[:1] / A[0, 0], rtol=1e-6)
