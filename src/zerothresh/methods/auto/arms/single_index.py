"""The arm for components that are functions of one linear score each, such as every loss of a linear model."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.arms.partial_rows import PartialRows, affords_entries
from zerothresh.methods.auto.arms.single_index_model import SingleIndexModel, affordable
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.settings.single_index_settings import ROWS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class SingleIndex:
    """Learn the row of each component once, then solve the sparse model without calls.

    It is certified only if the components are quadratic and predicted exactly where they were not fitted, and if the
    best support of the model is proven.
    """

    name: ClassVar[str] = "single index"
    decisive: ClassVar[bool] = True

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether there are enough smooth components, and calls for the rows of the first ones; no groups."""
        several = context.n >= ROWS.tested and context.free().size > 0
        smooth = not (diagnosis.rough or diagnosis.kink)
        if not several or not smooth or context.constraint.groups is not None:
            return False
        return affordable(context) or self._by_entries(context, diagnosis)

    @staticmethod
    def _by_entries(context: Context, diagnosis: Diagnosis) -> bool:
        """Whether single entries of rows are asked, because not enough rows can be."""
        return not diagnosis.random and affords_entries(context)

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return the calls of all rows and of the fit, after which the model has to be right."""
        if self._by_entries(context, diagnosis):
            return math.ceil(context.left)
        differences = context.free().size * (1 + diagnosis.central)
        return math.ceil(ROWS.reserve * context.n * (differences + ROWS.fit_values))

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        if self._by_entries(context, diagnosis):
            return Ended((yield from PartialRows(context, diagnosis).search()))
        model = SingleIndexModel(context, diagnosis)
        reason = yield from model.search()
        return Ended(reason, model.exact)
