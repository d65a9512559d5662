"""The box of lower and upper bounds, which every queried point respects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array


@dataclass(frozen=True)
class Box:
    """Lower and upper bounds on the coordinates; every queried point respects them.

    Attributes
    ----------
    low: the lower bounds, shape (d,), at most 0; -inf where there is none.
    high: the upper bounds, shape (d,), at least 0; inf where there is none.
    """

    low: Array
    high: Array

    def inside(self, theta: Array, points: Array) -> Array:
        """Move probe points theta + v into the box, so that gradient estimates from them keep their mean.

        Let e(v) be the excess of theta + v over the box. The step v is replaced by w(v) = v - e(v) - e(-v): its own
        excess is taken off, and the excess of the opposite step -v is added on this side. Then E[w u'] = mu E[u u']
        for directions with a symmetric distribution, and w(v) - w(-v) = 2 v, so that forward and central differences
        both still estimate the gradient.

        Arguments
        ---------
        theta: the centre of the probes, shape (d,), inside the box.
        points: the points theta + v, shape (d,) or (q, d).

        Returns
        -------
        The points theta + w(v), of the same shape.
        """
        mirrored = 2.0 * theta - points
        excess = points - np.clip(points, self.low, self.high)
        excess += mirrored - np.clip(mirrored, self.low, self.high)
        return np.clip(points - excess, self.low, self.high)
