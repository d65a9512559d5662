"""Means, medians and shares with 95 % intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_RESAMPLES = 2000
_Z = 1.959963984540054  # of 95 %


@dataclass(frozen=True)
class Estimate:
    """A number with a 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2g} [{self.low:.2g}, {self.high:.2g}]"


def mean(values: Sequence[float] | Array) -> Estimate:
    """The mean, with a bootstrap interval; infinite values make it infinite.

    >>> round(mean([1.0, 2.0, 3.0, 4.0]).value, 1)
    2.5
    """
    return _bootstrap(np.asarray(values, float), np.mean)


def median(values: Sequence[float] | Array) -> Estimate:
    """The median, with a bootstrap interval."""
    return _bootstrap(np.asarray(values, float), np.median)


def share(successes: int, of: int) -> Estimate:
    """A share with Wilson's interval, which is sound for few runs and for 0 or all successes.

    >>> str(share(9, 10))
    '0.9 [0.6, 0.98]'
    """
    if of < 1:
        return Estimate(np.nan, np.nan, np.nan)
    p, z2 = successes / of, _Z * _Z / of
    centre = (p + z2 / 2) / (1 + z2)
    half = _Z * np.sqrt(p * (1 - p) / of + z2 / (4 * of)) / (1 + z2)
    return Estimate(p, float(max(0.0, centre - half)), float(min(1.0, centre + half)))


def ratio_of_medians(above: Sequence[float] | Array, below: Sequence[float] | Array) -> Estimate:
    """median(above) / median(below) of paired values, with a bootstrap interval over the pairs.

    >>> str(ratio_of_medians([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]))
    '2 [2, 2]'
    """
    pairs = np.array([above, below], float)
    return _bootstrap(pairs, _ratio)


def difference_of_means(one: Sequence[float] | Array, other: Sequence[float] | Array) -> Estimate:
    """The mean of one - other of paired values, with a bootstrap interval over the pairs."""
    with np.errstate(invalid="ignore"):
        return mean(np.asarray(one, float) - np.asarray(other, float))


def _ratio(pairs: Array, axis: int = -1) -> Any:
    middle = np.median(pairs, axis=axis)
    ratio = middle[0] / middle[1]
    return np.where(np.isnan(ratio), 1.0, ratio)  # both infinite, or both 0: alike


def _bootstrap(values: Array, statistic: Callable[..., Any]) -> Estimate:
    """Percentiles over resamples of the last axis, drawn with a fixed seed: the same values, the same interval."""
    size = values.shape[-1]
    if size == 0:
        return Estimate(np.nan, np.nan, np.nan)
    with np.errstate(all="ignore"):
        value = float(statistic(values, axis=-1))
        if np.isnan(values).any():
            return Estimate(value, np.nan, np.nan)
        rng = np.random.default_rng(0)
        draws = values[..., rng.integers(size, size=(_RESAMPLES, size))]
        many = np.asarray(statistic(draws, axis=-1), float)
        many = np.where(np.isnan(many), np.inf, many)
        low, high = np.percentile(many, [2.5, 97.5], method="nearest")  # infinities have no weighted mean
    return Estimate(value, float(low), float(high))
