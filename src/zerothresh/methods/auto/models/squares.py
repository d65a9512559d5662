"""Squares of lengths of any size: Python's own power raises an error where it overflows."""

from __future__ import annotations

_LARGEST_ROOT = 1e150  # its square, and that square times a number of ordinary size, is still a floating-point number


def square(x: float) -> float:
    """Return x^2, at most 1e300, so that the square of any length is finite.

    >>> square(-3.0), square(1e200) == square(1e150)
    (9.0, True)
    """
    return min(abs(x), _LARGEST_ROOT) ** 2
