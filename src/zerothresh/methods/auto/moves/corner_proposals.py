"""Random swaps between corners of a box, guided by what corner values have been worth so far.

A place is a group of coordinates that are zero or not together; without groups each coordinate is a place of its own.
"""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.settings.box_settings import CORNER_SWAPS
from zerothresh.methods.program.context import Context
from zerothresh.sampling.philox import Stream


class CornerProposals:
    """The places that may be non-zero, the corner values of their coordinates, and what these have been worth.

    ``worth[side, j]`` estimates the change of F that coordinate j brings at its lower (0) or upper (1) corner. It is
    learned from the changes of F by swaps, as the weights of a linear model by normalised least mean squares
    (Widrow and Hoff 1960).
    """

    def __init__(self, context: Context) -> None:
        assert context.box is not None
        free, groups, self.k = context.free(), context.constraint.groups, context.k
        labels = free if groups is None else groups[free]
        order = np.argsort(labels, kind="stable")
        names, starts, sizes = np.unique(labels[order], return_index=True, return_counts=True)
        # One row of coordinates per place; smaller ones are filled up with their own last coordinate.
        columns = np.minimum(np.arange(sizes.max(initial=1)), sizes[:, None] - 1)
        self.members = free[order][starts[:, None] + columns]
        forced = context.constraint.include if groups is None else np.unique(groups[context.constraint.include])
        self.kept = np.isin(names, forced)  # never dropped
        low, high = context.box.low, context.box.high
        self.low, self.high = low, high
        self.dense = self.k >= len(self.members)  # if all places may be non-zero, 0 is a value like any other
        # Else 0 is no corner, even if it is a bound: the other bound is then both corners.
        sparse = np.stack([np.where(low < 0, low, high), np.where(high > 0, high, low)])
        self.corners = np.stack([low, high]) if self.dense else sparse
        self.worth = np.zeros((2, context.d))

    def support(self, theta: Array) -> Indices:
        """The places at which a point is not 0, and those that always count; all if all may be non-zero."""
        if self.dense:
            return np.arange(len(self.members))
        return np.flatnonzero((theta[self.members] != 0).any(axis=1) | self.kept)

    def room(self, theta: Array) -> int:
        """How many places may change at once without dropping others."""
        return len(self.members) if self.dense else self.k - self.support(theta).size

    def swap(self, theta: Array, size: int, rng: Stream) -> Array:
        """Return a point with up to ``size`` places dropped and ``size`` others put at corners.

        Places are dropped only where there is no room. Each choice is the best by worth of a few random ones.
        """
        support = self.support(theta)
        outside = np.ones(len(self.members), bool)
        outside[support] = False
        others = np.flatnonzero(outside)
        adds = min(size, others.size)
        droppable = support[~self.kept[support]]
        drops = min(max(0, support.size + adds - self.k), droppable.size)
        adds = min(adds, self.k - support.size + drops)
        out = theta.copy()
        if drops:
            drawn = _draws(droppable, drops, rng)
            out[self.members[_best(drawn, -self._of(theta)[drawn])]] = 0.0
        if adds:
            drawn = _draws(others, adds, rng)
            sides = (rng.uniform(drawn.size * self.members.shape[1]) < 0.5).astype(np.int64)
            sides = sides.reshape(*drawn.shape, -1)
            scores = self.worth[sides, self.members[drawn]].sum(axis=-1)
            best = np.argmin(scores, axis=1)[:, None]
            chosen = np.take_along_axis(drawn, best, axis=1)[:, 0]
            side = np.take_along_axis(sides, best[..., None], axis=1)[:, 0]
            out[self.members[chosen]] = self.corners[side, self.members[chosen]]
        elif not drops:  # every place is in the support: other corners
            chosen = self.members[support[rng.subset(support.size, min(size, support.size))]]
            up = (rng.uniform(chosen.size) < 0.5).reshape(chosen.shape)
            up = np.where(theta[chosen] == self.low[chosen], True, up & (theta[chosen] != self.high[chosen]))
            out[chosen] = np.where(up, self.high[chosen], self.low[chosen])
        return out

    def revalue(self, theta: Array, rng: Stream) -> Array:
        """Return a point with one coordinate at 0, or at a corner if all may be non-zero, or a random step further."""
        support, u = self.support(theta), rng.uniform(6)
        anywhere = support.size < self.k and (u[5] < 0.5 or not support.size)
        place = int(u[0] * len(self.members)) if anywhere else int(support[int(u[0] * support.size)])
        j = int(self.members[place, int(u[1] * self.members.shape[1])])
        out = theta.copy()
        if u[2] < CORNER_SWAPS.zeros:
            out[j] = self.corners[int(u[4] < 0.5), j] if self.dense else 0.0
            return out
        reach = (self.high - self.low)[j] * 2.0 ** -int(u[3] * CORNER_SWAPS.lengths)
        value = theta[j] + (reach if u[4] < 0.5 else -reach)
        if not self.low[j] <= value <= self.high[j]:
            value = 2.0 * theta[j] - value
        out[j] = min(max(value, self.low[j]), self.high[j])
        return out

    def _of(self, theta: Array) -> Array:
        """What each place of a point seems to be worth, (places,)."""
        values = theta[self.members]
        side = (values > 0).astype(np.int64)
        return np.asarray(np.where(values != 0, self.worth[side, self.members], 0.0).sum(axis=1))

    def learn(self, theta: Array, points: list[Array], changes: Array) -> None:
        """Fit the worths to the changes of F by candidates, one after the other."""
        if self.dense:
            return  # nothing is chosen by worth
        for point, change in zip(points, changes.tolist(), strict=True):
            moved = np.flatnonzero(point != theta)
            before, after = theta[moved], point[moved]
            old, new = (before > 0).astype(np.int64), (after > 0).astype(np.int64)
            signs_old, signs_new = -(before != 0).astype(float), (after != 0).astype(float)
            expected = signs_old @ self.worth[old, moved] + signs_new @ self.worth[new, moved]
            size = float(np.abs(signs_old).sum() + signs_new.sum())
            step = CORNER_SWAPS.rate * (change - expected) / max(size, 1.0)
            self.worth[old, moved] += step * signs_old
            self.worth[new, moved] += step * signs_new


def _draws(places: Indices, size: int, rng: Stream) -> Indices:
    """Return ``size`` rows of a few random places each; no place is drawn twice, and all rows are equally long."""
    tries = max(1, min(CORNER_SWAPS.tries, places.size // size))
    return places[rng.subset(places.size, size * tries)].reshape(size, tries)


def _best(drawn: Indices, scores: Array) -> Indices:
    """Return the place of lowest score in each row."""
    return np.take_along_axis(drawn, np.argmin(scores, axis=1)[:, None], axis=1)[:, 0]
