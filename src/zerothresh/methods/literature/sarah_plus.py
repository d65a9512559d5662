"""SARAH+ with hard thresholding: an epoch ends when its gradient has shrunk enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


@dataclass(frozen=True)
class SARAHPlusState:
    """The iterate, the previous iterate, and the recursive gradient."""

    theta: Array
    previous: Array  # theta^(t-1)
    gradient: Array  # g^(t-1)
    first: float  # the squared norm at the beginning of the epoch
    now: float  # the latest squared norm
    t: int  # steps of this epoch so far; an epoch begins when t = 0


@register("sarah-plus")
@dataclass(frozen=True)
class SARAHPlus:
    r"""SARAH-SZHT with adaptive epochs: n (q + 1) calls once per epoch, then 2 batch (q + 1) per step.

    .. math:: \hat g^{(t)} = \hat\nabla f_{i_t}(\theta^{(t)}) - \hat\nabla f_{i_t}(\theta^{(t-1)}) + \hat g^{(t-1)},
        \quad \theta^{(t+1)} = H_k(\theta^{(t)} - \eta \hat g^{(t)})
        \quad \text{while } \|\hat g^{(t)}\|^2 > \gamma \|\hat g^{(0)}\|^2 \text{ and } t < m

    Arguments
    ---------
    eta: float. Learning rate.
    gamma: float in [0, 1), default 1/8 as in the paper. An epoch ends when the squared norm has decreased to this share
        of its initial value.
    m: int, default 100. Largest number of steps per epoch.
    batch: int, default 1. Number of components per inner step, drawn without replacement.
    measure: str, default "gradient". Of what the squared norm is taken: of the "gradient" g, as published, or of the
        "step" that H_k leaves, (theta^(t) - theta^(t+1)) / eta. At a sparse optimum the gradient does not vanish off
        the support, so that its norm may never decrease enough; that of the step does. Without H_k the two agree.

    Reference: Nguyen et al., *SARAH*, ICML 2017, Algorithm 2 (SARAH+); future work in Yuan et al., ICLR 2024.

    >>> SARAHPlus(eta=0.1)
    SARAHPlus(eta=0.1, gamma=0.125, m=100, batch=1, measure='gradient')
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "Hard thresholding"
    order: ClassVar[int] = 11
    solves: ClassVar[str] = "smooth finite sum, l0"
    queries: ClassVar[str] = "n (q + 1) once per epoch, otherwise 2 batch (q + 1)"
    memory: ClassVar[str] = "3 d"

    eta: float
    gamma: float = 0.125
    m: int = 100
    batch: int = 1
    measure: str = "gradient"

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.share("gamma", self.gamma, what=" (of the initial squared norm, at which an epoch ends)")
        check.count("m", self.m, what=" (the largest number of steps per epoch)")
        check.count("batch", self.batch, what=" (components per inner step)")
        check.one_of("measure", self.measure, ("gradient", "step"))

    def init(self, theta: Array) -> SARAHPlusState:
        return SARAHPlusState(theta, theta, np.zeros_like(theta), 0.0, 0.0, t=0)

    def plan(self, state: SARAHPlusState, n: int, rng: Stream) -> Probes:
        i_t = rng.subset(n, self.batch)  # drawn at t = 0 too: a batch above n is then refused before the first call
        if state.t == 0:
            return Probes.gradients(at=[state.theta], of=range(n))
        return Probes.gradients(at=[state.theta, state.previous], of=i_t)

    def update(self, state: SARAHPlusState, answers: Answers, H: HardThreshold) -> SARAHPlusState:
        theta = state.theta
        g = answers.mean() if state.t == 0 else answers.difference() + state.gradient
        following = H(theta - self.eta * g)  # SARAH+ has no H_k
        moved = g if self.measure == "gradient" else (theta - following) / self.eta
        now = float(moved @ moved)
        first, t = (now, 1) if state.t == 0 else (state.first, state.t + 1)
        if (t > 1 and now <= self.gamma * first) or t >= self.m or now == 0.0:  # SARAH+: the epoch ends
            t = 0
        return SARAHPlusState(following, theta, g, first, now, t)
