"""From the values of a round to component gradients: eq. (3)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.rounds.memory import Memory
from zerothresh.rounds.plan import Plan
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.directions import Block
from zerothresh.sampling.jit import kernel


@kernel
def _differences(table: Any, scale: float, out: Any) -> None:
    """out_l = (f(theta + mu u_l) - f(theta)) d / (q mu), for each point and component."""
    for p in range(table.shape[0]):
        for c in range(table.shape[1]):
            for l in range(out.shape[2]):
                out[p, c, l] = (table[p, c, l + 1] - table[p, c, 0]) * scale


class Answers:
    """The gradients and values that a method asked for.

    A gradient estimate is sum_l c_l u_l, so means and differences of estimates that use the same
    directions are taken on the coefficients c, q numbers a component, and the directions are gone
    through once.
    """

    def __init__(self, plan: Plan, values: Array) -> None:
        self._plan = plan
        self.probes: Probes = plan.probes
        self.notes: Mapping[str, Any] = plan.probes.notes
        estimator, d = plan.estimator, plan.d
        shape = len(self.probes.points), len(self.probes.components)
        split = shape[0] * shape[1] * estimator.calls
        table = values[:split].reshape(*shape, estimator.calls)
        scale = d / (estimator.q * estimator.mu)
        self.at_points: Array | None
        if estimator.difference == "forward":
            self.at_points = table[:, :, 0]  # f_i(theta), (points, components)
            self.coefficients = np.empty((*shape, estimator.q))
            _differences(table, scale, self.coefficients)  # eq. (3)
        else:
            self.at_points = None
            plus, minus = table[:, :, : estimator.q], table[:, :, estimator.q :]
            self.coefficients = (plus - minus) * (0.5 * scale)
        self.raw = values  # all values of the round, in the order of the plan
        # plain values, (points, components)
        rows = len(self.probes.value_points), len(self.probes.value_components)
        others = split + rows[0] * rows[1]
        self.values = values[split:others].reshape(rows)
        moves = self.probes.moves
        end = others if moves is None else others + moves.count * len(moves.components)
        self.moved = values[others:end].reshape(-1, 1 if moves is None else moves.count)  # (components, moves)
        self.paired = values[end:]

    @property
    def plan(self) -> Plan:
        """The queries that were answered."""
        return self._plan

    @property
    def components(self) -> Indices:
        """The components whose gradients were asked for."""
        return self.probes.components

    def mean(self, point: int = 0, components: slice | Indices | None = None) -> Array:
        """The mean of the components' gradients at a point (of some of them, by place)."""
        return self._mean(self.coefficients[point], point, components)

    def difference(self, point: int = 0, other: int = 1) -> Array:
        """The mean over components of gradient at ``point`` minus gradient at ``other``."""
        if not self._plan.estimator.shared:
            return self.mean(point) - self.mean(other)
        return self._mean(self.coefficients[point] - self.coefficients[other], point, None)

    def _mean(self, coefficients: Array, point: int, components: slice | Indices | None) -> Array:
        """The mean over rows c of sum_l c_cl u_l, with the directions of a component at a point."""
        places = range(len(coefficients)) if components is None else np.arange(len(coefficients))[components]
        rows = coefficients if components is None else coefficients[components]
        if self._plan.estimator.common:
            total = rows[0] if len(rows) == 1 else rows.sum(axis=0) / len(rows)
            return self._direction_sum(self._plan.tag(point, 0), total)
        if len(rows) == 1:  # the paper's case, many times a run
            return self._direction_sum(self._plan.tag(point, int(places[0])), rows[0])
        out = np.zeros(self._plan.d)
        for row, place in zip(rows, places, strict=True):
            out += self._direction_sum(self._plan.tag(point, int(place)), row)
        return out / len(rows)

    def _direction_sum(self, tag: int, coefficients: Array) -> Array:
        """sum_l c_l u_l; directions that no one needs are not drawn."""
        return self._plan.block(tag).combine(coefficients) if coefficients.any() else np.zeros(self._plan.d)

    # The memory of pM-SZHT.

    def memorise(self) -> Memory:
        """Remember the gradients of all n components, which this round asked for at its first point."""
        places = range(len(self.components))
        tags = np.array([self._plan.tag(0, place) for place in places], dtype=np.int64)
        self._keep(tags)
        return Memory(
            rounds=np.full(len(places), self._plan.round, dtype=np.int64),
            tags=tags,
            coefficients=self.coefficients[0].copy(),
            mean=self.mean(),
        )

    def remembered(self, memory: Memory, components: Indices) -> Array:
        """The mean of the remembered gradients a_j of some components."""
        if len(components) == 1:  # the paper's case, many times a run
            j = int(components[0])
            return self._recall(int(memory.rounds[j]), int(memory.tags[j])).combine(memory.coefficients[j])
        out = np.zeros(self._plan.d)
        where: dict[tuple[int, int], list[int]] = {}
        for j in components.tolist():
            where.setdefault((int(memory.rounds[j]), int(memory.tags[j])), []).append(j)
        for (round_, tag), rows in where.items():
            total = memory.coefficients[rows].sum(axis=0)
            if total.any():
                out += self._recall(round_, tag).combine(total)
        out /= len(components)
        return out

    def _recall(self, round_: int, tag: int) -> Block:
        """A block of an earlier round: kept if there is context, drawn again if not."""
        block = _recent.get(self._name(round_, tag))
        return self._plan.recall(round_, tag) if block is None else block

    def _keep(self, tags: Indices) -> None:
        """Keep blocks of this round for the memory, as long as there is context."""
        for tag in np.unique(tags).tolist():
            block = self._plan.held(tag)
            if block is not None:
                _recent.put(self._name(self._plan.round, tag), block)

    def _name(self, round_: int, tag: int) -> tuple[object, ...]:
        return self._plan.key, self._plan.estimator, self._plan.d, round_, tag

    def refresh(self, memory: Memory, places: Indices) -> Memory:
        """Replace the rows of the components at these places of the request by what this round saw."""
        if len(places) == 0:
            return memory
        j = self.components[places]
        n = len(memory.rounds)
        if len(j) == n:
            mean = self.mean(0, places)
        else:
            change = self.mean(0, places) - self.remembered(memory, j)
            mean = memory.mean + change * (len(j) / n)
        rounds, tags = memory.rounds.copy(), memory.tags.copy()
        coefficients = memory.coefficients.copy()
        rounds[j] = self._plan.round
        tags[j] = [self._plan.tag(0, int(place)) for place in places]
        coefficients[j] = self.coefficients[0, places]
        self._keep(tags[j])
        return replace(memory, rounds=rounds, tags=tags, coefficients=coefficients, mean=mean)


class _Recent:
    """The blocks that memories have used last, as many as fit into 64 MiB."""

    room = 1 << 26

    def __init__(self) -> None:
        self._blocks: OrderedDict[Any, Block] = OrderedDict()
        self._size = 0

    def get(self, name: Any) -> Block | None:
        block = self._blocks.get(name)
        if block is not None:
            self._blocks.move_to_end(name)
        return block

    def put(self, name: Any, block: Block) -> None:
        if name in self._blocks or block.nbytes > self.room // 16:
            return
        self._blocks[name] = block
        self._size += block.nbytes
        while self._size > self.room:
            _, oldest = self._blocks.popitem(last=False)
            self._size -= oldest.nbytes


_recent = _Recent()
