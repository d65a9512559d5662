"""pM-SZHT: the p-memorisation framework, for any law of the set J of rows that a step refreshes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.paper.laws import FixedSize, Law
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.memory import Memory
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.philox import Stream


@dataclass(frozen=True)
class PMState:
    """The iterate and the memory of component gradients."""

    theta: Array
    memory: Memory  # a hat
    ready: bool  # whether the memory has been filled


class Memorising(Protocol):
    """What the framework needs to know about a method."""

    @property
    def eta(self) -> float: ...
    @property
    def batch(self) -> int: ...
    @property
    def law(self) -> Law: ...


def init(method: Memorising, theta: Array) -> PMState:
    """Start with an empty memory."""
    return PMState(theta, Memory.empty(theta.size), ready=False)


def plan(method: Memorising, state: PMState, n: int, rng: Stream) -> Probes:
    """Alg. 1, l. 2-3: draw the components i_r of the step and the set J of rows to refresh."""
    if not state.ready:  # the paper does not say what the memory holds at first; here: the gradients at theta^(0)
        return Probes.gradients(at=[state.theta], of=range(n))
    i_r, J = method.law.sample(n, method.batch, rng)
    components = list(dict.fromkeys([*i_r.tolist(), *J.tolist()]))  # i_r first, each once
    refreshed = set(J.tolist())
    places = np.array([place for place, j in enumerate(components) if j in refreshed], dtype=np.int64)
    return Probes.gradients(at=[state.theta], of=components, refresh=places)


def update(method: Memorising, state: PMState, answers: Answers, H: HardThreshold) -> PMState:
    """Alg. 1, l. 4-5, and then l. 2.

    The listing refreshes the memory before the step. With J = {i_r}, that would cancel the difference of
    l. 4 and leave SAG. SAGA and Hofmann et al. (2015) make the step first, with the old memory.
    """
    memory = state.memory
    if not state.ready:
        return PMState(state.theta, answers.memorise(), ready=True)
    i_r = answers.components[: method.batch]
    g = answers.mean(0, slice(method.batch)) - answers.remembered(memory, i_r) + memory.mean  # l. 4
    theta = H(state.theta - method.eta * g)  # l. 5
    return PMState(theta, answers.refresh(memory, answers.notes["refresh"]), ready=True)  # l. 2


@register("pm-szht")
@dataclass(frozen=True)
class PMSZHT:
    r"""Zeroth-order hard thresholding with p-memorisation: n (q + 1) calls once, then (q + 1) |J + {i_r}| per step.

    .. math:: \hat g = \hat\nabla f_{i_r}(\theta) - \hat a_{i_r} + \frac1n \sum_{j=1}^n \hat a_j,
        \quad \theta^{(r)} = H_k(\theta^{(r-1)} - \eta \hat g),
        \quad \hat a_j := \hat\nabla f_j(\theta) \text{ for } j \in J

    Arguments
    ---------
    eta: float. Learning rate.
    law: the law of (i_r, J), default FixedSize(1). `FixedSize(p)` gives p-SAGA-SZHT, `AllOrNothing(p)` the loopless
        variant of SVRG; any object with a function ``sample(n, batch, rng) -> (i_r, J)`` is allowed.
    batch: int, default 1 as in the paper. Number of components per step, |i_r|.

    The library's default estimator differs from the paper's: its directions are orthonormal, which leaves less error
    for the same calls, and all components of a round share them, so that the error of their mean is proportional to
    the mean of their gradients. ``estimator=zt.Estimator.paper(q=...)`` is the paper's own.

    Reference: Yuan et al., ICLR 2024, Algorithm 1; Hofmann et al., NIPS 2015.

    >>> PMSZHT(eta=0.1, law=FixedSize(3))
    PMSZHT(eta=0.1, law=FixedSize(p=3), batch=1)
    """

    family: ClassVar[str] = "paper"
    order: ClassVar[int] = 3
    solves: ClassVar[str] = "smooth finite sum, l0"
    queries: ClassVar[str] = "n (q + 1) once, then q + 1 per component of i_r or J"
    memory: ClassVar[str] = "n (q + 2) + d"

    eta: float
    law: Law = field(default_factory=FixedSize)
    batch: int = 1

    def __post_init__(self) -> None:
        check_memorising(self)

    init, plan, update = init, plan, update


def check_memorising(method: Memorising) -> None:
    """Check the hyper-parameters that all methods with a memory share."""
    check.positive("eta", method.eta, what=" (the learning rate)")
    check.count("batch", method.batch, what=" (components per step)")
    if isinstance(method.law, type) or not check.has_function(method.law, "sample"):
        form = "law must have a function sample(n, batch, rng) -> (i_r, J)"
        raise ValueError(f"{form}, not {check.shown(method.law)}")
    if hasattr(method.law, "check_batch"):
        method.law.check_batch(method.batch)
