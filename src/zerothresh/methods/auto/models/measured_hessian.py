"""A Hessian whose entries are measured one column at a time, and the exchanges that it predicts."""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint import splicing
from zerothresh.methods.auto.settings.support_search_settings import SUPPORT_SEARCH


class MeasuredHessian:
    """Second derivatives of F on c coordinates; what has not been measured is unknown.

    Arguments
    ---------
    c: int, the number of coordinates.
    """

    def __init__(self, c: int) -> None:
        self.A = np.zeros((c, c))
        self.known = np.zeros((c, c), bool)

    @property
    def complete(self) -> bool:
        """Whether every entry is known."""
        return bool(self.known.all())

    def missing(self, rows: Indices, j: int) -> Indices:
        """Return those of the rows whose entries in column j are unknown."""
        return np.asarray(rows[~self.known[rows, j]])

    def add(self, rows: Indices, j: int, column: Array) -> None:
        """Enter what was measured of column j, and by symmetry of row j."""
        self.A[rows, j] = self.A[j, rows] = column
        self.known[rows, j] = self.known[j, rows] = True

    def exchanges(self, x: Array, g: Array, S: Indices, j: int, fixed: Indices) -> tuple[Array, list[Array]]:
        """Predict all exchanges of one coordinate of the support S for j.

        Arguments
        ---------
        x, g: arrays of shape (c,), the point and the gradient there.
        S: sorted indices of its support, shape (s,); the entries on S and j must be known.
        j: int, the coordinate that comes in.
        fixed: indices that must stay.

        Returns
        -------
        the predicted changes of F, shape (s,), infinite where F is not convex on the new support; the new points.
        """
        U = np.append(S, j)
        A = self.A[np.ix_(U, U)]
        b = A @ x[U] - g[U]
        now = 0.5 * float(x[U] @ A @ x[U]) - float(b @ x[U])
        changes, points = np.full(S.size, np.inf), list[Array]()
        for a in range(S.size):
            T = np.delete(np.arange(U.size), a)
            y = np.zeros(x.size)
            y[U[T]] = splicing.minimiser(A[np.ix_(T, T)], b[T])
            points.append(y)
            if S[a] not in fixed and np.linalg.eigvalsh(A[np.ix_(T, T)])[0] > 0:
                changes[a] = -0.5 * float(b[T] @ y[U[T]]) - now
        return changes, points

    def best_supports(self, x: Array, g: Array, k: int, starts: list[Indices], forced: Indices) -> list[Array]:
        """Return the sparse minimisers that exchanges reach from each of the starts, the lowest first."""
        eigenvalues, axes = np.linalg.eigh(self.A)
        least = SUPPORT_SEARCH.least_eigenvalue * float(np.abs(eigenvalues).max())
        A = (axes * np.maximum(eigenvalues, least)) @ axes.T
        b = A @ x - g
        found = dict[bytes, tuple[float, Array]]()
        for start in starts:
            y = splicing.best_subset(A, b, k, starts=[start], forced=forced, only_given_starts=True)
            found[np.flatnonzero(y).tobytes()] = (0.5 * float(y @ A @ y) - float(b @ y), y)
        return [y for _, y in sorted(found.values(), key=lambda pair: pair[0])]
