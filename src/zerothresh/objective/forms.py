"""The objective: the `Problem` protocol, and wrappers that make one of a user's callable."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check
from zerothresh.sampling.jit import kernel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@runtime_checkable
class Problem(Protocol):
    """An objective as an object: d, n, and the values of components at points."""

    d: int
    n: int

    def values(self, points: Array, components: Indices) -> Array:
        """f_i(x) for each row x of ``points`` (B, d) and i of ``components`` (B,): (B,)."""


class BadValue(ValueError):
    """The objective returned something that is not a finite real number (or not one for each point)."""


class Objective:
    """A user's callable in one of its forms, checked on the way in and on the way out."""

    def __init__(self, function: Callable[..., Any], d: int, n: int, *, takes_component: bool, vectorized: bool):
        self.function, self.d, self.n = function, d, n
        self.takes_component, self.vectorized = takes_component, vectorized
        self.finite = True  # whether NaN and infinities are errors

    def value(self, point: Array, component: int) -> float:
        """f_i(x), one call."""
        if self.vectorized:
            return float(self.batch(point[None], np.array([component], dtype=np.int64))[0])
        value = self.function(point, component) if self.takes_component else self.function(point)
        return scalar(value, finite=self.finite)

    def batch(self, points: Array, components: Indices) -> Array:
        """f_i(x) for a batch: one call of a vectorised function."""
        value = self.function(points, components) if self.takes_component else self.function(points)
        return vector(value, len(points), finite=self.finite)


def _plain(value: Any) -> NDArray[Any]:
    """As an array; what is masked is not known, and becomes NaN."""
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.filled(value.astype(np.float64), np.nan)
    return np.asarray(value)


def scalar(value: Any, *, finite: bool = True) -> float:
    """One real number (a finite one), or `BadValue` with the reason."""
    if type(value) is float:
        number = value
    else:
        if value is None:
            raise BadValue("the function returned None; it must return one number (is a `return` missing?)")
        array = _plain(value)
        if array.size != 1:
            raise BadValue(
                f"the function returned an array of shape {array.shape}; it must return one number "
                "(pass vectorized=True if it takes many points at once)"
            )
        if array.dtype.kind not in "fiub":
            raise BadValue(f"the function returned {value!r} ({array.dtype}); it must return one real number")
        number = float(array.reshape(()))
    if finite and number - number != 0.0:
        raise BadValue(f"the function returned {number!r}; it must return a finite number")
    return number


@kernel
def _all_finite(numbers: Any) -> bool:
    finite = True
    for number in numbers:
        finite &= np.abs(number) < np.inf
    return finite


def vector(value: Any, size: int, *, finite: bool = True) -> Array:
    """``size`` real numbers (finite ones), or `BadValue` with the reason."""
    if value is None:
        raise BadValue(f"the function returned None; it must return {size} numbers (is a `return` missing?)")
    array = _plain(value)
    if array.shape != (size,):
        raise BadValue(
            f"the vectorised function returned shape {array.shape} for {size} points; it must return "
            f"shape ({size},), one number a point"
        )
    if array.dtype.kind not in "fiub":
        raise BadValue(f"the vectorised function returned dtype {array.dtype}; it must return real numbers")
    numbers = array.astype(np.float64)
    if finite and not _all_finite(numbers):
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise BadValue(
            f"the function returned {float(numbers[row])} for point {row} of the batch; values must be finite"
        )
    return numbers


def wrap(fun: Any, d: int | None, n: int | None, vectorized: bool) -> Objective:
    """Make an `Objective` of a callable or of a problem object."""
    if not callable(fun) and not isinstance(fun, Problem):
        raise ValueError(
            f"fun must be a function of x (or of x and i), or a problem object with d, n and "
            f"values(points, components), not {type(fun).__name__}"
        )
    if isinstance(fun, Problem) and callable(fun.values):
        own_d, own_n = check.count("the problem's d", fun.d), check.count("the problem's n", fun.n)
        if d is not None and d != own_d:
            raise ValueError(f"x0 has length {d}, but the problem has d = {own_d}")
        if n is not None and n != own_n:
            raise ValueError(f"n = {n} was given, but the problem has n = {own_n}: leave n out")
        return Objective(fun.values, own_d, own_n, takes_component=True, vectorized=True)
    if d is None:
        raise ValueError("x0 must be the start, or the dimension d as a whole number; only a problem knows its own")
    takes_component = n is not None
    components = 1 if n is None else check.count("n", n, what=" (the number of components)")
    _check_arity(fun, takes_component, vectorized)
    return Objective(fun, d, components, takes_component=takes_component, vectorized=vectorized)


def _check_arity(fun: Callable[..., Any], takes_component: bool, vectorized: bool) -> None:
    """Refuse a function that cannot take the arguments it will get."""
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):  # a builtin that does not tell
        return
    x, i = ("X", "I") if vectorized else ("x", "i")
    given = (x, i) if takes_component else (x,)
    try:
        signature.bind(*given)
    except TypeError as error:
        name = getattr(fun, "__name__", type(fun).__name__)
        call = f"{name}({', '.join(given)})"
        hint = (
            f"n was given, so it gets the component too; leave n out for a plain {name}({x})"
            if takes_component
            else f"pass n=... if it takes a component: {name}({x}, {i})"
        )
        raise ValueError(
            f"fun has the signature {name}{signature}, but it is called as {call}: {error}; {hint}"
        ) from None
