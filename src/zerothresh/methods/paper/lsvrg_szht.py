"""LSVRG-SZHT: the variant of SVRG without an inner loop that the framework contains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.methods.paper import pm_szht
from zerothresh.methods.paper.laws import AllOrNothing
from zerothresh.methods.registry import register


@register("lsvrg-szht")
@dataclass(frozen=True)
class LSVRGSZHT:
    """Loopless SVRG: a step refreshes the whole memory with probability p/n, and nothing of it otherwise.
    It makes n (q + 1) calls at the start and at each refresh, and batch (q + 1) calls at every other step.

    Arguments
    ---------
    eta: float. Learning rate.
    p: float, default 1. n times the probability of a refresh.
    batch: int, default 1 as in the paper. Number of components per step.

    The library's default estimator differs from the paper's: its directions are orthonormal, which leaves less error
    for the same calls, and all components of a round share them, so that the error of their mean is proportional to
    the mean of their gradients. ``estimator=zt.Estimator.paper(q=...)`` is the paper's own.

    Reference: Yuan et al., ICLR 2024, Section 4.1; Hofmann et al., NIPS 2015.

    >>> LSVRGSZHT(eta=0.1).law
    AllOrNothing(p=1.0)
    """

    family: ClassVar[str] = "paper"
    order: ClassVar[int] = 6
    solves: ClassVar[str] = "smooth finite sum, l0"
    queries: ClassVar[str] = "n (q + 1) at a refresh (probability p/n), otherwise batch (q + 1)"
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
