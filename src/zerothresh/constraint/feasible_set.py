"""What further constraints have in common: what a user writes down, and what it becomes for d coordinates.

A user's constraint, such as `Simplex` or `Ball`, says nothing of d, k, bounds or groups. With these (`Places`) it
becomes a `FeasibleSet`: the points with at most k non-zeros that keep the constraint, with the projection onto them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from zerothresh.basics.arrays import Array, Indices

TOLERANCE = 1e-9  # relative: by how much a sum or a projection may be off, because numbers are rounded


@dataclass(frozen=True)
class Places:
    """The places of the support: how many coordinates (or groups) may be non-zero, and which.

    Attributes
    ----------
    d, k: the dimension, and the largest number of places that are taken.
    unit: int64 array (d,), the place of each coordinate: its own number, or that of its group.
    forced: the places that are always taken.
    low, high: float64 arrays (d,), the user's bounds, infinite where there are none.
    excluded: coordinates that are always 0.
    """

    d: int
    k: int
    unit: Indices
    forced: Indices
    low: Array
    high: Array
    excluded: Indices

    @cached_property
    def count(self) -> int:
        """The number of places."""
        return int(self.unit.max(initial=-1)) + 1

    @cached_property
    def single(self) -> bool:
        """Whether every coordinate is a place of its own, of the same number."""
        return bool(np.array_equal(self.unit, np.arange(self.d)))

    def taken(self, x: Array) -> Indices:
        """Return the places that x needs, with those that are always taken."""
        return np.union1d(self.unit[np.flatnonzero(x)], self.forced)

    def members(self, units: Indices) -> Indices:
        """Return the coordinates of some places."""
        return np.asarray(units, np.int64) if self.single else np.flatnonzero(np.isin(self.unit, units))

    def summed(self, x: Array) -> Array:
        """Return the sum over the coordinates of each place."""
        return x if self.single else np.bincount(self.unit, weights=x, minlength=self.count).astype(np.float64)

    def largest(self, gain: Array) -> Indices:
        """Return the k places of the largest gain; those that are always taken come first, and ties go to the lowest.

        Arguments
        ---------
        gain: float64 array (d,), what each coordinate gains if it is kept.
        """
        totals = self.summed(gain).copy()
        totals[self.forced] = np.inf
        return np.sort(np.argsort(-totals, kind="stable")[: self.k])


class FeasibleSet(Protocol):
    """The points with at most k non-zeros that keep a constraint.

    Attributes
    ----------
    low, high: float64 arrays (d,), a box that contains the whole set and 0.
    places: which coordinates share a place of the support.
    fixed_total: whether all points have the same sum, so that a coordinate changes only together with another one.
    polyhedral: whether on a support the set is a box with limits of the sum.
    discrete: whether coordinates have a finite number of values.
    """

    low: Array
    high: Array
    places: Places
    fixed_total: bool
    polyhedral: bool
    discrete: bool

    def project(self, v: Array) -> Array:
        """Return the nearest feasible point, or a near one where the class says so."""

    def project_on(self, v: Array, support: Indices) -> Array | None:
        """Return the nearest point whose chosen coordinates are those of ``support``; None if there is none."""

    def holds(self, x: Array) -> bool:
        """Whether x is in the set."""

    def holds_dense(self, x: Array) -> bool:
        """Whether x is in the set but for the number of non-zeros."""

    def clip(self, x: Array) -> Array:
        """Return the nearest point of the set without the limit on the number of non-zeros."""

    def identity(self) -> Any:
        """Return what tells it from another constraint: a dict of names, numbers and arrays."""
