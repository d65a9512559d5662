r"""Hard thresholding, :math:`H_k`, and its versions under constraints.

Ties go to the lowest index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check
from zerothresh.constraint.bounds import Box
from zerothresh.sampling.jit import kernel

Array = NDArray[np.float64]


class Diverged(Exception):
    """An iterate left the floating-point numbers."""


@kernel
def _threshold(v: Any, gain: Any, k: int, out: Any) -> bool:
    """Copy the k entries of v with the largest |gain| into out; False if a gain is not finite."""
    d = v.size
    size = max(2 * k, 64)
    buffer = np.empty(size)
    held = 0
    bar = -1.0  # at least k entries are known to be as large as this
    finite = True
    for j in range(d):
        a = abs(gain[j])
        if not a < np.inf:
            finite = False
        if a > bar:
            if held == size:
                buffer.sort()
                for i in range(k):
                    buffer[i] = buffer[size - k + i]
                held = k
                bar = buffer[0]
                if a <= bar:
                    continue
            buffer[held] = a
            held += 1
    if not finite:
        return False
    ordered = np.sort(buffer[:held])
    bar = ordered[held - min(k, held)]
    above = 0
    for i in range(held):
        if ordered[i] > bar:
            above += 1
    ties = k - above
    for j in range(d):
        a = abs(gain[j])
        if a > bar:
            out[j] = v[j]
        elif a == bar and ties > 0:
            out[j] = v[j]
            ties -= 1
        else:
            out[j] = 0.0
    return True


def hard_threshold(v: Array, k: int) -> Array:
    """Keep the k entries that are largest in size, set the others to 0.

    >>> hard_threshold(np.array([1.0, -3.0, 2.0, 2.0]), 2)
    array([ 0., -3.,  2.,  0.])
    """
    out = np.empty_like(v)
    if not _threshold(v, v, min(k, v.size), out):
        raise Diverged
    return out


class Constraint:
    """The set {at most k non-zeros (or k groups), low <= theta <= high, ...}, and the projection onto it.

    Exact: of all points of the set, the projection is one nearest to v. A coordinate that is kept
    gains v_j^2 - (v_j - clip(v_j))^2 over one that is dropped, so the k largest gains are kept.
    """

    def __init__(
        self,
        d: int,
        k: int,
        *,
        bounds: Any = None,
        include: Sequence[int] | None = None,
        exclude: Sequence[int] | None = None,
        groups: Sequence[int] | None = None,
    ) -> None:
        self.d, self.k = d, k
        self.bounds = self.box = _box(d, bounds)  # as given; and with the excluded coordinates
        self.include = _indices("include", include, d)
        self.exclude = _indices("exclude", exclude, d)
        self.groups = _groups(groups, d)
        limit = d if self.groups is None else int(self.groups.max()) + 1
        name = "d" if self.groups is None else "the number of groups"
        if k > limit:
            raise ValueError(f"k = {k} is larger than {name} = {limit}: take k from 1 to {limit}")
        both = np.intersect1d(self.include, self.exclude)
        if both.size:
            raise ValueError(f"coordinate {both[0]} is in include and in exclude: it can be in one of them")
        forced = self.include if self.groups is None else np.unique(self.groups[self.include])
        if forced.size > k:
            raise ValueError(f"include needs {forced.size} places, but k = {k}: take a larger k or a shorter list")
        self._forced = forced
        self.plain = self.box is None and self.groups is None and not (forced.size or self.exclude.size)
        if self.exclude.size:  # an excluded coordinate is one between 0 and 0
            low = np.full(d, -np.inf) if self.box is None else self.box.low.copy()
            high = np.full(d, np.inf) if self.box is None else self.box.high.copy()
            low[self.exclude] = high[self.exclude] = 0.0
            self.box = Box(low, high)

    def holds(self, x: Array) -> bool:
        """Whether x is in the set."""
        if self.plain:
            return bool(np.count_nonzero(x) <= self.k)
        support = np.flatnonzero(x)
        places = support if self.groups is None else np.unique(self.groups[support])
        size = places.size if not self._forced.size else np.union1d(places, self._forced).size
        return bool(size <= self.k) and self.within_bounds(x)

    def within_bounds(self, x: Array) -> bool:
        """Whether x keeps the bounds, whatever its support."""
        return self.box is None or bool(((x >= self.box.low) & (x <= self.box.high)).all())

    def project(self, v: Array) -> Array:
        """The nearest point of the set; read-only."""
        if self.plain:
            out = np.empty_like(v)
            if not _threshold(v, v, self.k, out):
                raise Diverged
        else:
            out = self._project(v)
        out.flags.writeable = False
        return out

    def _project(self, v: Array) -> Array:
        if not np.isfinite(v).all():
            raise Diverged
        kept = v if self.box is None else np.clip(v, self.box.low, self.box.high)
        gain = v * v - (v - kept) ** 2
        if self.groups is not None:
            gain = np.bincount(self.groups, weights=gain).astype(np.float64)
        largest = float(gain.max(initial=0.0))
        gain[self._forced] = 2.0 * largest + 1.0
        chosen = np.empty_like(gain)
        if not _threshold(np.ones_like(gain), gain, self.k, chosen):
            raise Diverged
        mask = chosen if self.groups is None else chosen[self.groups]
        return np.where(mask > 0, kept, 0.0)


class HardThreshold:
    """H_k as a method's ``update`` sees it: applies the projection and counts (#NHT)."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self._project = constraint.project
        self.count = 0

    def __call__(self, v: Array) -> Array:
        self.count += 1
        return self._project(v)


def _box(d: int, bounds: Any) -> Box | None:
    if bounds is None:
        return None
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy.optimize.Bounds
        low, high = bounds.lb, bounds.ub
    else:
        try:
            low, high = bounds
        except (TypeError, ValueError):
            raise ValueError(
                f"bounds must be a pair (low, high) of numbers or of arrays of length {d}, or a "
                f"scipy.optimize.Bounds, not {bounds!r}"
            ) from None
    try:
        low = np.broadcast_to(np.asarray(-np.inf if low is None else low, float), (d,)).copy()
        high = np.broadcast_to(np.asarray(np.inf if high is None else high, float), (d,)).copy()
    except ValueError:
        raise ValueError(
            f"bounds must be a pair (low, high) of numbers or of arrays of length d = {d}; "
            "a list of d pairs is scipy's old form: pass (lows, highs)"
        ) from None
    bad = np.flatnonzero(~((low <= 0) & (high >= 0)))
    if bad.size:
        j = bad[0]
        raise ValueError(
            f"bounds of coordinate {j} are [{low[j]:g}, {high[j]:g}]; they must hold 0, because most "
            "coordinates of a sparse solution are 0: shift the variable so that 0 is its neutral value"
        )
    return Box(low, high)


def _indices(name: str, given: Sequence[int] | None, d: int) -> NDArray[np.int64]:
    if given is None:
        return np.empty(0, np.int64)
    array = np.asarray(given)
    if array.dtype == bool and array.shape == (d,):
        array = np.flatnonzero(array)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"{name} must be a list of coordinates from 0 to {d - 1}, not {given!r}")
    if array.size and not (array.min() >= 0 and array.max() < d):
        wrong = array[(array < 0) | (array >= d)][0]
        raise ValueError(f"{name} names coordinate {wrong}; coordinates go from 0 to {d - 1}")
    return np.unique(array.astype(np.int64))


def _groups(groups: Sequence[int] | None, d: int) -> NDArray[np.int64] | None:
    if groups is None:
        return None
    array = np.asarray(groups)
    if array.shape != (d,):
        raise ValueError(f"groups must give a label for each of the d = {d} coordinates, not shape {array.shape}")
    _, labels = np.unique(array, return_inverse=True)
    check.count("the number of groups", int(labels.max()) + 1)
    return labels.astype(np.int64)
