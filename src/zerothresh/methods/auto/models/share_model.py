r"""The minimum of a quadratic model on one support, within limits and with a sum: a small quadratic program.

Reference: Nocedal and Wright, *Numerical Optimization*, 2006, section 16.5 (the primal active-set method).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.settings.constraint_settings import FEASIBLE_MODEL
from zerothresh.methods.auto.settings.floating_point import TINY


def minimise_shares(H: Array, g: Array, x: Array, low: Array, high: Array, totals: tuple[float, float]) -> Array:
    """Minimise g'(y - x) + 1/2 (y - x)'H(y - x) over all y within limits whose sum is within the totals.

    Arguments
    ---------
    H, g: the model around x, (m, m) and (m,); where it is not convex, curvature is added until it is.
    x: float64 array (m,), a feasible point.
    low, high: float64 arrays (m,).
    totals: the least and the largest sum; where they differ, the sum is one more variable without curvature.
    """
    m = x.size
    H = convex(H)
    least, most = totals
    summed = np.isfinite(least) or np.isfinite(most)
    z = np.concatenate([x, [x.sum()]]) if summed else x.copy()
    lows = np.concatenate([low, [least]]) if summed else low
    highs = np.concatenate([high, [most]]) if summed else high
    z = np.clip(z, lows, highs)
    size = z.size
    Q, q = np.zeros((size, size)), np.zeros(size)
    Q[:m, :m], q[:m] = H, g - H @ x
    row = np.ones(size)
    if summed:
        row[m] = -1.0
    fixed = (lows == highs).astype(np.int8)  # -1: at its lower limit, 1: at its upper one, 0: free
    fixed[:] = np.where((z <= lows) & (Q @ z + q > 0), -1, np.where((z >= highs) & (Q @ z + q < 0), 1, fixed))
    scale = max(float(np.abs(q).max(initial=0.0)), float(np.abs(H).max(initial=0.0)), TINY)
    for _ in range(FEASIBLE_MODEL.rounds_per_coordinate * size + FEASIBLE_MODEL.rounds_per_coordinate):
        free = np.flatnonzero(fixed == 0)
        slope = Q @ z + q
        step, multiplier = np.zeros(size), 0.0
        if free.size:
            c = free.size
            K = np.zeros((c + 1, c + 1))
            K[:c, :c] = Q[np.ix_(free, free)]
            K[:c, c] = K[c, :c] = row[free]
            right = np.concatenate([-slope[free], [0.0]])
            if not summed:
                K, right = K[:c, :c], right[:c]
            try:
                solved = np.linalg.solve(K, right)
            except np.linalg.LinAlgError:
                solved = np.linalg.lstsq(K, right, rcond=None)[0]
            if not np.isfinite(solved).all():
                break
            step[free] = solved[:c]
            multiplier = float(solved[c]) if summed else 0.0
        elif summed:  # all at limits: the multiplier that leaves the fewest of them dissatisfied
            multiplier = _best_multiplier(slope, row, fixed)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step > 0, (highs - z) / step, np.where(step < 0, (lows - z) / step, np.inf))
        longest = float(room.min(initial=np.inf))
        if longest < 1.0:
            j = int(np.argmin(room))
            z = np.clip(z + max(longest, 0.0) * step, lows, highs)
            z[j] = highs[j] if step[j] > 0 else lows[j]
            fixed[j] = 1 if step[j] > 0 else -1
            continue
        z = np.clip(z + step, lows, highs)
        pull = (Q @ z + q + multiplier * row) * fixed  # above 0: the limit holds it back
        pull[lows == highs] = 0.0
        j = int(np.argmax(pull))
        if not pull[j] > FEASIBLE_MODEL.multiplier_tolerance * scale:
            break
        fixed[j] = 0
    return np.asarray(np.clip(z[:m], low, high))


def _best_multiplier(slope: Array, row: Array, fixed: np.ndarray) -> float:
    """Return the multiplier of the sum at a vertex: in the middle between what the two sides ask for."""
    wanted = -slope * row  # of each: above it, a variable at its lower limit (of a positive row) stays there
    stays_above = wanted[fixed * row < 0]
    stays_below = wanted[fixed * row > 0]
    low = float(stays_above.max()) if stays_above.size else None
    high = float(stays_below.min()) if stays_below.size else None
    if low is None:
        return 0.0 if high is None else high
    return low if high is None else 0.5 * (low + high)


def minimise_projected(H: Array, g: Array, x: Array, project: Callable[[Array], Array]) -> Array:
    """Minimise the same model over a convex set that is known by its projection: accelerated projected gradients.

    Reference: Beck and Teboulle, *A fast iterative shrinkage-thresholding algorithm*, SIAM J. Imaging Sciences 2009.
    """
    H = convex(H)
    largest = max(float(np.linalg.norm(H, 2)), float(np.linalg.norm(g)) * FEASIBLE_MODEL.flattest, TINY)
    y, before, t = x, x, 1.0
    for _ in range(FEASIBLE_MODEL.projected_steps):
        after = project(y - (g + H @ (y - x)) / largest)
        if float(np.abs(after - before).max(initial=0.0)) <= FEASIBLE_MODEL.settled * float(
            np.abs(after).max(initial=0.0)
        ):
            return after
        if float((y - after) @ (after - before)) > 0:  # it overshoots: begin the acceleration anew
            t = 1.0
        grown = 0.5 + np.sqrt(0.5**2 + t * t)
        y = after + ((t - 1.0) / grown) * (after - before)
        before, t = after, grown
    return before


def convex(H: Array) -> Array:
    """Return H with its negative curvature replaced by a positive one of the same size, and a little more."""
    if not H.size:
        return H
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    largest = float(np.abs(values).max())
    least = FEASIBLE_MODEL.least_curvature * largest
    if values[0] > least:
        return 0.5 * (H + H.T)
    return np.asarray((vectors * np.maximum(np.abs(values), max(least, TINY))) @ vectors.T)
