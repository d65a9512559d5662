"""Discrete values: each coordinate has a finite number of values, such as bytes, settings of a knob, or on and off.

The projection is exact: each coordinate goes to its nearest value, and the k places that gain most are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.feasible_set import Places

NAMED = {"bytes": (0, 255), "on/off": (0, 1)}  # whole numbers in between
MOST_VALUES = 10**6  # of one coordinate


class GridSet:
    """The points with at most k non-zeros whose coordinates have given values.

    Arguments
    ---------
    given: what the user wrote: one array for all coordinates, a list of d arrays, or a name.
    places: the places of the support.
    """

    fixed_total = polyhedral = False
    discrete = True

    def __init__(self, given: Any, places: Places) -> None:
        self.given, self.places = given, places
        grids, which = _grids(given, places)
        self.grids: list[Array] = []  # the values that bounds leave, sorted, of each kind of coordinate
        self.which = np.empty(places.d, np.int64)  # the kind of each coordinate
        kinds: dict[tuple[int, float, float], int] = {}
        always = np.isin(places.unit, places.forced)
        excluded = np.zeros(places.d, bool)
        excluded[places.excluded] = True
        for j in range(places.d):
            low, high = (0.0, 0.0) if excluded[j] else (float(places.low[j]), float(places.high[j]))
            key = (int(which[j]), low, high)
            if key not in kinds:
                kinds[key] = len(self.grids)
                self.grids.append(grids[key[0]][(grids[key[0]] >= low) & (grids[key[0]] <= high)])
            self.which[j] = kinds[key]
            grid = self.grids[self.which[j]]
            if not grid.size:
                raise ValueError(f"no value of coordinate {j} is within its bounds [{low:g}, {high:g}]")
            if not always[j] and not (grid == 0).any():
                raise ValueError(
                    f"0 must be among the values of coordinate {j}, because most coordinates of a sparse solution are "
                    "0: add it, or name the coordinate in include"
                )
        self.low = np.minimum([self.grids[w][0] for w in self.which], 0.0)
        self.high = np.maximum([self.grids[w][-1] for w in self.which], 0.0)
        self._members = [np.flatnonzero(self.which == w) for w in range(len(self.grids))]
        self._dense: GridSet | None = None

    def values_of(self, j: int) -> Array:
        """Return the values of a coordinate, sorted."""
        return self.grids[int(self.which[j])]

    @property
    def size(self) -> float:
        """The number of points of the set."""
        counts = np.ones(self.places.count)
        for j in range(self.places.d):
            counts[self.places.unit[j]] *= self._choices(j).size
        forced = np.zeros(self.places.count, bool)
        forced[self.places.forced] = True
        room = self.places.k - int(forced.sum())
        ways = np.zeros(room + 1)  # of choosing so many places, and values other than 0 for them
        ways[0] = 1.0
        with np.errstate(over="ignore"):
            for count in counts[~forced]:
                ways[1:] += ways[:-1] * (count - 1.0)
            return float(ways.sum() * counts[forced].prod())

    def listed(self, most: int) -> Iterator[Array]:
        """Yield all points, if there are at most so many; none otherwise."""
        if self.size > most:
            return
        places = self.places
        for count in range(places.forced.size, places.k + 1):
            others = np.setdiff1d(np.arange(places.count), places.forced)
            for chosen in combinations(others.tolist(), count - places.forced.size):
                members = places.members(np.union1d(places.forced, np.array(chosen, np.int64)))
                for x in product(*[self._choices(j) for j in members.tolist()]):
                    point = np.zeros(places.d)
                    point[members] = x
                    if np.isin(np.array(chosen, np.int64), places.unit[np.flatnonzero(point)]).all():
                        yield point

    def _choices(self, j: int) -> Array:
        """Return the values of a coordinate, with 0 unless it always has a place without a group."""
        values = self.values_of(j)
        always = bool(np.isin(self.places.unit[j], self.places.forced))
        return values if always else np.union1d(values, [0.0])

    def project(self, v: Array) -> Array:
        """Return the nearest point of the set."""
        near = self._nearest(v)
        scale = max(float(np.abs(v).max(initial=0.0)), float(np.abs(near).max(initial=0.0)), check.SMALLEST_SQUARED)
        a, b = near / scale, v / scale
        units = self.places.largest(a * (2.0 * b - a))
        return self._on(near, self.places.members(units))

    def project_on(self, v: Array, support: Indices) -> Array | None:
        """Return the nearest point whose coordinates outside of the support are 0."""
        return self._on(self._nearest(v), support)

    def holds(self, x: Array) -> bool:
        """Whether x is in the set."""
        return self.places.taken(x).size <= self.places.k and self.holds_dense(x)

    def holds_dense(self, x: Array) -> bool:
        """Whether all coordinates have one of their values."""
        needed = np.union1d(np.flatnonzero(x), self.places.members(self.places.forced))
        return bool((self._nearest(x)[needed] == x[needed]).all())

    def clip(self, x: Array) -> Array:
        """Return the nearest point of the set without the limit on the number of non-zeros."""
        if self._dense is None:
            self._dense = GridSet(self.given, replace(self.places, k=self.places.count))
        return self._dense.project(x)

    def identity(self) -> Any:
        """Return what tells it from other values."""
        return {"kind": "values", "grids": list(self.grids), "which": self.which}

    def _nearest(self, v: Array) -> Array:
        """Return the nearest value of each coordinate; of two that are as near, the one nearer to 0."""
        out = np.empty_like(v)
        for grid, members in zip(self.grids, self._members, strict=True):
            x = v[members]
            above = np.searchsorted(grid, x).clip(1, max(grid.size - 1, 1))
            low, high = grid[above - 1], grid[np.minimum(above, grid.size - 1)]
            down, up = np.abs(x - low), np.abs(high - x)
            out[members] = np.where((down < up) | ((down == up) & (np.abs(low) <= np.abs(high))), low, high)
        return out

    def _on(self, near: Array, support: Indices) -> Array:
        out = np.zeros_like(near)
        out[support] = near[support]
        return out


def _grids(given: Any, places: Places) -> tuple[list[Array], Indices]:
    """Return the sorted grids that the user's values are, and the number of that of each coordinate."""
    d, nobody = places.d, np.zeros(places.d, np.int64)
    if isinstance(given, str):
        name = check.one_of("values", given, ("integers", *NAMED))
        if name in NAMED:
            low, high = NAMED[name]
            return [np.arange(low, high + 1, dtype=np.float64)], nobody
        free = np.setdiff1d(np.arange(d), places.excluded)
        least, most = (
            float(side[free].min(initial=0.0)) if sign < 0 else float(side[free].max(initial=0.0))
            for side, sign in ((places.low, -1), (places.high, 1))
        )
        if not np.isfinite(least) or not np.isfinite(most):
            raise ValueError("values='integers' needs bounds, such as bounds=(0, 10)")
        if most - least > MOST_VALUES:
            raise ValueError(
                f"values='integers' may have at most {MOST_VALUES:,} values per coordinate: narrow the bounds"
            )
        return [np.arange(np.ceil(least), np.floor(most) + 1.0)], nobody
    form = f"values must be a list of numbers, a list of d = {d} lists of numbers, or 'integers', 'bytes' or 'on/off'"
    array = check.array(given)
    if array is not None and array.ndim == 1 and array.size and array.dtype.kind in "fiu":
        return [_grid(array, "values")], nobody
    several = isinstance(given, Sequence) or (isinstance(given, np.ndarray) and given.ndim > 1)
    if several and len(given) == d:
        grids: list[Array] = []
        known: dict[bytes, int] = {}
        which = np.empty(d, np.int64)
        for j, each in enumerate(given):
            one = check.array(each)
            if one is None or one.ndim != 1 or not one.size or one.dtype.kind not in "fiu":
                raise ValueError(f"{form}, but those of coordinate {j} are {check.shown(each)}")
            grid = _grid(one, f"the values of coordinate {j}")
            key = grid.tobytes()
            if key not in known:
                known[key] = len(grids)
                grids.append(grid)
            which[j] = known[key]
        return grids, which
    raise ValueError(f"{form}, not {check.shown(given)}")


def _grid(array: Any, name: str) -> Array:
    """Return values in order, each once."""
    grid = np.unique(array.astype(np.float64)) + 0.0
    size = np.abs(grid[grid != 0])
    ordinary = bool(((size > check.SMALLEST_SQUARED) & (size < check.LARGEST_SQUARED)).all())
    if not np.isfinite(grid).all() or not ordinary:
        raise ValueError(f"{name} must be finite numbers of an ordinary size, not {check.shown(array)}")
    if grid.size > MOST_VALUES:
        raise ValueError(f"{name} may be at most {MOST_VALUES:,} numbers, not {grid.size:,}")
    return grid
