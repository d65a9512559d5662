"""Oracles for random values and for kinks, and the choice of the oracle that fits a diagnosis."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.findings import Diagnosis
from zerothresh.methods.auto.models.noise_level import growth_of_noise
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.oracle import ExactOracle, Oracle
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class NoisyOracle(Oracle):
    """For smooth functions whose values are random.

    Attributes
    ----------
    factor: float, difference steps in units of the diagnosed one.
    shortenings: int, how often in a row they were shortened.
    forward: bool, whether differences are forward, corrected by the diagnosed curvature: they take half the calls, and
        are good enough until steps lead no further.
    """

    factor: float = 1.0
    shortenings: int = 0
    forward: bool = False

    @property
    def central(self) -> bool:
        return not self.forward

    def _one_gradient(
        self, theta: Array, C: Indices, components: Indices, base: Array
    ) -> Generator[Probes, Answers, Array]:
        slopes = yield from super()._one_gradient(theta, C, components, base)
        return slopes - 0.5 * self.diagnosis.curvature * self.step(theta) if self.forward else slopes

    @property
    def reads_remembered(self) -> bool:
        return self.repeats == 1 and self.factor == 1.0 and not self.forward

    def step(self, theta: Array) -> float:
        longest = min(DESCENT.longest_share_of_box * self.diagnosis.room, self.diagnosis.quiet)
        return min(max(self.factor * self.diagnosis.mu, DESCENT.rounding_step * float(np.abs(theta).max())), longest)

    @property
    def may_be_longer(self) -> bool:
        """Whether a difference step may still be lengthened."""
        longest = min(DESCENT.longest_share_of_box * self.diagnosis.room, self.diagnosis.quiet)
        return self.factor <= DESCENT.longest_noisy_step and self.factor * self.diagnosis.mu < longest

    def longer(self, theta: Array, C: Indices) -> Generator[Probes, Answers, Self]:
        """Return an oracle whose differences stand out of the noise more clearly, if there is one.

        A few values at the end of one of the longer steps tell whether noise grows on the way.
        """
        if self.forward:
            return self.both_sides()
        longer = replace(self, factor=DESCENT.lengthen * self.factor)
        step, far = longer.step(theta), theta.copy()
        far[C[self.context.rng.integers(C.size, 1)[0]]] += step
        _, noise = yield from self.repeated(self.context.inside(far))
        growth = max(growth_of_noise(self.diagnosis.noise, noise, square(step)), self.diagnosis.noise_growth)
        return replace(longer, diagnosis=replace(self.diagnosis, noise_growth=growth))

    def both_sides(self) -> Self:
        """Return an oracle with central differences."""
        return replace(self, factor=1.0, forward=False)

    def finer(self, signal_to_noise: float) -> Oracle | None:
        if self.forward:
            return self.both_sides()
        if not (signal_to_noise > DESCENT.strong_signal and self.shortenings < DESCENT.most_shortenings):
            return None
        return replace(self, factor=self.factor / DESCENT.shorten, shortenings=self.shortenings + 1)

    def after_progress(self) -> Self:
        """Return an oracle that may be shortened anew."""
        return replace(self, shortenings=0)


@dataclass(frozen=True)
class KinkedOracle(Oracle):
    """For functions with kinks or jumps: central differences over steps in proportion to the way from the start.

    Attributes
    ----------
    share: float, the difference step as a share of the largest change of a coordinate since the start.
    """

    share: float = DESCENT.rough_step

    @property
    def central(self) -> bool:
        return True

    @property
    def coarse(self) -> bool:
        return True

    @property
    def reads_remembered(self) -> bool:
        return False

    def step(self, theta: Array) -> float:
        return self.share * travelled(self, theta)

    def finer(self, signal_to_noise: float) -> Oracle | None:
        return replace(self, share=self.share / DESCENT.shorten_kinked) if self.share > DESCENT.finest_share else None

    def at_first(self) -> Oracle:
        return replace(self, share=first_share(self.diagnosis))


def travelled(oracle: Oracle, theta: Array) -> float:
    """Return the largest change of a coordinate since the start, or the natural length at the start itself."""
    diagnosis = oracle.diagnosis
    longest = DESCENT.longest_share_of_box * diagnosis.room
    return min(float(np.abs(theta - oracle.context.theta0).max()) or diagnosis.length, longest)


def oracle_for(context: Context, diagnosis: Diagnosis, order: Indices) -> Oracle:
    """Return the oracle that fits what the first calls found."""
    if diagnosis.kink or diagnosis.rough:
        return KinkedOracle(context, diagnosis, order, share=first_share(diagnosis))
    if not diagnosis.random:
        return ExactOracle(context, diagnosis, order)
    forward = context.box is None and diagnosis.estimator is None and diagnosis.curvature > 0
    forward = forward and diagnosis.relative_noise < DESCENT.forward_noise
    return NoisyOracle(context, diagnosis, order, factor=DESCENT.forward_step if forward else 1.0, forward=forward)


def first_share(diagnosis: Diagnosis) -> float:
    """Return the first share of a kinked oracle."""
    return DESCENT.kink_step if diagnosis.kink else DESCENT.rough_step


def for_kinks(oracle: Oracle) -> KinkedOracle:
    """Return an oracle for a function that turned out to have kinks."""
    return KinkedOracle(oracle.context, oracle.diagnosis, oracle.order, oracle.m, oracle.repeats)


def component_order(context: Context) -> Indices:
    """Return all components in random order, but first those whose gradients at the start are known."""
    known = np.array(list(context.remembered_gradients()), dtype=np.int64)
    order = context.rng.subset(context.n, context.n)
    return np.concatenate([known, order[~np.isin(order, known)]]) if known.size else order


def few_components(context: Context) -> int:
    """Return with how many components a descent from the start begins, if the budget is not small."""
    return min(context.n, max(DESCENT.least_components, math.ceil(context.n / DESCENT.first_share)))
