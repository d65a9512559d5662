"""ZO-AdaMM: the adaptive momentum method (AMSGrad) with zeroth-order estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.literature.dense import output_point
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


@dataclass(frozen=True)
class Moments:
    """The iterate x, the point theta that is returned for it, and the moments of the gradient."""

    theta: Array
    x: Array
    m: Array
    v: Array
    v_hat: Array  # the largest v so far


@register("zo-adamm")
@dataclass(frozen=True)
class ZOAdaMM:
    r"""Zeroth-order adaptive momentum, without sparsity: batch (q + 1) calls per step.

    .. math:: m_t = \beta_1 m_{t-1} + (1 - \beta_1) \hat g_t, \quad
        v_t = \beta_2 v_{t-1} + (1 - \beta_2) \hat g_t^2, \quad \hat v_t = \max(\hat v_{t-1}, v_t), \quad
        x_{t+1} = \Pi\big(x_t - \eta\, \hat v_t^{-1/2} m_t\big)

    The paper proves that the projection has to be in the norm of :math:`\hat v^{1/2}`; for bounds, which are separable
    in the coordinates, it agrees with the Euclidean one.

    Arguments
    ---------
    eta: float. Learning rate; a step moves each coordinate by about this much.
    beta1: float in [0, 1), default 0.9. Share of the momentum that is kept per step.
    beta2: float in [0, 1), default 0.3. Share of the second moment that is kept per step.
    batch: int, default 1. Number of components per step, drawn without replacement.
    threshold: bool, default False. Return H_k(x) instead of x; the iteration itself does not use H_k.

    Reference: Chen et al., *ZO-AdaMM: zeroth-order adaptive momentum method for black-box optimization*,
    NeurIPS 2019, Algorithm 1.

    >>> ZOAdaMM(eta=0.1).beta1
    0.9
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "No sparsity, for reference"
    order: ClassVar[int] = 44
    solves: ClassVar[str] = "smooth, no sparsity"
    queries: ClassVar[str] = "batch (q + 1)"
    memory: ClassVar[str] = "4 d"
    has_floor: ClassVar[bool] = True

    eta: float
    beta1: float = 0.9
    beta2: float = 0.3
    batch: int = 1
    threshold: bool = False

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.share("beta1", self.beta1, what=" (of the momentum that is kept)")
        check.share("beta2", self.beta2, what=" (of the second moment that is kept)")
        check.count("batch", self.batch, what=" (components per step)")
        check.flag("threshold", self.threshold)

    @property
    def sparse(self) -> bool:
        """Whether the returned point keeps the l0 constraint."""
        return self.threshold

    def init(self, theta: Array) -> Moments:
        nothing = np.zeros_like(theta)
        return Moments(theta, theta, nothing, nothing, nothing)

    def plan(self, state: Moments, n: int, rng: Stream) -> Probes:
        return Probes.gradients(at=[state.x], of=rng.subset(n, self.batch))

    def update(self, state: Moments, answers: Answers, H: HardThreshold) -> Moments:
        g = answers.mean()
        m = self.beta1 * state.m + (1 - self.beta1) * g
        v = self.beta2 * state.v + (1 - self.beta2) * g * g
        v_hat = np.maximum(state.v_hat, v)
        scale = np.sqrt(v_hat)
        step = np.divide(m, scale, out=np.zeros_like(m), where=scale > 0)  # without any slope, stay
        x = H.within_bounds(state.x - self.eta * step)
        return Moments(output_point(x, H, self.threshold), x, m, v, v_hat)
