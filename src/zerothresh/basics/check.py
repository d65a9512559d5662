"""Checks of the arguments that a user passes.

Every check raises ``ValueError`` with a message that says what was given and what is allowed, whatever was given: also
objects that cannot be shown, counted, compared or converted. The argument ``name`` is the name of the user's argument,
and ``what`` is text that the message adds after the allowed values, such as ``" (the number of components)"``.
"""

from __future__ import annotations

import difflib
import inspect
import math
import numbers
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.text import shorten

LONGEST_SHOWN = 300  # characters of a value that a message shows: enough to know it again
LARGEST_COUNT = 10**4000  # far beyond anything that can be counted; Python prints no number of more than 4300 digits
SMALLEST_SQUARED, LARGEST_SQUARED = 1e-150, 1e150  # of a size whose square must be a floating-point number
SMALLEST_ORDINARY, LARGEST_ORDINARY = 1e-70, 1e70  # of a size whose fourth power must be one
LARGEST_SIZE = 1e300  # of a coordinate: many times as much, as in a step beyond it, is still a floating-point number


def shown(value: object) -> str:
    """Return how a message shows a value: as Python does, but cut if it is long; it never fails.

    >>> shown("ten"), shown(10**5000)
    ("'ten'", 'a whole number of 16610 bits')
    """
    try:
        return shorten(repr(value), LONGEST_SHOWN)
    except Exception:  # Python prints no number of more than 4300 digits; a user's class may do anything
        if isinstance(value, int):
            return f"a whole number of {value.bit_length()} bits"
        return f"an object of the class {type(value).__name__}, which cannot be shown"


def shape_of(value: object) -> tuple[int, ...] | None:
    """Return the shape of an array or of a scalar of NumPy, or of a library like it; None for any other object."""
    try:
        shape = getattr(value, "shape", None)
        return tuple(shape) if isinstance(shape, tuple) else None
    except Exception:
        return None


def plain_scalar(value: Any) -> Any:
    """Return the plain number in an array without dimensions, or in a scalar of NumPy; any other value as it is.

    >>> plain_scalar(np.array(0.5)), plain_scalar("abc")
    (0.5, 'abc')
    """
    if shape_of(value) != ():
        return value
    try:
        number = value.item()
        return float(number) if isinstance(number, np.floating) else number  # a long double has no plain item
    except Exception:
        return value


def whole(value: object) -> int | None:
    """Return a whole number as an ``int``; None if the value is none. Booleans and floats are none."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except Exception:
        return None


def real(value: object) -> float | None:
    """Return a real number as a ``float``; None if the value is none. Booleans and strings are none.

    A whole number that is too large for a float becomes an infinity.
    """
    value = plain_scalar(value)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, np.floating, np.integer)):
        return None
    try:
        with np.errstate(all="ignore"):
            return float(value)
    except OverflowError:
        return math.inf if bool(value > 0) else -math.inf  # type: ignore[operator]
    except Exception:
        return None


def count(name: str, value: object, *, low: int = 1, what: str = "") -> int:
    """Check that a value is a whole number of at least ``low``.

    Arguments
    ---------
    name: the name of the argument, for the message.
    value: what the user passed; NumPy integers are accepted, booleans and floats are not.
    low: the smallest number that is allowed, 1 by default.
    what: text that the message adds after the allowed values.

    Returns
    -------
    The value as an ``int``.
    """
    number = whole(value)
    if number is None:
        raise ValueError(f"{name} must be a whole number of at least {low}{what}, not {shown(value)}")
    if number < low:
        raise ValueError(f"{name} must be at least {low}{what}, not {shown(number)}")
    if number > LARGEST_COUNT:
        raise ValueError(f"{name} must be at most 10**4000{what}, not {shown(number)}")
    return number


def positive(name: str, value: object, *, what: str = "") -> float:
    """Check that a value is a finite number above 0, and return it as a ``float``."""
    number = _number(name, value, "above 0", what)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number above 0{what}, not {number!r}")
    return number


def ordinary(name: str, value: Any, *, what: str = "") -> None:
    """Check that finite numbers are 0, or of a size whose fourth power is a floating-point number.

    >>> ordinary("total", 1e300)
    Traceback (most recent call last):
    ValueError: total must be 0 or of a size from 1e-70 to 1e+70, not 1e+300: measure it in another unit
    """
    numbers = np.atleast_1d(np.asarray(value, np.float64)).ravel()
    size = np.abs(numbers)
    wrong = np.isfinite(size) & (size > 0) & ~((size >= SMALLEST_ORDINARY) & (size <= LARGEST_ORDINARY))
    if wrong.any():
        raise ValueError(
            f"{name} must be 0 or of a size from {SMALLEST_ORDINARY:g} to {LARGEST_ORDINARY:g}{what}, not "
            f"{numbers[wrong][0]:g}: measure it in another unit"
        )


def not_negative(name: str, value: object, *, what: str = "") -> float:
    """Check that a value is a finite number of at least 0, and return it as a ``float``."""
    number = _number(name, value, "of at least 0", what)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0{what}, not {number!r}")
    return number


def finite(name: str, value: object, *, what: str = "") -> float:
    """Check that a value is a finite number, and return it as a ``float``."""
    number = _number(name, value, "that is finite", what)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number{what}, not {number!r}")
    return number


def share(name: str, value: object, *, what: str = "") -> float:
    """Check that a value is a number of at least 0 and below 1, and return it as a ``float``."""
    number = _number(name, value, "from 0 to below 1", what)
    if not 0 <= number < 1:
        raise ValueError(f"{name} must be from 0 to below 1{what}, not {number!r}")
    return number


def _number(name: str, value: object, allowed: str, what: str) -> float:
    """Convert a value to a ``float``; booleans and strings are refused although Python could convert them."""
    number = real(value)
    if number is None:
        raise ValueError(f"{name} must be a number {allowed}{what}, not {shown(value)}")
    return number


def function(name: str, value: object, form: str) -> None:
    """Check that a value is None, or callable with as many arguments as ``form`` shows, such as ``"monitor(x)"``."""
    if value is None:
        return
    if not callable(value):
        raise ValueError(f"{name} must be a function, called as {form}, or None, not {shown(value)}")
    arguments = form[form.index("(") + 1 : form.rindex(")")].split(", ")
    misfit = call_misfit(value, arguments)
    if misfit is not None:
        signature, why = misfit
        raise ValueError(f"{name} has the signature {signature}, but it is called as {form}: {why}")


def call_misfit(function: Callable[..., Any], arguments: Iterable[str]) -> tuple[str, str] | None:
    """Return the signature of a function that cannot be called with some positional arguments, and why it cannot.

    None means that it can be called, as far as is known.
    """
    try:
        signature = inspect.signature(function)
    except Exception:  # a builtin function whose signature is not known, or an object that cannot be asked for it
        return None
    try:
        signature.bind(*arguments)
    except TypeError as error:
        parameters = ", ".join(signature.parameters)  # without defaults, which may be objects that cannot be shown
        return f"{name_of(function)}({parameters})", str(error)
    return None


def has_function(value: object, name: str) -> bool:
    """Whether an object has a function of this name, as far as it can be asked."""
    try:
        return callable(getattr(value, name, None))
    except Exception:
        return False


def is_async(function: object) -> bool:
    """Whether a function, or an object that can be called, is known to be async (``async def``)."""
    try:
        inner = inspect.unwrap(function) if callable(function) else function
        return any(map(inspect.iscoroutinefunction, (function, inner, getattr(function, "__call__", None))))  # noqa: B004
    except Exception:  # an object that cannot be asked
        return False


def name_of(function: object) -> str:
    """Return the name of a function, or else of the class of an object."""
    try:
        name = getattr(function, "__name__", None)
    except Exception:
        name = None
    return name if isinstance(name, str) else type(function).__name__


def one_of(name: str, value: object, allowed: Iterable[str]) -> str:
    """Check that a value is one of the allowed strings, and return it; the message suggests the closest ones."""
    names = list(allowed)
    if isinstance(value, str):
        if value in names:
            return value
        near = difflib.get_close_matches(value[:LONGEST_SHOWN].lower(), names, n=3, cutoff=0.5)
    else:
        near = []
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}, not {shown(value)}{hint}")


def flag(name: str, value: object) -> bool:
    """Check that a value is True or False, and return it; what Python would only treat as a truth value is refused."""
    value = plain_scalar(value)
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def array(value: object) -> NDArray[Any] | None:
    """Convert a value to an array; None if that cannot be done: ragged lists, and objects that do not let it.

    Masked entries are unknown values, and become NaN. Whole numbers that need more than 64 bits become floats.
    """
    try:
        if isinstance(value, np.ma.MaskedArray):
            return np.ma.filled(value.astype(np.float64), np.nan)
        made = np.asarray(value)
        if made.dtype == object:
            entries = [real(entry) for entry in made.reshape(-1)]
            if entries and None not in entries:
                return np.array(entries, dtype=np.float64).reshape(made.shape)
    except Exception:
        return None
    return made
