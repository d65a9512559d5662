"""HZO-HT: hard thresholding with a growing number of directions, and convex constraints by a two-step projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.constraint.two_step import Ball
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream
from zerothresh.theory.complexity import hzo_ht_q

_MOST_DIRECTIONS = 10**9  # no budget allows as many


@dataclass(frozen=True)
class Step:
    """The iterate, and the number of steps so far."""

    theta: Array
    t: int


@register("hzo-ht")
@dataclass(frozen=True)
class HZOHT:
    r"""Hard thresholding with a growing number of directions: n (q_t + 1) calls at step t.

    .. math:: \theta^{(t+1)} = \Pi_\Gamma\big(H_k(\theta^{(t)} - \eta \hat\nabla F(\theta^{(t)}))\big), \quad
        q_t = \lceil \tau / \omega^t \rceil

    With a fixed q, the error of the estimate leaves a distance to the optimum that does not vanish (the system error
    of SZOHT); with a growing q_t it goes to 0. The projection has two steps (2SP): first H_k, then the nearest point
    of the convex set Gamma on the support that H_k chose.

    Arguments
    ---------
    eta: float. Learning rate; the theory asks for 1 / (alpha L) with some alpha > 1.
    tau: float, default 4. Number of directions of the first step.
    omega: float in (0, 1], default 0.99. q grows by the factor 1 / omega per step; the theory asks for
        1 - 1 / (8 alpha kappa).
    within: a further convex constraint Gamma such as ``Ball(2.0, "l1")``, default None. Its projection must preserve
        supports and bounds, as balls around 0 do. The bounds themselves are an argument of `zt.minimize`.

    Reference: de Vazelhes, Yuan and Gu, *Optimization over sparse support-preserving sets: two-step
    projection with global optimality guarantees*, ICML 2025 (HZO-HT, 2SP).

    >>> [HZOHT(eta=0.1, tau=4, omega=0.5).directions(t) for t in range(4)]
    [4, 8, 16, 32]
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "Hard thresholding"
    order: ClassVar[int] = 12
    solves: ClassVar[str] = "smooth, l0 and a convex set"
    queries: ClassVar[str] = "n (q_t + 1), with a growing q_t"
    memory: ClassVar[str] = "d"

    eta: float
    tau: float = 4.0
    omega: float = 0.99
    within: Ball | None = None

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.positive("tau", self.tau, what=" (the number of directions of the first step)")
        if not check.positive("omega", self.omega, what=" (q grows by the factor 1 / omega per step)") <= 1:
            raise ValueError(f"omega must be at most 1 (q grows by the factor 1 / omega per step), not {self.omega}")
        if isinstance(self.within, type) or not (self.within is None or check.has_function(self.within, "project")):
            raise ValueError(
                f"within must have a function project(v), such as Ball(2.0), not {check.shown(self.within)}"
            )

    def directions(self, t: int) -> int:
        """q_t, the number of directions at step t."""
        return min(hzo_ht_q(t=t, tau=self.tau, omega=self.omega), _MOST_DIRECTIONS)

    def init(self, theta: Array) -> Step:
        return Step(theta, t=0)

    def plan(self, state: Step, n: int, rng: Stream) -> Probes:
        return Probes.gradients(at=[state.theta], of=range(n), estimate={"q": max(1, self.directions(state.t))})

    def update(self, state: Step, answers: Answers, H: HardThreshold) -> Step:
        theta = H(state.theta - self.eta * answers.mean())  # 2SP, first step
        if self.within is not None:
            theta = self.within.project(theta)  # second step, on the support
        return Step(theta, state.t + 1)
