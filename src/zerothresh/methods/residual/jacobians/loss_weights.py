"""Outer losses as weighted least squares: F = mean loss(r_i), with r linearised and the loss kept as it is.

Where the loss rises away from 0, w r^2 with w = loss'(r) / (2 r) touches it from above if it is concave in r^2, as all
robust losses are: iterated reweighting. Elsewhere Newton's quadratic is taken. Outputs that are missing have no weight.
"""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.losses import Loss


def total_loss(loss: Loss | None, r: Array) -> float:
    """Return the sum of the losses of the outputs that are there, as if none were missing; infinite if all are."""
    seen = ~np.isnan(r)
    if not seen.any():
        return np.inf
    with np.errstate(all="ignore"):  # a loss may have a weight or a count per output, so that it sees all of them
        losses = r[seen] ** 2 if loss is None else loss.value(np.where(seen, r, 0.0))[seen]
    total = float(losses.sum()) * (r.size / losses.size)
    return total if np.isfinite(total) else np.inf


def slopes(loss: Loss | None, r: Array) -> Array:
    """Return the derivative of the loss of each output; 0 where it is missing."""
    seen = np.nan_to_num(r)
    return np.where(np.isnan(r), 0.0, 2 * seen if loss is None else loss.derivative(seen))


def working(loss: Loss | None, r: Array, sharpness: float = 1.0) -> tuple[Array, Array]:
    """Return roots of weights w and residuals u with loss(r + t) about w (u + t)^2 up to a constant.

    ``sharpness`` below 1 takes the weights of the loss of ``sharpness * r``: a robust loss is then nearer to squares.
    """
    missing, r = np.isnan(r), np.nan_to_num(r)
    if loss is None:
        return np.where(missing, 0.0, 1.0), r
    small = float(np.finfo(float).eps) * max(float(np.abs(r).max(initial=0.0)), np.finfo(float).tiny)
    r = np.where(np.abs(r) < small, small, r)
    near = sharpness * r
    slope = loss.derivative(near)
    rises = slope * near > 0
    bend = np.maximum(loss.second(near), 0.0)
    w = np.where(rises, slope / (2 * near), bend / 2)
    u = np.where(rises, r, np.where(bend > 0, slope / np.where(bend > 0, bend, 1.0), 0.0))
    return np.sqrt(np.where(missing | ~np.isfinite(w), 0.0, w)), u
