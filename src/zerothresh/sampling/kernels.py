"""The compiled loops that draw directions, displace points along them and combine them.

All kernels write into arrays that the caller passes. ``round_``, ``tag`` and ``key`` name a random stream; see
`zerothresh.sampling.philox`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zerothresh.sampling.jit import kernel
from zerothresh.sampling.philox import BLOCK, normals_of, u64, words

SIGNS = 2  # the kind of raw numbers in a tile: random signs; any other value means normals

# Dense and sparse kernels. Reductions use eight partial sums in a fixed order, so that the compiler can use vector
# registers and the bits do not depend on how wide the registers are.


@kernel
def dot(x: Any, y: Any) -> float:
    """Return the inner product of two vectors."""
    if x.size < 16:
        total = 0.0
        for i in range(x.size):
            total += x[i] * y[i]
        return total
    a = b = c = d = e = f = g = h = 0.0
    whole = x.size - x.size % 8
    for i in range(0, whole, 8):
        a += x[i] * y[i]
        b += x[i + 1] * y[i + 1]
        c += x[i + 2] * y[i + 2]
        d += x[i + 3] * y[i + 3]
        e += x[i + 4] * y[i + 4]
        f += x[i + 5] * y[i + 5]
        g += x[i + 6] * y[i + 6]
        h += x[i + 7] * y[i + 7]
    for i in range(whole, x.size):
        a += x[i] * y[i]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@kernel
def normalise(rows: Any) -> None:
    """Scale each row to a unit vector."""
    for row in rows:
        scale = 1.0 / np.sqrt(dot(row, row))
        for j in range(row.size):
            row[j] *= scale


@kernel
def remove(rows: Any, i: int, j: int) -> None:
    """Subtract from row i its component along row j, a unit vector.

    The sums are those of `dot`. They are written out again because a view of a row costs more than a short row.
    """
    size = rows.shape[1]
    whole = size - size % 8 if size >= 16 else 0
    a = b = c = d = e = f = g = h = 0.0
    for l in range(0, whole, 8):
        a += rows[i, l] * rows[j, l]
        b += rows[i, l + 1] * rows[j, l + 1]
        c += rows[i, l + 2] * rows[j, l + 2]
        d += rows[i, l + 3] * rows[j, l + 3]
        e += rows[i, l + 4] * rows[j, l + 4]
        f += rows[i, l + 5] * rows[j, l + 5]
        g += rows[i, l + 6] * rows[j, l + 6]
        h += rows[i, l + 7] * rows[j, l + 7]
    for l in range(whole, size):
        a += rows[i, l] * rows[j, l]
    product = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for l in range(size):
        rows[i, l] -= product * rows[j, l]


@kernel
def orthonormalise(rows: Any, size: int) -> None:
    """Make the rows orthonormal by Gram-Schmidt, in groups of ``size`` consecutive rows.

    A row that loses more than half of its length to the others is orthogonalised a second time, which is enough
    (Giraud, Langou and Rozloznik, 2005).
    """
    short = rows.shape[1] < 16  # inline loops: for short rows, function calls would cost more than the work
    for start in range(0, rows.shape[0], size):
        for i in range(start, min(start + size, rows.shape[0])):
            before = dot(rows[i], rows[i])
            for _ in range(4):
                for j in range(start, i):
                    if short:
                        c = 0.0
                        for l in range(rows.shape[1]):
                            c += rows[i, l] * rows[j, l]
                        for l in range(rows.shape[1]):
                            rows[i, l] -= c * rows[j, l]
                    else:
                        remove(rows, i, j)
                after = dot(rows[i], rows[i])
                scale = 1.0 / np.sqrt(after)
                for l in range(rows.shape[1]):
                    rows[i, l] *= scale
                if after > 0.25 * before:
                    break
                before = 1.0


@kernel
def piece_and_rank(number: int, d: int, size: int) -> tuple[int, int]:
    """Return the piece of the permutation that direction ``number`` of a cycle uses, and its rank in that piece.

    A permutation of the d coordinates is cut into pieces of ``size`` coordinates. The pieces take turns, so that few
    directions cover many coordinates. The last piece is shorter if ``size`` does not divide d, and then it drops out
    of the turns early.
    """
    count = (d + size - 1) // size
    last = d - (count - 1) * size
    full_turns = count * last
    if number < full_turns:
        return number % count, number // count
    rest = number - full_turns
    return rest % (count - 1), last + rest // (count - 1)


@kernel
def orthonormalise_within_pieces(values: Any, d: int, size: int) -> None:
    """Make the directions that share a piece orthonormal; those of the shorter last piece are padded with zeros."""
    q = values.shape[0]
    count = (d + size - 1) // size
    last = d - (count - 1) * size
    for i in range(q):
        number = i % d
        piece, rank = piece_and_rank(number, d, size)
        row = values[i]
        if piece == count - 1:
            for j in range(last, size):
                row[j] = 0.0
        for _ in range(2):
            for r in range(rank):  # the earlier directions of this piece
                other = r * count + piece if r < last else count * last + (r - last) * (count - 1) + piece
                remove(values, i, i - number + other)
            scale = 1.0 / np.sqrt(dot(row, row))
            for j in range(size):
                row[j] *= scale


@kernel
def uniform(w: Any, place: int, round_: int, tag: int, key: int) -> float:
    """Return the uniform number at position ``place`` of a stream.

    ``w`` must hold the block of words that the call for the position before left there.
    """
    at = 2 * place
    if at % BLOCK == 0:
        words(w, at // BLOCK, round_, tag, key)
    return np.float64((u64(w[at % BLOCK]) << u64(21)) ^ (u64(w[at % BLOCK + 1]) >> u64(11))) * 2.0**-53


@kernel
def disjoint_supports(indices: Any, d: int, size: int, round_: int, tag: int, key: int) -> None:
    """Draw supports that are disjoint: for each cycle of d directions, a fresh permutation is cut into pieces."""
    q = indices.shape[0]
    w = np.empty(BLOCK, np.uint32)
    order = np.arange(d)
    place = 0
    count = (d + size - 1) // size
    for start in range(0, q, d):
        wanted = min(d, min(q - start, count) * size)
        for i in range(wanted):
            swap = i + min(int(uniform(w, place, round_, tag, key) * (d - i)), d - i - 1)
            place += 1
            order[i], order[swap] = order[swap], order[i]
        for i in range(start, min(start + d, q)):
            piece, _ = piece_and_rank(i - start, d, size)
            for j in range(min(size, d - piece * size)):
                indices[i, j] = order[piece * size + j]


@kernel
def independent_supports(indices: Any, d: int, round_: int, tag: int, key: int) -> None:
    """Draw independent uniform supports.

    Each is the head of a partial shuffle, which is undone afterwards, so that the work per direction does not grow
    with d.
    """
    q, size = indices.shape
    w = np.empty(BLOCK, np.uint32)
    order = np.arange(d)
    swaps = np.empty(size, np.int64)
    for i in range(q):
        for j in range(size):
            u = uniform(w, i * size + j, round_, tag, key)
            swap = j + min(int(u * (d - j)), d - j - 1)
            order[j], order[swap] = order[swap], order[j]
            swaps[j] = swap
            indices[i, j] = order[j]
        for j in range(size - 1, -1, -1):
            swap = swaps[j]
            order[j], order[swap] = order[swap], order[j]


@kernel
def signs(rows: Any, round_: int, tag: int, key: int) -> None:
    """Fill the rows with random signs divided by the square root of the row length, one random word per sign."""
    flat = rows.reshape(-1)
    unit = 1.0 / np.sqrt(rows.shape[1])
    w = np.empty(BLOCK, np.uint32)
    for start in range(0, flat.size, BLOCK):
        words(w, start // BLOCK, round_, tag, key)
        for i in range(min(BLOCK, flat.size - start)):
            flat[start + i] = unit if w[i] >> np.uint32(31) else -unit


@kernel
def combine_dense(out: Any, coefficients: Any, rows: Any) -> None:
    """Compute out += sum_i c_i rows_i."""
    for i in range(rows.shape[0]):
        c = coefficients[i]
        row = rows[i]
        for j in range(out.size):
            out[j] += c * row[j]


@kernel
def combine_sparse(out: Any, coefficients: Any, indices: Any, values: Any) -> None:
    """Compute out += sum_i c_i rows_i, where the rows are given by their supports."""
    for i in range(indices.shape[0]):
        for j in range(indices.shape[1]):
            out[indices[i, j]] += coefficients[i] * values[i, j]


@kernel
def displaced_dense(points: Any, theta: Any, mu: float, rows: Any) -> None:
    """Compute points_i = theta + mu rows_i."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            points[i, j] = theta[j] + mu * rows[i, j]


@kernel
def displaced_sparse(points: Any, theta: Any, mu: float, indices: Any, values: Any) -> None:
    """Compute points_i = theta + mu rows_i, where the rows are given by their supports."""
    for i in range(indices.shape[0]):
        points[i, :] = theta
        for j in range(indices.shape[1]):
            points[i, indices[i, j]] += mu * values[i, j]


# Streamed kernels: each row z_l is drawn in tiles of 1024 numbers; row l starts at block l * tiles of the stream.


@kernel
def tile(z: Any, w: Any, block: int, raw: int, round_: int, tag: int, key: int) -> None:
    """Draw the 1024 raw numbers (signs or normals) of a block into ``z``; ``w`` is scratch space for the words."""
    words(w, block, round_, tag, key)
    if raw == SIGNS:
        for i in range(BLOCK):
            z[i] = np.float32(1) if w[i] >> np.uint32(31) else np.float32(-1)
    else:
        normals_of(z, w)


@kernel
def sum_of_squares(z: Any, n: int, squares: Any) -> float:
    """Return the sum of squares of the first n numbers of a tile, by halving: a fixed order that vectorises."""
    for i in range(BLOCK):
        squares[i] = np.float64(z[i]) * np.float64(z[i]) if i < n else 0.0
    width = BLOCK // 2
    while width > 0:
        for i in range(width):
            squares[i] += squares[width + i]
        width //= 2
    return float(squares[0])


@kernel
def displaced_streamed(
    points: Any, scale: Any, theta: Any, mu: float, raw: int, round_: int, tag: int, key: int
) -> None:
    """Compute points_l = theta + mu z_l / ||z_l|| and scale_l = 1 / ||z_l||."""
    q, d = points.shape
    w, z = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.float32)
    squares = np.empty(BLOCK)
    tiles = (d + BLOCK - 1) // BLOCK
    for row in range(q):
        total = 0.0
        out = points[row]
        for t in range(tiles):
            start, n = t * BLOCK, min(BLOCK, d - t * BLOCK)
            tile(z, w, row * tiles + t, raw, round_, tag, key)
            total += sum_of_squares(z, n, squares)
            for i in range(n):
                out[start + i] = z[i]
        scale[row] = 1.0 / np.sqrt(total)
        step = mu * scale[row]
        for j in range(d):
            out[j] = theta[j] + step * out[j]


@kernel
def inverse_norms(scale: Any, d: int, round_: int, tag: int, key: int) -> None:
    """Compute scale_l = 1 / ||z_l|| for rows of normals (for signs there is a closed form)."""
    w, z = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.float32)
    squares = np.empty(BLOCK)
    tiles = (d + BLOCK - 1) // BLOCK
    for row in range(scale.size):
        total = 0.0
        for t in range(tiles):
            tile(z, w, row * tiles + t, 0, round_, tag, key)
            total += sum_of_squares(z, min(BLOCK, d - t * BLOCK), squares)
        scale[row] = 1.0 / np.sqrt(total)


@kernel
def combine_streamed(out: Any, weights: Any, raw: int, round_: int, tag: int, key: int) -> None:
    """Compute out = sum_l weight_l z_l without holding any row in memory."""
    d = out.size
    w, z = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.float32)
    total = np.empty(BLOCK)
    tiles = (d + BLOCK - 1) // BLOCK
    for t in range(tiles):
        total[:] = 0.0
        for row in range(weights.size):
            tile(z, w, row * tiles + t, raw, round_, tag, key)
            c = weights[row]
            for i in range(BLOCK):
                total[i] += c * z[i]
        for i in range(min(BLOCK, d - t * BLOCK)):
            out[t * BLOCK + i] = total[i]


@kernel
def raw_tiles(rows: Any, w: Any, z: Any, t: int, d: int, round_: int, tag: int, key: int) -> None:
    """Draw tile t of all rows, with zeros beyond coordinate d."""
    tiles = (d + BLOCK - 1) // BLOCK
    n = min(BLOCK, d - t * BLOCK)
    for row in range(rows.shape[0]):
        tile(z, w, row * tiles + t, 0, round_, tag, key)
        for i in range(BLOCK):
            rows[row, i] = z[i] if i < n else 0.0


@kernel
def gram(products: Any, d: int, round_: int, tag: int, key: int) -> None:
    """Compute the lower triangle of Z Z' in one pass over the tiles."""
    q = products.shape[0]
    w, z = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.float32)
    rows = np.empty((q, BLOCK))
    for t in range((d + BLOCK - 1) // BLOCK):
        raw_tiles(rows, w, z, t, d, round_, tag, key)
        for i in range(q):
            for j in range(i + 1):
                products[i, j] += dot(rows[i], rows[j])


@kernel
def inverse_cholesky(products: Any) -> Any:
    """Return the inverse of the lower Cholesky factor of a matrix, of which only the lower triangle is read."""
    q = products.shape[0]
    factor, inverse = np.zeros((q, q)), np.zeros((q, q))
    for i in range(q):
        for j in range(i + 1):
            rest = products[i, j] - dot(factor[i, :j], factor[j, :j])
            factor[i, j] = np.sqrt(rest) if i == j else rest / factor[j, j]
    for i in range(q):
        inverse[i, i] = 1.0 / factor[i, i]
        for j in range(i):
            rest = 0.0
            for l in range(j, i):
                rest += factor[i, l] * inverse[l, j]
            inverse[i, j] = -rest / factor[i, i]
    return inverse


@kernel
def transposed_times(matrix: Any, vector: Any) -> Any:
    """Return M' c for a lower triangular matrix M."""
    out = np.zeros(vector.size)
    for i in range(vector.size):
        for j in range(i + 1):
            out[j] += matrix[i, j] * vector[i]
    return out


@kernel
def displaced_mixed(points: Any, theta: Any, mixing: Any, round_: int, tag: int, key: int) -> None:
    """Compute points = theta + (mu M) Z tile by tile; ``mixing`` is mu M, lower triangular."""
    q, d = points.shape
    w, z = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.float32)
    rows = np.empty((q, BLOCK))
    total = np.empty(BLOCK)
    for t in range((d + BLOCK - 1) // BLOCK):
        start, n = t * BLOCK, min(BLOCK, d - t * BLOCK)
        raw_tiles(rows, w, z, t, d, round_, tag, key)
        for row in range(q):
            total[:] = 0.0
            for j in range(row + 1):
                c = mixing[row, j]
                for i in range(BLOCK):
                    total[i] += c * rows[j, i]
            for i in range(n):
                points[row, start + i] = theta[start + i] + total[i]
