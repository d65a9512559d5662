"""Checks of the arguments that a user passes.

Every check raises ``ValueError`` with a message that says what was given and what is allowed. The argument
``name`` is the name of the user's argument, and ``what`` is text that the message adds after the allowed
values, such as ``" (the number of components)"``.
"""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable

import numpy as np


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
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"{name} must be a whole number of at least {low}{what}, not {value!r}") from None
    if number < low:
        raise ValueError(f"{name} must be at least {low}{what}, not {number}")
    return number


def positive(name: str, value: object, *, what: str = "") -> float:
    """Check that a value is a finite number above 0, and return it as a ``float``."""
    number = _number(name, value, "above 0", what)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number above 0{what}, not {number!r}")
    return number


def not_negative(name: str, value: object, *, what: str = "") -> float:
    """Check that a value is a finite number of at least 0, and return it as a ``float``."""
    number = _number(name, value, "of at least 0", what)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0{what}, not {number!r}")
    return number


def share(name: str, value: object, *, what: str = "") -> float:
    """Check that a value is a number of at least 0 and below 1, and return it as a ``float``."""
    number = _number(name, value, "from 0 to below 1", what)
    if not 0 <= number < 1:
        raise ValueError(f"{name} must be from 0 to below 1{what}, not {number!r}")
    return number


def _number(name: str, value: object, allowed: str, what: str) -> float:
    """Convert a value to a ``float``; booleans and strings are refused although Python could convert them."""
    try:
        if isinstance(value, (bool, np.bool_, str)):
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number {allowed}{what}, not {value!r}") from None


def function(name: str, value: object, form: str) -> None:
    """Check that a value is callable or None; ``form`` shows in the message how it will be called."""
    if value is not None and not callable(value):
        raise ValueError(f"{name} must be a function, called as {form}, or None, not {value!r}")


def one_of(name: str, value: object, allowed: Iterable[str]) -> str:
    """Check that a value is one of the allowed strings, and return it; the message suggests the closest ones."""
    names = list(allowed)
    if isinstance(value, str) and value in names:
        return value
    near = difflib.get_close_matches(str(value).lower(), names, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}, not {value!r}{hint}")


def flag(name: str, value: object) -> None:
    """Check that a value is True or False; other values that Python would treat as a truth value are refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, not {value!r}")
