"""The noise in values at equidistant points, the unit to which values are rounded, and noise that grows.

Differences of order j of values at equidistant points cancel the smooth part, and what is left shows the standard
deviation of the noise, whether it is random or comes from rounding.

Reference: Moré and Wild, *Estimating computational noise*, SIAM J. Sci. Comput. 2011.
"""

from __future__ import annotations

import math

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.settings.diagnosis_settings import DIAGNOSIS
from zerothresh.methods.auto.settings.floating_point import EPS


def ecnoise(values: Array) -> float:
    """Estimate the standard deviation of the noise in values at equidistant points that are close together.

    Arguments
    ---------
    values: array of shape (points,), with at least 3 points.

    Returns
    -------
    float: the estimate (ECnoise of Moré and Wild).

    >>> rng = np.random.default_rng(0)
    >>> round(ecnoise(3.0 + 1e-4 * np.arange(9) + 0.01 * rng.standard_normal(9)), 3) > 0.004
    True
    """
    differences, estimates = values.astype(float), list[float]()
    for order in range(1, values.size - 1):
        differences = np.diff(differences)
        factor = math.factorial(order) ** 2 / math.factorial(2 * order)
        estimates.append(math.sqrt(factor * float(np.mean(differences**2))))
    for level in range(len(estimates) - 2):  # take the first three successive orders that agree
        three = estimates[level : level + 3]
        if max(three) <= DIAGNOSIS.orders_agree * min(three):
            return three[0]
    return estimates[-1]


def rounding_unit(values: Array) -> float:
    """Return the unit to which values are rounded (a decimal unit, or that of single precision); 0 if they are not.

    >>> rounding_unit(np.array([0.25, 3.5, 1.75]))
    0.01
    """
    largest = float(np.abs(values).max(initial=0.0))
    for digits in range(DIAGNOSIS.most_decimals + 1):
        scaled = values * 10.0**digits
        if largest * 10.0**digits > DIAGNOSIS.decimal_range:
            break
        if (np.abs(scaled - np.round(scaled)) <= DIAGNOSIS.rounding * EPS * np.abs(scaled)).all():
            return 10.0**-digits
    with np.errstate(over="ignore"):
        single = values.astype(np.float32).astype(np.float64)
    return largest * 2.0**-23 if np.array_equal(single, values) else 0.0


def quiet_length(noise: float, growth: float) -> float:
    """Return the step s at which the noise of a slope, (noise + growth s^2) / s, is the least.

    >>> quiet_length(3.0, 0.1) == (3.0 / 0.1) ** 0.5
    True
    """
    return math.sqrt(noise / growth) if growth > 0 else math.inf


def growth_of_noise(near: float, far: float, mean_square: float) -> float:
    """Return how fast noise grows with the square of the distance; 0 if the difference may be chance.

    Arguments
    ---------
    near, far: standard deviations of a value, from few values each, at a point and away from it.
    mean_square: the mean square of the distance.
    """
    return (far - near) / mean_square if far > DIAGNOSIS.noise_growth * near > 0 else 0.0
