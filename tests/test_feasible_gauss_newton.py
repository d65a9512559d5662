"""Gauss-Newton within a sum: calls that return residuals, and shares that add up."""

from __future__ import annotations

import numpy as np
import pytest

import zerothresh as zt


def mixture(d=40, k=3, m=30, seed=0):
    """A nonlinear mixture of k of d ingredients, its true shares, and what was asked."""
    rng = np.random.default_rng(seed)
    A, truth = rng.random((m, d)), np.zeros(d)
    truth[rng.choice(d, k, replace=False)] = rng.dirichlet(np.full(k, 3.0))
    asked = []

    def simulate(x):
        asked.append(np.array(x))
        return np.exp(A @ x) - np.exp(A @ truth)

    return simulate, truth, asked


@pytest.mark.parametrize("seed", range(4))
def test_shares_are_found_with_little_more_than_a_call_per_coordinate(seed):
    simulate, truth, asked = mixture(seed=seed)
    found = zt.minimize(simulate, 40, 3, budget=70, outputs="residuals", constraint=zt.Simplex(), seed=seed)
    assert found.support.tolist() == np.flatnonzero(truth).tolist()
    assert found.fun < 1e-10
    assert found.x.sum() == pytest.approx(1.0, abs=1e-12)
    assert len(asked) == found.nfev <= 70
    assert np.allclose([x.sum() for x in asked], 1.0, atol=1e-9)  # differences keep the sum
    assert min(x.min() for x in asked) >= 0


def test_limits_of_shares_and_a_sum_within_a_range_are_kept():
    simulate, _, _ = mixture(seed=5)
    limits = zt.Budget((0.5, 1.5), 0.1, 0.45)
    found = zt.minimize(simulate, 40, 3, budget=150, outputs="residuals", constraint=limits, seed=0)
    shares = found.x[found.support]
    assert ((shares >= 0.1 - 1e-12) & (shares <= 0.45 + 1e-12)).all()
    assert 0.5 - 1e-9 <= shares.sum() <= 1.5 + 1e-9
    values_only = zt.minimize(lambda x: float(np.mean(simulate(x) ** 2)), 40, 3, budget=150, constraint=limits, seed=0)
    assert found.fun <= values_only.fun


def test_robust_losses_and_missing_outputs_are_taken():
    simulate, truth, _ = mixture(m=60, seed=2)

    def spoilt(x):
        out = simulate(x)
        out[:4] += 30.0  # outliers
        out[5] = np.nan
        return out

    told = {"outputs": "residuals", "constraint": zt.Simplex(), "on_nan": "mask", "seed": 0}
    found = zt.minimize(spoilt, 40, 3, budget=250, loss=zt.losses.Cauchy(0.01), **told)
    assert found.support.tolist() == np.flatnonzero(truth).tolist()
    assert np.allclose(found.x, truth, atol=1e-3)


def test_where_it_does_not_take_part_a_remark_says_so():
    simulate, _, asked = mixture(seed=1)
    told = {"budget": 60, "outputs": "residuals", "seed": 0}
    strict = zt.minimize(simulate, 40, 3, constraint=zt.Simplex(), strict=True, **told)
    assert all(np.count_nonzero(x) <= 3 for x in asked)
    ball = zt.minimize(simulate, 40, 3, constraint=zt.Ball(1.0), **told)
    for found in (strict, ball):
        assert any("F alone is used" in message for _, message in found.remarks)
    single = zt.minimize(simulate, 40, 3, constraint=zt.Simplex(), **told)
    assert not any("F alone is used" in message for _, message in single.remarks)


def test_a_different_order_and_unit_of_outputs_and_coordinates_finds_the_same():
    simulate, truth, _ = mixture(seed=3)
    order = np.random.default_rng(0).permutation(40)
    back = np.argsort(order)
    told = {"budget": 80, "outputs": "residuals", "constraint": zt.Simplex(), "seed": 0}
    plain = zt.minimize(simulate, 40, 3, **told)
    other = zt.minimize(lambda x: 1e3 * simulate(x[back])[::-1], 40, 3, **told)
    assert np.allclose(other.x[back], plain.x, atol=1e-6)
    assert np.allclose(plain.x, truth, atol=1e-6)
