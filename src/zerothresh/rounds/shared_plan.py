"""The calls of one round where one call returns all outputs at a point: rows at the same point share a call."""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.constraint.bounds import Box
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.plan import Plan
from zerothresh.rounds.requests import Gradients, Outputs, PointValues, Probes
from zerothresh.rounds.vector_outputs import VectorOutputs
from zerothresh.rounds.workspace import Workspace


class SharedPlan(Plan):
    """The calls of one round, each of which returns all outputs at a point.

    A request says which of its rows share a call: those of ``request.shared(estimator)`` are the calls. What they
    return is a table of shape (calls, m), from which the rows get their values once the round is complete.

    Arguments
    ---------
    outputs: VectorOutputs of the run. The other arguments are those of `Plan`.
    """

    __slots__ = ("_calls", "_shares", "outputs")

    def __init__(
        self,
        probes: Probes,
        estimator: Estimator,
        d: int,
        outputs: VectorOutputs,
        *,
        key: int,
        round: int,
        box: Box | None = None,
        workspace: Workspace | None = None,
    ) -> None:
        own = probes.estimator(estimator)
        shared = Probes(tuple(request.shared(own) for request in probes.requests))
        self._calls = Plan(shared, own, d, key=key, round=round, box=box, workspace=workspace)
        self.probes, self.frame, self.calls, self.outputs = probes, self._calls.frame, self._calls.calls, outputs
        self._components = np.zeros(self.calls, np.int64)  # a call is not one of a component
        self._ends = self._calls._ends
        self._shares: list[int] = []  # the value behind the last one of each request
        size = 0
        for request in probes.requests:
            size += len(request.points) * outputs.size if isinstance(request, Outputs) else request.calls(own)
            self._shares.append(size)

    @property
    def size(self) -> int:
        """The number of values that the method gets."""
        return self._shares[-1] if self._shares else 0

    @property
    def numbers(self) -> int:
        """The number of numbers that the calls return: all outputs of each."""
        return self.calls * self.outputs.size

    def points(self, start: int = 0, stop: int | None = None) -> Array:
        """Return the points of calls start .. stop - 1, (stop - start, d), read-only."""
        return self._calls.points(start, stop)

    def point(self, row: int) -> Array:
        """Return the point of one call, read-only."""
        return self._calls.point(row)

    def split(self, values: Array) -> list[Array]:
        """Cut the values of all rows into those of each request."""
        return np.split(values, self._shares[:-1]) if self._shares else []

    def rows(self, values: Array) -> Array:
        """Return the value of each row from the table of outputs, (calls, m)."""
        outputs, parts, begin = self.outputs, list[Array](), 0
        for request, end in zip(self.probes.requests, self._ends, strict=True):
            part = values[begin:end]
            parts.append(
                part.ravel() if isinstance(request, Outputs) else request.spread(outputs.seen(part), self.frame)
            )
            begin = end
        return parts[0] if len(parts) == 1 else np.concatenate(parts or [np.empty(0)])

    def told(self, values: Array) -> list[PointValues]:
        """Return the losses at the points at which a request asks for values themselves."""
        out: list[PointValues] = []
        for point, call, leads in self._centres():
            losses = self.outputs.losses(values[call])
            there = losses[~np.isnan(losses)] if self.outputs.masked else losses
            out.append(PointValues(point, there, leads, values[call]))
        return out

    def zeros(self) -> Array:
        """Return zeros in the shape of what the calls return, for a trial."""
        return np.zeros((self.calls, self.outputs.size))

    def find(self, point: Array) -> int | None:
        """Return the first call at a point that a request names, if there is one."""
        for centre, call, _ in self._centres():
            if centre is point or np.array_equal(centre, point):
                return call
        return None

    def _centres(self) -> list[tuple[Array, int, bool]]:
        """Return the points that requests ask for themselves, the call of each, and whether it is the iterate."""
        out: list[tuple[Array, int, bool]] = []
        begin = 0
        for request, end in zip(self.probes.requests, self._ends, strict=True):
            points = request.centres(self.frame.estimator)
            step = (end - begin) // max(1, len(points))  # calls per point; the first one is at the point itself
            leads = isinstance(request, Gradients)
            out += [(point, begin + p * step, leads and p == 0) for p, point in enumerate(points)]
            begin = end
        return out
