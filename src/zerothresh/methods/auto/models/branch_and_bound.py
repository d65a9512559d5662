r"""A proof that a support is the best one of a quadratic model, by branch and bound, with a limit on the work.

A node has coordinates that must be in the support, coordinates that are excluded, and others. Its bound is the minimum
of the model over all coordinates that are not excluded. With M the inverse of A on those, excluding coordinate a
raises that minimum by x_a^2 / (2 M_aa). If r more coordinates must be excluded, the largest of their r rises counts,
which is at least the r-th smallest of all.

Reference: Furnival and Wilson, *Regressions by leaps and bounds*, Technometrics 1974.
"""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.settings.floating_point import TINY


def is_best_subset(A: Array, b: Array, k: int, value: float, gap: float, max_nodes: int, forced: Indices) -> bool:
    """Whether no x with at most k non-zeros has 1/2 x'Ax - b'x < value - gap; False if that takes too long to prove.

    Arguments
    ---------
    A: array of shape (c, c), symmetric and positive definite.
    b: array of shape (c,).
    k: int, the largest number of non-zeros.
    value: float, the value of the model at the point in question.
    gap: float, how much better another support may be.
    max_nodes: int, the limit on the work: each node costs about c^2 multiplications.
    forced: indices that are in every support.

    >>> A = np.diag([1.0, 2.0, 3.0])
    >>> is_best_subset(A, np.ones(3), 1, -0.5, 1e-9, 100, np.empty(0, np.int64))
    True
    >>> is_best_subset(A, np.ones(3), 1, -0.25, 1e-9, 100, np.empty(0, np.int64))
    False
    """
    try:
        M = np.linalg.inv(A)
    except np.linalg.LinAlgError:
        return False
    must = np.zeros(b.size, bool)
    must[forced] = True
    stack = [(M, b, must)]  # the inverse, the linear term and the forced coordinates, on what is not excluded
    bar = value - gap
    for _ in range(max_nodes):
        if not stack:
            return True
        M, b, must = stack.pop()
        x = M @ b
        bound = -0.5 * float(b @ x)
        rises = np.square(x) / (2 * np.maximum(np.diag(M), TINY))
        excess = b.size - k
        if excess <= 0:
            if bound < bar:
                return False  # a better support
            continue
        free = np.flatnonzero(~must)
        if free.size < excess:
            continue  # more are forced than allowed
        least = np.partition(rises[free], excess - 1)[excess - 1]
        if bound + float(least) >= bar:
            continue
        must = must | (bound + rises >= bar)  # without one of these, nothing better is left
        free = np.flatnonzero(~must)
        if free.size < excess:
            continue
        a = int(free[np.argmax(rises[free])])
        keep = np.arange(b.size) != a
        with_a = must.copy()
        with_a[a] = True
        stack.append((M, b, with_a))
        column = M[keep, a]
        stack.append((M[np.ix_(keep, keep)] - np.outer(column, column) / M[a, a], b[keep], must[keep]))
    return not stack
