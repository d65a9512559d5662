"""What an arm is: a strategy with one idea, which competes with others for the budget.

An arm is a small frozen object. `fits` says whether its idea applies to what the diagnosis found; `search` is a
generator that asks through a context of its own and moves that context to the best point it knows. A search whose own
test has confirmed what it assumes of F sets ``context.confirmed``, and one whose test fails returns at once. The race
(`zerothresh.methods.auto.race`) decides who may ask next. Arms know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import ClassVar, NamedTuple, Protocol

from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class Ended(NamedTuple):
    """Why an arm stopped asking."""

    reason: str  # a sentence for the user
    certified: bool = False  # whether its point is known to be optimal, so that nothing is left to look for
    out_of_patience: bool = False  # whether the user does not want to wait for more

    @property
    def final(self) -> bool:
        """Whether nothing more is to be done."""
        return self.certified or self.out_of_patience


class Arm(Protocol):
    """A strategy that may compete for the budget."""

    name: ClassVar[str]
    """What remarks, tables and pictures call it."""

    decisive: ClassVar[bool]
    """Whether it tests its own assumption with its first calls, and ends if that fails."""

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether the idea applies to this black box, with this budget and these constraints."""

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return how many calls it needs before it is fair to judge it by its progress."""

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        """Ask for values and move ``context`` to the best point known; return why it stopped."""
