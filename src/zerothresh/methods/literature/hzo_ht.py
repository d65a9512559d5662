"""HZO-HT: hard thresholding with more and more directions, and convex constraints by two projections."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.literature.dense import soft_threshold
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream

_MOST = 10**9  # directions: no budget holds as many


@dataclass(frozen=True)
class Ball:
    """A convex constraint that keeps supports: {||x|| <= radius} in the l2 or the l1 norm.

    >>> Ball(1.0, "l1").project(np.array([2.0, 0.0, -1.5])).tolist()
    [0.75, 0.0, -0.25]
    """

    radius: float
    norm: str = "l2"

    def __post_init__(self) -> None:
        check.positive("radius", self.radius, what=" (of the ball)")
        check.one_of("norm", self.norm, ("l1", "l2"))

    def project(self, v: Array) -> Array:
        """The nearest point of the ball; what is 0 stays 0."""
        if self.norm == "l2":
            size = float(np.linalg.norm(v))
            return v if size <= self.radius else v * (self.radius / size)
        sizes = np.sort(np.abs(v))[::-1]
        if sizes.sum() <= self.radius:
            return v
        levels = (np.cumsum(sizes) - self.radius) / np.arange(1, v.size + 1)
        return soft_threshold(v, float(levels[np.flatnonzero(sizes > levels)[-1]]))


@dataclass(frozen=True)
class Step:
    """The iterate, and the number of steps made."""

    theta: Array
    t: int


@register("hzo-ht")
@dataclass(frozen=True)
class HZOHT:
    r"""Hard thresholding with a growing number of directions: n (q_t + 1) calls at step t.

    .. math:: \theta^{(t+1)} = \Pi_\Gamma\big(H_k(\theta^{(t)} - \eta \hat\nabla F(\theta^{(t)}))\big), \quad
        q_t = \lceil \tau / \omega^t \rceil

    With q fixed, the error of the estimate leaves a distance to the optimum that does not vanish (the
    system error of SZOHT); with q_t it goes to 0. The projection is in two steps (2SP): H_k first, then
    the nearest point of the convex set Gamma, on the support that H_k has left.

    Arguments
    ---------
    eta: learning rate; the theory's is 1 / (alpha L), with some alpha > 1.
    tau: directions of the first step.
    omega: q grows by 1 / omega a step; the theory's is 1 - 1 / (8 alpha kappa).
    within: a further convex constraint Gamma, such as ``Ball(2.0, "l1")``. It has to keep supports and
        bounds; balls around 0 do. Bounds themselves go to `zt.minimize`, as with all methods.

    Reference: de Vazelhes, Yuan and Gu, *Optimization over sparse support-preserving sets: two-step
    projection with global optimality guarantees*, ICML 2025 (HZO-HT, 2SP).

    >>> [HZOHT(eta=0.1, tau=4, omega=0.5).directions(t) for t in range(4)]
    [4, 8, 16, 32]
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "Hard thresholding"
    order: ClassVar[int] = 12
    solves: ClassVar[str] = "smooth, l0 and a convex set"
    queries: ClassVar[str] = "n (q_t + 1), q_t growing"
    memory: ClassVar[str] = "d"

    eta: float
    tau: float = 4.0
    omega: float = 0.99
    within: Ball | None = None

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.positive("tau", self.tau, what=" (directions of the first step)")
        if not check.positive("omega", self.omega, what=" (q grows by 1 / omega a step)") <= 1:
            raise ValueError(f"omega must be at most 1, so that q grows by 1 / omega a step, not {self.omega}")
        if self.within is not None and not callable(getattr(self.within, "project", None)):
            raise ValueError(f"within must have a function project(v), such as Ball(2.0), not {self.within!r}")

    def directions(self, t: int) -> int:
        """q_t."""
        return math.ceil(min(math.exp(min(math.log(self.tau) - t * math.log(self.omega), 50.0)) - 1e-9, _MOST))

    def init(self, theta: Array) -> Step:
        return Step(theta, t=0)

    def plan(self, state: Step, n: int, rng: Stream) -> Probes:
        return Probes.gradients(at=[state.theta], of=range(n), estimate={"q": max(1, self.directions(state.t))})

    def update(self, state: Step, answers: Answers, H: HardThreshold) -> Step:
        theta = H(state.theta - self.eta * answers.mean())  # 2SP, first step
        if self.within is not None:
            theta = self.within.project(theta)  # second step, on the support
        return Step(theta, state.t + 1)
