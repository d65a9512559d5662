"""A Gauss-Newton model of F: the curvature of each component along its own gradient."""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.quasi_newton import QuasiNewton
from zerothresh.methods.auto.settings import DESCENT, TINY


def gauss_newton(coordinates: Indices, C: Indices, G: Array, linear: Array, changes: Array) -> QuasiNewton | None:
    """Return the model with Hessian mean_i kappa_i g_i g_i', from one more value of each component.

    f_i(theta + s) is about f_i + g_i.s + kappa_i (g_i.s)^2 / 2. This is exact if f_i is a quadratic function of one
    score, and good if a component has few scores, as the squared residual of a model has.

    Arguments
    ---------
    coordinates: sorted indices of the coordinates of the model, shape (p,).
    C: indices of the coordinates on which the gradients are known, a part of them, shape (c,).
    G: array of shape (m, c), the gradients of the components.
    linear: array of shape (m,), the changes g_i.s that the gradients predict for a move along each one.
    changes: array of shape (m,), the changes that were seen.

    Returns
    -------
    the model, or None if no component is curved.
    """
    kappa = 2 * (changes - linear) / np.maximum(linear * linear, TINY)
    kappa = np.where(np.isfinite(kappa) & (kappa > 0), kappa, 0.0)
    A = (G * kappa[:, None]).T @ G / len(G)
    mean_curvature = float(np.trace(A)) / C.size
    if not mean_curvature > 0:
        return None
    B = np.eye(coordinates.size) * mean_curvature
    positions = np.searchsorted(coordinates, C)
    B[np.ix_(positions, positions)] = A + DESCENT.gauss_newton_ridge * mean_curvature * np.eye(C.size)
    return QuasiNewton(coordinates, B)
