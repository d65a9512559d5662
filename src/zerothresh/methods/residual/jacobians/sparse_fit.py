"""Sparse linear least squares: min |y - J z|^2 with at most k non-zeros (or groups), within bounds, without runs.

Forward selection, exchanges at their exact price, and restarts from a random half of the best support. Dropping
coordinate a of a support costs z_a^2 / M_aa with M = (J_S' J_S)^-1, and adding j afterwards gains what its column has
in common with the residual, after projection: both are known for all pairs at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy.optimize import lsq_linear

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.residual.jacobians.sparse_choice import Choice
from zerothresh.methods.residual.residual_settings import FIT, TINY


def bounded_fit(A: Array, y: Array, low: Array, high: Array) -> Array:
    """Return the minimiser of |y - A z| within bounds."""
    if not A.shape[1]:
        return np.empty(0)
    z = np.asarray(np.linalg.lstsq(A, y, rcond=FIT.rank)[0])
    if ((z >= low) & (z <= high)).all():
        return z
    room = np.maximum(high, np.nextafter(low, np.inf))
    return np.asarray(np.clip(lsq_linear(A, y, (low, room), tol=FIT.rank).x, low, high))


def damped_fit(A: Array, y: Array, low: Array, high: Array) -> Array:
    """Return nearly the same, with small values where columns are equal up to their errors.

    The difference of two such columns consists of errors, and would be given an enormous value. What is left is fitted
    once more in the same way, which makes the fit exact where columns differ, and hardly changes it where they do not.
    """
    B = np.vstack([A, np.diag(np.sqrt(FIT.dependent * np.einsum("ij,ij->j", A, A)))])
    z, none = np.zeros(A.shape[1]), np.zeros(A.shape[1])
    for _ in range(2):
        z = z + bounded_fit(B, np.append(y - A @ z, none), low - z, high - z)
    return np.clip(z, low, high)


Fitted = tuple[float, Indices, Array]  # the sum of squares, the coordinates, and their values


class SparseFit:
    """The problem min |y - J z|^2 over a `Choice`."""

    def __init__(self, J: Array, y: Array, choice: Choice) -> None:
        self.J, self.y, self.choice = J, y, choice
        self.squares = np.einsum("ij,ij->j", J, J) + TINY
        self.slopes = y @ J
        self.total = float(y @ y)

    def fit(self, S: Indices) -> tuple[Array, float]:
        """Return the values on the coordinates S, and the sum of squares."""
        A = self.J[:, S]
        z = damped_fit(A, self.y, self.choice.low[S], self.choice.high[S])
        return z, float(np.sum((self.y - A @ z) ** 2))

    def gradient(self, S: Indices, z: Array) -> Array:
        """Return -1/2 the gradient of the sum of squares."""
        return np.asarray(self.slopes - (self.J[:, S] @ z) @ self.J)

    def gains(self, S: Indices, z: Array, across: Array) -> Array:
        """Return by how much each unit outside would lower the sum of squares.

        ``across`` is J seen from an orthonormal basis of the columns of S: (rank, d).
        """
        g, choice = self.gradient(S, z), self.choice
        if choice.single:
            rest = np.maximum(self.squares - np.einsum("ij,ij->j", across, across), FIT.dependent * self.squares)
            return np.where(choice.may_rise(g), g * g / rest, 0.0)
        gains, rises = np.zeros(choice.count), choice.may_rise(g)
        for unit in range(choice.count):
            T = choice.coordinates([unit])
            T = T[rises[T]]
            if T.size:
                gram = self.J[:, T].T @ self.J[:, T] - across[:, T].T @ across[:, T]
                gram += FIT.dependent * np.diag(self.squares[T])
                gains[unit] = float(g[T] @ np.linalg.lstsq(gram, g[T], rcond=FIT.rank)[0])
        return gains

    def forward(self, units: Iterable[int] = ()) -> list[int]:
        """Add the unit of the largest gain until k are chosen."""
        chosen = sorted(set(units) | set(self.choice.forced.tolist()))
        S = self.choice.coordinates(chosen)
        basis = _span(self.J[:, S])
        across = basis.T @ self.J
        while len(chosen) < self.choice.k:
            gains = self.gains(S, self.fit(S)[0], across)
            gains[chosen] = 0.0
            best = int(np.argmax(gains))
            if not gains[best] > 0:
                break
            chosen.append(best)
            S, columns = self.choice.coordinates(chosen), self.J[:, self.choice.coordinates([best])]
            for _ in range(2):  # once more, against rounding
                columns = columns - basis @ (basis.T @ columns)
            new = _span(columns)
            basis, across = np.hstack([basis, new]), np.vstack([across, new.T @ self.J])
        return sorted(chosen)

    def prices(self, chosen: list[int]) -> tuple[list[int], Array]:
        """Return the units that may leave, and the change of the sum of squares by each exchange: (units, leaving)."""
        forced = set(self.choice.forced.tolist())
        leaving = [unit for unit in chosen if unit not in forced]
        price = self._single_prices if self.choice.single else self._group_prices
        changes = price(chosen, leaving)
        changes[chosen] = np.inf
        return leaving, changes

    def _single_prices(self, chosen: list[int], leaving: list[int]) -> Array:
        S = self.choice.coordinates(chosen)
        place = [int(np.searchsorted(S, unit)) for unit in leaving]
        z, _ = self.fit(S)
        cross = self.J.T @ self.J[:, S]
        gram = cross[S] + np.diag(FIT.ridge * self.squares[S])
        M = np.linalg.pinv(gram, hermitian=True)
        along = cross @ M
        rest = np.maximum(self.squares - np.einsum("jk,jk->j", along, cross), FIT.dependent * self.squares)
        M_aa, along, z = np.maximum(np.diag(M)[place], TINY), along[:, place], z[place]
        g = self.gradient(S, self.fit(S)[0])[:, None] + along * (z / M_aa)
        left = np.maximum(rest[:, None] + along * along / M_aa, FIT.dependent * self.squares[:, None])
        rises = ((g > 0) & (self.choice.high > 0)[:, None]) | ((g < 0) & (self.choice.low < 0)[:, None])
        return z * z / M_aa - np.where(rises, g * g / left, 0.0)

    def _group_prices(self, chosen: list[int], leaving: list[int]) -> Array:
        _, before = self.fit(self.choice.coordinates(chosen))
        columns = []
        for unit in leaving:
            T = self.choice.coordinates([other for other in chosen if other != unit])
            z, value = self.fit(T)
            columns.append(value - before - self.gains(T, z, _span(self.J[:, T]).T @ self.J))
        return np.stack(columns, axis=1) if columns else np.empty((self.choice.count, 0))

    def exchange(self, chosen: list[int]) -> Fitted:
        """Exchange one unit at a time while that lowers the sum of squares."""
        S = self.choice.coordinates(chosen)
        chosen = self.choice.units(S)  # without those that bounds fix at 0
        z, value = self.fit(S)
        for _ in range(2 * len(chosen) + FIT.extra):
            better = self._better(chosen, value)
            if better is None:
                break
            chosen = better
            S = self.choice.coordinates(chosen)
            z, value = self.fit(S)
        return value, S, z

    def _better(self, chosen: list[int], value: float) -> list[int] | None:
        if not 0 < len(chosen) < self.choice.count:
            return None
        leaving, changes = self.prices(chosen)
        flat = changes.ravel()
        if not flat.size:
            return None
        first = np.argpartition(flat, min(FIT.candidates, flat.size) - 1)[: FIT.candidates]
        for at in first[np.argsort(flat[first], kind="stable")]:
            if not flat[at] < -FIT.gain * self.total:
                return None
            entering, a = divmod(int(at), len(leaving))
            other = sorted((set(chosen) - {leaving[a]}) | {entering})
            if self.fit(self.choice.coordinates(other))[1] < value - FIT.gain * self.total:
                return other
        return None

    def solve(self, uniform: Callable[[int], Array], restarts: int, starts: Iterable[Indices] = ()) -> list[Fitted]:
        """Return the fits that were found, best first."""
        found: dict[tuple[int, ...], Fitted] = {}

        def descend(units: list[int]) -> None:
            fitted = self.exchange(units)
            found.setdefault(tuple(fitted[1].tolist()), fitted)

        descend(self.forward())
        if self.choice.single:
            scores = np.where(self.choice.may_rise(self.slopes), self.slopes**2 / self.squares, -1.0)
            scores[self.choice.forced] = np.inf
            descend(sorted(np.argsort(-scores, kind="stable")[: self.choice.k].tolist()))
        for start in starts:
            descend(self.forward(self.choice.units(start)))
        for _ in range(restarts):
            value, S, _z = min(found.values(), key=lambda fitted: fitted[0])
            units = self.choice.units(S)
            if value <= FIT.solved * self.total or len(units) <= 1 or self.choice.everything:
                break
            kept = np.array(units)[2 * uniform(len(units)) < 1]
            descend(self.forward(kept.tolist()))
        return sorted(found.values(), key=lambda fitted: fitted[0])


def _span(A: Array) -> Array:
    """Return an orthonormal basis of the columns of A."""
    if not A.shape[1]:
        return np.empty((A.shape[0], 0))
    Q, R = np.linalg.qr(A)
    sizes = np.abs(np.diag(R))
    return np.asarray(Q[:, sizes > FIT.rank * sizes.max(initial=0.0)])
