"""HTP: hard thresholding pursuit. The gradient picks the support, quasi-Newton steps minimise on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.basics import check
from zerothresh.methods.auto.arms.descent import Descent
from zerothresh.methods.auto.diagnosis import diagnose
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.registry import register


@register("htp")
@dataclass(frozen=True)
class HTP(Program):
    """Hard thresholding pursuit with difference gradients: n d calls to pick a support, n (k + 1) per step on it.

    Arguments
    ---------
    exchanges: int, how many exchanges of one coordinate are tried at a local minimum. Each costs n (k + 2) calls or
        a few times as many; 0 tries none. Default: 6.

    Reference: Foucart, *Hard thresholding pursuit*, SIAM J. Numer. Anal. 2011.

    >>> HTP()
    HTP(exchanges=6)
    """

    family: ClassVar[str] = "parts of auto"
    order: ClassVar[int] = 2
    solves: ClassVar[str] = "smooth, l0"
    queries: ClassVar[str] = "n d for a support, n (k + 1) on it"
    memory: ClassVar[str] = "1 per call + d^2"
    keeps_constraints: ClassVar[bool] = False
    whole: ClassVar[bool] = True

    exchanges: int = DESCENT.exchanges

    def __post_init__(self) -> None:
        check.count("exchanges", self.exchanges, low=0, what=" (exchanges that are tried)")

    def search(self, context: Context) -> Asks:
        diagnosis = yield from diagnose(context)
        context.remark(f"Diagnosis: {diagnosis.summary()}.")
        context.random = diagnosis.random
        if not context.free().size:
            return
        descent = Descent(context, diagnosis, exchanges=self.exchanges)
        context.remark((yield from descent.search()))
        yield from descent.resume_after_budget_increase()
