"""A test whether a point that was found on some components is better than the start on all of them."""

from __future__ import annotations

import math

from zerothresh.basics.arrays import Array

_MIN_COMPONENTS = 5  # the standard error of fewer changes says too little
_STANDARD_ERRORS = 3  # a mean change must be this far below 0 to count


def significantly_lower(values: Array, start_values: Array, n: int) -> bool:
    """Whether values of some components are lower than at the start by more than chance.

    If all n components are there, any decrease of the mean counts.

    Arguments
    ---------
    values: array of shape (components,), values at the point in question.
    start_values: array of shape (components,), values of the same components at the start.
    n: int, the number of all components.
    """
    change = values - start_values
    if change.size == n:
        return float(change.mean()) < 0
    if change.size < _MIN_COMPONENTS:
        return False
    return float(change.mean()) + _STANDARD_ERRORS * float(change.std(ddof=1)) / math.sqrt(change.size) < 0
