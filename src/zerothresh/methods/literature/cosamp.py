"""CoSaMP: recover a sparse vector from few linear measurements."""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices


def cosamp(A: Array, y: Array, s: int, iterations: int = 10, tolerance: float = 1e-10) -> Array:
    """Find an s-sparse g with A g close to y.

    Each iteration adds the 2s columns that correlate most with the residual to the support, solves least squares on
    it, keeps the s largest entries, and solves least squares again on those.

    Arguments
    ---------
    A: array (rows, d), the measurement matrix.
    y: array (rows,), the measurements.
    s: int, the number of non-zeros.
    iterations: int, default 10. The largest number of iterations.
    tolerance: float, default 1e-10. Stop when the residual is this share of the norm of y.

    Returns the g of shape (d,) with the smallest residual of all iterations.

    Reference: Needell and Tropp, *CoSaMP*, Appl. Comput. Harmon. Anal. 2009, Algorithm 1.

    >>> A = np.array([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1]])
    >>> cosamp(A, A @ [0.0, 2, 0, 0], 1).round(6).tolist()
    [0.0, 2.0, 0.0, 0.0]
    """
    rows, d = A.shape
    s = max(1, min(s, d, rows))
    g, best, size = np.zeros(d), np.zeros(d), float(np.linalg.norm(y))
    lowest = size
    residual = y
    for _ in range(iterations):
        if lowest <= tolerance * size:
            break
        proxy = np.abs(A.T @ residual)
        joined = np.union1d(largest(proxy, min(2 * s, d)), np.flatnonzero(g))
        if joined.size > rows:  # least squares needs no more unknowns than measurements
            joined = joined[largest(proxy[joined] + np.where(g[joined] != 0, np.inf, 0.0), rows)]
        b = on_support(A, y, joined)
        g = np.zeros(d)
        kept = largest(np.abs(b), s)
        g[kept] = b[kept]
        g = on_support(A, y, np.flatnonzero(g))  # the s entries that stay, fitted without the others
        residual = y - A @ g
        error = float(np.linalg.norm(residual))
        if error >= lowest * (1 - 1e-3):  # hardly any progress
            if error < lowest:
                best = g
            break
        best, lowest = g, error
    return best


def on_support(A: Array, y: Array, support: Indices) -> Array:
    """The least-squares solution of A g = y among the vectors with the given support."""
    g = np.zeros(A.shape[1])
    if support.size:
        g[support] = np.linalg.lstsq(A[:, support], y, rcond=None)[0]
    return g


def largest(sizes: Array, count: int) -> Indices:
    """The indices of the largest numbers, in ascending order; ties go to the lower index."""
    return np.sort(np.argsort(-sizes, kind="stable")[:count]).astype(np.int64)
