"""Ridge regression."""

from __future__ import annotations

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.problems.common import (
    best_subset,
    check_finite,
    check_size,
    component,
    coordinates,
    generator,
    numbers,
    point,
    rows,
    scores,
    squares,
    table,
)


class Ridge:
    r"""Ridge regression: :math:`f_i(\theta) = (x_i \cdot \theta - y_i)^2 + \frac\lambda2 ||\theta||^2`.

    Arguments
    ---------
    X: the features, shape (n, d), one row per component.
    y: the targets, shape (n,).
    lam: the weight lambda of the penalty, 0.5 by default.

    >>> Ridge(np.eye(2), [1.0, 2.0], lam=0.0).F(np.array([1.0, 2.0]))
    0.0
    """

    def __init__(self, X: Array, y: Array, lam: float = 0.5) -> None:
        self.X, self.y = table(X, y)
        self.lam = check.not_negative("lam", lam, what=" (the weight of the penalty)")
        self.n, self.d = self.X.shape
        with np.errstate(over="ignore", invalid="ignore"):
            self._hessian = 2 * self.X.T @ self.X / self.n + self.lam * np.eye(self.d)
            self._linear = 2 * self.X.T @ self.y / self.n
        check_finite(self._hessian, self._linear)

    def values(self, points: Array, components: Indices) -> Array:
        """Evaluate f_i(x) for the rows x of ``points`` (B, d) and the ``components`` i (B,); returns shape (B,)."""
        points, components = rows(points, components, self)
        residual, norm = np.empty(len(points)), np.empty(len(points))
        scores(points, self.X, components, residual)
        squares(points, norm)
        residual -= self.y[components]
        return residual * residual + (0.5 * self.lam) * norm

    def F(self, x: Array) -> float:
        """Evaluate F, the mean of all f_i, at the point x, shape (d,)."""
        x = point(x, self)
        residual = self.X @ x - self.y
        return float(residual @ residual / self.n + 0.5 * self.lam * (x @ x))

    def gradient(self, x: Array) -> Array:
        """Return the gradient of F at the point x, shape (d,)."""
        out: Array = self._hessian @ point(x, self) - self._linear
        return out

    def component_gradient(self, x: Array, i: int) -> Array:
        """Return the gradient of f_i at the point x, shape (d,), for a component i from 0 to n - 1."""
        x, i = point(x, self), component(i, self)
        out: Array = 2 * (self.X[i] @ x - self.y[i]) * self.X[i] + self.lam * x
        return out

    def minimum_on(self, support: Indices) -> Array:
        """Return the minimiser of F, shape (d,), among the vectors whose non-zeros are in ``support``."""
        x, support = np.zeros(self.d), coordinates(support, self)
        part = np.ix_(support, support)
        x[support] = np.linalg.lstsq(self._hessian[part], self._linear[support], rcond=None)[0]
        return x

    def optimum(self, k: int) -> tuple[Array, float]:
        """Find the k-sparse optimum by enumerating all supports of size k.

        Returns
        -------
        The minimiser theta*, shape (d,), and F(theta*). Raises ``ValueError`` if there are too many supports.
        """
        return best_subset(self, k)


def ridge(n: int = 10, d: int = 5, lam: float = 0.5, seed: int = 0) -> Ridge:
    """Generate the paper's synthetic ridge problem (Section 5).

    The rows x_i are uniform in the unit ball, theta* is standard normal and y = X theta*; then each column of X is
    standardised. The paper does not say whether y is standardised too; here it is not.

    Arguments
    ---------
    n: the number of components (rows of X), at least 2; 10 by default.
    d: the dimension, 5 by default.
    lam: the weight lambda of the penalty, 0.5 by default.
    seed: the seed of the data, 0 by default.

    Returns
    -------
    The problem.
    """
    check.count("n", n, low=2)
    check.count("d", d)
    check_size(n, d)
    rng = generator(seed)
    direction = rng.standard_normal((n, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    X = direction * rng.random((n, 1)) ** (1 / d)
    y = X @ rng.standard_normal(d)
    return Ridge(standardise(X), y, lam)


def standardise(X: Array) -> Array:
    """Return X, shape (n, d), with columns of mean 0 and standard deviation 1; a constant column becomes 0."""
    X = numbers("X", X)
    if X.ndim != 2 or not X.size:
        raise ValueError(f"X must have shape (n, d) with at least one row and one column, not {X.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = X.std(axis=0)
        out: Array = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    check_finite(deviation, out)
    return out
