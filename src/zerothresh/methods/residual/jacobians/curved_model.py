"""The outputs as a linear model plus the curvature that past steps have shown: a tensor model of low rank.

r(x + p) is about r + J p + sum_k a_k (c_k.p)^2, one term for each past step: the change of least norm of the second
derivative that explains the step, as Powell's symmetric update does for a Hessian. Schnabel and Frank (1984) showed
what tensor models are worth. The loss of the outputs is kept as it is; its minimum is found without runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.losses import Loss
from zerothresh.methods.residual.jacobians.loss_weights import total_loss, working
from zerothresh.methods.residual.jacobians.trust_step import bounded_least_squares_step, bounded_quadratic_step
from zerothresh.methods.residual.residual_settings import MODEL


@dataclass(frozen=True)
class CurvedModel:
    """Outputs r + J s + sum_k a_k (c_k.s)^2, with steps in the metric.

    Attributes
    ----------
    r, J: float64 arrays (n,), (n, p), the outputs, and their slopes in the metric.
    a, c: float64 arrays (m, n), (m, p), the terms of curvature; none if m = 0.
    """

    loss: Loss | None
    r: Array
    J: Array
    a: Array
    c: Array

    def outputs(self, s: Array) -> Array:
        """Return the predicted outputs after a step."""
        return np.asarray(self.r + self.J @ s + (self.c @ s) ** 2 @ self.a)

    def value(self, s: Array) -> float:
        """Return the predicted sum of losses after a step; infinite where a prediction overflows."""
        outputs = self.outputs(s)
        if (np.isnan(outputs) & ~np.isnan(self.r)).any():
            return np.inf
        return total_loss(self.loss, outputs)

    def slopes(self, s: Array) -> Array:
        """Return the Jacobian of the model after a step."""
        return np.asarray(self.J + 2 * self.a.T @ ((self.c @ s)[:, None] * self.c))

    def minimiser(self, radius: float, low: Array, high: Array) -> Array:
        """Return a minimiser of the sum of losses within the radius and the bounds."""
        w, u = working(self.loss, self.r)
        s = bounded_least_squares_step(w[:, None] * self.J, w * u, radius, low, high)
        if self.loss is None and not self.a.size:
            return s
        start, value = total_loss(self.loss, self.r), self.value(s)
        if not value < start:
            s, value = np.zeros(s.size), start
        for _ in range(MODEL.iterations):
            new, lower = self._closer(s, value, self._newton(s, radius, low, high))
            if not value - lower > MODEL.settled * (start - value):
                return new
            s, value = new, lower
        return s

    def _newton(self, s: Array, radius: float, low: Array, high: Array) -> Array:
        """Return the minimiser of the quadratic that touches the model at s."""
        outputs = self.outputs(s)
        w, u = working(self.loss, outputs)
        A, pull = w[:, None] * self.slopes(s), w * u
        bend = 2 * (self.c.T * (self.a @ (w * pull))) @ self.c
        H = A.T @ A + bend
        if not np.isfinite(H).all():
            return s
        return bounded_quadratic_step(H, A.T @ pull - H @ s, radius, low, high)

    def _closer(self, s: Array, value: float, to: Array) -> tuple[Array, float]:
        """Return a point between s and another one with a lower value; s itself if none is found."""
        for _ in range(MODEL.halvings):
            lower = self.value(to)
            if lower < value:
                return to, lower
            to = s + (to - s) / 2
        return s, value
