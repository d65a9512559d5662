"""Squares of lengths of any size: Python's own power raises an error where it overflows."""

from __future__ import annotations

from zerothresh.methods.auto.settings.floating_point import LARGEST_ROOT


def square(x: float) -> float:
    """Return x^2, at most 1e300, so that the square of any length is finite.

    >>> square(-3.0), square(1e200) == square(1e150)
    (9.0, True)
    """
    return min(abs(x), LARGEST_ROOT) ** 2
