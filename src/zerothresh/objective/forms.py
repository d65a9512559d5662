"""The objective: the `Problem` protocol, and the wrapper that checks a user's function and the values it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

MOST_COMPONENTS = 1 << 53  # a component is drawn by a random number of 53 bits, which reaches no more of them


@runtime_checkable
class Problem(Protocol):
    """An objective as an object, which knows its dimension and evaluates its components at many points.

    Attributes
    ----------
    d: the dimension of a point.
    n: the number of components f_1 .. f_n, whose mean is the objective F.
    """

    d: int
    n: int

    def values(self, points: Array, components: Indices) -> Array:
        """Evaluate f_i(x) for pairs of a point x and a component i.

        Arguments
        ---------
        points: the points, shape (B, d), read-only.
        components: the component i for each point, from 0 to n - 1, shape (B,), read-only.

        Returns
        -------
        The values, shape (B,).
        """


class BadValue(ValueError):
    """The objective returned something other than one finite real number per point."""


class BadLoss(BadValue):
    """The user's loss of the outputs raised, or returned something else than one number per output."""


class Wording(NamedTuple):
    """How a message about a value begins, and how it says what is allowed."""

    given: str
    allowed: str = "it must return"


RETURNED = Wording("the vectorised function returned")
TOLD = Wording("tell received", "it takes")
_PROBLEM = Wording("values(points, components) returned")


class Objective:
    """A user's function in any of its forms; the values that it returns are checked.

    Arguments
    ---------
    function: the user's function, called as f(x), f(x, i), f(X) or f(X, I).
    d: the dimension of a point.
    n: the number of components; 1 if the function takes no component.
    takes_component: whether the function takes the component i (or the array I) as its second argument.
    vectorized: whether the function takes many points at once: X of shape (B, d), and I of shape (B,).
    wording: how messages name a vectorised function.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        d: int,
        n: int,
        *,
        takes_component: bool,
        vectorized: bool,
        wording: Wording = RETURNED,
    ) -> None:
        self.function, self.d, self.n, self.wording = function, d, n, wording
        self.takes_component, self.vectorized = takes_component, vectorized
        self.finite = True  # whether NaN and infinite values are errors
        self.chunk: int | None = None  # the most points per call, if the user says it

    def value(self, point: Array, component: int) -> float:
        """Evaluate f_i at the point x, shape (d,), by one call of the function."""
        if self.vectorized:
            return float(self.batch(point[None], np.array([component], dtype=np.int64))[0])
        return scalar(self.ask(point, component), finite=self.finite)

    def batch(self, points: Array, components: Indices) -> Array:
        """Evaluate f_i(x) for a batch of points (B, d) and components (B,) by one call of a vectorised function."""
        return vector(self.ask(points, components), len(points), finite=self.finite, wording=self.wording)

    def ask(self, points: Array, components: Any) -> Any:
        """Call the function, for one point and one component or for many, and return whatever it returns."""
        return self.function(points, components) if self.takes_component else self.function(points)

    def accept(self, answer: Any, calls: int | None) -> Any:
        """Return what `value` or `batch` returns if this is what the function returned.

        Arguments
        ---------
        answer: what the function returned.
        calls: the number of points of a vectorised function; None for one point.
        """
        if calls is None:
            return scalar(answer, finite=self.finite)
        return vector(answer, calls, finite=self.finite, wording=self.wording)

    def most_points(self, chunk: int) -> int:
        """Return the most points per call of a vectorised function, of ``chunk`` that fit as far as d tells."""
        return chunk

    def known(self) -> tuple[Any, ...]:
        """Return what calls have to know beside the function; it may change during a run."""
        return (self.finite,)

    def learn(self, known: tuple[Any, ...]) -> None:
        """Take over what another process knows by now."""
        (self.finite,) = known

    def arrived(self, answer: Any) -> Array:
        """Return the values, one per call, from what `value` or `batch` returned on a worker."""
        return np.atleast_1d(answer)


def scalar(value: Any, *, finite: bool = True) -> float:
    """Check that a returned value is one real number.

    Arguments
    ---------
    value: what the function returned: a number, or an array of one number.
    finite: whether NaN and infinite values are refused; True by default.

    Returns
    -------
    The number. Raises `BadValue` with the reason if the value is refused.
    """
    if isinstance(value, float):  # NumPy's float64 is one, too
        number = float(value)
    else:
        if value is None:
            raise BadValue("the function returned None; it must return one number (is a `return` missing?)")
        array = check.array(value)
        if array is None:
            raise BadValue(f"the function returned {check.shown(value)}; it must return one real number")
        if array.size != 1:
            raise BadValue(
                f"the function returned an array of shape {array.shape}; it must return one number "
                "(pass outputs='residuals' or outputs='components' if one call returns many outputs, "
                "or pass vectorized=True if it takes many points at once)"
            )
        if array.dtype.kind not in "fiub":
            raise BadValue(
                f"the function returned {check.shown(value)} ({array.dtype}); it must return one real number"
            )
        with np.errstate(all="ignore"):
            number = float(array.reshape(()))
    if finite and number - number != 0.0:
        raise BadValue(f"the function returned {number!r}; it must return a finite number")
    return number


def vector(value: Any, size: int, *, finite: bool = True, wording: Wording = RETURNED) -> Array:
    """Check that a value holds one real number per point.

    Arguments
    ---------
    value: what the vectorised function returned, or what a user told.
    size: the number of points.
    finite: whether NaN and infinite values are refused; True by default.
    wording: how messages name the source of the value; a vectorised function by default.

    Returns
    -------
    The numbers, shape (size,). Raises `BadValue` with the reason if the value is refused.
    """
    if value is None:
        hint = "" if wording is TOLD else " (is a `return` missing?)"
        raise BadValue(f"{wording.given} None; {wording.allowed} {size} numbers{hint}")
    array = check.array(value)
    if array is None:
        raise BadValue(f"{wording.given} {check.shown(value)}; {wording.allowed} {size} numbers, one per point")
    if array.shape != (size,):
        raise BadValue(
            f"{wording.given} shape {array.shape} for {size} points; {wording.allowed} "
            f"shape ({size},), one number per point"
        )
    if array.dtype.kind not in "fiub":
        raise BadValue(f"{wording.given} dtype {array.dtype}; {wording.allowed} real numbers")
    with np.errstate(all="ignore"):
        numbers = array.astype(np.float64)
    if finite and not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise BadValue(
            f"{wording.given} {float(numbers[row])} for point {row} of the batch; {wording.allowed} finite numbers"
        )
    return numbers


def wrap(fun: Any, d: int | None, n: int | None, vectorized: bool) -> Objective:
    """Make an `Objective` of a function or of a problem object.

    Arguments
    ---------
    fun: a function of x (or of x and i), or an object with the attributes of `Problem`.
    d: the dimension; None if only a problem object knows it.
    n: the number of components, if the function takes a component; None if it does not.
    vectorized: whether the function takes many points at once. A problem object always does.

    Returns
    -------
    The objective. Raises ``ValueError`` if the arguments contradict each other.
    """
    vectorized = check.flag("vectorized", vectorized)
    if n is not None:
        n = components_of(n)
    if isinstance(fun, type) and callable(getattr(fun, "values", None)):
        raise ValueError(f"fun must be a problem object, not the class {fun.__name__}: pass an instance")
    is_problem = _is_problem(fun)
    if not is_problem and not callable(fun):
        raise ValueError(
            f"fun must be a function of x (or of x and i), or a problem object with d, n and "
            f"values(points, components), not {type(fun).__name__}"
        )
    if is_problem:
        own_d, own_n = check.count("the problem's d", fun.d), components_of(fun.n, name="the problem's n")
        if d is not None and d != own_d:
            raise ValueError(f"x0 has length {d}, but the problem has d = {own_d}: pass a start of length {own_d}")
        if n is not None and n != own_n:
            raise ValueError(f"n = {n} was given, but the problem has n = {own_n}: leave n out")
        return Objective(fun.values, own_d, own_n, takes_component=True, vectorized=True, wording=_PROBLEM)
    if d is None:
        raise ValueError(
            "x0 must be the starting point, or the dimension d as a whole number; it can be left out only if fun is a "
            "problem object, which knows its own dimension"
        )
    takes_component = n is not None
    _check_arity(fun, takes_component, vectorized)
    return Objective(fun, d, 1 if n is None else n, takes_component=takes_component, vectorized=vectorized)


def _is_problem(fun: Any) -> bool:
    """Whether an object has what a problem has; a class has not, because its instances have it."""
    try:
        return isinstance(fun, Problem) and callable(fun.values)
    except Exception:  # an attribute that cannot be read
        return False


def components_of(n: Any, *, name: str = "n") -> int:
    """Check the number of components, and return it as an ``int``."""
    number = check.count(name, n, what=" (the number of components)")
    if number > MOST_COMPONENTS:
        raise ValueError(f"{name} must be at most 2**53 (the number of components), not {check.shown(number)}")
    return number


def _check_arity(fun: Callable[..., Any], takes_component: bool, vectorized: bool) -> None:
    """Raise ``ValueError`` if the function cannot take the arguments that it will be called with."""
    x, i = ("X", "I") if vectorized else ("x", "i")
    given = (x, i) if takes_component else (x,)
    misfit = check.call_misfit(fun, given)
    if misfit is not None:
        signature, why = misfit
        name = check.name_of(fun)
        call = f"{name}({', '.join(given)})"
        hint = (
            f"n was given, so the component is passed too; leave n out if the function is {name}({x})"
            if takes_component
            else f"pass n=... if it takes a component: {name}({x}, {i})"
        )
        raise ValueError(f"fun has the signature {signature}, but it is called as {call}: {why}; {hint}")
