"""What a method wants to know in a round (`Probes`), and the points that have to be queried for it (`Plan`)."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh import check
from zerothresh.directions import FAMILIES, Block, SparseBlock, draw
from zerothresh.randomness import DIRECTIONS, TAG_LIMIT

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


_SMALLEST = 1e-250  # scales below this have no room for d / (q mu) in floating point


@dataclass(frozen=True)
class Estimator:
    r"""The zeroth-order gradient estimate of eq. (3), from q directions:

    .. math:: \hat\nabla f(\theta) = \frac{d}{q\mu} \sum_{l=1}^q (f(\theta + \mu u_l) - f(\theta)) u_l

    Arguments
    ---------
    q: number of directions. An estimate costs q + 1 calls (forward) or 2q (central).
    mu: smoothing radius, the length of a step; as small as the noise of the function allows.
    s2: size of the random support of a direction, at most d; None: d.
    difference: "forward" (the paper's) or "central".
    directions: "orthogonal" (default), "sphere" (the paper's), "gaussian" (which are not normalised),
        "rademacher" or "coordinate".
    shared: use the same directions for the two estimates inside a difference of VR-SZHT or
        SARAH-SZHT. The paper does not say; with independent ones the difference does not vanish as
        the two points meet.
    common: use the same directions for all components of a round; False draws afresh for each
        component, the paper's letter.

    >>> Estimator(q=20, mu=1e-4, directions="sphere").calls
    21
    """

    q: int = 10
    mu: float = 1e-3
    s2: int | None = None
    difference: str = "forward"
    directions: str = "orthogonal"
    shared: bool = True
    common: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", check.count("q", self.q, what=" (directions an estimate)"))
        object.__setattr__(self, "mu", check.positive("mu", self.mu, what=" (the smoothing radius)"))
        if self.s2 is not None:
            what = " (the size of a direction's support)"
            object.__setattr__(self, "s2", check.count("s2", self.s2, what=what))
        check.one_of("difference", self.difference, ("forward", "central"))
        check.one_of("directions", self.directions, FAMILIES)
        for name in ("shared", "common"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if self.directions == "coordinate" and self.s2 not in (None, 1):
            raise ValueError(
                f"s2 = {self.s2} does not fit directions='coordinate', whose supports have size 1: "
                "leave s2 out, or take another family"
            )

    @cached_property
    def calls(self) -> int:
        """Calls of f_i that one estimate costs."""
        return self.q + 1 if self.difference == "forward" else 2 * self.q

    def support_size(self, d: int) -> int:
        """s2, checked against the dimension."""
        if self.s2 is not None and self.s2 > d:
            raise ValueError(f"s2 = {self.s2} is larger than the dimension d = {d}: take s2 from 1 to {d}")
        return d if self.s2 is None else self.s2

    def largest_scale(self, d: int) -> float:
        """The largest |theta_j| beside which a step of mu still shows in floating point."""
        typical = 1.0 if self.directions == "coordinate" else self.support_size(d) ** -0.5
        return self.mu * typical / float(np.finfo(float).eps)

    def check_start(self, theta: Array) -> None:
        """Refuse a mu that is lost in rounding beside theta; warn of directions that tie."""
        d = theta.size
        scale, largest = self.largest_scale(d), float(np.max(np.abs(theta), initial=0.0))
        if largest >= scale or scale < _SMALLEST:
            needed = max(4 * self.mu * largest / scale, self.mu * _SMALLEST / scale)
            raise ValueError(
                f"mu = {self.mu:g} is so small that theta + mu u = theta in floating point (the largest "
                f"|theta_j| is {largest:g}): take mu of at least {needed:.1g}, better 1e-4 of theta's scale"
            )
        if self.directions == "rademacher" and self.q < np.log2(d):
            warnings.warn(
                f"with q = {self.q} rademacher directions at d = {d}, many coordinates of an estimate are "
                f"equal in size, and ties go to the lowest index: take q well above {np.log2(d):.0f}, or "
                "directions='orthogonal'",
                stacklevel=2,
            )


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


@dataclass(frozen=True)
class Box:
    """Bounds that the queried points keep to."""

    low: Array
    high: Array

    def inside(self, theta: Array, points: Array) -> Array:
        """Bend theta + v into the box, so that the estimate keeps its mean.

        What a step v would stick out, e(v), is taken off, and what -v would stick out is added on
        this side: w(v) = v - e(v) - e(-v). Then E[w u'] = mu E[u u'] for directions of symmetric
        law, and w(v) - w(-v) = 2 v: forward and central differences both still estimate the gradient.
        """
        mirrored = 2.0 * theta - points
        excess = points - np.clip(points, self.low, self.high)
        excess += mirrored - np.clip(mirrored, self.low, self.high)
        return np.clip(points - excess, self.low, self.high)


class Buffers:
    """Large arrays for points, used again once nobody holds them: fresh memory costs more than filling it."""

    def __init__(self) -> None:
        self._held: list[Array] = []

    def empty(self, rows: int, d: int) -> Array:
        """An array of this shape, with anything in it."""
        if rows * d < _LARGE:
            return np.empty((rows, d))
        for array in self._held:
            # held by this list, by the loop and by the question itself: no plan, batch or view of a user's
            if array.shape == (rows, d) and sys.getrefcount(array) == 3:
                array.flags.writeable = True
                return array
        array = np.empty((rows, d))
        self._held = [*self._held[-1:], array]
        return array


_LARGE = 1 << 17  # numbers from which an array is worth keeping


class Plan:
    """The queries of one round: a function of the probes, the estimator, the key and the round.

    Rows are ordered by request: for each point, for each component, f_i(theta) and then
    f_i(theta + mu u_1) .. f_i(theta + mu u_q) (central: all + and then all -); plain values last.
    """

    def __init__(
        self,
        probes: Probes,
        estimator: Estimator,
        d: int,
        *,
        key: int,
        round: int,
        box: Box | None = None,
        buffers: Buffers | None = None,
    ) -> None:
        self.probes, self.estimator, self.d = probes, probes.estimator(estimator), d
        self.key, self.round, self.box, self._buffers = key, round, box, buffers
        self.calls = probes.calls(estimator)
        self._components: Indices | None = None
        self._group: tuple[tuple[int, int], Array] | None = None
        self._blocks: dict[int, Block] = {}

    @property
    def components(self) -> Indices:
        """The component of each row."""
        if self._components is None:
            self._components = self._expand()
        return self._components

    def _expand(self) -> Indices:
        probes = self.probes
        gradients = np.repeat(probes.components, self.estimator.calls)
        if len(probes.points) != 1:
            gradients = np.tile(gradients, len(probes.points))
        parts = [gradients] if gradients.size else []
        if probes.value_points:
            parts.append(np.tile(probes.value_components, len(probes.value_points)))
        if probes.moves is not None:
            parts.append(np.repeat(probes.moves.components, probes.moves.count))
        if probes.pairs is not None:
            parts.append(probes.pair_components)
        return parts[0] if len(parts) == 1 else np.concatenate(parts or [gradients])

    def tag(self, point: int, component: int) -> int:
        """Which direction block of the round a request uses."""
        estimator, tag = self.estimator, 0
        if not estimator.common:
            tag = component
        if not estimator.shared:
            tag += point * (1 if estimator.common else len(self.probes.components))
        return tag

    def block(self, tag: int) -> Block:
        """A direction block of this round, kept while the round is open."""
        block = self._blocks.get(tag)
        if block is None:
            if len(self._blocks) >= 4:  # independent directions a component: keep memory bounded
                self._blocks.clear()
            block = self._blocks[tag] = self.recall(self.round, tag)
        return block

    def held(self, tag: int) -> Block | None:
        """A block of this round if it is at hand."""
        return self._blocks.get(tag)

    def recall(self, round: int, tag: int) -> Block:
        """A direction block of any round."""
        if tag >= TAG_LIMIT:
            raise ValueError(f"a round can have at most {TAG_LIMIT} direction blocks, and this one needs more")
        e = self.estimator
        size = e.support_size(self.d)
        return draw(e.directions, e.q, self.d, size, key=self.key, round=round, tag=(DIRECTIONS << 24) + tag)

    def _request(self, point: int, tag: int) -> Array:
        """The points of one estimate, (calls, d)."""
        if self._group is not None and self._group[0] == (point, tag):
            return self._group[1]
        e, theta, block = self.estimator, self.probes.points[point], self.block(tag)
        points = np.empty((e.calls, self.d)) if self._buffers is None else self._buffers.empty(e.calls, self.d)
        if e.difference == "forward":
            points[0] = theta
            block.displace(theta, e.mu, points[1:])
        else:
            block.displace(theta, e.mu, points[: e.q])
            block.displace(theta, -e.mu, points[e.q :])
        if self.box is not None:
            points = self.box.inside(theta, points)
        points.flags.writeable = False
        self._group = (point, tag), points
        return points

    def points(self, start: int = 0, stop: int | None = None) -> Array:
        """The points of rows start .. stop - 1, read-only."""
        stop = self.calls if stop is None else min(stop, self.calls)
        probes, calls, count = self.probes, self.estimator.calls, len(self.probes.components)
        if start == 0 and stop == calls == self.calls and count == 1:  # one estimate is all
            return self._request(0, self.tag(0, 0))
        last = calls * count * len(probes.points)  # where plain values begin
        pieces: list[Array] = []
        row = start
        while row < min(stop, last):
            request, offset = divmod(row, calls)
            point, component = divmod(request, count)
            tag = self.tag(point, component)
            group = self._request(point, tag)
            if offset == 0 and self.estimator.common:  # all components share these points
                whole = min((stop - row) // calls, count - component)
                if whole > 1:
                    pieces.append(np.broadcast_to(group, (whole, *group.shape)).reshape(-1, self.d))
                    row += whole * calls
                    continue
            piece = group[offset : min(calls, offset + stop - row)]
            pieces.append(piece)
            row += len(piece)
        values = last + len(probes.value_points) * len(probes.value_components)  # where moves begin
        row = max(row, last)
        while row < min(stop, values):
            pieces.append(probes.value_points[(row - last) // len(probes.value_components)][None])
            row += 1
        if row < stop:
            pieces += self._others(row - values, stop - values)
        points = pieces[0] if len(pieces) == 1 else np.concatenate(pieces or [np.empty((0, self.d))])
        points.flags.writeable = False
        return points

    def _others(self, start: int, stop: int) -> list[Array]:
        """The points of moves and pairs, as rows start .. stop - 1 of these."""
        pieces, moves, row = list[Array](), self.probes.moves, start
        end = 0 if moves is None else moves.count * len(moves.components)
        while moves is not None and row < min(stop, end):
            first = row % moves.count
            last = min(moves.count, first + min(stop, end) - row)
            if first == 0 and last == moves.count:  # all components share these points
                whole = (min(stop, end) - row) // moves.count
                group = moves.points(0, moves.count, self.box)
                pieces.append(np.broadcast_to(group, (whole, *group.shape)).reshape(-1, self.d))
                row += whole * moves.count
                continue
            pieces.append(moves.points(first, last, self.box))
            row += last - first
        if row < stop and self.probes.pairs is not None:
            pairs = self.probes.pairs[row - end : stop - end]
            pieces.append(pairs if self.box is None else np.clip(pairs, self.box.low, self.box.high))
        return pieces

    def point(self, row: int) -> Array:
        """The point of one row, read-only."""
        probes, calls, count = self.probes, self.estimator.calls, len(self.probes.components)
        last = calls * count * len(probes.points)
        if row >= last + len(probes.value_points) * len(probes.value_components):
            one: Array = self.points(row, row + 1)[0]
            return one
        if row >= last:
            return probes.value_points[(row - last) // len(probes.value_components)]
        request, offset = divmod(row, calls)
        point, component = divmod(request, count)
        out: Array = self._request(point, self.tag(point, component))[offset]
        return out
