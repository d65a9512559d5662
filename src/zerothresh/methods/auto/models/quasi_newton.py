"""A quasi-Newton model of F on some coordinates: a Hessian approximation that learns from gradient differences."""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint import splicing
from zerothresh.constraint.threshold import Constraint
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.floating_point import TINY

MAX_MODELLED_COORDINATES = DESCENT.most_modelled


class QuasiNewton:
    """A Hessian approximation B on a fixed set of coordinates; symmetric and positive definite at all times.

    Arguments
    ---------
    coordinates: sorted indices of the modelled coordinates, shape (c,).
    B: array of shape (c, c), the initial Hessian. Default: the identity, until a curvature has been measured.
    """

    def __init__(self, coordinates: Indices, B: Array | None = None) -> None:
        self.coordinates = coordinates
        self.B: Array = np.eye(coordinates.size) if B is None else B
        self.scaled = B is not None  # whether a curvature has been measured

    @property
    def mean_curvature(self) -> float:
        """The mean curvature along a coordinate; rounding must not make it 0."""
        return max(float(np.trace(self.B)) / self.coordinates.size, TINY)

    def rescale(self, curvature: float) -> None:
        """Reset the Hessian to this curvature in all directions."""
        self.B = np.eye(self.coordinates.size) * curvature
        self.scaled = True

    def onto(self, coordinates: Indices) -> QuasiNewton:
        """Return the model on other coordinates; those that were not modelled have the mean curvature."""
        if not self.scaled:
            return QuasiNewton(coordinates)
        B = np.eye(coordinates.size) * self.mean_curvature
        new, old = np.isin(coordinates, self.coordinates), np.isin(self.coordinates, coordinates)
        B[np.ix_(new, new)] = self.B[np.ix_(old, old)]
        return QuasiNewton(coordinates, B)

    def block(self, C: Indices) -> Array:
        """Return the block of the Hessian for the coordinates C."""
        if C.size == self.coordinates.size:
            return self.B
        positions = np.searchsorted(self.coordinates, C)
        return np.asarray(self.B[np.ix_(positions, positions)])

    def learn(self, step: Array, y: Array, C: Indices, noise: float = 0.0) -> bool:
        """Update the Hessian (BFGS) with the change y of the gradient on the coordinates C over a step.

        Arguments
        ---------
        step: array of shape (d,), the difference of two points.
        y: array of shape (C.size,), the difference of their gradients on C.
        C: indices of the coordinates on which the gradient is known.
        noise: float, the standard deviation of an entry of y. Default: 0.

        Returns
        -------
        bool: False if the pair says nothing about the curvature, so that nothing was updated.
        """
        s, norm = step[self.coordinates], float(np.linalg.norm(step))
        sy = float(step[C] @ y)
        if not sy > DESCENT.least_cosine * norm * float(np.linalg.norm(y)) + DESCENT.curvature_noise * noise * norm:
            return False
        if not self.scaled:
            self.rescale(sy / max(square(norm), TINY))
        Bs = self.B @ s
        full_y = Bs.copy()  # where nothing was measured, the gradient is assumed to change as the model predicts
        full_y[np.searchsorted(self.coordinates, C)] = y
        sBs, sy = float(s @ Bs), float(s @ full_y)
        if sBs > 0 and sy > 0:
            self.B += np.outer(full_y, full_y) / sy
            self.B -= np.outer(Bs, Bs) / sBs
        return True

    def step(self, g: Array, S: Indices) -> Array:
        """Return the Newton step on the support S for the gradient g there."""
        block = self.block(S)
        shift = DESCENT.newton_ridge * float(np.trace(block)) / max(S.size, 1)
        return -splicing.minimiser(block + shift * np.eye(S.size), g)

    def sparse_minimiser(
        self,
        theta: Array,
        g: Array,
        C: Indices,
        k: int,
        constraint: Constraint,
        damping: float = 0.0,
        extra_curvature: float = 0.0,
    ) -> Array:
        """Minimise the model around theta on the coordinates C with at most k non-zeros.

        Arguments
        ---------
        theta: array of shape (d,), the current point.
        g: array of shape (C.size,), the gradient on C.
        C: indices of the coordinates that may be non-zero.
        k: int, the largest number of non-zeros.
        constraint: the feasible set.
        damping: float, added to the Hessian as a multiple of its mean diagonal. Default: 0.
        extra_curvature: float, added to the diagonal of the Hessian. Default: 0.

        Returns
        -------
        array of shape (d,): a feasible sparse minimiser of the model.
        """
        A = self.block(C)
        if damping or extra_curvature:
            A = A + (damping * float(np.trace(A)) / C.size + extra_curvature) * np.eye(C.size)
        forced = np.flatnonzero(np.isin(C, constraint.include))
        start = np.flatnonzero(theta[C])
        out = np.zeros(theta.size)
        b = A @ theta[C] - g
        out[C] = splicing.best_subset(A, b, k, starts=[start] if start.size else [], forced=forced)
        return splicing.make_feasible(A, b, out, C, constraint)

    def exchanges(self, theta: Array, g: Array, C: Indices, count: int, forced: Indices) -> list[Array]:
        """Return the model's minimisers on up to ``count`` supports that differ from theta's in one coordinate.

        The most promising exchange comes first; coordinates in ``forced`` stay.
        """
        S = np.flatnonzero(theta[C])
        if not 0 < S.size < C.size:
            return []
        A = self.block(C)
        change = splicing.exchange_costs(A, A @ theta[C] - g, S)
        change[:, np.isin(C[S], forced)] = np.inf
        points = list[Array]()
        for flat_index in np.argsort(change, axis=None, kind="stable")[:count].tolist():
            j, a = divmod(flat_index, S.size)
            if np.isfinite(change[j, a]):
                T = S.copy()
                T[a] = j
                points.append(self.minimiser_on(theta, g, C, T))
        return points

    def other_supports(self, theta: Array, g: Array, C: Indices, starts: list[Indices], forced: Indices) -> list[Array]:
        """Return the minimisers of the model that exchanges reach from each of the starts, the lowest first."""
        A = self.block(C)
        b = A @ theta[C] - g
        fixed, found = np.flatnonzero(np.isin(C, forced)), dict[bytes, tuple[float, Array]]()
        for start in starts:
            y = splicing.best_subset(A, b, start.size, starts=[start], forced=fixed, only_given_starts=True)
            point = np.zeros(theta.size)
            point[C] = y
            found[np.flatnonzero(y).tobytes()] = (0.5 * float(y @ A @ y) - float(b @ y), point)
        return [point for _, point in sorted(found.values(), key=lambda pair: pair[0])]

    def minimiser_on(self, theta: Array, g: Array, C: Indices, T: Indices) -> Array:
        """Return the model's minimiser on the support C[T], given its gradient g on C at theta."""
        A = self.block(C)
        point = np.zeros(theta.size)
        point[C[T]] = splicing.minimiser(A[np.ix_(T, T)], A[T] @ theta[C] - g[T])
        return point

    def exchange_scores(self, theta: Array, g: Array, C: Indices, forced: Indices) -> Array:
        """Return half the logarithm of what each exchange gains over what it costs, in the model.

        Returns
        -------
        array of shape (c, s): entry (j, a) is for C[j] in the place of the support's a-th coordinate; -inf where j is
        in the support, or the coordinate to drop is in ``forced``. Empty if there is no exchange.
        """
        S = np.flatnonzero(theta[C])
        if not 0 < S.size < C.size:
            return np.empty((0, 0))
        A = self.block(C)
        b = A @ theta[C] - g
        change = splicing.exchange_costs(A, b, S)
        inverse = np.linalg.pinv(A[np.ix_(S, S)], hermitian=True)
        cost = np.maximum(np.square(inverse @ b[S]) / (2 * np.maximum(np.diag(inverse), TINY)), TINY)
        gain = np.maximum(cost - change, 0.0)
        gain[:, np.isin(C[S], forced)] = 0.0
        return np.asarray(0.5 * np.log(gain / cost))
