"""Groups of coordinates that take a long step together, and their best-first order."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.settings.box_settings import LONG_STEPS
from zerothresh.methods.program.context import Context


@dataclass(frozen=True, eq=False)
class StepGroup:
    """Coordinates that are put to their targets together."""

    coordinates: Indices
    target: Array  # (d,), the target of every coordinate
    aim: int  # the number of that target
    changes: Array | None = None  # of the components in use

    @property
    def change(self) -> float:
        """The change of F, as far as the components in use tell it."""
        return 0.0 if self.changes is None else float(self.changes.mean())

    def applied(self, theta: Array) -> Array:
        """Return the point with this step taken."""
        out = theta.copy()
        out[self.coordinates] = self.target[self.coordinates]
        return out

    def halves(self) -> list[StepGroup]:
        """Return the two halves of a group of several coordinates."""
        half = self.coordinates.size // 2
        return [replace(self, coordinates=part) for part in (self.coordinates[:half], self.coordinates[half:])]


class GroupQueue:
    """Groups in the order of their changes of F."""

    def __init__(self, groups: Iterable[StepGroup]) -> None:
        self._count = itertools.count()  # of two equal changes the older one comes first
        self._heap: list[tuple[float, int, StepGroup]] = []
        self.push(groups)

    def push(self, groups: Iterable[StepGroup]) -> None:
        """Put groups in their places."""
        for group in groups:
            heapq.heappush(self._heap, (group.change, next(self._count), group))

    def pop(self) -> StepGroup:
        """Take out the group with the largest fall."""
        return heapq.heappop(self._heap)[2]


def split(coordinates: Indices, theta: Array, targets: list[Array], parts: int, zero: bool) -> list[StepGroup]:
    """Return groups of about equal size of the coordinates that are not at a target; 0 is one only if ``zero``."""
    out = []
    for aim, target in enumerate(targets):
        movable = coordinates[((target[coordinates] != 0) | zero) & (target[coordinates] != theta[coordinates])]
        out += [StepGroup(part, target, aim) for part in np.array_split(movable, parts) if part.size]
    return out


def reach(context: Context, diagnosis: Diagnosis) -> tuple[Array, Array]:
    """Return how far coordinates may go down and up: their bounds, or a length where there are none."""
    length = max(diagnosis.length, float(np.abs(context.theta).max(initial=0.0)))
    low, high = np.full(context.d, -length), np.full(context.d, length)
    if context.box is not None:
        low = np.where(np.isfinite(context.box.low), context.box.low, low)
        high = np.where(np.isfinite(context.box.high), context.box.high, high)
    return low, high


def targets_of(context: Context, low: Array, high: Array) -> list[Array]:
    """Return where steps lead: to the bounds; where there are none, several lengths are tried."""
    box = context.box
    bounded = box is not None and bool(np.isfinite(box.high - box.low).all())
    shares = (1.0,) if bounded else LONG_STEPS.shares
    return [share * end for share in shares for end in (low, high)]
