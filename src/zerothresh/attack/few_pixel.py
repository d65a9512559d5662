"""The search behind ``attack="best"``: extreme values, swaps of places, and races between them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zerothresh import check
from zerothresh.estimate import Answers
from zerothresh.methods.program import Asks, Program, Room
from zerothresh.plan import Probes

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class FewPixel(Program):
    r"""Swaps between corners of the box, raced on a few components first.

    The iterate has k places (coordinates, or groups of them: pixels) at corners of the box. A candidate
    gives up some places for new ones, at random corners. A round races several candidates on a few
    components, mostly those that are not at 0 yet; the one with the largest fall is asked for on the
    others, and taken if F falls. As the budget goes, swaps get smaller:

    .. math:: s = \max(1, \mathrm{share} \cdot k (1 - t)^2), \quad t \text{ the part of the budget that is spent}

    Components are taken to be at least 0, as losses are: a candidate whose sum is above the iterate's
    before all components were asked for is dropped at once. Nothing is left to do when all are 0.

    It needs finite bounds. It is no method for smooth problems whose solution is inside the box, which is
    why it is not among `zt.methods()`.

    Arguments
    ---------
    candidates: swaps that are raced in a round.
    look: components that a race is run on.
    share: the part of the places that is swapped at first.

    Reference: Croce, Andriushchenko, Singh, Flammarion and Hein (2022), Sparse-RS, AAAI, for swaps at extreme
    values with a falling size; the races on a few images are ours.
    """

    candidates: int = 4
    look: int = 3
    share: float = 0.3

    def __post_init__(self) -> None:
        check.count("candidates", self.candidates)
        check.count("look", self.look)
        if not 0 < self.share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, not {self.share!r}")

    def search(self, room: Room) -> Asks:
        places = Places(room)
        total = room.left
        held = room.rng.subset(places.count, min(room.k, places.count))
        theta = places.put(np.zeros(room.d), held, room)
        values = (yield from room.values([theta]))[0]
        room.move(theta, float(values.mean()))
        while values.any():
            spent = 1 - room.left / total
            size = min(held.size, max(1, round(self.share * held.size * (1 - spent) ** 2)))
            swaps = [places.swap(theta, held, size, room) for _ in range(self._affordable(room))]
            first, rest = self._order(values, room)
            raced = yield from room.values([point for point, _ in swaps], first)
            sums = raced.sum(axis=1)
            best = int(np.argmin(sums))
            if sums[best] >= values[first].sum():
                continue
            point, support = swaps[best]
            seen = values.copy()
            seen[first] = raced[best]
            if (yield from _finish(room, point, seen, rest, float(sums[best]), float(values.sum()))):
                theta, held, values = point, support, seen
                room.move(theta, float(values.mean()))

    def _affordable(self, room: Room) -> int:
        """As many candidates as leave enough to finish with one."""
        look = min(self.look, room.n)
        return max(1, min(self.candidates, int((room.left - room.n + look) // look)))

    def _order(self, values: Array, room: Room) -> tuple[Indices, Indices]:
        """The components that a race is run on, and the others: those above 0 come first, mostly."""
        keys = room.rng.uniform(room.n) ** np.where(values > 0, 1.0, 6.0)
        order = np.argsort(-keys, kind="stable")
        look = min(self.look, room.n)
        return order[:look], order[look:]


def _finish(
    room: Room, point: Array, seen: Array, rest: Indices, reached: float, bar: float
) -> Generator[Probes, Answers, bool]:
    """Ask for the other components, in two parts, until the sum is known or above the bar."""
    half = (rest.size + 1) // 2
    for part in (rest[:half], rest[half:]):
        if not part.size:
            continue
        seen[part] = (yield from room.values([point], part))[0]
        reached += float(seen[part].sum())
        if reached >= bar:
            return False
    return True


class Places:
    """The groups of coordinates (or single ones) that may be other than 0, and their corners."""

    def __init__(self, room: Room) -> None:
        box = room.box
        if box is None or not (np.isfinite(box.low[room.free()]).all() and np.isfinite(box.high[room.free()]).all()):
            raise ValueError("few-pixel looks at the corners of a box only: pass finite bounds")
        free, groups = room.free(), room.constraint.groups
        labels = free if groups is None else groups[free]
        order = np.argsort(labels, kind="stable")
        _, starts = np.unique(labels[order], return_index=True)
        self.members = np.split(free[order], starts[1:])
        self.count = len(self.members)
        self.low, self.high = box.low, box.high

    def put(self, theta: Array, places: Indices, room: Room) -> Array:
        """Each of these places at a random corner; theta itself is changed."""
        coordinates = np.concatenate([self.members[place] for place in places.tolist()])
        up = room.rng.uniform(coordinates.size) < 0.5
        up = np.where(self.low[coordinates] == 0, True, np.where(self.high[coordinates] == 0, False, up))
        theta[coordinates] = np.where(up, self.high[coordinates], self.low[coordinates])
        return theta

    def swap(self, theta: Array, held: Indices, size: int, room: Room) -> tuple[Array, Indices]:
        """A copy with ``size`` of the places given up for others (or, if all are held, for other corners)."""
        out = room.rng.subset(held.size, size)
        point, support = theta.copy(), held.copy()
        taken = set(held.tolist())
        if self.count - held.size < size:
            new = held[out]
        else:
            fresh: list[int] = []
            while len(fresh) < size:
                for place in room.rng.integers(self.count, 2 * size).tolist():
                    if place not in taken and len(fresh) < size:
                        taken.add(place)
                        fresh.append(place)
            new = np.array(fresh)
        for place in held[out].tolist():
            point[self.members[place]] = 0.0
        support[out] = new
        return self.put(point, new, room), support
