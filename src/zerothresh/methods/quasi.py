"""A quasi-Newton model of F on all coordinates: a matrix that learns from differences of gradients."""

from __future__ import annotations

import numpy as np

from zerothresh import splicing
from zerothresh.methods.base import Array
from zerothresh.plan import Indices
from zerothresh.threshold import Constraint


class Quasi:
    """The Hessian so far; symmetric and positive definite at all times."""

    def __init__(self, d: int, curvature: float = 1.0) -> None:
        self.B = np.eye(d) * curvature
        self.scaled = False  # whether the curvature was measured

    def rescale(self, curvature: float) -> None:
        """Begin again with this curvature in all directions."""
        self.B = np.eye(len(self.B)) * curvature
        self.scaled = True

    def learn(self, s: Array, y: Array, C: Indices, noise: float = 0.0) -> bool:
        """BFGS on the block C: the gradient changed by y on a step s, both on C. False if it tells nothing."""
        sy, norm = float(s @ y), float(np.linalg.norm(s))
        if not sy > 1e-8 * norm * float(np.linalg.norm(y)) + 3.0 * noise * norm:
            return False
        if not self.scaled:
            self.rescale(sy / norm**2)
        Bs = self.B[np.ix_(C, C)] @ s
        old = float(s @ Bs)
        if not old > 0:
            return False
        self.B[np.ix_(C, C)] += np.outer(y, y) / sy - np.outer(Bs, Bs) / old
        return True

    def step(self, g: Array, S: Indices) -> Array:
        """The Newton step of the block S."""
        block = self.B[np.ix_(S, S)]
        shift = 1e-10 * float(np.trace(block)) / max(S.size, 1)
        return np.asarray(-np.linalg.solve(block + shift * np.eye(S.size), g))

    def sparse(self, theta: Array, g: Array, C: Indices, k: int, constraint: Constraint, damp: float = 0.0) -> Array:
        """The minimiser of the model on C with at most k non-zeros."""
        A = self.B[np.ix_(C, C)]
        if damp:
            A = A + (damp * float(np.trace(A)) / C.size) * np.eye(C.size)
        forced = np.flatnonzero(np.isin(C, constraint.include))
        start = np.flatnonzero(theta[C])
        x = splicing.solve(A, A @ theta[C] - g, k, starts=[start] if start.size else [], forced=forced)
        out = np.zeros(theta.size)
        out[C] = x
        return out
