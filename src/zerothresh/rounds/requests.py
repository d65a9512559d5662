"""What a method wants to know in a round.

Each kind of request owns its layout: how many calls it costs, which component and which point each of its
rows queries, and how the values are read back. `Probes` joins requests to what is asked for in one round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from zerothresh.basics import capacity
from zerothresh.basics.arrays import Array, Indices
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.frame import Frame
from zerothresh.sampling.directions import Block, DenseBlock, HartleyBlock, SparseBlock
from zerothresh.sampling.jit import kernel

NO_COMPONENTS = np.empty(0, np.int64)
MANY = 1 << 24  # components from which it is asked whether they fit into memory: fewer fit everywhere


class PointValues(NamedTuple):
    """Values of components at one point of a round."""

    point: Array  # (d,)
    values: Array  # one per component
    leads: bool  # whether it is the first point of a request for gradients, which is the iterate


class Request(Protocol):
    """One kind of request: its rows are queries of one component at one point each."""

    @property
    def components(self) -> Indices:
        """The components that are asked for."""

    def calls(self, estimator: Estimator) -> int:
        """Return the number of rows."""

    def row_components(self, frame: Frame) -> Indices:
        """Return the component of each row."""

    def pieces(self, start: int, stop: int, frame: Frame) -> list[Array]:
        """Return the points of rows start .. stop - 1, as arrays to be stacked."""

    def point(self, row: int, frame: Frame) -> Array:
        """Return the point of one row."""

    def read(self, values: Array, frame: Frame) -> Any:
        """Return what the values of all rows mean to the method."""

    def point_values(self, reading: Any) -> list[PointValues]:
        """Return the points at which the request tells values of components themselves."""


class GradientReading(NamedTuple):
    """Estimates as coefficients of the directions: estimate = sum_l c_l u_l."""

    at_points: Array | None  # f_i(theta), (points, components); None with central differences
    coefficients: Array  # (points, components, q)


@kernel
def _differences(table: Any, scale: float, out: Any) -> None:
    """out_l = (f(theta + mu u_l) - f(theta)) d / (q mu), for each point and component."""
    for p in range(table.shape[0]):
        for c in range(table.shape[1]):
            for l in range(out.shape[2]):
                out[p, c, l] = (table[p, c, l + 1] - table[p, c, 0]) * scale


@dataclass(frozen=True, slots=True, eq=False)
class Gradients:
    """Estimates of the gradients of all ``components`` at all ``points``, by eq. (3).

    Rows are ordered by point, then component; each estimate has f_i(theta), f_i(theta + mu u_1), ...,
    f_i(theta + mu u_q) (central differences: all of theta + mu u_l, then all of theta - mu u_l).
    """

    points: tuple[Array, ...]
    components: Indices

    def calls(self, estimator: Estimator) -> int:
        return len(self.points) * len(self.components) * estimator.calls

    def row_components(self, frame: Frame) -> Indices:
        rows = np.repeat(self.components, frame.estimator.calls)
        return rows if len(self.points) == 1 else np.tile(rows, len(self.points))

    def tag(self, point: int, component: int, estimator: Estimator) -> int:
        """Return which direction block of the round an estimate uses."""
        tag = 0 if estimator.common else component
        if not estimator.shared:
            tag += point * (1 if estimator.common else len(self.components))
        return tag

    def _estimate(self, point: int, tag: int, frame: Frame) -> Array:
        """Return the points of one estimate, (calls, d), read-only; the last one is remembered."""
        last = frame.last_estimate
        if last is not None and last[0] == point and last[1] == tag:
            return last[2]
        e, theta, block = frame.estimator, self.points[point], frame.block(tag)
        points = frame.workspace.points.empty(e.calls, frame.d)
        if e.difference == "forward":
            points[0] = theta
            block.displace(theta, e.mu, points[1:])
        else:
            block.displace(theta, e.mu, points[: e.q])
            block.displace(theta, -e.mu, points[e.q :])
        if frame.box is not None:
            points = frame.box.inside(theta, points)
        points.flags.writeable = False
        frame.last_estimate = point, tag, points
        return points

    def pieces(self, start: int, stop: int, frame: Frame) -> list[Array]:
        calls, count = frame.estimator.calls, len(self.components)
        if start == 0 and stop == calls and count == 1:  # one estimate
            return [self._estimate(0, 0, frame)]
        out: list[Array] = []
        row = start
        while row < stop:
            request, offset = divmod(row, calls)
            point, component = divmod(request, count)
            group = self._estimate(point, self.tag(point, component, frame.estimator), frame)
            if offset == 0 and frame.estimator.common:  # all components share these points
                whole = min((stop - row) // calls, count - component)
                if whole > 1:
                    out.append(np.broadcast_to(group, (whole, *group.shape)).reshape(-1, frame.d))
                    row += whole * calls
                    continue
            piece = group[offset : min(calls, offset + stop - row)]
            out.append(piece)
            row += len(piece)
        return out

    def point(self, row: int, frame: Frame) -> Array:
        request, offset = divmod(row, frame.estimator.calls)
        point, component = divmod(request, len(self.components))
        out: Array = self._estimate(point, self.tag(point, component, frame.estimator), frame)[offset]
        return out

    def read(self, values: Array, frame: Frame) -> GradientReading:
        e = frame.estimator
        shape = len(self.points), len(self.components)
        table = values.reshape(*shape, e.calls)
        scale = frame.d / (e.q * e.mu)
        if e.difference == "forward":
            coefficients = np.empty((*shape, e.q))
            _differences(table, scale, coefficients)  # eq. (3)
            return GradientReading(table[:, :, 0], coefficients)
        plus, minus = table[:, :, : e.q], table[:, :, e.q :]
        return GradientReading(None, (plus - minus) * (0.5 * scale))

    def point_values(self, reading: GradientReading) -> list[PointValues]:
        seen = reading.at_points
        if seen is None:
            return []
        out = [PointValues(self.points[0], seen[0], True)]
        if len(self.points) > 1:
            out += [PointValues(point, row, False) for point, row in zip(self.points[1:], seen[1:], strict=True)]
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The values of all ``components`` at all ``points``; rows are ordered by point, then component."""

    points: tuple[Array, ...]
    components: Indices

    def calls(self, estimator: Estimator) -> int:
        return len(self.points) * len(self.components)

    def row_components(self, frame: Frame) -> Indices:
        return np.tile(self.components, len(self.points))

    def pieces(self, start: int, stop: int, frame: Frame) -> list[Array]:
        return [self.point(row, frame)[None] for row in range(start, stop)]

    def point(self, row: int, frame: Frame) -> Array:
        return self.points[row // len(self.components)]

    def read(self, values: Array, frame: Frame) -> Array:
        return values.reshape(len(self.points), len(self.components))

    def point_values(self, reading: Array) -> list[PointValues]:
        return [PointValues(point, row, False) for point, row in zip(self.points, reading, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """The values of all ``components`` at theta + h u_l, for the ``count`` directions u_l of a block.

    Rows are ordered by component, then direction. The points are never all held at once.
    """

    theta: Array
    block: Block
    h: float
    count: int
    components: Indices

    def calls(self, estimator: Estimator) -> int:
        return self.count * len(self.components)

    def row_components(self, frame: Frame) -> Indices:
        return np.repeat(self.components, self.count)

    def _displaced(self, start: int, stop: int, frame: Frame) -> Array:
        """Return the points of directions start .. stop - 1, (stop - start, d)."""
        whole = (start, stop) == (0, self.count)
        if isinstance(self.block, (SparseBlock, DenseBlock, HartleyBlock)) and not whole:
            out = np.empty((stop - start, self.theta.size))
            self.block.part(start, stop).displace(self.theta, self.h, out)
        else:
            out = np.empty((self.count, self.theta.size))
            self.block.displace(self.theta, self.h, out)
            out = out[start:stop]
        return frame.inside(out)

    def pieces(self, start: int, stop: int, frame: Frame) -> list[Array]:
        out: list[Array] = []
        row = start
        while row < stop:
            first = row % self.count
            last = min(self.count, first + stop - row)
            if first == 0 and last == self.count:  # all components share these points
                whole = (stop - row) // self.count
                group = self._displaced(0, self.count, frame)
                out.append(np.broadcast_to(group, (whole, *group.shape)).reshape(-1, frame.d))
                row += whole * self.count
                continue
            out.append(self._displaced(first, last, frame))
            row += last - first
        return out

    def point(self, row: int, frame: Frame) -> Array:
        first = row % self.count
        out: Array = self._displaced(first, first + 1, frame)[0]
        out.flags.writeable = False
        return out

    def read(self, values: Array, frame: Frame) -> Array:
        return values.reshape(len(self.components), self.count)

    def point_values(self, reading: Array) -> list[PointValues]:
        return []


@dataclass(frozen=True, slots=True, eq=False)
class Each:
    """The value of component ``components[r]`` at row r of ``points``, an array of shape (rows, d)."""

    points: Array
    components: Indices

    def calls(self, estimator: Estimator) -> int:
        return len(self.components)

    def row_components(self, frame: Frame) -> Indices:
        return self.components

    def pieces(self, start: int, stop: int, frame: Frame) -> list[Array]:
        return [frame.inside(self.points[start:stop])] if start < stop else []

    def point(self, row: int, frame: Frame) -> Array:
        out: Array = frame.inside(self.points[row])
        out.flags.writeable = False
        return out

    def read(self, values: Array, frame: Frame) -> Array:
        return values

    def point_values(self, reading: Array) -> list[PointValues]:
        return []


Components = Sequence[int] | Indices | range


def _indices(of: Components) -> Indices:
    """Return components as an array; a range of more than fit into memory is refused before it is made."""
    if type(of) is range and len(of) > MANY:
        advice = "take fewer components, or a method that asks for a few of them per step, such as szoht"
        capacity.need(capacity.NUMBER * len(of), f"a round of {len(of)} components", advice)
    return np.asarray(of, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Probes:
    """What a method asks for in a round: at most one request of each kind.

    Make one with `gradients`, `values`, `around` or `each`; ``gradients(...) | values(...)`` asks for both in
    one round. ``notes`` keep what ``plan`` drew and ``update`` has to know. ``estimate`` are fields of the
    `Estimator` that a method sets itself in this round, such as a number of directions q that grows.
    """

    requests: tuple[Request, ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)
    estimate: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def gradients(
        at: Sequence[Array], of: Components, *, estimate: Mapping[str, Any] | None = None, **notes: Any
    ) -> Probes:
        """Ask for estimates of the gradients of the components ``of`` at the points ``at``."""
        return Probes((Gradients(tuple(at), _indices(of)),), notes, estimate or {})

    @staticmethod
    def values(at: Sequence[Array], of: Components, **notes: Any) -> Probes:
        """Ask for the values of the components ``of`` at the points ``at``."""
        return Probes((Values(tuple(at), _indices(of)),), notes)

    @staticmethod
    def around(theta: Array, block: Block, h: float, count: int, of: Components, **notes: Any) -> Probes:
        """Ask for the values of the components ``of`` at theta + h u_l, for the ``count`` directions of a block."""
        return Probes((Around(theta, block, h, count, _indices(of)),), notes)

    @staticmethod
    def each(points: Array, of: Sequence[int] | Indices, **notes: Any) -> Probes:
        """Ask for the value of component ``of[r]`` at row r of ``points``."""
        return Probes((Each(points, _indices(of)),), notes)

    def __or__(self, other: Probes) -> Probes:
        """Ask for both in one round; gradients come first."""
        kinds = [type(request) for request in (*self.requests, *other.requests)]
        if len(set(kinds)) < len(kinds):
            raise ValueError("two requests of the same kind cannot be joined: put their points into one")
        both = sorted((*self.requests, *other.requests), key=lambda request: not isinstance(request, Gradients))
        return Probes(tuple(both), {**self.notes, **other.notes}, {**self.estimate, **other.estimate})

    @property
    def components(self) -> Indices:
        """The components whose gradients are asked for; none if the round asks for values only."""
        gradients = self.requests[0] if self.requests else None
        return gradients.components if isinstance(gradients, Gradients) else NO_COMPONENTS

    def calls(self, estimator: Estimator) -> int:
        """Return how many calls of f_i the answers cost."""
        if self.estimate:
            estimator = self.estimator(estimator)
        return sum(request.calls(estimator) for request in self.requests)

    def estimator(self, given: Estimator) -> Estimator:
        """Return the estimator of this round: the given one, with what the method sets itself."""
        return _changed(given, tuple(self.estimate.items())) if self.estimate else given


@lru_cache(256)
def _changed(estimator: Estimator, fields: tuple[tuple[str, Any], ...]) -> Estimator:
    return replace(estimator, **dict(fields))
