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
from chaos_session import Fault, Place

import zerothresh as zt
from zerothresh.runs import journal
from zerothresh.runs.journal import Journal
from zerothresh.runs.lock import Lock

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")  # forked on purpose

PACKAGE = Path(zt.__file__).parent
RECORDING = tuple(str(PACKAGE / part) for part in ("runs", "basics/files.py"))
CASE = chaos.Case(zt.SAGASZHT(0.02), 0.0, 1, False, "never", False, False, 1)
EVERY = 5  # prime, so that the instants of three steps, which are alike, are not the same ones; all are slow
SHARE = 0.25  # of the budget: 750 calls per run, which are a dozen rounds or more


def test_killed_runs_lose_nothing_repeat_nothing_and_end_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(chaos, "MOST_FAULTS", 4)
    tally = chaos.campaign(chaos.OURS, 3, tmp_path, share=SHARE, kinds=("kill",))
    assert tally.faults["kill"] > 20
    assert tally.clean, f"{tally} {tally.words}"


@pytest.mark.parametrize("kind", [kind for kind in chaos.KINDS if kind != "kill"])
def test_so_it_is_with_every_other_fault(kind, tmp_path, monkeypatch):
    monkeypatch.setitem(chaos.MODES, "interrupt", ("sent", "pressed", "instant"))  # "import" takes seconds: see below
    tally = chaos.campaign(3, 1, tmp_path, share=SHARE, kinds=(kind,))
    assert tally.faults[kind] > 2
    assert tally.clean, f"{tally} {tally.words}"


@pytest.mark.slow
def test_so_it_is_with_everybody_elses_methods(tmp_path, monkeypatch):
    monkeypatch.setattr(chaos, "METHODS", chaos.METHODS[chaos.OURS :])
    tally = chaos.campaign(3 * len(chaos.METHODS), 4, tmp_path)
    assert tally.faults["kill"] > 20
    assert all(tally.faults[kind] for kind in chaos.KINDS)
    assert tally.clean, f"{tally} {tally.words}"


def test_an_interrupt_at_any_instant_of_the_opening_leaves_a_run_that_can_be_opened(tmp_path):
    presses = [Fault("interrupt", "instant", 0, 0, 0.0, again=True, times=30, seed=seed) for seed in range(3)]
    tally = disturbed(tmp_path, *presses)
    assert tally.faults["interrupt"] > 10
    assert tally.clean, f"{tally} {tally.words}"


def test_an_interrupt_while_an_interpreter_starts_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(chaos, "starting_time", lambda: 1.0)  # seconds: about the time of an import
    tally = disturbed(tmp_path, Fault("interrupt", "import", 1, 0, 0.0, seed=2))
    assert tally.clean, f"{tally} {tally.words}"


def test_a_disk_that_fills_up_loses_nothing(tmp_path, monkeypatch):
    """On a small file system if one can be mounted, and otherwise by system calls that fail."""
    monkeypatch.setitem(chaos.MODES, "disk", ("ballast",))
    tally = chaos.campaign(1, 2, tmp_path, share=SHARE, kinds=("disk",))
    assert tally.faults["disk"] > 0
    assert tally.clean, f"{tally} {tally.words}"


def touches_the_disk(function):
    if function is os.getpid:  # asks the kernel, and changes nothing
        return False
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


@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_each_instant_of_the_recording_nothing_is_lost(every, tmp_path):
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
    for instant in range(1, instants + 1, every):
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


# Chaos can fail: whatever is wrong with a run is noticed. Without it, the same faults are harmless, as shown above.


def disturbed(where, *faults, case=CASE, budget=300):
    return chaos.torment(case, Place(where / "run", where / "run" / "run"), budget, lambda total: faults)


@pytest.mark.parametrize("fault", ["forgets values", "forgets the state"])
def test_chaos_notices_a_recorder_that_loses_things(fault, tmp_path, monkeypatch):
    case = dataclasses.replace(CASE, pause=0.0002, eager=True)
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
    kills = [Fault("kill", "sent", after, 10, 0.0, kill=True) for after in (300, 100)]
    assert not disturbed(tmp_path, *kills, case=case, budget=1200).clean


FORKS = [
    Fault("fork", "exit", 100, 20, 0.0, twice=True, kill=True),
    Fault("fork", "unwind", 100, 20, 0.0, at_step=True, twice=True, kill=True),
    Fault("fork", "go on", 100, 0, 0.0, twice=True),
]


@pytest.mark.parametrize("fault", [*FORKS, Fault("daemon", "inherit", 100, 0, 0.0, at_step=True)], ids=str)
def test_chaos_notices_a_run_that_goes_on_in_a_forked_child(fault, tmp_path, monkeypatch):
    process = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: process)  # the run cannot tell
    monkeypatch.setattr(Lock, "forget", lambda self: None)
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda self: False)  # a snapshot would hide it
    tally = disturbed(tmp_path, fault)
    assert tally.faults[fault.kind] == 1
    assert not tally.clean


def test_chaos_notices_a_lock_that_does_not_hold(tmp_path, monkeypatch):
    fault = Fault("copy", "step", 100, 0, 0.0, at_step=True)
    monkeypatch.setattr("fcntl.flock", lambda *_: None)
    tally = disturbed(tmp_path, fault)
    assert tally.writers == 1


def test_chaos_notices_a_copy_that_lacks_values(tmp_path, monkeypatch):
    def lossy(source, target, **_):
        target.mkdir()
        for name in os.listdir(source):
            data = (source / name).read_bytes()
            (target / name).write_bytes(data[:40] if name.endswith(".json") else data)

    monkeypatch.setattr("shutil.copytree", lossy)
    tally = disturbed(tmp_path, Fault("copy", "step", 100, 0, 0.0, at_step=True))
    assert tally.refused == 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault("interrupt", "pressed", 100, 0, 0.0, twice=True),
        Fault("disk", "all", 100, 0, 0.0, failing=True),
    ],
    ids=str,
)
def test_chaos_notices_a_failed_call_that_is_forgotten(fault, tmp_path, monkeypatch):
    monkeypatch.setattr(Journal, "failure", lambda *_: None)
    assert disturbed(tmp_path, fault).repeated


def test_chaos_notices_a_lock_that_outlives_an_interrupt(tmp_path, monkeypatch):
    fault = Fault("interrupt", "pressed", 100, 0, 0.0, again=True)
    real, kept = Lock.__init__, []

    def keeping(self, *arguments):
        kept.append(self)
        real(self, *arguments)

    monkeypatch.setattr(Lock, "__init__", keeping)
    monkeypatch.setattr(Lock, "release", lambda self: None)
    assert disturbed(tmp_path, fault).refused == 1


def test_chaos_notices_a_value_that_is_dropped_when_a_sync_fails(tmp_path, monkeypatch):
    case = dataclasses.replace(CASE, fsync="value")
    fault = Fault("fsync", "all", 100, 0, 0.0)
    real = Journal._append

    def careless(self, line):
        try:
            journal._sync(self._fd)
        except OSError as error:
            self.trouble = error
        else:
            real(self, line)

    monkeypatch.setattr(Journal, "_append", careless)
    tally = disturbed(tmp_path, fault, case=case)
    assert tally.faults["fsync"] == 1
    assert tally.repeated
