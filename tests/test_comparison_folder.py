"""Folders of a comparison: continued, extended, or refused and left as they are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from compared import CHUNK, RIDGE, Bare, Noted, asked, broken_valve, component, files_of, go, interrupt, table

import zerothresh as zt
from zerothresh.comparison.cell import CellFailed


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
                interrupt(self)
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
        ({"F": lambda x: float(x @ x)}, "F"),
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
