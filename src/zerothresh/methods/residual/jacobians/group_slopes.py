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


def likelihoods(groups: Sequence[ColumnGroup], u: Array, k: int, d: int) -> Array:
    """Return the log-odds that each group holds a member of the support, given the residual u."""
    sizes = np.array([group.size for group in groups], dtype=float)
    slopes = np.array([group.change for group in groups]) @ (u / max(float(np.linalg.norm(u)), TINY))
    slopes = slopes - sizes * (slopes.sum() / sizes.sum())
    signal, crosstalk = strengths(groups, slopes, k)
    odds = np.log(np.maximum(sizes * k / max(d, 1), TINY))
    return np.asarray(odds + (signal * np.abs(slopes) - signal**2 / 2) / np.maximum(sizes * crosstalk, TINY))


def strengths(groups: Sequence[ColumnGroup], slopes: Array, k: int) -> tuple[float, float]:
    """Return the slope of a typical member of the support, and the variance of crosstalk per member."""
    sizes = np.array([group.size for group in groups], dtype=float)
    squares = np.array([group.change @ group.change for group in groups])
    signal = float(np.sqrt(squares.sum() / sizes.sum() / max(k, 1)))
    return signal, float(np.sum(slopes**2) / sizes.sum())


def forecast(groups: Sequence[ColumnGroup], u: Array, k: int, d: int) -> float:
    """Return the runs that splitting groups will take until the support stands out, by the first groups."""
    sizes = np.array([group.size for group in groups], dtype=float)
    slopes = np.array([group.change for group in groups]) @ (u / max(float(np.linalg.norm(u)), TINY))
    slopes = slopes - sizes * (slopes.sum() / sizes.sum())
    signal, crosstalk = strengths(groups, slopes, k)
    return POOL.evidence * float(np.log(d / k)) * d * crosstalk / max(signal**2, TINY)
