"""The arm for strong random noise: stochastic descent, whose steps are not judged one by one."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.arms.stochastic_descent import StochasticDescent
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.settings import STOCHASTIC
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class StochasticSteps:
    """Stages of many steps, after which points are compared, for noise that hides the effect of single steps."""

    name: ClassVar[str] = "stochastic descent"
    decisive: ClassVar[bool] = True

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether the noise is strong, and the budget pays for many steps per coordinate."""
        free = context.free().size
        return diagnosis.strong_noise and context.left > STOCHASTIC.calls_per_coordinate * free > 0

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return the calls after which stages should have lowered F."""
        return STOCHASTIC.calls_per_coordinate * context.free().size

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        """Make stages of steps until none lowers F."""
        context.confirmed = True  # all that it assumes is the noise, which has been measured
        return Ended((yield from StochasticDescent(context, diagnosis).search()))
