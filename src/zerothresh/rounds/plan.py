"""The points that have to be queried for what a method wants to know."""

from __future__ import annotations

import sys

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.bounds import Box
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.directions import Block, draw
from zerothresh.sampling.philox import DIRECTIONS, TAG_LIMIT


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
