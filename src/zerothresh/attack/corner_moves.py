"""The places of a few-pixel attack: coordinates or pixels, their corners, their neighbours, and swaps of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from zerothresh.methods.program.context import Context

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Grid = tuple[int, int, int, int]  # rows, columns, and how far apart the coordinates of neighbours are, down and right

_TURN, _SHIFT = 0.2, 0.2  # the parts of single swaps that turn a colour, and that move to a neighbour


class Places:
    """The groups of coordinates (or single ones) that may be other than 0, and their corners."""

    def __init__(self, context: Context, grid: Grid | None = None) -> None:
        box, free, groups = context.box, context.free(), context.constraint.groups
        if box is None or not (np.isfinite(box.low[free]).all() and np.isfinite(box.high[free]).all()):
            raise ValueError("few-pixel looks at the corners of a box only: pass finite bounds")
        if context.constraint.include.size:
            raise ValueError("few-pixel has no use for include: it swaps all of its places")
        if grid is not None and (grid[0] - 1) * grid[2] + (grid[1] - 1) * grid[3] >= context.d:
            raise ValueError(f"grid = {grid} reaches beyond the {context.d} coordinates")
        labels = free if groups is None else groups[free]
        order = np.argsort(labels, kind="stable")
        _, starts, sizes = np.unique(labels[order], return_index=True, return_counts=True)
        # A row a place; smaller groups are filled up with their own last coordinate.
        columns = np.minimum(np.arange(sizes.max(initial=1)), sizes[:, None] - 1)
        self.members = free[order][starts[:, None] + columns]
        self.count = len(self.members)
        self.low = np.where(box.low < 0, box.low, box.high)[self.members]  # a bound at 0 is no corner
        self.high = np.where(box.high > 0, box.high, box.low)[self.members]
        self.grid = grid
        self.place_of = np.full(context.d, -1)
        self.place_of[self.members] = np.arange(self.count)[:, None]

    def start(self, context: Context) -> tuple[Array, Indices]:
        """k places at random corners, and which."""
        held = context.rng.subset(self.count, min(context.k, self.count))
        theta = np.zeros(context.d)
        theta[self.members[held]] = self._corners(held, context)
        return theta, held

    def swaps(self, theta: Array, held: Indices, given: Indices, context: Context) -> tuple[Array, Indices]:
        """A copy for each row of ``given``, with these of the held places given up for others at random corners."""
        count, size = given.shape
        kept = np.ones(self.count, bool)
        kept[held] = False
        others = np.flatnonzero(kept)
        # If nearly all places are held, the corners alone change.
        new = held[given] if others.size < size else others[subsets(others.size, size, count, context)]
        points, supports = np.repeat(theta[None], count, axis=0), np.repeat(held[None], count, axis=0)
        rows = np.arange(count)[:, None]
        points[rows[..., None], self.members[held[given]]] = 0.0
        points[rows[..., None], self.members[new]] = self._corners(new, context)
        supports[rows, given] = new
        return points, supports

    def candidates(self, theta: Array, held: Indices, given: Indices, context: Context) -> tuple[Array, Indices]:
        """Swaps; of single ones, some turn a colour of the place or move it by one instead."""
        points, supports = self.swaps(theta, held, given, context)
        if given.shape[1] > 1:
            return points, supports
        chances = context.rng.uniform(len(given)).tolist()
        channels = context.rng.integers(self.members.shape[1], len(given)).tolist()
        steps = context.rng.integers(9, 4 * len(given)).reshape(-1, 4).tolist()
        taken = set(held.tolist())
        for row, chance in enumerate(chances):
            if chance >= _TURN + _SHIFT:
                continue
            place = int(held[given[row, 0]])
            target, values = place, theta[self.members[place]]
            if chance < _TURN and values.size > 1:
                self._turn(place, values, channels[row])
            else:
                target = self._neighbour(place, taken, steps[row])
            if target < 0:
                continue
            points[row] = theta
            points[row, self.members[place]] = 0.0
            points[row, self.members[target]] = np.where(values > 0, self.high[target], self.low[target])
            supports[row] = held
            supports[row, given[row, 0]] = target
        return points, supports

    def _turn(self, place: int, values: Array, column: int) -> None:
        """Put one of the values of a place to its other end."""
        low, high = self.low[place, column], self.high[place, column]
        values[column] = low if values[column] == high else high

    def _neighbour(self, place: int, taken: set[int], steps: list[int]) -> int:
        """The first free place that a step leads to, of the eight around one; -1 if none does."""
        if self.grid is None:
            return -1
        rows, columns, down, right = self.grid
        at = int(self.members[place, 0])
        row, column = at // down % rows, at // right % columns
        for step in steps:
            y, x = step // 3 - 1, step % 3 - 1
            if 0 <= row + y < rows and 0 <= column + x < columns:
                target = int(self.place_of[at + y * down + x * right])
                if target >= 0 and target not in taken:
                    return target
        return -1

    def _corners(self, places: Indices, context: Context) -> Array:
        """A random corner for each of the places, (*places.shape, coordinates)."""
        up = context.rng.uniform(places.size * self.members.shape[1]) < 0.5
        return np.where(up.reshape(*places.shape, -1), self.high[places], self.low[places])


def subsets(of: int, size: int, count: int, context: Context) -> Indices:
    """``count`` times ``size`` different numbers below ``of``, a row each."""
    if size == 1:
        return context.rng.integers(of, count)[:, None]
    return np.array([context.rng.subset(of, size) for _ in range(count)])
