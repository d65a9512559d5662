"""Judge exchanges by second derivatives: one column of the Hessian tells what all exchanges for a coordinate gain.

The column of coordinate j on a support of k coordinates costs k + 2 values of F, and then the k exchanges that bring
j in are known as well as a quadratic model can tell. Trying one of them costs about as much.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.measured_hessian import MeasuredHessian
from zerothresh.methods.auto.moves.restarts import typical_size
from zerothresh.methods.auto.position import Position
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.support_search_settings import SUPPORT_SEARCH
from zerothresh.methods.program.context import Asks
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class ColumnProbe:
    """The Hessian around one point, as far as it has been measured, and the coordinates whose exchanges are known.

    Arguments
    ---------
    at: the position, at a local minimum whose gradient is known.
    """

    def __init__(self, at: Position) -> None:
        self.at, self.theta, self.C = at, at.theta, at.C
        self.x, self.g = at.theta[at.C], at.g
        self.S = np.flatnonzero(self.x)
        self.hessian = MeasuredHessian(at.C.size)
        n, k = at.oracle.m, at.context.k
        # curvature differs less between components than slopes do: some of them are enough to tell what to try
        self.m = min(n, max(SUPPORT_SEARCH.least_components * k, math.ceil(SUPPORT_SEARCH.component_share * n)))
        self.g_some = at.component_gradients[: self.m].mean(axis=0)
        self.judged = np.isin(np.arange(at.C.size), self.S)  # coordinates whose exchanges are known
        self.fixed = np.flatnonzero(np.isin(at.C, at.context.constraint.include))
        self.queue: list[int] = []  # coordinates to bring in next, drawn ahead where rounds may be wide

    @property
    def here(self) -> bool:
        """Whether the position still stands where this probe was begun."""
        return self.at.theta is self.theta and self.at.C is self.C

    @property
    def rest_of_the_hessian(self) -> int:
        """The number of calls that the unknown second derivatives would cost."""
        known, oracle = self.hessian.known, self.at.oracle
        columns = int((~known.all(axis=0)).sum())
        entries = (int((~known).sum()) + int((~np.diag(known)).sum())) // 2
        return (columns * oracle.value_cost + oracle.gradient_cost(entries)) * self.m // oracle.m

    def measure(self, j: int, rows: Indices) -> Asks:
        """Measure those entries of column j that are unknown, by a difference of two gradients."""
        at, rows = self.at, self.hessian.missing(rows, j)
        if not rows.size:
            return
        if at.context.width > 1:
            self._foresee([j, *self.S.tolist(), *self.queue[: at.context.width]])
        point, moved = self._beside(j)
        values = (yield from at.context.values([point], at.oracle.components[: self.m]))[0]
        slopes = yield from at.oracle.slopes(point, self.C[rows], slice(0, self.m), values)
        change = slopes.mean(axis=0) - self.g_some[rows]
        self.hessian.add(rows, j, change / moved if abs(moved) > TINY else np.zeros(rows.size))

    def _beside(self, j: int) -> tuple[Array, float]:
        """Return a point at some way along coordinate j, and how far it is."""
        at = self.at
        step = typical_size(at) * (-1.0 if self.g[j] > 0 else 1.0)
        point = self.theta.copy()
        point[self.C[j]] += step
        point = at.context.inside(point)
        moved = float(point[self.C[j]] - self.theta[self.C[j]])
        if abs(moved) < SUPPORT_SEARCH.least_room * abs(step):  # a bound is in the way: look to the other side
            point = self.theta.copy()
            point[self.C[j]] -= step
            point = at.context.inside(point)
            moved = float(point[self.C[j]] - self.theta[self.C[j]])
        return point, moved

    def _foresee(self, columns: list[int]) -> None:
        """Say that these columns will be measured, on the support and their own row."""
        oracle = self.at.oracle
        for j in columns:
            rows = self.hessian.missing(np.union1d(self.S, [j]), j)
            if rows.size:
                point, _ = self._beside(j)
                self.at.context.foresee([point], oracle.components[: self.m])
                oracle.foresee_slopes(point, self.C[rows], self.m)

    def draw(self) -> int | None:
        """Draw a coordinate to bring in: those of steep slopes are likely; None if all have been judged."""
        left = np.flatnonzero(~self.judged)
        if not left.size:
            return None
        if self.queue:
            return self.queue.pop(0)
        gumbel = -np.log(-np.log(np.maximum(self.at.context.rng.uniform(left.size), TINY)))
        scores = np.log(np.maximum(np.abs(self.g[left]), TINY)) + SUPPORT_SEARCH.temperature * gumbel
        if self.at.context.width > 1:
            self.queue = left[np.argsort(-scores, kind="stable")].tolist()
            return self.queue.pop(0)
        return int(left[np.argmax(scores)])

    def promising(self, j: int) -> Generator[Probes, Answers, list[Array]]:
        """Measure what decides about exchanges for j; return the new points that promise a lower F, the best first."""
        for a in self.S.tolist():
            yield from self.measure(a, self.S)
        yield from self.measure(j, np.append(self.S, j))
        self.judged[j] = True
        changes, points = self.hessian.exchanges(self.x, self.g, self.S, j, self.fixed)
        order = np.argsort(changes, kind="stable")
        return [self._whole(points[a]) for a in order.tolist() if changes[a] < -self.at.negligible]

    def best_supports(self) -> list[Array]:
        """Return minimisers of the whole quadratic model on many supports, the lowest first."""
        rng, k, c = self.at.context.rng, min(self.at.context.k, self.C.size), self.C.size
        starts = [rng.subset(c, k) for _ in range(SUPPORT_SEARCH.model_starts)]
        points = self.hessian.best_supports(self.x, self.g, k, [self.S, *starts], self.fixed)
        return [self._whole(y) for y in points]

    def _whole(self, y: Array) -> Array:
        """Return a point of all coordinates, feasible."""
        point = np.zeros(self.theta.size)
        point[self.C] = y
        return self.at.context.constraint.project(point)
