"""The short version of `make chaos`, and a proof that it can fail."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from pathlib import Path

import chaos
import numpy as np
import pytest

import zerothresh as zt
from zerothresh.runs import RunError
from zerothresh.runs.journal import Journal

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")  # forked on purpose

PACKAGE = Path(zt.__file__).parent
RECORDING = tuple(str(PACKAGE / part) for part in ("runs", "basics/files.py"))


def test_killed_runs_lose_nothing_repeat_nothing_and_end_the_same(tmp_path):
    tally = chaos.campaign(chaos.OURS, 3, tmp_path, share=0.25)  # 750 calls per run: a dozen rounds or more
    assert tally.kills > 8
    assert tally.clean, f"{tally} {tally.words}"


@pytest.mark.slow
def test_so_it_is_with_everybody_elses_methods(tmp_path, monkeypatch):
    monkeypatch.setattr(chaos, "METHODS", chaos.METHODS[chaos.OURS :])
    tally = chaos.campaign(3 * len(chaos.METHODS), 4, tmp_path)
    assert tally.kills > 20
    assert tally.clean, f"{tally} {tally.words}"


def touches_the_disk(function):
    owner = getattr(function, "__self__", None)
    return (function.__module__ or type(owner).__module__) in {"posix", "io", "_io", "mmap", "fcntl", "binascii"}


def last_breath(instant):
    """Kill this process before the instant-th step on the disk that the recording of a run takes."""
    seen = [0]

    def watch(frame, event, argument):
        if event == "c_call" and frame.f_code.co_filename.startswith(RECORDING) and touches_the_disk(argument):
            seen[0] += 1
            if seen[0] == instant:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(watch)
    return seen


def test_damage_to_a_file_that_is_empty_already_leaves_it_so(tmp_path):
    for name in ("snapshot-0000000001.npz", "snapshot-0000000002.npz", "journal-0000000002.jsonl"):
        (tmp_path / name).touch()
    for seed in range(10):
        chaos.damage(tmp_path, np.random.default_rng(seed))
        assert (tmp_path / "snapshot-0000000002.npz").stat().st_size == 0


def test_killed_at_each_instant_of_the_recording_nothing_is_lost(tmp_path):
    """Random instants seldom hit the few microseconds between two steps on the disk: these hit them all."""
    case = chaos.Case(zt.SAGASZHT(0.02), 0.0, 1, False, "never", True, False, 1)
    budget = 52  # three steps and the end: snapshots are written, replaced and removed
    twin = chaos.run(case, None, tmp_path / "twin", budget)
    seen = []

    def die_at(instant, folder, ledger):
        child = os.fork()
        if child == 0:
            count = last_breath(instant)
            chaos.run(case, folder, ledger, budget)
            sys.setprofile(None)
            (tmp_path / "count").write_text(str(count[0]))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status)

    assert not die_at(0, tmp_path / "whole", None)
    instants = int((tmp_path / "count").read_text())
    assert instants > 100
    for instant in range(1, instants + 1):
        folder, ledger = tmp_path / f"run-{instant}", tmp_path / f"ledger-{instant}"
        assert die_at(instant, folder, ledger)
        before = chaos.asked(ledger)
        result = chaos.run(case, folder, ledger, budget)
        same = (result.x.tobytes(), result.fun, result.nfev, result.trace)
        assert same == (twin.x.tobytes(), twin.fun, twin.nfev, twin.trace), f"instant {instant}"
        repeated = chaos.asked(ledger) - chaos.asked(tmp_path / "twin")
        assert 0 <= repeated <= (before > 0), f"instant {instant}: {repeated} repeated queries"
        assert not [name for name in os.listdir(folder) if name.endswith(".part")]
        seen.append(repeated)
    assert 0 in seen


def test_a_full_disk_loses_nothing(tmp_path):
    words = chaos.full_disk(tmp_path / "disk")
    if words.startswith("not tried"):
        pytest.skip(words)
    stops, rest = words.split(" stops, ")
    assert int(stops) > 0
    assert rest == "0 repeated queries, the same bits"


@pytest.mark.parametrize("fault", ["forgets values", "forgets the state"])
def test_chaos_notices_a_recorder_that_loses_things(fault, tmp_path, monkeypatch):
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
        monkeypatch.setattr("zerothresh.rounds.search.Stepwise.restored", lambda self, *_: self)
    tally = chaos.Tally()
    try:
        chaos.torment(case, tmp_path, 1200, np.random.default_rng(0), tally, spoil=False)
    except (RuntimeError, RunError):
        return  # refused as not fitting: noticed as well
    assert not tally.clean
