r"""F near a point by linearised outputs, within a sum constraint: a quadratic model of which every entry is known.

.. math:: F(x) \approx \frac{1}{m} \sum_i \ell(r_i) + \ell'(r_i) (J s)_i + \frac{1}{2} c_i (J s)_i^2, \quad s = x - a

with c the curvature of the loss, or of the parabola that touches it from above where it is robust. It answers the
questions that exchanges ask of a model (`knows`, `block`, `slopes`, `value`, `columns`).
"""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.losses import Loss
from zerothresh.methods.residual.jacobians.loss_weights import slopes, working


class LinearisedShares:
    """The model around an anchor.

    Arguments
    ---------
    anchor: float64 array (d,), a feasible point.
    outputs: float64 array (m,), the outputs there; NaN where one is missing.
    F: F there.
    jacobian: float64 array (m, d). Where the sum stays, a vector may be added to all columns: steps do not see it.
    loss: Loss, or None for squares.
    unit: the unit in which F is given.
    """

    def __init__(
        self, anchor: Array, outputs: Array, F: float, jacobian: Array, loss: Loss | None, unit: float
    ) -> None:
        self.anchor, self.F = anchor, F
        share = 1.0 / (max(1, int((~np.isnan(outputs)).sum())) * unit)
        weights = working(loss, outputs)[0] ** 2
        self.g: Array = share * (jacobian.T @ slopes(loss, outputs))
        self.columns: Array = 2.0 * share * (jacobian.T * weights) @ jacobian

    def knows(self, rows: Indices, members: Indices) -> bool:
        """Whether the second derivatives are known: always."""
        return True

    def block(self, rows: Indices, members: Indices) -> Array:
        """Return the second derivatives of some rows by some members."""
        return self.columns[np.ix_(rows, members)]

    def slopes(self, x: Array, rows: Indices) -> Array:
        """Return the slopes of some rows at x."""
        moved = np.flatnonzero(x - self.anchor)
        return np.asarray(self.g[rows] + self.block(rows, moved) @ (x - self.anchor)[moved])

    def value(self, x: Array) -> float:
        """Return the model at x."""
        moved = np.flatnonzero(x - self.anchor)
        step = (x - self.anchor)[moved]
        return self.F + float(self.g[moved] @ step + 0.5 * step @ self.block(moved, moved) @ step)
