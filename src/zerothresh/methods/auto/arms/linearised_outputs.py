"""The arm for calls that return many residuals: sparse Gauss-Newton on them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

from zerothresh.losses import Itself
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.moves.trusted_search import trusted
from zerothresh.methods.auto.settings.outputs_settings import OUTPUTS
from zerothresh.methods.program.context import Context
from zerothresh.methods.residual.linearised import Linearised
from zerothresh.methods.residual.sparse_gauss_newton import gauss_newton
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class LinearisedOutputs:
    """Linearise all outputs, choose the support on the linear model, and let every call correct it.

    It goes on until no exchange and no restart helps any more, as long as its predictions come true or it gains
    something before its calls have doubled. A linear model that predicts badly, because outputs jump or because noise
    hides their differences, ends.
    """

    name: ClassVar[str] = "gauss-newton"
    decisive: ClassVar[bool] = True

    def fits(self, context: Context, diagnosis: Diagnosis | None) -> bool:
        """Whether calls return residuals, there is something to choose, and bounds are the only constraint."""
        if context.constraint.further is not None:
            return False
        return context.has_outputs and not isinstance(context.loss, Itself) and context.free().size > 0

    def forecast(self, context: Context, diagnosis: Diagnosis | None) -> int:
        """Return the calls of all columns, and of some steps on the support."""
        return context.free().size + OUTPUTS.steps * context.k

    def search(self, context: Context, diagnosis: Diagnosis | None) -> Generator[Probes, Answers, Ended]:
        state = Linearised(context, context.width)
        patience = self.forecast(context, diagnosis)
        matched, why = yield from trusted(gauss_newton(state), context, patience, lambda: state.predictions.truth)
        if why:
            return Ended(f"The linear model of the outputs predicts badly: {why}.")
        if matched:
            return Ended("The residuals are zero up to rounding or their noise.", certified=True)
        return Ended("No exchange and no restart that the linear model suggests lowers F any more.")
