"""Means, medians, ratios and shares with 95 % intervals that are valid for few runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = Sequence[float] | Array

RESAMPLES = 2000  # of the bootstrap
LEVEL = 0.95  # the coverage of all intervals
_FEW = 6  # the least number of values that bound a median with this coverage


@dataclass(frozen=True)
class Estimate:
    """A number with a 95 % interval from ``low`` to ``high``; the number is NaN if it is not known."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2g} [{self.low:.2g}, {self.high:.2g}]"


UNKNOWN = Estimate(np.nan, -np.inf, np.inf)


def mean(values: Numbers) -> Estimate:
    """Return the mean with the wider, on each side, of Student's interval and the bootstrap's percentiles.

    Each alone is too narrow for few values from a skewed distribution. The bootstrap has a fixed seed, so that the
    same values give the same interval.

    >>> str(mean([1.0, 2.0, 3.0, 4.0]))
    '2.5 [0.45, 4.6]'
    """
    values = np.asarray(values, float)
    with np.errstate(invalid="ignore", over="ignore"):
        value = float(values.mean()) if values.size else np.nan
        square = float(values.var(ddof=1)) if values.size > 1 else np.nan
    if not np.isfinite([value, square]).all():  # too few values, infinite ones, or some near the largest number
        return Estimate(value, -np.inf, np.inf)
    half = _special().stdtrit(values.size - 1, 0.5 + LEVEL / 2) * values.std(ddof=1) / np.sqrt(values.size)
    draws = values[np.random.default_rng(0).integers(values.size, size=(RESAMPLES, values.size))].mean(axis=1)
    low, high = np.percentile(draws, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return Estimate(value, float(min(low, value - half)), float(max(high, value + half)))


def median(values: Numbers) -> Estimate:
    """Return the median with an interval between two of the values, which is valid for any distribution.

    The interval of fewer than 6 values is infinite.

    >>> str(median(range(1, 12)))
    '6 [2, 10]'
    """
    values = np.sort(np.asarray(values, float))
    if values.size == 0 or np.isnan(values).any():
        return UNKNOWN
    with np.errstate(invalid="ignore"):
        value = float(np.median(values))
    # the number of values below the median is binomial: the probability that it is at most 0, 1, 2, ...
    chances = _special().bdtr(np.arange(values.size), values.size, 0.5)
    beyond = int(np.searchsorted(chances, (1 - LEVEL) / 2, side="right"))
    if beyond == 0:
        return Estimate(value, -np.inf, np.inf)
    return Estimate(value, float(values[beyond - 1]), float(values[-beyond]))


def share(successes: int, of: int) -> Estimate:
    """Return a share with Wilson's interval, which is valid for few runs and for no or only successes.

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
    """Return the median of above / below over pairs.

    The ratio of two infinities, or of two zeros, counts as 1. If at least half of the pairs are of this kind, the
    median says nothing and is NaN.

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
    """Return the mean of one - other over pairs.

    Fewer than 6 differences that are all the same, as differences of shares may be, do not show how much they vary: the
    interval is then infinite, like that of a median of so few values.
    """
    with np.errstate(invalid="ignore"):
        differences = np.asarray(one, float) - np.asarray(other, float)
    found = mean(differences)
    if differences.size < _FEW and np.unique(differences).size == 1:
        return Estimate(found.value, -np.inf, np.inf)
    return found


def _special() -> Any:
    """Import SciPy's special functions only when they are needed, because that takes longer than all else here."""
    from scipy import special

    return special
