"""A quasi-Newton model of F on some coordinates: a matrix that learns from differences of gradients."""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint import splicing
from zerothresh.constraint.threshold import Constraint


class QuasiNewton:
    """The Hessian so far; symmetric and positive definite at all times."""

    def __init__(self, places: Indices, B: Array | None = None) -> None:
        self.places = places  # the coordinates that it models, in order
        self.B: Array = np.eye(places.size) if B is None else B
        self.scaled = B is not None  # whether a curvature was measured

    @property
    def mean(self) -> float:
        """The mean curvature along a coordinate."""
        return float(np.trace(self.B)) / self.places.size

    def rescale(self, curvature: float) -> None:
        """Begin again with this curvature in all directions."""
        self.B = np.eye(self.places.size) * curvature
        self.scaled = True

    def block(self, C: Indices) -> Array:
        """The part for some of the coordinates."""
        if C.size == self.places.size:
            return self.B
        at = np.searchsorted(self.places, C)
        return np.asarray(self.B[np.ix_(at, at)])

    def learn(self, step: Array, y: Array, C: Indices, noise: float = 0.0) -> bool:
        """BFGS: on a step the gradient changed by y on the coordinates C. False if that tells nothing."""
        s, norm = step[self.places], float(np.linalg.norm(step))
        sy = float(step[C] @ y)
        if not sy > 1e-8 * norm * float(np.linalg.norm(y)) + 3.0 * noise * norm:
            return False
        if not self.scaled:
            self.rescale(sy / norm**2)
        Bs = self.B @ s
        whole = Bs.copy()  # where nothing was measured, the model is taken at its word
        whole[np.searchsorted(self.places, C)] = y
        sBs, sy = float(s @ Bs), float(s @ whole)
        if sBs > 0 and sy > 0:
            self.B += np.outer(whole, whole) / sy
            self.B -= np.outer(Bs, Bs) / sBs
        return True

    def step(self, g: Array, S: Indices) -> Array:
        """The Newton step on the support S."""
        block = self.block(S)
        shift = 1e-10 * float(np.trace(block)) / max(S.size, 1)
        return -splicing.minimiser(block + shift * np.eye(S.size), g)

    def sparse(
        self, theta: Array, g: Array, C: Indices, k: int, constraint: Constraint, damp: float = 0.0, least: float = 0.0
    ) -> Array:
        """The minimiser of the model on C with at most k non-zeros; ``least`` is added to all curvatures."""
        A = self.block(C)
        if damp or least:
            A = A + (damp * float(np.trace(A)) / C.size + least) * np.eye(C.size)
        forced = np.flatnonzero(np.isin(C, constraint.include))
        start = np.flatnonzero(theta[C])
        out = np.zeros(theta.size)
        b = A @ theta[C] - g
        out[C] = splicing.solve(A, b, k, starts=[start] if start.size else [], forced=forced)
        return splicing.inside(A, b, out, C, constraint)

    def exchanges(self, theta: Array, g: Array, C: Indices, count: int) -> list[Array]:
        """The model's own minimisers on supports that differ from theta's in one coordinate, best first."""
        S = np.flatnonzero(theta[C])
        if not 0 < S.size < C.size:
            return []
        A = self.block(C)
        b = A @ theta[C] - g
        change = splicing.prices(A, b, S)
        found = list[Array]()
        for place in np.argsort(change, axis=None, kind="stable")[:count].tolist():
            j, a = divmod(place, S.size)
            if np.isfinite(change[j, a]):
                T = S.copy()
                T[a] = j
                point = np.zeros(theta.size)
                point[C[T]] = splicing.minimiser(A[np.ix_(T, T)], b[T])
                found.append(point)
        return found
