"""A Jacobian that learns from every run: Broyden's update, seen as a filter.

Rows of J change between x and x + s by r''[s, .]; of r'' nothing is known but its size, so it is taken as a random
symmetric tensor of unit size in the metric of the steps. P is the covariance of the error of each row of J, in units of
that curvature. A run at x + s tells v = r(x + s) - r - J s = E s + r''[s, s] / 2, with variance s'Ps + |s|^4 / 4:

- moved to x + s: the gain is (P s + |s|^2 s / 2) / variance, which is twice Broyden's if J was fresh (exact for
  quadratics), and Broyden's if it was old;
- not moved: the gain is P s / variance, which is none if J was fresh: the curvature is to blame.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.residual.residual_settings import MODEL, TINY


@dataclass(frozen=True)
class FilteredJacobian:
    """Columns, and how far each direction of them is to be trusted; steps s are in the metric: s = D (y - x).

    Attributes
    ----------
    J: float64 array (n, p), the columns in the units of x.
    P: float64 array (p, p), the covariance of their errors, in the metric.
    D: float64 array (p,), the metric.
    noise: float, the summed square of the noise of a difference of two runs.
    curvature: float, the squared unit of curvature as seen so far; 0: not known.
    """

    J: Array
    P: Array
    D: Array
    noise: float = 0.0
    curvature: float = 0.0

    def scaled(self) -> Array:
        """Return the columns in the metric of the steps."""
        return self.J / self.D

    def change(self, s: Array) -> Array:
        """Return the predicted change of the outputs by a step."""
        return np.asarray(self.J @ (s / self.D))

    def doubt(self, s: Array) -> float:
        """Return the variance of the prediction that comes from errors of J, in units of curvature."""
        return float(s @ self.P @ s)

    @property
    def doubt_by_noise(self) -> float:
        """The variance of the difference of two runs that comes from noise, in units of curvature."""
        return self.noise / max(self.curvature, TINY) if self.noise > 0 else 0.0

    def learn(self, s: Array, surprise: Array, moved: bool) -> FilteredJacobian:
        """Return the filter after a step s whose outputs differed from the prediction by ``surprise``."""
        square, P = float(s @ s), self.P
        error = P @ s
        variance = float(s @ error) + square * square / 4
        curvature = self.curvature
        if self.noise > 0:
            seen = float(surprise @ surprise)
            now = max(seen - self.noise, MODEL.part * seen) / max(variance, TINY)
            curvature = now if curvature == 0 else float(np.sqrt(now * curvature))
            variance += self.noise / max(curvature, TINY)
        variance = max(variance, TINY)
        if moved:
            gain = (error + square / 2 * s) / variance
            P = P + square / 2 * np.eye(s.size) + np.outer(s, s) / 2
        else:
            gain = error / variance
        P = P - variance * np.outer(gain, gain)
        J = self.J + np.outer(surprise, gain * self.D)
        if not (np.isfinite(J).all() and np.isfinite(P).all() and np.abs(J).max(initial=0.0) < MODEL.largest):
            return self
        return replace(self, J=J, P=(P + P.T) / 2, curvature=curvature)

    def measured(self, s: Array, surprise: Array) -> FilteredJacobian:
        """Return the filter after a difference along a short s, which tells J s without curvature."""
        error = self.P @ s
        variance = float(s @ error) + self.doubt_by_noise
        known = variance <= 0 or float(s @ error) <= 0
        gain = s / float(s @ s) if known else error / variance
        P = self.P if known else self.P - np.outer(error, error) / variance
        return replace(self, J=self.J + np.outer(surprise, gain * self.D), P=(P + P.T) / 2)

    def rescaled(self, D: Array) -> FilteredJacobian:
        """Return the same filter in another metric."""
        ratio = D / self.D
        return replace(self, D=D, P=self.P / np.outer(ratio, ratio))


def row_scaling(before: Array, after: Array, ridge: float) -> tuple[Array, float]:
    """Return factors of the rows that turn old columns into new ones, and how well they predict a column left out.

    The second number is the squared error of each column, predicted with factors from the others, over the squared
    change of the columns: below 1, scaled old columns are better than old columns.
    """
    both, old = np.einsum("ij,ij->i", before, after), np.einsum("ij,ij->i", before, before)
    extra = float(old.mean()) * ridge + TINY
    others = (both[:, None] - before * after + extra) / (old[:, None] - before**2 + extra)
    error, change = float(np.sum((others * before - after) ** 2)), float(np.sum((before - after) ** 2))
    return (both + extra) / (old + extra), error / max(change, TINY)
