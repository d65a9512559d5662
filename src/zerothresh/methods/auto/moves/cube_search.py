"""What searches on a few coordinates share: the values of F at points of the unit cube, and the basins found so far."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.gaussian_process import Form
from zerothresh.methods.auto.settings import GLOBAL_SEARCH as SET
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Mask = NDArray[np.bool_]
Ask = Callable[[list[Array]], Generator[Probes, Answers, Array]]  # points of the cube -> values of F
Report = Callable[[Array, float], None]  # a point of the cube that may be returned, and what F is believed to be there


class CubeSearch:
    """The values of F that several descents within the unit cube share.

    Arguments
    ---------
    context: the run, for its random numbers.
    ask: returns F at points of the cube.
    report: is told of points that are believed to be good.
    Z, y, counts: arrays of shape (points, p), (points,) and (points,): values that are known already, and of how many
        calls each is the mean.
    known: int, how many of them, the first ones, may be infeasible and are not reported.
    noise: float, the standard deviation of a value. random: whether a point gives different values.

    Attributes
    ----------
    parameters: of the processes that were fitted to the lowest values.
    basins: the bottoms of descents that have ended, with their widths.
    """

    def __init__(
        self,
        context: Context,
        ask: Ask,
        report: Report,
        data: tuple[Array, Array, Array],
        *,
        known: int,
        noise: float,
        random: bool,
    ) -> None:
        self.context, self._ask, self.report = context, ask, report
        self.Z, self.y, self.counts = data
        self.noise, self.random = noise, random
        self.known, self.p = known, self.Z.shape[1]
        self.parameters: dict[Form, Array] = {}
        self.basins: list[tuple[Array, Array]] = []

    def ask(self, points: list[Array]) -> Generator[Probes, Answers, Array]:
        """Ask for F at points, and keep the values; without noise, report the best."""
        values = yield from self._ask(points)
        self.Z = np.concatenate([self.Z, points])
        self.y = np.concatenate([self.y, values])
        self.counts = np.concatenate([self.counts, np.ones(len(points))])
        if not self.random:
            best = int(np.argmin(values))
            self.report(points[best], float(values[best]))
        return values

    def ask_again(self, index: int) -> Generator[Probes, Answers, None]:
        """Ask for F once more at a point, and keep the mean."""
        value = float((yield from self._ask([self.Z[index]]))[0])
        self.y, self.counts = self.y.copy(), self.counts.copy()
        self.counts[index] += 1
        self.y[index] += (value - self.y[index]) / self.counts[index]

    @property
    def fall(self) -> float:
        """The fall of F from its median so far to its lowest value."""
        return float(np.median(self.y) - self.y.min())

    def outside_basins(self) -> Indices:
        """Return the points that lie in no basin whose bottom has been found."""
        return np.flatnonzero(~self.in_basin(self.Z))

    def in_basin(self, points: Array) -> Mask:
        """Which of the points lie in a basin whose bottom has been found."""
        inside = np.zeros(len(points), bool)
        for bottom, width in self.basins:
            inside |= (np.abs(points - bottom) <= width).all(axis=1)
        return inside

    def close_basin(self, bottom: Array, lengths: Array) -> None:
        """Note that a descent has ended here, unless noise hides where the bottom is.

        ``lengths`` are those over which F changes.
        """
        if not self.random:
            self.basins.append((bottom, SET.basin * np.maximum(lengths, SET.length_range[0])))
