"""Plateaus: a swap finds the coordinate that slopes do not show; and descent keeps calls for those who judge it."""

from __future__ import annotations

import numpy as np

import zerothresh as zt
from zerothresh.methods.auto.descent import Descent
from zerothresh.methods.auto.diagnosis import diagnose
from zerothresh.methods.auto.derivative_free import evolve_on_support, swap_coordinate
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.program import Program


class Steps(Program):
    """A part of the search, from a support with one wrong coordinate."""

    def __init__(self, part, first=2.0) -> None:
        self.part, self.first = part, first

    def search(self, context: Context) -> Asks:
        diagnosis = yield from diagnose(context)
        descent = Descent(context, diagnosis)
        yield from descent.use_components(context.n)
        start = np.array([0.0, self.first, 0.3, 0.0, 0.0, 0.0])
        descent.accept(start, (yield from descent.values_at(start)))
        yield from self.part(descent)


def stairs(x):
    return float(np.floor(4 * np.abs(x - [0, 2, 0, 0, 1, 0]).sum()))


def test_a_swap_puts_the_right_coordinate_in_the_place_of_the_smallest():
    for seed in range(5):
        found = zt.minimize(stairs, 6, 2, budget=200, method=Steps(lambda d: swap_coordinate(d, 0)), seed=seed)
        assert np.flatnonzero(found.x_last).tolist() == [1, 4]  # the iterate: any value diagnosis may be the result
        assert found.fun < stairs(np.array([0.0, 2.0, 0.3, 0.0, 0.0, 0.0]))


def test_random_steps_stay_on_the_support_and_never_go_up():
    for seed in range(5):
        found = zt.minimize(stairs, 6, 2, budget=300, method=Steps(evolve_on_support, first=4.0), seed=seed)
        assert np.flatnonzero(found.x_last).tolist() == [1, 2]
        assert stairs(found.x_last) <= 6  # of 13; 4 are left at the fifth coordinate, which is not in the support


def test_descent_keeps_the_calls_of_the_components_that_have_not_been_asked():
    kept = []

    class First(Program):
        def search(self, context: Context) -> Asks:
            diagnosis = yield from diagnose(context)
            descent = Descent(context, diagnosis)
            for m in (2, 6, 20):
                yield from descent.use_components(m)
                kept.append(context.left - descent.calls_available)

    problem = zt.problems.ridge(n=20, d=6, seed=0)
    zt.minimize(problem, None, 2, budget=500, method=First(), seed=0)
    assert kept == [2 * 4, 2 * 14, 0]  # at the point and at the start, of those of the next level
