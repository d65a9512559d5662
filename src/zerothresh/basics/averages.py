"""Means that do not depend on the order of the numbers."""

from __future__ import annotations

import math

from zerothresh.basics.arrays import Array


def mean(values: Array) -> float:
    """Return the mean, rounded once: the same bits for any order and any release of NumPy."""
    numbers: list[float] = values.tolist()
    if len(numbers) == 1:
        return numbers[0]
    try:
        return math.fsum(numbers) / len(numbers)
    except OverflowError:  # numbers near the largest one
        return math.fsum(number / len(numbers) for number in numbers)
