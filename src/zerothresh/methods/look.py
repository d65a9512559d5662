r"""A first look at a black box, a dozen calls: its noise, its natural length, and the difference steps that follow.

The noise is that of Moré and Wild: differences of order j of values at equidistant points cancel the
smooth part, and what is left tells the standard deviation, whether the noise is random or comes from
rounding. The natural length is the step at which slope and curvature weigh the same.

Reference: Moré and Wild, *Estimating computational noise*, SIAM J. Sci. Comput. 2011; *Estimating
derivatives of noisy simulations*, ACM TOMS 2012.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from zerothresh.estimate import Answers
from zerothresh.methods.base import Array
from zerothresh.methods.program import Room
from zerothresh.plan import Probes

_EPS = float(np.finfo(float).eps)
_POINTS = 7


@dataclass(frozen=True)
class Look:
    """What was found."""

    noise: float  # standard deviation of a value
    random: bool  # whether the same point gives different values
    length: float  # natural length: a step along a random unit vector at which curvature shows
    curvature: float  # second derivative of a component along a random unit vector
    value: float  # size of the values
    rough: bool  # not smooth at any length: steps or plateaus

    @property
    def mu(self) -> float:
        """The step of a forward difference: 8^(1/4) sqrt(noise / curvature)."""
        if self.rough:
            return self.length
        best = 1.68 * math.sqrt(self.noise / self.curvature) if self.curvature > 0 else self.length
        return min(max(best, 1e-7 * self.length), self.length)

    @property
    def central(self) -> bool:
        """Whether the noise calls for central differences."""
        return not self.rough and self.mu > 0.02 * self.length

    def across(self, d: int) -> float:
        """The natural length along a component's gradient, which is shorter than along a random vector."""
        return self.length / math.sqrt(d)

    def bend(self, d: int) -> float:
        """The step of a second difference along a gradient, for functions that are quadratic."""
        if self.curvature <= 0:
            return 0.1 * self.across(d)
        return min(max(3.0 * (self.noise / self.curvature) ** 0.25, 0.1 * self.across(d)), self.length)

    def fine(self, d: int) -> float:
        """The step of a central difference along a gradient, for functions that are not."""
        share = self.noise / max(self.curvature * self.length**2, 1e-300)
        return self.across(d) * min(max(2.0 * share ** (1 / 3), 1e-5), 1.0)

    def words(self) -> str:
        """The findings in a sentence."""
        level = self.noise / max(self.value, 1e-300)
        kind = "random noise" if self.random else "noise"
        shape = "not smooth" if self.rough else f"natural length {self.length:.1g}"
        return f"{kind} of {level:.0e} of the values, {shape}, difference step {self.mu:.1g}"


def ecnoise(values: Array) -> float:
    """The standard deviation of noise in values at equidistant points that are close together.

    >>> rng = np.random.default_rng(0)
    >>> round(ecnoise(3.0 + 1e-4 * np.arange(9) + 0.01 * rng.standard_normal(9)), 3) > 0.004
    True
    """
    differences, estimates = values.astype(float), list[float]()
    for order in range(1, values.size - 1):
        differences = np.diff(differences)
        factor = math.factorial(order) ** 2 / math.factorial(2 * order)
        estimates.append(math.sqrt(factor * float(np.mean(differences**2))))
    for level in range(len(estimates) - 2):  # the first three orders that agree
        three = estimates[level : level + 3]
        if max(three) <= 4 * min(three):
            return three[0]
    return estimates[-1]


def look(room: Room) -> Generator[Probes, Answers, Look]:
    """Look along a random direction from the start, at one component."""
    theta, d = room.theta0, room.d
    i = room.rng.integers(room.n, 1)
    u = room.rng.normal(d)
    free = np.ones(d, bool) if room.box is None else room.box.high > room.box.low
    u = np.where(free, u, 0.0)
    u /= max(float(np.linalg.norm(u)), 1e-300)
    first = (yield from room.values([theta, theta], i))[:, 0]
    f0, noise = float(first.mean()), abs(float(first[1] - first[0])) / math.sqrt(2)
    random = noise > 0
    if random:
        more = (yield from room.values([theta] * 4, i))[:, 0]
        every = np.concatenate([first, more])
        f0, noise = float(every.mean()), float(every.std(ddof=1))
    scale = max(1.0, float(np.abs(theta).max()))
    h, size, at, a, b, before = 1e-4 * scale, abs(f0), 0.0, 0.0, 0.0, (0.0, 0.0)
    rough, measured, votes = False, False, 0
    for _ in range(9):
        pair = (yield from room.values([room.inside(theta + h * u), room.inside(theta - h * u)], i))[:, 0]
        size = max(size, float(np.abs(pair).max()))
        floor = 4 * noise + 8 * _EPS * size
        at, a, b = h, abs(float(pair[0] - pair[1])) / 2, abs(float(pair[0] + pair[1] - 2 * f0)) / 2
        if before[1] > 10 * floor and a < 3 * before[1] and at > 20 * before[0]:
            rough = True  # a longer step makes no more difference: a jump, and not a slope
            break
        before = at, a
        if not (measured or random) and max(a, b) > floor:
            measured = True
            line = [room.inside(theta + (j * 1e-3 * h) * u) for j in range(1, _POINTS)]
            near = (yield from room.values(line, i))[:, 0]
            noise = ecnoise(np.concatenate([[f0], near]))
            floor = 4 * noise + 8 * _EPS * size
        if b <= floor:  # too short to see the curvature
            h *= 30.0 if floor < a < 100 * floor else 1000.0
        elif a <= floor or 0.03 * a <= b <= 3 * a:
            break
        elif b > 3 * a and votes < 2 and room.n > 1:  # too long, or a component that is stationary here: ask another
            votes += 1
            i = (i + 1) % room.n
            f0 = float((yield from room.values([theta], i))[0, 0])
        else:
            h *= min(max(0.3 * a / b, 1e-4), 1000.0)
        if h > 1e10 * scale:
            break
    flat = b <= 4 * noise + 8 * _EPS * size
    if rough or (flat and a <= 4 * noise + 8 * _EPS * size):
        return Look(max(noise, _EPS * size, 1e-300), random, scale, 0.0, max(size, 1e-300), rough=True)
    length = at if flat or a == 0 else at * min(max(a / b, 0.3), 30.0)
    return Look(max(noise, _EPS * size, 1e-300), random, length, 2 * b / at**2, max(size, 1e-300), rough=False)
