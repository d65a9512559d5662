"""SZOHT with the number of directions and the learning rate that its theorem asks for."""

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
from zerothresh.theory.constants import eps_I
from zerothresh.theory.errata import printed_szoht_q
from zerothresh.theory.intervals import szoht_eta


@register("szoht-theory")
@dataclass(frozen=True)
class SZOHTTheory:
    r"""SZOHT with q and eta from its theorem, which derives them from the curvatures: batch (q + 1) calls per step.

    .. math:: \theta^{(r+1)} = H_k\big(\theta^{(r)} - \eta \hat\nabla f_{i_r}(\theta^{(r)})\big), \quad
        \eta = \frac{\rho^-}{(4 \varepsilon_I + 1) {\rho^+}^2}, \quad
        \varepsilon_I = \frac{2d}{q(s_2 + 2)}\Big(\frac{(s-1)(s_2-1)}{d-1} + 3\Big) + 2, \quad s = 2k + k^*

    Arguments
    ---------
    rho_minus: float. Restricted strong convexity of F.
    rho_plus: float. Restricted smoothness of the f_i.
    k_star: int, default 1. Number of non-zeros of the solution.
    q: int or None, default None. Number of directions; None takes the smallest that the paper states, which is large.
    s2: int or None, default None. Size of the support of a direction; None takes d.
    batch: int, default 1 as in the paper. Number of components per step, drawn without replacement.

    Reference: de Vazelhes et al., *Zeroth-order hard-thresholding: gradient error vs. expansivity*,
    NeurIPS 2022, in the form of Yuan et al., ICLR 2024, Section 2.2.

    >>> method = SZOHTTheory(rho_minus=1.0, rho_plus=1.0, k_star=1)
    >>> method.directions(100), round(method.eta(100, k=10), 4)
    (536, 0.1071)
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "Hard thresholding"
    order: ClassVar[int] = 13
    solves: ClassVar[str] = "restricted strongly convex, l0"
    queries: ClassVar[str] = "batch (q + 1), with the q of the theorem"
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
            raise ValueError(f"rho_minus must be at most rho_plus, but rho_minus = {low:g} and rho_plus = {high:g}")
        check.count("k_star", self.k_star, what=" (the number of non-zeros of the solution)")
        for name, value in (("q", self.q), ("s2", self.s2)):
            if value is not None:
                check.count(name, value)
        check.count("batch", self.batch, what=" (components per step)")

    def directions(self, d: int) -> int:
        """q in dimension d. The theory has no valid q for s2 = 1: see the erratum "szoht-q-s2-1"."""
        if self.q is not None:
            return self.q
        s2 = min(self.s2 or d, d)
        if s2 == 1:
            raise ValueError(
                "The number of directions that the theory states for s2 = 1 is never sufficient: set q, or another s2."
            )
        kappa = self.rho_plus / self.rho_minus
        return math.ceil(printed_szoht_q(d=d, s2=s2, k_star=self.k_star, kappa=kappa))

    def eta(self, d: int, k: int) -> float:
        """The learning rate in dimension d for iterates with k non-zeros."""
        s, s2 = min(2 * k + self.k_star, d), min(self.s2 or d, d)
        error = eps_I(d=d, q=self.directions(d), s=s, s2=s2)
        return szoht_eta(eps_I=error, rho_minus=self.rho_minus, rho_plus=self.rho_plus)

    def init(self, theta: Array) -> Iterate:
        return Iterate(theta)

    def plan(self, state: Iterate, n: int, rng: Stream) -> Probes:
        own = {"q": self.directions(state.theta.size), "s2": self.s2}
        return Probes.gradients(at=[state.theta], of=rng.subset(n, self.batch), estimate=own)

    def update(self, state: Iterate, answers: Answers, H: HardThreshold) -> Iterate:
        return Iterate(H(state.theta - self.eta(state.theta.size, H.constraint.k) * answers.mean()))
