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

from zerothresh.basics.arrays import Array
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.requests import Probes

_EPS = float(np.finfo(float).eps)
_POINTS = 7
_LEAST = 100  # calls below which a glance must do
_MEANS = 4  # calls that a value is the mean of, if values are random


@dataclass(frozen=True)
class Diagnosis:
    """What was found."""

    noise: float  # standard deviation of a value
    random: bool  # whether the same point gives different values
    length: float  # natural length: a step along a random unit vector at which curvature shows
    curvature: float  # second derivative of a component along a random unit vector
    value: float  # size of the values at the start
    largest: float  # and of all that were seen
    rough: bool  # not smooth at any length: steps or plateaus
    kink: bool  # slopes to both sides of the start differ
    given: Estimator | None = None  # the user's own choice of step and kind of difference

    @property
    def mu(self) -> float:
        """The step of a difference: 8^(1/4) sqrt(noise / curvature), and more where values are random."""
        if self.given is not None:
            return self.given.mu
        if self.rough:
            return self.length
        factor = 8.0 if self.random else 1.68
        best = factor * math.sqrt(self.noise / self.curvature) if self.curvature > 0 else self.length
        return min(max(best, 1e-7 * self.length), self.length)

    @property
    def central(self) -> bool:
        """Whether the noise calls for central differences."""
        if self.given is not None:
            return self.given.difference == "central"
        return not self.rough and (self.random or self.mu > 0.02 * self.length)

    def across(self, d: int) -> float:
        """The natural length along a component's gradient, which is shorter than along a random vector."""
        return self.length / math.sqrt(d)

    def bend(self, d: int) -> float:
        """The step of a second difference along a gradient, for functions that are quadratic."""
        if self.curvature <= 0:
            return 0.1 * self.across(d)
        best = 3.0 * math.sqrt(math.sqrt(self.noise / self.curvature))
        return min(max(best, 0.1 * self.across(d)), self.length)

    def fine(self, d: int) -> float:
        """The step of a central difference along a gradient, for functions that are not."""
        share = self.noise / max(self.curvature * self.length**2, 1e-300)
        return self.across(d) * min(max(2.0 * math.pow(share, 1 / 3), 1e-5), 1.0)

    def words(self) -> str:
        """The findings in a sentence."""
        level = self.noise / self.largest
        kind = "random noise" if self.random else "noise"
        shape = "not smooth" if self.rough else f"natural length {self.length:.1g}"
        shape += ", a kink at the start" if self.kink else ""
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


def quantum(values: Array) -> float:
    """The unit that values are multiples of, if they are rounded: to decimals, or to single precision; else 0.

    >>> quantum(np.array([0.25, 3.5, 1.75]))
    0.01
    """
    size = float(np.abs(values).max(initial=0.0))
    for digits in range(9):
        scaled = values * 10.0**digits
        if size * 10.0**digits > 1e12:
            break
        if (np.abs(scaled - np.round(scaled)) <= 8 * _EPS * np.abs(scaled)).all():
            return 10.0**-digits
    with np.errstate(over="ignore"):
        single = values.astype(np.float32).astype(np.float64)
    return size * 2.0**-23 if np.array_equal(single, values) else 0.0


def diagnose(context: Context) -> Generator[Probes, Answers, Diagnosis]:
    """Diagnosis along a random direction from the start, at one component (at another one if that tells too little)."""
    return (yield from _Looking(context).search())


class _Looking:
    """What is known while looking."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.theta = context.theta0
        self.i = context.rng.integers(context.n, 1)
        u = context.rng.normal(context.d)
        self.sided = False  # whether there is room to one side only
        if context.box is not None:
            low, high = context.box.low, context.box.high
            u = np.where(self.theta <= low, np.abs(u), np.where(self.theta >= high, -np.abs(u), u))
            u = np.where(high > low, u, 0.0)
            self.sided = bool(((self.theta <= low) | (self.theta >= high)).any())
        self.u = u / max(float(np.linalg.norm(u)), 1e-300)
        self.scale = max(1.0, float(np.abs(self.theta).max()))
        self.noise = 0.0  # of a single value
        self.random = False
        self.means = 1  # calls that a value is the mean of, once values are random
        self.size = self.f0 = 0.0

    def at(self, *steps: float) -> Generator[Probes, Answers, Array]:
        """Values at steps along the direction."""
        points = [self.context.inside(self.theta + step * self.u) if step else self.theta for step in steps]
        values = (yield from self.context.values(points * self.means, self.i))[:, 0].reshape(self.means, -1)
        self.size = max(self.size, float(np.abs(values).max()))
        if self.means > 1:
            self.noise = float(np.sqrt(values.var(axis=0, ddof=1).mean()))
        return np.asarray(values.mean(axis=0))

    @property
    def floor(self) -> float:
        """Differences below this are noise."""
        share = 8 / math.sqrt(self.means) if self.random else 4
        return share * self.noise + 8 * _EPS * self.size

    def search(self) -> Generator[Probes, Answers, Diagnosis]:
        found = yield from self._glance()
        if found is not None or self.context.left < _LEAST:
            return found or self._found(self.scale, 0.0)
        pair = yield from self.at(0.0)
        if self._differ(float(pair[0]), self.f0):
            self._is_random()
        if self.random:
            self.f0 = float((yield from self.at(0.0))[0])
        found = yield from self._length()
        if not self.random:
            pair = yield from self.at(found.length, found.length)
            if self._differ(float(pair[0]), float(pair[1])):  # noise that does not show at the start
                self._is_random()
                found = yield from self._length()
        return found

    def _glance(self) -> Generator[Probes, Answers, Diagnosis | None]:
        """Four values are enough if they are those of a smooth function without noise."""
        h = 1e-3 * self.scale
        four = yield from self.at(0.0, h, 2 * h, -h)
        f0, one, two, back = four.tolist()
        self.f0 = f0
        a, b, bent = abs(one - f0), abs(two - 2 * one + f0), abs(one + back - 2 * f0)
        smooth = (self.sided or abs(b - bent) < 0.03 * b) and 1e-7 * a < b < 3e-2 * a and b > 300 * _EPS * self.size
        if not smooth or quantum(four * self.context.unit) > 0:
            return None
        self.noise = 8 * _EPS * self.size
        self.context.remember(int(self.i[0]), f0)
        return self._found(h * min(a / b, 1e6), b / h**2)

    def _differ(self, one: float, other: float) -> bool:
        """Whether two values of one point differ by more than rounding, which may depend on what else is asked for."""
        return abs(one - other) > 64 * _EPS * self.size

    def _is_random(self) -> None:
        self.random = True
        self.means = _MEANS

    def _length(self) -> Generator[Probes, Answers, Diagnosis]:
        """Lengthen and shorten a step until slope and curvature both show."""
        h, straight, votes, before = 1e-4 * self.scale, 0.0, 0, (0.0, 0.0)
        measured, bent_before = self.random, (math.inf, 0.0)
        even: tuple[float, float, float] | None = None
        shorter, heard = 0, [0.0, 0.0]
        for _ in range(20):
            sides = (h, 2 * h) if self.sided else (h, 2 * h, -h, -2 * h)  # there may be a kink at the start
            if self.random:  # single values are enough to see that a step is too short
                self.means = 1
                four = np.resize((yield from self.at(*sides)), 4)
                hidden = float(np.abs(four - self.f0).max()) <= self.floor
                self.means = _MEANS
                if hidden and h < 1e8 * self.scale:
                    h *= 10.0
                    continue
            four = np.resize((yield from self.at(*sides)), 4)
            ones, twos = four[[0, 2]], four[[1, 3]]
            a, b = float(np.abs(ones - self.f0).max()), float(np.abs(twos - 2 * ones + self.f0).max())
            bent = 0.0 if self.sided else abs(float(ones.sum()) - 2 * self.f0)
            heard.append(self.noise)
            if self.random and h >= self.scale and heard[-1] > 5 * heard[-2] > 25 * heard[-3] > 0:
                return self._found(h, b / h**2)  # noise grows like the step: a longer one shows no more
            if shorter < 3 and bent > 0.2 * a > self.floor and bent > 5 * b:  # a kink, or seen from too far away
                shorter += 1
                h *= 1e-3 if shorter < 3 else 1e6
                continue
            shorter = 3 if shorter == 0 else shorter
            if before[1] > 10 * self.floor and a < 3 * before[1] and h > 20 * before[0]:
                return self._rough()  # a longer step makes no more difference: a jump, and not a slope
            before = h, a
            if not measured and max(a, b) > self.floor:
                measured = True
                line = yield from self.at(*(j * 1e-3 * h for j in range(1, _POINTS)))
                every = np.concatenate([[self.f0], line, four])
                unit = quantum(every * self.context.unit) / self.context.unit
                self.noise = max(ecnoise(every[:_POINTS]), 0.5 * unit if np.unique(every).size > 1 else 0.0)
            if b <= self.floor:  # too short to see the curvature
                straight = h if a > self.floor else 0.0
                h *= 10.0 if a > self.floor or self.random else 30.0
                if h > 1e8 * self.scale:
                    kink = bent > 0.2 * a
                    return self._rough() if a <= self.floor else self._found(self.scale, 0.0, kink=kink)
            elif straight > 0.05 * h and b > 0.1 * a and not self.random:  # a line up to there: a kink lies between
                return self._found(math.sqrt(straight * h), 0.3 * a / h / math.sqrt(straight * h))
            elif a <= self.floor or 0.03 * a <= b <= 1.2 * a or self.random:
                break
            elif bent_before[0] < h and b < 2 * bent_before[1] * a:  # it bends less, further on: past a kink
                return self._found(bent_before[0], 0.3 * a / h / bent_before[0])
            elif b > 1.2 * a and votes < 2 and self.context.n > 1:  # too long, or a component that is stationary
                votes += 1
                self.i = (self.i + 1) % self.context.n
                self.f0 = float((yield from self.at(0.0))[0])
            elif b > 1.2 * a and not self.sided and abs(float(ones[0] - ones[1])) < 0.1 * a:
                even = even or (h, a, b)  # no slope: too long by far, or stationary
                if h < 1e-6 * even[0] or a < 100 * self.floor:
                    h, a, b = even
                    return self._found(h * math.sqrt(max(abs(self.f0), a) / b), b / h**2)
                h *= 0.01
            else:
                bent_before = h, b / a
                h *= min(max(0.3 * a / b, 1e-4), 1000.0)
        length = h * min(max(a / max(b, 1e-300), 0.3), 30.0)
        kink = bent > 5 * b + 4 * self.floor and bent > 0.2 * a
        for _ in range(4 if kink else 0):  # how far one has to go until nothing changes any more
            far = yield from self.at(10 * h, -10 * h)
            further = float(np.abs(far - self.f0).max())
            if further < 3 * a:
                length = h
                break
            h, a, b = 10 * h, further, 10 * b
        return self._found(length, b / h**2, kink=kink)

    def _rough(self) -> Diagnosis:
        self.noise = self.noise if self.random else 0.0  # a jump is no noise
        return self._found(self.scale, 0.0, rough=True)

    def _found(self, length: float, curvature: float, *, rough: bool = False, kink: bool = False) -> Diagnosis:
        noise = max(self.noise, _EPS * self.size, 1e-300)
        value, largest = max(abs(self.f0), 1e-300), max(self.size, 1e-300)
        return Diagnosis(noise, self.random, length, curvature, value, largest, rough, kink, self.context.estimator)
