"""Long steps by a table of what each coordinate was last worth, where that costs less than bisection.

This is the accelerated greedy algorithm of Minoux (1978): what a step was worth earlier says in which order to measure
steps again. Worths may also rise here, so that the oldest entries of the table are renewed as well.
"""

from __future__ import annotations

from collections.abc import Generator

from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.moves.component_race import ComponentRace
from zerothresh.methods.auto.moves.long_moves import LongMoves, Move
from zerothresh.methods.auto.moves.step_groups import StepGroup
from zerothresh.methods.auto.moves.step_worths import bisection_price
from zerothresh.methods.auto.settings.box_settings import LONG_STEPS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class KnownMoves(LongMoves):
    """Moves whose steps come from the table of worths instead of bisections."""

    def __init__(self, context: Context, diagnosis: Diagnosis, race: ComponentRace) -> None:
        super().__init__(context, diagnosis, race)
        self.price = bisection_price(self.free.size)  # how many worths are renewed at a time
        self.renewed = 0  # best worths that were measured again since the oldest ones were

    @property
    def least(self) -> float:
        """A fall of F that is negligible beside the largest one that is known of a step or of one that was taken."""
        losses, gains = self.loss[self.support], self.worths.gain[:, self.outside]
        return LONG_STEPS.negligible * max(float(losses.max(initial=0.0)), float(gains.max(initial=0.0)))

    def _renew(self) -> Generator[Probes, Answers, None]:
        """Measure the oldest worths again, as many as a bisection would cost; at first all of them."""
        pool = self.outside
        count = self.price
        steps = self.worths.oldest(pool, count, self.iterate, self.context.rng)
        for at in range(0, len(steps), self.price):
            yield from self._measured(steps[at : at + self.price])
        self.renewed = 0

    def _new_step(self) -> Generator[Probes, Answers, StepGroup | None]:
        """Return the step of a coordinate at 0 with the largest worth, which is measured again if it is out of date.

        As many calls renew the oldest worths as the best ones, so that what is worth more than it was is found.
        """
        pool, worths, searched = self.outside, self.worths, False
        while True:
            if worths.unknown(pool).size or self.renewed >= self.price:
                yield from self._renew()
            best = worths.best(pool, self.least)
            if best is None and searched:
                return None
            if best is None:
                searched = True
                yield from self._renew()
            elif worths.measured[best] == self.iterate:
                return worths.steps[best]
            else:
                yield from self._measured([worths.single(*best)])
                self.renewed += 1

    def exchange(self) -> Move:
        """Bring the oldest worths and smallest losses up to date, and make the steps and swaps that they promise."""
        fall, failed = 0.0, 0
        yield from self._renew()
        for _ in range(LONG_STEPS.drops_tried):
            fall += yield from self.drop()
        while failed < LONG_STEPS.patience and self._promising():
            gained = yield from self.add() if self.room else self.swap()
            fall, failed = fall + gained, 0 if gained > 0 else failed + 1
        return fall

    def _promising(self) -> bool:
        """Whether a step into the room that is left or, without room, a swap should lower F by what is known."""
        if self.room:
            return self.worths.best(self.outside, self.least) is not None
        least = self.least
        return next((promise > least for promise, i, add in self._swaps() if (i, add) not in self.tried), False)
