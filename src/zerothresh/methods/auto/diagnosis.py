r"""Diagnosis of a black box from its first calls: its noise, its natural length, kinks, jumps and plateaus.

The natural length is the step at which the slope and the curvature change F by the same amount. It is looked for
from a first length that comes from the bounds if they are finite, else from the start if that is not zero, and is 1
by convention otherwise. What is found does not depend on that first length, only how many calls it takes.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.methods.auto.findings import NOTHING_KNOWN, Diagnosis
from zerothresh.methods.auto.line_probe import Differences, LineProbe
from zerothresh.methods.auto.models.noise_level import ecnoise, quiet_length, rounding_unit
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.settings.diagnosis_settings import DIAGNOSIS
from zerothresh.methods.auto.settings.floating_point import EPS, TINY
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

__all__ = ["NOTHING_KNOWN", "Diagnosis", "diagnose", "ecnoise", "rounding_unit"]


def diagnose(context: Context) -> Generator[Probes, Answers, Diagnosis]:
    """Diagnose the black box along a random direction from the start, with 4 to about 100 calls.

    One component is called, and another one if that shows too little.
    """
    return (yield from _Diagnoser(context).search())


class _Diagnoser:
    """A diagnosis at work."""

    def __init__(self, context: Context) -> None:
        self.context, self.probe = context, LineProbe(context)
        self.quick_second = 0.0  # the second difference that the quick check saw

    def search(self) -> Generator[Probes, Answers, Diagnosis]:
        """Make the quick check; if that is not enough, test for random noise and look for the natural length."""
        diagnosis = yield from self._quick_check()
        if diagnosis is not None or self.context.left < DIAGNOSIS.min_calls:
            return diagnosis or self._diagnosis(self.probe.scale, 0.0)
        again = yield from self.probe.values_at(0.0)
        first = DIAGNOSIS.first_step
        if self.probe.differ(float(again[0]), self.probe.f0):
            yield from self.probe.measure_random_noise(float(again[0]))
            hidden = self.quick_second <= DIAGNOSIS.random_floor * self.probe.noise
            first = DIAGNOSIS.lengthen * DIAGNOSIS.quick_step if hidden else first
        diagnosis = yield from self._find_length(first)
        if not self.probe.random:
            pair = yield from self.probe.values_at(diagnosis.length, diagnosis.length)
            if self.probe.differ(float(pair[0]), float(pair[1])):  # noise that does not show at the start
                self.probe.treat_as_random(DIAGNOSIS.distant_repeats)
                diagnosis = yield from self._find_length(first)
        return diagnosis

    def _quick_check(self) -> Generator[Probes, Answers, Diagnosis | None]:
        """Diagnose from a few values, which is enough for a smooth function without noise; None if it is not one.

        One component shows whether F is smooth. A few others help to tell the natural length: along a direction to
        which its gradient is nearly orthogonal, that of a single one is far too short.
        """
        h = DIAGNOSIS.quick_step * self.probe.scale
        four = yield from self.probe.values_at(0.0, h, 2 * h, -h)
        f0, one, two, back = four.tolist()
        self.probe.f0 = f0
        first, second, central_second = abs(one - f0), abs(two - 2 * one + f0), abs(one + back - 2 * f0)
        self.quick_second = max(second, central_second)
        same_curvature = self.probe.one_sided or abs(second - central_second) < DIAGNOSIS.same_curvature * second
        most_bend = DIAGNOSIS.most_quick_bend if self.probe.one_sided else DIAGNOSIS.most_bend
        curved = DIAGNOSIS.least_quick_bend * first < second < most_bend * first
        visible = second > DIAGNOSIS.quick_rounding * EPS * self.probe.largest
        if not (same_curvature and curved and visible) or rounding_unit(four * self.context.unit) > 0:
            return None
        if second > DIAGNOSIS.most_quick_bend * first:  # noise may look like this, but does not come again
            again = yield from self.probe.values_at(0.0)
            if self.probe.differ(float(again[0]), f0):
                return None
        self.context.remember(int(self.probe.component[0]), f0)
        others = yield from self.probe.others(h)
        firsts = np.append(others[:, 1] - others[:, 0], first)
        seconds = np.append(np.abs(others[:, 2] - 2 * others[:, 1] + others[:, 0]), second)
        self.probe.noise = DIAGNOSIS.rounding * EPS * self.probe.largest
        slope, curvature = math.sqrt(float(np.square(firsts).mean())) / h, float(seconds.mean()) / square(h)
        return self._diagnosis(min(slope / curvature, DIAGNOSIS.longest_quick_length * h), curvature)

    def _find_length(self, first_step: float) -> Generator[Probes, Answers, Diagnosis]:
        """Lengthen and shorten a step, the first of which is a share of the scale, until slope and curvature show."""
        h = first_step * self.probe.scale
        straight_length, switches, previous, last_curved = 0.0, 0, (0.0, 0.0), (math.inf, 0.0)
        noise_known, kink_checks, noises = self.probe.random, 0, [0.0, 0.0]
        first_even: Differences | None = None
        seen = Differences(h, 0.0, 0.0, 0.0, 0.0, np.empty(0))
        for _ in range(DIAGNOSIS.most_rounds):
            if self.probe.random and h < self.probe.longest and (yield from self.probe.hides(h)):
                h = min(DIAGNOSIS.lengthen * h, self.probe.longest)
                continue
            seen = yield from self.probe.differences(h)
            if self.probe.random and not self._is_kink(seen):  # to one side, a bend may change its sign
                seen = seen._replace(second=max(seen.second, seen.central_second))
            first, second, floor = seen.first, seen.second, self.probe.noise_floor
            noises.append(self.probe.noise)
            grows = noises[-1] > DIAGNOSIS.noise_growth**2 * noises[-3] > 0
            if (
                self.probe.random and h >= self.probe.scale and grows
            ):  # noise grows with the step: a longer one shows no more
                return self._diagnosis(h, second / square(h), seen)
            if kink_checks < DIAGNOSIS.kink_checks and self._may_be_kink(seen):
                kink_checks += 1  # either a kink, or a smooth function at a step much too long: shorter steps tell
                last = kink_checks == DIAGNOSIS.kink_checks
                h *= DIAGNOSIS.kink_shortening if not last else DIAGNOSIS.kink_shortening ** (1 - kink_checks)
                continue
            kink_checks = kink_checks or DIAGNOSIS.kink_checks
            jumps = previous[1] > DIAGNOSIS.clear * floor and first < DIAGNOSIS.jump_growth * previous[1]
            if jumps and h > DIAGNOSIS.jump_lengthening * previous[0]:
                return self._rough_diagnosis()  # a longer step makes no more difference: a jump instead of a slope
            previous = h, first
            if not noise_known and max(first, second) > floor:
                noise_known = True
                if (yield from self.probe.measure_noise(seen)):
                    return self._rough_diagnosis()
                floor = self.probe.noise_floor
            if second <= floor:  # too short to see the curvature
                straight_length = h if first > floor else 0.0
                if h >= self.probe.longest:
                    if first <= floor:
                        return self._rough_diagnosis()
                    return self._diagnosis(
                        self.probe.scale, 0.0, seen, kink=seen.central_second > DIAGNOSIS.kink_share * first
                    )
                visible = first > floor or self.probe.random
                h = min(h * (DIAGNOSIS.lengthen if visible else DIAGNOSIS.lengthen_flat), self.probe.longest)
            elif self.probe.random and self.probe.shortest_alike(seen) < h:  # F has levelled off long before
                seen = seen._replace(h=self.probe.shortest_alike(seen))
                break
            elif (
                straight_length > DIAGNOSIS.straight_share * h and seen.bend > DIAGNOSIS.bent and not self.probe.random
            ):  # straight up to the last step and clearly bent at this one: a kink lies in between
                length = math.sqrt(straight_length * h)
                return self._diagnosis(length, DIAGNOSIS.kink_curvature * first / h / length, seen)
            elif self.probe.random and seen.bend > DIAGNOSIS.most_bend and switches < DIAGNOSIS.most_switches:
                switches += 1  # noise hides the slope: either F is stationary here, or flat along this direction
                yield from self.probe.turn()
            elif first <= floor or DIAGNOSIS.least_bend <= seen.bend <= DIAGNOSIS.most_bend or self.probe.random:
                break
            elif last_curved[0] < h and seen.bend < 2 * last_curved[1]:  # less bent further out: beyond a kink
                length = last_curved[0]
                return self._diagnosis(length, DIAGNOSIS.kink_curvature * first / h / length, seen)
            elif seen.bend > DIAGNOSIS.most_bend and switches < DIAGNOSIS.most_switches and self.context.n > 1:
                switches += 1  # the step is too long, or this component is stationary: try another one
                self.probe.component = (self.probe.component + 1) % self.context.n
                self.probe.f0 = float((yield from self.probe.values_at(0.0))[0])
            elif (
                seen.bend > DIAGNOSIS.most_bend and not self.probe.one_sided and seen.odd < DIAGNOSIS.even_share * first
            ):
                first_even = first_even or seen  # no slope: the step is far too long, or the start is stationary
                if h < DIAGNOSIS.even_shortening * first_even.h or first < DIAGNOSIS.clear**2 * floor:
                    return (yield from self._stationary(first_even))
                h *= DIAGNOSIS.shorten_even
            else:
                last_curved = h, seen.bend
                h *= min(max(DIAGNOSIS.aim / seen.bend, DIAGNOSIS.most_shortening), DIAGNOSIS.most_lengthening)
                h = min(h, self.probe.longest)
        return (yield from self._conclude(seen))

    def _may_be_kink(self, seen: Differences) -> bool:
        """Whether the second difference across the start is out of proportion to that on one side."""
        kinked = seen.central_second > DIAGNOSIS.kink_share * seen.first > self.probe.noise_floor
        return kinked and seen.central_second > DIAGNOSIS.kink_ratio * seen.second

    def _is_kink(self, seen: Differences) -> bool:
        """Whether the second difference across the start is out of all proportion, whatever the noise."""
        clear = DIAGNOSIS.kink_ratio * seen.second + DIAGNOSIS.floor * self.probe.noise_floor
        return seen.central_second > max(clear, DIAGNOSIS.kink_share * seen.first)

    def _stationary(self, seen: Differences) -> Generator[Probes, Answers, Diagnosis]:
        """Report a stationary start: its natural length is where F departs from the parabola around the start."""
        parabola, length = seen.second / square(seen.h), self.probe.scale
        h = seen.h
        for _ in range(DIAGNOSIS.even_rounds):
            if abs(seen.bend - 2) > DIAGNOSIS.even_departure:
                length = h
                break
            if h >= self.probe.longest:
                break
            h = min(DIAGNOSIS.lengthen_flat * h, self.probe.longest)
            seen = yield from self.probe.differences(h)
        return self._diagnosis(length, parabola, seen)

    def _conclude(self, seen: Differences) -> Generator[Probes, Answers, Diagnosis]:
        """Report the natural length; at a kink, it is how far to go until the value does not change any more."""
        h, first, second = seen.h, seen.first, seen.second
        length = h * min(max(first / max(second, TINY), DIAGNOSIS.shortest_length), DIAGNOSIS.longest_length)
        kink = self._is_kink(seen)
        for _ in range(DIAGNOSIS.kink_rounds if kink else 0):
            h = DIAGNOSIS.lengthen * h
            far_values = yield from self.probe.values_at(h, -h)
            far_change = float(np.abs(far_values - self.probe.f0).max())
            if far_change < DIAGNOSIS.jump_growth * first:
                length = h / DIAGNOSIS.lengthen
                break
            first, second = far_change, DIAGNOSIS.lengthen * second
        else:
            return self._diagnosis(length, second / square(h), seen, kink=kink)
        return self._diagnosis(length, second / square(length), seen, kink=kink)

    def _rough_diagnosis(self) -> Diagnosis:
        """Report a function with jumps or plateaus."""
        self.probe.noise = self.probe.noise if self.probe.random else 0.0  # a jump is not noise
        return self._diagnosis(self.probe.scale, 0.0, rough=True)

    def _diagnosis(
        self,
        length: float,
        curvature: float,
        seen: Differences | None = None,
        *,
        rough: bool = False,
        kink: bool = False,
    ) -> Diagnosis:
        """Report what has been found."""
        noise, growth = self.probe.noise_nearby(length if seen is None else seen.h)
        noise = max(noise, EPS * self.probe.largest, TINY)
        length = min(length, self.probe.longest, quiet_length(noise, growth))
        start_value, largest = max(abs(self.probe.f0), TINY), max(self.probe.largest, TINY)
        change = 0.0 if seen is None else seen.first
        estimator = self.context.estimator
        return Diagnosis(
            noise,
            self.probe.random,
            length,
            curvature,
            start_value,
            largest,
            rough,
            kink,
            estimator,
            self.probe.width,
            change,
            growth,
        )
