"""The steps of coordinates around a base point whose lengths are codes of the coordinates."""

from __future__ import annotations

import math

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.value_comparison import ValueComparison
from zerothresh.methods.auto.settings.active_subset_settings import SLOPES as SET
from zerothresh.methods.auto.settings.floating_point import EPS, TINY


def resolution(comparison: ValueComparison) -> Array:
    """Return by how much a value of each component may be off, at least a small share of the spread.

    With this share, nothing depends on rounding, and so on the offset of F, unless that is far larger than the spread.
    """
    return np.asarray(np.maximum(comparison.floor(), SET.resolution * (comparison.high - comparison.low)))


def step_share(comparison: ValueComparison) -> float:
    """Return the length of a step as a share of the region: longer ones for coarser values; 0 if none shows a slope."""
    spread = comparison.high - comparison.low
    if not (spread > 0).any():
        return 0.0
    share = SET.step * math.sqrt(float((resolution(comparison) / np.maximum(spread, TINY)).min()))
    return share if share <= SET.longest_step else 0.0


class SlopeSteps:
    """Steps around a base point, all of them to the side where the region has room.

    Arguments
    ---------
    base: array (d,), the point.
    region: the lower and the upper end per coordinate.
    candidates: the coordinates that are looked through; a coordinate is named by its place among them.
    share: float, the length of a step as a share of the region.

    Attributes
    ----------
    codes: by how many steps the coordinate at each place moves, ascending.
    ratios: the same as rounded points have it.
    """

    def __init__(self, base: Array, region: tuple[Array, Array], candidates: Indices, share: float) -> None:
        self.base, self.region, self.candidates, self.share = base, region, candidates, share
        low, high = (end[candidates] for end in region)
        own = base[candidates]
        fine = SET.spacings * EPS * candidates.size * np.abs(own)  # codes of neighbours must differ in rounded points
        steps = np.minimum(np.maximum(share * (high - low), fine), SET.longest_step * (high - low))
        self.steps = np.where(own + SET.longest_code * steps <= high, steps, -steps)
        self.codes = np.linspace(1.0, SET.longest_code, candidates.size)
        self.everywhere = np.arange(candidates.size)
        self.ratios = self.relative(self.everywhere, self.codes)

    def moves(self, places: Indices, codes: Array | float) -> Array:
        """Return by how much the coordinates at these places move, as rounded points have it."""
        own = self.base[self.candidates[places]]
        return np.asarray(own + codes * self.steps[places] - own)

    def relative(self, places: Indices, codes: Array) -> Array:
        """Return by how many steps they move, as rounded points have it."""
        return self.moves(places, codes) / self.moves(places, 1.0)

    def point(self, places: Indices, codes: Array | float) -> Array:
        """Return the base with the coordinates at these places moved."""
        point, chosen = self.base.copy(), self.candidates[places]
        point[chosen] += codes * self.steps[places]
        return point

    def slope(self, place: int, change: Array) -> Array:
        """Return the slope per length of the region that a change along one step tells."""
        j = int(self.candidates[place])
        length = self.region[1][j] - self.region[0][j]
        return np.asarray(change * length / self.moves(np.array([place]), 1.0)[0])

    def beside(self, j: int, share: float) -> tuple[Array, float]:
        """Return the point at a share of the region from the base along coordinate j, and the signed share."""
        point, low, high = self.base.copy(), self.region[0][j], self.region[1][j]
        share = share if point[j] + share * (high - low) <= high else -share
        point[j] += share * (high - low)
        return point, share
