"""`zt.compare`: what is chosen, by which runs it is judged, and what a comparison tells."""

from __future__ import annotations

import numpy as np
import pytest
from compared import CHUNK, RIDGE, Bare, by_hand, component, go, table

import zerothresh as zt

# What is chosen, and by which runs it is judged.


def test_the_best_of_a_grid_has_the_lowest_mean_of_f_at_the_last_iterate():
    found = go(methods=["szoht", "vr-szht"], grid={"eta": [0.001, 0.05, 0.2]}, runs=3)
    for contender, made in zip(found.contenders, (zt.SZOHT, zt.VRSZHT), strict=True):
        means = {eta: np.mean([RIDGE.F(by_hand(made(eta), s).x_last) for s in range(3)]) for eta in (0.001, 0.05, 0.2)}
        best = min(means, key=means.get)
        assert contender.best.method == made(best)
        assert contender.best.mean == pytest.approx(means[best], rel=1e-12)
        assert [trial.mean for trial in contender.candidates] == pytest.approx(list(means.values()), rel=1e-12)
    rows = found.rows()
    assert [row["F"] for row in rows] == sorted(row["F"] for row in rows)


def test_fresh_runs_have_other_seeds_than_those_that_chose_and_are_what_is_judged():
    found = go(runs=2, fresh=3, seed=5)
    contender = found.contenders[0]
    chosen = contender.best.method
    assert [run.x.tobytes() for run in contender.best.runs] == [by_hand(chosen, s).x_last.tobytes() for s in (5, 6)]
    assert [run.x.tobytes() for run in contender.fresh.runs] == [by_hand(chosen, s).x_last.tobytes() for s in (7, 8, 9)]
    row = found.rows()[0]
    assert row["runs"] == 3
    assert row["F"] == pytest.approx(np.mean([run.end for run in contender.fresh.runs]))
    assert [line["fresh"] for line in table(found)] == ["False"] * 4 + ["True"] * 3


def test_a_run_is_what_minimize_gives_and_a_row_says_what_it_cost():
    found = go(methods=[zt.SZOHT(0.05)], grid=None, runs=1)
    result, row = by_hand(zt.SZOHT(0.05), 0), found.rows()[0]
    assert (row["nfev"], row["nht"]) == (result.nfev, result.nht)
    assert row["nfev"] <= 600
    best, lowest = RIDGE.optimum(3)
    assert row["gap"] == RIDGE.F(result.x_last) - lowest
    assert row["right_support"] == float(set(result.x_last.nonzero()[0]) == set(best.nonzero()[0]))
    on_support = RIDGE.F(RIDGE.minimum_on(np.flatnonzero(result.x_last)))
    assert row["own_support_error"] == pytest.approx(RIDGE.F(result.x_last) - on_support)
    assert "szoht" in str(found)


def test_a_learning_rate_that_diverges_counts_as_infinity_and_is_not_chosen():
    found = go(grid={"eta": [1e6, 0.05]})
    assert found.contenders[0].best.method == zt.SZOHT(0.05)
    worst = found.contenders[0].candidates[0]
    assert worst.mean == np.inf
    assert all(run.status == "DIVERGED" and run.own == np.inf for run in worst.runs)
    assert [line["F"] for line in table(found)[:2]] == ["inf", "inf"]


def test_if_all_diverge_the_table_says_so_and_there_is_no_picture():
    found = go(methods=[zt.SZOHT(1e200)], grid=None, runs=1, fresh=1)
    assert (found.rows()[0]["F"], found.rows()[0]["diverged"]) == (np.inf, 1)
    assert [line["fresh"] for line in table(found)] == ["False", "True"]  # two runs with the same numbers
    with pytest.raises(ValueError, match="a run of each method diverged: try smaller learning rates"):
        found.plot()


# What is compared.


def test_a_function_without_f_has_its_value_at_the_end_and_no_curves():
    found = go(component, x0=6, n=3, k=2)
    row = found.rows()[0]
    alike = [zt.minimize(component, 6, 2, n=3, budget=600, method=zt.SZOHT(0.05), seed=s) for s in range(2)]
    assert row["chosen"] == "SZOHT(eta=0.05, batch=1)"
    assert row["F"] == np.mean([result.fun for result in alike])
    assert row["nfev"] <= 600
    assert "own_support_error" not in row
    assert "gap" not in row
    frame = found.frame()
    assert frame["F"].tolist() == [row["F"]]
    with pytest.raises(ValueError, match=r"no curve to draw: pass F=\.\.\. to compare"):
        found.plot()


def test_with_f_there_are_curves_and_its_calls_are_not_charged():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    known = go(component, x0=6, n=3, k=2, F=lambda x: component(x, 1))
    assert {text.get_text() for text in known.plot().axes[1].get_legend().get_texts()} == {"szoht"}
    assert known.rows()[0]["nfev"] == 54 * CHUNK
    assert go(component, x0=6, n=3, k=2).rows()[0]["nfev"] == 54 * CHUNK + 3  # F at the end is paid for


def test_a_problem_keeps_its_f_if_a_start_is_given_and_begins_there():
    assert go(x0=np.zeros(5)).to_csv() == go(x0=5).to_csv() == go().to_csv()
    elsewhere = go(x0=[5.0, 0, 0, 0, 0])
    assert np.isfinite(float(table(elsewhere)[0]["own_support_error"]))
    assert elsewhere.to_csv() != go().to_csv()


def test_a_vectorised_function_gives_what_the_plain_one_gives():
    many = lambda X, I: np.array([component(x, i) for x, i in zip(X, I, strict=True)])
    assert go(many, x0=6, n=3, k=2, vectorized=True).to_csv() == go(component, x0=6, n=3, k=2).to_csv()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_f_that_is_no_number_at_the_end_counts_as_infinity(value):
    found = go(F=lambda x: value, runs=1)
    assert found.rows()[0]["F"] == np.inf
    calls = iter(range(10_000))
    late = go(F=lambda x: RIDGE.F(x) if next(calls) < 5 else value, runs=1, methods=zt.SZOHT(0.05), grid=None)
    assert late.rows()[0]["F"] == np.inf  # not the best of the five


class WithOptimum(Bare):
    F = staticmethod(RIDGE.F)

    def __init__(self, optimum):
        self.optimum = optimum


def no(error):
    def optimum(k):
        raise error

    return optimum


@pytest.mark.parametrize("optimum", [None, 3.0, no(ValueError("too many")), no(NotImplementedError())])
def test_a_problem_that_cannot_tell_its_optimum_is_compared_without(optimum):
    assert "gap" not in go(WithOptimum(optimum), runs=1).rows()[0]


@pytest.mark.parametrize(
    ("optimum", "words"),
    [
        (no(ZeroDivisionError("oh")), "ZeroDivisionError: oh; the comparison does without F"),
        (lambda k: 3.0, "TypeError"),
        (lambda: 3.0, "TypeError"),
        (lambda k: (np.zeros(7), 1.0), "not a point and a number"),
        (lambda k: (np.zeros(5), np.nan), "not a point and a number"),
    ],
)
def test_an_optimum_that_fails_is_told_and_costs_nothing_that_was_run(optimum, words):
    with pytest.warns(UserWarning, match=words):
        found = go(WithOptimum(optimum), runs=1)
    assert "gap" not in found.rows()[0]
    assert np.isfinite(found.rows()[0]["F"])


def test_a_problem_with_too_many_supports_is_compared_without_its_optimum():
    found = go(zt.problems.ridge(n=4, d=60, seed=0), k=20, runs=1)
    assert found.optimum is None
    assert np.isfinite(found.rows()[0]["F"])
