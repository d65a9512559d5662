"""How methods and grids of hyper-parameters are given to `zt.compare`, and what it refuses."""

from __future__ import annotations

import os

import numpy as np
import pytest
from compared import ETAS, Noted, component, go

import zerothresh as zt


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
        ({"methods": [int]}, "int is not the class of a method: it has no function 'init'"),
        ({"methods": [object()]}, "method must be a name .* or an instance of a method"),
        (
            {"methods": "szoht", "grid": None},
            r"szoht needs eta: pass .* grid={'eta': \[...\]}, or an instance, zt.SZOHT\(eta=",
        ),
        ({"methods": {"a": ["szoht"]}, "grid": None}, "szoht needs eta: pass values to try"),
        ({"grid": {"etta": [0.1]}}, "grid has 'etta', which is a hyper-parameter of none of szoht; did you mean 'eta'"),
        ({"grid": {"eta": 0.1}}, r"grid\['eta'\] must be a list of values to try, not 0.1"),
        ({"grid": {"eta": "0.1"}}, "must be a list of values to try"),
        ({"grid": {"eta": []}}, "must be a list of values to try"),
        ({"grid": {"eta": np.ones((2, 2))}}, "must be a list of values to try"),
        ({"grid": {"eta": [-1.0]}}, "eta must be a finite number above 0"),
        ({"grid": [0.1]}, "grid must be a dict of lists by hyper-parameter"),
        ({"methods": np.array(3)}, "methods must be a list"),
        ({"methods": range(10**30)}, "or an instance of a method"),
        ({"methods": {"a": [zt.SZOHT(0.1)] * 100_001}}, "the list of methods for 'a' is longer than 100,000"),
        ({"grid": {"eta": range(1, 10**30)}}, r"grid\['eta'\] has more than 100,000 values"),
        ({"grid": {"eta": [0.1] * 1000, "batch": [1] * 1000}}, "the grid of 'szoht' has 1,000,000 points"),
        ({"runs": 10**6}, "the comparison has 2,000,000 runs, and at most 1,000,000 are allowed"),
        ({"fresh": 10**30}, "runs, and at most 1,000,000 are allowed"),
        ({"folder": ""}, "folder must be the path of a folder, not ''"),
        ({"folder": "a\0b"}, "folder must be the path of a folder, .* null character"),
        ({"folder": b"a"}, "folder must be the path of a folder"),
        ({"progress": 3}, "progress must be True or False, not 3"),
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
