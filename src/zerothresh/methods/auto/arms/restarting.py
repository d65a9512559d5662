"""Restarts of a descent from elsewhere: tried on some of the components first, kept if all of them agree."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.moves.restarts import partial_support, random_points, support_of, typical_size
from zerothresh.methods.auto.position import RememberedPoint
from zerothresh.methods.auto.settings.support_search_settings import SUPPORT_SEARCH
from zerothresh.methods.program.context import Asks
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

if TYPE_CHECKING:
    from zerothresh.methods.auto.arms.descent import Descent


class Restarts:
    """Restarts that keep the best point.

    Arguments
    ---------
    descent: the descent, at a local minimum.
    """

    def __init__(self, descent: Descent) -> None:
        self.descent, self.at, self.context = descent, descent.at, descent.context
        self.count = 0

    def restart(self, *, part: bool) -> Asks:
        """Descend from a part of the best support or from a random sparse point; keep the better point."""
        at, descent = self.at, self.descent
        self.count += 1
        best, F, C, stages = at.standing(), at.F, at.C, [at.C]
        at.reporting = False
        if part and best.theta.any():
            start, dropped = partial_support(at)
            stages = [np.setdiff1d(C, dropped), C]  # at first without the coordinates that were dropped
        else:
            start = yield from self._random_start()
        at.C = stages[0]
        hopeful = yield from self._try_on_some(start, best)
        for candidates in stages if hopeful else ():
            at.C = candidates
            yield from self._descend_anew(F)
        at.C, at.reporting = C, True
        descent.tried.add(support_of(at.theta))
        if hopeful and F - at.negligible > at.F:
            at.total_decrease = best.total_decrease + F - at.F
            at.report()
            yield from descent.descend()
            return
        at.return_to(best)
        descent.local_minimum = best.theta
        at.report()

    def _descend_anew(self, to_beat: float) -> Asks:
        """Descend from where the position stands now, to a local minimum if it may be below ``to_beat``."""
        self.at.use(self.at.oracle.at_first())
        self.descent.local_minimum, self.descent.cycle_rate = None, math.inf
        yield from self.descent.descend(exchanging=False, to_beat=to_beat)

    def _try_on_some(self, start: Array, best: RememberedPoint) -> Generator[Probes, Answers, bool]:
        """Descend on some of the components; returns whether they prefer the point that this leads to."""
        at, everything = self.at, self.at.oracle.m
        m = max(SUPPORT_SEARCH.least_components * self.context.k, math.ceil(SUPPORT_SEARCH.trial_share * everything))
        if m >= everything or at.oracle.diagnosis.random:
            at.go(start, (yield from at.values_at(start)))
            return True
        at.use(at.oracle.with_components(m))
        at.go(start, (yield from at.values_at(start)))
        to_beat = float(best.values[:m].mean())
        for _ in range(SUPPORT_SEARCH.trial_passes):
            F = at.F
            yield from self._descend_anew(to_beat)
            if at.negligible >= F - at.F:
                break
        hopeful = float(best.values[:m].mean()) > at.F
        at.use(at.oracle.with_components(everything))
        if hopeful:
            at.go(at.theta, (yield from at.values_at(at.theta)))
        return hopeful

    def _random_start(self) -> Generator[Probes, Answers, Array]:
        """Return a random sparse point; from a stationary start, the best of several lengths."""
        at, size = self.at, typical_size(self.at)
        if at.theta.any():
            return random_points(at, at.C, size, 1)[0]
        length = size * SUPPORT_SEARCH.length_growth ** (self.count % SUPPORT_SEARCH.length_cycle - 1)
        points = random_points(at, at.C, length, SUPPORT_SEARCH.first_points)
        values = yield from self.context.values(points, at.oracle.components)
        return points[int(np.argmin(values.mean(axis=1)))]
