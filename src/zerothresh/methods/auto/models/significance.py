"""A test whether a point that was found on some components is better than the start on all of them."""

from __future__ import annotations

import math

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.settings.single_index_settings import INDEX


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
    if change.size < INDEX.fewest_judging:
        return False
    return float(change.mean()) + INDEX.standard_errors * float(change.std(ddof=1)) / math.sqrt(change.size) < 0
