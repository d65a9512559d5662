"""Logistic regression."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize as scipy_minimize

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.problems.common import best_subset, generator, scores, squares


class Logistic:
    r"""Logistic regression, labels -1 and 1:
    :math:`f_i(\theta) = \log(1 + e^{-y_i x_i \cdot \theta}) + \frac\lambda2 ||\theta||^2`.

    >>> float(Logistic(np.eye(2), [1.0, -1.0]).F(np.zeros(2)).__round__(4))
    0.6931
    """

    def __init__(self, X: Array, y: Array, lam: float = 0.0) -> None:
        self.X, self.y, self.lam = np.ascontiguousarray(X, float), np.ascontiguousarray(y, float), float(lam)
        if self.X.ndim != 2 or self.y.shape != self.X.shape[:1]:
            raise ValueError(f"X must be (n, d) and y (n,), not {self.X.shape} and {self.y.shape}")
        if not np.isin(self.y, (-1.0, 1.0)).all():
            raise ValueError("the labels y must be -1 and 1")
        self.n, self.d = self.X.shape

    def values(self, points: Array, components: Indices) -> Array:
        """f_i(x) for rows x of points."""
        score, norm = np.empty(len(points)), np.empty(len(points))
        scores(points, self.X, components, score)
        squares(points, norm)
        out: Array = np.logaddexp(0.0, -self.y[components] * score) + (0.5 * self.lam) * norm
        return out

    def F(self, x: Array) -> float:
        """The mean of all f_i."""
        loss = np.logaddexp(0.0, -self.y * (self.X @ x))
        return float(loss.mean() + 0.5 * self.lam * (x @ x))

    def gradient(self, x: Array) -> Array:
        """Of F."""
        out: Array = self.X.T @ self._slopes(self.X @ x, self.y) / self.n + self.lam * x
        return out

    def component_gradient(self, x: Array, i: int) -> Array:
        """Of f_i."""
        out: Array = self._slopes(self.X[i] @ x, self.y[i]) * self.X[i] + self.lam * x
        return out

    @staticmethod
    def _slopes(score: Array, y: Array) -> Array:
        out: Array = -y * np.exp(-np.logaddexp(0.0, y * score))
        return out

    def minimum_on(self, support: Indices) -> Array:
        """The minimiser among vectors with this support, by L-BFGS with the exact gradient."""

        def restricted(z: Array) -> tuple[float, Array]:
            x = np.zeros(self.d)
            x[support] = z
            return self.F(x), self.gradient(x)[support]

        solution = scipy_minimize(restricted, np.zeros(len(support)), jac=True, method="L-BFGS-B", tol=1e-12)
        x = np.zeros(self.d)
        x[support] = solution.x
        return x

    def optimum(self, k: int) -> tuple[Array, float]:
        """The k-sparse optimum by enumeration: (theta*, F*)."""
        return best_subset(self, k)


def logistic(n: int = 100, d: int = 20, k_true: int = 3, lam: float = 0.01, seed: int = 0) -> Logistic:
    """Normal features, a k_true-sparse truth of size 2, labels drawn by its probabilities."""
    check.count("n", n)
    check.count("k_true", k_true)
    rng = generator(seed)
    X = rng.standard_normal((n, d))
    truth = np.zeros(d)
    truth[rng.choice(d, k_true, replace=False)] = 2 * rng.choice([-1.0, 1.0], k_true)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-X @ truth)), 1.0, -1.0)
    return Logistic(X, y, lam)
