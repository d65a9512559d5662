"""Sparse-RS: random search over supports with exchanges that get smaller and smaller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.registry import register

# (share of the budget spent, divisor of alpha from there on), as published for l0 attacks.
SCHEDULE = ((0.0, 2), (0.005, 4), (0.02, 5), (0.05, 6), (0.1, 8), (0.2, 10), (0.4, 12), (0.6, 15), (0.8, 20))


@register("sparse-rs")
@dataclass(frozen=True)
class SparseRS(Program):
    """Random search over supports, in the manner of Sparse-RS: n calls per trial.

    A trial exchanges alpha_t k coordinates of the support for others with random values, and is accepted if F
    decreases; alpha_t decreases with the share of the budget that has been spent. The first trial, which fills a
    support of k coordinates, is always accepted.

    Arguments
    ---------
    size: float, default 1. Values are drawn from [-size, size], or from within the bounds where there are finite ones.
    values: str, default "uniform". How values are drawn from that range: "uniform", or only its "corners" as in the
        attack, where extreme values are best.
    alpha: float in (0, 1], default 0.8. Initial share of the support to exchange, before the schedule divides it.
    redraw: float in [0, 1), default 0.5. Share of the trials that redraw values and keep the support. The attack has
        none, because its values are corners; without them, values on the right support could not be improved.

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
    keeps_constraints: ClassVar[bool] = False

    size: float = 1.0
    values: str = "uniform"
    alpha: float = 0.8
    redraw: float = 0.5

    def __post_init__(self) -> None:
        check.positive("size", self.size, what=" (the range of the values)")
        check.one_of("values", self.values, ("uniform", "corners"))
        if not 0 < check.positive("alpha", self.alpha, what=" (the share of the support to exchange)") <= 1:
            raise ValueError(f"alpha must be at most 1, which exchanges the whole support, not {self.alpha}")
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
        """A point to try: redrawn values on the support, or exchanged coordinates."""
        support, free = np.flatnonzero(theta), context.free()
        count = max(1, int(share(self.alpha, context) * context.k))
        trial = theta.copy()
        if support.size and context.rng.chance(self.redraw):
            chosen = support[context.rng.subset(support.size, min(count, support.size))]
        else:
            coming = context.k - support.size
            if (
                support.size >= context.k or support.size == free.size
            ):  # with groups, there may be more than k non-zeros
                leaving = support[context.rng.subset(support.size, min(count, support.size))]
                trial[leaving] = 0.0
                coming = max(coming, 0) + leaving.size
            others = np.setdiff1d(free, support)
            others = others if others.size else np.setdiff1d(free, np.flatnonzero(trial))
            chosen = others[context.rng.subset(others.size, min(coming, others.size))]
        trial[chosen] = self._values(context, chosen)
        return trial

    def _values(self, context: Context, chosen: Indices) -> Array:
        """Random values for the chosen coordinates."""
        low, high = np.full(chosen.size, -self.size), np.full(chosen.size, self.size)
        if context.box is not None:
            low = np.where(np.isfinite(context.box.low[chosen]), context.box.low[chosen], low)
            high = np.where(np.isfinite(context.box.high[chosen]), context.box.high[chosen], high)
        where = context.rng.uniform(chosen.size)
        if self.values == "corners":
            where = np.where(where < 0.5, 0.0, 1.0)
        width = high - low
        out: Array = low + where * width if np.isfinite(width).all() else (1 - where) * low + where * high
        return out


def share(alpha: float, context: Context) -> float:
    """alpha_t: the share of the support to exchange at this point of the budget."""
    spent = context.used / max(context.used + context.left, 1.0)
    return alpha / next(divisor for start, divisor in reversed(SCHEDULE) if spent >= start)
