"""ES-swaps: a (1+1) evolution strategy on a support that changes by swaps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.registry import register


@register("es-swaps")
@dataclass(frozen=True)
class ESSwaps(Program):
    r"""(1+1) evolution strategy on a support of k coordinates, with swaps: n calls per trial.

    .. math:: \theta'_S = \theta_S + \sigma z, \quad z \sim N(0, I_k), \quad
        \sigma' = \sigma e^{1/3} \text{ if } F \text{ falls, else } \sigma e^{-1/12}

    A trial is accepted if F does not increase. The rule for sigma keeps about a fifth of the trials successful. Some
    trials swap a coordinate of S for another one.

    Arguments
    ---------
    size: float, default 1. Initial sigma, about the distance to the solution.
    swaps: float in [0, 1), default 0.3. Share of the trials that swap. The new coordinate gets a normally distributed
        value of the size of the others.

    Reference: Rechenberg, *Evolutionsstrategie*, 1973 (the rule of a fifth); Kern et al., *Learning
    probability distributions in continuous evolutionary algorithms*, Nat. Comput. 2004 (its exponents).

    The swaps are an addition of this library.

    >>> ESSwaps(size=0.5).swaps
    0.3
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "Search without gradients"
    order: ClassVar[int] = 52
    solves: ClassVar[str] = "any F, uses only the order of its values, l0"
    queries: ClassVar[str] = "n"
    memory: ClassVar[str] = "d"
    keeps_constraints: ClassVar[bool] = False

    size: float = 1.0
    swaps: float = 0.3

    def __post_init__(self) -> None:
        check.positive("size", self.size, what=" (the initial sigma)")
        check.share("swaps", self.swaps, what=" (of the trials)")

    def search(self, context: Context) -> Asks:
        theta, sigma = context.theta0, float(self.size)
        F = float((yield from context.values([theta])).mean())
        context.move(theta, F)
        free = context.free()
        S = np.union1d(np.flatnonzero(theta), np.intersect1d(context.constraint.include, free))
        others = np.setdiff1d(free, S)
        missing = min(context.k - S.size, others.size)
        if missing > 0:
            S = np.union1d(S, others[context.rng.subset(others.size, missing)])
        while S.size:
            others = np.setdiff1d(free, S)
            trial, T = theta.copy(), S
            usual = float(np.sqrt(np.mean(theta[S] ** 2))) or sigma
            usual = usual if math.isfinite(usual) else float(np.abs(theta[S]).max())  # the squares overflow
            sigma = sigma if sigma > 1e-12 * usual else float(self.size)  # converged here: search further away
            swap = others.size > 0 and context.rng.chance(self.swaps)
            if swap:
                leaving, coming = S[context.rng.integers(S.size)], others[context.rng.integers(others.size)]
                trial[leaving], trial[coming] = 0.0, usual * context.rng.normal(1)
                T = np.sort(np.append(S[leaving != S], coming))
            else:
                trial[S] += sigma * context.rng.normal(S.size)
            trial = context.H(trial)
            value = float((yield from context.values([trial])).mean())
            if not swap:
                sigma *= math.exp(1 / 3 if value < F else -1 / 12)
            if value <= F:
                theta, F, S = trial, value, T
                context.move(theta, F)
