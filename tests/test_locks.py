"""One writer per run folder: whatever forks, copies, links and interrupts do, nobody else writes, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import suppress

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.basics import files
from zerothresh.runs import RunError
from zerothresh.runs.inspection import inspect
from zerothresh.runs.lock import holder_of

ARGUMENTS = {"budget": 300, "method": zt.FGZOHT(eta=0.05), "seed": 0}
SECOND = """
import sys, zerothresh as zt
try:
    zt.Optimizer(6, 2, run=sys.argv[1], budget=300, method=zt.FGZOHT(eta=0.05), seed=0, fingerprint="sphere")
    print("let in")
except ValueError as error:
    print(error)
"""


def sphere(x):
    return float(((x - 1) ** 2).sum())


def second_process(folder):
    """What another process is told that opens the same run."""
    found = subprocess.run([sys.executable, "-c", SECOND, str(folder)], capture_output=True, text=True, check=True)
    return found.stdout


def opened(folder, **options):
    return zt.Optimizer(6, 2, run=folder, fingerprint="sphere", **{**ARGUMENTS, **options})


def tell_some(optimizer, rounds):
    for _ in range(rounds):
        batch = optimizer.ask()
        optimizer.tell(batch, [sphere(x) for x in batch.points])


def in_fork(action):
    """Do something in a forked child that ends like any program, with its finalisers; return what it printed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(write, str(action()).encode())
            code = 0
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            import weakref

            weakref.finalize._exitfunc()  # what a normal end does; pytest's own end must not happen twice
            os._exit(code)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as pipe:
        return pipe.read()


# Locks.


def test_a_copy_of_the_folder_in_a_callback_does_not_release_the_lock(tmp_path):
    told = []

    def copies(state):
        if state.nit == 5:
            shutil.copytree(tmp_path / "a", tmp_path / "backup")
            told.append(second_process(tmp_path / "a"))

    result = zt.minimize(sphere, 6, 2, run=tmp_path / "a", callback=copies, **ARGUMENTS)
    assert result.status is zt.Status.BUDGET
    assert f"is being written by process {os.getpid()} on" in told[0]


def test_a_copy_of_a_folder_is_a_run_of_its_own(tmp_path):
    with opened(tmp_path / "a") as first:
        tell_some(first, 5)
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        with opened(tmp_path / "b") as second:
            assert second.nfev == first.nfev
            tell_some(second, 5)
        tell_some(first, 5)
        assert np.array_equal(first.result().x_last, second.result().x_last)


def test_two_optimizers_of_one_process_and_two_threads_exclude_each_other(tmp_path):
    with opened(tmp_path / "a"), pytest.raises(RunError, match="is already open in this process"):
        opened(tmp_path / "a")
    for trial in range(20):
        gate, got = threading.Barrier(4), []

        def go(gate=gate, got=got, folder=tmp_path / str(trial)):
            gate.wait()
            with suppress(RunError):
                got.append(opened(folder))

        threads = [threading.Thread(target=go) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(got) == 1
        got[0].close()


def test_the_holder_is_told_from_inside_and_outside(tmp_path):
    with opened(tmp_path / "a"):
        assert holder_of(tmp_path / "a").startswith(f"process {os.getpid()} on {socket.gethostname()} since ")
        assert holder_of(tmp_path / "a").endswith(" (this one)")
        assert inspect(tmp_path / "a").state == "running"
    assert holder_of(tmp_path / "a") is None


@pytest.mark.parametrize("harm", ["removed", "replaced", "taken over"])
def test_a_lost_lock_ends_the_run_before_the_next_snapshot(harm, tmp_path, monkeypatch):
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda self: True)
    lock = tmp_path / "a" / "lock"

    def loses(state):
        if state.nit == 5 and harm == "taken over":
            lock.write_text('{"pid": 1, "host": "other", "since": "now"}\n')
        elif state.nit == 5:
            lock.unlink()
            if harm == "replaced":
                lock.touch()

    stopped = zt.minimize(sphere, 6, 2, run=tmp_path / "a", callback=loses, **ARGUMENTS)
    assert stopped.status is zt.Status.DISK
    assert stopped.nit in (5, 6)
    assert "was removed or replaced, or another process has taken the run over" in stopped.message
    again = zt.minimize(sphere, 6, 2, run=tmp_path / "a", **ARGUMENTS)
    assert np.array_equal(again.x, zt.minimize(sphere, 6, 2, **ARGUMENTS).x)


def test_a_lost_lock_is_told_in_ask_and_tell_and_the_new_owner_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda self: True)
    first = opened(tmp_path / "a")
    tell_some(first, 3)
    (tmp_path / "a" / "lock").unlink()
    with opened(tmp_path / "a") as second:
        tell_some(second, 5)
        batch = first.ask()
        first.tell(batch, [sphere(x) for x in batch.points])  # the snapshot after it finds out
        with pytest.raises(OSError, match="another process has taken the run over"):
            first.ask()
        first.close()
        tell_some(second, 2)
        made = second.nfev
    with opened(tmp_path / "a") as third:
        assert third.nfev == made == 110


def test_an_interrupt_while_a_run_is_opened_leaves_it_free(tmp_path, monkeypatch):
    def ctrl_c():
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(socket, "gethostname", ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        zt.minimize(sphere, 6, 2, run=tmp_path / "a", **ARGUMENTS)
    assert zt.minimize(sphere, 6, 2, run=tmp_path / "a", **ARGUMENTS).success


# Forks.


def test_a_forked_child_that_ends_normally_leaves_the_journal_alone(tmp_path):
    with opened(tmp_path / "a") as optimizer:
        tell_some(optimizer, 5)
        assert in_fork(lambda: "ends") == "ends"
        tell_some(optimizer, 5)
        assert in_fork(optimizer.close) == "None"
        assert f"process {os.getpid()} on" in second_process(tmp_path / "a")  # the child did not release the lock
        tell_some(optimizer, 5)
        made, point = optimizer.nfev, optimizer.result().x_last
    with opened(tmp_path / "a") as again:
        assert again.nfev == made
        assert np.array_equal(again.result().x_last, point)


def test_a_forked_child_may_not_write(tmp_path):
    optimizer = opened(tmp_path / "a")
    batch = optimizer.ask()
    values = [sphere(x) for x in batch.points]
    told = in_fork(lambda: optimizer.tell(batch, values))
    assert told.startswith(f"RunError: {tmp_path}/a/journal-0000000000.jsonl is written by process {os.getpid()}")
    assert "open the run again in this process" in in_fork(optimizer.ask)
    optimizer.tell(batch, values)
    tell_some(optimizer, 3)
    made = optimizer.nfev
    optimizer.close()
    with opened(tmp_path / "a") as again:
        assert again.nfev == made


def test_a_daemon_opens_the_run_itself(tmp_path):
    """The parent of a daemon ends after the fork; the daemon cannot write with what it inherited, but can open it."""
    code = f"""
import os, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_locks import opened, tell_some
folder = {str(tmp_path / "a")!r}
optimizer = opened(folder)
tell_some(optimizer, 3)
read, write = os.pipe()
if os.fork():
    os._exit(0)
os.close(write)
os.read(read, 1)  # ends when the parent has ended
try:
    optimizer.ask()
except ValueError as error:
    print(error)
again = opened(folder)
tell_some(again, 3)
print(again.nfev)
again.close()
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    refused, made = found.stdout.splitlines()
    assert "which was forked from it: open the run again in this process" in refused
    with opened(tmp_path / "a") as after:
        assert after.nfev == int(made) == 66


def test_a_lock_does_not_outlive_its_process_in_a_forked_child(tmp_path):
    code = f"""
import os, sys, time
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_locks import opened
optimizer = opened({str(tmp_path / "a")!r})
if os.fork() == 0:
    os.close(1), os.close(2)
    sys.stdin.read()  # a worker that outlives its parent, until the test ends
    os._exit(0)
os._exit(0)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as parent:
        parent.wait()
        with opened(tmp_path / "a") as mine:
            tell_some(mine, 1)
            assert mine.nfev == 11


# Links.


def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(tmp_path):
    victim = tmp_path / "precious.txt"
    victim.write_text("precious")
    (tmp_path / f".page.html.{os.getpid()}.part").symlink_to(victim)
    files.write(tmp_path / "page.html", "content")
    assert (tmp_path / "page.html").read_text() == "content"
    assert not (tmp_path / "page.html").is_symlink()
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["lock", "trace.csv", "sessions.jsonl", "journal"])
def test_a_file_with_another_name_elsewhere_is_not_written(name, tmp_path):
    folder, victim = tmp_path / "a", tmp_path / "precious.txt"
    with opened(folder) as optimizer:
        tell_some(optimizer, 3)
        if name != "journal":  # with a snapshot, a new journal is begun
            optimizer.stop()
            tell_some(optimizer, 1)  # F at the result
    path = next(folder.glob(f"{name}*"))
    path.unlink()
    victim.write_text("precious\n" * 100)
    os.link(victim, path)
    with pytest.raises(RunError, match=r"has another name elsewhere \(a hard link\)"), opened(folder) as again:
        again.ask()
    assert victim.read_text() == "precious\n" * 100
