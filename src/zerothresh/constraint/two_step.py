r"""Convex constraints by a two-step projection: H_k first, then the nearest point of a convex set on the support.

Reference: de Vazelhes, Yuan and Gu, *Optimization over sparse support-preserving sets: two-step projection with global
optimality guarantees*, ICML 2025 (2SP). For balls around 0 it is the exact projection (Beck and Hallak 2016); for other
sets it is a point of the set, near v, on the support that H_k chooses.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.feasible_set import TOLERANCE, Places

_ALTERNATIONS = 200  # of the projections onto the bounds and onto the set (Dykstra), where both bind


@dataclass(frozen=True)
class Ball:
    """The ball {||x|| <= radius}, a convex constraint whose projection preserves the support.

    Arguments
    ---------
    radius: float, above 0.
    norm: str, "l2" (default) or "l1".

    >>> Ball(1.0, "l1").project(np.array([2.0, 0.0, -1.5])).tolist()
    [0.75, 0.0, -0.25]
    """

    radius: float
    norm: str = "l2"

    def __post_init__(self) -> None:
        check.ordinary("radius", check.positive("radius", self.radius, what=" (of the ball)"))
        check.one_of("norm", self.norm, ("l1", "l2"))

    def project(self, v: Array) -> Array:
        """The nearest point of the ball, whose norm as computed is at most the radius; zeros stay zeros."""
        if self.norm == "l2":
            size = float(np.linalg.norm(v))
            return v if size <= self.radius else _inside_as_computed(v * (self.radius / size), self.radius, 2)
        sizes = np.sort(np.abs(v))[::-1]
        if np.abs(v).sum() <= self.radius:
            return v
        levels = (np.cumsum(sizes) - self.radius) / np.arange(1, v.size + 1)
        level = float(levels[np.flatnonzero(sizes > levels)[-1]])
        return _inside_as_computed(np.sign(v) * np.maximum(np.abs(v) - level, 0.0) + 0.0, self.radius, 1)


def _inside_as_computed(x: Array, radius: float, order: int) -> Array:
    """Shrink a point whose norm should be the radius by units in the last place, until rounding leaves it inside."""
    spacing = float(np.finfo(np.float64).eps)
    while (size := float(np.linalg.norm(x, order))) > radius:
        x = x * (min(radius / size, 1.0) - spacing)
        spacing *= 2.0
    return x


class TwoStepSet:
    """The points with at most k non-zeros of a convex set that is given by its projection.

    Arguments
    ---------
    given: an object with a function ``project(v)`` that keeps zeros, or ``project(v, support)``.
    places: the places of the support.
    """

    fixed_total = polyhedral = discrete = False

    def __init__(self, given: Any, places: Places) -> None:
        self.given, self.places = given, places
        self.low, self.high = places.low.copy(), places.high.copy()
        self.low[places.excluded] = self.high[places.excluded] = 0.0
        self._with_support = len(_parameters(given)) > 1
        self._bounded = bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())
        self._check()

    def project(self, v: Array) -> Array:
        """Return H_k(v), moved to the nearest point of the set on its support: exact for balls around 0."""
        if self.holds(v):
            return v.copy()
        clipped = np.clip(v, self.low, self.high)
        units = self.places.largest(clipped * (2.0 * v - clipped))
        out = self.project_on(v, self.places.members(units))
        assert out is not None
        return out

    def project_on(self, v: Array, support: Indices) -> Array | None:
        """Return the nearest point of the set on the support, within the bounds."""
        kept = np.zeros(self.places.d)
        kept[support] = v[support]
        low, high = np.zeros(self.places.d), np.zeros(self.places.d)
        low[support], high[support] = self.low[support], self.high[support]
        x = self._nearest(np.clip(kept, low, high) if self._bounded else kept, support)
        if not self._bounded or bool(((x >= low) & (x <= high)).all() and (kept == np.clip(kept, low, high)).all()):
            return x
        y, p, q = kept, np.zeros_like(kept), np.zeros_like(kept)
        for _ in range(_ALTERNATIONS):
            x = self._nearest(y + p, support)
            p = y + p - x
            after = np.clip(x + q, low, high)
            q = x + q - after
            done = float(np.abs(after - y).max()) <= 1e-13 * float(np.abs(after).max(initial=0.0))
            y = after
            if done:
                break
        out = np.clip(self._nearest(y, support), low, high)
        return out if self._inside(out, support) else self._last_resort(y, low, high, support)

    def _last_resort(self, y: Array, low: Array, high: Array, support: Indices) -> Array:
        """Alternate without corrections, which ends in some point of both sets."""
        for _ in range(10 * _ALTERNATIONS):
            y = np.clip(self._nearest(y, support), low, high)
            if self._inside(y, support):
                break
        return y

    def holds(self, x: Array) -> bool:
        """Whether x is in the set."""
        taken = self.places.taken(x)
        return taken.size <= self.places.k and self._in_box(x) and self._inside(x, self.places.members(taken))

    def holds_dense(self, x: Array) -> bool:
        """Whether x is in the set but for the number of non-zeros."""
        return self._in_box(x) and self._inside(x, np.arange(self.places.d))

    def clip(self, x: Array) -> Array:
        """Return the nearest point of the set without the limit on the number of non-zeros."""
        out = self.project_on(x, np.arange(self.places.d))
        assert out is not None
        return out

    def identity(self) -> Any:
        """Return what tells it from another constraint."""
        return {"kind": type(self.given).__name__, "given": repr(self.given) if _tells(self.given) else None}

    def _nearest(self, v: Array, support: Indices) -> Array:
        """Call the user's projection, which gets arrays of its own, and check what it returns."""
        point = v.copy()
        result = self.given.project(point, support.copy()) if self._with_support else self.given.project(point)
        array = check.array(result)
        if array is None or array.shape != v.shape or array.dtype.kind not in "fiu":
            raise ValueError(
                f"project of {type(self.given).__name__} must return an array of shape ({v.size},), not "
                f"{check.shown(result)}"
            )
        x = array.astype(np.float64)
        if not np.isfinite(x).all():
            raise ValueError(f"project of {type(self.given).__name__} returned numbers that are not finite")
        outside = np.ones(v.size, bool)
        outside[support] = False
        wrong = np.flatnonzero(x[outside])
        if wrong.size:
            j = int(np.flatnonzero(outside)[wrong[0]])
            raise ValueError(
                f"project of {type(self.given).__name__} makes coordinate {j} non-zero, which is outside of the "
                "support: it must keep zeros; write project(v, support) if it needs to know the support"
            )
        return x

    def _in_box(self, x: Array) -> bool:
        return bool(((x >= self.low) & (x <= self.high)).all())

    def _inside(self, x: Array, support: Indices) -> bool:
        moved = float(np.abs(self._nearest(x, support) - x).max(initial=0.0))
        return moved <= TOLERANCE * max(float(np.abs(x).max(initial=0.0)), 1e-300)

    def _check(self) -> None:
        """Try the projection before the first call is paid for."""
        low, high = np.maximum(self.low, -1e3), np.minimum(self.high, 1e3)
        start = np.clip(np.linspace(2.0, 1.0, self.places.d), low, high)
        start[self.places.excluded] = 0.0
        for v in (start, np.zeros(self.places.d)):
            try:
                x = self.project(v)
            except ValueError:
                raise
            except Exception as error:
                raise ValueError(
                    f"project of {type(self.given).__name__} raised {type(error).__name__}: {check.shown(error)}"
                ) from error
            if not self.holds(x):
                raise ValueError(
                    f"project of {type(self.given).__name__} does not return points of a set: projecting such a point "
                    "once more moves it, or no point of the set is within the bounds"
                )


def _tells(given: Any) -> bool:
    """Whether the text of an object tells it from others: not the one that Python makes of its place in memory."""
    own: Any = type(given).__repr__
    return own is not object.__repr__


def _parameters(given: Any) -> list[Any]:
    """Return the positional parameters of ``given.project``."""
    try:
        parameters = inspect.signature(given.project).parameters.values()
    except (TypeError, ValueError):
        return [None]
    return [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
