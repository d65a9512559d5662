"""The last resort: random steps from the best point, when every other strategy has ended without a proof."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.findings import Diagnosis
from zerothresh.methods.auto.settings.support_search_settings import RANDOM_STEPS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class RandomSteps:
    """A (1+1) evolution strategy on a few random coordinates at a time, whose step length follows its successes.

    Reference: Kern et al., *Learning probability distributions in continuous evolutionary algorithms*, Natural
    Computing 2004, for the rule of the step length.
    """

    name: ClassVar[str] = "random steps"
    decisive: ClassVar[bool] = False

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether something is free to change; discrete values need steps of their own length."""
        further = context.constraint.further
        return context.free().size > 0 and not (further is not None and further.discrete)

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return the calls of one value of F for each place of the support."""
        return context.n * context.k

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        """Step until the budget is spent, or has been raised."""
        free, theta, budget = context.free(), context.theta, context.left + context.used
        moved = min(context.k, free.size)
        length = min(diagnosis.length, diagnosis.room) / math.sqrt(context.d)
        if theta is context.theta0:
            F = float((yield from context.starts(context.everything)).mean())
        else:
            F = float((yield from context.values([theta])).mean())
        context.move(theta, F)
        margin = RANDOM_STEPS.noise_factor * diagnosis.noise / math.sqrt(context.n) if diagnosis.random else 0.0
        while context.left + context.used <= budget:
            chosen = free[context.rng.subset(free.size, moved)]
            trial = theta.copy()
            trial[chosen] += length * context.rng.normal(moved)
            trial = context.constraint.project(context.inside(trial))
            value = float((yield from context.values([trial])).mean())
            success = value < F - margin
            length *= RANDOM_STEPS.growth if success else RANDOM_STEPS.growth**-RANDOM_STEPS.failures
            if success:
                theta, F = trial, value
                context.move(theta, F)
            elif length <= np.spacing(float(np.abs(theta).max())):
                length = min(diagnosis.length, diagnosis.room)  # nothing is gained nearby: look further away
        return Ended("The budget was raised.")
