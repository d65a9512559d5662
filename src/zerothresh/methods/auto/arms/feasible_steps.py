"""Feasible steps: transfers between members of the support, swaps and random steps within a constraint, by values."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.feasible_set import FeasibleSet
from zerothresh.methods.auto.arm import Ended
from zerothresh.methods.auto.findings import Diagnosis
from zerothresh.methods.auto.moves.feasible_probes import typical_size
from zerothresh.methods.auto.settings.constraint_settings import FEASIBLE_STEPS
from zerothresh.methods.auto.settings.support_search_settings import RANDOM_STEPS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class FeasibleSteps:
    """A (1+1) search among feasible points, which needs neither slopes nor a smooth function.

    A trial moves a part of one member of the support to another one, lets a place (a coordinate or a group) leave for
    another one, or changes a few coordinates at random; the projection makes it feasible. Lengths follow successes.
    """

    name: ClassVar[str] = "feasible steps"
    decisive: ClassVar[bool] = False

    def fits(self, context: Context, diagnosis: Diagnosis) -> bool:
        """Whether there is a constraint beyond bounds whose coordinates are continuous."""
        further = context.constraint.further
        return further is not None and not further.discrete

    def forecast(self, context: Context, diagnosis: Diagnosis) -> int:
        """Return the calls of a few values of F for each place of the support."""
        return FEASIBLE_STEPS.values_per_place * context.n * context.k

    def search(self, context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, Ended]:
        """Step until the budget is spent, or has been raised."""
        further = context.constraint.further
        assert further is not None
        context.follows = True
        theta, budget = context.theta, context.left + context.used
        size = typical_size(further, theta)
        length = FEASIBLE_STEPS.first_length * size
        if theta is context.theta0:
            F = float((yield from context.starts(context.everything)).mean())
        else:
            F = float((yield from context.values([theta])).mean())
        context.move(theta, F)
        margin = RANDOM_STEPS.noise_factor * diagnosis.noise / np.sqrt(context.n) if diagnosis.random else 0.0
        while context.left + context.used <= budget:
            run = context.parent
            if run is not None and run.fun is not None and run.fun < F - margin:
                context.given += F - run.fun
                theta, F = run.theta, run.fun
                context.move(theta, F)
            trial, scaled = _trial(context, further, theta, length, size)
            value = float((yield from context.values([trial])).mean())
            success = value < F - margin
            if scaled:
                length *= RANDOM_STEPS.growth if success else RANDOM_STEPS.growth**-RANDOM_STEPS.failures
                if length < FEASIBLE_STEPS.shortest_length * size:
                    length = FEASIBLE_STEPS.first_length * size
            if success:
                theta, F = trial, value
                context.move(theta, F)
        return Ended("The budget was raised.")


def _trial(context: Context, further: FeasibleSet, theta: Array, length: float, size: float) -> tuple[Array, bool]:
    """Return a feasible point beside theta, and whether the length decided how far it is."""
    rng, places = context.rng, further.places
    taken = places.taken(theta)
    free = np.flatnonzero(further.high > further.low)
    for attempt in range(FEASIBLE_STEPS.tries):
        kind = float(rng.uniform(1)[0])
        support, point, scaled = places.members(taken), theta.copy(), True
        if kind < FEASIBLE_STEPS.transfer_share and support.size:
            moved = support[rng.subset(support.size, min(2, support.size))]
            step = length * float(rng.normal(1)[0])
            point[moved[0]] += step
            if moved.size > 1:
                point[moved[1]] -= step
            trial = further.project_on(point, support)
        elif kind < FEASIBLE_STEPS.transfer_share + FEASIBLE_STEPS.swap_share:
            trial, scaled = _swapped(context, further, theta, taken, free, size), False
        else:
            moved = free[rng.subset(free.size, min(free.size, max(2, support.size)))]
            grown = length * 2.0 ** (attempt / 2)
            point[moved] += grown * rng.normal(moved.size)
            trial = further.project(point)
        if trial is not None and not np.array_equal(trial, theta) and further.holds(trial):
            return trial, scaled
    return further.project(size * rng.normal(theta.size)), False


def _swapped(
    context: Context, further: FeasibleSet, theta: Array, taken: Indices, free: Indices, size: float
) -> Array | None:
    """Let a place leave for another one that takes over what it had, in a random order; None if there is no such."""
    rng, places = context.rng, further.places
    others = np.setdiff1d(places.unit[free], taken)
    leaving = np.setdiff1d(taken, places.forced)
    if leaving.size and taken.size > 1 and float(rng.uniform(1)[0]) < FEASIBLE_STEPS.drop_share:
        kept = np.setdiff1d(taken, leaving[rng.subset(leaving.size, 1)])
        return further.project_on(theta, places.members(kept))
    if not others.size:
        return None
    new = others[rng.subset(others.size, 1)]
    point, kept = theta.copy(), taken
    had = size * rng.uniform(1)
    if leaving.size and (taken.size >= places.k or float(rng.uniform(1)[0]) < 0.5):
        gone = leaving[rng.subset(leaving.size, 1)]
        members = places.members(gone)
        had = theta[members]
        point[members] = 0.0
        kept = np.setdiff1d(taken, gone)
    target = places.members(new)
    drawn = np.resize(had, target.size)[rng.subset(target.size, target.size)]
    signed = further.low[target] < 0
    flips = np.where(signed & (rng.uniform(target.size) < 0.5), -1.0, 1.0)
    point[target] = drawn * flips
    return further.project_on(point, places.members(np.union1d(kept, new)))
