r"""The direction families of eq. (3): blocks of q vectors u_1 .. u_q with E[u u'] = I/d, unit ones but for gaussian.

========== ==================================================================== =======================
family     a direction                                                          error at q directions
========== ==================================================================== =======================
sphere     uniform on the unit sphere of a random support of size s2            (d - 1)/q ||g||^2
orthogonal the same, but the q directions (d at a time) are orthonormal         (d - q)/q ||g||^2, 0 at q = d
rademacher random signs / sqrt(s2) on a random support of size s2               (d - 1)/q ||g||^2
coordinate +-e_j, the j of a block (d at a time) all different                  (d - q)/q ||g||^2, 0 at q = d
gaussian   normal on a random support of size s2, of length 1 in mean square    (d + 1)/q ||g||^2
========== ==================================================================== =======================

A block is a function of (key, round, tag) and is never stored with a run. What is kept while a round
is open depends on its size: small dense blocks are kept as they are, blocks with supports as indices
and values, and large dense ones (beyond 2^20 numbers) are drawn again, tile by tile, when they are
needed, so that no q x d array exists besides the points that are queried.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from zerothresh.sampling.kernels import (
    SIGNS,
    combine_dense,
    combine_sparse,
    combine_streamed,
    displaced_dense,
    displaced_mixed,
    displaced_sparse,
    displaced_streamed,
    gram,
    inverse_cholesky,
    normalise,
    orthonormal,
    orthonormal_pieces,
    pieces,
    scales,
    signs,
    supports,
    transposed_times,
)
from zerothresh.sampling.philox import fill_normals

Array = NDArray[np.float64]

FAMILIES = ("sphere", "orthogonal", "rademacher", "coordinate", "gaussian")

STREAMING = 1 << 20  # dense blocks of more numbers than this are drawn again instead of kept
_SUPPORTS = 1 << 24  # added to a tag, the next purpose: the stream that chooses supports


class Block(Protocol):
    """q directions."""

    @property
    def nbytes(self) -> int:
        """The memory that it holds."""

    def displace(self, theta: Array, mu: float, out: Array) -> None:
        """Write the points theta + mu u_l into the rows of ``out``, (q, d)."""

    def combine(self, coefficients: Array) -> Array:
        """sum_l c_l u_l, (d,)."""


def draw(family: str, q: int, d: int, s2: int, *, key: int, round: int, tag: int) -> Block:
    """The block of a round: always the same one for the same arguments."""
    stream = (round, tag, key)
    if family == "coordinate":
        indices, values = np.empty((q, 1), np.int64), np.empty((q, 1))
        pieces(indices, d, 1, round, tag + _SUPPORTS, key)
        signs(values, *stream)
        return SparseBlock(d, indices, values)
    if s2 < d:
        indices, values = np.zeros((q, s2), np.int64), np.empty((q, s2))
        if family == "orthogonal":
            pieces(indices, d, s2, round, tag + _SUPPORTS, key)
        else:
            supports(indices, d, round, tag + _SUPPORTS, key)
        if family == "rademacher":
            signs(values, *stream)
        else:
            fill_normals(values.reshape(-1), *stream)
        if family == "orthogonal":
            orthonormal_pieces(values, d, s2)
        if family == "gaussian":
            values *= s2**-0.5
        else:
            normalise(values)
        return SparseBlock(d, indices, values)
    # Streamed orthonormal blocks come from a Cholesky factor of the Gram matrix, which is as good as
    # Gram-Schmidt only while the raw vectors are far from dependent: d >= 8 q.
    if q * d > STREAMING and family != "gaussian" and (family != "orthogonal" or d >= 8 * q):
        return StreamedBlock(family, q, d, stream)
    dense = np.empty((q, d))
    if family == "rademacher":
        signs(dense, *stream)
    else:
        fill_normals(dense.reshape(-1), *stream)
    if family == "orthogonal":
        orthonormal(dense, d)
    elif family == "gaussian":
        dense *= d**-0.5
    else:
        normalise(dense)
    return DenseBlock(dense)


class DenseBlock:
    """Directions as the rows of a matrix."""

    def __init__(self, directions: Array) -> None:
        self.directions = directions
        self.nbytes = directions.nbytes

    def displace(self, theta: Array, mu: float, out: Array) -> None:
        displaced_dense(out, theta, mu, self.directions)

    def combine(self, coefficients: Array) -> Array:
        out = np.zeros(self.directions.shape[1])
        combine_dense(out, coefficients, self.directions)
        return out


class SparseBlock:
    """Directions as indices and values of their supports."""

    def __init__(self, d: int, indices: NDArray[np.int64], values: Array) -> None:
        self.d, self.indices, self.values = d, indices, values
        self.nbytes = indices.nbytes + values.nbytes

    @staticmethod
    def coordinates(d: int, chosen: NDArray[np.int64], steps: Array) -> SparseBlock:
        """The directions steps_j e_j of chosen coordinates."""
        return SparseBlock(d, np.ascontiguousarray(chosen[:, None]), np.ascontiguousarray(steps[:, None]))

    def part(self, start: int, stop: int) -> SparseBlock:
        """Some of the directions."""
        return SparseBlock(self.d, self.indices[start:stop], self.values[start:stop])

    def displace(self, theta: Array, mu: float, out: Array) -> None:
        displaced_sparse(out, theta, mu, self.indices, self.values)

    def combine(self, coefficients: Array) -> Array:
        out = np.zeros(self.d)
        combine_sparse(out, coefficients, self.indices, self.values)
        return out


class StreamedBlock:
    """Directions u = M z that are never held: z is drawn again, M is diagonal or triangular."""

    def __init__(self, family: str, q: int, d: int, stream: tuple[int, int, int]) -> None:
        self.q, self.d, self.stream = q, d, stream
        self.raw = SIGNS if family == "rademacher" else 0
        self.orthogonal = family == "orthogonal"
        self.scale = np.full(q, d**-0.5) if family == "rademacher" else None  # 1 / ||z_l||
        self._triangle: Array | None = None
        self.nbytes = 8 * q * (q + 1)

    def displace(self, theta: Array, mu: float, out: Array) -> None:
        if self.orthogonal:
            displaced_mixed(out, theta, mu * self._mixing(), *self.stream)
        else:
            scale = np.empty(self.q)
            displaced_streamed(out, scale, theta, mu, self.raw, *self.stream)
            self.scale = scale

    def combine(self, coefficients: Array) -> Array:
        out = np.zeros(self.d)
        if self.orthogonal:
            weights = transposed_times(self._mixing(), coefficients)
        else:
            if self.scale is None:  # a block of an earlier round
                self.scale = np.empty(self.q)
                scales(self.scale, self.d, *self.stream)
            weights = coefficients * self.scale
        combine_streamed(out, weights, self.raw, *self.stream)
        return out

    def _mixing(self) -> Array:
        """The triangular M with M Z Z' M' = I."""
        if self._triangle is None:
            products = np.zeros((self.q, self.q))
            gram(products, self.d, *self.stream)
            self._triangle = inverse_cholesky(products)
        return self._triangle
