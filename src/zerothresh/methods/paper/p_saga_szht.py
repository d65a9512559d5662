"""p-SAGA-SZHT: pM-SZHT where J is a uniformly random set of p components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.methods.paper import pm_szht
from zerothresh.methods.paper.laws import FixedSize
from zerothresh.methods.registry import register


@register("p-saga-szht")
@dataclass(frozen=True)
class PSAGASZHT:
    """SAGA that refreshes p rows of its memory per step: n (q + 1) calls once, then p (q + 1) per step.

    Arguments
    ---------
    eta: float. Learning rate.
    p: int, default 2. Number of rows of the memory to refresh per step.
    batch: int, default 1 as in the paper, at most p. Number of components per step; they are the first ones of J.

    The library's default estimator differs from the paper's: its directions are orthonormal, which leaves less error
    for the same calls, and all components of a round share them, so that the error of their mean is proportional to
    the mean of their gradients. ``estimator=zt.Estimator.paper(q=...)`` is the paper's own.

    Reference: Yuan et al., ICLR 2024, Section 4.1; Hofmann et al., NIPS 2015 (q-SAGA).

    >>> PSAGASZHT(eta=0.1, p=2).law
    FixedSize(p=2)
    """

    family: ClassVar[str] = "paper"
    order: ClassVar[int] = 4
    solves: ClassVar[str] = "smooth finite sum, l0"
    queries: ClassVar[str] = "n (q + 1) once, then p (q + 1)"
    memory: ClassVar[str] = "n (q + 2) + d"

    eta: float
    p: int = 2
    batch: int = 1

    def __post_init__(self) -> None:
        pm_szht.check_memorising(self)

    @property
    def law(self) -> FixedSize:
        return FixedSize(self.p)

    init, plan, update = pm_szht.init, pm_szht.plan, pm_szht.update
