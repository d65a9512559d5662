"""`zt.compare`: grids, fresh runs, several processes, folders that go on, and what it refuses."""

from __future__ import annotations

import csv
import io
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from waiting import PATIENCE, until

import zerothresh as zt
from zerothresh.comparison import summary as statistics
from zerothresh.comparison.cell import Cell, CellFailed, Outcome, Subject, run_cell, thin

HERE = Path(__file__).parent
RIDGE = zt.problems.ridge(seed=1)
ETAS = {"eta": [0.01, 0.05]}
CHUNK = 11  # calls of a step of SZOHT with the default estimator: asked for at once


def go(problem=RIDGE, methods="szoht", k=3, **options):
    made = {"budget": 600, "grid": ETAS, "runs": 2, "progress": False}
    return zt.compare(problem, methods, k, **{**made, **options})


def by_hand(method, seed, problem=RIDGE, budget=600):
    return zt.minimize(problem, None, 3, budget=budget, method=method, seed=seed, monitor=problem.F)


def table(found):
    return list(csv.DictReader(io.StringIO(found.to_csv())))


def component(x, i):
    return float(((x - [0, 3.0, 0, 0, -2.0, 0]) ** 2).sum()) + 0.1 * i


class Bare:
    """The ridge problem without F and all else that it knows."""

    d, n = RIDGE.d, RIDGE.n

    def values(self, points, components):
        return RIDGE.values(points, components)


@dataclass
class Noted(Bare):
    """The ridge problem with F, which notes who asks for how much in a file, and misbehaves if it is told to."""

    ledger: Path
    act: object = None
    before: int = 0  # calls that this process makes before it acts
    calls: int = field(default=0, init=False)

    fingerprint = "noted"  # the same problem, however it behaves

    def values(self, points, components):
        if self.act is not None and self.calls >= self.before:
            self.act(self)
        self.calls += len(points)
        with open(self.ledger, "a") as file:
            file.write(f"{os.getpid()} {len(points)}\n")
        return RIDGE.values(points, components)

    def F(self, x):
        return RIDGE.F(x)


def asked(ledger):
    return sum(int(line.split()[1]) for line in ledger.read_text().splitlines()) if ledger.exists() else 0


def interrupt(problem):
    raise KeyboardInterrupt


def broken_valve(problem):
    raise RuntimeError("valve 7 is stuck")


def die(problem):
    if multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)


def die_once(problem):
    flag = problem.ledger.with_suffix(".died")
    if not flag.exists():
        flag.touch()
        die(problem)


def files_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# What is chosen, and by whom it is judged.


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


def test_curves_are_thinned_evenly_and_keep_both_ends():
    assert thin(np.arange(7)).tolist() == list(range(7))
    kept = thin(np.arange(10, 100_010, 10))
    assert (kept[0], kept[-1]) == (0, 9_999)
    assert 150 < kept.size <= 200
    assert np.diff(kept).max() <= 2 * np.diff(kept).min()


# How methods are given.


@pytest.mark.parametrize(
    ("methods", "grid", "labels"),
    [
        ("szoht", ETAS, {"szoht": 2}),
        (zt.SZOHT, ETAS, {"szoht": 2}),
        (zt.SZOHT(0.3), ETAS, {"szoht": 2}),
        (["VR_SZHT", zt.FGZOHT], ETAS, {"VR_SZHT": 2, "fgzoht": 2}),
        ((zt.SZOHT(0.01), zt.VRSZHT(0.01, m=2)), None, {"szoht": 1, "vr-szht": 1}),
        ((method for method in ["szoht", "fgzoht"]), ETAS, {"szoht": 2, "fgzoht": 2}),
        ({"a": "szoht", "b": zt.SZOHT(0.1, batch=2)}, ETAS, {"a": 2, "b": 2}),
        ({"mine": [zt.SZOHT(0.01), zt.SZOHT(0.02), zt.FGZOHT(0.1)]}, None, {"mine": 3}),
        ([[zt.SZOHT(0.01), zt.SZOHT(0.02)], "fgzoht"], ETAS, {"szoht": 2, "fgzoht": 2}),
        (["szoht", "vr-szht"], {**ETAS, "m": [2, 3, 4]}, {"szoht": 2, "vr-szht": 6}),
        ("szoht", {"eta": np.logspace(-3, -1, 3)}, {"szoht": 3}),
        ("szoht", {"eta": (0.1,), "batch": range(1, 3)}, {"szoht": 2}),
    ],
)
def test_methods_are_names_classes_instances_lists_or_dicts(methods, grid, labels):
    found = go(methods=methods, grid=grid, runs=1, budget=200)
    assert {contender.label: len(contender.candidates) for contender in found.contenders} == labels
    assert all(len(trial.runs) == 1 and trial.runs[0].success for c in found.contenders for trial in c.candidates)


def test_values_of_an_array_are_written_as_plain_numbers():
    plain = go(grid={"eta": [0.01, 0.1]}, budget=200)
    for values in (np.array([0.01, 0.1]), [np.float64(0.01), np.float64(0.1)]):
        assert go(grid={"eta": values}, budget=200).to_csv() == plain.to_csv()


def test_an_instance_keeps_what_the_grid_does_not_name():
    found = go(methods=zt.VRSZHT(eta=9.0, m=3), runs=1)
    assert [trial.method for trial in found.contenders[0].candidates] == [zt.VRSZHT(0.01, m=3), zt.VRSZHT(0.05, m=3)]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"methods": []}, "there are no methods to compare: name some"),
        ({"methods": {"a": []}}, "the list of methods for 'a' is empty"),
        ({"methods": 3}, "methods must be a list of names, classes or instances, or a dict by label, not 3"),
        ({"methods": None}, "methods must be a list"),
        ({"methods": {"szoht", "fgzoht"}}, "methods must be a list"),
        ({"methods": {1: "szoht"}}, "a method's label must be a string, not 1"),
        ({"methods": ["szoht", zt.SZOHT(0.1)]}, "two methods are called 'szoht': give them labels"),
        ({"methods": ["szoth"]}, "did you mean 'szoht'"),
        ({"methods": [int]}, "int is not the class of a method: it has no function 'plan'"),
        ({"methods": [object()]}, "method must be a name .* or an instance of a method"),
        ({"methods": "szoht", "grid": None}, "szoht needs eta"),
        ({"grid": {"eat": [0.1]}}, "grid has 'eat', which is a hyper-parameter of none of szoht"),
        ({"grid": {"eta": 0.1}}, r"grid\['eta'\] must be a list of values to try, not 0.1"),
        ({"grid": {"eta": "0.1"}}, "must be a list of values to try"),
        ({"grid": {"eta": []}}, "must be a list of values to try"),
        ({"grid": {"eta": np.ones((2, 2))}}, "must be a list of values to try"),
        ({"grid": {"eta": [-1.0]}}, "eta must be a finite number above 0"),
        ({"grid": [0.1]}, "grid must be a dict of lists by hyper-parameter"),
        ({"runs": 0}, "runs must be at least 1, not 0"),
        ({"fresh": -1}, "fresh must be at least 0"),
        ({"jobs": 0}, r"jobs must be at least 1 \(processes\), not 0"),
        ({"seed": None}, "seed must be a whole number"),
        ({"budget": 1e4}, "budget must be a whole number of at least 1 .*, not 10000.0"),
        ({"methods": ["szoht", "fgzoht"], "budget": 50}, "the first step of fgzoht needs 110 calls"),
        ({"k": 6}, "k = 6 is larger than the dimension d = 5"),
        ({"k": 2.0}, "k must be a whole number"),
        ({"estimator": 10}, r"estimator must be a zt.Estimator"),
        ({"F": 3}, "F must be a function"),
        ({"problem": None}, "fun must be a function of x"),
        ({"problem": component}, "x0 must be the starting point, or the dimension d"),
        ({"x0": np.zeros(4)}, "x0 has length 4, but the problem has d = 5"),
        ({"x0": [1.0, np.nan, 0, 0, 0]}, r"x0\[1\] is nan"),
        ({"n": 3}, "but the problem has n = 10: leave n out"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_first_call_and_before_the_folder(wrong, words, tmp_path):
    problem = Noted(tmp_path / "ledger")
    with pytest.raises(ValueError, match=words):
        go(**{"problem": problem, "folder": tmp_path / "new", **wrong})
    assert os.listdir(tmp_path) == []


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


# Faults of the objective.


def test_an_objective_that_raises_stops_all_with_the_users_own_words():
    def valve(x):
        raise RuntimeError("valve 7 is stuck")

    with pytest.raises(CellFailed, match=r"^szoht, seed 0: the objective raised RuntimeError: valve 7") as caught:
        go(valve, x0=6)
    assert "in valve" in str(caught.value)


@pytest.mark.parametrize(("value", "words"), [(None, "is a `return` missing"), (np.nan, "returned nan"), ("1", "real")])
def test_an_objective_that_gives_no_number_at_the_start_is_not_taken_for_a_divergence(value, words):
    with pytest.raises(CellFailed, match=words):
        go(lambda x: value, x0=6)


def test_infinite_values_far_off_are_a_divergence():
    found = go(
        lambda x: float(x @ x) if abs(x).max() < 1e3 else np.inf, x0=[1.0, 0, 0, 0], k=2, grid={"eta": [1e5, 0.05]}
    )
    assert [run.status for run in found.contenders[0].candidates[0].runs] == ["BAD_VALUE"] * 2
    assert found.contenders[0].best.method == zt.SZOHT(0.05)


class Ill(Bare):
    """What it knows of F does not work."""

    def __init__(self, **wrong):
        vars(self).update(wrong)


def fault(*arguments):
    raise np.linalg.LinAlgError("singular")


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (Ill(F=fault), "szoht, seed 0: F raised LinAlgError: singular"),
        (Ill(F=RIDGE.F, minimum_on=fault), "szoht, seed 0: LinAlgError: singular"),
    ],
)
def test_f_that_raises_is_not_taken_for_a_divergence(problem, words):
    with pytest.raises(CellFailed, match=words) as caught:
        go(problem)
    assert "in fault" in str(caught.value)


# Folders.


def test_called_again_with_its_folder_nothing_is_run_and_all_is_the_same(tmp_path):
    ledger, folder = tmp_path / "ledger", tmp_path / "kept"
    first = go(Noted(ledger), fresh=1, folder=folder)
    paid, kept = asked(ledger), files_of(folder)
    assert len(list((folder / "cells").iterdir())) == 5
    again = go(Noted(ledger, act=broken_valve), fresh=1, folder=str(folder))
    assert asked(ledger) == paid
    assert again.to_csv() == first.to_csv() == go(Noted(ledger), fresh=1).to_csv()
    assert str(again.rows()) == str(first.rows())
    assert files_of(folder) == kept
    assert os.listdir(folder / "work") == []


def test_a_folder_takes_further_methods_and_runs_and_pays_for_those_alone(tmp_path):
    ledger, folder = tmp_path / "ledger", tmp_path / "kept"
    go(Noted(ledger), folder=folder)
    paid = asked(ledger)
    more = go(Noted(ledger), methods=["szoht", "fgzoht"], runs=3, folder=folder)
    new = asked(ledger) - paid
    assert more.to_csv() == go(Noted(ledger), methods=["szoht", "fgzoht"], runs=3).to_csv()
    assert new == asked(ledger) - paid - new - paid


@pytest.mark.parametrize("before", [0, 1, 300, 594, 700, 2000])
def test_interrupted_anywhere_it_goes_on_and_pays_for_nothing_twice(before, tmp_path):
    ledger, folder = tmp_path / "ledger", tmp_path / "kept"
    with pytest.raises(KeyboardInterrupt):
        go(Noted(ledger, act=interrupt, before=before), fresh=1, folder=folder)
    found = go(Noted(ledger), fresh=1, folder=folder)
    paid = asked(ledger)
    assert found.to_csv() == go(Noted(ledger), fresh=1).to_csv()
    assert paid == asked(ledger) - paid


def test_after_the_objective_raised_what_was_paid_for_is_kept_and_the_run_goes_on(tmp_path):
    ledger, folder = tmp_path / "ledger", tmp_path / "kept"
    with pytest.raises(CellFailed, match="valve 7 is stuck"):
        go(Noted(ledger, act=broken_valve, before=700), folder=folder)
    assert len(list((folder / "cells").iterdir())) == 1
    found = go(Noted(ledger), folder=folder)
    ends = [int(line["nfev"]) for line in table(found)]
    assert sum(ends) == asked(ledger) + CHUNK  # the call that raised is charged, and nothing is asked for twice


def test_a_problem_that_counts_its_calls_stays_the_same_problem(tmp_path):
    class Counting(Bare):
        def __init__(self, limit=np.inf):
            self.calls, self.limit = 0, [limit]

        def values(self, points, components):
            self.calls += len(points)
            if self.calls > self.limit[0]:
                raise KeyboardInterrupt
            return RIDGE.values(points, components)

    with pytest.raises(KeyboardInterrupt):
        go(Counting(1000), fresh=1, folder=tmp_path / "kept")
    go(Counting(), fresh=1, folder=tmp_path / "kept")
    idle = Counting()
    found = go(idle, fresh=1, folder=tmp_path / "kept")
    assert idle.calls == 0
    assert found.to_csv() == go(Counting(), fresh=1).to_csv()


def test_whatever_the_current_folder_becomes_the_runs_stay_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()

    def wanders(x):
        os.chdir(tmp_path / "other")
        return float(x @ x)

    go(wanders, x0=6, folder="kept")
    assert len(list((tmp_path / "kept" / "cells").iterdir())) == 4
    assert os.listdir(tmp_path / "other") == []


def test_numbers_of_numpy_are_numbers(tmp_path):
    found = go(k=np.int64(3), budget=np.int64(600), seed=np.int32(0), runs=np.int8(2), folder=tmp_path / "kept")
    assert found.to_csv() == go(folder=tmp_path / "kept").to_csv()


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ({"k": 2}, "k"),
        ({"budget": 700}, "budget"),
        ({"seed": 1}, "seed"),
        ({"estimator": zt.Estimator(q=3)}, "estimator"),
        ({"problem": zt.problems.ridge(seed=2)}, "problem"),
        ({"x0": [1.0, 0, 0, 0, 0]}, "x0"),
        ({"F": component}, "F"),
        ({"problem": Bare(), "F": None}, "problem"),
    ],
)
def test_the_folder_of_another_comparison_is_refused_and_left_as_it_is(other, word, tmp_path):
    go(runs=1, folder=tmp_path / "kept")
    before = files_of(tmp_path)
    with pytest.raises(ValueError, match=f"holds results with {word} = .*, not .*: name another folder"):
        go(folder=tmp_path / "kept", **other)
    assert files_of(tmp_path) == before


def test_another_number_of_components_is_another_comparison(tmp_path):
    go(component, x0=6, n=3, k=2, runs=1, folder=tmp_path / "kept")
    with pytest.raises(ValueError, match="holds results with n = "):
        go(component, x0=6, n=4, k=2, runs=1, folder=tmp_path / "kept")


def test_a_folder_with_other_files_or_that_is_none_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "comparison.json").write_text("[" * 100_000)
    before = files_of(tmp_path)
    for folder, words in (
        (tmp_path / "mine", "holds other files, but no readable comparison.json"),
        (tmp_path / "mine" / "thesis.txt", "cannot be made"),
        (tmp_path / "mine" / "thesis.txt" / "deeper", "cannot be made"),
        (tmp_path / "odd", "holds other files, but no readable comparison.json of earlier work"),
        (3, "folder must be the path of a folder, not 3"),
    ):
        with pytest.raises(ValueError, match=words):
            go(folder=folder)
    assert files_of(tmp_path) == before


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that even root cannot write into")
def test_a_folder_that_cannot_be_written_into_is_refused():
    with pytest.raises(ValueError, match="the folder /proc/self/fdinfo/kept cannot be made"):
        go(folder="/proc/self/fdinfo/kept")


def test_a_comparison_killed_while_it_took_its_folder_can_take_it_again(tmp_path):
    (tmp_path / ".comparison.json.123.part").write_text('{"prob')
    assert go(runs=1, folder=tmp_path).to_csv() == go(runs=1).to_csv()


def test_what_a_run_killed_at_its_very_end_left_behind_is_removed(tmp_path):
    go(runs=1, folder=tmp_path)
    left = tmp_path / "work" / next((tmp_path / "cells").iterdir()).stem
    left.mkdir()
    (left / "lock").touch()
    go(runs=1, folder=tmp_path)
    assert os.listdir(tmp_path / "work") == []


class Trap:
    """What is unpickled runs code."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def spoilt(path, how, trap):
    with np.load(path) as arrays:
        parts = dict(arrays)
    if how == "pickled":
        parts["x"] = np.array([Trap(trap)], dtype=object)
    elif how == "words":
        parts["words"] = np.array(str(parts["words"]).replace('"end": ', '"end": "0", "was": '))
    elif how == "kinds":
        parts["words"] = np.array(str(parts["words"]).replace('"nht": ', '"nht": 0.5e'))
    elif how == "lengths":
        parts["fun"] = parts["fun"][1:]
    elif how == "nothing":
        del parts["own"]
    elif how == "bomb":
        parts["x"] = np.zeros(100_000)  # a few hundred bytes
    stream = io.BytesIO()
    np.savez_compressed(stream, **parts)
    return stream.getvalue()


@pytest.mark.parametrize("how", ["pickled", "words", "kinds", "lengths", "nothing", "bomb", "cut", "garbage", "empty"])
def test_a_kept_run_that_is_spoilt_is_refused_by_name_and_can_be_run_again(how, tmp_path, monkeypatch):
    monkeypatch.setattr("zerothresh.comparison.cell._MOST_UNPACKED", 1 << 19)
    folder, trap = tmp_path / "kept", tmp_path / "trap"
    found = go(runs=1, folder=folder)
    path = sorted((folder / "cells").iterdir())[0]
    whole = path.read_bytes()
    spoils = {"cut": whole[: len(whole) // 2], "garbage": bytes(range(256)) * 4, "empty": b""}
    path.write_bytes(spoils[how] if how in spoils else spoilt(path, how, trap))
    with pytest.raises(ValueError, match=f"{path.name} is not what a comparison writes .*: remove it and run again"):
        go(runs=1, folder=folder)
    assert not trap.exists()
    path.unlink()
    assert go(runs=1, folder=folder).to_csv() == found.to_csv()


def test_an_outcome_is_read_back_as_it_was(tmp_path):
    cell = Cell("szoht", zt.SZOHT(0.05), None, 3, 600, "problem", 0)
    for problem, method in ((RIDGE, zt.SZOHT(0.05)), (Bare(), zt.SZOHT(0.05)), (RIDGE, zt.SZOHT(1e200))):
        made = run_cell(Subject.of(problem), replace(cell, method=method))
        made.save(tmp_path / "one.npz")
        assert repr(Outcome.load(tmp_path / "one.npz")) == repr(made)


class Plain:
    """A method that is no dataclass: nothing tells its instances apart."""

    def __init__(self, eta):
        self.made = zt.SZOHT(eta)
        self.init, self.plan, self.update = self.made.init, self.made.plan, self.made.update


def test_methods_that_a_folder_could_not_tell_apart_are_refused_with_one(tmp_path):
    both = {"a": [Plain(0.01), Plain(0.05)]}
    assert [float(line["F"]) for line in table(go(methods=both, grid=None))] == [float(r["F"]) for r in table(go())]
    for methods, grid in ((both, None), ({"a": [Plain(0.01)]}, None), ("szoht", {"eta": [0.1, 0.1]})):
        with pytest.raises(ValueError, match=r"a folder cannot tell the methods of .* apart"):
            go(methods=methods, grid=grid, folder=tmp_path / "kept")
    assert os.listdir(tmp_path) == []


# Several processes.


@dataclass(frozen=True)
class Mine:
    """A method of one's own: SZOHT with the first component alone."""

    eta: float
    init, update = zt.SZOHT.init, zt.SZOHT.update

    def plan(self, state, n, rng):
        return zt.Probes.gradients(at=[state.theta], of=range(1))


def test_the_number_of_processes_changes_nothing():
    methods = {"szoht": "szoht", "vr": zt.VRSZHT(1.0, m=4), "mine": Mine(1.0), "far": [zt.FGZOHT(1e9)]}
    one = go(methods=methods)
    assert go(methods=methods, jobs=2).to_csv() == one.to_csv()
    assert "DIVERGED" in one.to_csv()


def test_a_process_that_is_killed_is_replaced_and_its_run_goes_on(tmp_path):
    ledger, whole = tmp_path / "ledger", tmp_path / "whole"
    found = go(Noted(ledger, act=die_once, before=400), jobs=2, folder=tmp_path / "kept")
    assert ledger.with_suffix(".died").exists()
    assert found.to_csv() == go(Noted(whole)).to_csv()
    assert asked(whole) <= asked(ledger) <= asked(whole) + 2 * CHUNK  # what was under way


def test_processes_that_are_killed_again_and_again_end_it_and_what_is_done_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("zerothresh.comparison.work.DEATHS", 2)
    ledger, folder = tmp_path / "ledger", tmp_path / "kept"
    go(Noted(ledger), runs=1, folder=folder)
    paid, kept = asked(ledger), files_of(folder)
    with pytest.raises(ValueError, match=r"killed 2 times while they worked on szoht, seed 1.*run it again with fewer"):
        go(Noted(ledger, act=die), jobs=2, folder=folder)
    assert kept.items() <= files_of(folder).items()
    assert asked(ledger) == paid
    assert multiprocessing.active_children() == []
    assert go(Noted(ledger), folder=folder).to_csv() == go(Noted(ledger)).to_csv()


def test_a_problem_that_cannot_be_sent_to_other_processes_says_what_to_do():
    unfit = Ill(F=RIDGE.F, secret=lambda x: x)
    for problem in (lambda x: float(x @ x), unfit, Ill(lock=__import__("threading").Lock())):
        with pytest.raises(ValueError, match=r"cannot be sent to other processes \(.*\): .*or use jobs=1"):
            go(problem, x0=5, jobs=2)


class Odd(Exception):
    """It is sent to another process and cannot be put together there."""

    def __init__(self, code, reason):
        super().__init__(f"{reason} ({code})")


@dataclass(frozen=True)
class Faulty(Mine):
    """With a fault, once there is something to learn."""

    def update(self, state, answers, H):
        if answers.mean().any():
            raise Odd(7, "divided by the wrong thing")
        return super().update(state, answers, H)


def test_an_exception_that_cannot_travel_between_processes_arrives_in_words():
    with pytest.raises(Odd):
        go(methods=Faulty(1.0))
    with pytest.raises(CellFailed, match=r"(?s)seed \d: .*in update.*Odd: divided by the wrong thing \(7\)"):
        go(methods=Faulty(1.0), jobs=2)
    assert multiprocessing.active_children() == []


def python(*arguments, **options):
    places = os.pathsep.join(filter(None, [str(HERE), str(HERE.parent / "examples"), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *map(str, arguments)], env=env, **streams, **options)


def test_a_method_of_ones_own_is_compared_by_its_name():
    process = python(  # of its own, because importing the file registers the method
        "-c",
        "import zerothresh as zt, own_method\n"
        "grid = {'eta': [0.01, 0.05], 'beta': [0.2, 0.5]}\n"
        "found = zt.compare(zt.problems.ridge(seed=1), ['heavy-ball', 'fgzoht'], 3, budget=1000, grid=grid, fresh=1)\n"
        "print([len(contender.candidates) for contender in found.contenders], found.rows()[0]['chosen'])",
    )
    out, errors = process.communicate(timeout=PATIENCE)
    assert out == "[4, 2] HeavyBall(eta=0.05, beta=0.5)\n", errors


def test_at_a_prompt_several_processes_are_refused_with_what_to_do():
    process = python(
        "-c",
        "import zerothresh as zt\n"
        "class Mine(type(zt.problems.ridge())): pass\n"
        "problem = zt.problems.ridge(); problem.__class__ = Mine\n"
        "zt.compare(problem, 'szoht', 3, budget=300, grid={'eta': [0.1]}, jobs=2)",
    )
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert errors.count("Can't get attribute 'Mine'") <= 2  # it is not tried again and again
    last = errors.splitlines()[-1]
    assert "a worker process ended by itself with exit code 1" in last
    assert last.endswith("use jobs=1")


def stall(problem):
    time.sleep(PATIENCE)


def endlessly(ledger, folder):
    """What the processes below are stopped in."""
    go(Noted(Path(ledger), act=stall, before=5 * CHUNK), jobs=2, folder=folder)


def told(pid, word):
    """What the system says of a process; nothing if there is none."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return ""
    return next(line.split()[1] for line in lines if line.startswith(f"{word}:"))


def alive(pid):
    return told(pid, "State") not in ("", "Z", "X")


def deaf(pid):
    return bool(int(told(pid, "SigIgn"), 16) >> (signal.SIGINT - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes through /proc")
@pytest.mark.parametrize("stop", ["Ctrl-C", "kill -9"])
def test_stopped_from_outside_no_process_is_left_and_the_next_call_goes_on(stop, tmp_path):
    ledger, folder, whole = tmp_path / "ledger", tmp_path / "kept", tmp_path / "whole"
    script = tmp_path / "use.py"
    script.write_text(f"""
from test_comparison import endlessly

if __name__ == "__main__":
    endlessly({str(ledger)!r}, {str(folder)!r})
""")
    process = python(script, start_new_session=True)

    def workers():
        return {int(line.split()[0]) for line in ledger.read_text().splitlines()} if ledger.exists() else set()

    try:
        until(lambda: asked(ledger) == 10 * CHUNK or process.poll() is not None)
        assert len(workers()) == 2
        assert all(map(deaf, workers()))  # the parent alone answers Ctrl-C
        if stop == "Ctrl-C":
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        else:
            os.kill(process.pid, signal.SIGKILL)
        _, errors = process.communicate(timeout=PATIENCE)
        until(lambda: not any(map(alive, workers())))
    finally:
        for pid in workers():
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        process.kill()
    if stop == "Ctrl-C":
        assert errors.count("Traceback") == 1
        assert errors.splitlines()[-1] == "KeyboardInterrupt"
    found = go(Noted(ledger), folder=folder)
    assert found.to_csv() == go(Noted(whole)).to_csv()
    assert asked(ledger) == asked(whole)


# Intervals.


@pytest.mark.parametrize(
    ("successes", "of", "low", "high"),
    [  # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_a_share_has_wilsons_interval(successes, of, low, high):
    share = statistics.share(successes, of)
    assert share.value == successes / of
    assert (share.low, share.high) == pytest.approx((low, high), abs=5e-5)
    mirrored = statistics.share(of - successes, of)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((share.low, share.high))


def test_a_share_of_nothing_is_not_known():
    assert np.isnan(statistics.share(0, 0).value)


def test_the_same_values_have_the_same_interval_and_it_is_about_the_mean():
    values = np.random.default_rng(0).normal(3.0, 2.0, 50)
    one = statistics.mean(values)
    assert one == statistics.mean(values.tolist())
    half = 2.0096 * values.std(ddof=1) / np.sqrt(50)  # Student's t with 49 degrees of freedom
    assert one.value == values.mean()
    assert (one.value - one.low, one.high - one.value) == pytest.approx((half, half), rel=0.1)
    assert one.low <= one.value - half * 0.9999
    assert statistics.mean([2.0, 2.0, 2.0]) == statistics.Estimate(2.0, 2.0, 2.0)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, np.inf, 2.0]])
def test_too_few_or_infinite_values_leave_the_mean_without_an_interval(values):
    found = statistics.mean(values)
    assert (found.low, found.high) == (-np.inf, np.inf)
    assert found.value == pytest.approx({0: np.nan, 1: 1.0, 3: np.inf}[len(values)], nan_ok=True)


@pytest.mark.parametrize(
    ("size", "low", "high"),
    [(5, -np.inf, np.inf), (6, 1, 6), (8, 1, 8), (9, 2, 8), (20, 6, 15), (50, 18, 33), (100, 40, 61)],
)
def test_a_median_lies_between_the_values_of_the_sign_tests_table(size, low, high):
    values = np.random.default_rng(0).permutation(np.arange(1.0, size + 1))
    assert statistics.median(values) == statistics.Estimate((size + 1) / 2, low, high)


def test_a_few_infinite_values_leave_the_median_finite():
    found = statistics.median([1.0, 2.0, 3.0, 4.0, 5.0, np.inf, np.inf])
    assert found == statistics.Estimate(4.0, 1.0, np.inf)
    assert np.isnan(statistics.median([1.0, np.nan]).value)
    assert np.isnan(statistics.median([]).value)


@pytest.mark.parametrize(
    ("above", "below", "value"),
    [
        ([2.0, 8.0, 9.0], [1.0, 2.0, 3.0], 3.0),
        ([np.inf] * 3, [1.0, 2.0, 3.0], np.inf),
        ([1.0, 2.0, 3.0], [np.inf] * 3, 0.0),
        ([1.0] * 3, [0.0] * 3, np.inf),
        ([np.inf, 2.0, 2.0], [np.inf, 1.0, 1.0], 2.0),
        ([np.inf, np.inf, 2.0], [np.inf, np.inf, 1.0], np.nan),  # mostly alike: nothing is told
        ([0.0] * 3, [0.0] * 3, np.nan),
        ([np.nan, 1.0, 1.0], [1.0] * 3, np.nan),
        ([], [], np.nan),
    ],
)
def test_a_ratio_is_taken_pair_by_pair_and_copes_with_infinities_and_zeros(above, below, value):
    found = statistics.ratio(above, below)
    assert found.value == pytest.approx(value, nan_ok=True)
    assert not found.low > found.high


def test_a_difference_is_taken_pair_by_pair():
    found = statistics.difference([11.0, 102.0, 1003.0], [10.0, 100.0, 1000.0])
    assert found.value == 2.0
    assert found == statistics.mean([1.0, 2.0, 3.0])
    assert np.isnan(statistics.difference([np.inf, 1.0], [np.inf, 1.0]).value)
