"""Which coordinates of the single-index model may be in the support: estimated gains, and how uncertain they are."""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.index_rows import IndexRows
from zerothresh.methods.auto.settings import INDEX, TINY


def _must_stay(data: IndexRows, theta: Array, include: Indices) -> Array:
    """Return which coordinates of C are in use: non-zero at theta or at the start, or included by the user."""
    C = data.C
    return np.asarray((theta[C] != 0) | (data.theta0[C] != 0) | np.isin(C, include))


def kept_coordinates(data: IndexRows, theta: Array, include: Indices, size: int) -> Indices:
    """Return the positions in C of the ``size`` coordinates of largest |slope| / sqrt(curvature) at the start.

    Those in use stay in any case.
    """
    m = len(data)
    bend = np.maximum(data.kappa, 0.0) @ data.V**2 / m + max(data.lam, 0.0)
    bend = np.maximum(bend, np.finfo(float).eps * float(bend.max()) + TINY)
    g = data.slope @ data.V / m + data.lam * (data.theta0 - data.centre)[data.C]
    z = data.scores(theta)
    here = (data.slope + data.kappa * z) @ data.V / m + data.lam * (theta - data.centre)[data.C]
    score = np.maximum(np.abs(g), np.abs(here)) / np.sqrt(bend)
    score[_must_stay(data, theta, include)] = np.inf
    size = max(size, np.count_nonzero(score == np.inf))
    return np.sort(np.argsort(-score, kind="stable")[:size])


def promising_coordinates(
    data: IndexRows, slope: Array, curvature: Array, theta: Array, n: int, include: Indices
) -> Indices:
    """Return the positions in C of the coordinates that may gain more than the weakest of the support loses.

    The gain from a part of the components is uncertain: its standard deviation comes from their spread.

    Arguments
    ---------
    slope, curvature: arrays of shape (m,), l_i' and l_i'' at theta.
    n: int, the number of all components.
    """
    m = len(data)
    support = theta[data.C] != 0
    terms = slope[:, None] * data.V
    g = terms.mean(axis=0) + data.lam * (theta - data.centre)[data.C]
    fitted = max(m - np.count_nonzero(support), 1) / m  # residuals of a fit are smaller than they will be on others
    deviation = terms.std(axis=0) / fitted * np.sqrt((n - m) / (n * m))
    bend = np.maximum(np.maximum(curvature, 0.0) @ data.V**2 / m + data.lam, TINY)
    most = np.square(np.abs(g) + INDEX.drop_deviations * deviation) / (2 * bend)
    loss = 0.5 * np.square(theta[data.C]) * bend
    least = float(loss[support].min()) if support.any() else 0.0
    return np.flatnonzero(_must_stay(data, theta, include) | (most >= least))
