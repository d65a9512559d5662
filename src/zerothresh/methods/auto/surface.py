"""A quadratic through noisy values: where a single value says little, many around a point say where the bottom is."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class Surface:
    """F on a support, as far as values told; every value counts for slope and curvature in all directions.

    A Bayesian regression: the curvature is believed to be that of ``B``, give or take a half of it on average.
    """

    def __init__(self, context: Context, theta: Array, B: Array, radius: float, noise: float) -> None:
        self.context, self.theta, self.S = context, theta, np.flatnonzero(theta)
        self.radius, self.noise = radius, noise  # of a mean of two values
        self.most = 4 * max(radius, float(np.linalg.norm(theta)))
        self.B = B
        self.H = B
        self.g = np.zeros(self.S.size)
        self.F = 0.0  # at theta
        self.x = np.empty((0, self.S.size))  # where F was asked for, twice, and what it was
        self.f = np.empty((0, 2))

    @property
    def size(self) -> int:
        """Numbers that a quadratic has."""
        k = self.S.size
        return (k + 1) * (k + 2) // 2

    def search(self, calls: float, of: Indices) -> Generator[Probes, Answers, Array]:
        """Ask around the lowest point of the surface, again and again; where that is after this many calls."""
        context, k = self.context, self.S.size
        end = context.used + min(calls, context.left - of.size)
        frames = 1
        while context.used + 4 * k * frames * of.size <= end:
            z = np.concatenate([self._frame() for _ in range(frames)])
            moves = np.concatenate([z, -z])  # in pairs, so that curvature does not look like slope
            points = np.repeat(self.theta[None], len(moves), axis=0)
            points[:, self.S] += moves
            points = context.inside(points)
            values = (yield from context.values([*points, *points], of)).mean(axis=1).reshape(2, -1).T
            self.x, self.f = np.concatenate([self.x, points[:, self.S]]), np.concatenate([self.f, values])
            self.fit()
            self.theta = self._lowest()
            if len(self.f) > self.size and np.array_equal(self.theta != 0, context.theta != 0):
                context.move(self.theta, self.F if of.size == context.n else None)
            frames = max(1, len(self.f) // (8 * k))
        return self.theta

    def _frame(self) -> Array:
        """Orthogonal moves: most of them as long as the radius, some half as long, to see whether slopes agree."""
        rng, k = self.context.rng, self.S.size
        q, _ = np.linalg.qr(rng.normal(k * k).reshape(k, k))
        return np.asarray(q * np.where(rng.uniform(k) < 0.25, 0.5, 1.0)[:, None] * self.radius)

    def fit(self) -> None:
        """Slope and curvature at theta from the values not too far away; a longer or shorter radius next time."""
        k, centre = self.S.size, self.theta[self.S]
        moves = self.x - centre
        near = np.linalg.norm(moves, axis=1) <= 2.0 * self.radius
        moves, values = moves[near] / self.radius, self.f[near].mean(axis=1)
        heard = float(np.sqrt(np.square(np.diff(self.f[near], axis=1)).mean())) / 2
        self.noise = max(heard, 1e-9 * float(np.ptp(values)), 1e-100)
        rows, columns = np.triu_indices(k)
        twice = np.where(rows == columns, 0.5, 1.0)
        X = np.column_stack([np.ones(len(moves)), moves, moves[:, rows] * moves[:, columns] * twice])
        believed = np.concatenate([np.zeros(k + 1), self.B[rows, columns] * self.radius**2])
        share = 0.5 * float(np.trace(self.B)) / k * self.radius**2  # how wrong that may be
        weight = np.concatenate([np.zeros(k + 1), np.full(rows.size, (self.noise / share) ** 2)])
        A = X.T @ X + np.diag(weight + 1e-12)
        w = np.linalg.solve(A, X.T @ (values - X @ believed)) + believed
        if not np.isfinite(w).all():
            self.g = np.zeros(k)
            return
        self.F, self.g = float(w[0]), w[1 : k + 1] / self.radius
        B = np.zeros((k, k))
        B[rows, columns] = w[k + 1 :] / self.radius**2
        B[columns, rows] = B[rows, columns]
        size, axes = np.linalg.eigh(B)
        self.H = (axes * np.maximum(size, 0.1 * float(np.trace(self.B)) / k)) @ axes.T
        self._rescale(X, moves, values - X @ believed, A)

    def _rescale(self, X: Array, moves: Array, rest: Array, A: Array) -> None:
        """The longest radius at which no third power shows: what it adds to a slope is then below the noise."""
        k = self.S.size
        cubes = moves * np.square(moves).sum(axis=1, keepdims=True)
        cubes = cubes - X @ np.linalg.solve(A, X.T @ cubes)  # what a quadratic cannot tell
        inner = cubes.T @ cubes
        if len(rest) < X.shape[1] + 2 * k or not np.linalg.cond(inner) < 1e10:
            return
        pull = cubes.T @ rest
        shown = float(pull @ np.linalg.solve(inner, pull)) / self.noise**2  # chi squared with k degrees of freedom
        if shown > k + 1.7 * math.sqrt(2 * k):
            self.radius /= 1.3
        elif shown < k:
            self.radius = min(1.15 * self.radius, self.most)

    def _lowest(self) -> Array:
        """The minimiser of the surface, not further than it is known."""
        step = -np.linalg.solve(self.H, self.g)
        step *= min(1.0, 1.5 * self.radius / max(float(np.linalg.norm(step)), 1e-300))
        theta = self.theta.copy()
        theta[self.S] += step
        theta = self.context.H(theta)
        step = (theta - self.theta)[self.S]
        self.F += float(self.g @ step) + 0.5 * float(step @ self.H @ step)
        return theta
