"""Least squares and logistic regression, where every coordinate matters a little and few are wanted."""

from __future__ import annotations

from math import inf

import numpy as np
from goal_problem import Draw, GoalProblem, family
from objectives import Array, Linear, Logistic, Squared

import zerothresh as zt


def correlated(rng: np.random.Generator, rows: int, d: int, correlation: float) -> Array:
    """Normal columns with the given correlation of neighbours, which falls geometrically with the distance."""
    X = rng.standard_normal((rows, d))
    if correlation:
        for j in range(1, d):
            X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    return X


def _one_value(X: Array, truth: Array, k: int, budget: int, target: float) -> GoalProblem:
    """Mean squares of X (x - truth) as one function; the target is a share of F(0)."""
    y = X @ truth
    start = float((y**2).mean())

    def values(points: Array, _: Array) -> Array:
        return ((points @ X.T - y) ** 2).mean(axis=1)

    return GoalProblem(
        values,
        lambda x: float(((X @ x - y) ** 2).mean()),
        X.shape[1],
        k,
        budget,
        F_star=0.0,
        target=target * start,
        truth=np.flatnonzero(truth),
    )


@family("dense")
def dense(draw: Draw) -> GoalProblem:
    """Least squares with d = 2,000 unknowns, 10 of them wanted, and d/2 calls: fewer than a gradient costs."""
    d, k = draw.whole(2000, 1500, 3000), draw.whole(10, 6, 12)
    X = correlated(draw.rng, draw.whole(500, 400, 800), d, draw.real(0.0, 0.0, 0.5))
    return _one_value(X, draw.sparse(d, k, 0.5, 1.5), k, d // 2, 1e-2)


@family("correlated")
def correlated_design(draw: Draw) -> GoalProblem:
    """Least squares whose neighbouring columns have a correlation of 0.9: many wrong supports are good."""
    d, k = draw.whole(60, 40, 80), draw.whole(6, 4, 7)
    X = correlated(draw.rng, draw.whole(80, 80, 120), d, draw.real(0.9, 0.85, 0.92))
    return _one_value(X, draw.sparse(d, k, 0.5, 1.5), k, 6000, 1e-4)


@family("logistic-10000")
def wide_logistic(draw: Draw) -> GoalProblem:
    """Logistic regression with 10,000 features and 500 components, of which each is called by itself."""
    n, k = draw.whole(500, 400, 700), draw.whole(10, 8, 10)
    data = zt.problems.logistic(n=n, d=draw.whole(10_000, 8_000, 12_000), k_true=k, seed=draw.seed)
    truth = _true_coordinates(n, data.d, k, draw.seed)
    loss = Linear(data.X, data.y, Logistic(), data.lam)
    return GoalProblem(loss.values, loss.F, data.d, k, 400_000, n=n, F_star=0.0, truth=truth)


def _true_coordinates(n: int, d: int, k: int, seed: int) -> Array:
    """The coordinates that `zt.problems.logistic` drew, by the same random numbers."""
    rng = np.random.default_rng(seed)
    rng.standard_normal((n, d))
    rng.choice([-1.0, 1.0], k)  # the signs, which are drawn before the coordinates
    return np.sort(rng.choice(d, k, replace=False))


@family("ridge-300")
def noisy_ridge(draw: Draw) -> GoalProblem:
    """Ridge regression with n = 300 components in d = 80, seen through noise; solved if 1e-3 of the gap is left."""
    n, d, k, lam = draw.whole(300, 200, 400), draw.whole(80, 60, 100), draw.whole(8, 5, 10), 0.1
    X = correlated(draw.rng, n, d, draw.real(0.0, 0.0, 0.5))
    truth = draw.sparse(d, k, 0.5, 1.5)
    y = X @ truth + 0.1 * draw.rng.standard_normal(n)
    loss, support, best = Linear(X, y, Squared(), lam), np.flatnonzero(truth), np.zeros(d)
    A = X[:, support]
    best[support] = np.linalg.solve(A.T @ A / n + 0.5 * lam * np.eye(k), A.T @ y / n)
    problem = GoalProblem(loss.values, loss.F, d, k, 60_000, n=n, F_star=loss.F(best), truth=support)
    problem.target = problem.F_star + 1e-3 * (problem.F_start - problem.F_star)
    problem.noise = draw.scale(1e-3, 5e-4, 3e-3) * problem.F_start
    return problem


@family("components-150-squares", logistic=False)
@family("components-150-logistic", logistic=True)
def components(draw: Draw, logistic: bool) -> GoalProblem:
    """A regression with 150 components and calls for about one value of F."""
    n, d, k = draw.whole(150, 120, 250), draw.whole(50, 30, 80), draw.whole(5, 3, 6)
    X, truth = draw.rng.standard_normal((n, d)), draw.sparse(d, k, 0.5, 1.5)
    z = X @ truth + 0.3 * draw.rng.standard_normal(n)
    loss = Linear(X, np.where(z > 0, 1.0, -1.0), Logistic()) if logistic else Linear(X, z, Squared())
    return GoalProblem(loss.values, loss.F, d, k, 2 * n, n=n, F_star=0.0, truth=np.flatnonzero(truth))


@family("wide-10000", d=10_000)
@family("wide-100000", d=100_000)
def wide(draw: Draw, d: int) -> GoalProblem:
    """A cheap function of very many coordinates, for the time that the method itself takes."""
    columns = draw.rng.standard_normal((20, d)) / np.sqrt(d)
    target = columns @ draw.sparse(d, 10, 0.5, 1.5)

    def values(points: Array, _: Array) -> Array:
        return ((points @ columns.T - target) ** 2).sum(axis=1)

    return GoalProblem(values, lambda x: float(values(x[None], x)[0]), d, 10, 20_000, F_star=0.0, target=-inf)
