"""The queries of one round: which components are asked for at which points."""

from __future__ import annotations

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.bounds import Box
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.frame import Frame
from zerothresh.rounds.requests import PointValues, Probes, Request
from zerothresh.rounds.workspace import Workspace


class Plan:
    """The queries of one round, a function of the probes, the estimator, the key and the round.

    The rows of the requests follow one another in the order of ``probes.requests``; within a request its own
    class decides.

    Arguments
    ---------
    probes: Probes, what the method wants to know.
    estimator: Estimator of the run; the probes may change it for this round.
    d: int, the dimension.
    key, round: int, from which the directions are drawn.
    box: Box, default None: the bounds that all points keep.
    workspace: Workspace of the run, default None: one for this round alone.
    """

    __slots__ = ("_components", "_ends", "calls", "frame", "probes")

    def __init__(
        self,
        probes: Probes,
        estimator: Estimator,
        d: int,
        *,
        key: int,
        round: int,
        box: Box | None = None,
        workspace: Workspace | None = None,
    ) -> None:
        own = probes.estimator(estimator)
        self.probes = probes
        self.frame = Frame(own, d, key=key, round=round, box=box, workspace=workspace)
        self._ends: list[int] = []  # the row behind the last one of each request
        self.calls = 0
        for request in probes.requests:
            self.calls += request.calls(own)
            self._ends.append(self.calls)
        self._components: Indices | None = None

    @property
    def d(self) -> int:
        """The dimension."""
        return self.frame.d

    @property
    def round(self) -> int:
        """The number of the round."""
        return self.frame.round

    @property
    def estimator(self) -> Estimator:
        """The estimator of this round."""
        return self.frame.estimator

    @property
    def components(self) -> Indices:
        """The component of each row, (calls,)."""
        if self._components is None:
            parts = [request.row_components(self.frame) for request in self.probes.requests]
            self._components = parts[0] if len(parts) == 1 else np.concatenate(parts or [np.empty(0, np.int64)])
        return self._components

    def points(self, start: int = 0, stop: int | None = None) -> Array:
        """Return the points of rows start .. stop - 1, (stop - start, d), read-only."""
        stop = self.calls if stop is None else min(stop, self.calls)
        requests = self.probes.requests
        if len(requests) == 1:  # by far the most frequent case
            pieces = requests[0].pieces(start, stop, self.frame)
        else:
            pieces, begin = [], 0
            for request, end in zip(requests, self._ends, strict=True):
                if start < end and begin < stop:
                    pieces += request.pieces(max(start, begin) - begin, min(stop, end) - begin, self.frame)
                begin = end
        points = pieces[0] if len(pieces) == 1 else np.concatenate(pieces or [np.empty((0, self.d))])
        points.flags.writeable = False
        return points

    def point(self, row: int) -> Array:
        """Return the point of one row, read-only."""
        request, begin = self._request_of(row)
        return request.point(row - begin, self.frame)

    def _request_of(self, row: int) -> tuple[Request, int]:
        """Return the request that a row belongs to, and its first row."""
        begin = 0
        for request, end in zip(self.probes.requests, self._ends, strict=True):
            if row < end:
                return request, begin
            begin = end
        raise IndexError(f"row {row} of a round of {self.calls} calls")

    @property
    def size(self) -> int:
        """The number of values that the method gets: one per row."""
        return self.calls

    @property
    def numbers(self) -> int:
        """The number of numbers that the calls return: one per call."""
        return self.calls

    def rows(self, values: Array) -> Array:
        """Return the value of each row from what the calls returned: here every row is a call."""
        return values

    def told(self, values: Array) -> list[PointValues]:
        """Return what calls with many outputs tell of F; a call of one component tells what its request says."""
        return []

    def zeros(self) -> Array:
        """Return zeros in the shape of what the calls return, for a trial."""
        return np.zeros(self.calls)

    def find(self, point: Array) -> int | None:
        """Return the first call at a point, if it gives all outputs there; a call of one component does not."""
        return None

    def split(self, values: Array) -> list[Array]:
        """Cut the values of all rows into those of each request."""
        return np.split(values, self._ends[:-1]) if self._ends else []
