"""The arm for fewer calls than coordinates: what it finds, that nothing it returns is worse, and what it keeps to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.methods.auto.arms.grouped_slopes import GroupedSlopes
from zerothresh.methods.auto.diagnosis import diagnose
from zerothresh.methods.auto.models.message_passing import SignRows, hadamard_transform, large_entries
from zerothresh.methods.auto.models.signed_groups import SignedGroups, signed_steps
from zerothresh.methods.auto.moves.component_sample import ComponentSample
from zerothresh.methods.auto.moves.distilled_step import _agreement


@dataclass(frozen=True)
class GroupedOnly(zt.Program):
    """The diagnosis, and then this arm alone."""

    def search(self, context):
        diagnosis = yield from diagnose(context)
        context.random = diagnosis.random
        ended = yield from GroupedSlopes().search(context, diagnosis)
        context.remark(ended.reason)


def solve(fun, d, k, budget, seed=0, **options):
    return zt.minimize(
        fun, d, k, budget=budget, method=GroupedOnly(), seed=seed, vectorized=True, progress=False, **options
    )


def least_squares(seed, d=500, k=5, rows=250, **_):
    rng = np.random.default_rng(seed)
    x = np.zeros(d)
    x[rng.choice(d, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(0.5, 1.5, k)
    A = rng.standard_normal((rows, d)) / np.sqrt(rows)
    return lambda X: 0.5 * np.sum(((X - x) @ A.T) ** 2, axis=1), x


def start(fun, d):
    return float(fun(np.zeros((1, d)))[0])


# Models.


def test_signs_in_rows_are_those_of_their_products():
    rng = np.random.default_rng(0)
    rows = SignRows(rng.permutation(64)[:40], rng.choice([-1.0, 1.0], 40), 64, 1 + rng.permutation(63)[:9])
    matrix = np.array([rows.row(i) for i in range(9)])
    v, z = rng.standard_normal(40), rng.standard_normal(9)
    assert np.isin(matrix, (-1, 1)).all()
    np.testing.assert_allclose(rows.times(v), matrix @ v)
    np.testing.assert_allclose(rows.transposed_times(z), matrix.T @ z)
    np.testing.assert_allclose(hadamard_transform(hadamard_transform(v[:32])), 32 * v[:32])


@pytest.mark.parametrize(("noise", "least"), [(0.0, 0.85), (0.3, 0.85), (1.0, 0.8)])
def test_message_passing_captures_the_large_entries_from_half_as_many_rows(noise, least):
    captured, d, k = [], 1000, 10
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = np.zeros(d)
        x[rng.choice(d, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(0.5, 1.5, k)
        A = rng.standard_normal((400, d))
        g = A.T @ (A @ x) / 400  # dense, with k entries that stand out
        size = SignRows.order(d)
        rows = SignRows(
            rng.permutation(size)[:d], rng.choice([-1.0, 1.0], d), size, 1 + rng.permutation(size - 1)[:500]
        )
        y = rows.times(g) + noise * np.abs(g).max() * rng.standard_normal(500)
        estimate, _ = large_entries(rows, y, k)
        chosen = np.argsort(-np.abs(estimate))[:k]
        captured.append(np.sum(g[chosen] ** 2) / np.sum(np.sort(g**2)[-k:]))
    assert np.mean(captured) > least


def test_the_group_with_the_largest_slope_comes_first():
    groups = SignedGroups(depth=0.0)
    for members, slope in ((3, 1.0), (2, -4.0), (1, 2.0)):
        groups.push(np.arange(members), np.array([slope]))
    assert [groups.pop().slope for _ in range(3)] == [-4.0, 2.0, 1.0]


def test_steps_turn_where_a_bound_is_near_and_are_shortened_where_both_are():
    steps = signed_steps(np.full(4, 0.1), np.array([9.0, 9.0, 0.0, 0.5]), np.array([9.0, 0.0, 9.0, 0.25]), 1.0)
    np.testing.assert_allclose(steps, [-1, 1, -1, 0.5])


def test_the_error_of_a_sample_vanishes_with_the_last_component():
    changes = np.random.default_rng(0).standard_normal(40)
    sample = ComponentSample(None, np.arange(40), 40, 0.0, False)
    errors = [sample.error(changes[:size]) for size in (5, 20, 39, 40)]
    assert errors[0] > errors[1] > errors[2] > errors[3] == 0


# One function.


def test_dense_least_squares_is_solved_with_fewer_calls_than_coordinates():
    solved = 0
    for seed in range(6):
        fun, x = least_squares(seed)
        result = solve(fun, x.size, 5, x.size, seed)
        solved += result.fun < 0.01 * start(fun, x.size)
    assert solved >= 5


def test_unit_and_offset_of_the_values_change_nothing():
    fun, x = least_squares(1)
    supports = []
    for a, b in ((1.0, 0.0), (64.0, 0.0), (1.0, 3.0)):
        result = solve(lambda X, a=a, b=b: a * fun(X) + b, x.size, 5, 400, 1)
        supports.append(np.flatnonzero(result.x).tolist())
    assert supports[0] == supports[1] == supports[2]


def test_bounds_includes_and_excludes_are_kept_at_every_query():
    fun, x = least_squares(2)
    S = np.flatnonzero(x)
    low, high = np.full(x.size, -0.4), np.full(x.size, 0.6)
    low[::7] = 0.0
    asked = []

    def watched(X):
        asked.append(X.copy())
        return fun(X)

    result = solve(watched, x.size, 5, 500, bounds=(low, high), include=[3, int(S[0])], exclude=[int(S[1])])
    points = np.concatenate(asked)
    assert (points >= low).all()
    assert (points <= high).all()
    assert (points[:, S[1]] == 0).all()
    support = set(np.flatnonzero(result.x)) | {3, int(S[0])}
    assert len(support) <= 5
    assert result.fun < 0.8 * start(fun, x.size)


def test_a_good_start_with_a_full_support_is_improved():
    fun, x = least_squares(3)
    x0 = np.zeros(x.size)
    x0[:5] = 0.3
    result = solve(fun, x0, 5, 600)
    assert result.fun < 0.05 * float(fun(x0[None])[0])


def test_a_constant_function_ends_with_a_reason():
    result = solve(lambda X: np.ones(len(X)), 50, 3, 140)
    assert not result.x.any()


@pytest.mark.parametrize("noise", [1e-3, 1e-2])
def test_with_noise_the_point_is_better_than_the_start(noise):
    for seed in range(3):
        fun, x = least_squares(seed)
        f0, rng = start(fun, x.size), np.random.default_rng(seed)
        result = solve(
            lambda X, f0=f0, rng=rng, fun=fun: fun(X) + noise * f0 * rng.standard_normal(len(X)), x.size, 5, 1500
        )
        assert float(fun(result.x[None])[0]) < 0.7 * f0


def test_where_noise_hides_everything_the_lowest_value_seen_is_not_the_result():
    for seed in range(3):
        fun, x = least_squares(seed)
        f0, rng = start(fun, x.size), np.random.default_rng(seed)
        result = solve(
            lambda X, f0=f0, rng=rng, fun=fun: fun(X) + 0.3 * f0 * rng.standard_normal(len(X)), x.size, 5, 300
        )
        assert float(fun(result.x[None])[0]) <= f0


def test_a_large_dimension_falls_within_a_hundred_calls():
    d = 50_000
    g = np.random.default_rng(0).standard_normal(d)
    result = solve(lambda X: 0.5 * np.sum(X * X, axis=1) - X @ g, d, 20, 100)
    assert result.fun < -5


# Many components.


@pytest.mark.parametrize("budget", [700, 1000, 3000])
def test_many_components_and_few_calls_still_give_a_fall(budget):
    better = []
    for seed in range(6):
        problem = zt.problems.logistic(n=150, d=300, k_true=5, seed=seed)
        result = solve(problem.values, 300, 5, budget, seed, n=150)
        better.append(problem.F(result.x) - problem.F(np.zeros(300)))
    assert sum(change < 0 for change in better) >= 5
    assert max(better) <= 0


def test_more_calls_lead_further_in_the_mean():
    means = []
    for budget in (600, 3000, 12000):
        values = []
        for seed in range(4):
            problem = zt.problems.logistic(n=150, d=300, k_true=5, seed=seed)
            values.append(problem.F(solve(problem.values, 300, 5, budget, seed, n=150).x))
        means.append(np.mean(values))
    assert means[0] > means[1] > means[2]


def test_components_that_agree_are_not_all_asked():
    rng = np.random.default_rng(0)
    d, n = 400, 2000
    x = np.zeros(d)
    x[[5, 50, 300]] = 1.0, -1.0, 0.7
    scales = rng.uniform(0.5, 1.5, n)
    problem = lambda X, I: scales[I] * np.sum((X - x) ** 2, axis=1)
    result = solve(problem, d, 3, 3 * n, n=n)
    assert np.flatnonzero(result.x).tolist() == [5, 50, 300]


# Few calls, many components.


def regression(seed, logistic, n=150, d=50, k=5):
    """Return the components of a regression as a function, and F."""
    rng = np.random.default_rng(seed)
    X, truth = rng.standard_normal((n, d)), np.zeros(d)
    truth[rng.choice(d, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(0.5, 1.5, k)
    z = X @ truth + 0.3 * rng.standard_normal(n)

    def f(P, I):
        score = np.einsum("bd,bd->b", P, X[I])
        return np.logaddexp(0, -np.sign(z[I]) * score) if logistic else (score - z[I]) ** 2

    return f, lambda x: float(f(np.repeat(x[None], n, 0), np.arange(n)).mean())


@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize(("values", "better"), [(1.1, 14), (2.0, 16), (2.5, 20), (4.0, 20), (8.0, 19)])
def test_few_calls_on_many_components_mostly_improve_on_the_start_and_never_harm(logistic, values, better):
    ratios = []
    for seed in range(20):
        f, F = regression(seed, logistic)
        result = zt.minimize(
            f, 50, 5, n=150, budget=round(150 * values), method="auto", seed=seed, vectorized=True, progress=False
        )
        assert result.nfev <= 150 * values
        ratios.append(F(result.x) / F(np.zeros(50)))
    assert max(ratios) < 1.01
    assert np.sum(np.array(ratios) < 1) >= better


def test_the_more_calls_there_are_the_further_a_first_step_leads():
    left = []
    for values in (2, 4, 8):
        ratios = []
        for seed in range(30):
            f, F = regression(seed, False)
            result = zt.minimize(f, 50, 5, n=150, budget=150 * values, seed=seed, vectorized=True, progress=False)
            ratios.append(F(result.x) / F(np.zeros(50)))
        left.append(np.median(ratios))
    assert left == sorted(left, reverse=True)
    assert left[-1] < 0.8


def test_components_that_contradict_each_other_allow_a_tiny_step_only():
    agree = np.tile([1.0, -2.0], (6, 1))
    assert _agreement(agree, 100) == pytest.approx(5.0)
    contradict = agree * np.array([[1.0], [-1.0]] * 3)
    assert _agreement(contradict, 100) < 0
