"""A sample of the components (or of repeated random values) that stands for F, and what its changes can prove."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.settings.grouped_slopes_settings import GROUPED_SLOPES as SETTINGS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class ComponentSample:
    """The first components of a random order; all points are compared on the same ones.

    Arguments
    ---------
    context: the run.
    order: indices, shape (n,), all components in random order.
    size: int, how many of them the sample has. If values are random it may exceed n, and components are repeated.
    noise: float, the standard deviation of a single value.
    random: bool, whether the same point gives different values.
    """

    def __init__(self, context: Context, order: Indices, size: int, noise: float, random: bool) -> None:
        self.context, self.order, self.size, self.noise, self.random = context, order, size, noise, random

    @property
    def components(self) -> Indices:
        """The components of the sample, shape (size,)."""
        return np.resize(self.order, self.size)

    @property
    def whole(self) -> bool:
        """Whether the mean of the sample is F."""
        return self.size >= self.order.size

    def values(self, points: list[Array]) -> Generator[Probes, Answers, Array]:
        """Return the values of the components at points: (points, components)."""
        return (yield from self.context.values(points, self.components))

    @property
    def floor(self) -> float:
        """The fall of the sample's mean between two points that noise alone does not explain."""
        deviations = SETTINGS.significance if self.random else 1.0
        return deviations * self.noise * math.sqrt(2 / self.size)

    def error(self, changes: Array) -> float:
        """Return the standard error of the mean of changes between two points as an estimate of the change of F.

        Components are drawn without replacement, so that the error vanishes if all of them are there (finite
        population correction; Cochran, *Sampling techniques*, section 2.6).
        """
        size, n = changes.size, self.order.size
        spread = float(changes.std(ddof=1)) if size > 1 else 0.0
        sampling = spread * math.sqrt(max(1 - size / n, 0.0) / size)
        if size == 1 < n:
            sampling = math.inf
        return math.hypot(sampling, self.noise * math.sqrt(2 / size))
