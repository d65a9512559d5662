"""A round that waits for its values, and the batches of points that are handed out for it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics import capacity, check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.rounds.plan import Plan


class OpenRound:
    """A round that waits for its values: its queries, and the values that have arrived so far.

    ``owner`` is the token of the session that opened the round; ``told`` counts the calls whose values have arrived.
    A call whose outputs are known from before can be filled in at once: it is not made, and not counted.
    """

    def __init__(self, owner: Any, plan: Plan) -> None:
        self.owner, self.plan = owner, plan
        self.told = self.free = 0  # calls that were answered, and calls that need not be made
        self.values: Array = np.empty(0)
        self._known: NDArray[np.bool_] | None = None  # None: nothing is known
        self._batch: Batch | None = None

    def take(self, start: int, values: Array) -> bool:
        """Store values from row ``start`` on; return whether all values of the round are there."""
        calls, count = self.plan.calls, len(values)
        self._batch = None  # also lets go of the points: a batch and its round hold each other
        if count == calls:
            self.values, self.told = values, calls
            return True
        self._store(start, values)
        self.told += count
        return self.told + self.free == calls

    def _store(self, start: int, values: Array) -> None:
        if self._known is None:
            calls = self.plan.calls
            self.values, self._known = np.empty((calls, *values.shape[1:])), np.zeros(calls, bool)
        stop = start + len(values)
        self.values[start:stop] = values
        self._known[start:stop] = True

    def fill(self, row: int, outputs: Array) -> None:
        """Fill in the outputs of a call that need not be made, (m,)."""
        self._store(row, outputs[None])
        self.free += 1

    @property
    def unanswered(self) -> int:
        """The number of calls whose values are still missing."""
        return self.plan.calls - self.told - self.free

    def known(self, rows: Indices) -> NDArray[np.bool_]:
        """Return which of these rows have values, as a mask."""
        return np.zeros(rows.size, bool) if self._known is None else self._known[rows]

    def missing(self) -> list[tuple[int, int]]:
        """Return the row ranges [start, stop) that have no values yet."""
        if self._known is None:
            return [(0, self.plan.calls)]
        edges = np.flatnonzero(np.diff(np.concatenate([[True], self._known, [True]]).astype(np.int8)))
        return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))

    def batch(self) -> Batch:
        """Return a batch of all missing rows; it is the same object until a value arrives."""
        if self._batch is None:
            rows = np.concatenate([np.arange(start, stop) for start, stop in self.missing()])
            self._batch = Batch(self, rows)
        return self._batch


class Batch:
    """Points to query: ``points`` of shape (B, d) and ``components`` of shape (B,), both read-only.

    A part of a batch, ``batch[3:7]`` or ``batch[mask]``, is a batch too. Points are made when ``points`` is first asked
    for, so that a batch whose points do not fit into memory can be gone through in parts.
    """

    def __init__(self, round: OpenRound, rows: Indices) -> None:
        self.round, self.rows = round, rows
        self._points: Array | None = None

    @property
    def owner(self) -> Any:
        """The token of the session that asks."""
        return self.round.owner

    @property
    def points(self) -> Array:
        """The points, one row per query."""
        if self._points is None:
            plan = self.round.plan
            advice = "go through it in parts, `for part in batch.split(100)`"
            capacity.need(capacity.NUMBER * plan.d * len(self), f"a batch of {len(self)} points", advice)
            parts = [plan.points(int(self.rows[a]), int(self.rows[b - 1]) + 1) for a, b in self.stretches()]
            self._points = parts[0] if len(parts) == 1 else np.concatenate(parts or [np.empty((0, plan.d))])
            self._points.flags.writeable = False
        return self._points

    @property
    def components(self) -> Indices:
        """The component i of each query; all are 0 if n = 1."""
        components: Indices = self.round.plan.components[self.rows]
        components.flags.writeable = False
        return components

    def stretches(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges [a, b) of places in the batch whose rows follow one another."""
        if not self.rows.size:
            return
        cuts = np.flatnonzero(np.diff(self.rows) != 1) + 1
        edges = [0, *cuts.tolist(), self.rows.size]
        yield from pairwise(edges)

    def split(self, size: int) -> Iterator[Batch]:
        """Yield parts of at most ``size`` points, in order; the points of a part are made when they are asked for."""
        size = check.count("size", size, what=" (points per part)")
        for start in range(0, len(self), size):
            yield Batch(self.round, self.rows[start : start + size])

    def __getitem__(self, part: Any) -> Batch:
        rows = np.atleast_1d(self.rows[part])
        if rows.ndim != 1 or part is None or isinstance(part, (bool, np.bool_)):
            raise ValueError(
                f"a part of a batch is selected by an index, a slice, a list of indices or a mask, not by {part!r}"
            )
        if np.unique(rows).size != rows.size:
            raise ValueError("a part of a batch cannot contain a point twice")
        return Batch(self.round, rows)

    def __len__(self) -> int:
        return int(self.rows.size)

    def __repr__(self) -> str:
        return f"<batch of {len(self)} queries, round {self.round.plan.round}>"
