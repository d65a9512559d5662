"""Which groups of coordinates are likely to hold one of the support, from the slopes of whole groups.

The summed columns of a group are one run. Its slope along the present residual u is that of its members of the support,
about a = |J_j| / sqrt(k) each, plus crosstalk of all its members, whose variance grows with their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.residual.residual_settings import POOL, TINY


@dataclass(frozen=True)
class ColumnGroup:
    """Coordinates, and the change of the outputs when all of them move by their steps: (members,), (members,), (n,)."""

    members: Indices
    shifts: Array
    change: Array

    @property
    def size(self) -> int:
        """The number of members."""
        return int(self.members.size)

    def parts(self, count: int) -> list[tuple[Indices, Array]]:
        """Return the members and shifts of parts of about equal size."""
        return list(zip(np.array_split(self.members, count), np.array_split(self.shifts, count), strict=True))


@dataclass(frozen=True)
class GroupSlopes:
    """Slopes of groups along the residual u, and what is expected of them.

    Attributes
    ----------
    sizes, slopes: float64 arrays, one number per group.
    signal: float, the slope of a typical member of the support.
    crosstalk: float, the variance of slopes per member of a group.
    """

    sizes: Array
    slopes: Array
    signal: float
    crosstalk: float

    @classmethod
    def along(cls, u: Array, groups: Sequence[ColumnGroup], k: int, first: float | None = None) -> GroupSlopes:
        """Return the slopes along u; what is common to all columns, as where all are positive, is taken off.

        ``first`` is the size of u when all k members were missing. Those that are left make up all of a smaller u, so
        that each of them stands out more, until a single one is all of u.
        """
        sizes, changes = np.array([float(group.size) for group in groups]), np.array([group.change for group in groups])
        size = max(float(np.linalg.norm(u)), TINY)
        slopes = changes @ (u / size)
        slopes = slopes - sizes * (slopes.sum() / sizes.sum())
        share = 1.0 / max(k, 1) if first is None else min((first / size) ** 2 / max(k, 1), 1.0)
        signal = np.sqrt(np.sum(changes**2) / sizes.sum() * share)
        return cls(sizes, slopes, float(signal), max(float(np.sum(slopes**2) / sizes.sum()), TINY))

    def odds(self, density: float) -> Array:
        """Return the log-odds that each group holds a member of the support, whose share of the columns is given."""
        llr = (self.signal * np.abs(self.slopes) - self.signal**2 / 2) / (self.sizes * self.crosstalk)
        return np.asarray(np.log(self.sizes * density) + llr)

    def expected(self, density: float) -> float:
        """Return how many groups are expected to hold a member of the support."""
        return float(np.sum(1 / (1 + np.exp(np.minimum(-self.odds(density), POOL.never)))))

    def forecast(self, density: float) -> float:
        """Return the share of all columns that splits will cost until the support stands out of the crosstalk."""
        return float(POOL.evidence * -np.log(density) * self.crosstalk / max(self.signal**2, TINY))
