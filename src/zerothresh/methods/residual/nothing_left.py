"""When nothing is left to gain: the sum of losses is within what rounding or noise of the outputs changes it by.

An output that is small beside the parts it is made of, like a difference of a prediction and a measurement, is no more
exact than they are. The parts are seen at the present point, as the products of columns and coordinates: outputs that
were enormous at the start say nothing about those that are left at the end.
"""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.losses import Custom, Loss
from zerothresh.methods.residual.jacobians.loss_weights import slopes
from zerothresh.methods.residual.residual_settings import NOTHING


def within_rounding(loss: Loss | None, r: Array, J: Array, x: Array) -> float:
    """Return by how much rounding may change the sum of losses of the outputs r, with the columns J of coordinates x.

    It is -inf for a loss of the user, whose smallest value is not known.
    """
    if isinstance(loss, Custom):
        return -np.inf
    error = NOTHING.rounding * (np.abs(J) @ np.abs(x))
    bend = 2.0 if loss is None else np.nan_to_num(loss.second(np.nan_to_num(r)))
    with np.errstate(all="ignore"):
        change = float(np.sum(np.abs(slopes(loss, r)) * error + bend / 2 * error**2))
    return change if np.isfinite(change) else -np.inf


def within_noise(loss: Loss | None, n: int, sigma: float) -> float:
    """Return the sum of losses of n outputs that are only noise, at most."""
    if isinstance(loss, Custom):
        return -np.inf
    level = n * sigma**2 if loss is None else float(np.sum(loss.value(np.full(n, sigma))))
    return level * (1 + NOTHING.deviations * float(np.sqrt(2 / n)))
