"""Functions of one number, many at once: learnt from values at a few places, and asked for slope and bend anywhere."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.sampling.jit import kernel

NODES = 10  # places that a curve goes through at the most: those nearest to where it is needed


class Curves:
    """m curves l_i; each is a cubic spline through its values nearest to a centre."""

    def __init__(self, m: int) -> None:
        self.z = np.empty((m, 0))
        self.l = np.empty((m, 0))

    def __len__(self) -> int:
        return len(self.z)

    def add(self, z: Array, values: Array) -> None:
        """One more value of each curve."""
        self.z = np.column_stack([self.z, z])
        self.l = np.column_stack([self.l, values])

    def extend(self, more: Curves) -> None:
        """Further curves; each keeps its own places, and the shorter ones repeat their last."""
        width = max(self.z.shape[1], more.z.shape[1])
        self.z = np.concatenate([_padded(self.z, width), _padded(more.z, width)])
        self.l = np.concatenate([_padded(self.l, width), _padded(more.l, width)])

    def centre(self, z: Array, spacing: Array) -> Splines:
        """Splines through the places nearest to z, of places at least ``spacing`` apart."""
        order = np.argsort(np.abs(self.z - z[:, None]), axis=1, kind="stable")
        near, values = np.take_along_axis(self.z, order, 1), np.take_along_axis(self.l, order, 1)
        keep = np.zeros(near.shape, bool)
        for j in range(near.shape[1]):  # nearest first; a place too close to a nearer one says nothing more
            gap = np.where(keep[:, :j], np.abs(near[:, :j] - near[:, j : j + 1]), np.inf)
            apart = np.maximum(spacing, 0.3 * np.abs(near[:, j] - z))  # finer towards the centre
            keep[:, j] = (gap.min(axis=1, initial=np.inf) > apart) & (keep[:, :j].sum(axis=1) < NODES)
        count = int(keep.sum(axis=1).min())
        rank = np.argsort(~keep, axis=1, kind="stable")[:, : max(count, 1)]
        Z, L = np.take_along_axis(near, rank, 1), np.take_along_axis(values, rank, 1)
        order = np.argsort(Z, axis=1, kind="stable")
        return Splines(np.take_along_axis(Z, order, 1), np.take_along_axis(L, order, 1))


def _padded(a: Array, width: int) -> Array:
    return np.pad(a, ((0, 0), (0, width - a.shape[1])), mode="edge") if a.shape[1] else np.zeros((len(a), width))


class Splines:
    """Cubic splines through sorted places; beyond them parabolas."""

    def __init__(self, z: Array, l: Array) -> None:
        self.z, self.l = z, l
        m, q = z.shape
        self.bend: Array = np.zeros((m, q))
        if q < 3:
            return
        h = np.diff(z, axis=1)
        slope = np.diff(l, axis=1) / h
        T = np.zeros((m, q, q))
        right = np.zeros((m, q))
        inner = np.arange(1, q - 1)
        T[:, inner, inner - 1], T[:, inner, inner] = h[:, :-1], 2 * (h[:, :-1] + h[:, 1:])
        T[:, inner, inner + 1] = h[:, 1:]
        right[:, inner] = 6 * np.diff(slope, axis=1)
        T[:, 0, 0], T[:, 0, 1], T[:, -1, -1], T[:, -1, -2] = 1, -1, 1, -1  # parabolas at the ends: exact on quadratics
        scale = h.mean(axis=1)[:, None]
        T[:, inner] /= scale[:, :, None]
        right[:, inner] /= scale
        with suppress(np.linalg.LinAlgError):  # else straight pieces
            self.bend = np.asarray(np.linalg.solve(T, right[:, :, None])[:, :, 0], dtype=np.float64)

    def at(self, z: Array) -> tuple[Array, Array, Array]:
        """Values, slopes and bends at z, one place a curve."""
        out = np.empty((3, len(self.z)))
        _at(self.z, self.l, self.bend, np.asarray(z, dtype=np.float64), out)
        return out[0], out[1], out[2]


@kernel
def _at(places: Any, values: Any, bends: Any, z: Any, out: Any) -> None:
    m, q = places.shape
    for i in range(m):
        if q == 1:
            out[0, i], out[1, i], out[2, i] = values[i, 0], 0.0, 0.0
            continue
        j = 0
        while j < q - 2 and places[i, j + 1] <= z[i]:
            j += 1
        a, b = places[i, j], places[i, j + 1]
        fa, fb, ma, mb = values[i, j], values[i, j + 1], bends[i, j], bends[i, j + 1]
        h = b - a
        inside = min(max(z[i], a), b)
        u, v = (b - inside) / h, (inside - a) / h
        value = u * fa + v * fb + h * h / 6 * ((u**3 - u) * ma + (v**3 - v) * mb)
        slope = (fb - fa) / h + h / 6 * ((3 * v * v - 1) * mb - (3 * u * u - 1) * ma)
        bend = u * ma + v * mb
        beyond = z[i] - inside
        rise = max(bend, 0.0)
        out[0, i] = value + beyond * slope + 0.5 * rise * beyond * beyond
        out[1, i] = slope + rise * beyond
        out[2, i] = bend
