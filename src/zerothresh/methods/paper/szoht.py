"""SZOHT: stochastic zeroth-order hard thresholding."""

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


@register("szoht")
@dataclass(frozen=True)
class SZOHT:
    r"""Stochastic zeroth-order hard thresholding: batch (q + 1) calls per step.

    .. math:: \theta^{(r+1)} = H_k\big(\theta^{(r)} - \eta \hat\nabla f_{i_r}(\theta^{(r)})\big)

    Arguments
    ---------
    eta: float. Learning rate.
    batch: int, default 1 as in the paper. Number of components per step, drawn without replacement.

    The library's default estimator differs from the paper's: its directions are orthonormal, which leaves less error
    for the same calls, and all components of a round share them, so that the error of their mean is proportional to
    the mean of their gradients. ``estimator=zt.Estimator.paper(q=...)`` is the paper's own.

    Reference: de Vazelhes et al., NeurIPS 2022; Yuan et al., ICLR 2024, Section 2.2.

    >>> SZOHT(eta=0.1).batch
    1
    """

    family: ClassVar[str] = "paper"
    order: ClassVar[int] = 2
    solves: ClassVar[str] = "smooth, l0"
    queries: ClassVar[str] = "batch (q + 1)"
    memory: ClassVar[str] = "d"
    has_floor: ClassVar[bool] = True  # with a constant eta it stalls at a distance from the optimum

    eta: float
    batch: int = 1

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.count("batch", self.batch, what=" (components per step)")

    def init(self, theta: Array) -> Iterate:
        return Iterate(theta)

    def plan(self, state: Iterate, n: int, rng: Stream) -> Probes:
        i_r = rng.subset(n, self.batch)
        return Probes.gradients(at=[state.theta], of=i_r)

    def update(self, state: Iterate, answers: Answers, H: HardThreshold) -> Iterate:
        return Iterate(H(state.theta - self.eta * answers.mean()))
