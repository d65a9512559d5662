"""Supports by regression through strong noise: several descents propose them, and response surfaces compare them.

A regression on all coordinates leads to a support that may be a local minimum: which coordinates stay in question was
decided by early, noisy rounds. So the first one is only the incumbent. Further descents begin at a random part of it
with all coordinates in question again. A support that they propose gets a response surface of its own, and its minimum
is compared with the incumbent by repeated values, until the difference is clear.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.moves.sparse_surface import SparseSurface
from zerothresh.methods.auto.moves.surface_minima import SurfaceMinima
from zerothresh.methods.auto.settings.descent_settings import SPARSE_SURFACE as SETTINGS
from zerothresh.methods.auto.settings.descent_settings import STOCHASTIC
from zerothresh.methods.program.context import Asks, Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class RegressedSupports:
    """The search for the support with the lowest minimum; it goes on until the budget is spent.

    Arguments
    ---------
    context: the run; it moves to the best point.
    regression: the regression, at the start.
    minima: the response surfaces.
    """

    def __init__(self, context: Context, regression: SparseSurface, minima: SurfaceMinima) -> None:
        self.context, self.regression, self.minima = context, regression, minima
        self.best = context.theta
        self.polished = 0  # calls for the surface of the incumbent

    def search(self) -> Generator[Probes, Answers, str]:
        """Descend, polish what is best, and descend again from a part of it."""
        theta = yield from self._descend(first=True)
        if theta is not None:
            yield from self._become(theta)
        while theta is not None:
            if self.polished < STOCHASTIC.polish_share * self.context.used:
                yield from self._become(self.best)
            self.regression.reopen(self._part_of_best())
            theta = yield from self._descend()
            if theta is not None and not np.array_equal(theta != 0, self.best != 0):
                yield from self._compete(theta)
        return "The budget is spent."

    def _descend(self, *, first: bool = False) -> Generator[Probes, Answers, Array | None]:
        """Go on with the regression until its support settles or stays the same; None if the budget is spent."""
        regression, context = self.regression, self.context
        support, same = b"", 0
        while regression.round_size * context.n <= context.left:
            theta = yield from regression.search()
            if first:
                context.move(theta, regression.F)
            before, support = support, np.flatnonzero(theta).tobytes()
            same = same + 1 if support == before else 0
            if regression.settled or same >= SETTINGS.same_rounds:
                return theta
        return None

    def _part_of_best(self) -> Array:
        """Return the incumbent without a random part of its support."""
        context, start = self.context, self.best.copy()
        optional = np.setdiff1d(np.flatnonzero(start), context.constraint.include)
        start[optional[context.rng.uniform(optional.size) < STOCHASTIC.dropped_share]] = 0.0
        return context.H(start)

    def _on_surface(self, theta: Array, share: float) -> Generator[Probes, Answers, Array]:
        regression = self.regression
        S = np.flatnonzero(theta[regression.C])
        return (yield from self.minima.minimise(theta, regression.H[np.ix_(S, S)], regression.radius, share))

    def _become(self, theta: Array) -> Asks:
        """Make the minimum of the surface on the support of a point the incumbent."""
        before = self.context.used
        self.best = yield from self._on_surface(theta, STOCHASTIC.surface_share)
        self.context.move(self.best, self.context.fun)
        self.polished += self.context.used - before

    def _compete(self, theta: Array) -> Asks:
        """Compare the minimum on another support with the incumbent, and improve it until the difference is clear."""
        for _ in range(STOCHASTIC.comparisons):
            theta = yield from self._on_surface(theta, STOCHASTIC.rival_share)
            compared = yield from self.minima.compare(self.best, theta)
            if compared is None:
                return
            here, there = compared.here, compared.there
            if compared.clear:
                break
        if there < here:
            self.best = theta
            self.context.move(theta, there)
