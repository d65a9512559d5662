"""FGZOHT: full-gradient zeroth-order hard thresholding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.method import Iterate
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


@register("fgzoht")
@dataclass(frozen=True)
class FGZOHT:
    r"""Full-gradient zeroth-order hard thresholding: n (q + 1) calls per step.

    .. math:: \theta^{(r+1)} = H_k\Big(\theta^{(r)} - \eta \frac1n \sum_{i=1}^n \hat\nabla f_i(\theta^{(r)})\Big)

    Arguments
    ---------
    eta: float. Learning rate.

    The library's default estimator differs from the paper's: its directions are orthonormal, which leaves less error
    for the same calls, and all components of a round share them, so that the error of their mean is proportional to
    the mean of their gradients. ``estimator=zt.Estimator.paper(q=...)`` is the paper's own.

    Reference: Yuan et al., ICLR 2024, Section 5 ("the full gradient version of SZOHT").

    >>> FGZOHT(eta=0.1)
    FGZOHT(eta=0.1)
    """

    family: ClassVar[str] = "paper"
    order: ClassVar[int] = 1
    solves: ClassVar[str] = "smooth, l0"
    queries: ClassVar[str] = "n (q + 1)"
    memory: ClassVar[str] = "d"

    eta: float

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")

    def init(self, theta: Array) -> Iterate:
        return Iterate(theta)

    def plan(self, state: Iterate, n: int, rng: Stream) -> Probes:
        return Probes.gradients(at=[state.theta], of=range(n))

    def update(self, state: Iterate, answers: Answers, H: HardThreshold) -> Iterate:
        return Iterate(H(state.theta - self.eta * answers.mean()))
