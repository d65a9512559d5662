"""Quadratic models through fewer values than they have coefficients, and their minimisers in a box.

Reference: Powell, *Least Frobenius norm updating of quadratic models that satisfy interpolation conditions*,
Mathematical Programming 2004.
"""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.settings.active_subset_settings import QUADRATIC_MODEL as SET


def interpolate(moves: Array, values: Array, H: Array, ridge: float) -> tuple[float, Array, Array]:
    """Return value, gradient and Hessian of the quadratic through the values whose Hessian is nearest to ``H``.

    Arguments
    ---------
    moves: array of shape (points, p), relative to the centre, of size about 1.
    values: array of shape (points,).
    H: array of shape (p, p), the Hessian so far.
    ridge: float, how far values may be missed: 0 interpolates.
    """
    m, p = moves.shape
    rest = values - 0.5 * np.einsum("ij,jk,ik->i", moves, H, moves)
    system = np.zeros((m + p + 1, m + p + 1))
    system[:m, :m] = 0.5 * (moves @ moves.T) ** 2 + ridge * np.eye(m)
    system[:m, m] = system[m, :m] = 1.0
    system[:m, m + 1 :] = moves
    system[m + 1 :, :m] = moves.T
    solution = np.linalg.lstsq(system, np.concatenate([rest, np.zeros(p + 1)]), rcond=SET.rank)[0]
    return float(solution[m]), solution[m + 1 :], H + (moves.T * solution[:m]) @ moves


def minimise_in_box(g: Array, H: Array, low: Array, high: Array, starts: Array) -> tuple[Array, float]:
    """Minimise g'x + x'Hx/2 for low <= x <= high by coordinate descent, from several starts.

    Returns the best point and its value.
    """
    x = np.clip(starts, low, high)
    bent = np.diag(H)
    for _ in range(SET.sweeps):
        before = x.copy()
        for j in range(g.size):
            slope = g[j] + x @ H[:, j] - bent[j] * x[:, j]
            if bent[j] > 0:
                x[:, j] = np.clip(-slope / bent[j], low[j], high[j])
            else:
                ends = np.array([low[j], high[j]])
                x[:, j] = ends[np.argmin(slope[:, None] * ends + 0.5 * bent[j] * ends**2, axis=1)]
        if np.abs(x - before).max() < SET.settled:
            break
    values = x @ g + 0.5 * np.einsum("ij,jk,ik->i", x, H, x)
    best = int(np.argmin(values))
    return x[best], float(values[best])
