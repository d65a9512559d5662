r"""Best-subset selection for a quadratic model: minimise 1/2 x'Ax - b'x over all x with at most k non-zeros.

No objective calls are made here. The search starts from several supports and repeatedly makes the best exchange of
one coordinate in the support for one outside, until no exchange lowers the model. The effect of every exchange is
computed exactly: with M = A_SS^-1, dropping coordinate a costs x_a^2 / (2 M_aa), and adding coordinate j gains
r_j^2 / (2 s_j), where s_j is its Schur complement. If there are few enough supports, all of them are tried instead.

Reference: Zhu, Wen, Zhu, Zhang and Wang, *A polynomial algorithm for best-subset selection*, PNAS 2020
(splicing); the exact costs of the exchanges are those of an incremental Cholesky factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.threshold import Constraint

MAX_ENUMERATED_SUPPORTS = 4000  # up to this many supports, all are tried: that is exact, and still fast
_RIDGE = 1e-11  # times the mean diagonal: keeps the blocks of a singular A invertible, below the accuracy of a solve
_RELATIVE_GAIN = 1e-8  # an exchange that lowers the model by less than this share is rounding, and could cycle
_PROJECTED_STEPS = 60  # projected gradient steps when bounds cut off the minimiser; it is a correction, not a solve
_TINY = 1e-300  # lower limit of divisors


def best_subset(
    A: Array,
    b: Array,
    k: int,
    *,
    starts: Iterable[Indices] = (),
    forced: Indices | None = None,
    only_given_starts: bool = False,
) -> Array:
    """Minimise 1/2 x'Ax - b'x over all x with at most k non-zeros, by exchanging one coordinate at a time.

    Arguments
    ---------
    A: array of shape (d, d), symmetric and positive semidefinite.
    b: array of shape (d,).
    k: int, the largest number of non-zeros; values above d count as d.
    starts: supports to start from, in addition to the k largest scores and a forward selection. Default: none.
    forced: indices that must be in the support. Default: none.
    only_given_starts: whether to start from ``starts`` alone, which saves time. Default: False.

    Returns
    -------
    array of shape (d,): the best point found; zeros if A or b are not finite or A has no positive trace.

    >>> A = np.diag([1.0, 1.0, 100.0])
    >>> best_subset(A, np.array([3.0, 2.0, 4.0]), 2)
    array([3., 2., 0.])
    """
    d = b.size
    k = min(k, d)
    scale = float(np.trace(A)) / d
    if not scale > 0 or not np.isfinite(A).all() or not np.isfinite(b).all():
        return np.zeros(d)
    A = A + (_RIDGE * scale) * np.eye(d)
    forced = np.empty(0, np.int64) if forced is None else forced
    if math.comb(d, k) <= MAX_ENUMERATED_SUPPORTS:
        return _enumerate_supports(A, b, k, forced)
    diagonal = np.maximum(np.diag(A), 1e-12 * scale)
    score = np.abs(b) / np.sqrt(diagonal)
    score[forced] = np.inf
    all_starts = list(starts)
    if not (only_given_starts and all_starts):
        all_starts += [np.argsort(-score, kind="stable")[:k], _forward_selection(A, b, k, forced)]
    best, best_value, visited = np.zeros(d), 0.0, set[bytes]()
    for start in all_starts:
        start = np.concatenate([forced, np.setdiff1d(start, forced)])
        S = _exchange_until_optimal(A, b, _complete_support(start, score, k), forced)
        support_key = np.sort(S).tobytes()
        if support_key in visited:
            continue
        visited.add(support_key)
        x = minimiser(A[np.ix_(S, S)], b[S])
        value = -0.5 * float(b[S] @ x)
        if value < best_value:
            best, best_value = np.zeros(d), value
            best[S] = x
    return best


def exchange_costs(A: Array, b: Array, S: Indices) -> Array:
    """Compute how much each exchange of one coordinate changes the minimum of the model.

    Arguments
    ---------
    A: array of shape (d, d), symmetric and positive definite on every support that is considered.
    b: array of shape (d,).
    S: indices of the current support, shape (k,).

    Returns
    -------
    array of shape (d, k): entry (j, a) is the change of the minimum if S[a] is replaced by j; infinite for j in S.
    """
    M = _inverse(A[np.ix_(S, S)])
    x = M @ b[S]
    B = A[:, S] @ M  # (d, k)
    r = b - A[:, S] @ x
    s = np.diag(A) - np.einsum("jk,jk->j", B, A[:, S])
    m = np.maximum(np.diag(M), _TINY)
    r_after = r[:, None] + B * (x / m)  # residuals after dropping a
    s_after = s[:, None] + B * B / m  # Schur complements after dropping a
    change = (x * x / (2 * m))[None, :] - r_after * r_after / (2 * np.maximum(s_after, _TINY))
    change[S] = np.inf
    return np.asarray(change)


def make_feasible(A: Array, b: Array, point: Array, C: Indices, constraint: Constraint) -> Array:
    """Project a minimiser of the model onto the constraint; if bounds cut it off, minimise further within them.

    Arguments
    ---------
    A, b: the model on the coordinates C, shapes (c, c) and (c,).
    point: array of shape (d,), the unconstrained sparse minimiser.
    C: indices of the modelled coordinates, shape (c,).
    constraint: the feasible set.

    Returns
    -------
    array of shape (d,): a feasible point, after projected gradient steps on the model if the projection moved it.
    """
    best = constraint.project(point)
    if constraint.box is None or np.array_equal(best, point):
        return best

    def model_value(theta: Array) -> float:
        x = theta[C]
        return 0.5 * float(x @ A @ x) - float(b @ x)

    largest_curvature = max(float(np.linalg.norm(A, 2)), _TINY)
    for start in (best, np.zeros_like(best)):
        theta = start
        for _ in range(_PROJECTED_STEPS):
            next_theta = theta.copy()
            next_theta[C] -= (A @ theta[C] - b) / largest_curvature
            next_theta = constraint.project(next_theta)
            if np.array_equal(next_theta, theta):
                break
            theta = next_theta
        best = theta if model_value(theta) < model_value(best) else best
    return best


def minimiser(A: Array, b: Array) -> Array:
    """Solve A x = b; if A is singular, return the least-squares solution of smallest norm."""
    try:
        x = np.linalg.solve(A, b)
        if np.isfinite(x).all():
            return np.asarray(x)
    except np.linalg.LinAlgError:
        pass
    if not (np.isfinite(A).all() and np.isfinite(b).all()):
        return np.zeros_like(b)
    try:
        return np.asarray(np.linalg.lstsq(A, b, rcond=None)[0])
    except np.linalg.LinAlgError:
        return np.zeros_like(b)


def _inverse(A: Array) -> Array:
    """Invert A, or return its pseudo-inverse if it is singular."""
    try:
        return np.asarray(np.linalg.inv(A))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(A, hermitian=True))


def _complete_support(S: Indices, score: Array, k: int) -> Indices:
    """Cut or extend S to exactly k coordinates; those of the largest score are added."""
    S = np.asarray(S, np.int64)[:k]
    if S.size < k:
        rest = np.setdiff1d(np.argsort(-score, kind="stable"), S, assume_unique=True)
        S = np.concatenate([S, rest[: k - S.size]])
    return S


@lru_cache(8)
def _all_supports(d: int, k: int) -> Indices:
    """Return all supports of size k, one per row."""
    return np.array(list(combinations(range(d), k)), np.int64).reshape(-1, k)


def _enumerate_supports(A: Array, b: Array, k: int, forced: Indices) -> Array:
    """Minimise the model on every support of size k that contains the forced coordinates; return the best point."""
    S = _all_supports(b.size, k)
    S = S[(S[:, :, None] == forced).any(axis=1).all(axis=1)] if forced.size else S
    try:
        x = np.linalg.solve(A[S[:, :, None], S[:, None, :]], b[S][:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        x = np.array([minimiser(A[np.ix_(T, T)], b[T]) for T in S])
    value = -0.5 * (b[S] * x).sum(axis=1)
    best = int(np.argmin(value))
    out = np.zeros(b.size)
    out[S[best]] = x[best]
    return out


def _forward_selection(A: Array, b: Array, k: int, forced: Indices) -> Indices:
    """Add the coordinate of largest gain k times (orthogonal least squares), with a growing Cholesky factor."""
    d = b.size
    s, r = np.diag(A).copy(), b.copy()  # Schur complements and residuals of the coordinates outside
    chosen, W = list[int](), np.empty((k, d))
    for count in range(k):
        gain = r * r / np.maximum(s, _TINY)
        gain[chosen] = -1.0
        missing = [j for j in forced.tolist() if j not in chosen]
        j = missing[0] if missing else int(np.argmax(gain))
        row = (A[j] - W[:count].T @ W[:count, j]) / math.sqrt(max(float(s[j]), _TINY))
        W[count] = row
        r = r - row * (r[j] / math.sqrt(max(float(s[j]), _TINY)))
        s = s - row * row
        chosen.append(j)
    return np.array(chosen, np.int64)


def _exchange_until_optimal(A: Array, b: Array, S: Indices, forced: Indices) -> Indices:
    """Make the best exchange of one coordinate until none lowers the model."""
    d, S = b.size, S.copy()
    fixed = np.isin(S, forced)
    for _ in range(2 * S.size + 10):
        change = exchange_costs(A, b, S)
        change[:, fixed] = np.inf
        j, a = divmod(int(np.argmin(change)), S.size)
        value = 0.5 * abs(float(b[S] @ minimiser(A[np.ix_(S, S)], b[S])))
        if not change[j, a] < -_RELATIVE_GAIN * max(value, _TINY) or d == S.size:
            break
        S[a] = j
    return S
