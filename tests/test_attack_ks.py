"""Attacks for several k in one search: what is counted, what is shared, what is promised, and what survives a kill."""

from __future__ import annotations

import json
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from attack_victims import NET, command, images, victims
from killing import die, killed

import zerothresh as zt
from zerothresh.attack import AttackPath, FewPixel, universal
from zerothresh.attack.few_pixel_path import FewPixelPath
from zerothresh.runs import inspection

CALL = {"bounds": (-0.5, 0.5), "seed": 1}


@pytest.mark.parametrize("granularity", ["pixel", "channel"])
@pytest.mark.parametrize("budget", [90, 400, 2000])
def test_k_the_range_and_the_budget_hold_for_every_k(granularity, budget):
    model, x, y = victims()
    found = universal(model, x, y, ks=[4, 1, 2, 9], budget=budget, granularity=granularity, **CALL)
    assert isinstance(found, AttackPath)
    assert model.seen == found.queries <= budget  # the evaluation of every perturbation included
    assert found.ks == (1, 2, 4, 9)
    for result in found:
        changed = (result.perturbation != 0).any(axis=2) if granularity == "pixel" else result.perturbation != 0
        assert changed.sum() <= result.k
        assert abs(result.images).max() <= 0.5
        assert np.array_equal(result.after, model(result.images).argmax(axis=1))
    assert all(low <= high for low, high in pairwise(found.success_rates))
    assert set(found.promises().values()) == {True}
    assert found.columns()["fooled"] == [int(result.fooled.sum()) for result in found]


def test_the_smallest_perturbation_that_fools_all_serves_larger_k_without_more_queries():
    def two_matter(shown):  # the classifier looks at two pixels only
        lead = 1.0 - shown[:, 1, 1].sum(axis=1) - shown[:, 4, 3].sum(axis=1)
        return np.stack([lead, -lead], axis=1)

    x = np.zeros((8, 6, 5, 3), np.float32)
    found = universal(two_matter, x, np.zeros(8, int), ks=[1, 2, 3, 6], budget=6000, **CALL)
    assert found.success_rates == [1.0] * 4 if found.ks[0] == found.best.k else [0.0, 1.0, 1.0, 1.0]
    assert found.smallest is found[found.best.k]
    assert all(np.array_equal(found[k].theta, found.smallest.theta) for k in found.ks if k >= found.smallest.k)
    assert "fool all 8 images" in found.summary
    assert "*" in repr(found)
    assert "<table>" in found._repr_html_()
    with pytest.raises(KeyError, match="it has 1, 2, 3, 6"):
        found[5]


def test_a_search_for_a_larger_k_pays_nothing_for_what_is_known():
    calls = []

    class Flat:  # nothing is better than anything else
        d, n = 40, 6

        def values(self, points, components):
            calls.extend(points.copy())
            return np.ones(len(points))

    method = FewPixelPath((2, 5), FewPixel())
    zt.minimize(Flat(), None, 5, budget=400, method=method, bounds=(-1, 1), seed=0)
    sizes = np.count_nonzero(calls, axis=1)
    assert set(sizes[:190].tolist()) == {2}  # half of the calls for each, but for those of a round that does not fit
    assert set(sizes[200:].tolist()) <= {2, 3, 4, 5}
    assert 385 < len(calls) <= 400
    assert np.array_equal(method.points[2], method.points[5])
    start = calls[0]
    assert not any(np.array_equal(point, start) for point in calls[6:])  # its six values are asked for once


def test_a_path_of_one_k_is_the_attack_for_it():
    model, x, y = victims()
    alone = universal(model, x, y, k=3, budget=700, **CALL)
    path = universal(model, x, y, ks=[3], budget=700, **CALL)
    assert np.array_equal(path[3].theta, alone.theta)


def test_a_killed_path_goes_on_and_pays_for_nothing_twice(tmp_path):
    model, x, y = victims(seed=5)
    told = {"ks": [1, 2, 4], "budget": 1500, **CALL}
    whole = universal(model, x, y, **told)

    def until(limit):
        def fragile(shown):
            scores = model(shown)
            if model.seen > limit:
                die()
            return scores

        return fragile

    for limit in (100, 700, 1480):
        model.seen, run = 0, tmp_path / str(limit)
        attack = partial(universal, labels=y, images=x, **told, run=run)
        was_killed, seen = killed(partial(attack, until(limit)), lambda: model.seen)
        assert was_killed
        model.seen = 0
        found = attack(until(10**9))
        assert found.queries == whole.queries
        assert seen + model.seen <= whole.queries + max(model.batches)  # only what was under way is asked for again
        for k in found.ks:
            assert np.array_equal(found[k].theta, whole[k].theta)
        model.seen = 0
        again = attack(until(10**9))  # a path that has ended costs nothing
        assert model.seen == 0
        assert [result.theta.tolist() for result in again] == [result.theta.tolist() for result in whole]
    assert inspection.inspect(tmp_path / "100").state == "ended"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ks": [1, 2], "k": 3}, "exclude each other"),
        ({}, "k must be"),
        ({"ks": []}, "ks is empty"),
        ({"ks": 5}, "several whole numbers"),
        ({"ks": [0, 2]}, "each k must be"),
        ({"ks": [1, 2], "attack": "auto"}, "attack='best' alone"),
        ({"ks": [1, 2, 3], "budget": 48}, "36 for the 3 evaluations after it"),
    ],
)
def test_what_cannot_be_is_refused_before_the_first_query(arguments, message):
    model, x, y = victims()
    with pytest.raises(ValueError, match=message):
        universal(model, x, y, **{"budget": 400, **CALL, **arguments})
    assert model.seen == 0


def test_images_that_are_all_wrong_have_a_path_without_a_search():
    model, x, y = victims()
    found = universal(model, x, (y + 1) % 4, ks=[1, 2], budget=300, **CALL)
    assert found.queries == 12
    assert found.smallest is None
    assert np.isnan(found.success_rates).all()
    assert "the classifier gets no image right" in repr(found)


class Colours:
    """Images of 8 x 8 pixels with three channels; components fall only where whole pixels are white, or single ones."""

    d, n = 192, 10

    def __init__(self, whole, first):
        self.whole, self.first = whole, first
        self.places = np.random.default_rng(3).choice(64, size=12, replace=False)

    def values(self, points, components):
        shown = points.reshape(-1, 3, 64).transpose(0, 2, 1) if self.first else points.reshape(-1, 64, 3)
        white = (shown > 0).all(axis=2) if self.whole else (shown[:, :, 0] > 0)
        hits = white[:, self.places] @ np.ones(12)
        return np.maximum(3.0 + 0.3 * components - hits, 0.0)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_whole_pixels_and_single_colours_are_raced_and_neither_is_far_behind(whole, first):
    problem = Colours(whole, first)
    grid = (8, 8, 8, 1) if first else (8, 8, 24, 3)
    groups = np.tile(np.arange(64), 3) if first else np.repeat(np.arange(64), 3)

    def mean(method, k, **arguments):
        told = {"budget": 3000, "bounds": (-1, 1), "progress": False, **arguments}
        return np.mean([zt.minimize(problem, None, k, method=method, seed=s, **told).nfev for s in range(6)])

    single, pixels = mean(FewPixel(grid, mixed=False), 24), mean(FewPixel(grid), 8, groups=groups)
    mixed = mean(FewPixel(grid), 24)
    assert mixed < max(single, pixels)
    assert mixed < 2 * min(single, pixels)


def test_candidates_of_both_kinds_have_at_most_k_colours_and_some_are_whole_pixels():
    class Seen(Colours):
        seen = np.empty((0, 192))

        def values(self, points, components):
            self.seen = np.concatenate([self.seen, points])
            return super().values(points, components)

    problem = Seen(True, True)
    zt.minimize(problem, None, 7, budget=1500, method=FewPixel((8, 8, 8, 1)), bounds=(-1, 1), seed=0)
    assert (np.count_nonzero(problem.seen, axis=1) == 7).all()
    assert np.isin(problem.seen, (-1.0, 0.0, 1.0)).all()
    full = (problem.seen.reshape(-1, 3, 64) != 0).all(axis=1).sum(axis=1)
    assert set(full.tolist()) >= {0, 1, 2}


def test_the_command_writes_a_report_with_the_curve(tmp_path):
    pytest.importorskip("onnxruntime")
    table = zt.datasets.load_cifar10_paper("ship")
    np.savez(tmp_path / "x.npz", images=table.data / 255.0 - 0.5, labels=table.target)
    told = ("--model", NET, "--images", tmp_path / "x.npz", "--budget", 500, "--out", tmp_path / "report")
    done = command("attack", *told, "--ks", "1,5,20")
    assert done.exit_code == 0, done.output
    assert "success rate" in done.output
    numbers = json.loads((tmp_path / "report" / "attack.json").read_text())
    assert [row["k"] for row in numbers["path"]] == numbers["ks"] == [1, 5, 20]
    assert set(numbers["promises"].values()) == {True}
    page = (tmp_path / "report" / "index.html").read_text()
    assert "Success against" in page
    with np.load(tmp_path / "report" / "attack.npz") as arrays:
        assert np.count_nonzero(arrays["perturbation_5"].any(axis=2)) <= 5
    assert (tmp_path / "report" / "path.png").stat().st_size > 1000
    for wrong, said in ((("--ks", "1,2", "--k", 3), "exclude each other"), (("--ks", "few"), "takes whole numbers")):
        refused = command("attack", *told, *wrong)
        assert refused.exit_code == 2
        assert said in refused.output


def test_the_path_runs_on_images_in_use_that_are_few_at_first():
    model, _, _ = victims()
    x = images(60)
    y = model(x).argmax(axis=1)
    model.seen = 0
    found = universal(model, x, y, ks=[2, 6], budget=4000, **CALL)
    assert model.seen == found.queries <= 4000
    assert found.success_rates[1] >= found.success_rates[0] > 0
