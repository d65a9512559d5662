"""A linear model with an intercept, fitted to a table by any loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices

Loss = Callable[[Array, Array], Array]  # of predictions and targets


def absolute(p: Array, y: Array) -> Array:
    """Return the absolute error."""
    return np.abs(p - y)


def relative(p: Array, y: Array) -> Array:
    """Return the absolute error as a share of the target."""
    return np.abs(p - y) / np.abs(y)


def log_loss(p: Array, y: Array) -> Array:
    """Return the negative log-likelihood of targets 0 and 1, of which the log-odds are predicted."""
    return np.asarray(np.logaddexp(0.0, np.where(y > 0, -p, p)))


@dataclass(frozen=True)
class OfResidual:
    """A loss of the difference of prediction and target."""

    value: Callable[[Array], Array]

    def __call__(self, p: Array, y: Array) -> Array:
        return self.value(p - y)


class LinearTable:
    """F is the mean loss of the linear model ``intercept + sum_j w_j z_j``, where z are the standardised columns.

    The last coordinate is the intercept.

    Arguments
    ---------
    X: array (n, d), the columns.
    y: array (n,), the target.
    loss: function of arrays of predictions and targets that returns the loss of each row.

    >>> table = LinearTable(np.array([[0.0], [2.0], [4.0]]), np.array([1.0, 2.0, 3.0]), absolute)
    >>> x = np.array([np.sqrt(2 / 3), 2.0])
    >>> bool(table.F(x) < 1e-12), table.coefficients(x).round(9).tolist()
    (True, [0.5, 1.0])
    """

    def __init__(self, X: Array, y: Array, loss: Loss) -> None:
        spread = X.std(axis=0)
        same = (X[0] == X).all(axis=0) | (spread == 0)  # rounding may leave a spread to equal values
        if same.any():
            raise ValueError(f"column {int(np.argmax(same))} has the same value in all rows: leave it out")
        self.mean, self.spread, self.y, self.loss = X.mean(axis=0), spread, y, loss
        self.Z = np.column_stack([(X - self.mean) / spread, np.ones(len(X))])
        self.n, self.d = self.Z.shape
        self.loss_name = check.name_of(loss)

    def values(self, points: Array, components: Indices) -> Array:
        """Return the loss of row i at x for pairs of a point x and a component i, (B,)."""
        return self.loss(np.einsum("bd,bd->b", self.Z[components], points), self.y[components])

    def F(self, x: Array) -> float:
        """Return the mean loss."""
        return float(self.loss(self.Z @ x, self.y).mean())

    def constant(self) -> Array:
        """Return the point with the best intercept, and no columns: what a model has to beat."""
        x, middle, spread = np.zeros(self.d), self.y.mean(), self.y.std()
        x[-1] = middle
        if spread > 0:
            ends = (middle - spread, middle + spread)
            x[-1] = minimize_scalar(lambda level: self.loss(np.full(self.n, level), self.y).mean(), bracket=ends).x
        return x

    def coefficients(self, x: Array) -> Array:
        """Return the coefficients in the units of the table, and the intercept as the last one."""
        w = x[:-1] / self.spread
        return np.append(w, x[-1] - float(w @ self.mean))
