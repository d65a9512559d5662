from __future__ import annotations

import numpy as np
import pytest
from attack_victims import rounded, victims

import zerothresh as zt
from zerothresh.attack import universal


@pytest.mark.parametrize("granularity", ["pixel", "channel"])
@pytest.mark.parametrize("attack", ["best", "auto", zt.SZOHT(eta=0.01)])
@pytest.mark.parametrize("budget", [100, 333])
def test_k_the_range_and_the_budget_hold_by_the_classifiers_own_count(granularity, attack, budget):
    model, x, y = victims()
    found = universal(
        model, x, y, k=4, budget=budget, granularity=granularity, attack=attack, bounds=(-0.5, 0.5), seed=3
    )
    assert model.seen == found.queries <= budget
    assert found.search.nfev == model.seen - 2 * len(x)
    changed = (found.perturbation != 0).any(axis=2).sum() if granularity == "pixel" else (found.perturbation != 0).sum()
    assert changed <= 4
    assert found.images.min() >= -0.5
    assert found.images.max() <= 0.5
    assert list(found.promises().values()) == [True] * 3
    assert np.array_equal(found.after, model(found.images).argmax(axis=1))
    assert found.success_rate == (found.after != y).mean()


def test_images_that_are_wrong_as_they_are_cost_one_query_and_count_for_nothing():
    model, x, y = victims()
    y[:5] = (y[:5] + 1) % 4
    found = universal(model, x, y, k=2, budget=300, bounds=(-0.5, 0.5), seed=0)
    assert found.right.tolist() == [False] * 5 + [True] * 7
    assert not found.fooled[:5].any()
    assert found.success_rate == found.fooled.sum() / 7
    nothing = universal(model, x[:5], y[:5], k=2, budget=300, bounds=(-0.5, 0.5), seed=0)
    assert nothing.search is None
    assert np.isnan(nothing.success_rate)
    assert nothing.queries == 5
    assert not nothing.perturbation.any()


def test_a_targeted_attack_counts_only_its_target():
    model, x, y = victims()
    found = universal(model, x, y, k=25, budget=3000, bounds=(-0.5, 0.5), targeted=2, seed=0)
    aimed = found.right & (y != 2)
    assert 0 < aimed.sum() < found.right.sum()
    assert np.array_equal(found.fooled, aimed & (found.after == 2))
    assert found.success_rate == found.fooled[aimed].mean() > 0.7  # those of class 2 count for nothing
    own = universal(model, x[y == 2], y[y == 2], k=3, budget=300, bounds=(-0.5, 0.5), targeted=2, seed=0)
    assert np.isnan(own.success_rate)
    assert (own.fooled.sum(), own.ended) == (
        0,
        "all images that the classifier gets right are of the target class already",
    )


def test_the_same_seed_gives_the_same_attack_and_queries_come_in_batches():
    model, x, y = victims()
    one = universal(model, x, y, k=3, budget=500, bounds=(-0.5, 0.5), seed=7)
    calls = len(model.batches)
    two = universal(model, x, y, k=3, budget=500, bounds=(-0.5, 0.5), seed=7)
    assert np.array_equal(one.theta, two.theta)
    assert calls < one.queries / 4


def test_what_the_search_would_refuse_is_refused_before_anything_is_paid():
    model, x, y = victims()
    for wrong, said in [
        ({"k": 31}, "k = 31"),
        ({"attack": "bset"}, "bset"),
        ({"seed": "one"}, "seed"),
        ({"retries": -1}, "retries"),
        ({"on_nan": "retry"}, "needs retries"),
        ({"include": [3]}, "include"),
        ({"typo": 1}, "typo"),
    ]:
        with pytest.raises((ValueError, TypeError), match=said):
            universal(model, x, y, **{"k": 3, "budget": 400, "bounds": (-0.5, 0.5), **wrong})
        assert model.seen == 0, wrong
    with pytest.raises(ValueError, match="of the budget of 45, 24 queries are set aside for the two evaluations"):
        universal(model, x, y, k=3, budget=45, bounds=(-0.5, 0.5))


def test_calls_that_fail_are_made_again_within_the_budget():
    model, x, y = victims()
    times = 0

    def shaky(images):
        nonlocal times
        times += 1
        answer = model(images)
        if times % 4 == 1:
            raise ConnectionError("try again")
        return answer

    found = universal(shaky, x, y, k=2, budget=500, bounds=(-0.5, 0.5), seed=1, retries=3, backoff=0)
    assert model.seen == found.queries <= 500
    assert found.search.success


def test_queries_of_other_processes_are_counted():
    from concurrent.futures import ProcessPoolExecutor

    x = np.random.default_rng(4).uniform(0.15, 0.95, size=(6, 5, 5))
    told = {"k": 1, "budget": 200, "bounds": (0, 1), "seed": 0}
    y = rounded(x).argmax(axis=1)
    with ProcessPoolExecutor(2) as pool:
        apart = universal(rounded, x, y, **told, workers=pool)
    here = universal(rounded, x, y, **told)
    assert apart.queries == here.queries > 100
    assert np.array_equal(apart.theta, here.theta)
