"""A descent by quadratic models in a trust region, for functions whose ripples mislead other models.

The model goes near 2 p + 1 values, not exactly through them, so that it does not follow ripples that are small against
the differences between these values. With exact interpolation it needs twice the calls on Ackley's function.

Reference: Powell, *The BOBYQA algorithm for bound constrained optimization without derivatives*, 2009.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.quadratic_surface import interpolate, minimise_in_box
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.moves.believed_best import report_believed_best
from zerothresh.methods.auto.moves.cube_search import CubeSearch
from zerothresh.methods.auto.settings.active_subset_settings import GLOBAL_SEARCH as SET
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def descend_by_quadratic(search: CubeSearch, *, start: Array, radius: float) -> Generator[Probes, Answers, None]:
    """Descend from a point of the cube, in a trust region of this radius at first."""
    distances = np.abs(search.Z - start).max(axis=1)
    nearest = int(np.argmin(distances)) if distances.size else 0
    if not distances.size or distances[nearest] > 0:
        yield from search.ask([start])
        nearest = search.y.size - 1
    descent = QuadraticDescent(search, nearest, radius)
    yield from descent.design()
    while descent.radius > SET.last_radius and descent.idle < SET.idle_steps:
        yield from descent.step()
    search.close_basin(descent.z, np.full(search.p, SET.first_radius))


class QuadraticDescent:
    """One descent.

    Arguments
    ---------
    search: the values so far.
    start: int, the index of the point to start from. radius: float, that of the first trust region.

    Attributes
    ----------
    used: indices of the values that the model goes near.
    centre: int, the index of the best of them. radius: float, half the width of the trust region.
    H: array of shape (p, p), the Hessian in units of the radius.
    idle: int, steps in a row that the model did not make, or that gained next to nothing.
    """

    def __init__(self, search: CubeSearch, start: int, radius: float) -> None:
        self.search, self.centre, self.radius = search, start, radius
        self.used = np.array([start])
        self.H = np.zeros((search.p, search.p))
        self.idle = 0

    @property
    def z(self) -> Array:
        """The centre of the trust region."""
        return np.asarray(self.search.Z[self.centre])

    def design(self) -> Generator[Probes, Answers, None]:
        """Ask for two more points along each coordinate, the second one on the side where F falls."""
        search, p, z, radius = self.search, self.search.p, self.z, self.radius
        axes, before, at_centre = np.eye(p), search.y.size, search.y[self.centre]
        signs = np.where(z + radius <= 1.0, 1.0, -1.0)
        values = yield from search.ask([z + radius * signs[j] * axes[j] for j in range(p)])
        steps = np.where(values < at_centre, 2.0 * signs, -signs)
        outside = np.abs(z + radius * steps - 0.5) > 0.5
        steps = np.where(outside & (values < at_centre), -signs, np.where(outside, 2.0 * signs, steps))
        outside = np.abs(z + radius * steps - 0.5) > 0.5
        steps = np.where(outside, 0.5 * signs, steps)
        yield from search.ask([z + radius * steps[j] * axes[j] for j in range(p)])
        self.used = np.concatenate([self.used, np.arange(before, search.y.size)])
        self._recentre()

    def step(self) -> Generator[Probes, Answers, None]:
        """Fit the model, ask for F at its minimiser in the trust region, and adapt the region."""
        search, p, z, radius = self.search, self.search.p, self.z, self.radius
        g = self._fit()
        if search.random:
            report_believed_best(search)
        low, high = np.maximum(-z / radius, -1.0), np.minimum((1.0 - z) / radius, 1.0)
        corners = 2.0 * search.context.rng.uniform(SET.random_starts * p).reshape(-1, p) - 1.0
        starts = np.concatenate([np.zeros((1, p)), -np.sign(g)[None], corners])
        step, change = minimise_in_box(g, self.H, low, high, starts)
        length = float(np.abs(step).max())
        if radius <= SET.small_radius and search.y[self.centre] + SET.hope * change > search.y.min():
            self.idle = SET.idle_steps
            return
        if -change < SET.gain * search.fall * radius or length < SET.shortest_step:
            self.idle += 1
            yield from self._improve_geometry()
            self._resize(0.5)
            return
        value = float((yield from search.ask([np.clip(z + radius * step, 0.0, 1.0)]))[0])
        fall = search.y[self.centre] - value
        if fall > 0:
            self.idle = 0 if fall > SET.gain * search.fall else self.idle + 1
        self._take(search.y.size - 1)
        if fall > -SET.growing * change and length > SET.long_step:
            self._resize(2.0)
        elif fall < -SET.failing * change and not (yield from self._improve_geometry()):
            self._resize(0.5)

    def _fit(self) -> Array:
        """Fit the model; return its slope at the centre."""
        search = self.search
        moves, values = (search.Z[self.used] - self.z) / self.radius, search.y[self.used]
        scale = max(float(values.std()), TINY)
        ridge = square(SET.misfit) + (square(search.noise.deviation / scale) if search.random else 0.0)
        _, g, H = interpolate(moves, values / scale, self.H / scale, ridge)
        self.H = scale * H
        return scale * g

    def _resize(self, factor: float) -> None:
        factor = min(factor, SET.largest_radius / self.radius)
        self.radius, self.H = factor * self.radius, square(factor) * self.H

    def _recentre(self) -> None:
        self.centre = int(self.used[np.argmin(self.search.y[self.used])])

    def _distances(self) -> Array:
        """Return how far the points of the model are from the centre, in radii."""
        return np.asarray(np.abs(self.search.Z[self.used] - self.z).max(axis=1) / self.radius)

    def _take(self, new: int) -> None:
        """Take a new point into the model, in place of the one that is farthest from the centre."""
        self.used = np.concatenate([self.used, [new]])
        self._recentre()
        if self.used.size > 2 * self.search.p + 1:
            self.used = np.delete(self.used, int(np.argmax(self._distances())))

    def _improve_geometry(self) -> Generator[Probes, Answers, bool]:
        """Replace the farthest point, if it is far, by one in the direction of which the near points show least."""
        search, p = self.search, self.search.p
        distances = self._distances()
        if distances.max() <= SET.far:
            return False
        near: Indices = self.used[distances <= SET.far]
        moves = (search.Z[near] - self.z) / self.radius
        direction = np.linalg.svd(np.concatenate([moves, np.zeros((p, p))]))[2][-1]
        direction *= self.radius / np.abs(direction).max()
        z = self.z + direction
        if ((z < 0.0) | (z > 1.0)).any():
            z = self.z - direction
        yield from search.ask([np.clip(z, 0.0, 1.0)])
        self._take(search.y.size - 1)
        return True
