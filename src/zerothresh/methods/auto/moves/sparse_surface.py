"""Which k coordinates lower F most, from a quadratic regression through all noisy values together.

Where noise hides single steps, the values around many points still add up to one model of F on all coordinates. Its
best sparse minimiser is where the next values are asked for, and coordinates that do not come into question any more
are not moved. Steps are never judged one by one, and no value is forgotten before it is too far away.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.quasi_newton import QuasiNewton
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.settings.descent_settings import SPARSE_SURFACE as SETTINGS
from zerothresh.methods.auto.settings.descent_settings import SURFACE
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class SparseSurface:
    """A quadratic model of F on all free coordinates, and the search for its sparse minimiser.

    Arguments
    ---------
    context: the run.
    radius: float, how far from the point values are asked for at first.
    """

    def __init__(self, context: Context, radius: float) -> None:
        self.context, self.C, self.theta = context, context.free(), context.theta
        self.radius, self.max_radius = radius, SURFACE.largest_radius * radius
        self.T: Indices = np.arange(self.C.size)  # places in C of the coordinates that come into question
        self.g, self.H = np.zeros(self.C.size), np.eye(self.C.size)
        self.F = math.inf  # the mean of the values at theta
        self._before = self.theta  # the point before theta
        self._x = np.empty((0, self.C.size))  # where F was sampled
        self._f = np.empty(0)
        self._opened = 0  # how many of them were known when the present descent began
        self._posterior: tuple[Indices, Array, float, float] = (self.T, np.eye(1), 1.0, 0.0)

    def reopen(self, theta: Array) -> None:
        """Go on from another point with all coordinates in question; values that are known near it still count."""
        self.theta = self._before = theta
        self.T = np.arange(self.C.size)
        self._opened = self._f.size

    @property
    def settled(self) -> bool:
        """Whether as few coordinates come into question as there will be."""
        return bool(self.T.size <= SETTINGS.candidates * self.context.k)

    @property
    def frames(self) -> int:
        """The number of frames of the next round."""
        seen = self._f.size - self._opened
        return max(int(SETTINGS.growth * seen / (2 * self.T.size)), 1) if seen else SETTINGS.first_frames

    @property
    def round_size(self) -> int:
        """The number of points of the next round."""
        return 2 * self.T.size * self.frames + 2 * self._repeats

    @property
    def _repeats(self) -> int:
        return max(math.ceil(SETTINGS.centre_share * 2 * self.T.size * self.frames), SETTINGS.least_repeats)

    def search(self) -> Generator[Probes, Answers, Array]:
        """Ask for values around the point, fit the model, and return its sparse minimiser, where the next round is."""
        context = self.context
        repeats, moves = self._repeats, np.concatenate([self._random_frame() for _ in range(self.frames)])
        points = np.repeat(self.theta[None], 2 * len(moves), axis=0)
        points[:, self.C[self.T]] += np.concatenate([moves, -moves])  # so that curvature is not mistaken for slope
        points = context.inside(points)
        centres = [self.theta] if self.theta is self._before else [self.theta, self._before]
        points = np.concatenate([points, np.repeat(np.array(centres), repeats, axis=0)])
        values = (yield from context.values([*points])).mean(axis=1)
        self._x, self._f = np.concatenate([self._x, points[:, self.C]]), np.concatenate([self._f, values])
        here, *before = np.split(values[2 * len(moves) :], len(centres))
        self.F = float(here.mean())
        for there in before:  # asked for anew: a value that was low by chance must not stop the search
            error = math.sqrt((float(here.var(ddof=1)) + float(there.var(ddof=1))) / repeats)
            if float(there.mean()) + SETTINGS.worse * error < self.F:  # the model promised too much from too far away
                self.theta, self.F = self._before, float(there.mean())
                self.radius /= square(SURFACE.shrink)
        self._fit()
        self._before, self.theta = self.theta, self._minimiser()
        return self.theta

    def _random_frame(self) -> Array:
        """Draw random orthogonal moves: most of them as long as the radius, some half as long."""
        rng, p = self.context.rng, self.T.size
        q, _ = np.linalg.qr(rng.normal(p * p).reshape(p, p))
        return np.asarray(q * np.where(rng.uniform(p) < SETTINGS.short_share, 0.5, 1.0)[:, None] * self.radius)

    def _fit(self) -> None:
        """Fit value, slopes and Hessian at theta to the values nearby, and adapt the radius.

        The Hessian is the mean curvature in all directions, give or take half of it on the steepest coordinates.
        """
        c, moves = self.C.size, (self._x - self.theta[self.C]) / self.radius
        near = np.linalg.norm(moves, axis=1) <= SETTINGS.near
        moves, values = moves[near], self._f[near]
        plain = np.column_stack([np.ones(len(moves)), moves, 0.5 * np.square(moves).sum(axis=1)])
        w = np.linalg.lstsq(plain, values, rcond=None)[0]
        freedom = max(len(values) - plain.shape[1], 1)
        noise = max(float(np.linalg.norm(values - plain @ w)) / math.sqrt(freedom), math.sqrt(TINY))
        bend = max(float(w[-1]), SURFACE.least_curvature * float(np.linalg.norm(w[1:-1])) / math.sqrt(c), TINY)
        M = np.sort(np.argsort(-np.abs(w[1:-1]), kind="stable")[: SETTINGS.most_modelled])
        M = np.union1d(M, np.flatnonzero(self.theta[self.C]))
        rows, columns = np.triu_indices(M.size)
        half_on_diagonal = np.where(rows == columns, 0.5, 1.0)
        X = np.column_stack([plain[:, :-1], moves[:, M[rows]] * moves[:, M[columns]] * half_on_diagonal])
        weight = np.full(X.shape[1], square(noise / (SURFACE.prior_spread * bend)))
        weight[: c + 1] = SURFACE.ridge
        A = X.T @ X + np.diag(weight)
        left = values - bend * plain[:, -1]
        w = np.linalg.solve(A, X.T @ left)
        self.g = w[1 : c + 1] / self.radius
        H = np.zeros((c, c))
        H[M[rows], M[columns]] = w[c + 1 :]
        H[M[columns], M[rows]] = H[M[rows], M[columns]]
        eigenvalues, axes = np.linalg.eigh(H + bend * np.eye(c))
        self.H = (axes * np.maximum(eigenvalues, SURFACE.least_curvature * bend)) @ axes.T / square(self.radius)
        self._posterior = M, np.linalg.inv(A) * square(noise / self.radius), self.radius, SURFACE.prior_spread * bend
        self._adapt_radius(X, moves, left - X @ w, A)

    def _adapt_radius(self, X: Array, moves: Array, residuals: Array, A: Array) -> None:
        """Shorten the radius if a cubic term shows clearly; lengthen it if there is no sign of one."""
        p = self.T.size
        solved = np.linalg.solve(A, X.T)
        freedom = len(residuals) - float(np.einsum("ij,ji->", X, solved))
        if freedom < 2 * p:
            return
        cubes = moves[:, self.T] * np.square(moves).sum(axis=1, keepdims=True)
        cubes = cubes - X @ (solved @ cubes)  # the part that no quadratic explains
        gram, projection = cubes.T @ cubes, cubes.T @ residuals
        if not np.linalg.cond(gram) < SURFACE.worst_condition:
            return
        variance = max(float(residuals @ residuals) / freedom, TINY)
        statistic = float(projection @ np.linalg.solve(gram, projection)) / variance  # chi squared if F is quadratic
        if statistic > p + SETTINGS.cubic_significance * math.sqrt(2 * p):
            self.radius /= SURFACE.shrink
        elif statistic < p:
            self.radius = min(SURFACE.grow * self.radius, self.max_radius)

    def _minimiser(self) -> Array:
        """Return the sparse minimiser of the model near theta, and keep the coordinates that come into question."""
        context, C, k = self.context, self.C, self.context.k
        model, damping = QuasiNewton(C, self.H), 0.0
        for _ in range(SETTINGS.dampings):
            theta = context.H(model.sparse_minimiser(self.theta, self.g, C, k, context.constraint, damping))
            if float(np.linalg.norm(theta - self.theta)) <= SURFACE.longest_step * self.radius:
                break
            damping = max(2 * damping, SETTINGS.first_damping)
        self._choose(theta)
        return theta

    def _choose(self, theta: Array) -> None:
        """Keep the coordinates whose slope at theta might pay for the least one of its support, and a few others."""
        C, k, move = self.C, self.context.k, (theta - self.theta)[self.C]
        slopes, S = np.abs(self.g + self.H @ move), np.flatnonzero(theta[C])
        optimistic = slopes + SETTINGS.deviations * self._slope_errors(move)
        optimistic[S] = np.inf
        worth = float(np.abs(theta[C[S]]).min(initial=np.inf)) * float(np.trace(self.H)) / C.size
        many = max(int((optimistic > worth).sum()), math.ceil(SETTINGS.candidates * k))
        self.T = np.sort(np.argsort(-optimistic, kind="stable")[:many])

    def _slope_errors(self, move: Array) -> Array:
        """Return the standard errors of the slopes after a move, from those of slopes and second derivatives here."""
        (M, covariance, radius, spread), c = self._posterior, self.C.size
        rows, columns = np.triu_indices(M.size)
        parts = np.zeros((c, len(covariance)))
        parts[np.arange(c), 1 + np.arange(c)] = 1.0
        at = c + 1 + np.arange(rows.size)
        parts[M[rows], at] += move[M[columns]] / radius
        off = rows != columns
        parts[M[columns[off]], at[off]] += move[M[rows[off]]] / radius
        variance = np.einsum("ij,jk,ik->i", parts, covariance, parts)
        unknown = ~np.isin(np.arange(c), M)
        variance[unknown] += square(spread * float(np.linalg.norm(move)) / square(radius))
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))
