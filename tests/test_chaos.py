"""The short version of `make chaos`, and a proof that it can fail."""

from __future__ import annotations

import dataclasses

import chaos
import numpy as np
import pytest

import zerothresh as zt
from zerothresh.runs import RunError
from zerothresh.runs.journal import Journal

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")  # forked on purpose


@pytest.fixture(autouse=True)
def compiled():
    chaos.run(chaos.Case(chaos.METHODS[4], 0.0, 1, False, "never", False, False, 0), None, None, 300)


def test_killed_runs_lose_nothing_repeat_nothing_and_end_the_same(tmp_path):
    tally = chaos.campaign(8, 3, tmp_path)
    assert tally.kills > 8
    assert tally.clean, f"{tally} {tally.words}"


def test_a_full_disk_loses_nothing(tmp_path):
    words = chaos.full_disk(tmp_path / "disk")
    if words.startswith("not tried"):
        pytest.skip(words)
    stops, rest = words.split(" stops, ")
    assert int(stops) > 0
    assert rest == "0 repeated queries, the same bits"


@pytest.mark.parametrize("fault", ["forgets values", "forgets the state"])
def test_chaos_notices_a_keeper_that_loses_things(fault, tmp_path, monkeypatch):
    case = chaos.Case(zt.SAGASZHT(0.02), 0.0002, 1, False, "never", True, False, 1)
    if fault == "forgets values":  # written a little late: the last few are not on disk when the process dies
        real, late = Journal.values, []

        def tardy(self, *arguments):
            late.append(arguments)
            while len(late) > 3:
                real(self, *late.pop(0))

        monkeypatch.setattr(Journal, "values", tardy)
        monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda self: False)
        case = dataclasses.replace(case, eager=False)
    else:
        monkeypatch.setattr("zerothresh.keeper.restore", lambda template, arrays: template)
    tally = chaos.Tally()
    try:
        chaos.torment(case, tmp_path, 1200, np.random.default_rng(0), tally, spoil=False)
    except (RuntimeError, RunError):
        return  # refused as not fitting: noticed as well
    assert not tally.clean
