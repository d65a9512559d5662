"""ZSCG: zeroth-order stochastic conditional gradient (Frank-Wolfe) on the l1 ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.bounds import Box
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.literature.dense import output_point
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


@dataclass(frozen=True)
class Averaged:
    """The iterate x, the point theta that is returned for it, and the number of steps so far."""

    theta: Array
    x: Array
    t: int


@register("zscg")
@dataclass(frozen=True)
class ZSCG:
    r"""Frank-Wolfe on {||x||_1 <= radius} with Gaussian smoothing: batch (q + 1) calls per step.

    .. math:: x^{(t+1)} = (1 - \alpha_t) x^{(t)} + \alpha_t w_t, \quad
        w_t = \arg\min_{\|w\|_1 \le R} \langle \hat g^{(t)}, w \rangle = -R\, sign(\hat g_j)\, e_j, \quad
        j = \arg\max |\hat g_j|, \quad \alpha_t = \frac{6}{t + 6}

    for t = 0, 1, ...; there is no learning rate. A start outside of the ball is left with the first step. With bounds,
    the minimum is taken over the part of the ball within the bounds.

    Arguments
    ---------
    radius: float. Radius R of the l1 ball; the sparsity that results is not known in advance.
    batch: int or None, default None. Number of components per step, drawn without replacement; None takes all of them.
        The theory asks for estimates that improve from step to step, which sampled components do not.
    threshold: bool, default False. Return H_k(x) instead of x; the iteration itself does not use H_k.

    Reference: Balasubramanian and Ghadimi, *Zeroth-order (non)-convex stochastic optimization via
    conditional gradient and gradient updates*, NeurIPS 2018, Algorithm 1 and its convex step sizes.

    >>> ZSCG(radius=3.0).batch is None
    True
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "l1 relaxations"
    order: ClassVar[int] = 32
    solves: ClassVar[str] = "smooth, l1 ball"
    queries: ClassVar[str] = "batch (q + 1)"
    memory: ClassVar[str] = "d"

    radius: float
    batch: int | None = None
    threshold: bool = False

    def __post_init__(self) -> None:
        check.positive("radius", self.radius, what=" (the radius of the l1 ball)")
        if self.batch is not None:
            check.count("batch", self.batch, what=" (components per step)")
        check.flag("threshold", self.threshold)

    @property
    def sparse(self) -> bool:
        """Whether the returned point keeps the l0 constraint."""
        return self.threshold

    def init(self, theta: Array) -> Averaged:
        return Averaged(theta, theta, t=0)

    def plan(self, state: Averaged, n: int, rng: Stream) -> Probes:
        of = range(n) if self.batch is None else rng.subset(n, self.batch)
        return Probes.gradients(at=[state.x], of=of, estimate={"directions": "gaussian"})

    def update(self, state: Averaged, answers: Answers, H: HardThreshold) -> Averaged:
        w = lowest_vertex(answers.mean(), self.radius, H.constraint.box)
        alpha = 6 / (state.t + 6)
        x = H.within_bounds((1 - alpha) * state.x + alpha * w)
        return Averaged(output_point(x, H, self.threshold), x, state.t + 1)


def lowest_vertex(g: Array, radius: float, box: Box | None = None) -> Array:
    """The minimiser w of <g, w> over the l1 ball, within bounds that contain 0.

    >>> lowest_vertex(np.array([1.0, -3.0, 2.0]), 2.0).tolist()
    [0.0, 2.0, 0.0]
    >>> lowest_vertex(np.array([1.0, -3.0, 2.0]), 2.0, Box(-np.ones(3), np.full(3, 0.5))).tolist()
    [-0.5, 0.5, -1.0]
    """
    w = np.zeros_like(g)
    if box is None:
        j = int(np.argmax(np.abs(g)))
        w[j] = -radius * np.sign(g[j])
        return w
    reach = np.where(g > 0, -box.low, box.high)  # how far each coordinate can move against its slope
    for j in np.argsort(-np.abs(g), kind="stable").tolist():
        far = min(float(reach[j]), radius)
        w[j] = -np.sign(g[j]) * far
        radius -= far
        if radius <= 0:
            break
    return w
