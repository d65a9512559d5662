"""Quadratics with a chosen condition number and a sparse solution."""

from __future__ import annotations

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.problems.common import (
    best_subset,
    check_finite,
    check_size,
    component,
    coordinates,
    generator,
    numbers,
    point,
    rows,
)


class Quadratic:
    r"""A sum of quadratics: :math:`f_i(\theta) = \frac12 (\theta - b_i)' A (\theta - b_i)`.

    Their mean is :math:`\frac12 (\theta - \bar b)' A (\theta - \bar b)` plus a constant.

    Arguments
    ---------
    A: the symmetric Hessian that all components share, shape (d, d).
    centres: the minimisers b_i of the components, shape (n, d).

    >>> Quadratic(np.eye(2), np.array([[1.0, 0.0]])).F(np.zeros(2))
    0.5
    """

    def __init__(self, A: Array, centres: Array) -> None:
        self.A, self.centres = numbers("A", A), numbers("centres", centres)
        self.d = len(self.A) if self.A.ndim else 0
        square, fits = self.A.shape == (self.d, self.d), self.centres.ndim == 2 and self.centres.shape[1] == self.d
        if not (square and fits and self.centres.size):
            raise ValueError(
                f"A must have shape (d, d) and centres shape (n, d), both at least 1, not {self.A.shape} and "
                f"{self.centres.shape}"
            )
        self.n = len(self.centres)
        with np.errstate(over="ignore", invalid="ignore"):
            self.centre: Array = self.centres.mean(axis=0)
            spread = self.centres - self.centre
            self._constant = float(0.5 * np.einsum("ij,jk,ik->", spread, self.A, spread) / self.n)
            check_finite(self.centre, self._constant, self.A @ self.centre, self.centre @ self.A @ self.centre)

    def values(self, points: Array, components: Indices) -> Array:
        """Evaluate f_i(x) for the rows x of ``points`` (B, d) and the ``components`` i (B,); returns shape (B,)."""
        points, components = rows(points, components, self)
        offset = points - self.centres[components]
        # einsum does not use BLAS, so the bits of a row do not depend on the other rows of the batch
        out: Array = 0.5 * np.einsum("bj,bj->b", np.einsum("bi,ij->bj", offset, self.A), offset)
        return out

    def F(self, x: Array) -> float:
        """Evaluate F, the mean of all f_i, at the point x, shape (d,)."""
        offset = point(x, self) - self.centre
        return float(0.5 * offset @ self.A @ offset) + self._constant

    def gradient(self, x: Array) -> Array:
        """Return the gradient of F at the point x, shape (d,)."""
        out: Array = self.A @ (point(x, self) - self.centre)
        return out

    def component_gradient(self, x: Array, i: int) -> Array:
        """Return the gradient of f_i at the point x, shape (d,), for a component i from 0 to n - 1."""
        out: Array = self.A @ (point(x, self) - self.centres[component(i, self)])
        return out

    def minimum_on(self, support: Indices) -> Array:
        """Return the minimiser of F, shape (d,), among the vectors whose non-zeros are in ``support``."""
        x, support = np.zeros(self.d), coordinates(support, self)
        right = (self.A @ self.centre)[support]
        x[support] = np.linalg.lstsq(self.A[np.ix_(support, support)], right, rcond=None)[0]
        return x

    def optimum(self, k: int) -> tuple[Array, float]:
        """Find the k-sparse optimum by enumerating all supports of size k.

        Returns
        -------
        The minimiser theta*, shape (d,), and F(theta*). Raises ``ValueError`` if there are too many supports.
        """
        return best_subset(self, k)


def quadratic(
    d: int = 20, k_true: int = 3, condition: float = 10.0, n: int = 1, spread: float = 0.0, seed: int = 0
) -> Quadratic:
    """Generate a quadratic problem whose minimiser is sparse.

    The eigenvectors of the Hessian are random, and its eigenvalues are spaced geometrically from 1/condition to 1.
    The non-zeros of the minimiser of F have absolute values from 1 to 2.

    Arguments
    ---------
    d: the dimension, 20 by default.
    k_true: the number of non-zeros of the minimiser of F, 3 by default.
    condition: the condition number of the Hessian, at least 1; 10 by default.
    n: the number of components, 1 by default.
    spread: the standard deviation of the normal noise by which the minimisers of the components differ from that
        of F, 0 by default.
    seed: the seed of the data, 0 by default.

    Returns
    -------
    The problem.
    """
    check.count("d", d)
    check.count("n", n)
    check.count("k_true", k_true)
    if k_true > d:
        raise ValueError(f"k_true = {k_true} is larger than d = {d}: take k_true from 1 to {d}")
    if check.positive("condition", condition) < 1:
        raise ValueError(f"condition must be at least 1, not {condition}")
    check.not_negative("spread", spread, what=" (the standard deviation of the minimisers)")
    check_size(d, d)
    check_size(n, d)
    rng = generator(seed)
    basis, _ = np.linalg.qr(rng.standard_normal((d, d)))
    A = (basis * np.geomspace(1 / condition, 1.0, d)) @ basis.T
    truth = np.zeros(d)
    truth[rng.choice(d, k_true, replace=False)] = rng.choice([-1.0, 1.0], k_true) * (1 + rng.random(k_true))
    noise = spread * rng.standard_normal((n, d))
    return Quadratic((A + A.T) / 2, truth + noise - noise.mean(axis=0))
