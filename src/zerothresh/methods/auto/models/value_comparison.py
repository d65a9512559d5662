"""Differences of values that are more than noise, and more than the effect of weak coordinates."""

from __future__ import annotations

import math

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.settings.active_subset_settings import ACTIVE_SUBSET as SET
from zerothresh.methods.auto.settings.floating_point import EPS, TINY


class ValueComparison:
    """Which differences of values are seen: above the noise, and above a share of the spread of all values so far.

    Arguments
    ---------
    noise: float, the standard deviation of a value. random: whether a point gives different values.
    components: the number of components of which a value consists.
    """

    def __init__(self, noise: float, random: bool, components: int) -> None:
        self.noise, self.random = noise, random
        self.low, self.high = np.full(components, np.inf), np.full(components, -np.inf)

    def see(self, value: Array) -> None:
        """Take a value into the spread."""
        self.low, self.high = np.minimum(self.low, value), np.maximum(self.high, value)

    def floor(self) -> Array:
        """Return the largest difference per component that noise and rounding explain."""
        size = np.maximum(np.abs(self.low), np.abs(self.high))
        return np.asarray(np.maximum(SET.deviations * math.sqrt(2) * self.noise, SET.rounding * EPS * size))

    def distance(self, one: Array, other: Array, share: float, calls: int = 1) -> float:
        """Return the largest difference of two values; above 1, it is more than noise and a share of the spread.

        ``calls`` are the calls of which each of the two is a mean.
        """
        unseen = np.maximum(self.floor() / math.sqrt(calls), share * (self.high - self.low))
        return float((np.abs(one - other) / np.maximum(unseen, TINY)).max())
