from __future__ import annotations

import numpy as np
import pytest
from attack_victims import victims

import zerothresh as zt
from zerothresh.attack import FewPixel, universal


def test_few_pixel_looks_at_corners_only_and_keeps_whole_groups():
    seen = []

    class Sphere:
        d, n = 12, 5

        def values(self, points, components):
            seen.extend(points)
            return ((points - 0.3) ** 2).sum(axis=1) + components

    low, high = np.full(12, -1.0), np.full(12, 2.0)
    low[:3] = 0.0
    groups = np.repeat(np.arange(4), 3)
    found = zt.minimize(Sphere(), None, 2, budget=300, method=FewPixel(), bounds=(low, high), groups=groups, seed=0)
    assert all(np.isin(point, (-1.0, 0.0, 2.0)).all() for point in seen)
    assert all((point[:3] >= 0).all() for point in seen)
    assert np.unique(groups[found.support]).size <= 2
    with pytest.raises(ValueError, match="finite bounds"):
        zt.minimize(Sphere(), None, 2, budget=300, method=FewPixel(), seed=0)
    for wrong in ({"candidates": 0}, {"first": 0}, {"passes": 0.5}, {"share": 0.0}, {"share": 1.5}, {"grid": (8, 8)}):
        with pytest.raises(ValueError, match="must be"):
            FewPixel(**wrong)


def test_few_pixel_stays_at_corners_that_differ_and_refuses_a_grid_that_does_not_fit():
    seen, rng = [], np.random.default_rng(0)
    low, high = -rng.uniform(1, 2, size=64), rng.uniform(1, 2, size=64)

    def bowl(points, components):
        seen.extend(points)
        return 9 + points @ np.sin(np.arange(64)) + components

    told = {"n": 3, "vectorized": True, "budget": 900, "bounds": (low, high), "seed": 0}
    zt.minimize(bowl, 64, 2, method=FewPixel((8, 8, 8, 1)), **told)
    points = np.array(seen)
    assert ((points == 0) | (points == low) | (points == high)).all()
    with pytest.raises(ValueError, match="reaches beyond the 64 coordinates"):
        zt.minimize(bowl, 64, 2, method=FewPixel((9, 8, 8, 1)), **told)


def test_few_pixel_finds_the_places_that_matter_and_stops_at_zero():
    class Needles:
        d, n = 200, 8

        def values(self, points, components):
            return np.maximum(3.0 - points[:, 10] + points[:, 77] - points[:, 150], 0) * (1 + components % 3)

    found = zt.minimize(Needles(), None, 3, budget=60_000, method=FewPixel(), bounds=(-1, 1), seed=0)
    assert found.fun == 0
    assert found.support.tolist() == [10, 77, 150]
    assert found.status is zt.Status.CONVERGED


def test_few_pixel_fits_places_that_are_all_held():
    model, x, y = victims()
    found = universal(model, x, y, k=30, budget=300, bounds=(-0.5, 0.5), seed=0)
    assert found.pixels == 30


class Recorder:
    """A problem that keeps what it was asked, of 5 x 5 pixels with three channels first; nothing solves it."""

    d = 75

    def __init__(self, n=8, flat=False):
        self.n, self.flat, self.batches = n, flat, []

    def values(self, points, components):
        self.batches.append((points.copy(), components.copy()))
        return np.ones(len(points)) if self.flat else 2.0 + np.cos(points @ np.arange(75) + components)

    def run(self, budget, **arguments):
        groups = np.tile(np.arange(25), 3)
        method = FewPixel((5, 5, 5, 1), **arguments)
        return zt.minimize(self, None, 1, budget=budget, method=method, bounds=(-1, 1), groups=groups, seed=5)


def test_few_pixel_turns_a_colour_or_moves_by_one_or_swaps():
    problem = Recorder(flat=True)  # no candidate is better: all are made of the start
    found = problem.run(3000)
    asked = np.unique(np.concatenate([points for points, _ in problem.batches]), axis=0).reshape(-1, 3, 25)
    assert ((np.abs(asked).sum(axis=1) == 3).sum(axis=1) == 1).all()  # one whole pixel each
    start, at = found.x.reshape(3, 25), int(found.support[0])
    spots = np.abs(asked).sum(axis=1).argmax(axis=1)
    turned = asked[spots == at][:, :, at]
    assert sorted(np.abs(turned - start[:, at]).sum(axis=1).tolist()) == [0, 2, 2, 2]  # itself, and each colour turned
    near = np.maximum(abs(spots // 5 - at // 5), abs(spots % 5 - at % 5)) == 1
    same = np.array([np.array_equal(image[:, spot], start[:, at]) for image, spot in zip(asked, spots, strict=True)])
    beside = sum(0 <= at // 5 + y < 5 and 0 <= at % 5 + x < 5 for y in (-1, 0, 1) for x in (-1, 0, 1)) - 1
    assert (near & same).sum() == beside  # all neighbours were tried, none across an edge
    assert len(asked) > 100  # of the 200 pixels and colours


def test_few_pixel_does_not_look_at_the_budget():
    short, long = Recorder(), Recorder()
    short.run(400), long.run(4000)
    for (points, components), (others, more) in zip(short.batches[:-8], long.batches, strict=False):
        assert np.array_equal(points, others)
        assert np.array_equal(components, more)


def test_few_pixel_asks_more_at_once_when_races_fail():
    problem = Recorder()
    problem.run(6000)
    sizes = [len(points) for points, _ in problem.batches]
    assert max(sizes[:4]) <= 8
    assert max(sizes) == 128  # sixteen races of four, on two components


def test_few_pixel_uses_few_of_many_components_first():
    problem = Recorder(n=100)
    found = problem.run(20_000, passes=20)
    used, counts = set(), []
    for _, components in problem.batches:
        used |= set(components.tolist())
        counts.append(len(used))
    assert sorted(set(counts)) == [16, 32, 64, 100]
    began = [counts.index(count) for count in (16, 32, 64, 100)]
    asked = np.cumsum([len(components) for _, components in problem.batches])
    for at, after, count in zip(began, began[1:], (16, 32, 64), strict=False):
        assert 19 <= (asked[after - 1] - asked[at]) / count < 40  # calls of each, up to the end of a race
    whole = problem.values(np.repeat(found.x[None], 100, axis=0), np.arange(100)).mean()
    assert found.fun == pytest.approx(whole)  # F over all, not over those in use


def test_few_pixel_decides_the_same_in_any_unit_and_at_any_offset():
    asked = []
    for unit, offset in ((1.0, 0.0), (4.0, 0.0), (0.5, 1.0)):
        points = []

        def hinges(rows, components, unit=unit, offset=offset, points=points):
            points.extend(rows.copy())
            margins = np.round(64 * (2.0 + rows @ np.sin(np.arange(60)) + 0.5 * components)) / 64
            return unit * np.maximum(margins, 0.0) + offset

        told = {"n": 6, "vectorized": True, "budget": 400, "bounds": (-1, 1), "seed": 0, "progress": False}
        zt.minimize(hinges, 60, 2, method=FewPixel(), **told)
        asked.append(np.array(points))
    assert all(np.array_equal(asked[0], others[: len(asked[0])]) for others in asked[1:])
