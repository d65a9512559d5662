"""ZO-SVRG: variance-reduced zeroth-order descent with any of its three gradient estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.literature.dense import estimate_of, output_point
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


@dataclass(frozen=True)
class Anchored:
    """The iterate x, the point theta that is returned for it, and the anchor of the epoch."""

    theta: Array
    x: Array
    anchor: Array
    anchor_gradient: Array
    t: int  # number of the inner step; the epoch is over when t = m


@register("zo-svrg")
@dataclass(frozen=True)
class ZOSVRG:
    r"""Zeroth-order SVRG, without sparsity: n + 2 m batch gradient estimates per epoch.

    .. math:: x^{(t+1)} = x^{(t)} - \eta\big(\hat\nabla f_{I_t}(x^{(t)}) - \hat\nabla f_{I_t}(x^{(0)})
        + \hat\nabla F(x^{(0)})\big)

    Arguments
    ---------
    eta: float. Learning rate.
    m: int, default 10. Number of inner steps per epoch.
    batch: int, default 1. Number of components per inner step, drawn without replacement.
    estimator: str, default "ave". Which of the paper's three estimates to use. "rand": one random direction, 2 calls
        (ZO-SVRG). "ave": the mean over the q directions of `zt.Estimator`, q + 1 calls (ZO-SVRG-Ave). "coord": central
        differences along all coordinates, 2 d calls (ZO-SVRG-Coord).
    threshold: bool, default False. Return H_k(x) instead of x; the iteration itself does not use H_k.

    Reference: Liu et al., *Zeroth-order stochastic variance reduction for nonconvex optimization*,
    NeurIPS 2018.

    >>> ZOSVRG(eta=0.1, estimator="coord").estimator
    'coord'
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "No sparsity, for reference"
    order: ClassVar[int] = 42
    solves: ClassVar[str] = "smooth finite sum, no sparsity"
    queries: ClassVar[str] = "n estimates once per epoch, otherwise 2 batch, of 2, q + 1 or 2 d calls each"
    memory: ClassVar[str] = "3 d"

    eta: float
    m: int = 10
    batch: int = 1
    estimator: str = "ave"
    threshold: bool = False

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.count("m", self.m, what=" (inner steps per epoch)")
        check.count("batch", self.batch, what=" (components per inner step)")
        check.one_of("estimator", self.estimator, ("rand", "ave", "coord"))
        check.flag("threshold", self.threshold)

    @property
    def sparse(self) -> bool:
        """Whether the returned point keeps the l0 constraint."""
        return self.threshold

    def init(self, theta: Array) -> Anchored:
        return Anchored(theta, theta, theta, np.zeros_like(theta), t=self.m)

    def plan(self, state: Anchored, n: int, rng: Stream) -> Probes:
        own = estimate_of(self.estimator, state.x.size)
        if state.t == self.m:
            return Probes.gradients(at=[state.x], of=range(n), estimate=own)
        i_t = rng.subset(n, self.batch)
        return Probes.gradients(at=[state.x, state.anchor], of=i_t, estimate=own)

    def update(self, state: Anchored, answers: Answers, H: HardThreshold) -> Anchored:
        if state.t == self.m:
            return replace(state, anchor=state.x, anchor_gradient=answers.mean(), t=0)
        v = answers.difference() + state.anchor_gradient  # public code adds the estimate at the anchor
        x = H.within_bounds(state.x - self.eta * v)
        return replace(state, theta=output_point(x, H, self.threshold), x=x, t=state.t + 1)
