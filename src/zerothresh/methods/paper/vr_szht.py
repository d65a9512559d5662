"""VR-SZHT: stochastic variance-reduced zeroth-order hard thresholding (SVRG)."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
class VRState:
    """The iterate and the anchor of the epoch."""

    theta: Array
    anchor: Array  # theta^(0) of the epoch
    anchor_gradient: Array  # mu hat
    outgoing: Array  # where the next epoch starts
    t: int  # number of the inner step; the epoch is over when t = m


@register("vr-szht")
@dataclass(frozen=True)
class VRSZHT:
    r"""Variance-reduced zeroth-order hard thresholding: n (q + 1) + 2 m batch (q + 1) calls per epoch.

    .. math:: \theta^{(t+1)} = H_k\big(\theta^{(t)} - \eta(
        \hat\nabla f_{i_t}(\theta^{(t)}) - \hat\nabla f_{i_t}(\theta^{(0)}) + \hat\mu)\big),
        \quad \hat\mu = \frac1n \sum_{i=1}^n \hat\nabla f_i(\theta^{(0)})

    Arguments
    ---------
    eta: float. Learning rate.
    m: int, default 10. Number of inner steps per epoch.
    batch: int, default 1 as in the paper. Number of components per inner step, drawn without replacement.
    output: str, default "last". Where the next epoch starts: at the "last" inner iterate (the paper's main text),
        or at a "random" one of theta^(1) .. theta^(m) (its appendix, which leaves out the m-th).

    Reference: Yuan et al., ICLR 2024, Algorithm 2; Johnson and Zhang, NIPS 2013.

    >>> VRSZHT(eta=0.1, m=5)
    VRSZHT(eta=0.1, m=5, batch=1, output='last')
    """

    family: ClassVar[str] = "paper"
    order: ClassVar[int] = 7
    solves: ClassVar[str] = "smooth finite sum, l0"
    queries: ClassVar[str] = "n (q + 1) once per epoch, otherwise 2 batch (q + 1)"
    memory: ClassVar[str] = "4 d"

    eta: float
    m: int = 10
    batch: int = 1
    output: str = "last"

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.count("m", self.m, what=" (inner steps per epoch)")
        check.count("batch", self.batch, what=" (components per inner step)")
        check.one_of("output", self.output, ("last", "random"))

    def init(self, theta: Array) -> VRState:
        return VRState(theta, theta, np.zeros_like(theta), theta, t=self.m)

    def plan(self, state: VRState, n: int, rng: Stream) -> Probes:
        if state.t == self.m:
            return Probes.gradients(at=[state.outgoing], of=range(n))  # Alg. 2, l. 2-3
        i_t = rng.subset(n, self.batch)  # l. 5
        # l. 10: one of the t+1 iterates so far, uniformly, without storing them all
        keep = self.output == "last" or rng.chance(1 / (state.t + 1))
        return Probes.gradients(at=[state.theta, state.anchor], of=i_t, keep=keep)  # l. 6

    def update(self, state: VRState, answers: Answers, H: HardThreshold) -> VRState:
        if state.t == self.m:
            start = state.outgoing
            return VRState(start, start, answers.mean(), start, t=0)  # l. 2-3
        g = answers.difference() + state.anchor_gradient  # l. 7
        theta = H(state.theta - self.eta * g)  # l. 7-8
        outgoing = theta if answers.notes["keep"] else state.outgoing  # l. 10
        return replace(state, theta=theta, outgoing=outgoing, t=state.t + 1)
