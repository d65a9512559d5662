"""Losses as pure functions of an array of outputs, each with its first two derivatives.

The last axis of an array counts the outputs of a call. A residual r is the model minus the data. `Huber` and `Cauchy`
are r^2 near 0, so that F keeps its unit when one of them takes the place of the squared loss. NaN, a missing output,
stays NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array

CENTRAL_STEP = float(np.finfo(float).eps) ** (1 / 3)  # of a central difference: truncation and rounding are balanced
SECOND_STEP = float(np.finfo(float).eps) ** (1 / 4)  # the same for a second difference


class Loss(Protocol):
    """A function of each output, whose mean over the outputs of a call is F."""

    def value(self, r: Array) -> Array:
        """Return the loss of each output, in the shape of r."""

    def derivative(self, r: Array) -> Array:
        """Return the first derivative for each output."""

    def second(self, r: Array) -> Array:
        """Return the second derivative for each output; 0 where it is not defined."""


@dataclass(frozen=True)
class Squared:
    """The square r^2, the default.

    >>> Squared().value(np.array([1.0, -2.0]))
    array([1., 4.])
    """

    def value(self, r: Array) -> Array:
        return r * r

    def derivative(self, r: Array) -> Array:
        return 2.0 * r

    def second(self, r: Array) -> Array:
        return np.where(np.isnan(r), r, 2.0)


@dataclass(frozen=True)
class Huber:
    """r^2 up to ``delta``, and linear beyond: an outlier pulls with a constant force.

    Arguments
    ---------
    delta: float, default 1.0: the size up to which a residual is ordinary, about 1.3 standard deviations of the noise.

    >>> Huber(delta=1.0).value(np.array([0.5, -3.0]))
    array([0.25, 5.  ])
    """

    delta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", check.positive("delta", self.delta, what=" (the size of ordinary residuals)"))

    def value(self, r: Array) -> Array:
        size = np.abs(r)
        return np.where(size > self.delta, self.delta * (2.0 * size - self.delta), r * r)

    def derivative(self, r: Array) -> Array:
        return 2.0 * np.clip(r, -self.delta, self.delta)

    def second(self, r: Array) -> Array:
        return np.where(np.isnan(r), r, np.where(np.abs(r) <= self.delta, 2.0, 0.0))


@dataclass(frozen=True)
class Cauchy:
    """scale^2 log(1 + (r / scale)^2): an outlier pulls the less, the farther it is. F may then have several minima.

    Arguments
    ---------
    scale: float, default 1.0: the size of ordinary residuals, about 2.4 standard deviations of the noise.

    >>> Cauchy(scale=1.0).value(np.array([0.0, 1.0])).round(4)
    array([0.    , 0.6931])
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check.positive("scale", self.scale, what=" (the size of ordinary residuals)"))

    def value(self, r: Array) -> Array:
        return self.scale * self.scale * np.log1p((r / self.scale) ** 2)

    def derivative(self, r: Array) -> Array:
        return 2.0 * r / (1.0 + (r / self.scale) ** 2)

    def second(self, r: Array) -> Array:
        square = (r / self.scale) ** 2
        return 2.0 * (1.0 - square) / (1.0 + square) ** 2


@dataclass(frozen=True)
class Quantile:
    """The pinball loss of r = model - data: with it the model describes the q-quantile of the data.

    It is q |r| where the model is below the data, and (1 - q) |r| where it is above.

    Arguments
    ---------
    q: float, default 0.5, the median (F is then half the mean of |r|): which quantile, between 0 and 1.

    >>> Quantile(q=0.9).value(np.array([-1.0, 1.0])).round(4)
    array([0.9, 0.1])
    """

    q: float = 0.5

    def __post_init__(self) -> None:
        q = check.positive("q", self.q, what=" (a quantile)")
        if q >= 1:
            raise ValueError(f"q must be between 0 and 1 (a quantile), not {check.shown(self.q)}")
        object.__setattr__(self, "q", q)

    def value(self, r: Array) -> Array:
        return np.maximum(-self.q * r, (1.0 - self.q) * r)

    def derivative(self, r: Array) -> Array:
        return np.where(np.isnan(r), r, np.where(r > 0, 1.0 - self.q, np.where(r < 0, -self.q, 0.0)))

    def second(self, r: Array) -> Array:
        return np.where(np.isnan(r), r, 0.0)


@dataclass(frozen=True, eq=False)
class Poisson:
    """Half the deviance of Poisson counts y, from outputs that are logarithms of predicted rates: r = log(rate).

    Its value is y log(y / rate) - y + rate: 0 where the rate is the count, and convex in r. A difference between a
    model and data has no Poisson loss, so the counts are given here, and the function returns log-rates.

    Arguments
    ---------
    counts: array (m,), the data: one number of at least 0 per output.

    >>> Poisson([2.0, 0.0]).value(np.log([2.0, 1.0]))
    array([0., 1.])
    """

    counts: Array

    def __post_init__(self) -> None:
        counts = check.array(self.counts)
        if counts is None or counts.ndim != 1 or counts.size == 0 or counts.dtype.kind not in "fiu":
            raise ValueError(f"counts must be a vector of numbers, one per output, not {check.shown(self.counts)}")
        counts = counts.astype(np.float64)
        if not (np.isfinite(counts).all() and (counts >= 0).all()):
            raise ValueError("counts must be finite numbers of at least 0")
        counts.flags.writeable = False
        object.__setattr__(self, "counts", counts)

    @property
    def size(self) -> int:
        """The number of outputs that it is for."""
        return int(self.counts.size)

    @cached_property
    def _least(self) -> Array:
        """y log y - y, what makes the smallest value 0."""
        y = self.counts
        least: Array = y * np.log(np.where(y > 0, y, 1.0)) - y
        return least

    def value(self, r: Array) -> Array:
        return np.maximum(np.exp(r) - self.counts * r + self._least, 0.0)

    def derivative(self, r: Array) -> Array:
        return np.exp(r) - self.counts

    def second(self, r: Array) -> Array:
        return np.exp(r)


@dataclass(frozen=True)
class Itself:
    """The output itself: the outputs are the components f_i."""

    def value(self, r: Array) -> Array:
        return r

    def derivative(self, r: Array) -> Array:
        return np.where(np.isnan(r), r, 1.0)

    def second(self, r: Array) -> Array:
        return np.where(np.isnan(r), r, 0.0)


@dataclass(frozen=True, eq=False)
class Custom:
    """A user's loss; derivatives that are not given are taken by differences.

    Arguments
    ---------
    of: function of an array that returns the loss of each entry, in the same shape.
    first, curvature: functions of the same kind, default None: its first and second derivatives.
    """

    of: Callable[[Array], Any]
    first: Callable[[Array], Any] | None = None
    curvature: Callable[[Array], Any] | None = None

    def value(self, r: Array) -> Array:
        return _in_shape(self.of(r), r, "the loss")

    def derivative(self, r: Array) -> Array:
        if self.first is not None:
            return _in_shape(self.first(r), r, "the derivative of the loss")
        h = CENTRAL_STEP * _scale(r)
        return np.asarray((self.value(r + h) - self.value(r - h)) / (2.0 * h))

    def second(self, r: Array) -> Array:
        if self.curvature is not None:
            return _in_shape(self.curvature(r), r, "the second derivative of the loss")
        h = CENTRAL_STEP * _scale(r) if self.first is not None else SECOND_STEP * _scale(r)
        if self.first is not None:
            return np.asarray((self.derivative(r + h) - self.derivative(r - h)) / (2.0 * h))
        return np.asarray((self.value(r + h) - 2.0 * self.value(r) + self.value(r - h)) / (h * h))


def _scale(r: Array) -> Array:
    """Return a length for differences at each entry: its size, but no less than that of a typical entry."""
    size = np.abs(r)
    known = size[np.isfinite(size)]
    typical = float(np.median(known)) if known.size else 0.0
    return np.maximum(size, typical if typical > 0 else 1.0)


def _in_shape(found: Any, r: Array, what: str) -> Array:
    """Return what a user's function made of r; ValueError if it is not one real number per entry."""
    array = check.array(found)
    if array is None or array.shape != r.shape or array.dtype.kind not in "fiub":
        shape = "" if array is None else f" of shape {array.shape}"
        raise ValueError(
            f"{what} returned {check.shown(found)}{shape} for outputs of shape {r.shape}: it is called with an array, "
            "and must return one real number per entry"
        )
    return array.astype(np.float64)
