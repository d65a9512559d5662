r"""Constraints on sums: `Simplex`, at most k shares that sum to a total, and `Budget`, with limits per coordinate.

A coordinate of a `Budget` is 0, or within ``[low, high]``: once it is chosen, the limits hold (semi-continuous). The
projection is exact where `ShareSet.project` says so.

References: Kyrillidis, Becker, Cevher and Koch, *Sparse projections onto the simplex*, ICML 2013 (the largest entries
are the support); Beck and Hallak, *On the minimization over sparse symmetric sets*, Mathematics of Operations Research
2016 (the same for symmetric sets).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.feasible_set import TOLERANCE, Places
from zerothresh.constraint.knapsack import Knapsack, nearest_with_total

SAME_TOTAL = 1e-13  # relative: a sum this close to its total is left as it is


@dataclass(frozen=True)
class Simplex:
    """At most k coordinates that are not negative and sum to a total, as the ingredients of a mixture do.

    Arguments
    ---------
    total: float, above 0, default 1: the sum of all coordinates.

    >>> import numpy as np
    >>> import zerothresh as zt
    >>> goal = np.array([0.1, 0.4, 0.0, 0.5, 0.0])
    >>> zt.minimize(lambda x: ((x - goal) ** 2).sum(), 5, 2, budget=300, constraint=zt.Simplex(), seed=0).x.round(3)
    array([0.  , 0.45, 0.  , 0.55, 0.  ])
    """

    total: float = 1.0

    def __post_init__(self) -> None:
        check.ordinary("total", check.positive("total", self.total, what=" (the sum of all coordinates)"))

    def bind(self, places: Places) -> ShareSet:
        """Return the set for these coordinates."""
        return ShareSet(self, places, 0.0, np.inf, (float(self.total), float(self.total)))


@dataclass(frozen=True)
class Budget:
    """Coordinates that are 0 or within limits, and whose sum is a total, or between two totals.

    Arguments
    ---------
    total: float, or a pair (least, most) in which None means no limit, default None: the sum of all coordinates.
    low, high: numbers or arrays (d,), default 0 and no limit: a coordinate is 0, or at least ``low`` and at most
        ``high``. Limits above 0 hold once a coordinate is chosen; coordinates of ``include`` are always chosen.

    >>> import zerothresh as zt
    >>> zt.Budget(total=1, low=0.01, high=0.5)  # a portfolio: each share is 0, or from 1 % to 50 %
    Budget(total=1, low=0.01, high=0.5)
    """

    total: Any = None
    low: Any = 0.0
    high: Any = None

    def __post_init__(self) -> None:
        _totals(self.total)
        _limits(self.low, self.high, None)

    def bind(self, places: Places) -> ShareSet:
        """Return the set for these coordinates."""
        low, high = _limits(self.low, self.high, places.d)
        return ShareSet(self, places, low, high, _totals(self.total))


class ShareSet:
    """The points with at most k non-zeros of a `Simplex` or a `Budget`.

    Arguments
    ---------
    given: what the user wrote.
    places: the places of the support.
    low, high: what a coordinate has once it is chosen.
    totals: the least and the largest sum.
    """

    polyhedral = True
    discrete = False

    def __init__(self, given: Any, places: Places, low: Any, high: Any, totals: tuple[float, float]) -> None:
        self.given, self.places, self.totals = given, places, totals
        chosen_low = np.maximum(np.broadcast_to(low, places.d).astype(np.float64), places.low)
        chosen_high = np.minimum(np.broadcast_to(high, places.d).astype(np.float64), places.high)
        never = chosen_low > chosen_high  # bounds leave no room for it
        never[places.excluded] = True
        lost = np.intersect1d(places.unit[never], places.forced) if places.single else np.empty(0, np.int64)
        if lost.size:
            raise ValueError(f"coordinate {lost[0]} is in include, but its limits and its bounds leave no value for it")
        chosen_low[never] = chosen_high[never] = 0.0
        self.chosen_low, self.chosen_high = chosen_low, chosen_high
        self.low, self.high = np.minimum(chosen_low, 0.0), np.maximum(chosen_high, 0.0)
        self.fixed_total = totals[0] == totals[1]
        self.knapsack = Knapsack(places, chosen_low, chosen_high, totals)
        self._dense: ShareSet | None = None
        if self.knapsack.project(np.zeros(places.d)) is None:
            raise ValueError(self._why_empty())

    @property
    def is_box(self) -> bool:
        """Whether it is nothing but bounds."""
        free = self.totals == (-np.inf, np.inf)
        return free and bool((self.chosen_low <= 0).all() and (self.chosen_high >= 0).all())

    def project(self, v: Array) -> Array:
        """Return the nearest point of the set.

        It is exact for `Simplex`, for equal limits of all coordinates that are not negative, for two values of the sum
        that do not bind, and up to 12 places always; otherwise as long as the search over supports ends within
        `zerothresh.constraint.knapsack.MOST_NODES` nodes, which it nearly always does. Beyond that it is a point of the
        set that may not be the nearest one.
        """
        if self.holds(v):
            return v.copy()
        out = self.knapsack.project(v)
        assert out is not None  # it was checked that the set is not empty
        return out

    def project_on(self, v: Array, support: Indices) -> Array | None:
        """Return the nearest point whose chosen coordinates are ``support``; None if limits and sum do not agree."""
        x = nearest_with_total(v[support], self.chosen_low[support], self.chosen_high[support], self.totals)
        if x is None:
            return None
        out = np.zeros(self.places.d)
        out[support] = x
        return out

    def holds(self, x: Array) -> bool:
        """Whether x is in the set."""
        taken = self.places.taken(x)
        if taken.size > self.places.k:
            return False
        if not self.places.single:
            chosen = self.places.members(taken)
            return bool(self._limited(x, chosen)) and self.right_total(x)
        return self._limited(x, taken) and self.right_total(x)

    def holds_dense(self, x: Array) -> bool:
        """Whether x is in the set but for the number of non-zeros."""
        return self._limited(x, self.places.members(self.places.taken(x))) and self.right_total(x)

    def clip(self, x: Array) -> Array:
        """Return the nearest point of the set without the limit on the number of non-zeros."""
        if self._dense is None:
            everything = replace(self.places, k=self.places.count)
            self._dense = ShareSet(self.given, everything, self.chosen_low, self.chosen_high, self.totals)
        return self._dense.project(x)

    def right_total(self, x: Array) -> bool:
        """Whether the sum is right, up to rounding."""
        least, most = self.totals
        total = float(x.sum())
        slack = TOLERANCE * max(float(np.abs(x).sum()), abs(total))
        return least - slack <= total <= most + slack

    def why_single(self) -> str:
        """Return a sentence if limits and total leave one point although the limits alone leave more; else ""."""
        if not (self.high > self.low).any():
            return ""
        forced = np.zeros(self.places.d, bool)
        forced[self.places.members(self.places.forced)] = True
        least, most = self.totals
        for limits, total, side, other in (
            (self.chosen_low, most, "lower", "larger"),
            (-self.chosen_high, -least, "upper", "smaller"),
        ):
            if bool((limits[~forced] >= 0).all()) and float(limits[forced].sum()) == total:
                return (
                    f"{type(self.given).__name__} leaves only one point: with all coordinates at their {side} limits "
                    f"the sum is already the total of {most if side == 'lower' else least:g}; take a {other} total or "
                    "other limits"
                )
        return ""

    def identity(self) -> Any:
        """Return what tells it from another constraint."""
        totals = [str(total) for total in self.totals]
        return {"kind": type(self.given).__name__, "totals": totals, "low": self.chosen_low, "high": self.chosen_high}

    def _limited(self, x: Array, chosen: Indices) -> bool:
        inside = (x[chosen] >= self.chosen_low[chosen]) & (x[chosen] <= self.chosen_high[chosen])
        return bool(inside.all())

    def _why_empty(self) -> str:
        """Return a sentence about limits and totals that no point keeps."""
        least, most = self.totals
        places, shown = self.places, f"{type(self.given).__name__}"
        if places.single:
            rest = np.setdiff1d(np.arange(places.d), places.forced)
            free = places.k - places.forced.size
            highest = float(self.chosen_high[places.forced].sum())
            highest += float(np.sort(np.maximum(self.chosen_high[rest], 0.0))[::-1][:free].sum())
            lowest = float(self.chosen_low[places.forced].sum())
            lowest += float(np.sort(np.minimum(self.chosen_low[rest], 0.0))[:free].sum())
            if highest < least:
                return (
                    f"{shown} cannot be kept: k = {places.k} coordinates at their upper limits sum to {highest:g}, "
                    f"which is below the total of {least:g}; take a larger k, higher limits or a smaller total"
                )
            if lowest > most:
                return (
                    f"{shown} cannot be kept: the coordinates at their lower limits sum to {lowest:g}, "
                    f"which is above the total of {most:g}; take lower limits or a larger total"
                )
        return (
            f"{shown} cannot be kept: no choice of at most k = {places.k} coordinates within their limits has a sum "
            f"from {least:g} to {most:g}; change the total, the limits or k"
        )


def _totals(given: Any) -> tuple[float, float]:
    """Check the total, a number or a pair, and return the least and the largest sum."""
    if given is None:
        return -np.inf, np.inf
    number = check.real(given)
    if number is not None:
        if not np.isfinite(number):
            raise ValueError(f"total must be a finite number, a pair (least, most) or None, not {number}")
        check.ordinary("total", number)
        return number, number
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ValueError(f"total must be a number, a pair (least, most) or None, not {check.shown(given)}")
    least, most = (
        none if side is None else check.real(side) for side, none in zip(given, (-np.inf, np.inf), strict=True)
    )
    if least is None or most is None or np.isnan(least) or np.isnan(most):
        raise ValueError(f"total must be a pair of numbers (least, most), or None for no limit, not {given!r}")
    if least > most:
        raise ValueError(f"total = {given!r}: the least total is above the largest one")
    if least == np.inf or most == -np.inf:
        raise ValueError(f"total = {given!r}: the least total must be below infinity, the largest above minus infinity")
    check.ordinary("total", (least, most))
    return least, most


def _limits(low: Any, high: Any, d: int | None) -> tuple[Array, Array]:
    """Check the limits of a coordinate that is chosen, and return them as arrays (d,), or as they come."""
    sides = []
    for name, given, none in (("low", low, -np.inf), ("high", high, np.inf)):
        array = check.array(none if given is None else given)
        shapes: tuple[tuple[int, ...], ...] = ((), (1,)) if d is None else ((), (1,), (d,))
        if array is None or array.dtype.kind not in "fiu" or (d is not None and array.shape not in shapes):
            size = "d" if d is None else f"d = {d}"
            raise ValueError(f"{name} must be a number or an array of length {size}, not {check.shown(given)}")
        if np.isnan(array.astype(np.float64)).any():
            raise ValueError(f"{name} must not be NaN: write None or an infinity where there is no limit")
        check.ordinary(name, array, what=" (None where there is no limit)")
        sides.append(array.astype(np.float64))
    try:
        lows, highs = np.broadcast_arrays(*sides)
    except ValueError:
        raise ValueError(f"low and high have {sides[0].size} and {sides[1].size} entries: give as many") from None
    bad = np.flatnonzero(np.atleast_1d(lows > highs))
    if bad.size:
        j = bad[0]
        where = "" if lows.ndim == 0 else f" of coordinate {j}"
        raise ValueError(f"low = {np.atleast_1d(lows)[j]:g}{where} is above high = {np.atleast_1d(highs)[j]:g}")
    if np.atleast_1d(lows == np.inf).any() or np.atleast_1d(highs == -np.inf).any():
        raise ValueError("low must be below infinity, and high above minus infinity")
    if d is None:
        return lows, highs
    return np.broadcast_to(lows, d).copy(), np.broadcast_to(highs, d).copy()
