"""Local descent where all coordinates may be non-zero: ill-conditioned bowls, and what may be called their minimum."""

from __future__ import annotations

import numpy as np
import pytest

import zerothresh as zt

D = 20
pytestmark = pytest.mark.filterwarnings("ignore:k = d")


def bowl(seed, condition):
    rng = np.random.default_rng(seed)
    Q, centre = np.linalg.qr(rng.standard_normal((D, D)))[0], rng.standard_normal(D)
    H = Q @ np.diag(np.geomspace(1.0, condition, D)) @ Q.T
    return lambda x: float((x - centre) @ H @ (x - centre))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("condition", [1e2, 1e4])
def test_ill_conditioned_bowls_take_about_one_gradient_per_coordinate(seed, condition):
    """Conjugate gradients need 20 gradients of 21 calls; twice that, and the second derivatives, are 1,100."""
    fun = bowl(seed, condition)
    found = zt.minimize(fun, D, D, budget=1100, seed=seed, progress=False)
    assert found.fun < 1e-8 * fun(np.zeros(D))


@pytest.mark.parametrize("seed", range(5))
def test_what_is_certified_is_the_minimum(seed):
    fun = bowl(seed, 1e5)
    found = zt.minimize(fun, D, D, budget=5000, seed=seed, progress=False)
    assert found.fun < 1e-9 * fun(np.zeros(D))
    if found.status is zt.Status.CONVERGED:
        assert found.fun < 1e-10 * fun(np.zeros(D))


def test_a_few_slopes_that_stand_out_of_the_noise_are_enough():
    """log(1 + |x - t|^2): 4 of 60 slopes are steep, and F bends downwards on the way; 5 of 6 draws."""
    solved = 0
    for seed in range(6):
        rng, noise = np.random.default_rng(seed), np.random.default_rng(100 + seed)
        truth = np.zeros(60)
        truth[rng.choice(60, 4, replace=False)] = rng.choice([-1, 1], 4) * rng.uniform(1, 3, 4)

        def exact(x, truth=truth):
            return float(np.log1p((x - truth) @ (x - truth)))

        def fun(x, exact=exact, noise=noise):
            return exact(x) + 0.05 * noise.standard_normal()

        found = zt.minimize(fun, 60, 4, budget=3000, seed=seed, progress=False)
        solved += exact(found.x) < 0.15 * exact(np.zeros(60))
    assert solved >= 5
