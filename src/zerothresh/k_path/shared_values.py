"""The values that the runs of a path share: what one of them has paid for is free for all others."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.rounds.plan import Plan

KEY_BYTES = 16  # of the digest of a point and a component: among 2**40 calls, two are mixed up with probability 2e-15
MOST_NUMBERS = 1 << 22  # of the points that are held at once (32 MiB); a round of more is looked at in parts

Asked = dict[bytes, int]  # how often a run has asked for a component at a point


@dataclass(frozen=True)
class Looked:
    """What is known of the calls of a round: nobody has paid for the rows that are missing.

    Attributes
    ----------
    plan: Plan, the round.
    members: int64 array, the component of the path that each component of the round is; None: the same.
    keys: what tells the point and the component of each call from all others.
    times: how often the run has asked for that before.
    missing: int64 array, the rows that have to be paid for, in increasing order.
    """

    plan: Plan
    members: Indices | None
    keys: list[bytes]
    times: list[int]
    missing: Indices

    @property
    def price(self) -> int:
        """The number of calls that have to be made."""
        return int(self.missing.size)

    def part(self, first: int, last: int) -> Looked:
        """Return the same with some of the missing rows only."""
        return replace(self, missing=self.missing[first:last])

    def components(self) -> Indices:
        """Return the component of the path of each missing row."""
        return _global(self.plan.components[self.missing], self.members)

    def points(self) -> Array:
        """Return the points of the missing rows, (rows, d)."""
        rows = self.missing
        cuts = (np.flatnonzero(np.diff(rows) != 1) + 1).tolist()
        edges = [0, *cuts, rows.size] if rows.size else []
        pieces = [self.plan.points(int(rows[a]), int(rows[b - 1]) + 1) for a, b in pairwise(edges)]
        return np.concatenate(pieces) if pieces else np.empty((0, self.plan.d))


class SharedValues:
    """Every value that some run of a path has paid for, by its point and its component, in the order of the calls.

    A run that asks for a component at a point for the j-th time gets the j-th value there, and a call is made only if
    no other run has asked so often. So values that a run asks for again are independent, as they are for a run of its
    own.
    """

    def __init__(self) -> None:
        self._values: dict[bytes, list[float | Array]] = {}

    def look(self, plan: Plan, asked: Asked, members: Indices | None) -> Looked:
        """Return what is known of the calls of a round.

        Arguments
        ---------
        plan: Plan, the round.
        asked: how often the run has asked for what.
        members: int64 array, the component of the path that each component of the round is; None: the same.
        """
        keys, times, within = list[bytes](), list[int](), Counter[bytes]()
        for first, last in parts(plan.calls, plan.d):
            components = _global(plan.components[first:last], members).tolist()
            for point, component in zip(plan.points(first, last), components, strict=True):
                key = _key(point, component)
                keys.append(key)
                times.append(asked.get(key, 0) + within[key])
                within[key] += 1
        known = self._values
        missing = [row for row, (key, j) in enumerate(zip(keys, times, strict=True)) if j >= len(known.get(key, ()))]
        return Looked(plan, members, keys, times, np.array(missing, np.int64))

    def enter(self, looked: Looked, values: Array) -> None:
        """Keep the values of the missing rows, in their order: (rows,), or of calls with m outputs, (rows, m)."""
        for row, value in zip(looked.missing.tolist(), values, strict=True):
            self._values.setdefault(looked.keys[row], []).append(value.copy() if values.ndim == 2 else float(value))

    def answers(self, looked: Looked, asked: Asked) -> Array:
        """Return the values of all calls of a round, and count them as asked for."""
        for key in looked.keys:
            asked[key] = asked.get(key, 0) + 1
        return np.array([self._values[key][j] for key, j in zip(looked.keys, looked.times, strict=True)])


def parts(calls: int, d: int) -> list[tuple[int, int]]:
    """Cut the rows of a round into parts whose points fit into a moderate memory."""
    size = max(1, MOST_NUMBERS // d)
    return [(first, min(calls, first + size)) for first in range(0, calls, size)]


def _global(components: Indices, members: Indices | None) -> Indices:
    """Return components of the path from those of a run."""
    return components if members is None else members[components]


def _key(point: Array, component: int) -> bytes:
    """Return what tells a point and a component from all others; -0.0 is another number than 0.0."""
    return hashlib.blake2b(point.tobytes() + component.to_bytes(8, "little"), digest_size=KEY_BYTES).digest()
