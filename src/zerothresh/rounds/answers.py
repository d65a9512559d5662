"""From the values of a round to what the method asked for: gradients by eq. (3), and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.rounds.memory import Memory
from zerothresh.rounds.plan import Plan
from zerothresh.rounds.requests import Around, Each, Gradients, Outputs, PointValues, Probes, Request, Values

# The request that an attribute of `Answers` answers.
ASKED_BY = {
    **dict.fromkeys(("_gradients", "at_points", "coefficients"), "gradients"),
    "values": "values",
    "moved": "around",
    "paired": "each",
    "outputs": "outputs",
}


class Answers:
    """The gradients and values that a method asked for.

    A gradient estimate is sum_l c_l u_l, so means and differences of estimates that use the same directions
    are taken on the coefficients c, which are q numbers per component, and the directions are gone through
    once.

    Arguments
    ---------
    plan: Plan, the queries of the round.
    values: float64 array (calls,), the value of each row of the plan.
    """

    __slots__ = ("_gradients", "_readings", "at_points", "coefficients", "notes", "plan", "probes", "raw")

    at_points: Array | None
    """The values f_i(theta) inside the estimates, (points, components); None with central differences."""

    coefficients: Array
    """The coefficients c of the estimates sum_l c_l u_l, (points, components, q)."""

    def __init__(self, plan: Plan, values: Array) -> None:
        self.plan = plan
        self.raw = values  # all values of the round, in the order of the plan
        self.probes: Probes = plan.probes
        self.notes: Mapping[str, Any] = plan.probes.notes
        self._readings: list[tuple[Request, Any]] = []
        requests = self.probes.requests
        shares = (values,) if len(requests) == 1 else plan.split(values)
        for request, share in zip(requests, shares, strict=True):
            reading = request.read(share, plan.frame)
            self._readings.append((request, reading))
            if type(request) is Gradients:
                self._gradients = request
                self.at_points, self.coefficients = reading

    def __getattr__(self, name: str) -> Any:
        """Explain why an attribute is missing: nothing of its kind was asked for."""
        request = ASKED_BY.get(name)
        if request is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(f"this round has no {name}: the method's plan did not ask for Probes.{request}(...)")

    def _reading(self, kind: type) -> Any:
        """Return what the request of a kind has read."""
        for request, reading in self._readings:
            if type(request) is kind:
                return reading
        raise AttributeError

    def point_values(self) -> list[PointValues]:
        """Return the points of the round at which values of components are known, with these values."""
        if len(self._readings) == 1:
            request, reading = self._readings[0]
            return request.point_values(reading)
        return [found for request, reading in self._readings for found in request.point_values(reading)]

    # Plain values.

    @property
    def values(self) -> Array:
        """The values that `Probes.values` asked for, (points, components)."""
        out: Array = self._reading(Values)
        return out

    @property
    def moved(self) -> Array:
        """The values that `Probes.around` asked for, (components, directions)."""
        out: Array = self._reading(Around)
        return out

    @property
    def paired(self) -> Array:
        """The values that `Probes.each` asked for, (rows,)."""
        out: Array = self._reading(Each)
        return out

    @property
    def outputs(self) -> Array:
        """The outputs that `Probes.outputs` asked for, (points, m); NaN where one is missing."""
        out: Array = self._reading(Outputs)
        return out

    # Gradients.

    @property
    def components(self) -> Indices:
        """The components whose gradients were asked for; none if the round asked for values only."""
        return self.probes.components

    def mean(self, point: int = 0, components: slice | Indices | None = None) -> Array:
        """Return the mean of the components' gradients at a point; of some components only, by their places."""
        return self._mean(self.coefficients[point], point, components)

    def difference(self, point: int = 0, other: int = 1) -> Array:
        """Return the mean over components of the gradient at ``point`` minus the gradient at ``other``."""
        if not self.plan.frame.estimator.shared:
            return self.mean(point) - self.mean(other)
        coefficients = self.coefficients
        return self._mean(coefficients[point] - coefficients[other], point, None)

    def _tag(self, point: int, place: int) -> int:
        return self._gradients.tag(point, place, self.plan.frame.estimator)

    def _mean(self, coefficients: Array, point: int, components: slice | Indices | None) -> Array:
        """Return the mean over rows c of sum_l c_l u_l, with the directions of each component at a point."""
        places = range(len(coefficients)) if components is None else np.arange(len(coefficients))[components]
        rows = coefficients if components is None else coefficients[components]
        if self.plan.frame.estimator.common:
            total = rows[0] if len(rows) == 1 else rows.sum(axis=0) / len(rows)
            return self._direction_sum(self._tag(point, 0), total)
        if len(rows) == 1:  # the paper's case, which comes many times in a run
            return self._direction_sum(self._tag(point, int(places[0])), rows[0])
        out = np.zeros(self.plan.d)
        for row, place in zip(rows, places, strict=True):
            out += self._direction_sum(self._tag(point, int(place)), row)
        return out / len(rows)

    def _direction_sum(self, tag: int, coefficients: Array) -> Array:
        """Return sum_l c_l u_l; directions that nobody needs are not drawn."""
        return self.plan.frame.block(tag).combine(coefficients) if coefficients.any() else np.zeros(self.plan.d)

    # The memory of pM-SZHT.

    def memorise(self) -> Memory:
        """Remember the gradients of all n components, which this round asked for at its first point."""
        places = range(len(self.components))
        tags = np.array([self._tag(0, place) for place in places], dtype=np.int64)
        self._keep(tags)
        return Memory(
            rounds=np.full(len(places), self.plan.round, dtype=np.int64),
            tags=tags,
            coefficients=self.coefficients[0].copy(),
            mean=self.mean(),
        )

    def remembered(self, memory: Memory, components: Indices) -> Array:
        """Return the mean of the remembered gradients a_j of some components."""
        frame = self.plan.frame
        if len(components) == 1:  # the paper's case, which comes many times in a run
            j = int(components[0])
            return frame.recall(int(memory.rounds[j]), int(memory.tags[j])).combine(memory.coefficients[j])
        out = np.zeros(self.plan.d)
        where: dict[tuple[int, int], list[int]] = {}
        for j in components.tolist():
            where.setdefault((int(memory.rounds[j]), int(memory.tags[j])), []).append(j)
        for (round_, tag), rows in where.items():
            total = memory.coefficients[rows].sum(axis=0)
            if total.any():
                out += frame.recall(round_, tag).combine(total)
        out /= len(components)
        return out

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
        rounds[j] = self.plan.round
        tags[j] = [self._tag(0, int(place)) for place in places]
        coefficients[j] = self.coefficients[0, places]
        self._keep(tags[j])
        return replace(memory, rounds=rounds, tags=tags, coefficients=coefficients, mean=mean)

    def _keep(self, tags: Indices) -> None:
        """Keep blocks of this round for the memory, as long as there is room."""
        for tag in np.unique(tags).tolist():
            self.plan.frame.keep(tag)
