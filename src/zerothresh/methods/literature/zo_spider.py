"""ZO-SPIDER: the recursive gradient of SPIDER from coordinate-wise differences."""

from __future__ import annotations

from dataclasses import dataclass
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
class Recursive:
    """The iterate x, the point theta that is returned for it, the previous iterate, and the recursive gradient."""

    theta: Array
    x: Array
    previous: Array
    gradient: Array  # v^(t-1)
    t: int  # number of the inner step; the epoch is over when t = m


@register("zo-spider")
@dataclass(frozen=True)
class ZOSPIDER:
    r"""Zeroth-order SPIDER, without sparsity: n + 2 (m - 1) batch gradient estimates per epoch, each of 2 d calls.

    .. math:: v^{(t)} = \hat\nabla f_{I_t}(x^{(t)}) - \hat\nabla f_{I_t}(x^{(t-1)}) + v^{(t-1)}, \quad
        x^{(t+1)} = x^{(t)} - \min\big(\eta, \ell / \|v^{(t)}\|\big)\, v^{(t)}

    Arguments
    ---------
    eta: float. Learning rate.
    m: int, default 10. Number of steps per epoch; the first one uses the gradients of all components.
    batch: int, default 1. Number of components per inner step, drawn without replacement.
    length: float or None, default None. Largest length of a step, ell. SPIDER as first published moves by a fixed small
        length while the gradient is large; ZO-SPIDER-Coord, the default, needs no such limit.
    estimator: str, default "coord". "coord": central differences along all coordinates. "ave": the mean over the q
        directions of `zt.Estimator`. "rand": one random direction.
    threshold: bool, default False. Return H_k(x) instead of x; the iteration itself does not use H_k.

    Reference: Fang et al., *SPIDER*, NeurIPS 2018 (SPIDER-SZO); Ji et al., *Improved zeroth-order variance
    reduced algorithms and analysis for nonconvex optimization*, ICML 2019 (ZO-SPIDER-Coord).

    >>> ZOSPIDER(eta=0.1).estimator
    'coord'
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "No sparsity, for reference"
    order: ClassVar[int] = 43
    solves: ClassVar[str] = "smooth finite sum, no sparsity"
    queries: ClassVar[str] = "2 d n per epoch, then 4 d batch per step"
    memory: ClassVar[str] = "3 d"

    eta: float
    m: int = 10
    batch: int = 1
    length: float | None = None
    estimator: str = "coord"
    threshold: bool = False

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.count("m", self.m, what=" (steps per epoch)")
        check.count("batch", self.batch, what=" (components per inner step)")
        if self.length is not None:
            check.positive("length", self.length, what=" (the largest length of a step)")
        check.one_of("estimator", self.estimator, ("rand", "ave", "coord"))
        check.flag("threshold", self.threshold)

    @property
    def sparse(self) -> bool:
        """Whether the returned point keeps the l0 constraint."""
        return self.threshold

    def init(self, theta: Array) -> Recursive:
        return Recursive(theta, theta, theta, np.zeros_like(theta), t=self.m)

    def plan(self, state: Recursive, n: int, rng: Stream) -> Probes:
        own = estimate_of(self.estimator, state.x.size)
        i_t = rng.subset(n, self.batch)  # drawn at t = m too: a batch above n is then refused before the first call
        if state.t == self.m:
            return Probes.gradients(at=[state.x], of=range(n), estimate=own)
        return Probes.gradients(at=[state.x, state.previous], of=i_t, estimate=own)

    def update(self, state: Recursive, answers: Answers, H: HardThreshold) -> Recursive:
        fresh = state.t == self.m
        v = answers.mean() if fresh else answers.difference() + state.gradient
        eta = self.eta
        if self.length is not None:
            eta = min(eta, self.length / max(float(np.linalg.norm(v)), 1e-300))
        x = H.within_bounds(state.x - eta * v)
        return Recursive(output_point(x, H, self.threshold), x, state.x, v, 1 if fresh else state.t + 1)
