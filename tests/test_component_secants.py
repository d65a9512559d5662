"""The Hessian of F from the changes of the components' gradients over a few steps."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.methods.auto.models.component_secants import ComponentSecants


def components(seed, m=12, c=8, rank=2):
    """Random convex quadratic components of a low rank; returns their Hessians, (m, c, c)."""
    V = np.random.default_rng(seed).standard_normal((m, rank, c))
    return np.einsum("mri,mrj->mij", V, V)


def secants(H, steps):
    """The changes of the gradients of quadratic components over steps from one point to the next."""
    C = np.arange(H.shape[1])
    known, gradients = ComponentSecants(C), np.zeros(H.shape[:2])
    for step in steps:
        after = gradients + H @ step
        known, gradients = known.after(C, step, gradients, after), after
    return known


def nothing(H):
    """No directions and no curvatures along them."""
    return np.zeros(H.shape[:2]), np.zeros(len(H))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_as_many_steps_as_the_components_have_scores_tell_the_hessian_and_fewer_do_not(rank):
    H = components(0, rank=rank)
    steps = np.random.default_rng(1).standard_normal((rank, H.shape[1]))
    mean = H.mean(axis=0)
    errors = [np.linalg.norm(secants(H, some).hessian(*nothing(H)) - mean) for some in (steps, steps[1:])]
    assert errors[0] < 0.3 * errors[1]  # what is not told from 0 along the steps is left out


def test_what_convex_components_tell_never_exceeds_their_hessian():
    H = components(2, rank=4)
    for count in (1, 2, 3):
        steps = np.random.default_rng(count).standard_normal((count, H.shape[1]))
        rest = H.mean(axis=0) - secants(H, steps).hessian(*nothing(H))
        assert np.linalg.eigvalsh(rest)[0] > -1e-9 * np.linalg.norm(H)


def test_components_that_joined_later_are_modelled_by_their_gradients_alone():
    H = components(3, rank=1)
    C, step = np.arange(H.shape[1]), np.random.default_rng(4).standard_normal(H.shape[1])
    half = ComponentSecants(C).after(C, step, np.zeros((6, C.size)), H[:6] @ step)
    rows = np.linalg.eigh(H)[1][:, :, -1]  # of unit length
    curvatures = np.einsum("mi,mij,mj->m", rows, H, rows)
    np.testing.assert_allclose(half.hessian(rows, curvatures), H.mean(axis=0), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("rank", "believed"), [(1, False), (3, True)])
def test_changes_are_not_believed_where_gradients_foretell_the_newest_one_better(rank, believed):
    """Gradients tell everything about components of one score, and old changes were measured where F is steeper."""
    H = components(5, rank=rank)
    steps = np.random.default_rng(6).standard_normal((3, H.shape[1]))
    C, zero = np.arange(H.shape[1]), np.zeros(H.shape[:2])
    known = ComponentSecants(C)
    for step, steeper in zip(steps, (1.2, 1.1, 1.0), strict=True):
        known = known.after(C, step, zero, steeper * H @ step)
    rows = np.linalg.eigh(H)[1][:, :, -1]
    curvatures = np.einsum("mi,mij,mj->m", rows, H, rows)
    assert bool(len(known.believed(rows, curvatures))) is believed


def test_a_change_on_other_coordinates_or_without_a_step_is_left_out():
    C, G = np.arange(4), np.ones((3, 4))
    known = ComponentSecants(C)
    assert not len(known.after(C, np.zeros(4), G, 2 * G))
    assert not len(known.after(C[:2], np.ones(4), G[:, :2], G[:, :2]))
    assert not len(known.after(C, np.ones(4), np.empty((0, 0)), G))
    assert len(known.after(C, np.ones(4), G, 2 * G)) == 1


def test_a_portfolio_of_three_scores_per_component_is_solved_with_few_gradients():
    """Every component depends on its own return, the mean return and the sum of the weights."""
    rng = np.random.default_rng(7)
    n, d, k = 40, 20, 4
    R = rng.uniform(0.0, 0.3, d) + 0.5 * rng.standard_normal((n, 1)) + rng.standard_normal((n, d))

    def fun(w, i):
        z, m = float(R[i] @ w), float(R.mean(axis=0) @ w)
        return -z + 0.5 * (z - m) ** 2 + 0.5 * (float(w.sum()) - 1) ** 2

    H = np.cov(R.T, bias=True) + 1.0
    b = R.mean(axis=0) + 1.0
    best = min(-0.5 * b[list(S)] @ np.linalg.solve(H[np.ix_(S, S)], b[list(S)]) for S in combinations(range(d), k))
    result = zt.minimize(fun, d, k, n=n, budget=8 * n * d, seed=0)
    assert result.fun - 0.5 < 0.999 * best
