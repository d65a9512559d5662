r"""Diagnosis of a black box from its first calls: its noise, its natural length, and the difference steps that follow.

The noise is estimated as by Moré and Wild: differences of order j of values at equidistant points cancel the smooth
part, and what is left shows the standard deviation, whether the noise is random or comes from rounding. The natural
length is the step at which the slope and the curvature change F by the same amount.

Reference: Moré and Wild, *Estimating computational noise*, SIAM J. Sci. Comput. 2011; *Estimating
derivatives of noisy simulations*, ACM TOMS 2012.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.requests import Probes

_EPS = float(np.finfo(float).eps)
_TINY = 1e-300  # lower limit of divisors and of lengths
_NOISE_POINTS = 7  # equidistant points from which the noise is estimated
_MIN_CALLS = 100  # with fewer calls left, only the quick check is made
_RANDOM_REPEATS = 4  # if values are random, each one is the mean of this many calls
_MAX_ROUNDS = 20  # step lengths that are tried at most
_LONGEST_STEP = 1e8  # times the scale of the start: a function that shows nothing up to there is flat or linear
_KINK_SHARE = 0.2  # a central second difference above this share of the first difference may be a kink
_MAX_COMPONENT_SWITCHES = 2  # other components to try if the first one seems to be stationary at the start


@dataclass(frozen=True)
class Diagnosis:
    """What the first calls found; values and noise are in the unit of the context."""

    noise: float  # standard deviation of a value
    random: bool  # whether the same point gives different values
    length: float  # natural length: a step along a random unit vector at which curvature shows
    curvature: float  # second derivative of a component along a random unit vector
    start_value: float  # absolute value of a component at the start
    largest_value: float  # largest absolute value of all calls
    rough: bool  # not smooth at any length: the function has jumps or plateaus
    kink: bool  # the slopes to both sides of the start differ
    estimator: Estimator | None = None  # the user's own choice of the difference step and kind, if there is one

    @property
    def mu(self) -> float:
        """The step of a difference: 8^(1/4) sqrt(noise / curvature), as by Moré and Wild; more if values are random."""
        if self.estimator is not None:
            return self.estimator.mu
        if self.rough:
            return self.length
        factor = 8.0 if self.random else 1.68
        best = factor * math.sqrt(self.noise / self.curvature) if self.curvature > 0 else self.length
        return min(max(best, 1e-7 * self.length), self.length)

    @property
    def central(self) -> bool:
        """Whether central differences are worth twice the calls, because of the noise."""
        if self.estimator is not None:
            return self.estimator.difference == "central"
        return not self.rough and (self.random or self.mu > 0.02 * self.length)

    def gradient_length(self, d: int) -> float:
        """Return the natural length along a component's gradient, which is shorter than along a random vector."""
        return self.length / math.sqrt(d)

    def curvature_step(self, d: int) -> float:
        """Return the step of a second difference along a gradient, for functions that are about quadratic."""
        if self.curvature <= 0:
            return 0.1 * self.gradient_length(d)
        best = 3.0 * math.sqrt(math.sqrt(self.noise / self.curvature))
        return min(max(best, 0.1 * self.gradient_length(d)), self.length)

    def central_step(self, d: int) -> float:
        """Return the step of a central difference along a gradient, for functions that are not quadratic."""
        relative_noise = self.noise / max(self.curvature * square(self.length), _TINY)
        return self.gradient_length(d) * min(max(2.0 * math.pow(relative_noise, 1 / 3), 1e-5), 1.0)

    def summary(self) -> str:
        """Return the findings as a phrase, without a full stop."""
        noise = self.noise / self.largest_value
        kind = "random noise" if self.random else "noise"
        shape = "not smooth" if self.rough else f"natural length {self.length:.1g}"
        shape += ", a kink at the start" if self.kink else ""
        return f"{kind} of {noise:.0e} times the largest value, {shape}, difference step {self.mu:.1g}"


def ecnoise(values: Array) -> float:
    """Estimate the standard deviation of the noise in values at equidistant points that are close together.

    Arguments
    ---------
    values: array of shape (points,), with at least 3 points.

    Returns
    -------
    float: the estimate (ECnoise of Moré and Wild).

    >>> rng = np.random.default_rng(0)
    >>> round(ecnoise(3.0 + 1e-4 * np.arange(9) + 0.01 * rng.standard_normal(9)), 3) > 0.004
    True
    """
    differences, estimates = values.astype(float), list[float]()
    for order in range(1, values.size - 1):
        differences = np.diff(differences)
        factor = math.factorial(order) ** 2 / math.factorial(2 * order)
        estimates.append(math.sqrt(factor * float(np.mean(differences**2))))
    for level in range(len(estimates) - 2):  # take the first three successive orders that agree
        three = estimates[level : level + 3]
        if max(three) <= 4 * min(three):
            return three[0]
    return estimates[-1]


def rounding_unit(values: Array) -> float:
    """Return the unit to which values are rounded (a decimal unit, or that of single precision); 0 if they are not.

    >>> rounding_unit(np.array([0.25, 3.5, 1.75]))
    0.01
    """
    largest = float(np.abs(values).max(initial=0.0))
    for digits in range(9):
        scaled = values * 10.0**digits
        if largest * 10.0**digits > 1e12:
            break
        if (np.abs(scaled - np.round(scaled)) <= 8 * _EPS * np.abs(scaled)).all():
            return 10.0**-digits
    with np.errstate(over="ignore"):
        single = values.astype(np.float32).astype(np.float64)
    return largest * 2.0**-23 if np.array_equal(single, values) else 0.0


def diagnose(context: Context) -> Generator[Probes, Answers, Diagnosis]:
    """Diagnose the black box along a random direction from the start, with 4 to about 100 calls.

    One component is called, and another one if that shows too little.
    """
    return (yield from _Diagnoser(context).search())


class _Diagnoser:
    """The state of a diagnosis: one component, one direction, and what the calls have shown so far."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.theta = context.theta0
        self.component = context.rng.integers(context.n, 1)
        u = context.rng.normal(context.d)
        self.one_sided = False  # whether bounds leave room to one side only
        if context.box is not None:
            low, high = context.box.low, context.box.high
            u = np.where(self.theta <= low, np.abs(u), np.where(self.theta >= high, -np.abs(u), u))
            u = np.where(high > low, u, 0.0)
            self.one_sided = bool(((self.theta <= low) | (self.theta >= high)).any())
        self.u = u / max(float(np.linalg.norm(u)), _TINY)
        self.scale = max(1.0, float(np.abs(self.theta).max()))
        self.noise = 0.0  # of a single value
        self.random = False
        self.repeats = 1  # calls per value
        self.largest = self.f0 = 0.0  # the largest absolute value so far, and the value at the start

    def values_at(self, *steps: float) -> Generator[Probes, Answers, Array]:
        """Return the values at steps along the direction."""
        points = [self.context.inside(self.theta + step * self.u) if step else self.theta for step in steps]
        values = (yield from self.context.values(points * self.repeats, self.component))[:, 0]
        values = values.reshape(self.repeats, -1)
        self.largest = max(self.largest, float(np.abs(values).max()))
        if self.repeats > 1:
            self.noise = float(np.sqrt(values.var(axis=0, ddof=1).mean()))
        return np.asarray(values.mean(axis=0))

    @property
    def noise_floor(self) -> float:
        """Differences below this may be noise."""
        deviations = 8 / math.sqrt(self.repeats) if self.random else 4
        return deviations * self.noise + 8 * _EPS * self.largest

    def search(self) -> Generator[Probes, Answers, Diagnosis]:
        """Make the quick check; if that is not enough, test for random noise and look for the natural length."""
        diagnosis = yield from self._quick_check()
        if diagnosis is not None or self.context.left < _MIN_CALLS:
            return diagnosis or self._diagnosis(self.scale, 0.0)
        again = yield from self.values_at(0.0)
        if self._differ(float(again[0]), self.f0):
            self._treat_as_random()
        if self.random:
            self.f0 = float((yield from self.values_at(0.0))[0])
        diagnosis = yield from self._find_length()
        if not self.random:
            pair = yield from self.values_at(diagnosis.length, diagnosis.length)
            if self._differ(float(pair[0]), float(pair[1])):  # noise that does not show at the start
                self._treat_as_random()
                diagnosis = yield from self._find_length()
        return diagnosis

    def _quick_check(self) -> Generator[Probes, Answers, Diagnosis | None]:
        """Diagnose from four values, which is enough for a smooth function without noise; None if it is not one."""
        h = 1e-3 * self.scale
        four = yield from self.values_at(0.0, h, 2 * h, -h)
        f0, one, two, back = four.tolist()
        self.f0 = f0
        first, second, central_second = abs(one - f0), abs(two - 2 * one + f0), abs(one + back - 2 * f0)
        same_curvature = self.one_sided or abs(second - central_second) < 0.03 * second
        smooth = same_curvature and 1e-7 * first < second < 3e-2 * first and second > 300 * _EPS * self.largest
        if not smooth or rounding_unit(four * self.context.unit) > 0:
            return None
        self.noise = 8 * _EPS * self.largest
        self.context.remember(int(self.component[0]), f0)
        return self._diagnosis(h * min(first / second, 1e6), second / square(h))

    def _differ(self, one: float, other: float) -> bool:
        """Whether two values of one point differ by more than rounding, which may depend on the rest of a batch."""
        return abs(one - other) > 64 * _EPS * self.largest

    def _treat_as_random(self) -> None:
        """From now on every value is the mean of several calls."""
        self.random = True
        self.repeats = _RANDOM_REPEATS

    def _find_length(self) -> Generator[Probes, Answers, Diagnosis]:
        """Lengthen and shorten a step until the slope and the curvature both show."""
        h, straight_length, switches, previous = 1e-4 * self.scale, 0.0, 0, (0.0, 0.0)  # previous: h, first difference
        noise_known, last_curved = self.random, (math.inf, 0.0)  # last_curved: h, second over first difference
        first_even: tuple[float, float, float] | None = None
        shortenings, noise_history = 0, [0.0, 0.0]
        for _ in range(_MAX_ROUNDS):
            steps = (h, 2 * h) if self.one_sided else (h, 2 * h, -h, -2 * h)  # both sides: there may be a kink
            if self.random:  # single values are enough to see that a step is too short
                self.repeats = 1
                four = np.resize((yield from self.values_at(*steps)), 4)
                hidden = float(np.abs(four - self.f0).max()) <= self.noise_floor
                self.repeats = _RANDOM_REPEATS
                if hidden and h < _LONGEST_STEP * self.scale:
                    h *= 10.0
                    continue
            four = np.resize((yield from self.values_at(*steps)), 4)
            ones, twos = four[[0, 2]], four[[1, 3]]
            first = float(np.abs(ones - self.f0).max())
            second = float(np.abs(twos - 2 * ones + self.f0).max())
            central_second = 0.0 if self.one_sided else abs(float(ones.sum()) - 2 * self.f0)
            noise_history.append(self.noise)
            noise_grows = noise_history[-1] > 5 * noise_history[-2] > 25 * noise_history[-3] > 0
            if self.random and h >= self.scale and noise_grows:  # noise grows with the step: a longer one shows no more
                return self._diagnosis(h, second / square(h))
            if (
                shortenings < 3
                and central_second > _KINK_SHARE * first > self.noise_floor
                and central_second > 5 * second
            ):  # either a kink, or a smooth function at a step that is much too long: shorter steps tell
                shortenings += 1
                h *= 1e-3 if shortenings < 3 else 1e6
                continue
            shortenings = 3 if shortenings == 0 else shortenings
            if previous[1] > 10 * self.noise_floor and first < 3 * previous[1] and h > 20 * previous[0]:
                return self._rough_diagnosis()  # a longer step makes no more difference: a jump instead of a slope
            previous = h, first
            if not noise_known and max(first, second) > self.noise_floor:
                noise_known = True
                line = yield from self.values_at(*(j * 1e-3 * h for j in range(1, _NOISE_POINTS)))
                every = np.concatenate([[self.f0], line, four])
                unit = rounding_unit(every * self.context.unit) / self.context.unit
                self.noise = max(ecnoise(every[:_NOISE_POINTS]), 0.5 * unit if np.unique(every).size > 1 else 0.0)
            if second <= self.noise_floor:  # too short to see the curvature
                straight_length = h if first > self.noise_floor else 0.0
                h *= 10.0 if first > self.noise_floor or self.random else 30.0
                if h > _LONGEST_STEP * self.scale:
                    if first <= self.noise_floor:
                        return self._rough_diagnosis()
                    return self._diagnosis(self.scale, 0.0, kink=central_second > _KINK_SHARE * first)
            elif straight_length > 0.05 * h and second > 0.1 * first and not self.random:
                # straight up to the last step and clearly bent at this one: a kink lies in between
                length = math.sqrt(straight_length * h)
                return self._diagnosis(length, 0.3 * first / h / length)
            elif first <= self.noise_floor or 0.03 * first <= second <= 1.2 * first or self.random:
                break
            elif last_curved[0] < h and second < 2 * last_curved[1] * first:  # less bent further out: beyond a kink
                return self._diagnosis(last_curved[0], 0.3 * first / h / last_curved[0])
            elif second > 1.2 * first and switches < _MAX_COMPONENT_SWITCHES and self.context.n > 1:
                # the step is too long, or this component is stationary: try another one
                switches += 1
                self.component = (self.component + 1) % self.context.n
                self.f0 = float((yield from self.values_at(0.0))[0])
            elif second > 1.2 * first and not self.one_sided and abs(float(ones[0] - ones[1])) < 0.1 * first:
                # no slope: the step is far too long, or the start is stationary
                first_even = first_even or (h, first, second)
                if h < 1e-6 * first_even[0] or first < 100 * self.noise_floor:
                    h, first, second = first_even
                    length = h * math.sqrt(max(abs(self.f0), first) / second)
                    return self._diagnosis(length, second / square(h))
                h *= 0.01
            else:
                last_curved = h, second / first
                h *= min(max(0.3 * first / second, 1e-4), 1000.0)
        length = h * min(max(first / max(second, _TINY), 0.3), 30.0)
        kink = central_second > 5 * second + 4 * self.noise_floor and central_second > _KINK_SHARE * first
        for _ in range(4 if kink else 0):  # how far to go until the value does not change any more
            far_values = yield from self.values_at(10 * h, -10 * h)
            far_change = float(np.abs(far_values - self.f0).max())
            if far_change < 3 * first:
                length = h
                break
            h, first, second = 10 * h, far_change, 10 * second
        return self._diagnosis(length, second / square(h), kink=kink)

    def _rough_diagnosis(self) -> Diagnosis:
        """Report a function with jumps or plateaus."""
        self.noise = self.noise if self.random else 0.0  # a jump is not noise
        return self._diagnosis(self.scale, 0.0, rough=True)

    def _diagnosis(self, length: float, curvature: float, *, rough: bool = False, kink: bool = False) -> Diagnosis:
        """Report what has been found."""
        noise = max(self.noise, _EPS * self.largest, _TINY)
        start_value, largest = max(abs(self.f0), _TINY), max(self.largest, _TINY)
        estimator = self.context.estimator
        return Diagnosis(noise, self.random, length, curvature, start_value, largest, rough, kink, estimator)
