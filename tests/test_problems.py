from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import zerothresh as zt

PROBLEMS = {
    "ridge": zt.problems.ridge(seed=1),
    "logistic": zt.problems.logistic(n=8, d=6, lam=0.05, seed=1),
    "quadratic": zt.problems.quadratic(d=6, n=4, condition=30, spread=0.5, seed=1),
}
problems = pytest.mark.parametrize("problem", list(PROBLEMS.values()), ids=list(PROBLEMS))


@problems
def test_the_mean_of_the_components_is_F_and_the_gradients_are_exact(problem):
    x = np.random.default_rng(0).standard_normal(problem.d)
    all_of_them = problem.values(np.tile(x, (problem.n, 1)), np.arange(problem.n))
    assert all_of_them.mean() == pytest.approx(problem.F(x))
    assert problem.gradient(x) == pytest.approx(approx_fprime(x, problem.F, 1e-7), abs=1e-5)
    parts = [problem.component_gradient(x, i) for i in range(problem.n)]
    assert np.mean(parts, axis=0) == pytest.approx(problem.gradient(x))
    single = lambda z: problem.values(z[None], np.array([2]))[0]
    assert parts[2] == pytest.approx(approx_fprime(x, single, 1e-7), abs=1e-5)


@problems
def test_a_value_has_the_same_bits_in_any_batch(problem):
    rng = np.random.default_rng(0)
    X, I = rng.standard_normal((50, problem.d)), rng.integers(0, problem.n, 50)
    batch = problem.values(X, I)
    assert batch.tolist() == [problem.values(X[b : b + 1], I[b : b + 1])[0] for b in range(50)]


@problems
def test_no_sparse_point_is_below_the_enumerated_optimum(problem):
    best, lowest = problem.optimum(2)
    assert np.count_nonzero(best) <= 2
    assert problem.F(best) == lowest
    support = np.flatnonzero(best)
    assert problem.gradient(best)[support] == pytest.approx(0, abs=1e-4)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        x = np.zeros(problem.d)
        x[rng.choice(problem.d, 2, replace=False)] = rng.standard_normal(2) * 2
        assert problem.F(x) >= lowest
    assert lowest >= problem.optimum(3)[1] - 1e-9


def test_the_papers_ridge_is_as_the_paper_says():
    problem = zt.problems.ridge(n=10, d=5, lam=0.5, seed=3)
    assert (problem.n, problem.d, problem.lam) == (10, 5, 0.5)
    assert problem.X.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert problem.X.std(axis=0) == pytest.approx(1)


def test_a_quadratic_has_the_condition_number_and_the_sparse_solution_that_were_asked_for():
    problem = zt.problems.quadratic(d=15, k_true=4, condition=50, n=5, spread=1.0, seed=0)
    values = np.linalg.eigvalsh(problem.A)
    assert values[-1] / values[0] == pytest.approx(50)
    solution = np.where(np.abs(problem.centre) > 1e-9, problem.centre, 0)
    assert np.count_nonzero(solution) == 4
    assert problem.gradient(problem.centre) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: zt.problems.Ridge(np.zeros((3, 2)), np.zeros(2)), r"X must have shape \(n, d\) and y shape \(n,\)"),
        (lambda: zt.problems.Logistic(np.zeros((3, 2)), np.zeros(3)), "labels y must all be -1 or 1"),
        (lambda: zt.problems.quadratic(d=3, k_true=4), "k_true = 4 is larger than d = 3"),
        (lambda: zt.problems.quadratic(condition=0.5), "condition must be at least 1"),
        (lambda: zt.problems.Ridge([[1], [2, 3]], [1, 2]), "X cannot be made an array of one shape"),
        (lambda: zt.problems.Ridge([["a"]], [1]), "X must hold real numbers"),
        (lambda: zt.problems.Ridge([[np.inf]], [1]), "X must hold finite numbers"),
        (lambda: zt.problems.Ridge(np.zeros((0, 3)), []), "at least one row and one column"),
        (lambda: zt.problems.Ridge([[1e200]], [1.0]), "so large that their products are infinite"),
        (lambda: zt.problems.Ridge([[1.0]], [1.0], lam=np.nan), "lam must be a finite number of at least 0"),
        (lambda: zt.problems.Quadratic(3, 4), r"A must have shape \(d, d\)"),
        (lambda: zt.problems.logistic(d=2, k_true=3), "k_true = 3 is larger than d = 2"),
        (lambda: zt.problems.ridge(n=10**6, d=10**6), "1000000 x 1000000 numbers is too large"),
        (lambda: zt.problems.quadratic(spread=-1), "spread must be a finite number of at least 0"),
        (lambda: zt.problems.standardise([1, 2]), r"X must have shape \(n, d\)"),
        (lambda: zt.problems.ridge().values(np.zeros((2, 5)), [0, 10]), "components of shape .* from 0 to 9"),
        (lambda: zt.problems.quadratic().values(np.zeros((1, 20)), [-1]), "components of shape .* from 0 to 0"),
        (lambda: zt.problems.logistic().values(np.zeros((2, 3)), [0, 1]), r"points of shape \(B, 20\)"),
        (lambda: zt.problems.ridge().F([1, 2]), r"x must be a point of shape \(5,\), not of shape \(2,\)"),
        (lambda: zt.problems.ridge().F("abc"), "x must be a point of 5 numbers"),
        (lambda: zt.problems.ridge().component_gradient(np.zeros(5), 10), "i must be at most 9"),
        (lambda: zt.problems.ridge().minimum_on([0, 0]), "support names a coordinate twice"),
        (lambda: zt.problems.ridge().minimum_on([5]), "support must be a list of coordinates from 0 to 4"),
        (lambda: zt.problems.ridge(d=60).optimum(9), "too many to try"),
        (lambda: zt.problems.ridge().optimum(6), "k = 6 is larger than the dimension d = 5"),
    ],
)
def test_wrong_data_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
