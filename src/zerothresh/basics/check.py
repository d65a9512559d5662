"""Checks of what a user passes: each says what was given, what is allowed and what to do."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable

import numpy as np


def count(name: str, value: object, *, low: int = 1, what: str = "") -> int:
    """A whole number of at least ``low``."""
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
    """A finite number above 0."""
    try:
        if isinstance(value, (bool, np.bool_, str)):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number above 0{what}, not {value!r}") from None
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number above 0{what}, not {number!r}")
    return number


def function(name: str, value: object, form: str) -> None:
    """A function, or None."""
    if value is not None and not callable(value):
        raise ValueError(f"{name} must be a function, called as {form}, or None, not {value!r}")


def one_of(name: str, value: object, allowed: Iterable[str]) -> str:
    """One of a few words; the nearest ones are named if it is none of them."""
    names = list(allowed)
    if isinstance(value, str) and value in names:
        return value
    near = difflib.get_close_matches(str(value).lower(), names, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}, not {value!r}{hint}")


def share(name: str, value: object, *, what: str = "") -> float:
    """A number from 0 to below 1."""
    try:
        if isinstance(value, (bool, np.bool_, str)):
            raise TypeError
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number from 0 to below 1{what}, not {value!r}") from None
    if not 0 <= number < 1:
        raise ValueError(f"{name} must be from 0 to below 1{what}, not {number!r}")
    return number


def flag(name: str, value: object) -> None:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, not {value!r}")
