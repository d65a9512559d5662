"""RSPGF: randomised stochastic projected gradient-free descent with an l1 penalty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.literature.dense import Dense, output_point, soft_threshold
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


@register("rspgf")
@dataclass(frozen=True)
class RSPGF:
    r"""Proximal descent on F + lam ||x||_1 with Gaussian smoothing: batch (q + 1) calls per step.

    .. math:: x^{(t+1)} = prox_{\eta\lambda\|\cdot\|_1}\big(x^{(t)} - \eta \hat g^{(t)}\big), \quad
        \hat g = \frac{1}{q} \sum_{l=1}^q \frac{f_i(x + \nu z_l) - f_i(x)}{\nu} z_l, \quad z_l \sim N(0, I)

    The smoothing parameter nu is mu / sqrt(d), with the mu of `zt.Estimator`, so that a difference has the length mu as
    in the other methods. The paper returns one of the iterates, drawn at random; here it is the last one.

    Arguments
    ---------
    eta: float. Learning rate.
    lam: float, default 1e-3. Weight of the l1 norm; the sparsity that results is not known in advance.
    batch: int, default 1. Number of components per step, drawn without replacement.
    threshold: bool, default False. Return H_k(x) instead of x; the iteration itself does not use H_k.

    Reference: Ghadimi, Lan and Zhang, *Mini-batch stochastic approximation methods for nonconvex
    stochastic composite optimization*, Math. Program. 2016 (RSPGF).

    >>> RSPGF(eta=0.1, lam=0.01).lam
    0.01
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "l1 relaxations"
    order: ClassVar[int] = 31
    solves: ClassVar[str] = "smooth + l1"
    queries: ClassVar[str] = "batch (q + 1)"
    memory: ClassVar[str] = "d"
    has_floor: ClassVar[bool] = True

    eta: float
    lam: float = 1e-3
    batch: int = 1
    threshold: bool = False

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.positive("lam", self.lam, what=" (the weight of the l1 norm)")
        check.count("batch", self.batch, what=" (components per step)")
        check.flag("threshold", self.threshold)

    @property
    def sparse(self) -> bool:
        """Whether the returned point keeps the l0 constraint."""
        return self.threshold

    def init(self, theta: Array) -> Dense:
        return Dense(theta, theta)

    def plan(self, state: Dense, n: int, rng: Stream) -> Probes:
        return Probes.gradients(at=[state.x], of=rng.subset(n, self.batch), estimate={"directions": "gaussian"})

    def update(self, state: Dense, answers: Answers, H: HardThreshold) -> Dense:
        x = H.within_bounds(soft_threshold(state.x - self.eta * answers.mean(), self.eta * self.lam))
        return Dense(output_point(x, H, self.threshold), x)
