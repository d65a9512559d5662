r"""A quadratic model of F around one point, the anchor, on all coordinates of a sum constraint.

Slopes and curvatures are measured by differences along e_j, or along e_j - e_r where the sum stays, so that the
coordinate r has none of its own. Mixed second differences are measured column by column, as they are needed. The points
that are asked for keep the sum and the box, but may have more than k non-zeros, or small ones.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.shares import ShareSet
from zerothresh.methods.auto.moves.feasible_probes import pivot_of, support_of
from zerothresh.methods.auto.moves.tangent_descent import TangentDescent
from zerothresh.methods.auto.settings.constraint_settings import FEASIBLE_DESCENT
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class AnchoredModel:
    """The model, and which of its entries are known.

    Arguments
    ---------
    descent: how values are asked for.
    feasible: the constraint.
    anchor, F: the point, feasible, and F there.
    h: the step of a difference.
    """

    def __init__(self, descent: TangentDescent, feasible: ShareSet, anchor: Array, F: float, h: float) -> None:
        self.descent, self.feasible, self.anchor, self.F = descent, feasible, anchor, F
        self.support = support_of(feasible, anchor)
        self.pivot = pivot_of(feasible, anchor, self.support) if feasible.fixed_total else -1
        room = float(min(anchor[self.pivot] - feasible.low[self.pivot], np.inf)) if self.pivot >= 0 else np.inf
        self.h = min(h, 0.5 * room) if room > 0 else h
        self.free = np.flatnonzero(feasible.high > feasible.low)
        self.still = np.empty(0, np.int64)
        self.g = np.zeros(anchor.size)
        self.steps = np.zeros(anchor.size)
        self.columns: dict[int, Array] = {}
        self.singles = np.zeros(anchor.size)  # F at the anchor plus half a step, minus F at the anchor

    def price(self) -> int:
        """Return the calls that slopes and curvatures of all coordinates cost."""
        return 2 * self.free.size * self.descent.context.n

    def measure(self) -> Generator[Probes, Answers, None]:
        """Measure the slope and the curvature of each coordinate."""
        free = self.free[self.free != self.pivot]
        up = np.minimum(self.feasible.high[free] - self.anchor[free], self.h)
        down = np.minimum(self.anchor[free] - self.feasible.low[free], self.h)
        if self.pivot >= 0:  # the pivot moves against it
            up = np.minimum(up, self.anchor[self.pivot] - self.feasible.low[self.pivot])
            down = np.minimum(down, self.feasible.high[self.pivot] - self.anchor[self.pivot])
        steps = np.where(up >= down, up, -down)
        moved = np.abs(steps) > FEASIBLE_DESCENT.least_room * self.h
        free, steps = free[moved], steps[moved]
        self.free = np.union1d(free, [self.pivot]) if self.pivot >= 0 else free
        self.steps[free] = steps
        self.still = np.setdiff1d(self.support, self.free)  # members without room, which nothing is known of
        points = [self._at({j: 1.0}) for j in free.tolist()] + [self._at({j: 0.5}) for j in free.tolist()]
        changes = (yield from self.descent.values(points)) - self.F
        full, half = changes[: free.size], changes[free.size :]
        self.g[free] = 2.0 * (half + half - 0.5 * full) / steps
        self.singles[free] = half
        diagonal = (full - 2.0 * half) / (0.5 * steps) ** 2
        for j, value in zip(free.tolist(), diagonal.tolist(), strict=True):
            self.columns[j] = self._new_column()
            self.columns[j][j] = value
        for j in [*self.still.tolist(), *([self.pivot] if self.pivot >= 0 else [])]:
            self.columns[j] = np.zeros(self.anchor.size)

    def _new_column(self) -> Array:
        column = np.full(self.anchor.size, np.nan)
        column[self.still] = 0.0
        if self.pivot >= 0:
            column[self.pivot] = 0.0
        return column

    def _at(self, shares: dict[int, float]) -> Array:
        """Return the anchor plus parts of the steps of some coordinates."""
        point = self.anchor.copy()
        for j, share in shares.items():
            point[j] += share * self.steps[j]
            if self.pivot >= 0:
                point[self.pivot] -= share * self.steps[j]
        return point

    def missing(self, rows: Indices, members: Indices) -> list[tuple[int, int]]:
        """Return the pairs of a row and a member whose mixed difference is not known."""
        pairs, seen = [], set[tuple[int, int]]()
        for member in members.tolist():
            unknown = rows[np.isnan(self.columns[member][rows])]
            for j in unknown.tolist():
                if (member, j) not in seen and j != member:
                    seen |= {(j, member), (member, j)}
                    pairs.append((j, member))
        return pairs

    def learn(self, pairs: list[tuple[int, int]]) -> Generator[Probes, Answers, None]:
        """Measure mixed second differences."""
        chunk = FEASIBLE_DESCENT.chunk
        for begin in range(0, len(pairs), chunk):
            part = pairs[begin : begin + chunk]
            values = yield from self.descent.values([self._at({a: 0.5, b: 0.5}) for a, b in part])
            for (a, b), value in zip(part, values.tolist(), strict=True):
                mixed = value - self.F - self.singles[a] - self.singles[b]
                self.columns[a][b] = self.columns[b][a] = mixed / (0.5 * self.steps[a] * 0.5 * self.steps[b])

    def block(self, rows: Indices, members: Indices) -> Array:
        """Return the second derivatives of some rows by some members, NaN where they are not known."""
        return np.array([self.columns[member][rows] for member in members.tolist()]).T.reshape(rows.size, members.size)

    def knows(self, rows: Indices, members: Indices) -> bool:
        """Whether the mixed differences of rows and members are known."""
        return not np.isnan(self.block(rows, members)).any()

    def slopes(self, x: Array, rows: Indices) -> Array:
        """Return the slopes of some rows at x, NaN where they are not known."""
        moved = np.flatnonzero(x - self.anchor)
        return self.g[rows] + self.block(rows, moved) @ (x - self.anchor)[moved]

    def value(self, x: Array) -> float:
        """Return the model at x."""
        moved = np.flatnonzero(x - self.anchor)
        step = (x - self.anchor)[moved]
        return self.F + float(self.g[moved] @ step + 0.5 * step @ self.block(moved, moved) @ step)
