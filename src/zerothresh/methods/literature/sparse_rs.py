"""Sparse-RS: random search over supports, with smaller and smaller exchanges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.program import Program
from zerothresh.methods.registry import register

# From which share of the budget on alpha is divided by what, as published for l0 attacks.
SCHEDULE = ((0.0, 2), (0.005, 4), (0.02, 5), (0.05, 6), (0.1, 8), (0.2, 10), (0.4, 12), (0.6, 15), (0.8, 20))


@register("sparse-rs")
@dataclass(frozen=True)
class SparseRS(Program):
    r"""Random search in the manner of Sparse-RS: n calls a trial, taken if F falls.

    A trial exchanges :math:`\alpha_t k` coordinates of the support for others, with random values;
    :math:`\alpha_t` falls with the share of the budget that is spent. The first trial, which fills a support
    of k coordinates, is taken whatever F there is.

    Arguments
    ---------
    size: values are drawn from [-size, size], or from the bounds where there are some.
    values: "uniform" on that range, or its "corners" alone, as in the attack, where extremes are best.
    alpha: the first share of the support that is exchanged, before the schedule divides it.
    redraw: the share of trials that draw values anew in place. The attack has none, for its values are
        corners; without them, values on the right support could not be improved.

    Reference: Croce et al., *Sparse-RS: a versatile framework for query-efficient sparse black-box
    adversarial attacks*, AAAI 2022, Algorithm 1 and the schedule of its l0 attack.

    >>> SparseRS(size=2.0, values="corners", redraw=0.0).alpha
    0.8
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "Search without gradients"
    order: ClassVar[int] = 51
    solves: ClassVar[str] = "any F, l0"
    queries: ClassVar[str] = "n"
    memory: ClassVar[str] = "d"

    size: float = 1.0
    values: str = "uniform"
    alpha: float = 0.8
    redraw: float = 0.5

    def __post_init__(self) -> None:
        check.positive("size", self.size, what=" (of the values)")
        check.one_of("values", self.values, ("uniform", "corners"))
        if not 0 < check.positive("alpha", self.alpha, what=" (the share that is exchanged)") <= 1:
            raise ValueError(f"alpha must be at most 1, the whole support, not {self.alpha}")
        check.share("redraw", self.redraw, what=" (of the trials)")

    def search(self, context: Context) -> Asks:
        theta = context.theta0
        F = float((yield from context.values([theta])).mean())
        context.move(theta, F)
        begun = bool(np.count_nonzero(theta) >= min(context.k, context.free().size))
        while context.free().size:
            trial = context.H(self._trial(context, theta))
            value = float((yield from context.values([trial])).mean())
            if value < F or not begun:
                theta, F, begun = trial, value, True
                context.move(theta, F)

    def _trial(self, context: Context, theta: Array) -> Array:
        support, free = np.flatnonzero(theta), context.free()
        count = max(1, int(share(self.alpha, context) * context.k))
        trial = theta.copy()
        if support.size and context.rng.chance(self.redraw):
            chosen = support[context.rng.subset(support.size, min(count, support.size))]
        else:
            if support.size == context.k or support.size == free.size:
                leaving = support[context.rng.subset(support.size, min(count, support.size))]
                trial[leaving] = 0.0
            others = np.setdiff1d(free, support)
            others = others if others.size else np.setdiff1d(free, np.flatnonzero(trial))
            wanted = min(context.k - int(np.count_nonzero(trial)), others.size)
            chosen = others[context.rng.subset(others.size, wanted)]
        trial[chosen] = self._values(context, chosen)
        return trial

    def _values(self, context: Context, chosen: Indices) -> Array:
        low, high = np.full(chosen.size, -self.size), np.full(chosen.size, self.size)
        if context.box is not None:
            low = np.where(np.isfinite(context.box.low[chosen]), context.box.low[chosen], low)
            high = np.where(np.isfinite(context.box.high[chosen]), context.box.high[chosen], high)
        where = context.rng.uniform(chosen.size)
        if self.values == "corners":
            where = np.where(where < 0.5, 0.0, 1.0)
        out: Array = low + where * (high - low)
        return out


def share(alpha: float, context: Context) -> float:
    """alpha_t: the share of the support that is exchanged now."""
    spent = context.used / max(context.used + context.left, 1.0)
    return alpha / next(divisor for start, divisor in reversed(SCHEDULE) if spent >= start)
