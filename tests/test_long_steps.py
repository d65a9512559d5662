from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.methods.auto.arms.long_steps import LongSteps
from zerothresh.methods.auto.diagnosis import diagnose
from zerothresh.methods.auto.moves.long_moves import LongMoves


@dataclass(frozen=True)
class Alone(zt.Program):
    """Long steps without a race."""

    def search(self, context):
        diagnosis = yield from diagnose(context)
        yield from LongSteps().search(context, diagnosis)


class Plateau:
    """Coordinates count only beyond half of their range; others do harm there. F is constant near 0."""

    n = 1

    def __init__(self, d=200, true=6, unit=1.0, offset=0.0, noise=0.0, harm=0.03):
        rng = np.random.default_rng(0)
        self.d, self.unit, self.offset, self.noise, self.rng = d, unit, offset, noise, rng
        self.true = np.sort(rng.choice(d, true, replace=False))
        self.worth = -harm * rng.random(d)
        self.worth[self.true] = rng.uniform(1.0, 2.0, true)
        self.asked = []

    def F(self, x):
        return 20.0 - float(np.clip(np.abs(x) - 1.0, 0.0, None) @ self.worth)

    def values(self, points, components):
        self.asked.append(points.copy())
        values = np.array([self.F(point) for point in points])
        return self.unit * (values + self.noise * self.rng.normal(size=values.size)) + self.offset


def solve(problem, k, budget, x0=None, **told):
    return zt.minimize(problem, x0, k, budget=budget, method=Alone(), seed=2, progress=False, **told)


def test_long_steps_find_what_a_flat_start_hides_in_fewer_calls_than_coordinates():
    problem = Plateau()
    found = solve(problem, 6, 199, bounds=(-2.0, 0.0))
    assert found.support.tolist() == problem.true.tolist()
    assert problem.F(found.x) == pytest.approx(20.0 - problem.worth[problem.true].sum())


def test_long_steps_drop_what_is_not_needed_and_fill_its_place():
    def decoyed(x):  # coordinate 0 looks best at first, and is worth little once 1 and 2 are there
        both = int(x[1] < -1) + int(x[2] < -1)
        return 10.0 - (1.5, 0.6, 0.1)[both] * (x[0] < -1) - both - 0.5 * (x[3] < -1)

    found = zt.minimize(decoyed, np.zeros(40), 3, budget=600, method=Alone(), bounds=(-2, 0), seed=0, progress=False)
    assert found.support.tolist() == [1, 2, 3]


def test_long_steps_stay_in_the_box_and_keep_included_and_excluded_coordinates():
    problem = Plateau()
    low, high = np.full(200, -2.0), np.linspace(0.0, 0.5, 200)
    inside, outside = int(np.setdiff1d(np.arange(200), problem.true)[0]), int(problem.true[0])
    found = solve(problem, 4, 500, bounds=(low, high), include=[inside], exclude=[outside])
    points = np.concatenate(problem.asked)
    assert (points >= low).all()
    assert (points <= high).all()
    assert not points[:, outside].any()
    assert np.union1d(found.support, [inside]).size <= 4
    assert set(found.support.tolist()) - {inside} <= set(problem.true.tolist())
    assert problem.F(found.x) < 17.0


def test_long_steps_ask_for_the_same_points_in_any_unit_and_at_any_offset():
    plain, other = Plateau(), Plateau(unit=4.0, offset=-256.0)
    for problem in (plain, other):
        solve(problem, 6, 400, bounds=(-2.0, 0.0))
    mine, theirs = (np.concatenate(problem.asked) for problem in (plain, other))
    assert np.allclose(mine, theirs, rtol=0, atol=1e-6)  # the last digits of the diagnosis differ by rounding


def test_long_steps_take_groups_where_every_coordinate_may_change():
    problem = Plateau(d=128, true=100)
    found = solve(problem, 128, 400, bounds=(-2.0, 2.0))
    best = 20.0 - problem.worth[problem.true].sum()
    assert (20.0 - problem.F(found.x)) / (20.0 - best) > 0.9


def test_long_steps_find_the_support_under_noise():
    problem = Plateau(noise=0.1)
    found = solve(problem, 6, 4000, bounds=(-2.0, 0.0))
    assert set(problem.true.tolist()) == set(found.support.tolist())


def test_long_steps_are_as_good_from_a_good_start_as_from_a_cold_one():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(80, 20)), np.zeros(20)
    w[:4] = (1.0, -0.8, 0.6, 1.2)
    order = np.argsort(X @ w + rng.normal(size=80))
    low, high = X[order[:40]], X[order[40:]]

    def disorder(x):  # 1 - AUC: piecewise constant, and the length of x does not matter
        difference = (high @ x)[:, None] - (low @ x)
        return float(np.mean((difference < 0) + 0.5 * (difference == 0)))

    def run(x0, budget):
        return zt.minimize(disorder, x0, 4, budget=budget, method=Alone(), seed=0, progress=False)

    start = run(np.zeros(20), 500)
    cold, warm = run(np.zeros(20), 1500), run(start.x, 1500)
    assert warm.fun <= start.fun
    assert warm.fun <= cold.fun + 1e-12 or warm.fun < start.fun


class Overfit:
    """Twelve coordinates are worth moving down; of the others, each that is moved does twice as much harm."""

    n = 1

    def __init__(self, d=120, true=12):
        rng = np.random.default_rng(1)
        self.d, self.true = d, np.sort(rng.choice(d, true, replace=False))
        self.worth = np.full(d, -2.0)
        self.worth[self.true] = rng.uniform(0.8, 1.2, true)

    def F(self, x):
        return 20.0 - float(np.clip(-x, 0.0, None) @ self.worth) + float(np.clip(x, 0.0, None).sum())

    def values(self, points, components):
        return np.array([self.F(point) for point in points])


def test_a_table_of_worths_finds_what_groups_hide():
    problem = Overfit()
    found = solve(problem, 12, 400, bounds=(-1.0, 1.0))
    assert found.support.tolist() == problem.true.tolist()


def test_a_fall_within_the_noise_is_none():
    """Otherwise a step that is known, promising and not taken would be tried for ever, without a call."""
    race = SimpleNamespace(noise=0.1, floor=lambda: 1.0, theta=np.zeros(3), active=np.arange(2))
    moves = object.__new__(LongMoves)
    moves.race = race
    tried = moves._try(np.ones(3), np.array([-0.5, -0.7]))
    with pytest.raises(StopIteration) as stop:
        next(tried)
    assert stop.value.value == 0.0
    assert not race.theta.any()
