"""A step that did not lower F is no sign of a kink: how F departs from its slope is."""

from __future__ import annotations

import numpy as np
import pytest

import zerothresh as zt

D, K = 40, 5


def kinks(found):
    return [text for _, text in found.remarks if "has kinks" in text]


@pytest.mark.parametrize("seed", range(6))
def test_correlated_columns_are_not_taken_for_kinks(seed):
    """Many supports are nearly as good, so that models promise much where no step lowers F."""
    rng = np.random.default_rng(seed)
    mixed = 0.9 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D)))
    X, truth = rng.standard_normal((80, D)) @ np.linalg.cholesky(mixed).T, np.zeros(D)
    truth[rng.choice(D, K, replace=False)] = rng.choice([-1, 1], K) * rng.uniform(0.5, 1.5, K)
    y = X @ truth
    found = zt.minimize(lambda x: float(np.mean((X @ x - y) ** 2)), D, K, budget=2500, seed=seed, progress=False)
    assert not kinks(found)
    assert found.support.tolist() == np.flatnonzero(truth).tolist()


def test_a_kink_away_from_the_start_is_seen():
    """The larger one of two bowls: the minimum lies where they meet, at a kink."""
    seen = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        one, other = np.zeros(D), np.zeros(D)
        chosen = rng.choice(D, K, replace=False)
        one[chosen], other[chosen] = rng.uniform(1, 2, K), rng.uniform(-2, -1, K)

        def fun(x, one=one, other=other):
            return max(float((x - one) @ (x - one)), 2 * float((x - other) @ (x - other)))

        seen += bool(kinks(zt.minimize(fun, D, K, budget=2500, seed=seed, progress=False)))
    assert seen >= 5
