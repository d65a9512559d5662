"""Means, medians, ratios and shares with 95 % intervals that are sound for few runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = Sequence[float] | Array

RESAMPLES = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A number with a 95 % interval; NaN if there is no such number."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2g} [{self.low:.2g}, {self.high:.2g}]"


UNKNOWN = Estimate(np.nan, -np.inf, np.inf)


def mean(values: Numbers) -> Estimate:
    """The mean; of Student's interval and the bootstrap's percentiles the wider, on either side.

    Each alone is too narrow for few values from a skewed law. The bootstrap has a fixed seed: the same
    values give the same interval.

    >>> str(mean([1.0, 2.0, 3.0, 4.0]))
    '2.5 [0.45, 4.6]'
    """
    values = np.asarray(values, float)
    with np.errstate(invalid="ignore"):
        value = float(values.mean()) if values.size else np.nan
    if values.size < 2 or not np.isfinite(values).all():
        return Estimate(value, -np.inf, np.inf)
    half = _special().stdtrit(values.size - 1, 0.5 + LEVEL / 2) * values.std(ddof=1) / np.sqrt(values.size)
    draws = values[np.random.default_rng(0).integers(values.size, size=(RESAMPLES, values.size))].mean(axis=1)
    low, high = np.percentile(draws, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return Estimate(value, float(min(low, value - half)), float(max(high, value + half)))


def median(values: Numbers) -> Estimate:
    """The median, between two of the values: the interval holds for any law. Fewer than 6 values tell nothing.

    >>> str(median(range(1, 12)))
    '6 [2, 10]'
    """
    values = np.sort(np.asarray(values, float))
    if values.size == 0 or np.isnan(values).any():
        return UNKNOWN
    with np.errstate(invalid="ignore"):
        value = float(np.median(values))
    # the chance that at most so many of the values lie below the median, as for heads of a coin
    chances = _special().bdtr(np.arange(values.size), values.size, 0.5)
    beyond = int(np.searchsorted(chances, (1 - LEVEL) / 2, side="right"))
    if beyond == 0:
        return Estimate(value, -np.inf, np.inf)
    return Estimate(value, float(values[beyond - 1]), float(values[-beyond]))


def share(successes: int, of: int) -> Estimate:
    """A share with Wilson's interval, which is sound for few runs and for 0 or all successes.

    >>> str(share(9, 10))
    '0.9 [0.6, 0.98]'
    """
    if of < 1:
        return UNKNOWN
    z2 = _special().ndtri(0.5 + LEVEL / 2) ** 2 / of
    p = successes / of
    centre = (p + z2 / 2) / (1 + z2)
    half = np.sqrt(z2 * (p * (1 - p) + z2 / 4)) / (1 + z2)
    return Estimate(p, float(max(0.0, centre - half)), float(min(1.0, centre + half)))


def ratio(above: Numbers, below: Numbers) -> Estimate:
    """The median of above / below over pairs. Two infinities, or two zeros, are alike; mostly such pairs tell nothing.

    >>> str(ratio([2.0] * 8, [1.0] * 8))
    '2 [2, 2]'
    """
    one, other = np.asarray(above, float), np.asarray(below, float)
    alike = (np.isinf(one) & np.isinf(other)) | ((one == 0) & (other == 0))
    with np.errstate(all="ignore"):
        ratios = np.where(alike, 1.0, one / other)
    found = median(ratios)
    return Estimate(np.nan, found.low, found.high) if 2 * alike.sum() >= alike.size else found


def difference(one: Numbers, other: Numbers) -> Estimate:
    """The mean of one - other over pairs."""
    with np.errstate(invalid="ignore"):
        return mean(np.asarray(one, float) - np.asarray(other, float))


def _special() -> Any:
    """SciPy's special functions, imported when they are needed: they take longer than the rest of the module."""
    from scipy import special

    return special
