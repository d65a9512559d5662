"""Small feasible displacements on a support: what a difference moves along, and how long it may be.

A displacement D is such that theta + D is feasible. The set of a support is convex, so theta + (D_a + D_b) / 2 is
feasible too, and all second differences are taken at such points.
"""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.feasible_set import FeasibleSet
from zerothresh.constraint.shares import ShareSet
from zerothresh.methods.auto.settings.constraint_settings import FEASIBLE_DESCENT


def typical_size(feasible: FeasibleSet, theta: Array) -> float:
    """Return the typical size of a coordinate: of those of the point, or else of the box, or else 1."""
    sizes = np.abs(theta[theta != 0])
    if sizes.size:
        return float(np.median(sizes))
    width = feasible.high - feasible.low
    width = width[np.isfinite(width) & (width > 0)]
    return 0.5 * float(np.median(width)) if width.size else 1.0


def support_of(feasible: FeasibleSet, theta: Array) -> Indices:
    """Return the chosen coordinates of a point: those that are not 0, and those that always have a place."""
    return feasible.places.members(feasible.places.taken(theta))


def displacements(feasible: FeasibleSet, theta: Array, support: Indices, h: float) -> Array:
    """Return independent feasible displacements on a support, at most h long per coordinate, (rows, d)."""
    if isinstance(feasible, ShareSet):
        return _along_coordinates(feasible, theta, support, h)
    rows = []
    for j in support.tolist():
        sides = []
        for sign in (1.0, -1.0):
            moved = theta.copy()
            moved[j] += sign * h
            point = feasible.project_on(moved, support)
            if point is not None:
                sides.append(point - theta)
        if sides:
            rows.append(max(sides, key=lambda row: float(np.abs(row).sum())))
    return _independent(np.array(rows).reshape(-1, theta.size), h)


def _independent(rows: Array, h: float) -> Array:
    """Leave out rows that are nearly in the span of those before them."""
    kept, basis = [], np.empty((0, rows.shape[1]))
    for row in rows:
        rest = row - basis.T @ (basis @ row)
        size = float(np.linalg.norm(rest))
        if size > FEASIBLE_DESCENT.least_room * h:
            kept.append(row)
            basis = np.vstack([basis, rest / size])
    return np.array(kept).reshape(-1, rows.shape[1])


def pivot_of(feasible: ShareSet, theta: Array, support: Indices) -> int:
    """Return the coordinate with the most room to both of its limits: it balances the sum.

    It is one of the support; if that is empty, as at 0 with a total of 0, it is one of all coordinates.
    """
    if not support.size:
        return int(np.argmax(np.minimum(feasible.high, -feasible.low)))
    up, down = feasible.chosen_high[support] - theta[support], theta[support] - feasible.chosen_low[support]
    room = np.minimum(up, down)
    best = room if float(room.max()) > 0 else np.maximum(up, down)
    return int(support[np.argmax(best)])


def _along_coordinates(feasible: ShareSet, theta: Array, support: Indices, h: float) -> Array:
    """Return e_j, or e_j - e_r with the pivot r where the sum stays, each with the sign that leaves more room."""
    d, total = theta.size, float(theta.sum())
    r = pivot_of(feasible, theta, support) if support.size else -1
    above = feasible.totals[1] - total
    below = total - feasible.totals[0]
    rows = []
    for j in support.tolist():
        options: list[tuple[float, float, bool]] = []
        for sign in (1.0, -1.0):
            room = _room(feasible, theta, j, sign)
            if not feasible.fixed_total:
                options.append((min(h, room, above if sign > 0 else below), sign, False))
            if j != r:
                options.append((min(h, room, _room(feasible, theta, r, -sign)), sign, True))
        if not options:
            continue
        length, sign, balanced = max(options, key=lambda option: option[0])
        if length <= FEASIBLE_DESCENT.least_room * h:
            continue
        row = np.zeros(d)
        row[j] = sign * length
        if balanced:
            row[r] = -sign * length
        rows.append(row)
    return _independent(np.array(rows).reshape(-1, d), h)


def _room(feasible: ShareSet, theta: Array, j: int, sign: float) -> float:
    return float(feasible.chosen_high[j] - theta[j]) if sign > 0 else float(theta[j] - feasible.chosen_low[j])
