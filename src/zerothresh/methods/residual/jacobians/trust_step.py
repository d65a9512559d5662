"""Steps within a ball and within bounds: of linear least squares, and of a quadratic that may be indefinite."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.arrays import Array
from zerothresh.methods.residual.residual_settings import MODEL, TINY

Mask = NDArray[np.bool_]


def least_squares_step(J: Array, r: Array, radius: float) -> Array:
    """Return the minimiser of |r + J s| over |s| <= radius."""
    if not J.shape[1]:
        return np.empty(0)
    U, w, Vt = np.linalg.svd(J, full_matrices=False)
    keep = w > MODEL.rank * max(float(w[0]), TINY)
    s = np.where(keep, -(U.T @ r) / np.where(keep, w, 1.0), 0.0)
    if np.linalg.norm(s) > radius:
        s = _on_the_sphere(w * w, -w * (U.T @ r), radius)
    return np.asarray(Vt.T @ s)


def quadratic_step(H: Array, g: Array, radius: float) -> Array:
    """Return the minimiser of s'Hs + 2 g's over |s| <= radius, for any symmetric H."""
    curvature, V = np.linalg.eigh(H)
    b, top = -(V.T @ g), max(float(np.abs(curvature).max(initial=0.0)), TINY)
    if curvature.size and curvature[0] > MODEL.rank * top:
        s = b / curvature
        if np.linalg.norm(s) <= radius:
            return np.asarray(V @ s)
    if not np.isfinite(radius):
        radius = float(np.linalg.norm(b)) / top
    return np.asarray(V @ _on_the_sphere(curvature, b, radius))


def _on_the_sphere(curvature: Array, b: Array, radius: float) -> Array:
    """Return b / (curvature + t) with the t > -min(curvature) at which its length is the radius."""
    top = max(float(np.abs(curvature).max(initial=0.0)), TINY)
    low = max(0.0, -float(curvature.min(initial=0.0))) + float(np.finfo(float).eps) * top
    high = low + float(np.linalg.norm(b)) / max(radius, TINY)
    t = low
    if np.linalg.norm(b / (curvature + low)) > radius:
        for _ in range(MODEL.dampings):
            t = float(np.sqrt(low * high))
            length = float(np.linalg.norm(b / (curvature + t)))
            if abs(length - radius) <= MODEL.close * radius:
                break
            low, high = (t, high) if length > radius else (low, t)
    return np.asarray(b / (curvature + t))


def bounded_least_squares_step(J: Array, r: Array, radius: float, low: Array, high: Array) -> Array:
    """Return a step within bounds as well: coordinates that would leave stay on the bound, the others are refitted."""

    def step(free: Mask, value: Array, radius: float) -> Array:
        return least_squares_step(J[:, free], r + J[:, ~free] @ value[~free], radius)

    return _bounded(step, J.shape[1], radius, low, high)


def bounded_quadratic_step(H: Array, g: Array, radius: float, low: Array, high: Array) -> Array:
    """Return a step of the quadratic within bounds as well."""

    def step(free: Mask, value: Array, radius: float) -> Array:
        return quadratic_step(H[np.ix_(free, free)], g[free] + H[np.ix_(free, ~free)] @ value[~free], radius)

    return _bounded(step, g.size, radius, low, high)


def _bounded(step: Callable[[Mask, Array, float], Array], size: int, radius: float, low: Array, high: Array) -> Array:
    """Fix coordinates on the bounds that a step would cross, until none is left that does."""
    free, value = np.ones(size, bool), np.zeros(size)
    left = radius
    while free.any():
        s = value.copy()
        s[free] = step(free, value, left)
        out = free & ((s < low) | (s > high))
        if not out.any():
            return s
        value[out] = np.clip(s[out], low[out], high[out])
        free &= ~out
        if np.isfinite(radius):
            left = float(np.sqrt(max(radius**2 - float(value @ value), (MODEL.close * radius) ** 2)))
    return value
