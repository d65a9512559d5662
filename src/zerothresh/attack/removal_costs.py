"""How much the loss of a few-pixel search rises when groups of its support are removed, as far as races have shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from zerothresh.methods.program.context import Context

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_RECENT = 0.3  # weight of the newest race in the estimated cost of removing a group
_RECENT_IN_TYPICAL = 0.05  # the same for the mean over all groups
_CHOICES = 3  # of so many groups, the one that is the cheapest to remove goes


class RemovalCosts:
    """Estimates, for each group of the support, how much the loss rises when the group is removed."""

    def __init__(self, count: int) -> None:
        self.rise, self.known = np.zeros(count), np.zeros(count, bool)
        self.typical = 0.0

    def extended(self, more: int) -> RemovalCosts:
        """The same with more groups, which cost nothing to remove because they are 0 yet."""
        other = RemovalCosts(self.rise.size + more)
        other.rise[: self.rise.size], other.known[: self.rise.size] = self.rise, self.known
        other.typical = self.typical
        return other

    def choose(self, size: int, count: int, context: Context) -> Indices:
        """``size`` groups to remove for each of ``count`` candidates; each the cheapest of three, if there are enough.

        Groups are given by their places in the support.
        """
        groups = self.rise.size
        drawn = np.argsort(context.rng.uniform(count * groups).reshape(count, groups), axis=1)
        choices = drawn[:, : size * min(_CHOICES, groups // size)].reshape(count, size, -1)
        cheapest = np.argmin(self.rise[choices], axis=2)
        return np.asarray(np.take_along_axis(choices, cheapest[..., None], axis=2)[..., 0])

    def learn(self, removed: Sequence[Indices], rises: Array) -> None:
        """Take in the result of a race: what each candidate removed, and by how much its loss rose."""
        for groups, rise in zip(removed, rises.tolist(), strict=True):
            each = rise * (1 / groups.size)
            for group in groups.tolist():
                self.rise[group] += (_RECENT if self.known[group] else 1.0) * (each - self.rise[group])
                self.known[group] = True
            self.typical += _RECENT_IN_TYPICAL * (each - self.typical)

    def forget(self, replaced: Indices) -> None:
        """Start again for groups that were replaced by others, with the typical cost."""
        self.rise[replaced] = self.typical
        self.known[replaced] = False
