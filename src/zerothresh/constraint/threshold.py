r"""Hard thresholding, :math:`H_k`, and the projection onto sparse vectors under further constraints.

Ties are broken in favour of the lowest index.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check
from zerothresh.constraint.bounds import Box
from zerothresh.constraint.feasible_set import FeasibleSet, Places
from zerothresh.constraint.grid_values import GridSet
from zerothresh.constraint.shares import Budget, Simplex
from zerothresh.constraint.two_step import TwoStepSet
from zerothresh.sampling.jit import kernel

Array = NDArray[np.float64]


SQUARED = 1e100  # the squares of vectors up to this size, and of one over it, are summed as they are


class Diverged(ValueError):
    """An iterate has an entry that is not a finite number, or is about to have one."""

    def __init__(self, message: str = "the vector has entries that are not finite, or too large to go on with") -> None:
        super().__init__(message)


@kernel
def _threshold(v: Any, gain: Any, k: int, out: Any, most: float) -> bool:
    """Copy the k entries of v with the largest |gain| into ``out``, and set its other entries to 0.

    Returns False, and leaves ``out`` as it is, if a |gain| is not below ``most``.
    """
    d = v.size
    size = max(2 * k, 64)
    buffer = np.empty(size)
    filled = 0
    cutoff = -1.0  # at least k entries are known to be as large as this
    finite = True
    for j in range(d):
        a = abs(gain[j])
        if not a < most:
            finite = False
        if a > cutoff:
            if filled == size:
                buffer.sort()
                for i in range(k):
                    buffer[i] = buffer[size - k + i]
                filled = k
                cutoff = buffer[0]
                if a <= cutoff:
                    continue
            buffer[filled] = a
            filled += 1
    if not finite:
        return False
    ordered = np.sort(buffer[:filled])
    cutoff = ordered[filled - min(k, filled)]
    above = 0
    for i in range(filled):
        if ordered[i] > cutoff:
            above += 1
    ties = k - above
    for j in range(d):
        a = abs(gain[j])
        if a > cutoff:
            out[j] = v[j]
        elif a == cutoff and ties > 0:
            out[j] = v[j]
            ties -= 1
        else:
            out[j] = 0.0
    return True


def hard_threshold(v: Array, k: int) -> Array:
    """Keep the k entries of largest absolute value, and set the others to 0.

    Arguments
    ---------
    v: a vector of real numbers, shape (d,), with finite entries.
    k: the number of entries to keep, at least 1.

    Returns
    -------
    A new vector, shape (d,). Raises `Diverged`, which is a ``ValueError``, if an entry of v is not finite.

    >>> hard_threshold(np.array([1.0, -3.0, 2.0, 2.0]), 2)
    array([ 0., -3.,  2.,  0.])
    """
    array = check.array(v)
    if array is None or array.ndim != 1 or array.dtype.kind not in "fiu":
        raise ValueError(f"v must be a vector of real numbers, not {check.shown(v)}")
    k = check.count("k", k, what=" (the entries to keep)")
    with np.errstate(all="ignore"):
        vector = np.ascontiguousarray(array, dtype=np.float64)
    out = np.empty_like(vector)
    if vector.size and not _threshold(vector, vector, min(k, vector.size), out, np.inf):
        j = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise Diverged(f"v must hold finite numbers, but v[{j}] is {vector[j]}")
    return out


class Constraint:
    """The feasible set {at most k non-zeros (or k groups), low <= theta <= high, ...}, and the projection onto it.

    The projection is exact: no point of the set is nearer to v, except where a further constraint says otherwise.
    Keeping coordinate j instead of setting it to 0 reduces the squared distance by the gain
    v_j^2 - (v_j - clip(v_j))^2, so the coordinates (or groups) with the k largest gains are kept.

    Arguments
    ---------
    d: the dimension.
    k: the largest number of non-zeros, or of groups with non-zeros if ``groups`` is given.
    bounds: a pair (low, high) of numbers or of arrays of shape (d,), or a ``scipy.optimize.Bounds``; every
        interval must contain 0. None (the default) means no bounds.
    include: coordinates that are always in the support, as a list of indices or as a mask of shape (d,). They
        count towards k. None (the default) means none.
    exclude: coordinates that are always 0, in the same form. None (the default) means none.
    groups: a label per coordinate, shape (d,); coordinates with the same label are kept or dropped together.
        None (the default) means that every coordinate is its own group.
    constraint: a further constraint, such as ``zt.Simplex()``, ``zt.Budget(total=1, low=0.01)`` or ``zt.Ball(2.0)``, or
        any object with a function ``project``. None (the default) means none.
    values: the values that coordinates may have: an array for all coordinates, a list of d arrays, or "integers",
        "bytes" or "on/off". None (the default) means all real numbers.
    strict: whether every queried point must be in the set, so that only methods that can do without others may ask.
        False by default. Values are always strict.
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
        constraint: Any = None,
        values: Any = None,
        strict: bool = False,
    ) -> None:
        self.d, self.k = d, k
        self.bounds = self.box = _box(d, bounds)  # `bounds` as given; `box` also fixes excluded coordinates at 0
        self.include = _indices("include", include, d)
        self.exclude = _indices("exclude", exclude, d)
        self.groups = _groups(groups, d)
        limit = d if self.groups is None else int(self.groups.max()) + 1
        name = "d" if self.groups is None else "the number of groups"
        if k > limit:
            raise ValueError(f"k = {k} is larger than {name} = {limit}: take k from 1 to {limit}")
        both = np.intersect1d(self.include, self.exclude)
        if both.size:
            raise ValueError(f"coordinate {both[0]} is in both include and exclude: remove it from one of them")
        forced = self.include if self.groups is None else np.unique(self.groups[self.include])
        if forced.size > k:
            unit = "coordinates" if self.groups is None else "groups"
            raise ValueError(
                f"include names {forced.size} {unit}, but only k = {k} may be non-zero: "
                "take a larger k or a shorter list"
            )
        self._forced = forced
        self.plain = self.box is None and self.groups is None and not (forced.size or self.exclude.size)
        if self.exclude.size:  # an excluded coordinate has the bounds [0, 0]
            low = np.full(d, -np.inf) if self.box is None else self.box.low.copy()
            high = np.full(d, np.inf) if self.box is None else self.box.high.copy()
            low[self.exclude] = high[self.exclude] = 0.0
            self.box = Box(low, high)
        strict = check.flag("strict", strict)
        self.further = self._further(constraint, values, strict=strict)
        self.strict = strict or (self.further is not None and self.further.discrete)
        if self.further is not None:
            self.plain, self.box = False, Box(self.further.low, self.further.high)

    def _further(self, constraint: Any, values: Any, *, strict: bool) -> FeasibleSet | None:
        """Return what the set is beyond bounds, groups and coordinates; None if it is nothing beyond these."""
        if constraint is None and values is None and not strict:
            return None
        none = np.full(self.d, np.inf)
        low, high = (-none, none) if self.bounds is None else (self.bounds.low, self.bounds.high)
        unit = np.arange(self.d) if self.groups is None else self.groups
        places = Places(self.d, self.k, unit, self._forced, low, high, self.exclude)
        if values is not None:
            if constraint is not None:
                raise ValueError("values and constraint cannot be given together: give one of the two")
            return GridSet(values, places)
        if isinstance(constraint, type):
            raise ValueError(
                f"constraint must be an object, such as zt.{constraint.__name__}(...), not the class "
                f"{constraint.__name__} itself"
            )
        if constraint is None:  # only k and the bounds, which every queried point has to keep
            return Budget(low=None).bind(places)
        if isinstance(constraint, (Simplex, Budget)):
            bound = constraint.bind(places)
            if bound.is_box and not strict:  # nothing but bounds, which every method keeps
                self.box = Box(bound.low, bound.high)
                self.plain = False
                return None
            return bound
        if not check.has_function(constraint, "project"):
            raise ValueError(
                "constraint must be zt.Simplex(), zt.Budget(...), zt.Ball(...) or an object with a function "
                f"project(v), not {check.shown(constraint)}"
            )
        return TwoStepSet(constraint, places)

    def holds(self, x: Array) -> bool:
        """Whether the point x, shape (d,), is in the set."""
        if self.further is not None:
            return self.further.holds(x)
        if self.plain:
            return bool(np.count_nonzero(x) <= self.k)
        support = np.flatnonzero(x)
        places = support if self.groups is None else np.unique(self.groups[support])
        size = places.size if not self._forced.size else np.union1d(places, self._forced).size
        return bool(size <= self.k) and self.within_bounds(x)

    def within_bounds(self, x: Array) -> bool:
        """Whether the point x, shape (d,), respects the bounds and further constraints, whatever its support is."""
        if self.further is not None:
            return self.further.holds_dense(x)
        return self.box is None or bool(((x >= self.box.low) & (x <= self.box.high)).all())

    def project(self, v: Array) -> Array:
        """Return the point of the set that is nearest to v, shape (d,), as a read-only array."""
        if self.plain:
            out = np.empty_like(v)
            if not _threshold(v, v, self.k, out, check.LARGEST_SIZE):
                raise Diverged
        elif self.further is not None:
            if not _sound(v):
                raise Diverged
            out = self.further.project(v)
        else:
            out = self._project(v)
        out.flags.writeable = False
        return out

    def clip(self, x: Array) -> Array:
        """Return the nearest point within the bounds, read-only; `Diverged` if x is not finite, or too large."""
        if not _sound(x):
            raise Diverged
        if self.further is not None:
            x = self.further.clip(x)
        else:
            x = x if self.box is None else np.clip(x, self.box.low, self.box.high)
        x.flags.writeable = False
        return x

    def _project(self, v: Array) -> Array:
        """Project under bounds, groups, or included or excluded coordinates."""
        if not _sound(v):
            raise Diverged
        clipped = v if self.box is None else np.clip(v, self.box.low, self.box.high)
        scale = _scale(v)
        kept, given = (clipped, v) if scale == 1.0 else (clipped * scale, v * scale)
        gain = kept * (2.0 * given - kept)  # v^2 - (v - clip(v))^2, without a difference of squares
        if self.groups is not None:
            gain = np.bincount(self.groups, weights=gain).astype(np.float64)
        largest = float(gain.max(initial=0.0))
        gain[self._forced] = 2.0 * largest + 1.0
        chosen = np.empty_like(gain)
        if not _threshold(np.ones_like(gain), gain, self.k, chosen, np.inf):
            raise Diverged
        mask = chosen if self.groups is None else chosen[self.groups]
        return np.where(mask > 0, clipped, 0.0)


def _sound(v: Array) -> bool:
    """Whether all entries are finite, and not too large to go on with."""
    return bool((np.abs(v) < check.LARGEST_SIZE).all())


def _scale(v: Array) -> float:
    """Return a power of two by which a vector is multiplied so that its squares neither overflow nor vanish."""
    largest = float(np.abs(v).max(initial=0.0))
    if largest == 0.0 or 1.0 / SQUARED <= largest <= SQUARED:
        return 1.0
    return math.ldexp(1.0, max(-1000, min(1000, -math.frexp(largest)[1])))


class HardThreshold:
    """The operator H_k that a method's ``update`` receives: it applies the projection, and counts how often (#NHT)."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint
        self._project = constraint.project
        self.count = 0  # uses of H_k: the paper's #NHT

    def __call__(self, v: Array) -> Array:
        self.count += 1
        return self._project(v)

    def within_bounds(self, x: Array) -> Array:
        """Return the nearest point within the bounds, whatever its support: the step of a method without H_k."""
        return self.constraint.clip(x)


_LABELS = "biufUSmM"  # kinds of arrays whose entries can be told apart and put in order
_OLD_FORM = "convert a list of d pairs (low, high), scipy's old form, to a pair (lows, highs)"


def _box(d: int, bounds: Any) -> Box | None:
    """Check the user's bounds, and expand them to arrays of shape (d,)."""
    if bounds is None:
        return None
    form = f"bounds must be a pair (low, high) of numbers or of arrays of length d = {d}"
    try:
        if isinstance(bounds, (str, bytes, Mapping, Set)):  # these can be unpacked, but have no low and high
            raise TypeError
        if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy.optimize.Bounds
            low, high = bounds.lb, bounds.ub
        else:
            low, high = bounds
    except Exception:
        raise ValueError(f"{form}, or a scipy.optimize.Bounds, not {check.shown(bounds)}; {_OLD_FORM}") from None
    sides = []
    for side, given, none in (("low", low, -np.inf), ("high", high, np.inf)):
        array = check.array(none if given is None else given)
        if array is None or array.dtype.kind not in "fiu" or array.shape not in ((), (1,), (d,)):
            raise ValueError(f"{form}, but {side} is {check.shown(given)}; {_OLD_FORM}")
        with np.errstate(all="ignore"):
            sides.append(np.broadcast_to(array.astype(np.float64), (d,)).copy())
    low, high = sides
    bad = np.flatnonzero(~((low <= 0) & (high >= 0)))
    if bad.size:
        j = bad[0]
        given = f"bounds of coordinate {j} are [{low[j]:g}, {high[j]:g}]"
        if np.isnan(low[j]) or np.isnan(high[j]):
            raise ValueError(f"{given}; NaN is not allowed: write None or an infinity where there is no bound")
        if low[j] > high[j]:
            raise ValueError(f"{given}; the lower bound is above the upper one")
        raise ValueError(
            f"{given}; they must contain 0, because most coordinates of a sparse solution are 0: shift the variable so "
            "that 0 is its neutral value"
        )
    return Box(low, high)


def _indices(name: str, given: Sequence[int] | None, d: int) -> NDArray[np.int64]:
    """Check a list of coordinates or a mask, and return the sorted indices."""
    if given is None:
        return np.empty(0, np.int64)
    array = check.array(given)
    if array is not None and array.dtype == bool and array.shape == (d,):
        array = np.flatnonzero(array)
    if array is None or array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"{name} must be a list of coordinates from 0 to {d - 1}, or a mask, not {check.shown(given)}")
    if array.size and not (array.min() >= 0 and array.max() < d):
        wrong = array[(array < 0) | (array >= d)][0]
        raise ValueError(f"{name} names coordinate {wrong}, but coordinates go from 0 to {d - 1}")
    return np.unique(array.astype(np.int64))


def _groups(groups: Sequence[int] | None, d: int) -> NDArray[np.int64] | None:
    """Check the labels of the groups, and number them from 0."""
    if groups is None:
        return None
    array = check.array(groups)
    if array is None or array.shape != (d,) or array.dtype.kind not in _LABELS:
        given = check.shown(groups) if array is None else f"an array of {array.dtype} of shape {array.shape}"
        raise ValueError(
            f"groups must have shape ({d},), one label per coordinate (a number or a string), but it is {given}"
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(
            f"groups must be labels, but that of coordinate {int(np.flatnonzero(np.isnan(array))[0])} is NaN"
        )
    _, labels = np.unique(array, return_inverse=True)
    return labels.reshape(-1).astype(np.int64)
