"""Logistic regression."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize as scipy_minimize

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.problems.common import (
    best_subset,
    check_size,
    component,
    coordinates,
    generator,
    point,
    rows,
    scores,
    squares,
    table,
)


class Logistic:
    r"""Logistic regression, labels -1 and 1:
    :math:`f_i(\theta) = \log(1 + e^{-y_i x_i \cdot \theta}) + \frac\lambda2 ||\theta||^2`.

    Arguments
    ---------
    X: the features, shape (n, d), one row per component.
    y: the labels, each -1 or 1, shape (n,).
    lam: the weight lambda of the penalty, 0 by default.

    >>> float(Logistic(np.eye(2), [1.0, -1.0]).F(np.zeros(2)).__round__(4))
    0.6931
    """

    def __init__(self, X: Array, y: Array, lam: float = 0.0) -> None:
        self.X, self.y = table(X, y)
        self.lam = check.not_negative("lam", lam, what=" (the weight of the penalty)")
        if not np.isin(self.y, (-1.0, 1.0)).all():
            raise ValueError("the labels y must all be -1 or 1: convert labels such as 0 and 1 by 2 * y - 1")
        self.n, self.d = self.X.shape

    def values(self, points: Array, components: Indices) -> Array:
        """Evaluate f_i(x) for the rows x of ``points`` (B, d) and the ``components`` i (B,); returns shape (B,)."""
        points, components = rows(points, components, self)
        score, norm = np.empty(len(points)), np.empty(len(points))
        scores(points, self.X, components, score)
        squares(points, norm)
        out: Array = np.logaddexp(0.0, -self.y[components] * score) + (0.5 * self.lam) * norm
        return out

    def F(self, x: Array) -> float:
        """Evaluate F, the mean of all f_i, at the point x, shape (d,)."""
        x = point(x, self)
        loss = np.logaddexp(0.0, -self.y * (self.X @ x))
        return float(loss.mean() + 0.5 * self.lam * (x @ x))

    def gradient(self, x: Array) -> Array:
        """Return the gradient of F at the point x, shape (d,)."""
        x = point(x, self)
        out: Array = self.X.T @ self._slopes(self.X @ x, self.y) / self.n + self.lam * x
        return out

    def component_gradient(self, x: Array, i: int) -> Array:
        """Return the gradient of f_i at the point x, shape (d,), for a component i from 0 to n - 1."""
        x, i = point(x, self), component(i, self)
        out: Array = self._slopes(self.X[i] @ x, self.y[i]) * self.X[i] + self.lam * x
        return out

    @staticmethod
    def _slopes(score: Array, y: Array) -> Array:
        """Return the derivative of the loss with respect to the score x_i . theta."""
        out: Array = -y * np.exp(-np.logaddexp(0.0, y * score))
        return out

    def minimum_on(self, support: Indices) -> Array:
        """Return the minimiser of F, shape (d,), among the vectors whose non-zeros are in ``support``.

        It is computed by L-BFGS with the exact gradient.
        """
        support = coordinates(support, self)

        def restricted(z: Array) -> tuple[float, Array]:
            x = np.zeros(self.d)
            x[support] = z
            return self.F(x), self.gradient(x)[support]

        solution = scipy_minimize(restricted, np.zeros(len(support)), jac=True, method="L-BFGS-B", tol=1e-12)
        x = np.zeros(self.d)
        x[support] = solution.x
        return x

    def optimum(self, k: int) -> tuple[Array, float]:
        """Find the k-sparse optimum by enumerating all supports of size k.

        Returns
        -------
        The minimiser theta*, shape (d,), and F(theta*). Raises ``ValueError`` if there are too many supports.
        """
        return best_subset(self, k)


def logistic(n: int = 100, d: int = 20, k_true: int = 3, lam: float = 0.01, seed: int = 0) -> Logistic:
    """Generate a logistic regression whose true coefficients are sparse.

    The features are standard normal, the non-zero coefficients are -2 or 2, and the labels are drawn with the
    probabilities of the model.

    Arguments
    ---------
    n: the number of components (rows of X), 100 by default.
    d: the dimension, 20 by default.
    k_true: the number of non-zero coefficients, 3 by default.
    lam: the weight lambda of the penalty, 0.01 by default.
    seed: the seed of the data, 0 by default.

    Returns
    -------
    The problem.
    """
    check.count("n", n)
    check.count("d", d)
    if check.count("k_true", k_true) > d:
        raise ValueError(f"k_true = {k_true} is larger than d = {d}: take k_true from 1 to {d}")
    check.not_negative("lam", lam, what=" (the weight of the penalty)")
    check_size(n, d)
    rng = generator(seed)
    X = rng.standard_normal((n, d))
    truth = np.zeros(d)
    truth[rng.choice(d, k_true, replace=False)] = 2 * rng.choice([-1.0, 1.0], k_true)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-X @ truth)), 1.0, -1.0)
    return Logistic(X, y, lam)
