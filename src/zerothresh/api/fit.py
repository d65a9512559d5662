"""How well a calibrated model fits: residuals, Jacobian, standard errors and confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.bounds import Box
from zerothresh.losses import Loss, Squared
from zerothresh.rounds.search import Linearisation

RANK = 1e-10  # of the largest singular value of the scaled Jacobian: columns closer than that cannot be told apart


@dataclass(frozen=True, eq=False)
class Fit:
    r"""The linearised model at a result, and what it says about the coefficients.

    With squared residuals the covariance of the coefficients is :math:`\sigma^2 (J'J)^{-1}`, with
    :math:`\sigma^2 = \sum r_i^2 / (m - s)`. With another loss it is the sandwich :math:`H^{-1} B H^{-1}`, with
    :math:`H = \sum \ell''(r_i) J_i J_i'` and :math:`B = \frac{m}{m-s} \sum \ell'(r_i)^2 J_i J_i'` (Huber 1967). Both
    hold for independent errors, near the solution, and for the support as if it had been known before. Neither holds
    for a coefficient on its bound, which cannot move to both sides: its entries are NaN, and those of the others take
    it as known.

    Attributes
    ----------
    support: the s coordinates that are not zero.
    values: their values, shape (s,).
    residuals: what the run at the result returned, shape (m,); NaN where an output is missing.
    jacobian: the derivatives of the outputs by these coordinates, shape (m, s).
    calls: the number of runs that had been made when the Jacobian was last refreshed.
    loss: the loss of the residuals, or None if they are squared.
    bound: which coefficients are on a bound, shape (s,); None if none is.

    >>> t = np.arange(6.0)
    >>> fit = Fit(np.array([0, 1]), np.array([1.0, 2.0]), np.array([.1, -.1, .1, -.1, .1, -.1]), np.c_[t**0, t], 9)
    >>> fit.standard_errors.round(3).tolist(), round(fit.noise, 3)
    ([0.089, 0.029], 0.122)
    """

    support: Indices
    values: Array
    residuals: Array
    jacobian: Array
    calls: int
    loss: Loss | None = None
    bound: NDArray[np.bool_] | None = None

    @cached_property
    def _free(self) -> NDArray[np.bool_]:
        """Which coefficients may move to both sides."""
        return np.ones(self.support.size, bool) if self.bound is None else ~self.bound

    @cached_property
    def _there(self) -> NDArray[np.bool_]:
        """Which residuals are there, with their derivatives."""
        out: NDArray[np.bool_] = np.isfinite(self.residuals) & np.isfinite(self.jacobian).all(axis=1)
        return out

    @cached_property
    def _seen(self) -> tuple[Array, Array]:
        """The residuals that are there, and their rows of the Jacobian."""
        return self.residuals[self._there], self.jacobian[self._there]

    @property
    def freedom(self) -> int:
        """The degrees of freedom: residuals that are there, less coefficients that are not on a bound."""
        return self._seen[0].size - int(self._free.sum())

    @property
    def noise(self) -> float:
        """The standard deviation of the residuals, with the degrees of freedom as divisor; NaN if there are none."""
        r, _ = self._seen
        return float(np.sqrt(r @ r / self.freedom)) if self.freedom > 0 else np.nan

    @cached_property
    def covariance(self) -> Array:
        """The covariance of the coefficients, (s, s); NaN where the data, or a bound, do not leave it to them."""
        out = np.full((self.support.size, self.support.size), np.nan)
        out[np.ix_(self._free, self._free)] = self._free_covariance()
        return out

    def _free_covariance(self) -> Array:
        """Return the covariance of the coefficients that are not on a bound."""
        r, J = self._seen
        J, s, there = J[:, self._free], int(self._free.sum()), self._there
        unknown = np.full((s, s), np.nan)
        if self.freedom <= 0 or not s:
            return unknown
        size = np.linalg.norm(J, axis=0)
        if not (size > 0).all():
            return unknown
        J = J / size  # so that units of coordinates do not decide what is singular
        if np.linalg.svd(J, compute_uv=False)[-1] <= RANK * np.sqrt(s):
            return unknown
        if self.loss is None:
            scaled = self.noise**2 * np.linalg.inv(J.T @ J)
        else:
            bend, pull = self.loss.second(self.residuals)[there], self.loss.derivative(self.residuals)[there]
            curvature = J.T @ (bend[:, None] * J)
            score = J.T @ (pull[:, None] ** 2 * J) * (r.size / self.freedom)
            if np.linalg.eigvalsh(curvature)[0] <= RANK * np.abs(curvature).max():
                return unknown
            half = np.linalg.solve(curvature, score)
            scaled = np.linalg.solve(curvature, half.T)
        out: Array = scaled / np.outer(size, size)
        return out

    @property
    def standard_errors(self) -> Array:
        """The standard error of each coefficient, (s,)."""
        out: Array = np.sqrt(np.diag(self.covariance))
        return out

    def intervals(self, level: float = 0.95) -> Array:
        """Return confidence intervals of the coefficients by Student's distribution: rows (low, high), (s, 2).

        Arguments
        ---------
        level: float, default 0.95: the probability that an interval holds the coefficient.
        """
        from scipy.stats import t

        level = check.positive("level", level)
        if level >= 1:
            raise ValueError(f"level must be a probability between 0 and 1, not {check.shown(level)}")
        half = t.ppf(0.5 + 0.5 * level, max(self.freedom, 1)) * self.standard_errors
        return np.stack([self.values - half, self.values + half], axis=1)

    def __str__(self) -> str:
        low, high = self.intervals().T
        rows = ["coordinate         value  standard error   95 % confidence interval"]
        rows += [
            f"{j:10d}  {value:12.6g}  {error:14.3g}   {a:11.5g} to {b:.5g}"
            for j, value, error, a, b in zip(self.support, self.values, self.standard_errors, low, high, strict=True)
        ]
        count = self._seen[0].size
        rows += [f"{count} residual{'' if count == 1 else 's'}, standard deviation {self.noise:.3g}"]
        if not self._free.all():
            names = ", ".join(str(j) for j in self.support[~self._free])
            rows += [f"On a bound, where no standard error or interval holds: {names}; the others take it as known."]
        return "\n".join(rows)


def fit_of(
    x: Array, residuals: Array | None, known: Linearisation | None, loss: Loss | None, box: Box | None = None
) -> Fit | None:
    """Return the fit at a point that is not 0, if its outputs and their derivatives by its support are known.

    Arguments
    ---------
    x: the point, shape (d,).
    residuals: the outputs there, shape (m,), or None.
    known: what the method has found out about their derivatives, or None.
    loss: of the outputs, or None if calls return one number.
    box: the bounds of the run, or None.
    """
    support = np.flatnonzero(x)
    if residuals is None or known is None or loss is None:
        return None
    if not support.size or not np.isin(support, known.coordinates).all():
        return None
    order = np.argsort(known.coordinates)
    places = order[np.searchsorted(known.coordinates, support, sorter=order)]
    curved = None if isinstance(loss, Squared) else loss
    bound = None if box is None else ((x <= box.low) | (x >= box.high))[support]
    return Fit(support, x[support], residuals, known.jacobian[:, places], known.calls, curved, bound)
