"""The noise that a sample of components has because its mean row is not 0, and when it may be left out.

In the unit in which l_i'' = 1, a component has the row w_i = v_i sqrt(kappa_i) and the residual c_i = l_i' /
sqrt(kappa_i). The gradient is the mean of c_i w_i: the mean residual times the mean row, plus a covariance. Designs are
often centred: the mean row of all components vanishes, and that of a sample does not. If the residuals have a mean,
its product with the mean row of the sample is noise, and often most of it: an intercept that no coordinate explains.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import Constraint
from zerothresh.methods.auto.models.index_minimiser import sparse_minimiser
from zerothresh.methods.auto.models.index_rows import IndexRows
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.single_index_settings import INDEX


class QuadraticMinimiser(NamedTuple):
    """The minimiser of a quadratic model, and the signs that make residuals positive if the rows were centred."""

    theta: Array
    sign: Array | None = None


def quadratic_minimiser(
    data: IndexRows, constraint: Constraint, natural: float, k: int, theta: Array, n: int, *, confirmed: bool
) -> QuadraticMinimiser:
    """Return the minimiser of F if all l_i are quadratic: that of a sample, or a better estimate if rows are centred.

    Arguments
    ---------
    data: the rows of all components, or of a sample.
    constraint: the feasible set.
    natural: float, the natural length along a row.
    k: int, the largest number of non-zeros.
    theta: array of shape (d,), a point from whose support the search begins.
    n: int, the number of all components.
    confirmed: bool, whether the components are known to be quadratic.
    """
    start = data.theta0

    def minimise(slope: Array) -> Array:
        g, A = data.derivatives(slope, data.kappa, start, natural, quadratic=True)
        return sparse_minimiser(data, constraint, A, A @ start[data.C] - g, k, theta)

    if confirmed and INDEX.least_centred <= len(data) < n and (data.kappa > 0).all():
        sign = np.ones(len(data))
        for _ in range(2):  # the signs of components stationary at the start show at the first minimiser
            trial = minimise(centred_slopes(data.slope, data.kappa, sign))
            residuals = (data.slope + data.kappa * data.scores(trial)) / np.sqrt(data.kappa)
            sign = np.where(residuals < 0, -1.0, 1.0)
        before = np.abs(data.slope) / np.sqrt(data.kappa)
        explained = explains(before, np.abs(residuals), k, data.C.size)
        if explained and have_one_sign(residuals) and rows_are_centred(data, sign, n):
            return QuadraticMinimiser(trial, sign)
    return QuadraticMinimiser(minimise(data.slope))


def centred_slopes(slope: Array, kappa: Array, sign: Array) -> Array:
    """Return the slopes l_i' that are left if the mean row of all components is 0.

    Arguments
    ---------
    slope, kappa: arrays of shape (m,), l_i' and l_i''.
    sign: array of shape (m,), 1 or -1: with these signs of their rows, residuals are positive.

    >>> centred_slopes(np.array([3.0, 4.0, -5.0]), np.ones(3), np.array([1, 1, -1]))
    array([-1.,  0., -1.])
    """
    root = np.sqrt(kappa) * sign
    return np.asarray(slope - float((slope / root).mean()) * root)


def explains(before: Array, after: Array, k: int, d: int) -> bool:
    """Whether the best k of d coordinates explain more of the variance of residuals than they do by chance.

    Each of them explains as much as about 1 + log(d / k) random ones do (Foster and George, *The risk inflation
    criterion*, Ann. Statist. 1994). If nothing explains why residuals differ, their mean must not be left out.
    """
    chance = k * (1 + math.log(d / k)) / before.size
    return float(after.var()) < (1 - INDEX.explained_by_chance * chance) * float(before.var())


def have_one_sign(residuals: Array) -> bool:
    """Whether the mean of residuals, all made positive, is too large for residuals of both signs around 0."""
    size = np.abs(residuals)
    return float(size.mean()) ** 2 >= INDEX.one_sign * float(size.var(ddof=1))


def rows_are_centred(data: IndexRows, sign: Array, n: int) -> bool:
    """Whether the mean row of a sample of n components is no larger than chance makes it if that of all is 0.

    Arguments
    ---------
    data: the rows of the sample.
    sign: as for `centred_slopes`.
    n: int, the number of all components.
    """
    m, d = data.V.shape
    rows = data.V * (np.sqrt(data.kappa) * sign)[:, None]
    rows = rows / np.maximum(rows.std(axis=0, ddof=1), TINY)
    mean = rows.mean(axis=0)
    rows = rows - mean
    excess = float(np.square(mean).sum()) / (d * (1 / m - 1 / n))
    alike = float(np.square(rows @ rows.T / m).sum()) / d**2  # the mean square of all correlations
    return excess <= 1 + INDEX.centred_deviations * math.sqrt(2 * max(alike - 1 / m, 1 / d))
