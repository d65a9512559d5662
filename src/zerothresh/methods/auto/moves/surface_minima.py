"""The minima of response surfaces on several supports, and the comparison of points by repeated values."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.moves.response_surface import ResponseSurface
from zerothresh.methods.auto.settings.descent_settings import DESCENT, STOCHASTIC
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class PointComparison(NamedTuple):
    """Two points by repeated values."""

    here: float  # the mean of the values at the first point
    there: float  # and at the second one
    error: float  # the standard error of their difference

    @property
    def clear(self) -> bool:
        """Whether the difference is more than chance."""
        return abs(self.there - self.here) > STOCHASTIC.clear_difference * self.error


class SurfaceMinima:
    """Response surfaces by support; one that exists already gets more values.

    Arguments
    ---------
    context: the run.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self._surfaces: dict[bytes, ResponseSurface] = {}

    def minimise(self, theta: Array, prior: Array, radius: float, share: float) -> Generator[Probes, Answers, Array]:
        """Minimise the response surface on the support of a point.

        Arguments
        ---------
        theta: array of shape (d,), the point.
        prior: array, the Hessian that is expected on its support.
        radius: float, how far from the point values are asked for at first.
        share: float, of the calls made so far: what this may cost.
        """
        context, S = self.context, np.flatnonzero(theta)
        affordable = context.left >= STOCHASTIC.surface_values * context.n
        if not 0 < S.size <= DESCENT.most_surface_coordinates or not affordable:
            return theta
        support = S.tobytes()
        if support not in self._surfaces:
            repeated = yield from context.values([theta] * STOCHASTIC.noise_repeats)
            noise = float(repeated.mean(axis=1).std(ddof=1))
            self._surfaces[support] = ResponseSurface(context, theta, prior, radius, max(noise, TINY))
        return (yield from self._surfaces[support].search(share * context.used, context.everything))

    def compare(self, here: Array, there: Array) -> Generator[Probes, Answers, PointComparison | None]:
        """Compare two points by a part of the calls made so far; None if so many are not left."""
        context = self.context
        calls = max(STOCHASTIC.comparison_calls, int(STOCHASTIC.comparison_share * context.used))
        repeats = max(2, math.ceil(calls / context.n))
        if 2 * repeats * context.n > context.left:
            return None
        values = (yield from context.values([here, there] * repeats)).mean(axis=1).reshape(repeats, 2)
        error = math.sqrt(float(values.var(axis=0, ddof=1).sum()) / repeats)
        here_mean, there_mean = values.mean(axis=0).tolist()
        return PointComparison(here_mean, there_mean, error)
