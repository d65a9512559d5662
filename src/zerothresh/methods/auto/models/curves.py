"""Many functions of one variable at once: sampled at a few places, and interpolated with first and second derivatives.

The single-index model (`zerothresh.methods.auto.models.index_rows`) uses one curve per component.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.settings.single_index_settings import CURVES
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
        """Return splines through the samples nearest to z, and the outermost ones: none has to extrapolate far.

        Arguments
        ---------
        z: array of shape (m,), the place around which each curve is needed.
        spacing: array of shape (m,), the smallest distance between two samples that are used.
        """
        distance = np.abs(self.z - z[:, None])
        outermost = (self.z == self.z.min(axis=1, keepdims=True)) | (self.z == self.z.max(axis=1, keepdims=True))
        order = np.argsort(np.where(outermost, -1.0, distance), axis=1, kind="stable")
        near, values = np.take_along_axis(self.z, order, 1), np.take_along_axis(self.l, order, 1)
        keep = np.zeros(near.shape, bool)
        for j in range(near.shape[1]):  # a sample too close to one already used adds nothing
            gap = np.where(keep[:, :j], np.abs(near[:, :j] - near[:, j : j + 1]), np.inf)
            min_gap = np.maximum(spacing, CURVES.relative_spacing * np.abs(near[:, j] - z))
            keep[:, j] = (gap.min(axis=1, initial=np.inf) > min_gap) & (keep[:, :j].sum(axis=1) < CURVES.max_nodes)
        counts = keep.sum(axis=1)
        order = np.argsort(np.where(keep, near, np.inf), axis=1, kind="stable")[:, : max(int(counts.max()), 1)]
        return Splines(np.take_along_axis(near, order, 1), np.take_along_axis(values, order, 1), counts)


def _padded(a: Array, width: int) -> Array:
    """Widen a to ``width`` columns by repeating the last one, or with zeros if it has none."""
    return np.pad(a, ((0, 0), (0, width - a.shape[1])), mode="edge") if a.shape[1] else np.zeros((len(a), width))


class Splines:
    """Cubic splines through sorted nodes, one per curve; beyond the nodes they continue as parabolas.

    Arguments
    ---------
    z: array of shape (m, nodes), sorted along each row.
    l: array of shape (m, nodes), the values at the nodes.
    counts: int64 array (m,), how many nodes of each row are used, the first ones. Default: all.
    """

    def __init__(self, z: Array, l: Array, counts: Indices | None = None) -> None:
        self.z, self.l = z, l
        self.counts = np.full(len(z), z.shape[1]) if counts is None else counts
        self.curvature: Array = np.zeros(z.shape)  # second derivatives at the nodes
        _fit(self.z, self.l, self.counts, self.curvature)

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
        _evaluate(self.z, self.l, self.counts, self.curvature, np.asarray(z, dtype=np.float64), out)
        return out[0], out[1], out[2]


@kernel
def _fit(nodes: Any, values: Any, counts: Any, out: Any) -> None:
    """Write the second derivatives at the nodes into ``out``, by elimination in the tridiagonal system of the spline.

    At its ends a spline is a parabola, so that quadratics are exact. If nodes coincide, it stays piecewise linear.
    """
    m, width = nodes.shape
    diagonal, right = np.empty(width), np.empty(width)
    for i in range(m):
        q = counts[i]
        apart = q >= 3
        for j in range(q - 1):
            apart = apart and nodes[i, j + 1] > nodes[i, j]
        if not apart:
            continue
        diagonal[0], right[0], above = 1.0, 0.0, -1.0  # curvature 0 - curvature 1 = 0
        for j in range(1, q - 1):
            left, gap = nodes[i, j] - nodes[i, j - 1], nodes[i, j + 1] - nodes[i, j]
            scale = left + gap
            slopes = (values[i, j + 1] - values[i, j]) / gap - (values[i, j] - values[i, j - 1]) / left
            factor = left / scale / diagonal[j - 1]
            diagonal[j] = 2.0 - factor * above
            right[j] = 6.0 * slopes / scale - factor * right[j - 1]
            above = gap / scale
        factor = -1.0 / diagonal[q - 2]
        out[i, q - 1] = -factor * right[q - 2] / (1.0 - factor * above)
        for j in range(q - 2, 0, -1):
            gap = nodes[i, j + 1] - nodes[i, j]
            above = gap / (gap + nodes[i, j] - nodes[i, j - 1])
            out[i, j] = (right[j] - above * out[i, j + 1]) / diagonal[j]
        out[i, 0] = out[i, 1]


@kernel
def _evaluate(nodes: Any, values: Any, counts: Any, curvatures: Any, z: Any, out: Any) -> None:
    """Write value, first and second derivative of each spline at z into the rows of ``out``."""
    m = len(nodes)
    for i in range(m):
        q = counts[i]
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
