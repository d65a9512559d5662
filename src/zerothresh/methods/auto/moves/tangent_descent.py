"""Descent on one support within a constraint: differences along feasible displacements, and a quadratic model.

Every point that is asked for is feasible. The model is minimised within the set, without calls: on a support, limits
and a sum are a small quadratic program; other convex sets are projected onto.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.shares import ShareSet
from zerothresh.methods.auto.models.share_model import minimise_projected, minimise_shares
from zerothresh.methods.auto.moves.feasible_probes import displacements, support_of, typical_size
from zerothresh.methods.auto.settings.constraint_settings import FEASIBLE_DESCENT
from zerothresh.methods.auto.settings.floating_point import EPS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class TangentDescent:
    """Where a descent stands.

    Arguments
    ---------
    context: the arm's branch of the run; it is not moved by the descent itself.
    noise: the standard deviation of F, 0 if values are not random.
    """

    def __init__(self, context: Context, noise: float = 0.0) -> None:
        further = context.constraint.further
        assert further is not None
        self.context, self.feasible, self.noise = context, further, noise
        self.margin = FEASIBLE_DESCENT.noise_factor * noise

    def values(self, points: list[Array]) -> Generator[Probes, Answers, Array]:
        """Return F at points, a chunk per round."""
        out: list[float] = []
        for begin in range(0, len(points), FEASIBLE_DESCENT.chunk):
            part = points[begin : begin + FEASIBLE_DESCENT.chunk]
            out += (yield from self.context.values(part)).mean(axis=1).tolist()
        return np.array(out)

    def floor(self, F: float) -> float:
        """Return the fall of F that is more than rounding or noise."""
        return self.margin + FEASIBLE_DESCENT.rounding * EPS * abs(F)

    def descend(
        self, theta: Array, F: float, iterations: int, size: float
    ) -> Generator[Probes, Answers, tuple[Array, float]]:
        """Minimise F on the support of theta; return the point and F there.

        Arguments
        ---------
        theta, F: where it begins.
        iterations: the largest number of steps.
        size: the typical size of a coordinate.
        """
        settings, S = FEASIBLE_DESCENT, support_of(self.feasible, theta)
        h, began = settings.first_step * size, F
        H: Array | None = None
        g_before = x_before = None
        measure, ratio = True, 1.0
        for _ in range(iterations):
            D = displacements(self.feasible, theta, S, h)
            if not D.size:
                break
            pairs = D.shape[0] * (D.shape[0] - 1) // 2
            affordable = pairs * self.context.n <= settings.pair_share * self.context.left
            g, H = yield from self._model(
                theta, F, S, D, H, measure=measure and (affordable or H is None), mixed=affordable
            )
            if g_before is not None and x_before is not None and not measure:
                H = _secant(H, theta[S] - x_before, g - g_before)
            covered = (D[:, S] != 0).any(axis=0)
            y = self._minimum(theta, S, g, H, covered)
            step = y - theta[S]
            predicted = -float(g @ step + 0.5 * step @ H @ step)
            if not predicted > max(self.floor(F), settings.negligible * (began - F)):
                break
            found, at = yield from self._line(theta, F, S, step)
            if found is None:
                if h <= settings.shortest_step * size:
                    break
                h, measure, H = max(h * settings.step_share, settings.shortest_step * size), True, None
                continue
            fall = F - at
            ratio = fall / predicted
            g_before, x_before = g, theta[S].copy()
            theta, F = found, at
            measure = abs(ratio - 1.0) > settings.distrusted
            if abs(ratio - 1.0) > settings.trusted and not self.noise:
                longest = float(np.abs(step).max())
                h = min(max(settings.step_share * longest, settings.shortest_step * size), h)
            elif fall <= self.floor(F):
                break
        return theta, F

    def _line(
        self, theta: Array, F: float, S: Indices, step: Array
    ) -> Generator[Probes, Answers, tuple[Array | None, float]]:
        """Return the first point along a step at which F is lower; None if there is none."""
        t = 1.0
        for _ in range(1 + FEASIBLE_DESCENT.most_backtracks):
            trial = theta.copy()
            trial[S] += t * step
            trial = self.made_feasible(trial, S)
            value = float((yield from self.values([trial]))[0])
            if value < F - self.floor(F):
                return trial, value
            t *= FEASIBLE_DESCENT.backtrack
        return None, F

    def made_feasible(self, point: Array, S: Indices) -> Array:
        """Return the point, projected where rounding has taken it out of the set."""
        if self.feasible.holds(point):
            return point
        projected = self.feasible.project_on(point, S)
        return self.feasible.project(point) if projected is None else projected

    def _model(
        self, theta: Array, F: float, S: Indices, D: Array, H: Array | None, *, measure: bool, mixed: bool
    ) -> Generator[Probes, Answers, tuple[Array, Array]]:
        """Return slopes and curvatures on the support, in the space that the displacements span."""
        p = D.shape[0]
        P = np.linalg.pinv(D[:, S].T)  # (p, m): coordinates in terms of displacements
        points = [theta + row for row in D]
        if measure:
            points += [theta + 0.5 * row for row in D]
        changes = (yield from self.values(points)) - F
        full = changes[:p]
        if measure:
            half = changes[p:]
            curvature = (full - 2.0 * half) / 0.5**2
            G = np.diag(curvature)
            slopes = 2.0 * (half + half - 0.5 * full)
            if mixed:
                a, b = np.triu_indices(p, 1)
                both = (yield from self.values([theta + 0.5 * (D[i] + D[j]) for i, j in zip(a, b, strict=True)])) - F
                G[a, b] = G[b, a] = (both - half[a] - half[b]) / 0.5**2
            H = P.T @ G @ P
        else:
            assert H is not None
            slopes = full - 0.5 * np.einsum("ij,jk,ik->i", D[:, S], H, D[:, S])
        return P.T @ slopes, H

    def _minimum(self, theta: Array, S: Indices, g: Array, H: Array, covered: Array) -> Array:
        """Return the minimum of the model on the support, within the set; coordinates not covered stay."""
        feasible, x = self.feasible, theta[S]
        if isinstance(feasible, ShareSet):
            low = np.where(covered, feasible.chosen_low[S], x)
            high = np.where(covered, feasible.chosen_high[S], x)
            return minimise_shares(H, g, x, low, high, feasible.totals)

        def project(y: Array) -> Array:
            point = np.zeros(theta.size)
            point[S] = np.where(covered, y, x)
            near = feasible.project_on(point, S)
            return x if near is None else near[S]

        return minimise_projected(H, g, x, project)

    def size(self, theta: Array) -> float:
        """Return the typical size of a coordinate."""
        return typical_size(self.feasible, theta)


def _secant(H: Array, step: Array, change: Array) -> Array:
    """Return H, changed as little as possible so that it explains a change of the slopes (Powell, symmetric)."""
    square = float(step @ step)
    if not square > 0:
        return H
    rest = change - H @ step
    outer = np.outer(rest, step)
    return np.asarray(H + (outer + outer.T) / square - float(rest @ step) * np.outer(step, step) / square**2)
