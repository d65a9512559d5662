"""ZORO: recover a sparse gradient from a few random differences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.literature.cosamp import cosamp
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.method import Iterate
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


@register("zoro")
@dataclass(frozen=True)
class ZORO:
    r"""Zeroth-order regularised optimisation, with H_k as its proximal step: batch (m + 1) calls per step.

    .. math:: y_l = \frac{F(\theta + \mu z_l) - F(\theta)}{\mu}, \quad
        \hat g = \mathrm{CoSaMP}(Z, y, s), \quad \theta' = H_k(\theta - \eta \hat g)

    with m = ceil(b s ln(d/s)) rows z_l of random signs, scaled to length 1. The method pays off where the gradient
    itself is sparse or nearly so, unlike that of a dense least-squares problem. Of `zt.Estimator` it uses only mu.

    Arguments
    ---------
    eta: float. Learning rate.
    s: int, default 5. Number of non-zeros of the gradient.
    b: float, default 4. Number of measurements per non-zero and unit of ln(d/s).
    batch: int or None, default None. Number of components per step, drawn without replacement; None takes all of
        them, that is, F itself.

    Reference: Cai, McKenzie, Yin and Zhang, *Zeroth-order regularized optimization (ZORO): approximately
    sparse gradients and adaptive sampling*, SIAM J. Optim. 2022.

    The published code evaluates F(theta) again for each difference, and uses the same Z in all steps. Here F(theta) is
    evaluated once per step, and each step draws a new Z.

    >>> ZORO(eta=0.1, s=5).rows(1000)
    106
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "Sparse gradients by compressed sensing"
    order: ClassVar[int] = 21
    solves: ClassVar[str] = "smooth with sparse gradients, l0"
    queries: ClassVar[str] = "batch (b s ln(d/s) + 1)"
    memory: ClassVar[str] = "b s ln(d/s) d"

    eta: float
    s: int = 5
    b: float = 4.0
    batch: int | None = None

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.count("s", self.s, what=" (the number of non-zeros of the gradient)")
        check.positive("b", self.b, what=" (measurements per non-zero and unit of ln(d/s))")
        if self.batch is not None:
            check.count("batch", self.batch, what=" (components per step)")

    def rows(self, d: int) -> int:
        """m, the number of measurements per step in dimension d, at most 2 d."""
        return measurements(self.b, self.s, d)

    def init(self, theta: Array) -> Iterate:
        return Iterate(theta)

    def plan(self, state: Iterate, n: int, rng: Stream) -> Probes:
        of = range(n) if self.batch is None else rng.subset(n, self.batch)
        return Probes.gradients(at=[state.theta], of=of, estimate=signs(self.rows(state.theta.size)))

    def update(self, state: Iterate, answers: Answers, H: HardThreshold) -> Iterate:
        A, y = measured(answers)
        return Iterate(H(state.theta - self.eta * cosamp(A, y, self.s)))


def measurements(b: float, s: int, d: int) -> int:
    """The number of rows needed to find s non-zeros among d coordinates; beyond 2 d rows, further ones add nothing."""
    if s >= d:
        return 2 * d
    return max(2, min(math.ceil(b * s * max(math.log(d / s), 1.0)), 2 * d))


def signs(rows: int) -> dict[str, object]:
    """The estimator of a step: forward differences along rows of random signs that all components share."""
    return {"q": rows, "directions": "rademacher", "difference": "forward", "s2": None, "common": True}


def measured(answers: Answers) -> tuple[Array, Array]:
    """The matrix A of the directions, as bounds left them, and the mean slopes y along them: A g is close to y."""
    plan = answers.plan
    q, mu = plan.estimator.q, plan.estimator.mu
    points = plan.points(0, q + 1)
    # coefficients are differences times d / (q mu), eq. (3)
    return (points[1:] - points[0]) / mu, answers.coefficients[0].mean(axis=0) * (q / plan.d)
