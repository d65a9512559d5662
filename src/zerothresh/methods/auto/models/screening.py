"""Which coordinates of the single-index model may be in the support: what they gain, and how uncertain that is.

Replacing coordinate a of the support by j changes the minimum of a quadratic model by

    x_a^2 / (2 M_aa) - r_ja^2 / (2 s_ja),

where M is the inverse of the Hessian on the support, and r_ja and s_ja are the slope and the Schur complement of j
without a (`zerothresh.constraint.splicing`). If only some of the components know coordinate j, its slope is uncertain,
and j is promising if the change could be negative.
"""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.splicing import minimiser
from zerothresh.methods.auto.models.index_rows import IndexRows
from zerothresh.methods.auto.settings.floating_point import EPS, TINY
from zerothresh.methods.auto.settings.single_index_settings import INDEX


def in_use(data: IndexRows, theta: Array, include: Indices) -> Array:
    """Return which coordinates of C are non-zero at theta or at the start, or included by the user."""
    C = data.C
    return np.asarray((theta[C] != 0) | (data.theta0[C] != 0) | np.isin(C, include))


def strongest_coordinates(
    data: IndexRows, slope: Array, curvature: Array, theta: Array, include: Indices, size: int
) -> Indices:
    """Return the positions in C of the ``size`` coordinates of largest |slope| / sqrt(curvature), at either point.

    Those in use stay in any case.

    Arguments
    ---------
    slope, curvature: arrays of shape (m,), l_i' and l_i'' at theta.
    """
    m = len(data)
    bend = np.maximum(curvature, 0.0) @ data.V**2 / m + max(data.lam, 0.0)
    bend = np.maximum(bend, EPS * float(bend.max()) + TINY)
    at_start = data.slope @ data.V / m + data.lam * (data.theta0 - data.centre)[data.C]
    here = slope @ data.V / m + data.lam * (theta - data.centre)[data.C]
    score = np.maximum(np.abs(at_start), np.abs(here)) / np.sqrt(bend)
    score[in_use(data, theta, include)] = np.inf
    size = max(size, int(np.count_nonzero(score == np.inf)))
    return np.sort(np.argsort(-score, kind="stable")[:size])


def exchange_changes(
    data: IndexRows,
    rows: Array,
    coordinates: Indices,
    slope: Array,
    slope_at_start: Array,
    curvature: Array,
    theta: Array,
    n: int,
    k: int,
    include: Indices,
) -> Array:
    """Return by how much F could fall at best (as a negative number) if a coordinate entered the support.

    Arguments
    ---------
    rows: array of shape (m_j, c), the rows of the first m_j components on the coordinates in question.
    coordinates: array of shape (c,), which these are.
    slope, curvature: arrays of shape (m,), l_i' and l_i'' at theta.
    slope_at_start: array of shape (m,), l_i' at the start.
    n: int, the number of all components.
    k: int, the largest number of non-zeros.
    include: indices that must stay in the support.
    """
    known, m = len(rows), len(data)
    bent = np.maximum(curvature, 0.0)
    S = np.flatnonzero(theta[data.C])
    W, x = data.V[:, S], theta[data.C[S]]
    A = (W * bent[:, None]).T @ W / m + data.lam * np.eye(S.size)
    M = minimiser_matrix(A)
    terms = slope[:known, None] * rows
    r = terms.mean(axis=0) + data.lam * (theta - data.centre)[coordinates]
    # On other components, slopes are larger than on those that were fitted, and smaller than at the start.
    variance = 0.5 * (terms.var(axis=0) + (slope_at_start[:known, None] * rows).var(axis=0))
    uncertain = INDEX.drop_deviations * np.sqrt(variance * (n - known) / (n * known))
    own = bent[:known] @ rows**2 / known + data.lam
    cross = (rows * bent[:known, None]).T @ W[:known] / known
    B = cross @ M
    s = np.maximum(own - np.einsum("js,js->j", B, cross), EPS * own + TINY)
    if S.size < k:
        return np.asarray(-np.square(np.abs(r) + uncertain) / (2 * s))
    free = ~np.isin(data.C[S], include)
    pivot = np.maximum(np.diag(M)[free], TINY)
    x = x[free]
    r_after = np.abs(r[:, None] - B[:, free] * (x / pivot)) + uncertain[:, None]
    s_after = s[:, None] + B[:, free] ** 2 / pivot
    change = x * x / (2 * pivot) - np.square(r_after) / (2 * s_after)
    return np.asarray(change.min(axis=1, initial=np.inf))


def minimiser_matrix(A: Array) -> Array:
    """Return the inverse of A, or what is nearest to it if A is singular."""
    if not A.size:
        return A
    A = A + (EPS * float(np.trace(A)) + TINY) * np.eye(len(A))
    return np.stack([minimiser(A, unit) for unit in np.eye(len(A))], axis=1)
