"""Calls that return many outputs at once: from the outputs of a call to F and to the components that a method sees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.arrays import Array
from zerothresh.basics.averages import mean
from zerothresh.losses import Loss


@dataclass(frozen=True)
class VectorOutputs:
    """What is known of the outputs of a call.

    Arguments
    ---------
    kind: str, "residuals" or "components", for messages and the identity of a run.
    loss: Loss of one output; F is its mean over the outputs that are there.
    whole: bool: whether the method sees F as its only component; otherwise it sees one component per output.
    masked: bool, default False: whether NaN is a missing output, which is left out of the mean.
    m: int, default None: the number of outputs; None before the first call.
    """

    kind: str
    loss: Loss
    whole: bool
    masked: bool = False
    m: int | None = None

    @property
    def size(self) -> int:
        """The number of outputs; 1 as long as it is not known."""
        return 1 if self.m is None else self.m

    @property
    def components(self) -> int:
        """The number of components that the method sees."""
        return 1 if self.whole else self.size

    def losses(self, table: Array) -> Array:
        """Return the loss of each output, in the shape of the outputs."""
        with np.errstate(all="ignore"):
            return self.loss.value(table)

    def mean_loss(self, losses: Array) -> float:
        """Return F from the losses of one call, (m,): their mean over the outputs that are there."""
        return mean(losses[~np.isnan(losses)] if self.masked else losses)

    def values(self, table: Array) -> Array:
        """Return F for each call, from outputs of shape (calls, m)."""
        return np.array([self.mean_loss(row) for row in self.losses(table)])

    def seen(self, table: Array) -> Array:
        """Return what the method sees of each call: (calls, components).

        A missing output counts as the mean of the others, so that the mean of all components is F.
        """
        losses = self.losses(table)
        if not self.whole and not self.masked:
            return losses
        values = np.array([self.mean_loss(row) for row in losses])[:, None]
        return values if self.whole else np.where(np.isnan(losses), values, losses)

    def usable(self, table: Array) -> NDArray[np.bool_]:
        """Return which calls can be used, (calls,): outputs and losses are finite, except for some missing outputs."""
        losses = self.losses(table)
        finite = np.isfinite(losses) & np.isfinite(table)
        if not self.masked:
            return np.asarray(finite.all(axis=1))
        return np.asarray((finite | np.isnan(table)).all(axis=1) & finite.any(axis=1))
