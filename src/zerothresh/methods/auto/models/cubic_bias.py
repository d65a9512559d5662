"""What cubic terms add to the coefficients of a quadratic regression, as far as they show in its residuals."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.settings.descent_settings import SURFACE
from zerothresh.methods.auto.settings.floating_point import TINY


class CubicBias(NamedTuple):
    """The part of the coefficients of a quadratic that is owed to cubic terms."""

    statistic: float  # chi squared with one degree of freedom per term, if F is quadratic
    bias: Array  # of the coefficients
    residuals: Array  # what neither the quadratic nor these terms explain


@lru_cache
def triples(p: int) -> list[tuple[int, int, int]]:
    """Return the coordinates of each product of three, of p coordinates."""
    return [(a, b, c) for a in range(p) for b in range(a, p) for c in range(b, p)]


def cubic_terms(moves: Array) -> Array:
    """Return the products of three coordinates of each move."""
    return np.asarray(moves[:, np.array(triples(moves.shape[1]))].prod(axis=2))


def shrunk_bias(X: Array, terms: Array, residuals: Array, A: Array, variances: Array) -> CubicBias | None:
    """Fit further terms to the residuals of a regression; the estimate is shrunk as by James and Stein.

    It is shrunk to nothing if it may well be noise.

    Arguments
    ---------
    X: array of shape (values, coefficients), the regressors.
    terms: array of shape (values, terms), further ones.
    residuals: array of shape (values,), what the regression leaves.
    A: array of shape (coefficients, coefficients), the matrix of its normal equations.
    variances: array of shape (values,), of the noise in each value.

    Returns
    -------
    CubicBias, or None if there are too few values, or values at too few places, to tell these terms.
    """
    count = terms.shape[1]
    if len(residuals) < X.shape[1] + 2 * count:
        return None
    as_quadratic = np.linalg.solve(A, X.T @ terms)
    rest = terms - X @ as_quadratic  # the part that no quadratic explains
    gram, noise = rest.T @ rest, (rest * variances[:, None]).T @ rest  # noise may grow with the distance
    if not max(np.linalg.cond(gram), np.linalg.cond(noise)) < SURFACE.worst_condition:
        return None
    projection = rest.T @ residuals
    statistic = float(projection @ np.linalg.solve(noise, projection))
    fitted = max(0.0, 1 - count / max(statistic, TINY)) * np.linalg.solve(gram, projection)
    return CubicBias(statistic, np.asarray(as_quadratic @ fitted), residuals - rest @ fitted)
