"""ZO-ProxSVRG: variance-reduced proximal descent with an l1 penalty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.literature.dense import COORDINATES, output_point, soft_threshold
from zerothresh.methods.literature.zo_svrg import Anchored
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


@register("zo-prox-svrg")
@dataclass(frozen=True)
class ZOProxSVRG:
    r"""Proximal SVRG on F + lam ||x||_1: n + 2 m batch gradient estimates per epoch.

    .. math:: x^{(t+1)} = prox_{\eta\lambda\|\cdot\|_1}\big(x^{(t)} - \eta(\hat\nabla f_{I_t}(x^{(t)})
        - \hat\nabla f_{I_t}(x^{(0)}) + \hat\nabla F(x^{(0)}))\big)

    Arguments
    ---------
    eta: float. Learning rate.
    lam: float, default 1e-3. Weight of the l1 norm; the sparsity that results is not known in advance.
    m: int, default 10. Number of inner steps per epoch.
    batch: int, default 1. Number of components per inner step, drawn without replacement.
    estimator: str, default "coord". "coord": central differences along all coordinates, 2 d calls (CooSGE).
        "gauss": q Gaussian directions, with the q of `zt.Estimator`, q + 1 calls (GauSGE).
    threshold: bool, default False. Return H_k(x) instead of x; the iteration itself does not use H_k.

    Reference: Huang et al., *Faster gradient-free proximal stochastic methods for nonconvex nonsmooth
    optimization*, AAAI 2019.

    >>> ZOProxSVRG(eta=0.1, lam=0.01).estimator
    'coord'
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "l1 relaxations"
    order: ClassVar[int] = 33
    solves: ClassVar[str] = "smooth finite sum + l1"
    queries: ClassVar[str] = "2 d n per epoch, then 4 d batch per step"
    memory: ClassVar[str] = "3 d"

    eta: float
    lam: float = 1e-3
    m: int = 10
    batch: int = 1
    estimator: str = "coord"
    threshold: bool = False

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.positive("lam", self.lam, what=" (the weight of the l1 norm)")
        check.count("m", self.m, what=" (inner steps per epoch)")
        check.count("batch", self.batch, what=" (components per inner step)")
        check.one_of("estimator", self.estimator, ("coord", "gauss"))
        check.flag("threshold", self.threshold)

    @property
    def sparse(self) -> bool:
        """Whether the returned point keeps the l0 constraint."""
        return self.threshold

    def init(self, theta: Array) -> Anchored:
        return Anchored(theta, theta, theta, np.zeros_like(theta), t=self.m)

    def plan(self, state: Anchored, n: int, rng: Stream) -> Probes:
        own = {"directions": "gaussian"} if self.estimator == "gauss" else {**COORDINATES, "q": state.x.size}
        if state.t == self.m:
            return Probes.gradients(at=[state.x], of=range(n), estimate=own)
        i_t = rng.subset(n, self.batch)
        return Probes.gradients(at=[state.x, state.anchor], of=i_t, estimate=own)

    def update(self, state: Anchored, answers: Answers, H: HardThreshold) -> Anchored:
        if state.t == self.m:
            return replace(state, anchor=state.x, anchor_gradient=answers.mean(), t=0)
        v = answers.difference() + state.anchor_gradient
        x = H.within_bounds(soft_threshold(state.x - self.eta * v, self.eta * self.lam))
        return replace(state, theta=output_point(x, H, self.threshold), x=x, t=state.t + 1)
