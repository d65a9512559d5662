"""Index: for components that are functions of one linear score each, such as every loss of a linear model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.methods.auto.arms.descent import Descent
from zerothresh.methods.auto.arms.single_index_model import SingleIndexModel
from zerothresh.methods.auto.diagnosis import diagnose
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.registry import register


@register("index")
@dataclass(frozen=True)
class Index(Program):
    """Learn the direction of each component once, then solve the sparse model without calls.

    If the components are not functions of one score, the method remarks on it and continues as `htp`. It also
    continues as `htp` to check the result if they are functions of one score but not quadratic.

    >>> Index()
    Index()
    """

    family: ClassVar[str] = "parts of auto"
    order: ClassVar[int] = 3
    solves: ClassVar[str] = "f_i of a few projections of theta, l0"
    queries: ClassVar[str] = "d + 2 per component once, then 1 to 5 per component"
    memory: ClassVar[str] = "1 per call + n d"
    keeps_constraints: ClassVar[bool] = False

    def search(self, context: Context) -> Asks:
        diagnosis = yield from diagnose(context)
        context.remark(f"Diagnosis: {diagnosis.summary()}.")
        context.random = diagnosis.random
        model = SingleIndexModel(context, diagnosis)
        if context.n > 2:
            context.remark((yield from model.search()))
        else:
            context.remark("Fewer than three components do not show whether they are functions of one score.")
        if not model.exact and model.C.size:
            descent = Descent(context, diagnosis)
            context.remark("htp: " + (yield from descent.search()))
            yield from descent.resume_after_budget_increase()
