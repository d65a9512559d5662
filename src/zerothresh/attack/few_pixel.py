"""The search behind ``attack="best"``: extreme values, swaps of places, and races between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zerothresh import check
from zerothresh.methods.program import Asks, Program, Room

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

    Components are taken to be at least 0, as losses are: nothing is left to do when all are 0.

    It needs finite bounds. It is no method for smooth problems whose solution is inside the box, which is
    why it is not among `zt.methods()`.

    Arguments
    ---------
    candidates: swaps that are raced in a round; None: 6, or 16 if the budget holds F a thousand times, where
        larger batches save more time than they cost queries.
    look: the part of the components that a race is run on (at least two of them).
    share: the part of the places that is swapped at first.

    Reference: Croce, Andriushchenko, Singh, Flammarion and Hein (2022), Sparse-RS, AAAI, for swaps at extreme
    values with a falling size; the races on a few images are ours.
    """

    candidates: int | None = None
    look: float = 0.2
    share: float = 0.3

    def __post_init__(self) -> None:
        if self.candidates is not None:
            check.count("candidates", self.candidates)
        for name in ("look", "share"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1, not {getattr(self, name)!r}")

    def search(self, room: Room) -> Asks:
        places = Places(room)
        total = room.left
        most = self.candidates or (6 if total < 1000 * room.n else 16)
        held = room.rng.subset(places.count, min(room.k, places.count))
        theta = places.put(np.zeros(room.d), held, room)
        values = (yield from room.values([theta]))[0]
        room.move(theta, float(values.mean()))
        while values.any():
            spent = 1 - room.left / total
            size = min(held.size, max(1, round(self.share * held.size * (1 - spent) ** 2)))
            points, supports = places.swaps(theta, held, size, self._affordable(most, room), room)
            first, rest = self._order(values, room)
            raced = yield from room.values(list(points), first)
            sums = raced.sum(axis=1)
            best = int(np.argmin(sums))
            if sums[best] >= values[first].sum():
                continue
            seen = values.copy()
            seen[first] = raced[best]
            if rest.size:
                seen[rest] = (yield from room.values([points[best]], rest))[0]
            if seen.sum() < values.sum():
                theta, held, values = points[best].copy(), supports[best], seen
                room.move(theta, float(values.mean()))

    def _affordable(self, most: int, room: Room) -> int:
        """As many candidates as leave enough to finish with one."""
        look = self._size(room)
        return max(1, min(most, int((room.left - room.n + look) // look)))

    def _size(self, room: Room) -> int:
        """Components that a race is run on."""
        return min(room.n, max(2, round(self.look * room.n)))

    def _order(self, values: Array, room: Room) -> tuple[Indices, Indices]:
        """The components that a race is run on, and the others: those above 0 come first, mostly."""
        keys = room.rng.uniform(room.n) ** np.where(values > 0, 1.0, 6.0)
        order = np.argsort(-keys, kind="stable")
        look = self._size(room)
        return order[:look], order[look:]


class Places:
    """The groups of coordinates (or single ones) that may be other than 0, and their corners."""

    def __init__(self, room: Room) -> None:
        box, free, groups = room.box, room.free(), room.constraint.groups
        if box is None or not (np.isfinite(box.low[free]).all() and np.isfinite(box.high[free]).all()):
            raise ValueError("few-pixel looks at the corners of a box only: pass finite bounds")
        labels = free if groups is None else groups[free]
        order = np.argsort(labels, kind="stable")
        _, starts, sizes = np.unique(labels[order], return_index=True, return_counts=True)
        # A row a place; smaller groups are filled up with their own last coordinate.
        columns = np.minimum(np.arange(sizes.max(initial=1)), sizes[:, None] - 1)
        self.members = free[order][starts[:, None] + columns]
        self.count = len(self.members)
        self.low = np.where(box.low < 0, box.low, box.high)[self.members]  # a bound at 0 is no corner
        self.high = np.where(box.high > 0, box.high, box.low)[self.members]

    def put(self, theta: Array, places: Indices, room: Room) -> Array:
        """Each of these places at a random corner; theta itself is changed."""
        theta[self.members[places]] = self._corners(places, room)
        return theta

    def _corners(self, places: Indices, room: Room) -> Array:
        """A random corner for each of the places, (*places.shape, coordinates)."""
        up = room.rng.uniform(places.size * self.members.shape[1]) < 0.5
        return np.where(up.reshape(*places.shape, -1), self.high[places], self.low[places])

    def swaps(self, theta: Array, held: Indices, size: int, count: int, room: Room) -> tuple[Array, Indices]:
        """Copies with ``size`` of the places given up for others (or, if nearly all are held, for other corners)."""
        given = self._subsets(held.size, size, count, room)
        kept = np.ones(self.count, bool)
        kept[held] = False
        others = np.flatnonzero(kept)
        new = held[given] if others.size < size else others[self._subsets(others.size, size, count, room)]
        points, supports = np.repeat(theta[None], count, axis=0), np.repeat(held[None], count, axis=0)
        rows = np.arange(count)[:, None]
        points[rows[..., None], self.members[held[given]]] = 0.0
        points[rows[..., None], self.members[new]] = self._corners(new, room)
        supports[rows, given] = new
        return points, supports

    @staticmethod
    def _subsets(of: int, size: int, count: int, room: Room) -> Indices:
        """``count`` times ``size`` different numbers below ``of``, a row each."""
        if size == 1:
            return room.rng.integers(of, count)[:, None]
        return np.array([room.rng.subset(of, size) for _ in range(count)])
