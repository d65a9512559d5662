"""The single-index arm: what it recognises, what it certifies, and that its decisions do not depend on units."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.constraint.splicing import minimiser
from zerothresh.methods.auto.models.branch_and_bound import is_best_subset
from zerothresh.methods.auto.models.centred_rows import have_one_sign, rows_are_centred
from zerothresh.methods.auto.models.index_rows import IndexRows, balanced_move, common_minimum
from zerothresh.methods.auto.models.screening import exchange_changes

N, D, K = 300, 80, 6


def linear_model(seed, n=N, d=D, k=K):
    """Return a random design and its scores at a sparse point."""
    rng = np.random.default_rng(seed)
    X, truth = rng.standard_normal((n, d)), np.zeros(d)
    truth[rng.choice(d, k, replace=False)] = rng.choice([-1, 1], k) * rng.uniform(0.5, 1.5, k)
    return rng, X, truth, X @ truth


def ridge(seed, n=N, d=D, k=K):
    rng, X, truth, z = linear_model(seed, n, d, k)
    y = z + 0.5 * rng.standard_normal(n)
    return truth, lambda P, I: 0.5 * (np.einsum("bd,bd->b", P, X[I]) - y[I]) ** 2 + 0.05 * (P**2).sum(axis=1)


def logistic(seed, n=N, d=D, k=K):
    rng, X, truth, z = linear_model(seed, n, d, k)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-2 * z)), 1.0, -1.0)
    return truth, lambda P, I: np.logaddexp(0, -y[I] * np.einsum("bd,bd->b", P, X[I])) + 0.005 * (P**2).sum(axis=1)


def solve(f, d, k, n, budget, method="index", **options):
    """Minimise, and return the result and the number of calls of each round."""
    rounds = []

    def counted(P, I):
        rounds.append(len(P))
        return f(P, I)

    settings = {"seed": 0, "vectorized": True, "progress": False, "method": method}
    return zt.minimize(counted, d, k, n=n, budget=budget, **(settings | options)), rounds


def said(result, words):
    return any(words in message for _, message in result.remarks)


# What is recognised.


@pytest.mark.parametrize("offset", [0.0, -7.0])
def test_squares_of_few_coordinates_are_solved_and_certified_with_hardly_more_calls_than_unknowns(offset):
    _, f = ridge(0, 10, 5, 3)
    result, _ = solve(lambda P, I: f(P, I) + offset, 5, 3, 10, 5_000)
    assert said(result, "its support is proven")
    assert result.nfev <= 120
    best = min(
        (float(f(np.repeat(x[None], 10, 0), np.arange(10)).mean()) for x in exact_minimisers(f, 10, 5, 3)),
    )
    assert result.fun - offset == pytest.approx(best, rel=1e-6)


def exact_minimisers(f, n, d, k):
    """The minimiser of a quadratic mean on every support, from its values."""

    def mean(x):
        return float(f(np.repeat(x[None], n, 0), np.arange(n)).mean())

    unit, zero = np.eye(d), mean(np.zeros(d))
    A = np.array([[mean(a + b) - mean(a) - mean(b) + zero for b in unit] for a in unit])
    g = np.array([mean(e) - zero - 0.5 * A[i, i] for i, e in enumerate(unit)])
    for S in combinations(range(d), k):
        x = np.zeros(d)
        x[list(S)] = -np.linalg.solve(A[np.ix_(S, S)], g[list(S)])
        yield x


def test_exact_fits_are_certified_before_all_rows_are_known():
    _, X, truth, z = linear_model(1, 120, 60, 4)
    result, _ = solve(lambda P, I: (np.einsum("bd,bd->b", P, X[I]) - z[I]) ** 2 - 3.0, 60, 4, 120, 20_000)
    assert said(result, "Every component is at its minimum")
    assert result.nfev < 60 * 60
    np.testing.assert_allclose(result.x, truth, atol=1e-6)


def test_components_of_two_scores_are_recognised_with_a_few_rows():
    _, X, truth, _ = linear_model(2, 100, 40, 4)
    _, V, _, _ = linear_model(3, 100, 40, 4)

    def f(P, I):
        first, second = np.einsum("bd,bd->b", P, X[I]), np.einsum("bd,bd->b", P, V[I])
        return (first - X[I] @ truth) ** 2 + (np.tanh(second) - np.tanh(V[I] @ truth)) ** 2

    result, _ = solve(f, 40, 4, 100, 8_000)
    assert said(result, "not functions of one score")
    calls = next(calls for calls, message in result.remarks if "not functions of one score" in message)
    assert calls < 5 * 40


def test_a_nonlinear_mixture_at_its_bounds_is_solved_and_not_certified():
    wave, rng = np.linspace(0, 1, 200), np.random.default_rng(1)
    spectra = sum(np.exp(-(((wave - rng.random((40, 1))) / 0.02) ** 2)) for _ in range(4))
    truth = np.zeros(40)
    truth[[3, 17, 29]] = 0.8, 0.5, 0.3
    y = np.exp(-truth @ spectra)
    result, _ = solve(
        lambda P, I: (np.exp(-np.einsum("bd,db->b", P, spectra[:, I])) - y[I]) ** 2,
        40,
        3,
        200,
        25_000,
        bounds=(0, None),
    )
    assert result.support.tolist() == [3, 17, 29]
    assert not said(result, "proven")


def test_components_that_are_stationary_at_the_start_are_learnt_elsewhere():
    rng, X, _, z = linear_model(4, 100, 30, 3)
    y = rng.poisson(np.exp(0.5 * z)).astype(float)
    assert (y == 1).sum() > 10  # their gradient is 0 at the start

    def f(P, I):
        score = np.einsum("bd,bd->b", P, X[I])
        return np.exp(score) - y[I] * score + 0.005 * (P**2).sum(axis=1)

    result, _ = solve(f, 30, 3, 100, 6_000)
    assert said(result, "predicts slopes with an error")
    everything = np.arange(100)
    for j in result.support:  # no coordinate of the support improves F
        for h in (1e-3, -1e-3):
            x = result.x.copy()
            x[j] += h
            assert f(np.repeat(x[None], 100, 0), everything).mean() > result.fun


@pytest.mark.parametrize("arguments", [{"include": [7]}, {"exclude": [0, 1]}, {"bounds": (-0.6, 0.6)}])
def test_constraints_hold(arguments):
    _, f = ridge(5, 60, 20, 3)
    result, _ = solve(f, 20, 3, 60, 4_000, **arguments)
    assert result.fun < f(np.zeros((60, 20)), np.arange(60)).mean()
    assert 7 in result.support or "include" not in arguments
    assert not {0, 1} & set(result.support.tolist()) or "exclude" not in arguments
    assert np.abs(result.x).max() <= 0.6 or "bounds" not in arguments


# Decisions do not depend on units and offsets.


def noisy(f, a, b, seed=9):
    noise = np.random.default_rng(seed)
    return lambda P, I: a * (f(P, I) + 0.01 * noise.standard_normal(len(P))) + b


@pytest.mark.parametrize(("a", "b"), [(2.0**-30, 0.0), (3.0, 0.0), (1.0, -1.0), (1.0, -1e3), (1.0, 1e6)])
def test_with_noise_every_round_is_the_same_for_any_unit_and_offset(a, b):
    _, f = ridge(0)
    result, rounds = solve(noisy(f, 1.0, 0.0), D, K, N, 24_000)
    other, other_rounds = solve(noisy(f, a, b), D, K, N, 24_000)
    assert other_rounds == rounds
    assert other.support.tolist() == result.support.tolist()


@pytest.mark.parametrize("problem", [ridge, logistic])
@pytest.mark.parametrize(("a", "b"), [(2.0**40, 0.0), (1.0, -1.0), (0.3, 100.0)])
def test_without_noise_calls_are_the_same_up_to_rounding(problem, a, b):
    _, f = problem(1)
    result, rounds = solve(f, D, K, N, 30_000)
    other, other_rounds = solve(lambda P, I: a * f(P, I) + b, D, K, N, 30_000)
    assert other.support.tolist() == result.support.tolist()
    if b == 0:
        assert other_rounds == rounds
    else:
        assert other.nfev == pytest.approx(result.nfev, rel=0.03)


# Solutions for a sample of the components.


def watched(f, d, k, n, budget, seed=0, method="auto"):
    """Minimise, and return F of the point that the run would return, and of its iterate, after each round."""
    opt = zt.Optimizer(d, k, n=n, budget=budget, seed=seed, method=method)
    everything, rows = np.arange(n), []

    def F(x):
        return float(f(np.repeat(x[None], n, 0), everything).mean())

    while not opt.done:
        batch = opt.ask()
        opt.tell(batch, f(batch.points, batch.components))
        standing = opt.session.standing
        returned = standing.theta if standing.best_x is None else standing.best_x
        rows.append((opt.nfev, F(returned), F(standing.theta)))
    return np.array(rows), F(np.zeros(d)), opt.result()


def test_the_incumbent_moves_long_before_all_rows_are_known():
    _, f = ridge(3)
    rows, start, result = watched(f, D, K, N, 40_000)
    reached = rows[rows[:, 1] <= result.fun + 0.01 * (start - result.fun), 0].min()
    assert reached < 0.5 * N * D < result.nfev
    assert said(result, "its support is proven")


def test_the_incumbent_never_gets_worse_while_rows_are_learnt():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 12)), 5 + rng.standard_normal(200)  # nothing to find: samples mislead

    def f(P, I):
        return (np.einsum("bd,bd->b", P, X[I]) - y[I]) ** 2

    for seed in range(5):
        rows, start, _ = watched(f, 12, 4, 200, 6_000, seed)
        assert (np.diff(rows[:, 1]) <= 1e-12).all()
        assert rows[:, 2].max() <= start + 1e-12


def test_an_intercept_that_no_coordinate_explains_does_not_hide_the_solution_for_a_sample():
    rng, X, _, z = linear_model(6, 240, 12, 3)
    X -= X.mean(axis=0)
    y = z + 20.0 + 0.3 * rng.standard_normal(240)

    def f(P, I):
        return (np.einsum("bd,bd->b", P, X[I]) - y[I]) ** 2 / 2

    rows, start, result = watched(f, 12, 3, 240, 10_000)
    reached = rows[rows[:, 1] <= result.fun + 0.05 * (start - result.fun), 0].min()
    assert reached < 0.6 * 240 * 12


def test_rows_are_centred_only_if_their_mean_is_small_and_residuals_have_one_sign():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    data = IndexRows(np.zeros(8), np.arange(8))
    data.append(X, np.zeros(60), np.ones(60), np.ones(60))
    assert rows_are_centred(data, np.ones(60), 600)
    assert not rows_are_centred(data, np.sign(X[:, 0]), 600)  # the mean of |X| is not 0
    assert have_one_sign(10 + rng.standard_normal(60))
    assert not have_one_sign(rng.standard_normal(60))


# The parts.


def quadratic(seed, d):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((2 * d, d))
    return Z.T @ Z / (2 * d), rng.standard_normal(d)


@pytest.mark.parametrize("seed", range(5))
def test_branch_and_bound_agrees_with_enumeration(seed):
    A, b = quadratic(seed, 9)
    values = {S: -0.5 * b[list(S)] @ minimiser(A[np.ix_(S, S)], b[list(S)]) for S in combinations(range(9), 3)}
    ranked = sorted(values.values())
    nothing = np.empty(0, np.int64)
    assert is_best_subset(A, b, 3, ranked[0], 1e-12, 10_000, nothing)
    assert not is_best_subset(A, b, 3, ranked[1], 0.5 * (ranked[1] - ranked[0]), 10_000, nothing)
    assert not is_best_subset(A, b, 3, ranked[0], 1e-12, 1, nothing)  # too little work proves nothing
    forced = np.array([int(np.argmin(np.abs(b)))])
    best = min(value for S, value in values.items() if forced[0] in S)
    assert is_best_subset(A, b, 3, best, 1e-12, 10_000, forced)


def test_exchange_changes_are_exact_if_all_components_are_known():
    rng = np.random.default_rng(0)
    n, d = 40, 8
    V, slope = rng.standard_normal((n, d)), np.ones(n)
    data = IndexRows(np.zeros(d), np.arange(d))
    data.append(V, np.zeros(n), slope, np.ones(n))
    A, g = V.T @ V / n, V.mean(axis=0)
    S = [1, 4, 6]
    theta = np.zeros(d)
    theta[S] = -np.linalg.solve(A[np.ix_(S, S)], g[S])
    here = slope + V @ theta
    rest = np.array([0, 2, 3, 5, 7])
    changes = exchange_changes(data, V[:, rest], rest, here, slope, np.ones(n), theta, n, 3, np.empty(0, np.int64))

    def value(T):
        return -0.5 * g[T] @ np.linalg.solve(A[np.ix_(T, T)], g[T])

    for j, change in zip(rest.tolist(), changes, strict=True):
        best = min(value([t for t in S if t != a] + [j]) for a in S)
        assert change == pytest.approx(best - value(S), rel=1e-9)


def test_a_balanced_move_leaves_the_score_and_goes_inwards():
    rng = np.random.default_rng(0)
    row, theta, w = rng.standard_normal((3, 12))
    free = balanced_move(row, theta, w, np.zeros(12))
    assert abs(row @ free) < 1e-12 > abs(theta @ free)
    inward = np.ones(12)
    move = balanced_move(row, np.zeros(12), w, inward)
    assert abs(row @ move) < 1e-12
    assert (move >= 0).all()
    assert move.any()
    assert not balanced_move(np.abs(row), np.zeros(12), w, inward).any()  # every move inwards raises the score


@pytest.mark.parametrize("offset", [0.0, -5.0, 1e3])
def test_a_common_minimum_is_found_whatever_the_offset(offset):
    values = np.array([0.5, 2.0, 3.5, 7.0])
    minimum, error = common_minimum(values + offset, np.ones(4), 0.5 / values, 1e-12)
    assert minimum == pytest.approx(offset, abs=1e-9)
    assert error < 1e-9
    assert common_minimum(values + offset, np.ones(4), np.ones(4), 1e-12) is None


def kinked(seed, loss, n, d=10):
    """Components loss(i, score) of a linear model with three non-zeros, and its design and scores."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    z = X[:, :3] @ [1.5, -1.2, 1.0]
    return X, loss(rng, z)


@pytest.mark.parametrize("seed", [4, 5, 6])
def test_components_that_are_flat_where_the_form_is_tested_do_not_refute_it(seed):
    """Far from the start most hinges are flat, and their differences are rounding of the l2 term."""
    n, d = 40, 10
    X, y = kinked(seed, lambda rng, z: np.where(z > 0, 1.0, -1.0), n)

    def fun(theta, i):
        return max(0.0, 1 - y[i] * float(X[i] @ theta)) + 0.005 * float(theta @ theta)

    result = zt.minimize(fun, d, 3, n=n, budget=3000, seed=seed)
    assert not any("not functions of one score" in remark for _, remark in result.remarks)


@pytest.mark.parametrize("seed", [2, 10, 20, 26])
def test_no_point_is_published_because_straight_components_rise_as_predicted(seed):
    """Absolute errors are straight around the start: the quadratic model has no minimum, and its step is huge."""
    n, d, seen = 60, 10, []
    X, y = kinked(seed, lambda rng, z: z + rng.laplace(0, 0.3, n), n)

    def note(progress):
        seen.append(float(np.abs(X @ progress.x - y).mean()))

    zt.minimize(lambda theta, i: abs(float(X[i] @ theta) - y[i]), d, 3, n=n, budget=2500, seed=seed, callback=note)
    assert max(seen) <= float(np.abs(y).mean())
