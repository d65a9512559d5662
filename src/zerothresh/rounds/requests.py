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

NO_COMPONENTS, ONE_COMPONENT = np.empty(0, np.int64), np.zeros(1, np.int64)
MANY = 1 << 24  # components from which it is asked whether they fit into memory: fewer fit everywhere


class PointValues(NamedTuple):
    """Values of components at one point of a round."""

    point: Array  # (d,)
    values: Array  # one per component
    leads: bool  # whether it is the first point of a request for gradients, which is the iterate
    outputs: Array | None = None  # of the call there, if calls return many outputs


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

    # Where one call returns all outputs at a point, rows at the same point share a call.

    def shared(self, estimator: Estimator) -> Request:
        """Return the request whose rows are the calls that this one takes."""

    def spread(self, seen: Array, frame: Frame) -> Array:
        """Return the value of each row from what the calls show of all components, (calls, components)."""

    def centres(self, estimator: Estimator) -> tuple[Array, ...]:
        """Return the points that are asked for themselves; each begins an equal share of the calls."""


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

    def shared(self, estimator: Estimator) -> Request:
        if estimator.common:
            return Gradients(self.points, self.components[:1])
        return self if estimator.difference == "central" else OwnDirections(self)

    def spread(self, seen: Array, frame: Frame) -> Array:
        e, count, points = frame.estimator, len(self.components), len(self.points)
        if e.common:
            table = seen[:, self.components].reshape(points, e.calls, count).transpose(0, 2, 1)
        elif e.difference == "central":
            of = np.repeat(self.components, e.calls)
            table = seen.reshape(points, count * e.calls, -1)[:, np.arange(of.size), of]
        else:
            calls = seen.reshape(points, 1 + count * e.q, -1)
            of = np.repeat(self.components, e.q)
            table = np.empty((points, count, e.calls))
            table[:, :, 0] = calls[:, 0, self.components]
            table[:, :, 1:] = calls[:, 1 + np.arange(of.size), of].reshape(points, count, e.q)
        return table.ravel()

    def centres(self, estimator: Estimator) -> tuple[Array, ...]:
        return self.points if estimator.difference == "forward" else ()


@dataclass(frozen=True, slots=True, eq=False)
class OwnDirections:
    """The calls of a request for gradients by forward differences whose components have directions of their own.

    Rows are ordered by point; each has theta once, and then theta + mu u_1, ..., theta + mu u_q of each component.
    """

    of: Gradients

    @property
    def components(self) -> Indices:
        return self.of.components

    def calls(self, estimator: Estimator) -> int:
        return len(self.of.points) * (1 + len(self.of.components) * estimator.q)

    def row_components(self, frame: Frame) -> Indices:
        return np.zeros(self.calls(frame.estimator), np.int64)

    def pieces(self, start: int, stop: int, frame: Frame) -> list[Array]:
        return [self.point(row, frame)[None] for row in range(start, stop)]

    def point(self, row: int, frame: Frame) -> Array:
        e, count = frame.estimator, len(self.of.components)
        point, offset = divmod(row, 1 + count * e.q)
        component, direction = divmod(offset - 1, e.q) if offset else (0, -1)
        return self.of.point((point * count + component) * e.calls + 1 + direction, frame)

    def read(self, values: Array, frame: Frame) -> Any:
        raise NotImplementedError  # these are calls; the values are read by the request that they are for

    def point_values(self, reading: Any) -> list[PointValues]:
        return []

    def shared(self, estimator: Estimator) -> Request:
        return self

    def spread(self, seen: Array, frame: Frame) -> Array:
        return self.of.spread(seen, frame)

    def centres(self, estimator: Estimator) -> tuple[Array, ...]:
        return self.of.points


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

    def shared(self, estimator: Estimator) -> Request:
        return Values(self.points, ONE_COMPONENT)

    def spread(self, seen: Array, frame: Frame) -> Array:
        return seen[:, self.components].ravel()

    def centres(self, estimator: Estimator) -> tuple[Array, ...]:
        return self.points


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

    def shared(self, estimator: Estimator) -> Request:
        return Around(self.theta, self.block, self.h, self.count, ONE_COMPONENT)

    def spread(self, seen: Array, frame: Frame) -> Array:
        return seen[:, self.components].T.ravel()

    def centres(self, estimator: Estimator) -> tuple[Array, ...]:
        return ()


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

    def _calls(self) -> tuple[Indices, Indices]:
        """Return a row of each call, and the call of each row.

        Components at the same point share a call. A component that is asked for twice at a point gets two calls: the
        method wants to know whether its value comes again.
        """
        seen: dict[tuple[bytes, int], int] = {}  # how often a component has been asked for at a point
        calls: dict[tuple[bytes, int], int] = {}
        first, of_rows = list[int](), np.empty(len(self.components), np.int64)
        for row, component in enumerate(self.components.tolist()):
            point = self.points[row].tobytes()
            times = seen[point, component] = seen.get((point, component), -1) + 1
            call = calls.setdefault((point, times), len(first))
            if call == len(first):
                first.append(row)
            of_rows[row] = call
        return np.array(first, np.int64), of_rows

    def shared(self, estimator: Estimator) -> Request:
        first, _ = self._calls()
        return Each(self.points[first], np.zeros(first.size, np.int64))

    def spread(self, seen: Array, frame: Frame) -> Array:
        _, of_rows = self._calls()
        out: Array = seen[of_rows, self.components]
        return out

    def centres(self, estimator: Estimator) -> tuple[Array, ...]:
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """All outputs of the calls at ``points``, where one call returns many; ordered by point, then output."""

    points: tuple[Array, ...]

    @property
    def components(self) -> Indices:
        return NO_COMPONENTS

    def calls(self, estimator: Estimator) -> int:
        return len(self.points)

    def row_components(self, frame: Frame) -> Indices:
        return np.zeros(len(self.points), np.int64)

    def pieces(self, start: int, stop: int, frame: Frame) -> list[Array]:
        return [self.points[row][None] for row in range(start, stop)]

    def point(self, row: int, frame: Frame) -> Array:
        return self.points[row]

    def read(self, values: Array, frame: Frame) -> Array:
        return values.reshape(len(self.points), -1)

    def point_values(self, reading: Array) -> list[PointValues]:
        return []

    def shared(self, estimator: Estimator) -> Request:
        return self

    def spread(self, seen: Array, frame: Frame) -> Array:
        return seen.ravel()

    def centres(self, estimator: Estimator) -> tuple[Array, ...]:
        return self.points


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

    Make one with `gradients`, `values`, `around`, `each` or `outputs`; ``gradients(...) | values(...)`` asks for both
    in one round. ``notes`` keep what ``plan`` drew and ``update`` has to know. ``estimate`` are fields of the
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

    @staticmethod
    def outputs(at: Sequence[Array], **notes: Any) -> Probes:
        """Ask for all outputs of the calls at the points ``at``, where one call returns many."""
        return Probes((Outputs(tuple(at)),), notes)

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
