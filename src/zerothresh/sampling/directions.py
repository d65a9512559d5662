r"""The families of random directions of eq. (3): blocks of q vectors u_1 .. u_q with E[u u'] = I/d.

All directions are unit vectors, except those of the family "gaussian", which have length 1 in mean square. A cycle is
the first d directions of a block, the next d directions, and so on.

========== ==================================================================== ====================================
family     direction                                                            error of the gradient from q of them
========== ==================================================================== ====================================
sphere     uniform on the unit sphere of a random support of size s2            (d - 1)/q ||g||^2
orthogonal orthonormal in a cycle of d; uniform as above if the block is small  (d - q)/q ||g||^2, 0 at q = d
rademacher random signs / sqrt(s2) on a random support of size s2               (d - 1)/q ||g||^2
coordinate +-e_j, the j of a cycle of d directions are all different             (d - q)/q ||g||^2, 0 at q = d
gaussian   normal entries on a random support of size s2                        (d + 1)/q ||g||^2
========== ==================================================================== ====================================

The directions of the family "orthogonal" are made in one of two ways, such that a block takes at most 3 times as long
as one of the family "sphere" (`benchmarks/blocks.py`):

- Small blocks are made by Gram-Schmidt from normals; each direction is uniform on the sphere. A block is small if
  q <= 10, if d <= 4, or if q d min(q, d) <= 12,000, which is about the number of products that Gram-Schmidt takes.
  With s2 < d, it is small if at most 10 directions share a support.
- Larger blocks are rows of the discrete Hartley transform with random signs (`zerothresh.sampling.hartley`). They are
  orthonormal, and the error in the table holds for every g, but only their second moments are those of uniform
  directions: like random signs, they have no entry that is much larger than the others.

A block is a function of (key, round, tag) and is never stored with a run. How a block is held in memory while
a round is open depends on its size: small dense blocks are matrices, sparse blocks are indices and values, and
large dense blocks (of more than 2^20 numbers) are made again, tile by tile, whenever they are needed. So the
points that are queried are the only q x d array.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from zerothresh.sampling.hartley import combine_hartley, displaced_hartley, hartley_within_pieces
from zerothresh.sampling.kernels import (
    SIGNS,
    combine_dense,
    combine_sparse,
    combine_streamed,
    disjoint_supports,
    displaced_dense,
    displaced_mixed,
    displaced_sparse,
    displaced_streamed,
    gram,
    independent_supports,
    inverse_cholesky,
    inverse_norms,
    normalise,
    orthonormalise,
    orthonormalise_within_pieces,
    piece_and_rank,
    signs,
    transposed_times,
)
from zerothresh.sampling.philox import fill_normals

Array = NDArray[np.float64]

FAMILIES = ("sphere", "orthogonal", "rademacher", "coordinate", "gaussian")

STREAMING = 1 << 20  # dense blocks of more numbers than this are drawn again instead of held in memory
_SUPPORTS, _FREQUENCIES = 1 << 24, 2 << 24  # added to the tag of a block, they give the streams that choose these

# The largest blocks that Gram-Schmidt makes orthonormal, by measured times (benchmarks/blocks.py). With these limits it
# takes at most 3 times as long as a sphere block.
_FEW_DIRECTIONS = 10
_FEW_DIMENSIONS = 4
_FEW_PRODUCTS = 12_000


class Block(Protocol):
    """A block of q directions u_1 .. u_q in d dimensions."""

    @property
    def nbytes(self) -> int:
        """The number of bytes that the block holds in memory."""

    def displace(self, theta: Array, mu: float, out: Array) -> None:
        """Write the points theta + mu u_l into the rows of ``out``, an array of shape (q, d)."""

    def combine(self, coefficients: Array) -> Array:
        """Return the linear combination sum_l c_l u_l, shape (d,), for q coefficients c."""


def draw(family: str, q: int, d: int, s2: int, *, key: int, round: int, tag: int) -> Block:
    """Draw a block of random directions; the same arguments always give the same block.

    Arguments
    ---------
    family: the family of directions, one of ``FAMILIES``.
    q: the number of directions.
    d: the dimension.
    s2: the number of non-zeros of a direction, from 1 to d; the family "coordinate" ignores it.
    key: the key of the random stream, from `zerothresh.sampling.philox.key_of`.
    round: the number of the round.
    tag: tells the blocks of one round apart.

    Returns
    -------
    The block, in the representation that suits its size.
    """
    stream = (round, tag, key)
    if family == "coordinate":
        indices, values = np.empty((q, 1), np.int64), np.empty((q, 1))
        disjoint_supports(indices, d, 1, round, tag + _SUPPORTS, key)
        signs(values, *stream)
        return SparseBlock(d, indices, values)
    if s2 < d:
        indices, values = np.zeros((q, s2), np.int64), np.empty((q, s2))
        if family == "orthogonal":
            disjoint_supports(indices, d, s2, round, tag + _SUPPORTS, key)
        else:
            independent_supports(indices, d, round, tag + _SUPPORTS, key)
        if family == "orthogonal" and not is_small_in_pieces(q, d, s2):
            hartley_within_pieces(values, _signs(q, d, stream), d, s2, round, tag + _FREQUENCIES, key)
            return SparseBlock(d, indices, values)
        if family == "rademacher":
            signs(values, *stream)
        else:
            fill_normals(values.reshape(-1), *stream)
        if family == "orthogonal":
            orthonormalise_within_pieces(values, d, s2)
        if family == "gaussian":
            values *= s2**-0.5
        else:
            normalise(values)
        return SparseBlock(d, indices, values)
    if family == "orthogonal" and not is_small(q, d):
        waves = HartleyBlock.drawn(q, d, stream)
        return waves if q * d > STREAMING else DenseBlock(waves.directions())
    if q * d > STREAMING and family != "gaussian" and (family != "orthogonal" or q <= _FEW_DIRECTIONS):
        return StreamedBlock(family, q, d, stream)
    dense = np.empty((q, d))
    if family == "rademacher":
        signs(dense, *stream)
    else:
        fill_normals(dense.reshape(-1), *stream)
    if family == "orthogonal":
        orthonormalise(dense, d)
    elif family == "gaussian":
        dense *= d**-0.5
    else:
        normalise(dense)
    return DenseBlock(dense)


def is_small(q: int, d: int) -> bool:
    """Whether the directions of an orthonormal block are made by Gram-Schmidt."""
    return q <= _FEW_DIRECTIONS or d <= _FEW_DIMENSIONS or q * d * min(q, d) <= _FEW_PRODUCTS


def is_small_in_pieces(q: int, d: int, s2: int) -> bool:
    """The same for directions with s2 < d non-zeros: whether few of them share a support."""
    _, rank = piece_and_rank(min(q, d) - 1, d, s2)
    return int(rank) < _FEW_DIRECTIONS


def _signs(q: int, d: int, stream: tuple[int, int, int]) -> Array:
    """Return random signs over sqrt(d) for each cycle of a block, shape (cycles, d)."""
    out = np.empty((-(-q // d), d))
    signs(out, *stream)
    return out


class DenseBlock:
    """A block that holds its directions as the rows of a matrix, shape (q, d)."""

    def __init__(self, directions: Array) -> None:
        self.directions = directions
        self.nbytes = directions.nbytes

    def part(self, start: int, stop: int) -> DenseBlock:
        """Return the block of the directions ``start`` to ``stop - 1``."""
        return DenseBlock(self.directions[start:stop])

    def displace(self, theta: Array, mu: float, out: Array) -> None:
        displaced_dense(out, theta, mu, self.directions)

    def combine(self, coefficients: Array) -> Array:
        out = np.zeros(self.directions.shape[1])
        combine_dense(out, coefficients, self.directions)
        return out


class SparseBlock:
    """A block that holds the indices and the values of the non-zeros of its directions, each of shape (q, s2).

    An index may occur twice in a row if one of its values is 0 (padding).
    """

    def __init__(self, d: int, indices: NDArray[np.int64], values: Array) -> None:
        self.d, self.indices, self.values = d, indices, values
        self.nbytes = indices.nbytes + values.nbytes

    @staticmethod
    def coordinates(d: int, chosen: NDArray[np.int64], steps: Array) -> SparseBlock:
        """Return the block of the directions steps_j e_j, one for each of the chosen coordinates.

        Arguments
        ---------
        d: the dimension.
        chosen: the coordinates j, shape (q,).
        steps: the length of each direction, shape (q,).
        """
        return SparseBlock(d, np.ascontiguousarray(chosen[:, None]), np.ascontiguousarray(steps[:, None]))

    def part(self, start: int, stop: int) -> SparseBlock:
        """Return the block of the directions ``start`` to ``stop - 1``."""
        return SparseBlock(self.d, self.indices[start:stop], self.values[start:stop])

    def displace(self, theta: Array, mu: float, out: Array) -> None:
        displaced_sparse(out, theta, mu, self.indices, self.values)

    def combine(self, coefficients: Array) -> Array:
        out = np.zeros(self.d)
        combine_sparse(out, coefficients, self.indices, self.values)
        return out


class HartleyBlock:
    """A block of rows of the Hartley transform with random signs, which are computed again when they are needed.

    Arguments
    ---------
    frequencies: the row of the transform that each direction is, shape (q,).
    signs: random signs over sqrt(d) for each cycle, shape (cycles, d).
    first: the number of the first direction, if this is a part of a larger block.
    """

    def __init__(self, frequencies: NDArray[np.int64], signs: Array, first: int = 0) -> None:
        self.frequencies, self.signs, self.first = frequencies, signs, first
        self.d = signs.shape[1]
        self.nbytes = frequencies.nbytes + signs.nbytes

    @staticmethod
    def drawn(q: int, d: int, stream: tuple[int, int, int]) -> HartleyBlock:
        """Draw the frequencies, without replacement in each cycle, and the signs."""
        round_, tag, key = stream
        frequencies = np.empty((q, 1), np.int64)
        disjoint_supports(frequencies, d, 1, round_, tag + _FREQUENCIES, key)
        return HartleyBlock(frequencies.reshape(-1), _signs(q, d, stream))

    def part(self, start: int, stop: int) -> HartleyBlock:
        """Return the block of the directions ``start`` to ``stop - 1``."""
        return HartleyBlock(self.frequencies[start:stop], self.signs, self.first + start)

    def directions(self) -> Array:
        """Return the directions as the rows of a matrix, shape (q, d)."""
        out = np.empty((self.frequencies.size, self.d))
        self.displace(np.zeros(self.d), 1.0, out)
        return out

    def displace(self, theta: Array, mu: float, out: Array) -> None:
        displaced_hartley(out, theta, mu, self.frequencies, self.signs, self.first)

    def combine(self, coefficients: Array) -> Array:
        out = np.zeros(self.d)
        combine_hartley(out, coefficients, self.frequencies, self.signs, self.first)
        return out


class StreamedBlock:
    """A block of directions U = M Z that is never held in memory: Z is drawn again when it is needed.

    Z has rows of raw normals or signs. M is diagonal (it normalises the rows) or, for the family "orthogonal",
    lower triangular (it makes them orthonormal). Then M comes from a Cholesky factor of the Gram matrix, which is as
    accurate as Gram-Schmidt, because such blocks have few directions in many dimensions, far from linearly dependent.
    """

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
            if self.scale is None:  # the block was drawn in an earlier round, and its points are not needed again
                self.scale = np.empty(self.q)
                inverse_norms(self.scale, self.d, *self.stream)
            weights = coefficients * self.scale
        combine_streamed(out, weights, self.raw, *self.stream)
        return out

    def _mixing(self) -> Array:
        """Return the lower triangular M with M Z Z' M' = I, shape (q, q)."""
        if self._triangle is None:
            products = np.zeros((self.q, self.q))
            gram(products, self.d, *self.stream)
            self._triangle = inverse_cholesky(products)
        return self._triangle
