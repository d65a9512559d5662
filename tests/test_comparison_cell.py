"""One run of a comparison: what is kept of it, and what counts as a failure rather than a divergence."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from compared import RIDGE, Bare, Ill, fault, go

import zerothresh as zt
from zerothresh.comparison.cell import Cell, CellFailed, Outcome, Subject, outcome_of, records_of, run_cell, thin

# What is kept of a run.


def test_curves_are_thinned_evenly_and_keep_both_ends():
    assert thin(np.arange(7)).tolist() == list(range(7))
    kept = thin(np.arange(10, 100_010, 10))
    assert (kept[0], kept[-1]) == (0, 9_999)
    assert 150 < kept.size <= 200
    assert np.diff(kept).max() <= 2 * np.diff(kept).min()


def test_thinning_changes_no_measure():
    """A noisy trace of 10,000 rows: what is measured is that of every row, while the thinned curve would tell less."""
    rng = np.random.default_rng(0)
    rows, problem = 10_000, RIDGE
    supports = [np.array([0, 1, 2]), np.array([0, 1, 4])]
    floors = [problem.F(problem.minimum_on(support)) for support in supports]
    which = rng.integers(2, size=rows)
    errors = np.geomspace(1.0, 1e-6, rows) * rng.lognormal(0.0, 1.0, rows)
    trace = zt.Trace()
    for row in range(rows):
        fun = floors[which[row]] + errors[row]
        trace.append(step=row + 1, nfev=7 * (row + 1), nht=row + 1, fun=fun, support=supports[which[row]])
    result = SimpleNamespace(trace=trace, success=True, status=zt.Status.BUDGET, x_last=np.zeros(problem.d))
    vars(result).update(fun=0.0, nfev=7 * rows, nht=rows, nit=rows)
    made = outcome_of(result, Subject.of(problem))
    fun = trace.fun
    own = np.maximum(0.0, fun - np.array(floors)[which])
    assert made.trace.fun.size <= 200
    assert made.rises == pytest.approx(np.maximum(np.diff(fun), 0).sum(), rel=1e-12)
    assert made.lowest == fun.min()
    for level in np.geomspace(2.0, 1e-7, 50):
        reached = np.flatnonzero(own <= level)
        assert made.records.calls_to(level) == (7 * (reached[0] + 1) if reached.size else np.inf)
    # On the thinned curve the same measures are far off, or this test would show nothing.
    assert np.maximum(np.diff(made.trace.fun), 0).sum() < made.rises / 10
    late = [made.trace.nfev[made.trace.own <= level][0] / made.records.calls_to(level) for level in (1e-2, 1e-4)]
    assert min(late) > 1.01


def test_unknown_values_are_no_records():
    own = np.array([np.nan, 3.0, np.inf, 3.0, 1.0, np.nan, 2.0])
    found = records_of(np.arange(7), own)
    assert (found.nfev.tolist(), found.own.tolist()) == ([1, 4], [3.0, 1.0])
    assert records_of(np.arange(0), np.empty(0)).nfev.size == 0


def test_an_outcome_is_read_back_as_it_was(tmp_path):
    cell = Cell("szoht", zt.SZOHT(0.05), None, 3, 600, "problem", 0)
    for problem, method in ((RIDGE, zt.SZOHT(0.05)), (Bare(), zt.SZOHT(0.05)), (RIDGE, zt.SZOHT(1e200))):
        made = run_cell(Subject.of(problem), replace(cell, method=method))
        made.save(tmp_path / "one.npz")
        assert repr(Outcome.load(tmp_path / "one.npz")) == repr(made)


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


@pytest.mark.parametrize("how", ["pipe", "link", "folder"])
def test_a_kept_run_that_is_no_file_is_refused_and_not_waited_for(how, tmp_path):
    go(runs=1, folder=tmp_path / "kept")
    path = sorted((tmp_path / "kept" / "cells").iterdir())[0]
    path.rename(tmp_path / "moved")
    {"pipe": os.mkfifo, "link": lambda at: at.symlink_to(tmp_path / "moved"), "folder": os.mkdir}[how](path)
    with pytest.raises(ValueError, match=f"{path.name} is not what a comparison writes"):
        go(runs=1, folder=tmp_path / "kept")


@pytest.mark.parametrize("part", ["cells", "work"])
def test_a_link_in_the_place_of_a_folder_is_not_followed(part, tmp_path):
    go(runs=1, folder=tmp_path / "kept")
    (tmp_path / "kept" / part).rename(tmp_path / "elsewhere")
    (tmp_path / "kept" / part).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=f"{part} is a link, which is not followed: name another folder"):
        go(runs=1, folder=tmp_path / "kept")


@pytest.mark.parametrize(
    "change",
    [
        {"nfev": 601},
        {"nfev": -1},
        {"x": np.zeros(6)},
        {"x": np.full(5, np.nan)},
        {"trace": lambda trace: replace(trace, nfev=trace.nfev[::-1])},
        {"records": lambda records: replace(records, own=records.own[::-1])},
    ],
)
def test_a_kept_run_that_cannot_be_the_one_is_refused(change, tmp_path):
    go(runs=1, folder=tmp_path / "kept")
    path = sorted((tmp_path / "kept" / "cells").iterdir())[0]
    outcome = Outcome.load(path)
    made = {name: value(getattr(outcome, name)) if callable(value) else value for name, value in change.items()}
    replace(outcome, **made).save(path)
    with pytest.raises(ValueError, match=f"{path.name} .*: remove it and run again"):
        go(runs=1, folder=tmp_path / "kept")


# Failures of the objective.


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
