"""What a run folder is recovered from when one of its files is damaged, or a disk fails at an awkward instant."""

from __future__ import annotations

import errno
import os
import shutil
import warnings
from functools import partial

import numpy as np
import pytest
from killing import die, killed

import zerothresh as zt
from zerothresh.runs import RunError, snapshot
from zerothresh.runs import folder as folders
from zerothresh.runs.failures import Failures
from zerothresh.runs.inspection import read_run
from zerothresh.runs.paths import JOURNAL, SNAPSHOT, numbered
from zerothresh.runs.trace_file import extent_of

METHODS = [zt.FGZOHT(eta=0.02), zt.VRSZHT(eta=0.02, m=3), zt.methods.NIHT()]
PROBLEM = zt.problems.ridge(n=8, d=6, seed=1)
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)


class Counted:
    """The ridge problem; it counts its calls, and may kill its process at one of them."""

    fingerprint = "counted"

    def __init__(self, dies_at=None):
        self.calls, self.dies_at = 0, dies_at

    def __call__(self, x, i):
        self.calls += 1
        if self.calls == self.dies_at:
            die()
        return PROBLEM.values(x[None], np.array([i]))[0]


def go(fun, folder=None, method=METHODS[0], **options):
    estimator = zt.Estimator(q=3, mu=1e-3)
    made = {"n": 8, "budget": 400, "method": method, "seed": 3, "monitor": PROBLEM.F, "estimator": estimator}
    return zt.minimize(fun, 6, 2, run=folder, **{**made, **options})


def same(one, other):
    return (
        np.array_equal(one.x, other.x) and (one.nfev, one.fun) == (other.nfev, other.fun) and one.trace == other.trace
    )


def flip_a_digit(path, begin=0):
    """Change the first digit after byte ``begin`` of a file."""
    text = path.read_bytes()
    at = next(at for at in range(begin, len(text)) if text[at : at + 1].isdigit())
    path.write_bytes(text[:at] + bytes([ord("0") + (text[at] - ord("0") + 1) % 10]) + text[at + 1 :])


HARM = {
    "a changed digit": flip_a_digit,
    "removed": lambda path: path.unlink(),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:20]),
    "empty": lambda path: path.write_bytes(b""),
}


# The trace.


@every_method
@pytest.mark.parametrize("harm", ["a changed digit", "cut"])
def test_a_trace_that_is_damaged_after_the_older_snapshot_is_made_again_from_there(harm, method, tmp_path, monkeypatch):
    whole = go(Counted(), method=method)
    asked = iter(range(10**9))
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda self: next(asked) % 3 == 0)
    assert killed(lambda: go(Counted(whole.nfev - 10), tmp_path / "a", method), lambda: None)[0]
    path = tmp_path / "a" / "trace.csv"
    older, newest = (extent_of(snapshot.read(path)[0]) for _, path in numbered(tmp_path / "a", SNAPSHOT))
    assert older.bytes < newest.bytes
    if harm == "cut":
        path.write_bytes(path.read_bytes()[: older.bytes + 1])
    else:
        flip_a_digit(path, older.bytes)
    with pytest.raises(RunError, match=r"trace\.csv has been changed or cut off"):
        read_run(tmp_path / "a").trace()
    fun = Counted()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert same(go(fun, tmp_path / "a", method), whole)
    assert fun.calls == 11


def test_a_damaged_trace_of_a_run_with_all_its_values_is_made_again(tmp_path):
    whole = go(Counted(), tmp_path / "a")  # short: the journal has the whole run
    for harm in HARM.values():
        harm(tmp_path / "a" / "trace.csv")
        fun = Counted()
        found = go(fun, tmp_path / "a")
        assert fun.calls == 0
        assert same(found, whole)
        assert read_run(tmp_path / "a").trace() == whole.trace


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_a_trace_that_cannot_be_made_again_is_cut_with_a_warning(harm, tmp_path, monkeypatch):
    whole = go(Counted())
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda self: True)
    assert killed(lambda: go(Counted(200), tmp_path / "a"), lambda: None)[0]
    harm(tmp_path / "a" / "trace.csv")
    fun = Counted()
    with pytest.warns(UserWarning, match=r"the trace up to step \d+ is lost: trace\.csv .* was damaged or removed"):
        found = go(fun, tmp_path / "a")
    assert fun.calls == whole.nfev - 199
    assert (found.nfev, found.fun) == (whole.nfev, whole.fun)
    kept = len(found.trace)
    assert 0 < kept < len(whole.trace)
    assert np.array_equal(found.trace.fun, whole.trace.fun[-kept:])
    assert all(np.array_equal(a, b) for a, b in zip(found.trace.support, whole.trace.support[-kept:], strict=True))
    assert found.trace.support_changes == whole.trace.support_changes
    set_aside = harm is not HARM["removed"]
    assert (tmp_path / "a" / "trace-damaged-1.csv").exists() == set_aside
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(go(Counted(), tmp_path / "a").trace) == kept


# Disks that fail.


def test_values_after_a_failed_sync_of_a_new_snapshots_name_are_found(tmp_path, monkeypatch):
    """The rename makes the snapshot valid: from then on values must go where a new session looks for them."""
    real, failed = folders.sync_folder, []

    def sync(folder):
        if not failed and numbered(folder, SNAPSHOT):
            failed.append(True)
            raise OSError(errno.EIO, "Input/output error")
        real(folder)

    monkeypatch.setattr(folders, "sync_folder", sync)
    monkeypatch.setattr(folders.Run, "due", lambda self: not failed)
    assert killed(lambda: go(Counted(300), tmp_path / "a"), lambda: None)[0]
    monkeypatch.undo()
    fun, whole = Counted(), go(Counted())
    assert same(go(fun, tmp_path / "a"), whole)
    assert fun.calls == whole.nfev - 299


def test_values_in_a_journal_that_was_not_changed_over_are_found(tmp_path, monkeypatch):
    """A snapshot says from which place in the journals values count, wherever they went on."""
    real = folders.Run.save

    def save(self, meta, arrays):
        if not numbered(self.folder, SNAPSHOT):
            journal, tail = self.open_journal, self._tail
            self.open_journal = None
            self._tail = tail[0], tail[1], journal.mark()
            real(self, meta, arrays)
            self.open_journal, self._tail = journal, tail  # as if the process had been disturbed after the rename

    monkeypatch.setattr(folders.Run, "save", save)
    monkeypatch.setattr(folders.Run, "due", lambda self: True)
    assert killed(lambda: go(Counted(300), tmp_path / "a"), lambda: None)[0]
    monkeypatch.undo()
    assert [number for number, _ in numbered(tmp_path / "a", JOURNAL)] == [0]
    fun, whole = Counted(), go(Counted())
    assert same(go(fun, tmp_path / "a"), whole)
    assert fun.calls == whole.nfev - 299


@pytest.mark.parametrize("where", ["failures", "journal"])
def test_a_call_that_fails_on_a_full_disk_is_charged(where, tmp_path, monkeypatch):
    full, calls = False, 0

    def fails(x, i):
        nonlocal full, calls
        calls += 1
        if calls == 100:
            full = True
            raise OSError("flaky")
        return PROBLEM.values(x[None], np.array([i]))[0]

    def guarded(real):
        def write(*arguments, **options):
            if full:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*arguments, **options)

        return write

    fails.fingerprint = "fails"
    owner, name = {"failures": (Failures, "add"), "journal": (folders.Journal, "_append")}[where]
    monkeypatch.setattr(owner, name, guarded(getattr(owner, name)))
    stopped = go(fails, tmp_path / "a", retries=3, backoff=0)
    assert stopped.status is zt.Status.DISK
    assert "make room" in stopped.message
    assert stopped.nfev == calls == 100
    full = False
    made = {
        "n": 8,
        "budget": 400,
        "method": METHODS[0],
        "seed": 3,
        "monitor": PROBLEM.F,
        "estimator": zt.Estimator(q=3, mu=1e-3),
    }
    with zt.Optimizer(6, 2, run=tmp_path / "a", fingerprint="fails", **made) as again:
        assert again.nfev == (100 if where == "failures" else 99)  # what no disk would take is not there


def test_a_value_that_no_disk_takes_is_counted_and_used(tmp_path, monkeypatch):
    """Without reserved space a write can fail: the value was paid for, so that this session counts it."""
    append, written = folders.Journal._append, 0

    def write(self, line):
        nonlocal written
        written += 1
        if written == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(self, line)

    monkeypatch.setattr(folders.Journal, "_append", write)
    fun = Counted()
    stopped = go(fun, tmp_path / "a")
    assert stopped.status is zt.Status.DISK
    assert stopped.nfev == fun.calls
    monkeypatch.undo()
    assert same(go(Counted(), tmp_path / "a"), go(Counted()))


def test_a_value_that_cannot_be_kept_can_be_told_again(tmp_path, monkeypatch):
    with zt.Optimizer(6, 2, budget=100, method=METHODS[0], seed=0, run=tmp_path / "a") as optimizer:
        batch = optimizer.ask()
        with monkeypatch.context() as patch:

            def full(self, line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            patch.setattr(folders.Journal, "_append", full)
            with pytest.raises(OSError, match="No space left"):
                optimizer.tell(batch, np.ones(len(batch)))
        assert optimizer.nfev == 0
        optimizer.tell(batch, np.ones(len(batch)))
        assert optimizer.nfev == len(batch)


# What an earlier session left.


def test_the_way_back_to_an_older_snapshot_survives_a_session_that_ended(tmp_path):
    """A session goes on in a journal of its own, or its values would be removed with those of the session before."""
    first = go(Counted(), tmp_path / "a", budget=200)
    whole = go(Counted(), tmp_path / "a", budget=600)
    assert first.nfev < whole.nfev
    numbered(tmp_path / "a", SNAPSHOT)[-1][1].write_bytes(b"junk")
    fun = Counted()
    assert same(go(fun, tmp_path / "a", budget=600), whole)
    assert fun.calls == 0


def test_f_at_an_earlier_end_is_known_again_when_a_run_is_led_through_its_values(tmp_path):
    options = {"method": zt.SZOHT(0.02), "monitor": None}
    for seed in range(8):
        folder = tmp_path / str(seed)
        first = go(Counted(), folder, budget=100, seed=seed, **options)
        shutil.copytree(folder, tmp_path / f"{seed}-whole")
        whole = go(Counted(), tmp_path / f"{seed}-whole", budget=130, seed=seed, **options)
        assert killed(partial(go, Counted(10), folder, budget=130, seed=seed, **options), lambda: None)[0]
        (folder / "trace.csv").unlink()
        fun = Counted()
        again = go(fun, folder, budget=130, seed=seed, **options)
        assert fun.calls == whole.nfev - first.nfev - 9
        assert same(again, whole)


def test_values_after_one_that_could_not_be_written_are_found(tmp_path, monkeypatch):
    append, full = folders.Journal._append, False

    def write(self, line):
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, line)

    monkeypatch.setattr(folders.Journal, "_append", write)
    settings = {"budget": 100, "method": METHODS[0], "seed": 0, "run": tmp_path / "a"}
    with zt.Optimizer(6, 2, **settings) as optimizer:
        batch = optimizer.ask()
        full = True
        with pytest.raises(OSError, match="No space left"):
            optimizer.tell(batch[:1], [1.0])
        full = False
        for row in range(len(batch)):
            optimizer.tell(batch[row : row + 1], [1.0])
    with zt.Optimizer(6, 2, **settings) as again:
        assert again.nfev == len(batch)


@pytest.mark.parametrize("where", ["plan", "update"])
def test_a_run_whose_method_fails_right_after_a_snapshot_is_not_stuck(where, tmp_path, monkeypatch):
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda self: True)
    real = getattr(zt.FGZOHT, where)

    def fails(self, state, *arguments):
        if np.abs(state.theta).sum() > 0.1:
            raise IndexError("no third step")
        return real(self, state, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(zt.FGZOHT, where, fails)
        stopped = go(Counted(), tmp_path / "a")
        assert stopped.status is zt.Status.METHOD_FAILED
        assert "this is a fault of zerothresh: please report it" in stopped.message
        again = go(Counted(), tmp_path / "a")
        assert (again.status, again.nfev, again.fun) == (stopped.status, stopped.nfev, stopped.fun)
    mended = go(Counted(), tmp_path / "a")
    assert mended.status is zt.Status.BUDGET
    assert mended.nfev > stopped.nfev


def test_a_hard_linked_list_of_failures_ends_the_run_and_the_call_is_charged(tmp_path):
    calls = 0

    def fails(x, i):
        nonlocal calls
        calls += 1
        if calls == 50:
            (tmp_path / "precious").write_text("precious")
            os.link(tmp_path / "precious", tmp_path / "a" / "failures.jsonl")
            raise ValueError("no")
        return 0.0

    stopped = go(fails, tmp_path / "a", retries=1, backoff=0, monitor=None)
    assert stopped.status is zt.Status.DISK
    assert "has another name elsewhere (a hard link)" in stopped.message
    assert stopped.nfev == calls == 50
    assert (tmp_path / "precious").read_text() == "precious"
