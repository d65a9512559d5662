"""Oracles: how a descent asks for values and slopes, in one of three ways.

An `ExactOracle` believes single values and short differences. A `NoisyOracle` averages calls, and lengthens its
differences until they stand out of the noise. A `KinkedOracle` takes differences over long steps, which it shortens
as the search goes on, because slopes at a point mislead where F has kinks or jumps. An oracle does not change: what
follows from experience is another oracle (`finer`, `averaged`, `with_components`).
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.findings import Diagnosis
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes
from zerothresh.sampling.directions import SparseBlock


@dataclass(frozen=True)
class Oracle:
    """Answers for the first m components of an order.

    Attributes
    ----------
    context: the run.
    diagnosis: what the first calls found; its noise is kept up to date.
    order: all components, in the order in which they come into use.
    m: int, the number of components in use.
    repeats: int, calls per value; more than one only if values are random.
    """

    context: Context
    diagnosis: Diagnosis
    order: Indices
    m: int = 0
    repeats: int = 1

    @property
    def components(self) -> Indices:
        """The components in use."""
        return self.order[: self.m]

    @property
    def next_level(self) -> int:
        """The number of components to use next: three times as many, or all."""
        n = self.context.n
        few = DESCENT.level_growth * self.m
        return few if few + self.m < n else n

    @property
    def calls_available(self) -> float:
        """The calls that are left, less those reserved for the components that will judge the result."""
        return self.context.left - 2 * (self.next_level - self.m)

    @property
    def value_cost(self) -> int:
        """The number of calls of a value of F."""
        return self.m * self.repeats

    @property
    def noise_margin(self) -> float:
        """The difference of two means that may be noise."""
        return 2 * self.diagnosis.noise / math.sqrt(self.m * self.repeats)

    @property
    def central(self) -> bool:
        """Whether differences are central."""
        return self.diagnosis.central

    @property
    def coarse(self) -> bool:
        """Whether slopes are those over long steps, and say little about what a short step does."""
        return False

    @property
    def reads_remembered(self) -> bool:
        """Whether gradients that another search has measured are as good as its own."""
        return self.repeats == 1

    def step(self, theta: Array) -> float:
        """Return the difference step at theta; beside a large theta it must not be lost in rounding."""
        return max(self.diagnosis.mu, DESCENT.rounding_step * float(np.abs(theta).max()))

    def slope_noise(self, theta: Array) -> float:
        """Return the noise of a slope at theta."""
        return self.noise_margin / max(self.step(theta), TINY)

    def gradient_cost(self, coordinates: int) -> int:
        """Return the number of calls of a gradient on this many coordinates."""
        sides = 2 if self.central and (self.context.box is None or self.diagnosis.random) else 1
        return self.value_cost * coordinates * sides

    def values(self, theta: Array) -> Generator[Probes, Answers, Array]:
        """Return the values of the components in use at theta."""
        values = yield from self.context.values([theta] * self.repeats, self.components)
        return np.asarray(values.mean(axis=0))

    def repeated(self, theta: Array) -> Generator[Probes, Answers, tuple[Array, float]]:
        """Return the means of a few values at theta, for each of the components in use, and their noise."""
        values = yield from self.context.values([theta] * DESCENT.noise_repeats, self.components)
        return values.mean(axis=0), float(np.sqrt(values.var(axis=0, ddof=1).mean()))

    def foresee_slopes(self, theta: Array, C: Indices, m: int | None = None) -> None:
        """Say that `slopes` of the first m components, or of all in use, will probably be asked for at theta."""
        inside = self.context.box is not None and self.diagnosis.random
        if self.repeats == 1 and not inside:
            self.context.foresee_slopes(theta, C, self.step(theta), self.components[:m], central=self.central)

    def slopes(self, theta: Array, C: Indices, of: slice, base: Array) -> Generator[Probes, Answers, Array]:
        """Return the gradients of some of the components in use on the coordinates C at theta.

        Arguments
        ---------
        theta: array of shape (d,).
        C: indices of coordinates, shape (c,).
        of: which of the components in use.
        base: array, their values at theta.

        Returns
        -------
        array of shape (components, c).
        """
        components, total = self.components[of], np.zeros((base.size, C.size))
        for _ in range(self.repeats):
            total = total + (yield from self._one_gradient(theta, C, components, base))
        return total / self.repeats

    def _one_gradient(
        self, theta: Array, C: Indices, components: Indices, base: Array
    ) -> Generator[Probes, Answers, Array]:
        """Return the gradients of some components, from one difference per coordinate."""
        context, h = self.context, self.step(theta)
        if context.box is not None and self.diagnosis.random:
            return (yield from slopes_inside(context, theta, C, h, components))
        slopes, _ = yield from context.slopes(theta, C, h, components, base, central=self.central)
        return slopes

    def finer(self, signal_to_noise: float) -> Oracle | None:
        """Return an oracle with shorter differences, to try where this one leads no further; None if there is none."""
        del signal_to_noise
        return None

    def at_first(self) -> Oracle:
        """Return the oracle with which to begin a descent from elsewhere."""
        return self

    def with_components(self, m: int) -> Self:
        """Return the same oracle for the first m components."""
        return replace(self, m=m)

    def with_noise(self, noise: float) -> Self:
        """Return the same oracle for another standard deviation of the noise."""
        return replace(self, diagnosis=replace(self.diagnosis, noise=noise))

    def averaged(self) -> Self:
        """Return the same oracle with more calls per value."""
        return replace(self, repeats=DESCENT.more_calls * self.repeats)


class ExactOracle(Oracle):
    """For smooth functions: values have no noise beyond rounding."""


def slopes_inside(
    context: Context, theta: Array, C: Indices, h: float, components: Indices
) -> Generator[Probes, Answers, Array]:
    """Return slopes from differences between two points within the bounds, for random values.

    Arguments
    ---------
    context: the run.
    theta: array of shape (d,).
    C: indices of coordinates, shape (c,).
    h: float, the step to either side; at a bound it is shortened on that side.
    components: indices, shape (m,).

    Returns
    -------
    array of shape (m, c).
    """
    up, down = np.full(C.size, h), np.full(C.size, h)
    if context.box is not None:
        up, down = np.minimum(h, context.box.high[C] - theta[C]), np.minimum(h, theta[C] - context.box.low[C])
    block = SparseBlock.coordinates(context.d, np.concatenate([C, C]), np.concatenate([up, -down]))
    values = yield from context.around(theta, block, 1.0, 2 * C.size, components)
    return np.asarray((values[:, : C.size] - values[:, C.size :]) / np.maximum(up + down, TINY))
