"""HTP: hard thresholding pursuit. The gradient picks the support, quasi-Newton steps go down on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.basics import check
from zerothresh.methods.auto.descent import Descent
from zerothresh.methods.auto.diagnosis import diagnose
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.program import Program
from zerothresh.methods.registry import register


@register("htp")
@dataclass(frozen=True)
class HTP(Program):
    """Hard thresholding pursuit by differences: n d calls to pick a support, n (k + 1) a step on it.

    Arguments
    ---------
    exchanges: how many exchanges of a coordinate are tried at a point where nothing else helps; each
        costs n (k + 2) calls or a few times that. 0: none.

    Reference: Foucart, *Hard thresholding pursuit*, SIAM J. Numer. Anal. 2011.

    >>> HTP()
    HTP(exchanges=6)
    """

    family: ClassVar[str] = "parts of auto"
    order: ClassVar[int] = 2
    solves: ClassVar[str] = "smooth, l0"
    queries: ClassVar[str] = "n d for a support, n (k + 1) on it"
    memory: ClassVar[str] = "1 a call + d^2"

    exchanges: int = 6

    def __post_init__(self) -> None:
        check.count("exchanges", self.exchanges, low=0, what=" (exchanges that are tried)")

    def search(self, context: Context) -> Asks:
        seen = yield from diagnose(context)
        context.remark(seen.words())
        context.random = seen.random
        if not context.free().size:
            return
        descent = Descent(context, seen, exchanges=self.exchanges)
        context.remark((yield from descent.search()))
        yield from descent.insist()
