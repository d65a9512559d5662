"""A Gauss-Newton model of F: the curvature of each component along its own gradient, and along the steps so far."""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.component_secants import ComponentSecants
from zerothresh.methods.auto.models.quasi_newton import QuasiNewton
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.floating_point import TINY


def gauss_newton(
    coordinates: Indices,
    C: Indices,
    G: Array,
    moves: Array,
    changes: Array,
    noise: float,
    secants: ComponentSecants,
) -> QuasiNewton | None:
    """Return the model with Hessian mean_i kappa_i g_i g_i', from one more value of each component.

    f_i(theta + s) is about f_i + g_i.s + kappa_i (g_i.s)^2 / 2. This is exact if f_i is a quadratic function of one
    score. If a component has several, the changes of its gradient over the steps so far tell about the others.

    Arguments
    ---------
    coordinates: sorted indices of the coordinates of the model, shape (p,).
    C: indices of the coordinates on which the gradients are known, a part of them, shape (c,).
    G: array of shape (m, c), the gradients of the components.
    moves: array of shape (m, c), a move s along each gradient, which bounds may have bent.
    changes: array of shape (m,), the changes of the components over these moves.
    noise: float, the standard deviation of a value.
    secants: the changes of the components' gradients so far.

    Returns
    -------
    the model, or None if no component is curved.
    """
    linear = np.einsum("rc,rc->r", moves, G)
    bend = changes - linear
    aligned = np.abs(linear) > DESCENT.least_alignment * np.linalg.norm(moves, axis=1) * np.linalg.norm(G, axis=1)
    clear = bend > DESCENT.clear_bend * noise
    kappa = np.where(aligned & clear, 2 * bend / np.maximum(linear * linear, TINY), 0.0)
    kappa = np.where(np.isfinite(kappa), kappa, 0.0)
    lengths, places = np.linalg.norm(G, axis=1), np.searchsorted(secants.coordinates, C)
    directions = np.zeros((len(G), secants.coordinates.size))
    directions[:, places] = G / np.maximum(lengths, TINY)[:, None]
    curvatures = kappa * np.square(lengths)
    A = secants.believed(directions, curvatures).hessian(directions, curvatures)[np.ix_(places, places)]
    mean_curvature = float(np.trace(A)) / C.size
    if not mean_curvature > 0:
        return None
    B = np.eye(coordinates.size) * mean_curvature
    positions = np.searchsorted(coordinates, C)
    B[np.ix_(positions, positions)] = A + DESCENT.gauss_newton_ridge * mean_curvature * np.eye(C.size)
    return QuasiNewton(coordinates, B)
