"""SAGA-SZHT: pM-SZHT with J = {i_r}."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.methods.paper import pm_szht
from zerothresh.methods.paper.laws import FixedSize
from zerothresh.methods.registry import register


@register("saga-szht")
@dataclass(frozen=True)
class SAGASZHT:
    """SAGA, which refreshes the memory of the sampled components: n (q + 1) calls once, then batch (q + 1) per step.

    Arguments
    ---------
    eta: float. Learning rate.
    batch: int, default 1 as in the paper. Number of components per step.

    The library's default estimator differs from the paper's: its directions are orthonormal, which leaves less error
    for the same calls, and all components of a round share them, so that the error of their mean is proportional to
    the mean of their gradients. ``estimator=zt.Estimator.paper(q=...)`` is the paper's own.

    Reference: Yuan et al., ICLR 2024, Section 4.1; Defazio et al., NIPS 2014.

    >>> SAGASZHT(eta=0.1).law
    FixedSize(p=1)
    """

    family: ClassVar[str] = "paper"
    order: ClassVar[int] = 5
    solves: ClassVar[str] = "smooth finite sum, l0"
    queries: ClassVar[str] = "n (q + 1) once, then batch (q + 1)"
    memory: ClassVar[str] = "n (q + 2) + d"

    eta: float
    batch: int = 1

    def __post_init__(self) -> None:
        pm_szht.check_memorising(self)

    @property
    def law(self) -> FixedSize:
        return FixedSize(self.batch)

    init, plan, update = pm_szht.init, pm_szht.plan, pm_szht.update
