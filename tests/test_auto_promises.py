"""What `auto` promises of a run: when it ends, whether it found anything, what its calls were for."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import zerothresh as zt

GOAL = np.zeros(30)
GOAL[[2, 7, 11, 20]] = 3.0, -2.0, 1.0, 0.5


def bowl(x):
    return float(((x - GOAL[: x.size]) ** 2).sum())


def bent(x):
    """Smooth, but neither a quadratic nor a sum over coordinates, and with too many supports to try them all."""
    z = x - GOAL
    return float(np.log1p((z**2).sum()) + 0.1 * (1 - np.cos(3 * z)).sum())


# Whether anything was found.


@pytest.mark.parametrize("n", [None, 4])
def test_a_run_that_found_nothing_better_than_the_start_is_no_success_and_says_what_may_help(n):
    found = zt.minimize((lambda x: 7.0) if n is None else (lambda x, i: 7.0), 10, 2, n=n, budget=300, seed=0)
    assert not found.success
    assert found.status in (zt.Status.BUDGET, zt.Status.CONVERGED)
    assert not found.x.any()
    assert found.fun == 7.0
    assert "nothing better than the start was found: a larger budget, another start, or bounds" in found.message


def test_a_budget_below_that_of_one_gradient_is_named_where_nothing_was_found():
    found = zt.minimize(lambda x: 7.0, 100, 2, budget=40, seed=0)
    assert not found.success
    assert found.message.endswith("about 102 calls would pay for one gradient over all coordinates")


def test_a_run_that_found_something_is_a_success_although_its_budget_is_spent():
    found = zt.minimize(bent, 30, 4, budget=300, seed=0)
    assert found.status is zt.Status.BUDGET
    assert found.success
    assert found.fun < bent(np.zeros(30))
    assert "nothing better" not in found.message


@pytest.mark.parametrize("d", [60, 300])
def test_noise_in_proportion_to_F_neither_hides_the_minimum_nor_leads_astray(d):
    """With noise of a tenth of F, steps that are too long see nothing but noise: 9 of 10 draws reach 5 % of the gap."""
    left = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        support, goal = rng.choice(d, 5, replace=False), np.zeros(d)
        goal[support] = 2 * rng.normal(size=5)
        noisy = zt.minimize(
            lambda x, goal=goal, rng=rng: float(((x - goal) ** 2).sum()) * (1 + 0.1 * rng.normal()),
            d,
            5,
            budget=1000 if d == 60 else 1500,
            seed=seed,
        )
        left.append(float(((noisy.x - goal) ** 2).sum() / (goal @ goal)))
    assert sorted(left)[8] < 0.05
    assert max(left) < 1.2  # never far above the start: a value of the start is known up to 10 % / sqrt(6)


def test_a_start_that_is_proven_optimal_is_a_success():
    found = zt.minimize(bowl, 10, 2, budget=500, seed=0, exclude=list(range(10)))
    assert found.status is zt.Status.CONVERGED
    assert found.success
    assert found.nfev < 500


def test_other_methods_promise_no_gain():
    found = zt.minimize(lambda x: 7.0, 10, 2, budget=300, method=zt.SZOHT(0.01), seed=0)
    assert found.success
    assert "nothing better" not in found.message


# When it ends.


@pytest.mark.parametrize("budget", [150, 400, 900])
def test_without_a_proof_the_whole_budget_is_spent(budget):
    found = zt.minimize(bent, 30, 4, budget=budget, seed=0)
    assert found.status is zt.Status.BUDGET
    assert budget - 31 < found.nfev <= budget  # what is left would not pay for a gradient and F at the result


def test_with_a_proof_the_rest_of_the_budget_is_left():
    found = zt.minimize(bowl, 10, 2, budget=5000, seed=0)
    assert found.status is zt.Status.CONVERGED
    assert found.nfev < 500
    np.testing.assert_allclose(found.x, GOAL[:10], atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_patience_ends_the_run_so_many_calls_after_the_last_gain(seed):
    whole = zt.minimize(bent, 30, 4, budget=4000, seed=seed)
    short = zt.minimize(bent, 30, 4, budget=4000, seed=seed, patience=200)
    assert short.method == zt.methods.Auto(patience=200)
    assert whole.status is zt.Status.BUDGET
    assert 200 < short.nfev < 4000
    assert "Nothing was gained in the last 200 calls, which is the given patience" in short.message
    assert short.status is zt.Status.CONVERGED
    assert short.success
    assert short.fun < 0.1 * bent(np.zeros(30))
    same = min(len(short.trace), len(whole.trace))  # patience changes when the run ends, not where it goes
    assert same > 3
    assert np.array_equal(short.trace.fun[: same - 1], whole.trace.fun[: same - 1])


def test_patience_without_any_gain_is_no_success():
    found = zt.minimize(lambda x: 7.0, 10, 2, budget=4000, seed=0, patience=100)
    assert 100 <= found.nfev < 1000
    assert not found.success
    assert "nothing better than the start was found" in found.message


def test_an_optimizer_takes_patience_too():
    with zt.Optimizer(30, 4, budget=4000, seed=0, patience=200) as optimizer:
        while not optimizer.done:
            batch = optimizer.ask()
            optimizer.tell(batch, [bent(x) for x in batch.points])
        told = optimizer.result()
    assert told.nfev == zt.minimize(bent, 30, 4, budget=4000, seed=0, patience=200).nfev < 4000


@pytest.mark.parametrize("method", ["htp", "niht", "fgzoht", zt.SZOHT(0.01), "outside"])
def test_methods_without_patience_refuse_it_before_any_call(method):
    def never(x):
        raise AssertionError("a call was made")

    options = {"eta": 0.1} if method == "fgzoht" else None
    with pytest.raises(ValueError, match=r"patience goes with method='auto'; \S+ runs until its budget is spent"):
        zt.minimize(never, 10, 2, budget=300, method=method, options=options, patience=10)


@pytest.mark.parametrize("patience", [0, -3, 2.5, "many", True])
def test_patience_is_a_number_of_calls(patience):
    with pytest.raises(ValueError, match="patience must be"):
        zt.minimize(bowl, 10, 2, budget=300, patience=patience)
    with pytest.raises(ValueError, match="patience must be"):
        zt.methods.Auto(patience=patience)


# Before it begins.


def test_a_hopeless_budget_is_warned_of_before_the_first_call():
    calls = []

    def counted(x):
        calls.append(len(warned))
        return float(((x - 1.0) ** 2).sum())

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = zt.minimize(counted, 1000, 20, budget=60, seed=0)
    assert [one.category for one in warned] == [UserWarning]
    sentence = str(warned[0].message)
    assert sentence.startswith("budget = 60 is too small to tell which 20 of 1000 coordinates matter")
    assert "at least 138 comparisons" in sentence  # log2 of 1000! / (20! 980!)
    assert warned[0].filename == __file__  # the line of the user that called
    assert set(calls) == {1}
    assert len(calls) == found.nfev <= 60
    assert found.remarks[0] == (0, "The budget is" + sentence[len("budget = 60 is") :].split(", so")[0] + ".")


def test_the_bound_is_that_of_the_number_of_supports():
    with pytest.warns(UserWarning, match="at least 138 comparisons"):
        zt.Optimizer(1000, 20, budget=137).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zt.Optimizer(1000, 20, budget=140).close()
        zt.Optimizer(1000, 1000 - 20, budget=140, monitor=None).close()
        zt.Optimizer(5, 2, budget=9).close()
        zt.Optimizer(1000, 20, budget=60, method="htp").close()  # other methods make no promise


# What the calls were for.


def test_the_stages_say_what_every_call_was_made_for():
    found = zt.minimize(bent, 30, 4, budget=600, seed=0)
    calls, names = zip(*found.stages, strict=True)
    assert found.stages[0] == (0, "diagnosis")
    assert list(calls) == sorted(calls)
    assert calls[-1] <= found.nfev
    assert all(one != other for one, other in itertools.pairwise(names))
    assert set(names) - {"diagnosis"} <= arm_names()
    assert len(set(names)) > 1


def arm_names():
    from zerothresh.methods.auto.arms.random_steps import RandomSteps
    from zerothresh.methods.auto.automatic import ARMS

    return {arm.name for arm in (*ARMS, RandomSteps())}


def test_other_methods_have_no_stages():
    assert zt.minimize(bowl, 10, 2, budget=300, method=zt.SZOHT(0.01), seed=0).stages == []
