"""ZO-SVRG: variance-reduced zeroth-order descent, with any of its three gradient estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.literature.dense import estimate_of, handed_out, inside
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


@dataclass(frozen=True)
class Anchored:
    """The iterate, what is handed out for it, and the anchor of the epoch."""

    theta: Array
    x: Array
    anchor: Array
    anchor_gradient: Array
    t: int  # the inner step; t = m: the epoch is over


@register("zo-svrg")
@dataclass(frozen=True)
class ZOSVRG:
    r"""Zeroth-order SVRG, without sparsity: (n + 2 m batch) calls of an estimate an epoch.

    .. math:: x^{(t+1)} = x^{(t)} - \eta\big(\hat\nabla f_{I_t}(x^{(t)}) - \hat\nabla f_{I_t}(x^{(0)})
        + \hat\nabla F(x^{(0)})\big)

    Arguments
    ---------
    eta: learning rate.
    m: inner steps an epoch.
    batch: components an inner step, drawn without replacement.
    estimator: which of the paper's three estimates: "rand" (ZO-SVRG: one random direction, 2 calls),
        "ave" (ZO-SVRG-Ave: the mean over the q directions of `zt.Estimator`, q + 1 calls) or "coord"
        (ZO-SVRG-Coord: central differences along all coordinates, 2 d calls).
    threshold: hand out H_k(x) instead of x. The iteration itself goes on without it.

    Reference: Liu et al., *Zeroth-order stochastic variance reduction for nonconvex optimization*,
    NeurIPS 2018.

    >>> ZOSVRG(eta=0.1, estimator="coord").estimator
    'coord'
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "No sparsity, for reference"
    order: ClassVar[int] = 42
    solves: ClassVar[str] = "smooth finite sum, no sparsity"
    queries: ClassVar[str] = "n estimates an epoch, then 2 batch a step; an estimate: 2, q + 1 or 2 d"
    memory: ClassVar[str] = "3 d"

    eta: float
    m: int = 10
    batch: int = 1
    estimator: str = "ave"
    threshold: bool = False

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.count("m", self.m, what=" (inner steps an epoch)")
        check.count("batch", self.batch, what=" (components an inner step)")
        check.one_of("estimator", self.estimator, ("rand", "ave", "coord"))
        check.flag("threshold", self.threshold)

    @property
    def sparse(self) -> bool:
        """Whether what is handed out keeps the l0 constraint."""
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
        v = answers.difference() + state.anchor_gradient  # minus at the anchor: a sign that public code got wrong
        x = inside(state.x - self.eta * v, H)
        return replace(state, theta=handed_out(x, H, self.threshold), x=x, t=state.t + 1)
