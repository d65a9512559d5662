"""ZO-SGD: stochastic gradient descent with zeroth-order estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.literature.dense import Dense, output_point
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


@register("zo-sgd")
@dataclass(frozen=True)
class ZOSGD:
    r"""Zeroth-order stochastic gradient descent, without sparsity: batch (q + 1) calls per step.

    .. math:: x^{(t+1)} = x^{(t)} - \eta \hat\nabla f_{i_t}(x^{(t)})

    Arguments
    ---------
    eta: float. Learning rate.
    batch: int, default 1. Number of components per step, drawn without replacement.
    threshold: bool, default False. Return H_k(x) instead of x; the iteration itself does not use H_k.

    Reference: Ghadimi and Lan, *Stochastic first- and zeroth-order methods for nonconvex stochastic
    programming*, SIAM J. Optim. 2013.

    >>> ZOSGD(eta=0.1).sparse, ZOSGD(eta=0.1, threshold=True).sparse
    (False, True)
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "No sparsity, for reference"
    order: ClassVar[int] = 41
    solves: ClassVar[str] = "smooth, no sparsity"
    queries: ClassVar[str] = "batch (q + 1)"
    memory: ClassVar[str] = "d"
    has_floor: ClassVar[bool] = True

    eta: float
    batch: int = 1
    threshold: bool = False

    def __post_init__(self) -> None:
        check.positive("eta", self.eta, what=" (the learning rate)")
        check.count("batch", self.batch, what=" (components per step)")
        check.flag("threshold", self.threshold)

    @property
    def sparse(self) -> bool:
        """Whether the returned point keeps the l0 constraint."""
        return self.threshold

    def init(self, theta: Array) -> Dense:
        return Dense(theta, theta)

    def plan(self, state: Dense, n: int, rng: Stream) -> Probes:
        return Probes.gradients(at=[state.x], of=rng.subset(n, self.batch))

    def update(self, state: Dense, answers: Answers, H: HardThreshold) -> Dense:
        x = H.within_bounds(state.x - self.eta * answers.mean())
        return Dense(output_point(x, H, self.threshold), x)
