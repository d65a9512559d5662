"""A response surface: a quadratic regression through many noisy values of F around a point.

Where a single value is lost in the noise, many values together still tell where the minimum is.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.cubic_bias import cubic_terms, shrunk_bias, triples
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.settings.descent_settings import SURFACE
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class ResponseSurface:
    """A quadratic model of F on the support of theta, fitted to noisy values by Bayesian regression.

    Every value informs the slope and the curvature in all directions. The prior says that the Hessian is ``B``, give
    or take half of its mean diagonal.

    Arguments
    ---------
    context: the run.
    theta: array of shape (d,), the point to start from; the surface lives on its support S.
    B: array of shape (|S|, |S|), the prior Hessian.
    radius: float, how far from theta values are asked for at first.
    noise: float, the standard deviation of a mean of two values.
    """

    def __init__(self, context: Context, theta: Array, B: Array, radius: float, noise: float) -> None:
        self.context, self.theta, self.S = context, theta, np.flatnonzero(theta)
        self.radius, self.noise = radius, noise
        self.max_radius = SURFACE.largest_radius * max(radius, float(np.linalg.norm(theta - context.theta0)))
        self.B = B
        self.H = B
        self.g = np.zeros(self.S.size)
        self.F = 0.0  # the fitted value at theta
        self.x = np.empty((0, self.S.size))  # where F was sampled
        self.f = np.empty((0, 2))  # two values at each of these points; their difference shows the noise

    @property
    def coefficients(self) -> int:
        """The number of coefficients of the quadratic."""
        k = self.S.size
        return (k + 1) * (k + 2) // 2

    def search(self, calls: float, components: Indices) -> Generator[Probes, Answers, Array]:
        """Sample around the minimiser of the surface and fit again, until the calls are used up.

        Arguments
        ---------
        calls: float, the largest number of calls to make.
        components: indices of the components whose mean is minimised.

        Returns
        -------
        array of shape (d,): the minimiser of the last surface.
        """
        context, k = self.context, self.S.size
        end = context.used + min(calls, context.left - components.size)
        frames = 1
        while context.used + SURFACE.calls_per_direction * k * frames * components.size <= end:
            z = np.concatenate([self._random_frame() for _ in range(frames)])
            moves = np.concatenate([z, -z])  # symmetric pairs, so that curvature is not mistaken for slope
            points = np.repeat(self.theta[None], len(moves), axis=0)
            points[:, self.S] += moves
            points = context.inside(points)
            values = (yield from context.values([*points, *points], components)).mean(axis=1).reshape(2, -1).T
            self.x, self.f = np.concatenate([self.x, points[:, self.S]]), np.concatenate([self.f, values])
            self.fit()
            self.theta = self._minimiser()
            if len(self.f) > self.coefficients and np.array_equal(self.theta != 0, context.theta != 0):
                context.move(self.theta, self.F if components.size == context.n else None)
            frames = max(1, len(self.f) // (SURFACE.frame_share * k))
        return self.theta

    def _random_frame(self) -> Array:
        """Draw random orthogonal moves: most of them as long as the radius, some half as long."""
        rng, k = self.context.rng, self.S.size
        q, _ = np.linalg.qr(rng.normal(k * k).reshape(k, k))
        return np.asarray(q * np.where(rng.uniform(k) < SURFACE.short_share, 0.5, 1.0)[:, None] * self.radius)

    def fit(self) -> None:
        """Fit value, slope and Hessian at theta to the values nearby, and adapt the radius."""
        k, centre, radius = self.S.size, self.theta[self.S], self.radius
        moves = self.x - centre
        near = np.linalg.norm(moves, axis=1) <= SURFACE.near * radius
        moves, values = moves[near] / radius, self.f[near].mean(axis=1)
        variances = np.square(np.diff(self.f[near], axis=1)[:, 0] / 2)  # of the mean of each pair
        measured_noise = math.sqrt(float(variances.mean()))
        least_noise = max(SURFACE.least_noise * float(np.ptp(values)), math.sqrt(TINY))
        self.noise = max(measured_noise, least_noise)
        rows, columns = np.triu_indices(k)
        half_on_diagonal = np.where(rows == columns, 0.5, 1.0)
        X = np.column_stack([np.ones(len(moves)), moves, moves[:, rows] * moves[:, columns] * half_on_diagonal])
        prior = np.concatenate([np.zeros(k + 1), self.B[rows, columns] * square(radius)])
        prior_spread = SURFACE.prior_spread * float(np.trace(self.B)) / k * square(radius)
        weight = np.concatenate([np.zeros(k + 1), np.full(rows.size, square(self.noise / max(prior_spread, TINY)))])
        A = X.T @ X + np.diag(weight + SURFACE.ridge)
        w = np.linalg.solve(A, X.T @ (values - X @ prior)) + prior
        w = w - self._cubic_bias(X, moves, values - X @ w, A, np.maximum(variances, square(least_noise)))
        if not np.isfinite(w).all():
            self.g = np.zeros(k)
            return
        self.F, self.g = float(w[0]), w[1 : k + 1] / radius
        B = np.zeros((k, k))
        B[rows, columns] = w[k + 1 :] / square(radius)
        B[columns, rows] = B[rows, columns]
        eigenvalues, axes = np.linalg.eigh(B)
        self.H = (axes * np.maximum(eigenvalues, SURFACE.least_curvature * float(np.trace(self.B)) / k)) @ axes.T

    def _cubic_bias(self, X: Array, moves: Array, residuals: Array, A: Array, variances: Array) -> Array:
        """Return what cubic terms add to the coefficients, as far as they show; the radius shrinks until they do not.

        Around their own centre moves have random directions, so that the slopes see nothing of a cubic form but its
        part x |x|^2. Values around former centres see the rest, which is fitted once there are values enough for it.
        """
        k, squares = self.S.size, np.square(moves).sum(axis=1, keepdims=True)
        isotropic = shrunk_bias(X, moves * squares, residuals, A, variances)
        if isotropic is None:
            return np.zeros(X.shape[1])
        if isotropic.statistic > k + SURFACE.cubic_significance * math.sqrt(2 * k):
            self.radius /= SURFACE.shrink
        elif isotropic.statistic < k:
            self.radius = min(SURFACE.grow * self.radius, self.max_radius)
        if len(triples(k)) > SURFACE.most_cubic_terms:
            return isotropic.bias
        rest = shrunk_bias(X, cubic_terms(moves), isotropic.residuals, A, variances)
        return isotropic.bias if rest is None else isotropic.bias + rest.bias

    def _minimiser(self) -> Array:
        """Return the minimiser of the surface within the distance where it is trusted, and predict F there."""
        step = -np.linalg.solve(self.H, self.g)
        step *= min(1.0, SURFACE.longest_step * self.radius / max(float(np.linalg.norm(step)), TINY))
        theta = self.theta.copy()
        theta[self.S] += step
        theta = self.context.H(theta)
        step = (theta - self.theta)[self.S]
        self.F += float(self.g @ step) + 0.5 * float(step @ self.H @ step)
        return theta
