"""The benchmark of many workers counts what it says."""

from __future__ import annotations

import sys
from math import ceil, inf
from pathlib import Path

import pytest

import zerothresh as zt

BENCHMARKS = str(Path(__file__).parents[1] / "benchmarks")
sys.path.insert(0, BENCHMARKS)
try:
    import scaling
    import time_to_goal
    from families import make
finally:
    sys.path.remove(BENCHMARKS)


def test_serial_time_is_the_number_of_calls_and_wide_time_that_of_full_and_partial_waves():
    serial, wide = (time_to_goal.reach("bowl-100", 0, width) for width in (1, 50))
    assert serial.goal
    assert wide.goal
    assert serial.waves == serial.calls
    assert ceil(wide.calls / 50) <= wide.waves < serial.waves


def test_a_goal_that_is_not_reached_counts_with_what_it_cost():
    runs = [time_to_goal.Reached(10, 4, True), time_to_goal.Reached(30, 8, False)]
    assert time_to_goal.per_goal(runs, "calls") == 40
    assert time_to_goal.per_goal(runs, "waves") == 12
    assert time_to_goal.per_goal(runs[1:], "calls") == inf


@pytest.mark.parametrize("name", time_to_goal.SIX)
@pytest.mark.parametrize("seed", [0, 1000])
def test_the_goals_of_the_six_problems_lie_between_the_optimum_and_the_start(name, seed):
    problem = make(name, seed)
    assert problem.F_star < problem.target < problem.F_start


def test_rounds_are_as_wide_as_the_most_workers_and_the_clock_counts_all_but_the_first():
    clock = scaling.Clock()
    scaling.threads(0.0, 4, 3, clock)
    assert len(clock.times) == 4
    assert max(scaling.WORKERS) == scaling.WIDTH
    found = zt.minimize(scaling.Waiting(0.0), scaling.D, scaling.K, **scaling.settings(3, scaling.Clock()))
    assert found.nfev == 4 * scaling.WIDTH + 1


def test_an_engine_that_is_missing_is_skipped_with_a_sentence(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert scaling.engines(["dask"], (1,), 1)
    assert "skipped, because the package distributed is not installed" in capsys.readouterr().out
