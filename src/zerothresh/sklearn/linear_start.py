"""A first set of features, by forward selection for least squares: it costs no fit of the user's estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from zerothresh.basics.arrays import Array, Indices

ROUNDING = 1e-9  # squared part of a column outside of the others below which it brings nothing new


def linear_start(X: Any, targets: Array, k: int, units: Indices) -> Indices:
    """Return the features of the first k units (features, or groups of them) of a forward selection.

    Arguments
    ---------
    X: array or sparse matrix (n, d).
    targets: array (n, t), standardised.
    k: int, how many units.
    units: int array (d,), the unit of each feature.
    """
    Z = np.array(X.toarray() if sparse.issparse(X) else X, np.float64)
    Z = np.where(np.isfinite(Z), Z, np.nan)
    with np.errstate(all="ignore"):
        middle = np.nan_to_num(np.nanmean(np.where(np.isnan(Z).all(axis=0), 0.0, Z), axis=0))
    Z = np.where(np.isnan(Z), middle, Z)
    size = np.abs(Z).max(axis=0)
    Z = Z / np.where(size > 0, size, 1.0)
    Z = Z - Z.mean(axis=0)
    norm = np.linalg.norm(Z, axis=0)
    useful = norm > ROUNDING * np.sqrt(len(Z))
    Z = Z / np.where(useful, norm, 1.0)
    R = targets - targets.mean(axis=0)
    left = np.where(useful, 1.0, 0.0)  # the squared part of each column outside of those that are chosen
    chosen = np.zeros(int(units.max()) + 1, bool)
    for _ in range(min(k, chosen.size)):
        gain = np.where(left > ROUNDING, np.sum((Z.T @ R) ** 2, axis=1) / np.maximum(left, ROUNDING), 0.0)
        total = np.bincount(units, weights=gain)
        total[chosen] = -1.0
        best = int(np.argmax(total))
        chosen[best] = True
        for j in np.flatnonzero((units == best) & (left > ROUNDING)).tolist():
            q = Z[:, j] / max(float(np.linalg.norm(Z[:, j])), ROUNDING)
            across = q @ Z
            Z = Z - np.outer(q, across)
            R = R - np.outer(q, q @ R)
            left = np.einsum("ij,ij->j", Z, Z) * useful
    return np.flatnonzero(chosen[units])
