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
    outgoing: Array  # where the next epoch starts, as far as the law of t' has been drawn
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
    output: str, default "last". Where the next epoch starts, which is also what an epoch returns: the "last" inner
        iterate theta^(m) (the listing of the main text), or a "random" one, uniformly distributed over theta^(0) ..
        theta^(m-1) (the listing of the appendix, to which the theorem belongs). With "random", m must be at least 2:
        with probability 1/m the epoch returns theta^(0), where it began, and all of its calls are thrown away.
        theta^(m) is never returned. (The proof needs yet another law, `zerothresh.theory.outgoing_law`.)

    A run with output="last" returns the iterate theta^(t), also in the middle of an epoch. With output="random" it
    returns the outgoing iterate of the last complete epoch, or the start if no epoch is complete; the trace has F at
    that point, so it changes once per epoch.

    The library's default estimator differs from the paper's: its directions are orthonormal, which leaves less error
    for the same calls, and all components of a round share them, so that the error of their mean is proportional to
    the mean of their gradients. ``estimator=zt.Estimator.paper(q=...)`` is the paper's own.

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
        if self.output == "random" and self.m == 1:
            raise ValueError(
                "m must be at least 2 with output='random', which draws from theta^(0) .. theta^(m-1): with m = 1 "
                "every epoch would return the point where it began"
            )

    def init(self, theta: Array) -> VRState:
        return VRState(theta, theta, np.zeros_like(theta), theta, t=self.m)

    def plan(self, state: VRState, n: int, rng: Stream) -> Probes:
        if state.t == self.m:
            return Probes.gradients(at=[state.outgoing], of=range(n))  # Alg. 2, l. 2-3
        i_t = rng.subset(n, self.batch)  # l. 5
        # The appendix, last line: "theta^r = theta^(t'), random t' in [m-1]". Read as t' uniform in 0 .. m-1, because
        # its proof sums over t = 0, ..., m-1. To store one iterate only, theta^(t) replaces the one before with
        # probability 1/(t+1), so that each of theta^(0) .. theta^(t) is the chosen one equally often.
        keep = self.output == "random" and rng.chance(1 / (state.t + 1))
        return Probes.gradients(at=[state.theta, state.anchor], of=i_t, keep=keep)  # l. 6

    def update(self, state: VRState, answers: Answers, H: HardThreshold) -> VRState:
        if state.t == self.m:
            start = state.outgoing
            return VRState(start, start, answers.mean(), start, t=0)  # l. 2-3
        g = answers.difference() + state.anchor_gradient  # l. 7
        theta = H(state.theta - self.eta * g)  # l. 7-8
        drawn = state.theta if answers.notes["keep"] else state.outgoing  # the appendix: theta^(t'), so far t' <= t
        outgoing = theta if self.output == "last" else drawn  # l. 10: "theta^r = theta^(r+1)"
        return replace(state, theta=theta, outgoing=outgoing, t=state.t + 1)

    def returned(self, state: VRState) -> Array:
        """Return the iterate, or with output="random" the outgoing iterate of the last complete epoch.

        In the middle of an epoch that one is the anchor; before the first epoch is complete it is the start.
        """
        if self.output == "last":
            return state.theta
        return state.outgoing if state.t == self.m else state.anchor
