"""How random values are transformed before a process is fitted to them, and what becomes of their noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.settings.active_subset_settings import GAUSSIAN_PROCESS as PRIOR
from zerothresh.methods.auto.settings.active_subset_settings import RANDOM_PROCESS as SET
from zerothresh.methods.auto.settings.floating_point import TINY


@dataclass(frozen=True)
class Warp:
    """How values are transformed: by a logarithm that bends ``bend`` above the lowest one, or not; then standardised.

    ``noise`` is the standard deviation of a value, before.
    """

    warped: bool
    lowest: float
    bend: float
    centre: float
    scale: float
    noise: float

    def original(self, t: Array) -> Array:
        """Return values as they were before."""
        out = self.centre + self.scale * t
        return np.asarray(self.lowest + (self.bend * np.expm1(out) if self.warped else out))

    def deviation(self, t: Array) -> Array:
        """Return the standard deviation of the noise in transformed values."""
        out = np.maximum(self.centre + self.scale * t, 0.0)
        return np.asarray(self.noise / self.scale * (np.exp(-out) / self.bend if self.warped else np.ones_like(out)))


def transform(y: Array, warped: bool, noise: float) -> tuple[Array, Warp, float]:
    """Return values of mean 0 and variance 1, how they were transformed, and the logarithm of the Jacobian.

    The warp bends well above the noise, so that the lowest value, which is low by chance, hardly matters.
    """
    lowest, bend, jacobian = float(y.min()), 1.0, 0.0
    above = y - lowest
    if warped:
        quantile = float(np.quantile(above[above > 0], PRIOR.warp_quantile)) if (above > 0).any() else 1.0
        bend = max(quantile, SET.bend * noise)
        jacobian = -float(np.log(bend + above).sum())
        above = np.log1p(above / bend)
    centre, scale = float(above.mean()), max(float(above.std()), TINY)
    t = np.round((above - centre) / (scale * PRIOR.resolution)) * PRIOR.resolution
    return t, Warp(warped, lowest, bend, centre, scale, noise), jacobian - y.size * math.log(scale)
