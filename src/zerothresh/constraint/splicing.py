r"""The sparse quadratic model, solved without a call: min 1/2 x'Ax - b'x over supports of size k.

All exchanges of one unit in the support for one outside are priced exactly, and the best one is made
until none helps: with M = A_SS^-1, dropping a costs x_a^2 / 2 M_aa, and adding j gains r_j^2 / 2 s_j with
the Schur complement s_j. Where all supports can be gone through, they are.

Reference: Zhu, Wen, Zhu, Zhang and Wang, *A polynomial algorithm for best-subset selection*, PNAS 2020
(splicing); the exact prices of swaps are those of an incremental Cholesky factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from zerothresh.constraint.threshold import Constraint

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

ALL = 4000  # supports that are gone through one by one


def solve(
    A: Array,
    b: Array,
    k: int,
    *,
    starts: Iterable[Indices] = (),
    forced: Indices | None = None,
    alone: bool = False,
) -> Array:
    """The best x with at most k non-zeros that exchanges of one coordinate find, from several starts.

    With ``alone``, only from the starts that are given.

    >>> A = np.diag([1.0, 1.0, 100.0])
    >>> solve(A, np.array([3.0, 2.0, 4.0]), 2)
    array([3., 2., 0.])
    """
    d = b.size
    k = min(k, d)
    scale = float(np.trace(A)) / d
    if not scale > 0 or not np.isfinite(A).all() or not np.isfinite(b).all():
        return np.zeros(d)
    A = A + (1e-11 * scale) * np.eye(d)
    forced = np.empty(0, np.int64) if forced is None else forced
    if math.comb(d, k) <= ALL:
        return _best_of_all(A, b, k, forced)
    diagonal = np.maximum(np.diag(A), 1e-12 * scale)
    score = np.abs(b) / np.sqrt(diagonal)
    score[forced] = np.inf
    begins = list(starts)
    if not (alone and begins):
        begins += [np.argsort(-score, kind="stable")[:k], _forward(A, b, k, forced)]
    best, best_value, seen = np.zeros(d), 0.0, set[bytes]()
    for begin in begins:
        begin = np.concatenate([forced, np.setdiff1d(begin, forced)])
        S = _exchange(A, b, _completed(begin, score, k), forced)
        name = np.sort(S).tobytes()
        if name in seen:
            continue
        seen.add(name)
        x = minimiser(A[np.ix_(S, S)], b[S])
        value = -0.5 * float(b[S] @ x)
        if value < best_value:
            best, best_value = np.zeros(d), value
            best[S] = x
    return best


def prices(A: Array, b: Array, S: Indices) -> Array:
    """What the minimum on the support changes by if S[a] is exchanged for j: (d, k), infinite for j in S."""
    M = _inverse(A[np.ix_(S, S)])
    x = M @ b[S]
    B = A[:, S] @ M  # (d, k)
    r = b - A[:, S] @ x
    s = np.diag(A) - np.einsum("jk,jk->j", B, A[:, S])
    m = np.maximum(np.diag(M), 1e-300)
    r_after = r[:, None] + B * (x / m)  # residuals once a is dropped
    s_after = s[:, None] + B * B / m
    change = (x * x / (2 * m))[None, :] - r_after * r_after / (2 * np.maximum(s_after, 1e-300))
    change[S] = np.inf
    return np.asarray(change)


def inside(A: Array, b: Array, point: Array, C: Indices, constraint: Constraint) -> Array:
    """The point put into the constraint; if that changes it, projected gradient steps of the model from there."""
    best = constraint.project(point)
    if constraint.box is None or np.array_equal(best, point):
        return best

    def value(theta: Array) -> float:
        x = theta[C]
        return 0.5 * float(x @ A @ x) - float(b @ x)

    steepest = max(float(np.linalg.norm(A, 2)), 1e-300)
    for begin in (best, np.zeros_like(best)):
        theta = begin
        for _ in range(60):
            further = theta.copy()
            further[C] -= (A @ theta[C] - b) / steepest
            further = constraint.project(further)
            if np.array_equal(further, theta):
                break
            theta = further
        best = theta if value(theta) < value(best) else best
    return best


def minimiser(A: Array, b: Array) -> Array:
    """x with A x = b; the shortest of those that come nearest if A has no inverse."""
    try:
        x = np.linalg.solve(A, b)
        if np.isfinite(x).all():
            return np.asarray(x)
    except np.linalg.LinAlgError:
        pass
    try:
        return np.asarray(np.linalg.lstsq(A, b, rcond=None)[0])
    except np.linalg.LinAlgError:
        return np.zeros_like(b)


def _inverse(A: Array) -> Array:
    try:
        return np.asarray(np.linalg.inv(A))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(A, hermitian=True))


def _completed(S: Indices, score: Array, k: int) -> Indices:
    """A support of exactly k coordinates."""
    S = np.asarray(S, np.int64)[:k]
    if S.size < k:
        rest = np.setdiff1d(np.argsort(-score, kind="stable"), S, assume_unique=True)
        S = np.concatenate([S, rest[: k - S.size]])
    return S


def _best_of_all(A: Array, b: Array, k: int, forced: Indices) -> Array:
    supports = [S for S in combinations(range(b.size), k) if set(forced.tolist()) <= set(S)]
    S = np.array(supports, np.int64)
    try:
        x = np.linalg.solve(A[S[:, :, None], S[:, None, :]], b[S][:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        x = np.array([minimiser(A[np.ix_(T, T)], b[T]) for T in S])
    value = -0.5 * (b[S] * x).sum(axis=1)
    place = int(np.argmin(value))
    out = np.zeros(b.size)
    out[S[place]] = x[place]
    return out


def _forward(A: Array, b: Array, k: int, forced: Indices) -> Indices:
    """Add the coordinate of largest gain, k times (orthogonal least squares), by a growing Cholesky factor."""
    d = b.size
    s, r = np.diag(A).copy(), b.copy()  # Schur complements and residuals of the coordinates outside
    chosen, W = list[int](), np.empty((k, d))
    for place in range(k):
        gain = r * r / np.maximum(s, 1e-300)
        gain[chosen] = -1.0
        waiting = [j for j in forced.tolist() if j not in chosen]
        j = waiting[0] if waiting else int(np.argmax(gain))
        row = (A[j] - W[:place].T @ W[:place, j]) / math.sqrt(max(float(s[j]), 1e-300))
        W[place] = row
        r = r - row * (r[j] / math.sqrt(max(float(s[j]), 1e-300)))
        s = s - row * row
        chosen.append(j)
    return np.array(chosen, np.int64)


def _exchange(A: Array, b: Array, S: Indices, forced: Indices) -> Indices:
    """Make the best exchange of one for one until none helps."""
    d, S = b.size, S.copy()
    fixed = np.isin(S, forced)
    for _ in range(2 * S.size + 10):
        change = prices(A, b, S)
        change[:, fixed] = np.inf
        j, a = divmod(int(np.argmin(change)), S.size)
        value = 0.5 * abs(float(b[S] @ minimiser(A[np.ix_(S, S)], b[S])))
        if not change[j, a] < -1e-8 * max(value, 1e-300) or d == S.size:
            break
        S[a] = j
    return S
