"""The best iterate of a search that wanders, and when to begin elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Generator

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.moves.component_race import ComponentRace
from zerothresh.methods.auto.settings.box_settings import COMPONENT_RACE
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class BestIterate:
    """The best iterate so far, to which the context moves."""

    def __init__(self, context: Context, race: ComponentRace) -> None:
        self.context, self.race, self.theta = context, race, race.theta
        context.follows = True
        self.fall, self._before = 0.0, context.fall  # from where the arm began, and from the start of the run to there

    def note(self) -> None:
        """Move the context to the iterate if it is the best so far."""
        race = self.race
        fall = float((race.at_start - race.values)[race.active].mean())
        told_more = race.theta is self.theta and fall != self.fall and not race.noise  # by further components
        improved = fall > self.fall or told_more
        if race.theta is not race.start and improved and race.better_than_start():
            self.theta, self.fall = race.theta, fall
            self.context.move(self.theta, float(race.values.mean()) if race.complete else None, self._before + fall)

    def catch_up(self, jump: Callable[[Array], Generator[Probes, Answers, None]]) -> Generator[Probes, Answers, bool]:
        """Go to the point of the run if another search has found a better one, and return whether it has.

        What is known about steps and swaps stays; it is worth more where F is lower.
        """
        context, race, run = self.context, self.race, self.context.parent
        if run is None or run.fall - context.fall <= race.floor():
            return False
        context.given += run.fall - context.fall
        context.move(run.theta, run.fun, run.fall)
        yield from jump(run.theta)
        self.theta, self.fall = race.theta, float((race.at_start - race.values)[race.active].mean())
        return True


class Stall:
    """Tells when a descent has stopped: as many calls without a fall as led to the last one, and not only a few."""

    def __init__(self, race: ComponentRace) -> None:
        self.race = race
        self.began = self.fell = race.calls

    def note(self, fall: float) -> None:
        """Take in by how much the last move lowered F."""
        if fall > 0:
            self.fell = self.race.calls

    @property
    def reached(self) -> bool:
        """Whether it is time to begin elsewhere."""
        idle = self.race.calls - self.fell
        return idle > max(self.fell - self.began, COMPONENT_RACE.least_idle * self.race.used)
