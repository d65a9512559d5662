r"""Orthonormal directions at the price of a few operations per entry: rows of the discrete Hartley transform.

The matrix with the entries

.. math:: T_{fj} = d^{-1/2} \operatorname{cas}(2\pi f j / d), \qquad \operatorname{cas}(x) = \cos x + \sin x,

is orthogonal for every d (Bracewell, *Discrete Hartley transform*, 1983), and none of its entries is larger than
sqrt(2/d). A direction is u_j = s_j T_fj, where the signs s are random and shared by a cycle, and the frequencies f of
a cycle are drawn without replacement. So

- the directions of a cycle are orthonormal, because they are different rows of an orthogonal matrix;
- E[u u'] = T' T / d = I/d, because the frequency of a direction is uniform;
- u'g behaves for every g as for random signs, because the signs make T S g a sum of independent terms, none of which
  stands out (Avron, Maymounkov and Toledo, *Blendenpik*, 2010, use the transform to this end).

Only the signs and the frequencies of a block are stored. By cas(a + b) = cas(a) cos(b) + cas(-a) sin(b), a row needs
about 2 sqrt(d) angles, and then two products and a sum per entry. Cosines and sines are computed here, by the
polynomials of fdlibm, because those of libraries differ between processors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zerothresh.sampling.jit import kernel
from zerothresh.sampling.kernels import piece_and_rank, uniform
from zerothresh.sampling.philox import BLOCK

SHORT = 128  # entries: up to here a row is looked up in a table, because computing its tiles would take longer

_S1, _S2, _S3 = -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04
_S4, _S5, _S6 = 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
_C1, _C2, _C3 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05
_C4, _C5, _C6 = -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11


@kernel
def waves(cosines: Any, sines: Any, turns: Any, count: int, frequency: int, d: int) -> None:
    """Compute the cosines and sines of the angles 2 pi i f / d for i < count; ``turns`` is scratch space."""
    turn = 0  # i f mod d: the angle in units of 2 pi / d, without error
    for i in range(count):
        turns[i] = turn
        turn += frequency
        if turn >= d:
            turn -= d
    unit = 0.5 * np.pi / d
    for i in range(count):
        m = 8 * turns[i]
        quadrant = np.int64(m >= d) + np.int64(m >= 3 * d) + np.int64(m >= 5 * d) + np.int64(m >= 7 * d)
        x = np.float64(4 * turns[i] - quadrant * d) * unit  # the distance to the nearest quarter turn, |x| <= pi/4
        z = x * x
        s = x + x * z * (_S1 + z * (_S2 + z * (_S3 + z * (_S4 + z * (_S5 + z * _S6)))))
        c = 1.0 - (0.5 * z - z * z * (_C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * (_C5 + z * _C6))))))
        cosine, sine = (s, c) if quadrant & 1 else (c, s)
        cosines[i] = -cosine if (quadrant == 1) | (quadrant == 2) else cosine
        sines[i] = -sine if (quadrant == 2) | (quadrant == 3) else sine


@kernel
def scratch_of(d: int) -> Any:
    """Return the two arrays that `hartley_row` needs for rows of d entries.

    For short rows, the first holds cas(2 pi m / d) for all m < d. For long rows, it is space for the factors of a row,
    which is computed in tiles of w entries, where w is at least sqrt(d) and a multiple of 8.
    """
    if d > SHORT:
        width = 8 * int(np.ceil(np.sqrt(d) / 8.0))
        return np.empty((4, width)), np.empty(width, np.int64)
    table, turns = np.empty((4, d)), np.empty(d, np.int64)
    waves(table[1], table[2], turns, d, 1, d)
    for m in range(d):
        table[0, m] = table[1, m] + table[2, m]
    return table, turns


@kernel
def hartley_row(row: Any, frequency: int, table: Any, turns: Any) -> None:
    """Fill a row with cas(2 pi f j / d) for j < d; ``table`` and ``turns`` are those of `scratch_of`."""
    d = row.size
    if d <= SHORT:
        turn = 0
        for j in range(d):
            row[j] = table[0, turn]
            turn += frequency
            if turn >= d:
                turn -= d
        return
    width = turns.size
    tiles = (d + width - 1) // width
    cosines, sines, head_cosines, head_sines = table[0], table[1], table[2], table[3]
    waves(cosines, sines, turns, width, frequency, d)
    waves(head_cosines, head_sines, turns, tiles, frequency * width % d, d)
    for t in range(tiles):
        a, b = head_cosines[t] + head_sines[t], head_cosines[t] - head_sines[t]  # cas(x) and cas(-x)
        tile = row[t * width : min(t * width + width, d)]
        for i in range(tile.size):
            tile[i] = a * cosines[i] + b * sines[i]


@kernel
def displaced_hartley(points: Any, theta: Any, mu: float, frequencies: Any, signs: Any, first: int) -> None:
    """Compute points_l = theta + mu u_l for the directions from number ``first`` of the block on.

    Row c of ``signs`` has the signs of cycle c, divided by sqrt(d).
    """
    q, d = points.shape
    table, turns = scratch_of(d)
    for l in range(q):
        row, sign = points[l], signs[(first + l) // d]
        hartley_row(row, frequencies[l], table, turns)
        for j in range(d):
            row[j] = theta[j] + mu * (sign[j] * row[j])


@kernel
def combine_hartley(out: Any, coefficients: Any, frequencies: Any, signs: Any, first: int) -> None:
    """Compute out += sum_l c_l u_l for the same directions, without holding more than one row in memory."""
    q, d = coefficients.size, out.size
    table, turns = scratch_of(d)
    row, total = np.empty(d), np.empty(d)
    for cycle in range(first // d, (first + q + d - 1) // d):
        total[:] = 0.0
        for l in range(max(cycle * d - first, 0), min(cycle * d + d - first, q)):
            hartley_row(row, frequencies[l], table, turns)
            c = coefficients[l]
            for j in range(d):
                total[j] += c * row[j]
        for j in range(d):
            out[j] += signs[cycle, j] * total[j]


@kernel
def hartley_within_pieces(values: Any, signs: Any, d: int, size: int, round_: int, tag: int, key: int) -> None:
    """Make the directions that share a piece orthonormal: each piece of a cycle has its own frequencies.

    The pieces are those of `piece_and_rank`; the directions of the shorter last piece are padded with zeros. Row c of
    ``signs`` has a number for each place of the permutation of cycle c, of which only the sign is used.
    """
    w = np.empty(BLOCK, np.uint32)
    last = d - (d - 1) // size * size
    table, turns = scratch_of(size)
    last_table, last_turns = scratch_of(last)
    frequencies = np.empty(d, np.int64)
    for i in range(values.shape[0]):
        number = i % d
        if number == 0:
            for j in range(d):
                frequencies[j] = j % size
        piece, rank = piece_and_rank(number, d, size)
        start, n = piece * size, min(size, d - piece * size)
        swap = rank + min(int(uniform(w, i, round_, tag, key) * (n - rank)), n - rank - 1)
        chosen = frequencies[start + swap]
        frequencies[start + swap] = frequencies[start + rank]
        row = values[i, :n]
        if n == size:
            hartley_row(row, chosen, table, turns)
        else:
            hartley_row(row, chosen, last_table, last_turns)
        unit, sign = 1.0 / np.sqrt(n), signs[i // d, start : start + n]
        for j in range(n):
            row[j] *= unit if sign[j] > 0.0 else -unit
        values[i, n:] = 0.0
