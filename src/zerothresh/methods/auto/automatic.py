"""Auto, the default method: diagnose the black box, choose the methods that fit it, and check what they find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.methods.auto.arms.descent import LocalDescent
from zerothresh.methods.auto.arms.single_index_model import SingleIndexModel, affordable
from zerothresh.methods.auto.arms.stochastic_descent import StochasticDescent
from zerothresh.methods.auto.diagnosis import diagnose
from zerothresh.methods.auto.niht import sampled_gradient_niht
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.registry import register

_MIN_GRADIENTS = 3  # a budget below this many gradients of one component is too small for coordinate differences


@register("auto")
@dataclass(frozen=True)
class Auto(Program):
    """The default method, without settings: no learning rate, no mu, no q.

    About a dozen calls show what the black box is like. Depending on that, `index`, `htp` or `niht` is used, with
    stochastic descent before them if the noise is strong and restarts after them.

    >>> Auto()
    Auto()
    """

    family: ClassVar[str] = "auto"
    solves: ClassVar[str] = "any F, l0"
    queries: ClassVar[str] = "those of the parts that it chooses"
    memory: ClassVar[str] = "1 per call, and that of its parts"

    def search(self, context: Context) -> Asks:
        diagnosis = yield from diagnose(context)
        context.remark(f"Diagnosis: {diagnosis.summary()}.")
        context.random = diagnosis.random
        if not context.free().size:
            context.remark("No coordinate is free to change; the start is the result.")
            return
        if context.left < _MIN_GRADIENTS * (context.free().size + 2):
            context.remark(
                "niht: The budget is too small for a full coordinate gradient; using random directions instead."
            )
            context.remark("niht: " + (yield from sampled_gradient_niht(context, diagnosis)))
            return
        if StochasticDescent().fits(context, diagnosis):
            context.remark("stochastic descent: " + (yield from StochasticDescent().search(context, diagnosis)).reason)
        index_model = None
        if context.n > 2 and not (diagnosis.rough or diagnosis.kink) and affordable(context):
            index_model = SingleIndexModel(context, diagnosis)
            context.remark("index: " + (yield from index_model.search()))
            if index_model.exact:
                return  # the model is F, and its best support is known
        if index_model is not None and index_model.several_scores:
            rows = index_model.start_gradients
            context.remember_gradients(index_model.order[: len(rows)], rows)
        ended = yield from LocalDescent().search(context, diagnosis)
        context.remark("descent: " + ended.reason)
