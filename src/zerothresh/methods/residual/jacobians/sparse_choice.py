"""What a sparse fit may choose, and short shifts that stay within the bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.arrays import Array, Indices


@dataclass(frozen=True)
class Choice:
    """What may be chosen: units (coordinates, or groups of them), how many, those that must be, and the bounds.

    Attributes
    ----------
    unit: int64 array (d,), the unit of each coordinate.
    k: int, the largest number of units.
    forced: int64 array, units that are always chosen.
    low, high: float64 arrays (d,), bounds, which contain 0.
    """

    unit: Indices
    k: int
    forced: Indices
    low: Array
    high: Array

    @cached_property
    def count(self) -> int:
        """The number of units."""
        return int(self.unit.max()) + 1

    @cached_property
    def single(self) -> bool:
        """Whether every unit is one coordinate."""
        return self.count == self.unit.size

    @cached_property
    def everything(self) -> bool:
        """Whether all units may be chosen at once."""
        return self.k >= np.unique(self.unit[self.high > self.low]).size

    def coordinates(self, units: Iterable[int]) -> Indices:
        """Return the free coordinates of some units, sorted."""
        chosen = np.zeros(self.count, bool)
        chosen[list(units)] = True
        return np.flatnonzero(chosen[self.unit] & (self.high > self.low))

    def units(self, coordinates: Indices) -> list[int]:
        """Return the units of some coordinates, and those that are forced."""
        return sorted(set(self.unit[coordinates].tolist()) | set(self.forced.tolist()))

    def may_rise(self, slope: Array) -> NDArray[np.bool_]:
        """Whether a coordinate at 0 may move along its slope."""
        return ((slope > 0) & (self.high > 0)) | ((slope < 0) & (self.low < 0))

    def moved(self, x: Array, shift: Array) -> Array:
        """Return a point plus a short shift; a part of it is reversed if a bound is in the way."""
        y = x + shift
        return np.clip(np.where((y < self.low) | (y > self.high), x - shift, y), self.low, self.high)

    def inside(self, x: Array, shift: Array) -> Array:
        """Return a point plus a short shift, or minus it if that would leave the bounds."""
        y = x + shift
        return np.clip(x - shift if ((y < self.low) | (y > self.high)).any() else y, self.low, self.high)
