"""LSVRG-SZHT: the framework's own variant of SVRG, without an inner loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.methods.paper import pm_szht
from zerothresh.methods.paper.laws import AllOrNothing
from zerothresh.methods.registry import register


@register("lsvrg-szht")
@dataclass(frozen=True)
class LSVRGSZHT:
    """Loopless SVRG: all rows are refreshed with probability p/n, else none.

    n (q + 1) calls once and at each refresh, batch (q + 1) at other steps.

    Arguments
    ---------
    eta: learning rate.
    p: n times the chance of a refresh.
    batch: components of the step. The paper draws one.

    Reference: Yuan et al., ICLR 2024, Section 4.1; Hofmann et al., NIPS 2015.

    >>> LSVRGSZHT(eta=0.1).law
    AllOrNothing(p=1.0)
    """

    family: ClassVar[str] = "paper"
    order: ClassVar[int] = 6
    solves: ClassVar[str] = "smooth finite sum, l0"
    queries: ClassVar[str] = "n (q + 1) at a refresh (chance p/n), else batch (q + 1)"
    memory: ClassVar[str] = "n (q + 2) + d"

    eta: float
    p: float = 1.0
    batch: int = 1

    def __post_init__(self) -> None:
        pm_szht.check_memorising(self)

    @property
    def law(self) -> AllOrNothing:
        return AllOrNothing(self.p)

    init, plan, update = pm_szht.init, pm_szht.plan, pm_szht.update
