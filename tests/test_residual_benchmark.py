"""The page docs/residuals.md, and how benchmarks/residuals.py charges and judges runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")


def row(solver, falls, case="bard", budget=400):
    return {
        "table": "dense",
        "case": case,
        "seed": 0,
        "solver": solver,
        "budget": budget,
        "late": False,
        "falls": falls,
    }


def test_the_page_shows_what_was_measured():
    import residual_page

    kept = json.loads((ROOT / "docs" / "residuals.json").read_text())
    why = "run benchmarks/residual_page.py"
    assert residual_page.page(kept) == (ROOT / "docs" / "residuals.md").read_text(), why


def test_an_unsolved_problem_is_charged_the_whole_budget_and_named():
    import residual_tables

    measured = [
        row("dfols", [[1, 1.0], [10, 5e-4], [20, 5e-6], [40, 0.0]]),
        row("gauss-newton", [[1, 1.0], [5, 9e-4], [10, 5e-6]]),
    ]
    rows = residual_tables.profile(measured, "gauss-newton")
    assert [residual_tables.fewer(rows, place) for place in range(3)] == pytest.approx([2.0, 2.0, 0.1])
    assert residual_tables.lost(rows) == ["bard#0"]
    assert [one.met for one in residual_tables.goals(measured)] == [True, True, False, False]


def test_what_is_kept_of_the_falls_of_F_gives_the_same_ratios():
    import residual_tables

    measured = [
        row("dfols", [[run, 0.5**run] for run in range(1, 40)]),
        row("gauss-newton", [[run, 0.2**run] for run in range(1, 30)]),
    ]
    thin = residual_tables.thinned(measured)
    assert all(len(one["falls"]) <= 5 for one in thin)
    for name in ("dfols", "gauss-newton"):
        assert residual_tables.profile(thin, name) == residual_tables.profile(measured, name)


def test_a_solver_is_stopped_at_its_target_and_the_right_support_is_asked_for():
    import numpy as np
    import residual_peers

    truth = np.array([0.0, 2.0, 0.0])
    runs = residual_peers.Runs(lambda x: x - truth, 1, 100, truth)
    runs(np.zeros(3))
    runs(np.array([1e-9, 2.0, 0.0]))
    assert runs.hit is None
    with pytest.raises(residual_peers.Stop):
        runs(truth)
    assert runs.hit == 3
    assert runs.best == 0.0
