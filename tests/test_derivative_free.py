"""Derivative-free moves on plateaus, and the calls that a descent reserves for the components that judge it."""

from __future__ import annotations

import numpy as np

import zerothresh as zt
from zerothresh.methods.auto.arms.descent import Descent
from zerothresh.methods.auto.diagnosis import diagnose
from zerothresh.methods.auto.moves.derivative_free import evolve_on_support, swap_coordinate
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context


class OnePart(Program):
    """One part of the search, from a support with one wrong coordinate."""

    def __init__(self, part, first=2.0) -> None:
        self.part, self.first = part, first

    def search(self, context: Context) -> Asks:
        diagnosis = yield from diagnose(context)
        descent = Descent(context, diagnosis)
        yield from descent.use_components(context.n)
        at = descent.at
        start = np.array([0.0, self.first, 0.3, 0.0, 0.0, 0.0])
        at.accept(start, (yield from at.values_at(start)))
        yield from self.part(at)


def stairs(x):
    return float(np.floor(4 * np.abs(x - [0, 2, 0, 0, 1, 0]).sum()))


def test_a_swap_replaces_the_smallest_coordinate_by_the_right_one():
    for seed in range(5):
        found = zt.minimize(stairs, 6, 2, budget=200, method=OnePart(lambda at: swap_coordinate(at, 0)), seed=seed)
        assert np.flatnonzero(found.x_last).tolist() == [
            1,
            4,
        ]  # the iterate; the result may be any point that was evaluated
        assert found.fun < stairs(np.array([0.0, 2.0, 0.3, 0.0, 0.0, 0.0]))


def test_random_steps_stay_on_the_support_and_never_raise_f():
    for seed in range(5):
        found = zt.minimize(stairs, 6, 2, budget=300, method=OnePart(evolve_on_support, first=4.0), seed=seed)
        assert np.flatnonzero(found.x_last).tolist() == [1, 2]
        assert stairs(found.x_last) <= 6  # from 13; the fifth coordinate, outside the support, accounts for 4


def test_descent_reserves_calls_for_the_components_of_the_next_level():
    reserved = []

    class Levels(Program):
        def search(self, context: Context) -> Asks:
            diagnosis = yield from diagnose(context)
            descent = Descent(context, diagnosis)
            for m in (2, 6, 20):
                yield from descent.use_components(m)
                reserved.append(context.left - descent.at.calls_available)

    problem = zt.problems.ridge(n=20, d=6, seed=0)
    zt.minimize(problem, None, 2, budget=500, method=Levels(), seed=0)
    assert reserved == [
        2 * 4,
        2 * 14,
        0,
    ]  # two values for each new component of the next level: at the point and at the start
