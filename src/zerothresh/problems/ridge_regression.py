"""Ridge regression."""

from __future__ import annotations

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.problems.common import best_subset, generator, scores, squares


class Ridge:
    r"""Ridge regression: :math:`f_i(\theta) = (x_i \cdot \theta - y_i)^2 + \frac\lambda2 ||\theta||^2`.

    >>> Ridge(np.eye(2), [1.0, 2.0], lam=0.0).F(np.array([1.0, 2.0]))
    0.0
    """

    def __init__(self, X: Array, y: Array, lam: float = 0.5) -> None:
        self.X, self.y, self.lam = np.ascontiguousarray(X, float), np.ascontiguousarray(y, float), float(lam)
        if self.X.ndim != 2 or self.y.shape != self.X.shape[:1]:
            raise ValueError(f"X must be (n, d) and y (n,), not {self.X.shape} and {self.y.shape}")
        self.n, self.d = self.X.shape
        self._hessian = 2 * self.X.T @ self.X / self.n + self.lam * np.eye(self.d)
        self._linear = 2 * self.X.T @ self.y / self.n

    def values(self, points: Array, components: Indices) -> Array:
        """f_i(x) for rows x of points."""
        residual, norm = np.empty(len(points)), np.empty(len(points))
        scores(points, self.X, components, residual)
        squares(points, norm)
        residual -= self.y[components]
        return residual * residual + (0.5 * self.lam) * norm

    def F(self, x: Array) -> float:
        """The mean of all f_i."""
        residual = self.X @ x - self.y
        return float(residual @ residual / self.n + 0.5 * self.lam * (x @ x))

    def gradient(self, x: Array) -> Array:
        """Of F."""
        out: Array = self._hessian @ x - self._linear
        return out

    def component_gradient(self, x: Array, i: int) -> Array:
        """Of f_i."""
        out: Array = 2 * (self.X[i] @ x - self.y[i]) * self.X[i] + self.lam * x
        return out

    def minimum_on(self, support: Indices) -> Array:
        """The minimiser among vectors with this support."""
        x = np.zeros(self.d)
        part = np.ix_(support, support)
        x[support] = np.linalg.lstsq(self._hessian[part], self._linear[support], rcond=None)[0]
        return x

    def optimum(self, k: int) -> tuple[Array, float]:
        """The k-sparse optimum by enumeration: (theta*, F*)."""
        return best_subset(self, k)


def ridge(n: int = 10, d: int = 5, lam: float = 0.5, seed: int = 0) -> Ridge:
    """The paper's synthetic ridge problem (Section 5).

    x_i uniform in the unit ball, theta* standard normal, y = x theta*, then each column of x is
    standardised. The paper may standardise y as well; it does not say so, and we leave y as it is.
    """
    check.count("n", n, low=2)
    check.count("d", d)
    rng = generator(seed)
    direction = rng.standard_normal((n, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    X = direction * rng.random((n, 1)) ** (1 / d)
    y = X @ rng.standard_normal(d)
    return Ridge(standardise(X), y, lam)


def standardise(X: Array) -> Array:
    """Columns with mean 0 and standard deviation 1; a constant column becomes 0."""
    deviation = X.std(axis=0)
    out: Array = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return out
