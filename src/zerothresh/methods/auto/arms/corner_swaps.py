"""Finite bounds: swaps of corner values, judged by paired differences on a few components first."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.moves.best_iterate import BestIterate, Stall
from zerothresh.methods.auto.moves.component_race import ComponentRace
from zerothresh.methods.auto.moves.corner_proposals import CornerProposals
from zerothresh.methods.auto.moves.step_worths import table_pays
from zerothresh.methods.auto.settings.box_settings import CORNER_SWAPS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class CornerSwaps:
    r"""Random search by swaps of corner values, for problems whose solutions lie at bounds.

    The first race is between points that put different numbers of random coordinates at random corners; the winner
    tells how many changes at once F bears. In round r, a few candidates each swap

    .. math:: s = \max(1, \mathrm{share} \cdot s_0 / (1 + r / \mathrm{halving}))

    coordinates. A candidate is taken if F does not rise. When swaps fail one after another, more and more candidates
    change a value inside the box instead, and at last the search goes on from the best point with many swaps at once.

    Reference: Croce, Andriushchenko, Singh, Flammarion and Hein (2022), Sparse-RS, AAAI, for swaps at extreme
    values with a falling number of swaps.
    """

    name: ClassVar[str] = "corner swaps"
    decisive: ClassVar[bool] = False

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether all coordinates that may change have finite bounds, and are too many to try each of them.

        Where each can be tried, long steps do so, which tells more than random swaps; groups are left to this arm.
        """
        free, box = context.free(), context.box
        if box is None or not free.size or (context.constraint.groups is None and table_pays(context)):
            return False
        return bool(np.isfinite(box.high[free] - box.low[free]).all())

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return the calls of the first few races between corners."""
        return CORNER_SWAPS.trial_races * CORNER_SWAPS.candidates * context.n

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        """Swap corner values until the budget is spent."""
        race, proposals = ComponentRace(context, diagnosis), CornerProposals(context)
        yield from race.begin()
        best = BestIterate(context, race)
        first = yield from self._first_size(race, proposals, context)
        best.note()
        while True:
            yield from self._descend(first, race, proposals, best)
            first = int(context.k ** float(context.rng.uniform()[0]))
            yield from race.jump(proposals.swap(best.theta, first, context.rng))

    def _descend(
        self, first: int, race: ComponentRace, proposals: CornerProposals, best: BestIterate
    ) -> Generator[Probes, Answers, None]:
        """Swap fewer and fewer corners, ``first`` times a share at first, until nothing helps."""
        context, stall, failed = race.context, Stall(race), 0
        for rounds in itertools.count():
            if race.due:
                yield from race.grow()
            if (yield from best.catch_up(race.jump)):
                stall = Stall(race)
            size = max(1, round(CORNER_SWAPS.share * first / (1 + rounds / CORNER_SWAPS.halving)))
            races = min(1 + failed // CORNER_SWAPS.failures, CORNER_SWAPS.most_races)
            count = race.affordable(CORNER_SWAPS.candidates * races)
            inside = failed / (failed + CORNER_SWAPS.patience) if size == 1 else 0.0
            points = [self._candidate(race.theta, size, inside, proposals, context) for _ in range(count)]
            theta = race.theta
            outcome = yield from race.run(points, CORNER_SWAPS.candidates)
            proposals.learn(theta, points, outcome.changes)
            failed = 0 if outcome.fall > 0 else failed + races
            stall.note(outcome.fall)
            best.note()
            if stall.reached:
                return

    def _candidate(self, theta: Array, size: int, inside: float, proposals: CornerProposals, context: Context) -> Array:
        """Return a point with some corners swapped or, with the chance ``inside``, with one value changed."""
        if context.rng.chance(inside):
            return proposals.revalue(theta, context.rng)
        return proposals.swap(theta, size, context.rng)

    def _first_size(
        self, race: ComponentRace, proposals: CornerProposals, context: Context
    ) -> Generator[Probes, Answers, int]:
        """Race random corners, fewer at once as long as F rises, and return how many changes F bears at once."""
        size = room = proposals.room(race.theta)
        while size:
            points = [proposals.swap(race.theta, size, context.rng) for _ in range(CORNER_SWAPS.candidates)]
            theta = race.theta
            outcome = yield from race.run(points, len(points))
            proposals.learn(theta, points, outcome.changes)
            if outcome.winner is not None:
                return size
            size //= CORNER_SWAPS.first_ratio
        return context.k if room < 1 else 1
