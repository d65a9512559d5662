"""What the first calls have found out about a black box, and the lengths of steps that follow from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from zerothresh.methods.auto.models.noise_level import quiet_length
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.settings.diagnosis_settings import DIAGNOSIS
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.rounds.estimator import Estimator


@dataclass(frozen=True)
class Diagnosis:
    """What the first calls found; values and noise are in the unit of the context.

    Reference for the steps: Moré and Wild, *Estimating derivatives of noisy simulations*, ACM TOMS 2012.
    """

    noise: float  # standard deviation of a value
    random: bool  # whether the same point gives different values
    length: float  # natural length: a step along a random unit vector at which curvature shows
    curvature: float  # second derivative of a component along a random unit vector
    start_value: float  # absolute value of a component at the start; a description for reports, not for decisions
    largest_value: float  # largest absolute value of all calls: for the rounding floor and for reports
    rough: bool  # not smooth at any length: the function has jumps or plateaus
    kink: bool  # the slopes to both sides of the start differ
    estimator: Estimator | None = None  # the user's own choice of the difference step and kind, if there is one
    room: float = math.inf  # typical width of the box
    change: float = 0.0  # the largest change of a component that was seen up to the natural length
    noise_growth: float = 0.0  # at a distance s, noise is larger by about this times s^2

    @property
    def mu(self) -> float:
        """The step of a difference: 8^(1/4) sqrt(noise / curvature), as by Moré and Wild; more if values are random."""
        if self.estimator is not None:
            return self.estimator.mu
        longest = min(self.length, DIAGNOSIS.longest_share_of_box * self.room, self.quiet)
        if self.rough:
            return longest
        factor = DIAGNOSIS.random_step_factor if self.random else DIAGNOSIS.step_factor
        best = factor * math.sqrt(self.noise / self.curvature) if self.curvature > 0 else self.length
        return min(max(best, DIAGNOSIS.shortest_step * self.length), longest)

    @property
    def quiet(self) -> float:
        """The longest difference step that the noise allows: a longer one has more noise in its slope."""
        return quiet_length(self.noise, self.noise_growth)

    @property
    def central(self) -> bool:
        """Whether central differences are worth twice the calls, because of the noise."""
        if self.estimator is not None:
            return self.estimator.difference == "central"
        return not self.rough and (self.random or self.mu > DIAGNOSIS.central_above * self.length)

    @property
    def relative_noise(self) -> float:
        """The noise of a value over the change of F that is at stake: what the natural length makes of it."""
        at_stake = max(self.change, self.curvature * square(self.length))
        return self.noise / at_stake if at_stake > 0 else math.inf

    @property
    def strong_noise(self) -> bool:
        """Whether random noise hides the effect of single steps, so that many must be judged together."""
        return self.random and self.relative_noise > DIAGNOSIS.strong_noise

    def gradient_length(self, d: int) -> float:
        """Return the natural length along a component's gradient, which is shorter than along a random vector."""
        return self.length / math.sqrt(d)

    def curvature_step(self, d: int) -> float:
        """Return the step of a second difference along a gradient, for functions that are about quadratic."""
        shortest = DIAGNOSIS.curvature_share * self.gradient_length(d)
        if self.curvature <= 0:
            return shortest
        best = DIAGNOSIS.curvature_step * math.sqrt(self.length * math.sqrt(self.noise / self.curvature))
        return min(max(best, shortest), self.length)

    def central_step(self, d: int) -> float:
        """Return the step of a central difference along a gradient, for functions that are not quadratic."""
        relative_noise = self.noise / max(self.curvature * square(self.length), TINY)
        share = DIAGNOSIS.cubic_step * math.pow(relative_noise, 1 / 3)
        return self.gradient_length(d) * min(max(share, DIAGNOSIS.shortest_central), 1.0)

    def summary(self) -> str:
        """Return the findings as a phrase, without a full stop."""
        noise = self.noise / self.largest_value
        kind = "random noise" if self.random else "noise"
        shape = "not smooth" if self.rough else f"natural length {self.length:.1g}"
        shape += ", a kink at the start" if self.kink else ""
        return f"{kind} of {noise:.0e} times the largest value, {shape}, difference step {self.mu:.1g}"


NOTHING_KNOWN = Diagnosis(  # for an arm that finds out for itself
    noise=TINY, random=False, length=1.0, curvature=0.0, start_value=TINY, largest_value=TINY, rough=False, kink=False
)
