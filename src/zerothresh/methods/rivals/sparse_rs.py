"""Sparse-RS: random search over supports, with smaller and smaller exchanges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh import check
from zerothresh.methods.base import Array, register
from zerothresh.methods.program import Asks, Program, Room
from zerothresh.plan import Indices

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

    def search(self, room: Room) -> Asks:
        theta = room.theta0
        F = float((yield from room.values([theta])).mean())
        room.move(theta, F)
        begun = bool(np.count_nonzero(theta) >= min(room.k, room.free().size))
        while room.free().size:
            trial = room.H(self._trial(room, theta))
            value = float((yield from room.values([trial])).mean())
            if value < F or not begun:
                theta, F, begun = trial, value, True
                room.move(theta, F)

    def _trial(self, room: Room, theta: Array) -> Array:
        support, free = np.flatnonzero(theta), room.free()
        count = max(1, int(share(self.alpha, room) * room.k))
        trial = theta.copy()
        if support.size and room.rng.chance(self.redraw):
            chosen = support[room.rng.subset(support.size, min(count, support.size))]
        else:
            if support.size == room.k or support.size == free.size:
                leaving = support[room.rng.subset(support.size, min(count, support.size))]
                trial[leaving] = 0.0
            others = np.setdiff1d(free, support)
            others = others if others.size else np.setdiff1d(free, np.flatnonzero(trial))
            wanted = min(room.k - int(np.count_nonzero(trial)), others.size)
            chosen = others[room.rng.subset(others.size, wanted)]
        trial[chosen] = self._values(room, chosen)
        return trial

    def _values(self, room: Room, chosen: Indices) -> Array:
        low, high = np.full(chosen.size, -self.size), np.full(chosen.size, self.size)
        if room.box is not None:
            low = np.where(np.isfinite(room.box.low[chosen]), room.box.low[chosen], low)
            high = np.where(np.isfinite(room.box.high[chosen]), room.box.high[chosen], high)
        where = room.rng.uniform(chosen.size)
        if self.values == "corners":
            where = np.where(where < 0.5, 0.0, 1.0)
        out: Array = low + where * (high - low)
        return out


def share(alpha: float, room: Room) -> float:
    """alpha_t: the share of the support that is exchanged now."""
    spent = room.used / max(room.used + room.left, 1.0)
    return alpha / next(divisor for start, divisor in reversed(SCHEDULE) if spent >= start)
