"""Many functions of one variable at once: sampled at a few places, and interpolated with first and second derivatives.

The single-index model (`zerothresh.methods.auto.models.index_rows`) uses one curve per component.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.settings import CURVES
from zerothresh.sampling.jit import kernel


class Curves:
    """Samples of m curves l_i; `centre` turns those nearest to a place into cubic splines.

    Attributes
    ----------
    z: array of shape (m, samples), where each curve was sampled.
    l: array of shape (m, samples), the values there.
    """

    def __init__(self, m: int) -> None:
        self.z = np.empty((m, 0))
        self.l = np.empty((m, 0))

    def __len__(self) -> int:
        return len(self.z)

    def add(self, z: Array, values: Array) -> None:
        """Add one sample to each curve."""
        self.z = np.column_stack([self.z, z])
        self.l = np.column_stack([self.l, values])

    def extend(self, more: Curves) -> None:
        """Append further curves with samples of their own; shorter rows are padded by repeating their last sample."""
        width = max(self.z.shape[1], more.z.shape[1])
        self.z = np.concatenate([_padded(self.z, width), _padded(more.z, width)])
        self.l = np.concatenate([_padded(self.l, width), _padded(more.l, width)])

    def centre(self, z: Array, spacing: Array) -> Splines:
        """Return splines through the samples nearest to z.

        Arguments
        ---------
        z: array of shape (m,), the place around which each curve is needed.
        spacing: array of shape (m,), the smallest distance between two samples that are used.
        """
        order = np.argsort(np.abs(self.z - z[:, None]), axis=1, kind="stable")
        near, values = np.take_along_axis(self.z, order, 1), np.take_along_axis(self.l, order, 1)
        keep = np.zeros(near.shape, bool)
        for j in range(near.shape[1]):  # nearest first; a sample too close to one already used adds nothing
            gap = np.where(keep[:, :j], np.abs(near[:, :j] - near[:, j : j + 1]), np.inf)
            min_gap = np.maximum(spacing, CURVES.relative_spacing * np.abs(near[:, j] - z))
            keep[:, j] = (gap.min(axis=1, initial=np.inf) > min_gap) & (keep[:, :j].sum(axis=1) < CURVES.max_nodes)
        count = int(keep.sum(axis=1).min())
        rank = np.argsort(~keep, axis=1, kind="stable")[:, : max(count, 1)]
        Z, L = np.take_along_axis(near, rank, 1), np.take_along_axis(values, rank, 1)
        order = np.argsort(Z, axis=1, kind="stable")
        return Splines(np.take_along_axis(Z, order, 1), np.take_along_axis(L, order, 1))


def _padded(a: Array, width: int) -> Array:
    """Widen a to ``width`` columns by repeating the last one, or with zeros if it has none."""
    return np.pad(a, ((0, 0), (0, width - a.shape[1])), mode="edge") if a.shape[1] else np.zeros((len(a), width))


class Splines:
    """Cubic splines through sorted nodes, one per curve; beyond the nodes they continue as parabolas.

    Arguments
    ---------
    z: array of shape (m, nodes), sorted along each row.
    l: array of shape (m, nodes), the values at the nodes.
    """

    def __init__(self, z: Array, l: Array) -> None:
        self.z, self.l = z, l
        m, q = z.shape
        self.curvature: Array = np.zeros((m, q))  # second derivatives at the nodes
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
        T[:, 0, 0], T[:, 0, 1], T[:, -1, -1], T[:, -1, -2] = 1, -1, 1, -1  # parabolic ends: exact for quadratics
        scale = h.mean(axis=1)[:, None]
        T[:, inner] /= scale[:, :, None]
        right[:, inner] /= scale
        with suppress(np.linalg.LinAlgError):  # if nodes coincide, the curve stays piecewise linear
            self.curvature = np.asarray(np.linalg.solve(T, right[:, :, None])[:, :, 0], dtype=np.float64)

    def at(self, z: Array) -> tuple[Array, Array, Array]:
        """Evaluate each curve at one place.

        Arguments
        ---------
        z: array of shape (m,), one place per curve.

        Returns
        -------
        three arrays of shape (m,): values, first derivatives and second derivatives.
        """
        out = np.empty((3, len(self.z)))
        _evaluate(self.z, self.l, self.curvature, np.asarray(z, dtype=np.float64), out)
        return out[0], out[1], out[2]


@kernel
def _evaluate(nodes: Any, values: Any, curvatures: Any, z: Any, out: Any) -> None:
    """Write value, first and second derivative of each spline at z into the rows of ``out``."""
    m, q = nodes.shape
    for i in range(m):
        if q == 1:
            out[0, i], out[1, i], out[2, i] = values[i, 0], 0.0, 0.0
            continue
        j = 0
        while j < q - 2 and nodes[i, j + 1] <= z[i]:
            j += 1
        a, b = nodes[i, j], nodes[i, j + 1]
        fa, fb, ma, mb = values[i, j], values[i, j + 1], curvatures[i, j], curvatures[i, j + 1]
        h = b - a
        inside = min(max(z[i], a), b)
        u, v = (b - inside) / h, (inside - a) / h
        value = u * fa + v * fb + h * h / 6 * ((u**3 - u) * ma + (v**3 - v) * mb)
        slope = (fb - fa) / h + h / 6 * ((3 * v * v - 1) * mb - (3 * u * u - 1) * ma)
        curvature = u * ma + v * mb
        beyond = z[i] - inside
        rise = max(curvature, 0.0)  # a curve that is concave at its end continues as a line: it must not fall for ever
        out[0, i] = value + beyond * slope + 0.5 * rise * beyond * beyond
        out[1, i] = slope + rise * beyond
        out[2, i] = curvature
