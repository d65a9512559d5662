"""The moves of a few-pixel attack between corners of the box: random starts, swaps, shifts and colour changes.

A group is a pixel, which is a set of coordinates; without groups, each coordinate is a group of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zerothresh.attack.removal_costs import RemovalCosts
from zerothresh.methods.program.context import Context

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Grid = tuple[int, int, int, int]  # rows, columns, and the distances to the coordinates below and to the right

_COLOUR_CHANGES, _SHIFTS = 0.2, 0.2  # shares of the single swaps that are replaced by these moves


@dataclass(frozen=True)
class Proposal:
    """Candidates for a round.

    Attributes
    ----------
    points: float64 array (candidates, d).
    supports: int64 array (candidates, k), their groups.
    removed: the places in the support that each candidate gives to other groups.
    learn: function of the candidate that has become the iterate, or None, and of the fall of the loss.
    """

    points: Array
    supports: Indices
    removed: Sequence[Indices]
    learn: Callable[[int | None, float], None] = lambda best, fall: None


class CornerMoves:
    """The groups of coordinates that may be non-zero, the corners of the box, and moves between them.

    Arguments
    ---------
    context: of the method; its bounds must be finite.
    grid: (rows, columns, down, right), if the coordinates are an image; None: no group has neighbours.
    k: the number of groups of a point, default that of the context.
    """

    def __init__(self, context: Context, grid: Grid | None = None, k: int | None = None) -> None:
        box, free, groups = context.box, context.free(), context.constraint.groups
        if box is None or not (np.isfinite(box.low[free]).all() and np.isfinite(box.high[free]).all()):
            raise ValueError("few-pixel searches the corners of a box only: pass finite bounds")
        if context.constraint.include.size:
            raise ValueError("few-pixel does not support include, because it may swap every coordinate: leave it out")
        if grid is not None and (grid[0] - 1) * grid[2] + (grid[1] - 1) * grid[3] >= context.d:
            raise ValueError(f"grid = {grid} reaches beyond the {context.d} coordinates")
        labels = free if groups is None else groups[free]
        order = np.argsort(labels, kind="stable")
        _, starts, sizes = np.unique(labels[order], return_index=True, return_counts=True)
        # One row of coordinates per group; smaller groups are filled up with their own last coordinate.
        columns = np.minimum(np.arange(sizes.max(initial=1)), sizes[:, None] - 1)
        self.members = free[order][starts[:, None] + columns]
        self.count = len(self.members)
        self.k = min(context.k if k is None else k, self.count)
        self.low = np.where(box.low < 0, box.low, box.high)[self.members]  # 0 is not a corner, even if it is a bound
        self.high = np.where(box.high > 0, box.high, box.low)[self.members]
        self.grid = grid
        self.group_of = np.full(context.d, -1)
        self.group_of[self.members] = np.arange(self.count)[:, None]

    def start(self, context: Context) -> tuple[Array, Indices]:
        """A point with k random groups at random corners, and these groups."""
        support = context.rng.subset(self.count, self.k)
        theta = np.zeros(context.d)
        theta[self.members[support]] = self._corners(support, context)
        return theta, support

    def extended(self, support: Indices, context: Context) -> Indices:
        """A support with so many more random groups that there are k."""
        others = np.setdiff1d(np.arange(self.count), support)
        more = min(self.k - support.size, others.size)
        return np.concatenate([support, others[context.rng.subset(others.size, more)]]) if more else support

    def filled(self, theta: Array, support: Indices, last: int, context: Context) -> Array:
        """A point with the last groups of the support at random corners."""
        new, point = support[support.size - last :], theta.copy()
        point[self.members[new]] = self._corners(new, context)
        return point

    def starts(self, context: Context) -> list[tuple[Array, Indices]]:
        """Points to choose the start from, with their groups."""
        return [self.start(context)]

    def propose(
        self, theta: Array, support: Indices, costs: RemovalCosts, size: int, count: int, context: Context
    ) -> Proposal:
        """Return candidates that swap some groups of the support for others.

        Arguments
        ---------
        theta, support: the present point, and its groups.
        costs: RemovalCosts of these groups.
        size: how many groups are swapped.
        count: the number of candidates.
        context: for random numbers.
        """
        removed = costs.choose(size, count, context)
        points, supports = self.candidates(theta, support, removed, context)
        return Proposal(points, supports, list(removed))

    def swaps(self, theta: Array, support: Indices, removed: Indices, context: Context) -> tuple[Array, Indices]:
        """Swap groups of the support for others at random corners.

        Arguments
        ---------
        theta: the present point.
        support: its groups.
        removed: which entries of ``support`` each candidate gives up, (candidates, swaps).

        Returns
        -------
        The candidates, (candidates, d), and their supports.
        """
        count, size = removed.shape
        outside = np.ones(self.count, bool)
        outside[support] = False
        others = np.flatnonzero(outside)
        # If nearly all groups are in the support, only their corners change.
        new = support[removed] if others.size < size else others[random_subsets(others.size, size, count, context)]
        points, supports = np.repeat(theta[None], count, axis=0), np.repeat(support[None], count, axis=0)
        rows = np.arange(count)[:, None]
        points[rows[..., None], self.members[support[removed]]] = 0.0
        points[rows[..., None], self.members[new]] = self._corners(new, context)
        supports[rows, removed] = new
        return points, supports

    def candidates(self, theta: Array, support: Indices, removed: Indices, context: Context) -> tuple[Array, Indices]:
        """As `swaps`, but some single swaps are replaced by a colour change of the group or a shift by one pixel."""
        points, supports = self.swaps(theta, support, removed, context)
        if removed.shape[1] > 1:
            return points, supports
        chances = context.rng.uniform(len(removed)).tolist()
        channels = context.rng.integers(self.members.shape[1], len(removed)).tolist()
        steps = context.rng.integers(9, 4 * len(removed)).reshape(-1, 4).tolist()
        taken = set(support.tolist())
        for row, chance in enumerate(chances):
            if chance >= _COLOUR_CHANGES + _SHIFTS:
                continue
            group = int(support[removed[row, 0]])
            target, values = group, theta[self.members[group]]
            if chance < _COLOUR_CHANGES and values.size > 1:
                self._change_colour(group, values, channels[row])
            else:
                target = self._neighbour(group, taken, steps[row])
            if target < 0:
                continue
            points[row] = theta
            points[row, self.members[group]] = 0.0
            points[row, self.members[target]] = np.where(values > 0, self.high[target], self.low[target])
            supports[row] = support
            supports[row, removed[row, 0]] = target
        return points, supports

    def _change_colour(self, group: int, values: Array, column: int) -> None:
        """Move one of the values of a group to the other end of its range, in place."""
        low, high = self.low[group, column], self.high[group, column]
        values[column] = low if values[column] == high else high

    def _neighbour(self, group: int, taken: set[int], steps: list[int]) -> int:
        """The first of some steps to one of the eight neighbours that leads to a group outside the support; or -1."""
        if self.grid is None:
            return -1
        rows, columns, down, right = self.grid
        at = int(self.members[group, 0])
        row, column = at // down % rows, at // right % columns
        for step in steps:
            y, x = step // 3 - 1, step % 3 - 1
            if 0 <= row + y < rows and 0 <= column + x < columns:
                target = int(self.group_of[at + y * down + x * right])
                if target >= 0 and target not in taken:
                    return target
        return -1

    def _corners(self, groups: Indices, context: Context) -> Array:
        """A random corner for each of the groups, (*groups.shape, coordinates)."""
        up = context.rng.uniform(groups.size * self.members.shape[1]) < 0.5
        return np.where(up.reshape(*groups.shape, -1), self.high[groups], self.low[groups])


def random_subsets(of: int, size: int, count: int, context: Context) -> Indices:
    """``count`` rows of ``size`` different numbers below ``of``."""
    if size == 1:
        return context.rng.integers(of, count)[:, None]
    return np.array([context.rng.subset(of, size) for _ in range(count)])
