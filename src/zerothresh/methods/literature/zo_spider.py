"""ZO-SPIDER: the recursive gradient of SPIDER from coordinate differences."""

from __future__ import annotations

from dataclasses import dataclass
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
class Recursive:
    """The iterate, what is handed out for it, the one before, and the recursive gradient."""

    theta: Array
    x: Array
    previous: Array
    gradient: Array  # v^(t-1)
    t: int  # the inner step; t = m: the epoch is over


@register("zo-spider")
@dataclass(frozen=True)
class ZOSPIDER:
    r"""Zeroth-order SPIDER, without sparsity: n + 2 (m - 1) batch estimates of 2 d calls an epoch of m steps.

    .. math:: v^{(t)} = \hat\nabla f_{I_t}(x^{(t)}) - \hat\nabla f_{I_t}(x^{(t-1)}) + v^{(t-1)}, \quad
        x^{(t+1)} = x^{(t)} - \min\big(\eta, \ell / \|v^{(t)}\|\big)\, v^{(t)}

    Arguments
    ---------
    eta: learning rate.
    m: steps an epoch, the first one with the gradient of all components.
    batch: components an inner step, drawn without replacement.
    length: the longest step, ell. SPIDER as it was first published moves by a fixed small length while
        the gradient is large; ZO-SPIDER-Coord, the default, shows that no such limit is needed.
    estimator: "coord", central differences along all coordinates; "ave", the mean over the q directions
        of `zt.Estimator`; or "rand", one random direction.
    threshold: hand out H_k(x) instead of x. The iteration itself goes on without it.

    Reference: Fang et al., *SPIDER*, NeurIPS 2018 (SPIDER-SZO); Ji et al., *Improved zeroth-order variance
    reduced algorithms and analysis for nonconvex optimization*, ICML 2019 (ZO-SPIDER-Coord).

    >>> ZOSPIDER(eta=0.1).estimator
    'coord'
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "No sparsity, for reference"
    order: ClassVar[int] = 43
    solves: ClassVar[str] = "smooth finite sum, no sparsity"
    queries: ClassVar[str] = "2 d n an epoch, then 4 d batch a step"
    memory: ClassVar[str] = "3 d"

    eta: float
    m: int = 10
    batch: int = 1
    length: float | None = None
    estimator: str = "coord"
    threshold: bool = False

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.count("m", self.m, what=" (steps an epoch)")
        check.count("batch", self.batch, what=" (components an inner step)")
        if self.length is not None:
            check.positive("length", self.length, what=" (the longest step)")
        check.one_of("estimator", self.estimator, ("rand", "ave", "coord"))
        check.flag("threshold", self.threshold)

    @property
    def sparse(self) -> bool:
        """Whether what is handed out keeps the l0 constraint."""
        return self.threshold

    def init(self, theta: Array) -> Recursive:
        return Recursive(theta, theta, theta, np.zeros_like(theta), t=self.m)

    def plan(self, state: Recursive, n: int, rng: Stream) -> Probes:
        own = estimate_of(self.estimator, state.x.size)
        if state.t == self.m:
            return Probes.gradients(at=[state.x], of=range(n), estimate=own)
        i_t = rng.subset(n, self.batch)
        return Probes.gradients(at=[state.x, state.previous], of=i_t, estimate=own)

    def update(self, state: Recursive, answers: Answers, H: HardThreshold) -> Recursive:
        fresh = state.t == self.m
        v = answers.mean() if fresh else answers.difference() + state.gradient
        eta = self.eta
        if self.length is not None:
            eta = min(eta, self.length / max(float(np.linalg.norm(v)), 1e-300))
        x = inside(state.x - eta * v, H)
        return Recursive(handed_out(x, H, self.threshold), x, state.x, v, 1 if fresh else state.t + 1)
