"""Losses that are means over rows, written as losses of outputs that are linear in the coefficients.

Auto takes outputs for residuals, whose loss rises away from 0. So an output is prediction minus target for regression,
and a margin, or how far it falls short of 1, for classification.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.losses import Custom, Huber, Loss, Quantile, Squared


@dataclass(frozen=True)
class Hinge:
    """max(0, u) of u = 1 - margin."""

    def value(self, r: Array) -> Array:
        return np.maximum(r, 0.0)

    def derivative(self, r: Array) -> Array:
        return np.where(r > 0, 1.0, 0.0)

    def second(self, r: Array) -> Array:
        return np.zeros_like(r)


@dataclass(frozen=True)
class LogLoss:
    """log(1 + exp(-m)) of the margin m."""

    def value(self, r: Array) -> Array:
        return np.asarray(np.logaddexp(0.0, -r))

    def derivative(self, r: Array) -> Array:
        return np.asarray(-np.exp(-np.logaddexp(0.0, r)))

    def second(self, r: Array) -> Array:
        return np.asarray(np.exp(-np.logaddexp(0.0, r) - np.logaddexp(0.0, -r)))


@dataclass(frozen=True, eq=False)
class OnRows:
    """A loss of ``scale * r`` times the weights of the rows."""

    loss: Loss
    w: Array
    scale: float = 1.0

    def value(self, r: Array) -> Array:
        return self.w * self.loss.value(self.scale * r)

    def derivative(self, r: Array) -> Array:
        return self.w * (self.scale * self.loss.derivative(self.scale * r))

    def second(self, r: Array) -> Array:
        return self.w * (self.scale**2 * self.loss.second(self.scale * r))


@dataclass(frozen=True, eq=False)
class OfPredictions:
    """A user's loss of targets and predictions, where a residual r stands for the prediction ``offset + factor * r``.

    It is called with one-dimensional arrays, and returns the loss of each row.
    """

    function: Callable[[Array, Array], Any]
    y: Any
    offset: Array
    factor: Array

    def __call__(self, r: Array) -> Array:
        table = np.reshape(self.offset + self.factor * r, (-1, r.shape[-1]))
        rows = [check.array(self.function(self.y, predicted)) for predicted in table]
        for row in rows:
            if row is None or row.shape != table.shape[1:] or row.dtype.kind not in "fiub":
                shape = "" if row is None else f" of shape {row.shape}"
                raise ValueError(
                    f"the loss returned something else{shape} than before: it must return one real number per row, "
                    "or always one number"
                )
        return np.reshape(np.array(rows, np.float64), r.shape)


@dataclass(frozen=True, eq=False)
class RowLoss:
    """The outputs of a model, ``factor * scores - offset``, and their loss.

    Attributes
    ----------
    factor, offset: arrays (n,).
    loss: Loss of the outputs of all rows.
    unit: float, what the mean loss has to be multiplied by, so that it has the user's unit.
    """

    factor: Array
    offset: Array
    loss: Any
    unit: float = 1.0

    def outputs(self, scores: Array) -> Array:
        """Return the outputs for scores (B, n)."""
        return self.factor * scores - self.offset

    def mean(self, scores: Array) -> float:
        """Return the mean loss for scores (n,)."""
        return float(np.mean(self.loss.value(self.outputs(scores)))) * self.unit


def of_residuals(
    name: str, z: Array, w: Array, scale: float, *, targets: Array, quantile: float = 0.5, delta: float = 1.0
) -> RowLoss:
    """Return a loss of residuals by its name.

    Arguments
    ---------
    name: "squared", "absolute", "quantile", "huber" or "mape".
    z: array (n,), the scores that are the targets; a residual is ``scale`` times the score minus z.
    w: array (n,), weights with mean 1.
    scale: float, the unit of scores.
    targets: array (n,), of which "mape" takes a share.
    quantile, delta: the parameters of two of the losses.
    """
    if name == "squared":
        return RowLoss(np.sqrt(w), np.sqrt(w) * z, Squared(), scale**2)
    if name == "huber":
        return RowLoss(np.ones_like(w), z, OnRows(Huber(delta / scale), w), scale**2)
    if name == "mape":
        w = w * (scale / np.abs(targets))
        return RowLoss(w, w * z, Quantile(), 2.0)
    if name == "absolute":
        return RowLoss(w, w * z, Quantile(), 2.0 * scale)
    return RowLoss(w, w * z, Quantile(quantile), scale)


def of_margins(name: str, sign: Array, w: Array) -> RowLoss:
    """Return a loss of margins, sign times score, by its name: "log" or "hinge"."""
    if name == "hinge":
        return RowLoss(-w * sign, -w, Hinge())
    return RowLoss(sign, np.zeros_like(w), OnRows(LogLoss(), w))


def of_own(loss: Loss, z: Array, w: Array, scale: float) -> RowLoss:
    """Return a loss of residuals in the unit of the targets, as those of ``zerothresh.losses``."""
    return RowLoss(np.ones_like(w), z, OnRows(loss, w, scale))


def of_function(
    function: Callable[[Array, Array], Any], given: Any, z: Array, w: Array, *, centre: float, scale: float
) -> RowLoss:
    """Return a user's loss of targets and predictions, ``centre + scale * score``.

    Arguments
    ---------
    function: of (y, prediction), which returns the loss of each row.
    given: array (n,), the targets that the function gets.
    z: array (n,), the scores where the output is 0.
    w: array (n,), weights with mean 1.
    centre, scale: float, the origin and the unit of scores.
    """
    own = OfPredictions(function, given, centre + scale * z, np.full(w.size, scale))
    return RowLoss(np.ones_like(w), z, OnRows(Custom(own), w))
