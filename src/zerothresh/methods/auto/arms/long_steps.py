"""A flat start: long steps towards the bounds by groups of coordinates, with backward drops."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.moves.best_iterate import BestIterate, Stall
from zerothresh.methods.auto.moves.component_race import ComponentRace
from zerothresh.methods.auto.moves.known_moves import KnownMoves
from zerothresh.methods.auto.moves.long_kick import kicked
from zerothresh.methods.auto.moves.long_moves import LongMoves
from zerothresh.methods.auto.moves.step_worths import bisection_price, table_pays
from zerothresh.methods.auto.settings.box_settings import LONG_STEPS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class LongSteps:
    """Forward selection by best-first bisection of groups that take long steps, then drops, swaps and other values.

    Short steps show nothing on a plateau, so steps go to the bounds, or over the natural length where there are none.
    The fall of F by a whole group tells whether to split it. Where trying every coordinate once costs less than k
    bisections, a table of what each step was last worth takes their place. When no step is left, the kind of move that
    brought the largest fall per call of late goes on.
    """

    name: ClassVar[str] = "long steps"
    decisive: ClassVar[bool] = False

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether slopes tell little, or bounds say how long a step may be and the budget allows several of them.

        Groups are left to other arms.
        """
        free, box = context.free(), context.box
        if context.constraint.groups is not None or not free.size:
            return False
        bounded = box is not None and bool(np.isfinite(box.high[free] - box.low[free]).all())
        values = LONG_STEPS.least_steps * bisection_price(free.size)  # of F
        steep = diagnosis.length < LONG_STEPS.short_length * float(np.abs(context.theta0).max())
        return diagnosis.rough or diagnosis.kink or steep or (bounded and context.left > values * context.n)

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return the calls in which bisection of long steps should have found a coordinate or two."""
        return LONG_STEPS.judged_searches * context.n * bisection_price(context.free().size)

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        """Take long steps, and what follows from them, until the budget is spent."""
        race = ComponentRace(context, diagnosis)
        yield from race.begin()
        kind = KnownMoves if table_pays(context) else LongMoves
        moves, best = kind(context, diagnosis, race), BestIterate(context, race)
        # A warm start must not end behind a cold one: begin from nothing, once, unless 0 is a value like any other.
        cold = not moves.dense and bool(context.theta0.any())
        while True:
            stall = Stall(race)
            yield from self._forward(moves, best, stall)
            yield from self._backward(moves, best, stall)
            yield from self._mixed(moves, best, stall)
            yield from moves.begin_again() if cold else moves.go_to(kicked(moves, best.theta))
            cold = False

    def _forward(self, moves: LongMoves, best: BestIterate, stall: Stall) -> Generator[Probes, Answers, None]:
        """Take steps until there is no room for more, or none of them helps."""
        failed, step = 0, moves.turn if moves.dense else moves.add
        while (moves.room or moves.dense) and failed < LONG_STEPS.patience:
            fall = yield from step()
            failed = 0 if fall > 0 else failed + 1
            stall.note(fall)
            best.note()

    def _backward(self, moves: LongMoves, best: BestIterate, stall: Stall) -> Generator[Probes, Answers, None]:
        """Measure how much each coordinate of the support is missed, and leave out those that are not."""
        for _ in range(0 if moves.dense else moves.support.size):
            stall.note((yield from moves.drop()))
            best.note()

    def _mixed(self, moves: LongMoves, best: BestIterate, stall: Stall) -> Generator[Probes, Answers, None]:
        """Make the move that lowered F most per call of late, and the others now and then, until none helps."""
        race = moves.race
        kinds = (moves.add, moves.drop, moves.exchange, moves.turn, moves.swap, moves.value, moves.drift)
        rates, spent = np.zeros(len(kinds)), np.zeros(len(kinds))  # recent falls per value of F, and values
        failed = np.zeros(len(kinds), np.int64)  # times in a row
        idle = 0  # moves in a row that had nothing to ask for
        for turn in itertools.count():
            if race.due:
                yield from race.grow()
            if (yield from best.catch_up(moves.go_to)):
                stall = Stall(race)
            explore = turn % LONG_STEPS.explore == 0 or not rates.any()
            kind = int(np.argmin(spent) if explore else np.argmax(rates))
            before = race.calls
            fall = yield from kinds[kind]()
            asked = (race.calls - before) / race.used
            spent[kind] = spent[kind] + asked if asked else spent.max() + 1  # with nothing to ask for, it comes last
            idle = 0 if asked else idle + 1
            values = max(asked, 1)
            keep = (1 - LONG_STEPS.recent) ** values
            failed[kind] = 0 if fall > 0 else failed[kind] + 1
            lost = not asked or failed[kind] >= LONG_STEPS.explore  # its past falls say nothing any more
            rates[kind] = 0.0 if lost else keep * rates[kind] + (1 - keep) * fall / values
            stall.note(fall)
            best.note()
            if stall.reached or idle > len(kinds):
                return
