r"""What is known of components that are functions of one linear score each, plus an l2 term.

.. math:: f_i(\theta) = l_i(v_i \cdot (\theta - \theta_0)) + \frac\lambda2 \|\theta - c\|^2

The row v_i is the gradient of l_i at the start, so that l_i' = 1 there. Rows may be known on fewer coordinates for the
components that were learnt later.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.single_index_settings import CURVES, INDEX, ROWS


@dataclass
class RowBlock:
    """Rows of components that were learnt together."""

    coordinates: Indices  # sorted
    rows: Array  # (components, coordinates)

    def on(self, C: Indices) -> Array:
        """Return the rows on coordinates C, all of which must be known."""
        return self.rows[:, np.searchsorted(self.coordinates, C)]

    def add(self, coordinates: Indices, columns: Array) -> None:
        """Add coordinates that were not known before."""
        joined = np.concatenate([self.coordinates, coordinates])
        order = np.argsort(joined, kind="stable")
        self.coordinates = joined[order]
        self.rows = np.ascontiguousarray(np.concatenate([self.rows, columns], axis=1)[:, order])


@dataclass
class IndexRows:
    """The rows v_i on the modelled coordinates, and the l2 term.

    Arguments
    ---------
    theta0: array of shape (d,), the start.
    C: indices of the modelled coordinates, sorted; `restrict` and `extend` change them.
    """

    theta0: Array
    C: Indices
    blocks: list[RowBlock] = field(default_factory=list)
    f0: Array = field(default_factory=lambda: np.empty(0))  # f_i at the start
    slope: Array = field(default_factory=lambda: np.empty(0))  # l_i' at the start: 1 where the row was learnt there
    kappa: Array = field(default_factory=lambda: np.empty(0))  # l_i'' at the start, in the unit of the row
    lam: float = 0.0
    centre: Array = field(init=False)

    def __post_init__(self) -> None:
        self.centre = np.zeros(self.theta0.size)
        self.V = np.empty((0, self.C.size))  # rows on C

    def __len__(self) -> int:
        return len(self.V)

    def append(self, rows: Array, f0: Array, slope: Array, kappa: Array) -> None:
        """Add components whose rows are known on C."""
        self.blocks.append(RowBlock(self.C, rows))
        self.f0 = np.concatenate([self.f0, f0])
        self.slope = np.concatenate([self.slope, slope])
        self.kappa = np.concatenate([self.kappa, kappa])
        self.V = np.concatenate([self.V, rows])

    def keep(self, positions: Indices) -> None:
        """Forget all components but those at these positions, which are in increasing order."""
        blocks, first = list[RowBlock](), 0
        for block in self.blocks:
            last = first + len(block.rows)
            here = positions[(first <= positions) & (positions < last)] - first
            blocks += [RowBlock(block.coordinates, block.rows[here])] if here.size else []
            first = last
        self.blocks = blocks
        self.f0, self.slope, self.kappa = self.f0[positions], self.slope[positions], self.kappa[positions]
        self.V = self.V[positions]

    def restrict(self, keep: Indices) -> None:
        """Model only the coordinates at these positions of C from now on."""
        self.C = self.C[keep]
        self.V = np.ascontiguousarray(self.V[:, keep])

    def extend(self) -> None:
        """Model all coordinates that every component knows by now."""
        common = self.blocks[0].coordinates
        for block in self.blocks[1:]:
            common = np.intersect1d(common, block.coordinates, assume_unique=True)
        self.C = common
        self.V = np.concatenate([block.on(common) for block in self.blocks])

    def known_by(self, coordinates: Indices) -> Indices:
        """Return how many components know each of these coordinates; later components never know more."""
        counts = np.zeros(coordinates.size, np.int64)
        for block in self.blocks:
            counts += np.isin(coordinates, block.coordinates) * len(block.rows)
        return counts

    def partial_blocks(self, coordinates: Indices) -> list[RowBlock]:
        """Return the rows on coordinates that only the first components know, by how many know them."""
        counts, parts = self.known_by(coordinates), list[RowBlock]()
        for count in np.unique(counts[counts > 0]).tolist():
            chosen = coordinates[counts == count]
            known = [block.on(chosen) for block in self.blocks if np.isin(chosen[0], block.coordinates)]
            parts.append(RowBlock(chosen, np.concatenate(known)))
        return parts

    def full(self, rows: Array) -> Array:
        """Extend rows on C by zeros to all d coordinates."""
        out = np.zeros((len(rows), self.theta0.size))
        out[:, self.C] = rows
        return out

    def scores(self, theta: Array) -> Array:
        """Return v_i . (theta - start) of all components."""
        return np.asarray(self.V @ (theta - self.theta0)[self.C])

    def l2_change(self, points: Array) -> Array:
        """Return the l2 term at points minus the l2 term at the start."""
        moved, start = points - self.centre, self.theta0 - self.centre
        return np.asarray(0.5 * self.lam * (np.einsum("...d,...d->...", moved, moved) - float(start @ start)))

    def quadratic_values(self, theta: Array) -> Array:
        """Predict f_i at theta as if every l_i were quadratic."""
        z = self.scores(theta)
        return np.asarray(self.f0 + self.slope * z + 0.5 * self.kappa * z * z + self.l2_change(theta))

    def derivatives(
        self, slope: Array, curvature: Array, theta: Array, natural: float, *, quadratic: bool = False
    ) -> tuple[Array, Array]:
        """Return gradient and Hessian on C of the mean of the modelled components.

        Curvatures have a small positive lower limit, so that the Hessian is positive definite: a share of the median,
        and the curvature of a straight piece that is assumed to go on for many natural lengths.

        Arguments
        ---------
        slope, curvature: arrays of shape (m,), l_i' and l_i'' at theta.
        natural: float, the natural length along a row.
        """
        squares = norms(self.V) ** 2  # each score has the unit of its own component
        lowest = CURVES.flattest * float(np.median(np.abs(curvature) * squares)) / squares
        share = CURVES.straight_quadratic if quadratic else CURVES.straight
        curvature = np.maximum(curvature, lowest + share / (np.sqrt(squares) * natural))
        m = len(self.V)
        g = self.V.T @ slope / m + self.lam * (theta - self.centre)[self.C]
        return g, (self.V * curvature[:, None]).T @ self.V / m + self.lam * np.eye(self.C.size)

    def lower_bound(self) -> float:
        """Return a lower limit of the mean if all l_i are quadratic: the mean of their minima."""
        if (self.kappa <= 0).any() or self.lam < 0:
            return -np.inf
        start = self.theta0 - self.centre
        return float((self.f0 - 0.5 * self.slope**2 / self.kappa).mean()) - 0.5 * self.lam * float(start @ start)


def norms(V: Array) -> Array:
    """Return the norms of rows, at least tiny."""
    return np.asarray(np.maximum(np.linalg.norm(V, axis=1), TINY))


def strong_rows(gradients: Array) -> Indices:
    """Return which gradients are not those of components stationary at the start, the largest first."""
    lengths = norms(gradients)
    order = np.argsort(-lengths, kind="stable")
    return np.asarray(order[lengths[order] > ROWS.weak * lengths.max()], np.int64)


def common_minimum(f0: Array, slope: Array, kappa: Array, noise: float) -> tuple[float, float] | None:
    """Return the minimum that all l_i share if they are squares, and its error.

    A square has its minimum l_i'^2 / (2 l_i'') below its value. None if the minima differ, so that curvatures have to
    be measured one by one.

    >>> values = np.array([3.0, 4.0, 6.0])
    >>> minimum, _ = common_minimum(values, np.ones(3), 0.5 / (values - 2.0), 1e-15)
    >>> round(minimum, 12)
    2.0
    """
    if f0.size < ROWS.same_minimum_rows or (kappa <= 0).any() or not np.isfinite(kappa).all():
        return None
    minima = f0 - 0.5 * slope**2 / kappa
    minimum, spread = float(np.median(minima)), float(np.ptp(f0))
    error = float(np.abs(minima - minimum).max()) + INDEX.noise_deviations * noise
    return (minimum, error) if error <= ROWS.same_minimum * spread else None


def balanced_move(row: Array, theta: Array, w: Array, inward: Array) -> Array:
    """Return a move without effect on a score, and without effect on |theta| to first order.

    Arguments
    ---------
    row: array of shape (c,), the gradient of one component.
    theta: array of shape (c,), where it was measured.
    w: array of shape (c,), a random vector.
    inward: array of shape (c,), 1 or -1 where a bound allows moves to one side only, else 0.

    Returns
    -------
    array of shape (c,): orthogonal to row and theta where there are no bounds. At bounds, the entries that raise the
    score are balanced with those that lower it. Zeros if there is no such move.
    """
    inside = inward == 0
    if np.count_nonzero(inside) > 2:
        w = np.where(inside, w, 0.0)
        basis = np.stack([row, theta], axis=1)[:, : 1 + bool(theta[inside].any())]
        q, _ = np.linalg.qr(np.where(inside[:, None], basis, 0.0))
        for _ in range(2):  # twice: rounding
            w = w - q @ (q.T @ w)
        return np.asarray(w)
    w = np.where(inside, 0.0, np.abs(w) * inward)
    effect = row * w
    up, down = float(effect[effect > 0].sum()), -float(effect[effect < 0].sum())
    if not up > 0 or not down > 0:
        return np.zeros_like(w)
    return np.where(effect > 0, w * min(1.0, down / up), np.where(effect < 0, w * min(1.0, up / down), w))
