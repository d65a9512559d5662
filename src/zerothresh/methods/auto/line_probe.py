"""Values of one component along one random direction from the start: what a diagnosis looks at.

The first length comes from the bounds if they are finite, else from the start if that is not zero, and is 1 by
convention otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.models.noise_level import ecnoise, growth_of_noise, rounding_unit
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.settings.diagnosis_settings import DIAGNOSIS
from zerothresh.methods.auto.settings.floating_point import EPS, TINY
from zerothresh.methods.program.context import NARROWEST, Asks, Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def box_width(context: Context) -> float:
    """Return the typical width of the box: the median over the free coordinates; infinite if most have no bounds."""
    free = context.free()
    if context.box is None or not free.size:
        return math.inf
    with np.errstate(over="ignore"):
        return float(np.median(context.box.high[free] - context.box.low[free]))


class Differences(NamedTuple):
    """First and second differences over steps of length h, as absolute values, the larger one of both sides."""

    h: float
    first: float
    second: float
    central_second: float  # across the start; 0 if bounds leave room to one side only
    odd: float  # the part of the first difference that changes its sign with the step
    values: Array

    @property
    def bend(self) -> float:
        """How curved F is over this step."""
        return self.second / max(self.first, TINY)


class LineProbe:
    """One component, one direction, and what the calls along it have shown so far."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.theta = context.theta0
        self.component = context.rng.integers(context.n, 1)
        self.one_sided = False  # whether bounds leave room to one side only
        self.u = self._direction()
        self.width = box_width(context)
        size = float(np.abs(self.theta).max())
        size = size if size > NARROWEST else 1.0  # a convention, where neither the bounds nor the start have a length
        self.scale = self.width if self.width < math.inf else size
        # a longer step along a unit vector would leave the box along most coordinates
        reach = math.sqrt(context.free().size) if self.width < math.inf else DIAGNOSIS.longest_step
        self.longest = reach * self.scale
        self.noise = 0.0  # of a single value
        self.random = False
        self.repeats = 1  # calls per value
        self.largest = self.f0 = 0.0  # the largest absolute value so far, and the value at the start
        self.start_noise = 0.0  # of a value at the start, if it is random
        self.points, self.last_noise = 0, 0.0  # where the last values were asked for, and their noise alone
        self.hidden = list[tuple[float, float]]()  # steps whose change the noise hid, and the mean values there
        self._squares, self._freedom = 0.0, 0  # of the noise wherever it is as at the start: few values tell little

    def _direction(self) -> Array:
        """Return a random unit vector along which there is room."""
        u = self.context.rng.normal(self.context.d)
        if self.context.box is not None:
            low, high = self.context.box.low, self.context.box.high
            u = np.where(self.theta <= low, np.abs(u), np.where(self.theta >= high, -np.abs(u), u))
            u = np.where(high > low, u, 0.0)
            self.one_sided = bool((((self.theta <= low) | (self.theta >= high)) & (high > low)).any())
        return u / max(float(np.linalg.norm(u)), TINY)

    def turn(self) -> Asks:
        """Look along another direction, and at another component: the gradient of this one is nearly orthogonal."""
        self.u = self._direction()
        self.hidden.clear()
        if self.context.n > 1:
            noise, self.component = self.noise, (self.component + 1) % self.context.n
            self.f0 = float((yield from self.values_at(0.0))[0])
            self.noise = noise

    def values_at(self, *steps: float) -> Generator[Probes, Answers, Array]:
        """Return the values at steps along the direction."""
        points = [self.context.inside(self.theta + step * self.u) if step else self.theta for step in steps]
        values = (yield from self.context.values(points * self.repeats, self.component))[:, 0]
        values = values.reshape(self.repeats, -1)
        self.largest = max(self.largest, float(np.abs(values).max()))
        self.points = len(steps)
        if self.repeats > 1:
            self._learn_noise(float(values.var(axis=0, ddof=1).sum()), self.points * (self.repeats - 1))
        return np.asarray(values.mean(axis=0))

    def _learn_noise(self, squares: float, freedom: int) -> None:
        """Pool what repeated values tell of the noise with what others told, unless it has grown beyond chance."""
        self.last_noise = math.sqrt(squares / freedom)
        if self._freedom and self.last_noise > DIAGNOSIS.other_noise * math.sqrt(self._squares / self._freedom):
            self.noise = self.last_noise
            return
        self._squares, self._freedom = self._squares + squares, self._freedom + freedom
        self.noise = math.sqrt(self._squares / self._freedom)

    def others(self, h: float) -> Generator[Probes, Answers, Array]:
        """Return the values 0, h and 2 h away of a few other components, one row each; those at the start are kept."""
        context = self.context
        few = min(context.n, DIAGNOSIS.quick_components) if context.left >= DIAGNOSIS.min_calls else 1
        others = (self.component + np.arange(1, few)) % context.n
        points = [self.theta, *(context.inside(self.theta + step * self.u) for step in (h, 2 * h))]
        rows = (yield from context.values(points, others)).T
        self.largest = max(self.largest, float(np.abs(rows).max(initial=0.0)))
        for component, value in zip(others.tolist(), rows[:, 0].tolist(), strict=True):
            context.remember(component, value)
        return np.asarray(rows)

    def differences(self, h: float) -> Generator[Probes, Answers, Differences]:
        """Ask for the values one and two steps away, to both sides if there is room: there may be a kink."""
        steps = (h, 2 * h) if self.one_sided else (h, 2 * h, -h, -2 * h)
        four = np.resize((yield from self.values_at(*steps)), 4)
        ones, twos = four[[0, 2]], four[[1, 3]]
        first = float(np.abs(ones - self.f0).max())
        second = float(np.abs(twos - 2 * ones + self.f0).max())
        central_second = 0.0 if self.one_sided else abs(float(ones.sum()) - 2 * self.f0)
        return Differences(h, first, second, central_second, abs(float(ones[0] - ones[1])), four)

    @property
    def noise_floor(self) -> float:
        """Differences below this may be noise."""
        deviations = DIAGNOSIS.random_floor / math.sqrt(self.repeats) if self.random else DIAGNOSIS.floor
        return deviations * self.noise + DIAGNOSIS.rounding * EPS * self.largest

    def differ(self, one: float, other: float) -> bool:
        """Whether two values of one point differ by more than rounding, which may depend on the rest of a batch."""
        return abs(one - other) > DIAGNOSIS.batch_rounding * EPS * self.largest

    def treat_as_random(self, repeats: int) -> None:
        """From now on every value is the mean of several calls."""
        self.random = True
        self.repeats = repeats

    def measure_random_noise(self, again: float) -> Asks:
        """Repeat the value at the start, beside the first value and ``again``, and keep its mean."""
        context, first = self.context, self.f0
        more = (yield from context.values([self.theta] * (DIAGNOSIS.start_repeats - 2), self.component))[:, 0]
        values = np.concatenate([[first, again], more])
        self.largest = max(self.largest, float(np.abs(values).max()))
        self.treat_as_random(DIAGNOSIS.random_repeats)
        self.f0 = float(values.mean())
        self._learn_noise(float(values.var(ddof=1)) * (values.size - 1), values.size - 1)
        self.start_noise = self.noise
        context.remember(int(self.component[0]), self.f0)

    def noise_nearby(self, h: float) -> tuple[float, float]:
        """Return the noise of a value near the start, and how it grows, if values up to 2 h from the start are known.

        Noise at the start and that of the last values are pooled, unless they differ too much for chance. Then the
        noise at a distance s is about that at the start plus the second number times s^2.
        """
        if not self.random or not self.start_noise:  # or it shows further out only, where it has to be expected
            return self.noise, 0.0
        growth = growth_of_noise(self.start_noise, self.last_noise, DIAGNOSIS.mean_square_step * square(h))
        return (self.start_noise, growth) if growth else (math.sqrt(self._squares / self._freedom), 0.0)

    def hides(self, h: float) -> Generator[Probes, Answers, bool]:
        """Whether random noise hides the curvature over a step of length 2 h; two single values show that."""
        repeats, noise, self.repeats = self.repeats, self.noise, 1
        one, two = (yield from self.values_at(*((h, 2 * h) if self.one_sided else (2 * h, -2 * h)))).tolist()
        second = abs(two - 2 * one + self.f0) if self.one_sided else abs(one + two - 2 * self.f0)
        hidden = second <= self.noise_floor
        self.repeats, self.noise = repeats, noise
        if hidden:
            self.hidden.append((h, 0.5 * (one + two)))
        return bool(hidden)

    def shortest_alike(self, seen: Differences) -> float:
        """Return the shortest step from which on values are nearer to those now seen than to that at the start.

        Where F levels off, all long steps show the same change, and which one stands out of the noise first is chance.
        """
        far, shortest = float(seen.values.mean()), seen.h
        for h, mean in reversed(self.hidden):
            if abs(mean - far) >= abs(mean - self.f0):
                break
            shortest = h
        return shortest

    def measure_noise(self, seen: Differences) -> Generator[Probes, Answers, bool]:
        """Estimate the noise from values at equidistant points close to the start, once a step shows a difference.

        Returns whether these values are all the same although F changes further out: then the start is on a plateau.
        """
        shares = [j * DIAGNOSIS.noise_spacing for j in range(1, DIAGNOSIS.noise_points)]
        line = yield from self.values_at(*(share * seen.h for share in shares))
        every = np.concatenate([[self.f0], line, seen.values])
        unit = rounding_unit(every * self.context.unit) / self.context.unit
        rounded = 0.5 * unit if np.unique(every).size > 1 else 0.0
        self.noise = max(ecnoise(every[: DIAGNOSIS.noise_points]), rounded)
        # a smooth function would have changed by this much, even if it began with the fourth power of the step
        expected = shares[-1] ** DIAGNOSIS.plateau_order * max(seen.first, seen.second)
        flat = self.noise == 0 and bool((line == self.f0).all())
        return flat and expected > DIAGNOSIS.clear * self.noise_floor
