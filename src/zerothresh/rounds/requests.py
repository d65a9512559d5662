"""What a method wants to know in a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.bounds import Box
from zerothresh.rounds.estimator import Estimator
from zerothresh.sampling.directions import Block, SparseBlock

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Moves:
    """Values at theta + h u_l for the directions u_l of a block: every move with every component."""

    theta: Array
    block: Block
    h: float
    count: int  # of directions
    components: Indices

    def points(self, start: int, stop: int, box: Box | None) -> Array:
        """The points of moves start .. stop - 1, (stop - start, d)."""
        whole = (start, stop) == (0, self.count)
        if isinstance(self.block, SparseBlock) and not whole:
            out = np.empty((stop - start, self.theta.size))
            self.block.part(start, stop).displace(self.theta, self.h, out)
        else:
            out = np.empty((self.count, self.theta.size))
            self.block.displace(self.theta, self.h, out)
            out = out[start:stop]
        return out if box is None else np.clip(out, box.low, box.high)


@dataclass(frozen=True)
class Probes:
    """What a method asks for: component gradients at points, plain component values at points.

    Each request is a product: every one of the points with every one of the components. ``moves``
    asks for values at many points around one, without holding them; ``pairs`` for values of
    component ``pair_components[r]`` at row r. ``notes`` keeps what ``plan`` drew and ``update`` has
    to know. ``estimate`` are fields of the `Estimator` that a method sets itself in this round, such as a
    number of directions q that grows.
    """

    points: tuple[Array, ...] = ()
    components: Indices = field(default_factory=lambda: _NONE)
    value_points: tuple[Array, ...] = ()
    value_components: Indices = field(default_factory=lambda: _NONE)
    notes: Mapping[str, Any] = field(default_factory=dict)
    moves: Moves | None = None
    pairs: Array | None = None
    pair_components: Indices = field(default_factory=lambda: _NONE)
    estimate: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def gradients(
        at: Sequence[Array],
        of: Sequence[int] | Indices | range,
        *,
        estimate: Mapping[str, Any] | None = None,
        **notes: Any,
    ) -> Probes:
        """Estimates of the gradients of the components ``of`` at the points ``at``."""
        of = np.asarray(of, dtype=np.int64)
        return Probes(points=tuple(at), components=of, notes=notes, estimate=estimate or {})

    @staticmethod
    def values(at: Sequence[Array], of: Sequence[int] | Indices | range, **notes: Any) -> Probes:
        """The values of the components ``of`` at the points ``at``."""
        return Probes(value_points=tuple(at), value_components=np.asarray(of, dtype=np.int64), notes=notes)

    def __or__(self, other: Probes) -> Probes:
        """Gradients of one and values of the other, in one round."""
        if (self.points and other.points) or (self.value_points and other.value_points):
            raise ValueError("two requests of the same kind cannot be joined: put their points into one")
        first, second = (self, other) if self.points else (other, self)
        return Probes(
            first.points,
            first.components,
            second.value_points,
            second.value_components,
            {**self.notes, **other.notes},
            estimate={**self.estimate, **other.estimate},
        )

    @staticmethod
    def around(
        theta: Array, block: Block, h: float, count: int, of: Sequence[int] | Indices | range, **notes: Any
    ) -> Probes:
        """The values of the components ``of`` at theta + h u_l, for the ``count`` directions of a block."""
        return Probes(moves=Moves(theta, block, h, count, np.asarray(of, dtype=np.int64)), notes=notes)

    @staticmethod
    def each(points: Array, of: Sequence[int] | Indices, **notes: Any) -> Probes:
        """The value of component ``of[r]`` at row r of ``points``."""
        return Probes(pairs=points, pair_components=np.asarray(of, dtype=np.int64), notes=notes)

    def calls(self, estimator: Estimator) -> int:
        """How many calls of f_i the answer costs."""
        gradients = len(self.points) * len(self.components)
        calls = gradients * self.estimator(estimator).calls + len(self.value_points) * len(self.value_components)
        if self.moves is not None:
            calls += self.moves.count * len(self.moves.components)
        return calls + len(self.pair_components)

    def estimator(self, given: Estimator) -> Estimator:
        """The estimator of this round: the given one, with what the method sets itself."""
        return _changed(given, tuple(self.estimate.items())) if self.estimate else given


@lru_cache(256)
def _changed(estimator: Estimator, fields: tuple[tuple[str, Any], ...]) -> Estimator:
    return replace(estimator, **dict(fields))
