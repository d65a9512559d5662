from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.methods.auto.arms.corner_swaps import CornerSwaps
from zerothresh.methods.auto.diagnosis import diagnose


@dataclass(frozen=True)
class Alone(zt.Program):
    """Corner swaps without a race; ``anyway``: even where they leave a problem to long steps."""

    anyway: bool = False

    def search(self, context):
        diagnosis = yield from diagnose(context)
        if self.anyway or CornerSwaps().fits(context, diagnosis):
            yield from CornerSwaps().search(context, diagnosis)


class Linear:
    """Hinges of linear components, whose best sparse points lie at corners; keeps what it is asked."""

    def __init__(self, d=120, n=6, seed=0, unit=1.0, offset=0.0, noise=0.0):
        self.rng = np.random.default_rng(seed)
        self.d, self.n, self.unit, self.offset, self.noise = d, n, unit, offset, noise
        self.slopes = self.rng.normal(size=d) + 0.3 * self.rng.normal(size=(n, d))
        self.asked = []

    def values(self, points, components):
        self.asked.append(points.copy())
        values = 5.0 + (points * self.slopes[components]).sum(axis=1)
        return self.unit * (values + self.noise * self.rng.normal(size=values.size)) + self.offset

    def F(self, x):
        return 5.0 + float(self.slopes.mean(axis=0) @ x)


def solve(problem, k, budget, x0=None, **told):
    return zt.minimize(problem, x0, k, budget=budget, method=Alone(), seed=3, progress=False, **told)


def test_corner_swaps_fit_finite_bounds_only():
    problem = Linear()
    found = solve(problem, 4, 300, bounds=(-1.0, np.inf))
    assert not found.x.any()
    assert solve(problem, 4, 300, bounds=(-1.0, 2.0)).x.any()


def test_corner_swaps_find_most_of_what_the_best_corner_gives():
    problem = Linear()
    found = solve(problem, 5, 3000, bounds=(-1.0, 1.0))
    best = np.sort(np.abs(problem.slopes.mean(axis=0)))[-5:].sum()
    assert 5.0 - problem.F(found.x) > 0.85 * best
    assert np.count_nonzero(found.x) <= 5


@pytest.mark.parametrize("low", [0.0, -0.5])
def test_corner_swaps_stay_in_the_box_and_keep_the_constraint(low):
    problem = Linear(d=30)
    low, high = np.full(30, low), np.linspace(1.0, 2.0, 30)
    groups = np.repeat(np.arange(15), 2)
    told = {"bounds": (low, high), "include": [4], "exclude": [7, 20], "groups": groups}
    found = solve(problem, 3, 900, **told)
    points = np.concatenate(problem.asked)
    assert (points >= low).all()
    assert (points <= high).all()
    assert not points[:, [7, 20]].any()
    assert np.union1d(groups[found.support], groups[[4]]).size <= 3
    assert problem.F(found.x) < 5.0


def test_corner_swaps_ask_for_the_same_points_in_any_unit_and_at_any_offset():
    plain, other = Linear(), Linear(unit=8.0, offset=-64.0)
    for problem in (plain, other):
        solve(problem, 5, 800, bounds=(-1.0, 1.0))
    skip = 6  # rounds of the diagnosis, which is not at issue here
    mine, theirs = (np.concatenate(problem.asked[skip:]) for problem in (plain, other))
    assert np.array_equal(mine[-300:], theirs[-300:])


def test_corner_swaps_go_inside_the_box_when_corners_help_no_more():
    def bowl(x):
        return float(((x[:3] - (0.3, -0.55, 0.2)) ** 2).sum() + (x[3:] ** 2).sum())

    told = {"bounds": (-1, 1), "seed": 1, "progress": False}
    found = zt.minimize(bowl, np.zeros(8), 3, budget=3000, method=Alone(anyway=True), **told)
    assert bowl(found.x) < 1e-3


def test_corner_swaps_are_not_misled_by_noise_and_never_leave_a_good_start():
    problem = Linear(noise=0.5)
    found = solve(problem, 5, 6000, bounds=(-1.0, 1.0))
    assert problem.F(found.x) < 0.0
    order = np.argsort(-np.abs(problem.slopes.mean(axis=0)))[:5]
    best = np.zeros(problem.d)
    best[order] = -np.sign(problem.slopes.mean(axis=0)[order])
    quiet = Linear()
    assert quiet.F(solve(quiet, 5, 600, x0=best, bounds=(-1.0, 1.0)).x) == pytest.approx(quiet.F(best))


def test_corner_swaps_use_few_of_many_components_first():
    problem = Linear(n=500)
    found = solve(problem, 5, 1500, bounds=(-1.0, 1.0))
    assert problem.F(found.x) < 4.0  # although F itself was never seen


def test_corner_swaps_fool_a_classifier_within_sixty_values_of_the_loss():
    from zerothresh.attack import Universal
    from zerothresh.attack.images import stack_images
    from zerothresh.reproduce.cifar.experiment import small_net

    net, table = small_net(), zt.datasets.load_cifar10_paper("bird")
    images = table.data.astype(np.float32) / 255 - 0.5
    problem = Universal(net, stack_images(images, net, layout="NHWC", bounds=(-0.5, 0.5)), table.target)
    rates = []
    for seed in range(3):
        found = zt.minimize(problem, None, 60, budget=600, method=Alone(), bounds=(-1, 1), seed=seed, progress=False)
        rates.append(np.mean(problem.predictions(found.x) != table.target))
    assert np.mean(rates) >= 0.9


@pytest.mark.parametrize(("budget", "left"), [(3000, True), (30, False)])
def test_corner_swaps_leave_a_problem_to_long_steps_where_every_coordinate_can_be_tried(budget, left):
    def bowl(x):
        return float(((x[:3] - (0.3, -0.55, 0.2)) ** 2).sum() + (x[3:] ** 2).sum())

    told = {"bounds": (-1, 1), "seed": 1, "progress": False}
    found = zt.minimize(bowl, np.zeros(20), 3, budget=budget, method=Alone(), **told)
    assert (found.nfev < budget) == left
