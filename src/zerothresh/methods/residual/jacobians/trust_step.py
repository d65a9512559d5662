"""Steps of the linearised model within a ball: least squares, a quadratic with a second-order term, and bounds."""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.residual.residual_settings import TINY

RANK = 1e-12  # relative singular value below which a direction is not moved along
CLOSE = 1e-3  # relative accuracy of the length of a step that the radius limits
ITERATIONS = 80


def ball_step(J: Array, r: Array, radius: float, B: Array | None = None) -> Array:
    """Return the minimiser of |r + J s|^2 + s' B s over |s| <= radius; B is symmetric, and may be indefinite."""
    if B is None:
        U, w, Vt = np.linalg.svd(J, full_matrices=False)
        b, curvature, V = -w * (U.T @ r), w * w, Vt.T
    else:
        curvature, V = np.linalg.eigh(J.T @ J + B)
        b = -(V.T @ (J.T @ r))
    if not curvature.size:
        return np.zeros(J.shape[1])
    top = max(float(np.abs(curvature).max()), TINY)
    flat = RANK * RANK * top if B is None else RANK * top
    if curvature.min() > flat or (B is None and curvature.min() >= 0):
        keep = curvature > flat
        s = np.where(keep, b / np.where(keep, curvature, 1.0), 0.0)
        if np.linalg.norm(s) <= radius:
            return np.asarray(V @ s)
    if not np.isfinite(radius):
        radius = float(np.linalg.norm(b)) / top
    return np.asarray(V @ _on_the_sphere(curvature, b, radius, top))


def _on_the_sphere(curvature: Array, b: Array, radius: float, top: float) -> Array:
    """Return b / (curvature + t) with the t > -min(curvature) at which its length is the radius."""
    low = max(0.0, -float(curvature.min())) + np.finfo(float).eps * top
    high = low + float(np.linalg.norm(b)) / max(radius, TINY)
    if np.linalg.norm(b / (curvature + low)) <= radius:
        return b / (curvature + low)
    t = high
    for _ in range(ITERATIONS):
        t = float(np.sqrt(low * high))
        length = float(np.linalg.norm(b / (curvature + t)))
        if abs(length - radius) <= CLOSE * radius:
            break
        if length > radius:
            low = t
        else:
            high = t
    return np.asarray(b / (curvature + t))


def bounded_step(J: Array, r: Array, radius: float, B: Array | None, low: Array, high: Array) -> Array:
    """Return a step within bounds as well: coordinates that would leave are put on the bound, the others fitted again."""
    s = ball_step(J, r, radius, B)
    fixed, value = np.zeros(s.size, bool), np.zeros(s.size)
    while (out := ~fixed & ((s < low) | (s > high))).any():
        value[out] = np.clip(s[out], low[out], high[out])
        fixed |= out
        s = value.copy()
        if fixed.all():
            break
        left = radius if not np.isfinite(radius) else np.sqrt(max(radius**2 - value @ value, (CLOSE * radius) ** 2))
        pull = r + J[:, fixed] @ value[fixed]
        s[~fixed] = ball_step(J[:, ~fixed], pull, left, None if B is None else B[np.ix_(~fixed, ~fixed)])
    return np.clip(s, low, high)
