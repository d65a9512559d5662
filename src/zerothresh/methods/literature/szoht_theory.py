"""SZOHT with the number of directions and the learning rate that its theory asks for.

The formulas are those of `zt.theory`, which stands above the methods and cannot be imported here; a test holds
them to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.method import Iterate
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


def _error(d: int, q: int, s: int, s2: int) -> float:
    """eps_I: the error of the estimate on s coordinates, of q directions with supports of size s2."""
    spread = (s - 1) * (s2 - 1) / (d - 1) if d > 1 else 0.0
    return 2 * d / (q * (s2 + 2)) * (spread + 3) + 2


def _directions(d: int, k_star: int, kappa: float, s2: int) -> int:
    """The least q for which there is a k that the theory allows."""
    if s2 == 1:  # see "szoht-q-s2-1" in docs/theory.md
        raise ValueError("the theory's number of directions for s2 = 1 is never enough: set q, or another s2")
    inner = 9 * kappa**2 * (9 * kappa**2 - 1) + 0.5 - 1 / (2 * k_star) + 1.5 * (d - 1) / (k_star * (s2 - 1))
    factor = 16 * d * (s2 - 1) * k_star * kappa**2 / ((s2 + 2) * (d - 1))
    return math.ceil(factor * (18 * kappa**2 - 1 + 2 * math.sqrt(inner)))


def _rate(d: int, q: int, s: int, s2: int, rho_minus: float, rho_plus: float) -> float:
    """The theory's learning rate."""
    return rho_minus / ((4 * _error(d, q, s, s2) + 1) * rho_plus**2)


@register("szoht-theory")
@dataclass(frozen=True)
class SZOHTTheory:
    r"""SZOHT as its theorem has it: q and eta follow from the curvatures; batch (q + 1) calls a step.

    .. math:: \theta^{(r+1)} = H_k\big(\theta^{(r)} - \eta \hat\nabla f_{i_r}(\theta^{(r)})\big), \quad
        \eta = \frac{\rho^-}{(4 \varepsilon_I + 1) {\rho^+}^2}, \quad
        \varepsilon_I = \frac{2d}{q(s_2 + 2)}\Big(\frac{(s-1)(s_2-1)}{d-1} + 3\Big) + 2, \quad s = 2k + k^*

    Arguments
    ---------
    rho_minus: restricted strong convexity of F.
    rho_plus: restricted smoothness of the f_i.
    k_star: non-zeros of the solution that is looked for.
    q: directions; None: the least number that the theorem allows, which is large.
    s2: size of a direction's support; None: d.
    batch: components a step, drawn without replacement. The paper draws one.

    Reference: de Vazelhes et al., *Zeroth-order hard-thresholding: gradient error vs. expansivity*,
    NeurIPS 2022, in the form of Yuan et al., ICLR 2024, Section 2.3.

    >>> method = SZOHTTheory(rho_minus=1.0, rho_plus=1.0, k_star=1)
    >>> method.directions(100), round(method.eta(100, k=10), 4)
    (536, 0.1071)
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "Hard thresholding"
    order: ClassVar[int] = 13
    solves: ClassVar[str] = "restricted strongly convex, l0"
    queries: ClassVar[str] = "batch (q + 1), q by the theory"
    memory: ClassVar[str] = "d"
    has_floor: ClassVar[bool] = True

    rho_minus: float
    rho_plus: float
    k_star: int = 1
    q: int | None = None
    s2: int | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        low = check.positive("rho_minus", self.rho_minus, what=" (restricted strong convexity)")
        high = check.positive("rho_plus", self.rho_plus, what=" (restricted smoothness)")
        if low > high:
            raise ValueError(f"rho_minus = {low:g} is larger than rho_plus = {high:g}: curvatures lie between the two")
        check.count("k_star", self.k_star, what=" (non-zeros of the solution)")
        for name, value in (("q", self.q), ("s2", self.s2)):
            if value is not None:
                check.count(name, value)
        check.count("batch", self.batch, what=" (components a step)")

    def directions(self, d: int) -> int:
        """q in dimension d."""
        kappa = self.rho_plus / self.rho_minus
        return self.q or _directions(d, self.k_star, kappa, min(self.s2 or d, d))

    def eta(self, d: int, k: int) -> float:
        """The learning rate in dimension d, with k non-zeros."""
        s, s2 = min(2 * k + self.k_star, d), min(self.s2 or d, d)
        return _rate(d, self.directions(d), s, s2, self.rho_minus, self.rho_plus)

    def init(self, theta: Array) -> Iterate:
        return Iterate(theta)

    def plan(self, state: Iterate, n: int, rng: Stream) -> Probes:
        own = {"q": self.directions(state.theta.size), "s2": self.s2}
        return Probes.gradients(at=[state.theta], of=rng.subset(n, self.batch), estimate=own)

    def update(self, state: Iterate, answers: Answers, H: HardThreshold) -> Iterate:
        return Iterate(H(state.theta - self.eta(state.theta.size, H.constraint.k) * answers.mean()))
