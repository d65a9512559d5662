"""What searches on a few coordinates share: the values of F at points of the unit cube, and the basins found so far."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.gaussian_process import Form
from zerothresh.methods.auto.models.repeated_noise import RepeatedNoise
from zerothresh.methods.auto.settings.active_subset_settings import GLOBAL_SEARCH as SET
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Mask = NDArray[np.bool_]
Ask = Callable[[list[Array]], Generator[Probes, Answers, Array]]  # points of the cube -> values of F
Report = Callable[[Array, float], None]  # a point of the cube that may be returned, and what F is believed to be there


def merged(points: Array, values: Array) -> tuple[Array, Array, Array]:
    """Return each of the points once, in the order in which they came, with mean and number of its values."""
    _, first, where, counts = np.unique(points, axis=0, return_index=True, return_inverse=True, return_counts=True)
    order, means = np.argsort(first), np.bincount(where.ravel(), weights=values, minlength=first.size) / counts
    return points[first[order]], means[order], counts[order].astype(float)


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
    noise: the standard deviation of a value. random: whether a point gives different values.

    Attributes
    ----------
    parameters, form: of the processes that were fitted to random values, and the form that fitted best.
    best, level: the number of the point that is believed to be the best one, and what F is believed to be there.
    basins: the bottoms of descents that have ended, with their widths.
    predicted: whether processes have predicted values that they were not fitted to.
    """

    def __init__(
        self,
        context: Context,
        ask: Ask,
        report: Report,
        data: tuple[Array, Array, Array],
        *,
        known: int,
        noise: RepeatedNoise,
        random: bool,
    ) -> None:
        self.context, self._ask, self.report = context, ask, report
        self.Z, self.y, self.counts = data
        self.noise, self.random = noise, random
        self.known, self.p = known, self.Z.shape[1]
        self.parameters: dict[Form, Array] = {}
        self.form: Form | None = None
        self.best, self.level = int(np.argmin(self.y)) if self.y.size else 0, float(self.y.min(initial=np.inf))
        self.basins: list[tuple[Array, Array]] = []
        self.predicted = False

    def ask(self, points: list[Array]) -> Generator[Probes, Answers, Array]:
        """Ask for F at points, and keep the values; without noise, report the best."""
        values = yield from self._ask(points)
        self.Z = np.concatenate([self.Z, points])
        self.y = np.concatenate([self.y, values])
        self.counts = np.concatenate([self.counts, np.ones(len(points))])
        if not self.random:
            best = int(np.argmin(values))
            self.report(points[best], float(values[best]))
            self.best = int(np.argmin(self.y))
        return values

    def ask_or_repeat(self, points: list[Array], numbers: list[int]) -> Generator[Probes, Answers, Array]:
        """Ask for F at points; a value for a point with a number joins the mean of those that are known there."""
        values = yield from self._ask(points)
        self.y, self.counts = self.y.copy(), self.counts.copy()
        fresh = [place for place, number in enumerate(numbers) if number < 0]
        for value, number in zip(values.tolist(), numbers, strict=True):
            if number >= 0:
                self.counts[number] += 1
                self.y[number] += (value - self.y[number]) / self.counts[number]
        self.Z = np.concatenate([self.Z, np.reshape([points[place] for place in fresh], (len(fresh), self.p))])
        self.y = np.concatenate([self.y, values[fresh]])
        self.counts = np.concatenate([self.counts, np.ones(len(fresh))])
        return values

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
