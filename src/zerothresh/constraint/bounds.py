"""Bounds on the coordinates of every point that is queried."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array


@dataclass(frozen=True)
class Box:
    """Bounds that the queried points keep to."""

    low: Array
    high: Array

    def inside(self, theta: Array, points: Array) -> Array:
        """Bend theta + v into the box, so that the estimate keeps its mean.

        What a step v would stick out, e(v), is taken off, and what -v would stick out is added on
        this side: w(v) = v - e(v) - e(-v). Then E[w u'] = mu E[u u'] for directions of symmetric
        law, and w(v) - w(-v) = 2 v: forward and central differences both still estimate the gradient.
        """
        mirrored = 2.0 * theta - points
        excess = points - np.clip(points, self.low, self.high)
        excess += mirrored - np.clip(mirrored, self.low, self.high)
        return np.clip(points - excess, self.low, self.high)
