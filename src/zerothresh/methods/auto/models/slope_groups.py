"""Groups of coordinates whose slopes are known in sum only, and what two such sums tell about a group.

Along a direction that moves each coordinate of a group by one step, F changes by the sum of the slopes g_j. Along one
that moves coordinate j by c_j steps, where c_j is its code, F changes by the sum of c_j g_j. If only one slope of the
group is not zero, the ratio of the two changes is the code of its coordinate, whatever the size of the group.

References: Pawar and Ramchandran, *FFAST: an algorithm for computing an exactly k-sparse DFT in O(k log k) time*, 2018;
Bakshi, Jaggi, Cai and Chen, *SHO-FA: robust compressive sensing with order-optimal complexity, measurements, and bits*,
2012.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.settings.floating_point import TINY

NOT_FOUND = -1


@dataclass(eq=False)
class SlopeGroup:
    """Coordinates of which at least one has a slope that is not zero.

    Attributes
    ----------
    places: the places of its coordinates in the order of the codes, ascending.
    plain, coded: arrays (components,), the changes of the components along the two directions.
    sums: of how many values these are made, each of which adds to their error.
    several: whether it is known that more than one slope is not zero.
    weak: whether its changes are small against those of another group.
    place: where the only slope is that is not zero, or `NOT_FOUND`.
    """

    places: Indices
    plain: Array
    coded: Array
    sums: int = 1
    several: bool = False
    weak: bool = False
    place: int = NOT_FOUND

    def within(self, ratios: Array, error: Array) -> Indices:
        """Return the places at which a single slope would explain both changes, each of which is off by the error.

        ``ratios`` has the quotient of the two displacements for each place.
        """
        off = np.abs(self.coded - ratios[self.places, None] * self.plain) / np.maximum(error, TINY)
        return np.asarray(self.places[off.max(axis=1) <= 1 + ratios[self.places]])

    def cut(self, ratios: Array) -> int:
        """Return how many places the first of two halves has.

        Two slopes of the same sign lie on different sides of their mean place, which the ratio of the changes tells.
        """
        own = ratios[self.places]
        mean = float(self.plain @ self.coded) / max(float(self.plain @ self.plain), TINY)
        before = int(np.searchsorted(own, mean, side="right"))
        return before if 0 < before < own.size else own.size // 2
