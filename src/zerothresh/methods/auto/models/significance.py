"""What stands out: a point that is better on some components, and slopes among many that are noise."""

from __future__ import annotations

import math

import numpy as np

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


def steepest(g: Array, k: int) -> float:
    """Return the root mean square of the k largest slopes, with which a step is made, whatever the others are.

    >>> steepest(np.array([3.0, 0.1, -4.0, 0.0]), 2)
    3.5355339059327378
    """
    return math.sqrt(float(np.sort(np.square(g))[-min(k, g.size) :].mean()))
