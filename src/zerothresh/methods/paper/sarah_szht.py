"""SARAH-SZHT: variance reduction by a recursive gradient."""

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
class SARAHState:
    """The iterate, the previous iterate, and the recursive gradient."""

    theta: Array
    previous: Array  # theta^(t-1)
    gradient: Array  # g^(t-1)
    start: Array  # theta^(0) of the epoch
    outgoing: Array  # where the next epoch starts, as far as the law of the listing's d has been drawn
    t: int  # number of the inner step; the epoch is over when t = m


@register("sarah-szht")
@dataclass(frozen=True)
class SARAHSZHT:
    r"""SARAH with zeroth-order estimates and hard thresholding: n (q + 1) + 2 (m - 1) batch (q + 1) calls per epoch.

    .. math:: \hat g^{(t)} = \hat\nabla f_{i_t}(\theta^{(t)}) - \hat\nabla f_{i_t}(\theta^{(t-1)}) + \hat g^{(t-1)},
        \quad \theta^{(t+1)} = H_k(\theta^{(t)} - \eta \hat g^{(t)})

    Arguments
    ---------
    eta: float. Learning rate.
    m: int, default 10. Number of steps per epoch; the first one uses the full gradient.
    batch: int, default 1 as in the paper. Number of components per inner step, drawn without replacement.
    output: str, default "last". Where the next epoch starts, which is also what an epoch returns: the "last" iterate
        theta^(m), as in the main text's listing of VR-SZHT, or a "random" one, uniformly distributed over theta^(0) ..
        theta^(m), which is what the listing of SARAH-SZHT says. With probability 1/(m+1) that is theta^(0), where the
        epoch began, and all of its calls are thrown away.

    A run with output="last" returns the iterate theta^(t), also in the middle of an epoch. With output="random" it
    returns the outgoing iterate of the last complete epoch, or the start if no epoch is complete; the trace has F at
    that point, so it changes once per epoch.

    The library's default estimator differs from the paper's: its directions are orthonormal, which leaves less error
    for the same calls, and all components of a round share them, so that the error of their mean is proportional to
    the mean of their gradients. ``estimator=zt.Estimator.paper(q=...)`` is the paper's own.

    Reference: Yuan et al., ICLR 2024, Algorithm 4 (appendix); Nguyen et al., ICML 2017.

    >>> SARAHSZHT(eta=0.1, m=5)
    SARAHSZHT(eta=0.1, m=5, batch=1, output='last')
    """

    family: ClassVar[str] = "paper"
    order: ClassVar[int] = 8
    solves: ClassVar[str] = "smooth finite sum, l0"
    queries: ClassVar[str] = "n (q + 1) once per epoch, otherwise 2 batch (q + 1)"
    memory: ClassVar[str] = "5 d"

    eta: float
    m: int = 10
    batch: int = 1
    output: str = "last"

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.count("m", self.m, what=" (steps per epoch)")
        check.count("batch", self.batch, what=" (components per inner step)")
        check.one_of("output", self.output, ("last", "random"))

    def init(self, theta: Array) -> SARAHState:
        return SARAHState(theta, theta, np.zeros_like(theta), theta, theta, t=self.m)

    def plan(self, state: SARAHState, n: int, rng: Stream) -> Probes:
        i_t = rng.subset(n, self.batch)  # l. 6; drawn at t = m too: a batch above n is refused before the first call
        t = 0 if state.t == self.m else state.t
        # l. 10: "theta~^(r) = theta^(d) with d chosen uniformly at random from {0, 1, ..., m}". To store one iterate
        # only, theta^(t+1) replaces the one before with probability 1/(t+2), so that each of theta^(0) .. theta^(t+1)
        # is the chosen one equally often.
        keep = self.output == "last" or rng.chance(1 / (t + 2))
        if state.t == self.m:
            return Probes.gradients(at=[state.outgoing], of=range(n), keep=keep)  # Alg. 4, l. 2-3
        return Probes.gradients(at=[state.theta, state.previous], of=i_t, keep=keep)

    def update(self, state: SARAHState, answers: Answers, H: HardThreshold) -> SARAHState:
        if state.t == self.m:
            start = theta = state.outgoing  # l. 2
            t, g = 0, answers.mean()  # l. 3
        else:
            start, theta, t = state.start, state.theta, state.t
            g = answers.difference() + state.gradient  # l. 7
        # l. 4 and 8. The listing has no H_k, but the constraint and the analysis need it after every step.
        following = H(theta - self.eta * g)
        outgoing = following if answers.notes["keep"] else state.outgoing  # l. 10
        return SARAHState(following, theta, g, start, outgoing, t + 1)

    def returned(self, state: SARAHState) -> Array:
        """Return the iterate, or with output="random" the outgoing iterate of the last complete epoch.

        In the middle of an epoch that is where the epoch began; before the first one is complete it is the start.
        """
        if self.output == "last":
            return state.theta
        return state.outgoing if state.t == self.m else state.start
