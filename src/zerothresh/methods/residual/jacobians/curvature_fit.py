"""The curvature of the outputs, fitted to what the last runs have shown beside the linear model.

Second derivatives are taken as random symmetric tensors of unit size in the metric of the steps, third ones as smaller
and independent for each run, and J as wrong by its covariance P. The mean of the second derivatives given the runs is
then a sum of one square (c_k.s)^2 per run: a Gaussian process, or ridge regression, on all second derivatives of all
outputs. It interpolates the runs nearby, and uses those far away as far as third derivatives allow.
"""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.residual.residual_settings import MODEL, TINY


def curvature(T: Array, surprises: Array, P: Array, noise: float) -> tuple[Array, Array]:
    """Return terms (a, c) of a `CurvedModel`: outputs r + J s + sum_k a_k (c_k.s)^2.

    Arguments
    ---------
    T: float64 array (m, p), where the runs are, seen from the present point, in the metric; no row is 0.
    surprises: float64 array (m, n), by how much their outputs differ from the linear model at the present point.
    P: float64 array (p, p), the covariance of the errors of the rows of J, in units of curvature.
    noise: float, the variance of a surprise by noise, in the same units.
    """
    second = (T @ T.T / 2) ** 2  # covariance of the effects of second derivatives: (h^2 / 2)^2 for each run
    own, distance = np.diag(second), np.einsum("kj,kj->k", T, T)
    errors = own * (MODEL.third**2 * distance + MODEL.jitter) + noise + TINY
    covariance = second + T @ P @ T.T + np.diag(errors)
    scale = np.sqrt(np.diag(covariance))
    with np.errstate(all="ignore"):
        equal = covariance / np.outer(scale, scale) + MODEL.jitter * np.eye(scale.size)
        weights = np.linalg.solve(equal, surprises / scale[:, None]) / scale[:, None]
    return (weights, T / 2) if np.isfinite(weights).all() else (weights[:0], T[:0])
