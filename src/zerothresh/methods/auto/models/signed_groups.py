"""Groups of coordinates that move together, each with a sign: the slope of a group is the sum of those of its members.

The group with the largest slope is split first. One value gives the slope of its first half, and that of the other half
is what is left. This finds the largest entries of a gradient with about log2(d) values each where few are large.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array, Indices


@dataclass(frozen=True, eq=False)
class SignedGroup:
    """Coordinates and, for each component of a sample, the change of its value per unit step of all of them."""

    members: Indices  # (size,)
    slopes: Array  # (components,)

    @property
    def slope(self) -> float:
        """The change of the sample's mean per unit step."""
        return float(self.slopes.mean())

    def halves(self) -> tuple[Indices, Indices]:
        """Return the two halves of the members."""
        middle = self.members.size // 2
        return self.members[:middle], self.members[middle:]


class SignedGroups:
    """Groups of coordinates, the one with the largest slope first.

    Arguments
    ---------
    depth: float, a group of size s comes by |slope| s^-depth: the larger, the sooner small groups come.
    """

    def __init__(self, depth: float) -> None:
        self._depth = depth
        self._heap: list[tuple[float, int, SignedGroup]] = []
        self._pushed = 0  # breaks ties, because groups cannot be compared

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[SignedGroup]:
        return (group for _, _, group in self._heap)

    def push(self, members: Indices, slopes: Array) -> None:
        """Add a group, unless it is empty."""
        if not members.size:
            return
        group = SignedGroup(members, slopes)
        self._pushed += 1
        heapq.heappush(self._heap, (-abs(group.slope) * members.size**-self._depth, self._pushed, group))

    def pop(self) -> SignedGroup:
        """Remove and return the group that comes first."""
        return heapq.heappop(self._heap)[2]


def signed_steps(uniform: Array, room_up: Array, room_down: Array, step: float) -> Array:
    """Return the step of each coordinate in units of ``step``: a random sign, turned or shortened to stay in bounds.

    Arguments
    ---------
    uniform: array of shape (f,), uniform in [0, 1): below 0.5 means downwards.
    room_up, room_down: arrays of shape (f,), the distance to the bounds; one of them must be positive.
    step: float, the longest step of a coordinate.

    >>> signed_steps(np.array([0.1, 0.1, 0.9]), np.ones(3), np.array([1.0, 0.0, 1.0]), 0.5)
    array([-1.,  1.,  1.])
    """
    down = np.where((room_up >= step) & (room_down >= step), uniform < 0.5, room_down > room_up)
    return np.where(down, -np.minimum(room_down / step, 1.0), np.minimum(room_up / step, 1.0))
