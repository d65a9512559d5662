"""Runs that survive: what is on disk, what is refused, and that going on changes nothing."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from killing import die, killed

import zerothresh as zt
from zerothresh.runs import RunError, snapshot
from zerothresh.runs.folder import SHARE
from zerothresh.runs.journal import read as read_journal
from zerothresh.runs.paths import JOURNAL, SNAPSHOT, numbered

PROBLEM = zt.problems.ridge(seed=0)
METHODS = [
    zt.FGZOHT(0.02),
    zt.SZOHT(0.02, batch=2),
    zt.VRSZHT(0.02, m=3, output="random"),
    zt.SARAHSZHT(0.02, m=3),
    zt.SAGASZHT(0.02),
    zt.PSAGASZHT(0.02, p=3),
    zt.LSVRGSZHT(0.02),
    zt.PMSZHT(0.02, law=zt.methods.FixedSize(2)),
    zt.methods.Auto(),
    zt.methods.NIHT(),
    zt.methods.HTP(),
    zt.methods.Index(),
    zt.methods.GuidedSAGA(),
]
QUICK = (zt.SZOHT, zt.PMSZHT, zt.methods.Auto)  # a state without memory, one with it, and a replayed program
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)


class Stop(Exception):
    """The process that ran was killed."""


class Counted:
    """The ridge problem with a ledger of all points that were asked for, and a death at a given call."""

    fingerprint = "ridge"

    def __init__(self, dies_at=None):
        self.asked, self.dies_at = [], dies_at

    def __call__(self, x, i):
        self.asked.append((x.tobytes(), i))
        if self.dies_at is not None and len(self.asked) >= self.dies_at:
            die()
        return PROBLEM.values(x[None], np.array([i]))[0]


def go(fun, folder=None, method=METHODS[1], budget=500, **options):
    """Minimise; a function that dies does so in a process of its own, and then `Stop` is raised here."""
    made = {"n": 10, "budget": budget, "method": method, "seed": 3, "estimator": zt.Estimator(q=3, mu=1e-3)}

    def run():
        return zt.minimize(fun, 5, 2, run=folder, **{**made, **options})

    if getattr(fun, "dies_at", None) is not None:
        dead, fun.asked = killed(run, lambda: fun.asked)
        if dead:
            raise Stop
    return run()


def same(one, other):
    return (
        np.array_equal(one.x, other.x)
        and np.array_equal(one.x_last, other.x_last)
        and one.fun == other.fun
        and one.trace == other.trace
        and (one.nfev, one.nht, one.nit) == (other.nfev, other.nht, other.nit)
    )


@every_method
def test_resuming_anywhere_changes_nothing_and_pays_for_nothing_twice(method, tmp_path):
    whole = Counted()
    reference = go(whole, method=method)
    total = len(whole.asked)
    assert total > 150
    deaths = [1, 2, 5, 37, 90, 91, 92, 93, 200, total - 1, total]
    for number, death in enumerate(death for death in deaths if death <= total):
        folder = tmp_path / str(number)
        first = Counted(death)
        with pytest.raises(Stop):
            go(first, folder, method)
        second = Counted()
        resumed = go(second, folder, method)
        assert same(resumed, reference)
        assert first.asked[:-1] + second.asked == whole.asked  # only the call that died is made again


@pytest.mark.parametrize(
    "method",
    [pytest.param(m, marks=[] if isinstance(m, QUICK) else [pytest.mark.slow]) for m in METHODS],
    ids=lambda m: type(m).__name__,
)
def test_many_deaths_in_one_run_change_nothing(method, tmp_path):
    whole = Counted()
    reference = go(whole, method=method)
    asked, rng = [], np.random.default_rng(1)
    for _ in range(400):
        fun = Counted(int(rng.integers(1, 60 if isinstance(method, zt.Program) else 20)))
        try:
            resumed = go(fun, tmp_path / "run", method)
        except Stop:
            asked += fun.asked[:-1]
            continue
        asked += fun.asked
        break
    assert asked == whole.asked
    assert same(resumed, reference)


def test_a_finished_run_is_not_run_again_and_a_larger_budget_goes_on(tmp_path):
    first, again, more = Counted(), Counted(), Counted()
    done = go(first, tmp_path / "a")
    assert same(go(again, tmp_path / "a"), done)
    assert again.asked == []
    longer = go(more, tmp_path / "a", budget=900)
    assert more.asked
    assert longer.nfev == len(first.asked) + len(more.asked) <= 900
    straight = go(Counted(), budget=900)
    shorter = min(len(straight.trace), len(longer.trace))
    assert len(straight.trace) - len(longer.trace) <= 2  # F at the first end was paid for
    assert straight.trace.support[:shorter][-1].tolist() == longer.trace.support[:shorter][-1].tolist()
    with pytest.raises(RunError, match="a budget may stay or grow"):
        go(Counted(), tmp_path / "a", budget=600)


def test_the_seed_of_a_run_without_one_is_kept(tmp_path):
    first = go(Counted(), tmp_path / "a", seed=None)
    assert go(Counted(), tmp_path / "a", seed=None).seed == first.seed
    assert go(Counted(), tmp_path / "a", seed=first.seed).seed == first.seed


@pytest.mark.parametrize("fsync", ["value", "batch", "never"])
def test_every_fsync_policy_gives_the_same_run(fsync, tmp_path):
    with pytest.raises(Stop):
        go(Counted(90), tmp_path / "a", fsync=fsync)
    assert same(go(Counted(), tmp_path / "a", fsync=fsync), go(Counted()))


@pytest.mark.parametrize("workers", [2, 4])
def test_a_run_on_threads_goes_on_alone_and_the_other_way_round(workers, tmp_path):
    reference = go(Counted())
    with pytest.raises(Stop):
        go(Counted(150), tmp_path / "a", workers=workers)
    with pytest.raises(Stop):
        go(Counted(100), tmp_path / "a")
    assert same(go(Counted(), tmp_path / "a", workers=workers), reference)


def test_a_vectorised_run_is_kept_in_whole_chunks(tmp_path):
    class Batches:
        d, n, fingerprint = 5, 10, "batches"

        def __init__(self, dies_at=None):
            self.asked, self.dies_at = [], dies_at

        def values(self, points, components):
            self.asked.append(len(points))
            if len(self.asked) == self.dies_at:
                die()
            return PROBLEM.values(points, components)

    options = {"n": None, "chunk": 3, "method": METHODS[2]}
    first, second = Batches(40), Batches()
    with pytest.raises(Stop):
        go(first, tmp_path / "a", **options)
    resumed = go(second, tmp_path / "a", **options)
    assert same(resumed, go(Batches(), **options))
    assert sum(first.asked[:-1]) + sum(second.asked) == resumed.nfev


# Snapshots.


def always_due(monkeypatch):
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda self: True)


def dead_run(tmp_path, monkeypatch, death=201, method=METHODS[4]):
    """A run that died, with snapshots after every round."""
    always_due(monkeypatch)
    with pytest.raises(Stop):
        go(Counted(death), tmp_path / "a", method)
    return tmp_path / "a"


@every_method
def test_snapshots_after_every_round_change_nothing(method, tmp_path, monkeypatch):
    always_due(monkeypatch)
    whole = Counted()
    reference = go(whole, method=method)
    for death in (50, 133, min(260, len(whole.asked))):
        first, second = Counted(death), Counted()
        folder = tmp_path / str(death)
        with pytest.raises(Stop):
            go(first, folder, method)
        assert same(go(second, folder, method), reference)
        assert first.asked[:-1] + second.asked == whole.asked


def test_old_snapshots_and_journals_are_removed(tmp_path, monkeypatch):
    folder = dead_run(tmp_path, monkeypatch)
    snapshots, journals = numbered(folder, SNAPSHOT), numbered(folder, JOURNAL)
    assert len(snapshots) == 2
    assert len(journals) <= 2
    assert journals[0][0] >= snapshots[0][0]


def test_snapshots_stay_within_their_share_of_the_time(tmp_path, monkeypatch):
    now, saves, written = [0.0], [], snapshot.write

    def call(x, i):
        now[0] += 0.2
        return float(x @ x)

    def write(*arguments, **named):
        saves.append(now[0])
        now[0] += 0.5 + 2.5 * (len(saves) % 3)  # a disk that is slow, and unevenly
        written(*arguments, **named)

    monkeypatch.setattr("zerothresh.runs.folder.snapshot.write", write)
    monkeypatch.setattr("zerothresh.runs.folder.time", SimpleNamespace(monotonic=lambda: now[0]))
    go(call, tmp_path / "a", budget=20_000)  # 4,000 s by that clock
    assert len(saves) > 4
    costs = [0.5 + 2.5 * (number % 3) for number in range(1, len(saves) + 1)]
    for begun, cost, after in zip(saves[:-2], costs, saves[1:-1], strict=False):  # the last is always written
        assert cost <= SHARE * (after - begun - cost) * (1 + 1e-9)


@pytest.mark.parametrize("damage", ["truncated", "empty", "garbage", "missing", "flipped"])
def test_a_broken_newest_snapshot_falls_back_to_the_one_before(damage, tmp_path, monkeypatch):
    folder = dead_run(tmp_path, monkeypatch)
    _, newest = numbered(folder, SNAPSHOT)[-1]
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 0xFF
    broken = {"truncated": data[: len(data) // 2], "empty": b"", "garbage": os.urandom(500), "flipped": data}
    newest.unlink() if damage == "missing" else newest.write_bytes(broken[damage])
    whole, second = Counted(), Counted()
    reference = go(whole, method=METHODS[4])
    assert same(go(second, folder, METHODS[4]), reference)
    assert len(second.asked) == len(whole.asked) - 200


def test_a_broken_snapshot_does_not_take_the_place_of_a_good_one(tmp_path, monkeypatch):
    reference = go(Counted(), method=METHODS[4])
    folder = dead_run(tmp_path, monkeypatch, death=100)
    for death in (20, 20, 20, 20):  # each time the newest breaks, and a little progress is made
        numbered(folder, SNAPSHOT)[-1][1].write_bytes(b"junk")
        with pytest.raises(Stop):
            go(Counted(death), folder, METHODS[4])
    assert same(go(Counted(), folder, METHODS[4]), reference)


def test_no_good_snapshot_is_refused_and_nothing_is_overwritten(tmp_path, monkeypatch):
    folder = dead_run(tmp_path, monkeypatch)
    for _, path in numbered(folder, SNAPSHOT):
        path.write_bytes(b"junk")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}
    with pytest.raises(RunError, match=r"no snapshot of .* can be read"):
        go(Counted(), folder, METHODS[4])
    assert before == {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}


def test_a_torn_tail_is_cut_before_appending(tmp_path):
    with pytest.raises(Stop):
        go(Counted(100), tmp_path / "a")
    *_, (_, journal) = numbered(tmp_path / "a", JOURNAL)
    _, end, _ = read_journal(journal)
    whole = Counted()
    reference = go(whole)
    for tail in (b"x", b"0000", b'deadbeef {"r":3', b"\0" * 100, b"\n\n", os.urandom(50)):
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(tmp_path / "a", copy)
        data = (copy / journal.name).read_bytes()[:end]
        (copy / journal.name).write_bytes(data + tail)
        second = Counted()
        assert same(go(second, copy), reference)
        assert len(second.asked) == len(whole.asked) - 99
    for cut in (1, 5, 16):  # the last line torn: its value had not arrived
        copy = tmp_path / "copy"
        shutil.rmtree(copy)
        shutil.copytree(tmp_path / "a", copy)
        (copy / journal.name).write_bytes((copy / journal.name).read_bytes()[: end - cut])
        second = Counted()
        assert same(go(second, copy), reference)
        assert len(second.asked) == len(whole.asked) - 98


def test_loading_does_not_grow_with_the_rounds_done(tmp_path, monkeypatch):
    """Bytes of what a run is opened with: the newest snapshot and the journal since, however long the run was."""
    asked = iter(range(10**9))
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda self: next(asked) % 50 == 49)
    sizes = []
    for number, death in enumerate((4_000, 40_000)):
        folder = tmp_path / str(number)
        with pytest.raises(Stop):
            go(Counted(death), folder, budget=50_000)
        base, newest = numbered(folder, SNAPSHOT)[-1]
        since = [path.stat().st_size for at, path in numbered(folder, JOURNAL) if at >= base]
        sizes.append(newest.stat().st_size + sum(since))
        assert base > 100
    assert sizes[1] < 1.5 * sizes[0]


def test_the_trace_of_earlier_sessions_is_parsed_only_when_it_is_looked_at(tmp_path, monkeypatch):
    whole = go(Counted(), tmp_path / "a")
    parsed = []

    def watched(text):
        parsed.append(text)
        return csv.reader(text)

    monkeypatch.setattr("zerothresh.session.trace.csv", SimpleNamespace(**{**vars(csv), "reader": watched}))
    result = go(Counted(), tmp_path / "a")
    assert not parsed
    assert result.trace == whole.trace
    assert len(parsed) == 1


# Identity and locks.


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": zt.VRSZHT(0.02)}, r"method = 'szoht', not 'vr-szht'"),
        ({"method": zt.SZOHT(0.03, batch=2)}, r"eta = 0.02, not 0.03"),
        ({"method": zt.SZOHT(0.02)}, r"batch = 2, not 1"),
        ({"estimator": zt.Estimator(q=4, mu=1e-3)}, r"q = 3, not 4"),
        ({"estimator": zt.Estimator(q=3, mu=1e-3, directions="sphere")}, r"directions = 'orthogonal', not 'sphere'"),
        ({"seed": 4}, r"seed = 3, not 4"),
        ({"n": 9}, r"n = 10, not 9"),
        ({"monitor": PROBLEM.F}, "was started with no monitor"),
        ({"bounds": (-1, 1)}, r"another bounds"),
    ],
)
def test_another_run_is_refused_with_the_difference(change, words, tmp_path):
    with pytest.raises(Stop):
        go(Counted(60), tmp_path / "a")
    with pytest.raises(RunError, match=words):
        go(Counted(), tmp_path / "a", **change)
    assert go(Counted(), tmp_path / "a").success


def test_another_start_k_or_problem_is_refused(tmp_path):
    with pytest.raises(Stop):
        go(Counted(60), tmp_path / "a")
    common = {"n": 10, "budget": 500, "method": METHODS[1], "seed": 3, "estimator": zt.Estimator(q=3, mu=1e-3)}
    with pytest.raises(RunError, match="another x0"):
        zt.minimize(Counted(), [1.0, 0, 0, 0, 0], 2, run=tmp_path / "a", **common)
    with pytest.raises(RunError, match="k = 2, not 3"):
        zt.minimize(Counted(), 5, 3, run=tmp_path / "a", **common)
    with pytest.raises(RunError, match="d = 5, not 6"):
        zt.minimize(Counted(), 6, 2, run=tmp_path / "a", **common)

    def other(x, i):
        return 0.0

    with pytest.raises(RunError, match="problem = 'ridge', not 'test_another_start"):
        zt.minimize(other, 5, 2, run=tmp_path / "a", **common)


def test_problems_tell_themselves_apart_by_their_data():
    assert zt.runs.fingerprint(zt.problems.ridge(seed=0)) == zt.runs.fingerprint(zt.problems.ridge(seed=0))
    assert zt.runs.fingerprint(zt.problems.ridge(seed=0)) != zt.runs.fingerprint(zt.problems.ridge(seed=1))


HOLDER = """
import sys, time, zerothresh as zt
def slow(x):
    print("in", flush=True)
    time.sleep(3600)
    return 0.0
zt.minimize(slow, 5, 2, budget=100, method=zt.SZOHT(0.1), seed=0, run=sys.argv[1])
"""


def test_two_processes_cannot_write_one_run_and_a_dead_holder_is_taken_over(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path / "a")], stdout=subprocess.PIPE)
    try:
        holder.stdout.readline()

        def slow(x):
            return 0.0

        slow.__qualname__ = "slow"
        arguments = {"budget": 100, "method": zt.SZOHT(0.1), "seed": 0, "run": tmp_path / "a"}
        with pytest.raises(RunError, match=f"is being written by process {holder.pid} on"):
            zt.minimize(slow, 5, 2, **arguments)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    assert zt.minimize(slow, 5, 2, **arguments).success


def test_one_process_cannot_open_a_run_twice(tmp_path):
    arguments = {"budget": 100, "method": zt.SZOHT(0.1), "seed": 0, "run": tmp_path / "a"}
    with zt.Optimizer(5, 2, **arguments), pytest.raises(RunError, match="already open in this process"):
        zt.Optimizer(5, 2, **arguments)
    zt.Optimizer(5, 2, **arguments).close()


# Crafted and corrupt folders.


def _rewrite(folder, change):
    words = json.loads((folder / "run.json").read_text())
    change(words)
    (folder / "run.json").write_text(json.dumps(words))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / "run.json").write_text("{"), "not what a run writes"),
        (lambda f: (f / "run.json").write_text("[1]"), "not what a run writes"),
        (lambda f: (f / "run.json").write_text('{"schema": 1}'), "not what a run writes"),
        (lambda f: (f / "run.json").write_text("[" * 100_000), "not what a run writes"),
        (lambda f: (f / "run.json").write_bytes(b"x" * (1 << 21)), "at most 1,048,576 are expected"),
        (lambda f: _rewrite(f, lambda w: w.update(schema=99)), "has schema 99, but this version reads schema 1"),
        (lambda f: _rewrite(f, lambda w: w.update(budget="many")), "not what a run writes"),
        (lambda f: ((f / "run.json").rename(f / "x"), (f / "run.json").symlink_to(f / "x")), "is a link"),
        (lambda f: ((f / "run.json").unlink(), os.mkfifo(f / "run.json")), "is not a regular file"),
        (lambda f: ((f / "lock").unlink(), (f / "lock").symlink_to("/etc/passwd")), "is a link"),
    ],
)
def test_a_folder_that_no_run_wrote_is_refused(spoil, words, tmp_path):
    with pytest.raises(Stop):
        go(Counted(60), tmp_path / "a")
    spoil(tmp_path / "a")
    with pytest.raises(RunError, match=words):
        go(Counted(), tmp_path / "a")


def npz(path, arrays, compress=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compress) as archive:
        for name, content in arrays.items():
            if not isinstance(content, bytes):
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, np.asarray(content), allow_pickle=True)
                content = buffer.getvalue()
            archive.writestr(f"{name}.npy", content)


def header(shape, descr="<f8"):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": descr, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


class Bomb:
    def __reduce__(self):
        return (os.system, ("touch /tmp/zerothresh-was-here",))


@pytest.mark.parametrize(
    "arrays",
    [
        {"meta": np.array([Bomb()], dtype=object)},
        {"meta": np.frombuffer(b"{}", np.uint8), "state.theta": np.array([Bomb()], dtype=object)},
        {"meta": header((1 << 60,))},
        {"meta": header((10**9, 10**9)) + b"\0" * 8},
        {"meta": header((-1,)) + b"\0" * 8},
        {"meta": header((1,), "|O") + b"\0" * 8},
        {"meta": np.frombuffer(b"[]", np.uint8)},
        {"../../evil": np.zeros(3), "meta": np.frombuffer(b"[]", np.uint8)},
        {"meta": b"\x93NUMPY\x01\x00" + (65000).to_bytes(2, "little") + b" " * 65000},
        {},
    ],
    ids=range(10),
)
def test_a_crafted_snapshot_runs_no_code_and_takes_no_memory(arrays, tmp_path):
    npz(tmp_path / "s.npz", arrays)
    with pytest.raises(RunError):
        snapshot.read(tmp_path / "s.npz")
    assert not Path("/tmp/zerothresh-was-here").exists()


def test_a_packed_snapshot_is_refused_before_it_unfolds(tmp_path):
    npz(tmp_path / "s.npz", {"meta": np.zeros(10_000_000)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(RunError, match=r"declares more data than it holds|is packed"):
        snapshot.read(tmp_path / "s.npz")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda meta, arrays: arrays.update({"state.theta": np.zeros(6)}), "does not fit this run"),
        (lambda meta, arrays: arrays.update({"state.theta": np.zeros((5, 1))}), "does not fit this run"),
        (lambda meta, arrays: arrays.update({"state.theta": np.full(5, np.nan)}), "does not fit this run"),
        (lambda meta, arrays: arrays.update({"state.theta": np.zeros(5, np.int64)}), "does not fit this run"),
        (lambda meta, arrays: arrays.pop("state.theta"), "does not fit this run"),
        (lambda meta, arrays: arrays.update({"state.memory.coefficients": np.zeros((3, 3))}), "does not fit this run"),
        (lambda meta, arrays: arrays.update({"state.memory.mean": np.zeros(9)}), "does not fit this run"),
        (lambda meta, arrays: meta.update(best_fun=[1]), "does not fit this run"),
        (lambda meta, arrays: meta.pop("trace"), "does not fit this run"),
        (lambda meta, arrays: meta.update(trace=[1]), r"counts .* which no run writes"),
        (lambda meta, arrays: meta.update(worst="9" * 5000), "does not fit this run"),
        (lambda meta, arrays: meta.update(spent=float("nan")), "does not fit this run"),
        (lambda meta, arrays: meta.update(final_round=2**70), "does not fit this run"),
        (lambda meta, arrays: meta.update(final_round={}), "does not fit this run"),
        (lambda meta, arrays: arrays.update({"trace_support": np.array([["a"]])}), "does not fit this run"),
        (lambda meta, arrays: arrays.update({"trace_support": np.array([99])}), "does not fit this run"),
        (lambda meta, arrays: arrays.update({"best_x": np.array(5)}), "does not fit this run"),
    ],
)
def test_a_snapshot_of_another_shape_is_refused(change, words, tmp_path, monkeypatch):
    folder = dead_run(tmp_path, monkeypatch)
    _, newest = numbered(folder, SNAPSHOT)[-1]
    meta, arrays = snapshot.read(newest)
    change(meta, arrays)
    snapshot.write(newest, meta, arrays)
    with pytest.raises(RunError, match=words):
        go(Counted(), folder, METHODS[4])


@pytest.mark.parametrize(
    "change",
    [
        lambda meta: meta.update(nfev=-5),
        lambda meta: meta.update(nfev="5"),
        lambda meta: meta.update(failed_calls=2**60),
        lambda meta: meta.update(journal={}),
        lambda meta: meta.update(journal=[0, -1]),
        lambda meta: meta.update(journal=[[], 1e400]),
        lambda meta: meta["trace"].update(bytes=10**11),
        lambda meta: meta["trace"].update(crc=1),
    ],
)
def test_a_snapshot_with_impossible_counts_gives_way_to_the_one_before(change, tmp_path, monkeypatch):
    folder = dead_run(tmp_path, monkeypatch)
    _, newest = numbered(folder, SNAPSHOT)[-1]
    meta, arrays = snapshot.read(newest)
    change(meta)
    snapshot.write(newest, meta, arrays)
    assert same(go(Counted(), folder, METHODS[4]), go(Counted(), method=METHODS[4]))


@pytest.mark.parametrize(
    "body",
    [
        b'{"r":0,"f":0,"a":999999,"b":"AAAAAAAA8D8="}',
        b'{"r":77,"f":0,"a":0,"b":"AAAAAAAA8D8="}',
        b'{"r":0,"f":0,"a":0,"b":""}',
        b'{"r":0,"f":0,"a":0,"b":7}',
        b'{"r":0,"f":0,"a":-1,"b":"AAAAAAAA8D8="}',
        b'{"r":0,"f":0,"a":0,"b":"%%%"}',
        b'{"r":0,"f":0,"a":0,"b":"AAAA"}',
        b'{"r":0,"f":0,"a":0,"b":"AAAAAAAA+H8="}',
        b'{"r":true,"f":0,"a":0,"b":"AAAAAAAA8D8="}',
        b'{"r":0,"a":0,"c":99,"failed":1}',
        b'{"r":0,"a":0,"c":0,"failed":-1}',
        b"[1]",
        b"[" * 5000,
    ],
)
def test_a_crafted_journal_line_with_a_right_checksum_is_refused(body, tmp_path):
    import zlib

    with pytest.raises(Stop):
        go(Counted(1), tmp_path / "a")
    (tmp_path / "a" / "journal-0000000000.jsonl").write_bytes(b"%08x %b\n" % (zlib.crc32(body), body))
    with pytest.raises(RunError, match=r"journal|no run writes"):
        go(Counted(), tmp_path / "a")


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match=r"holds other files and no run\.json"):
        go(Counted(), tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="is not a folder"):
        go(Counted(), tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == ["file", "thesis.tex"]


def test_a_linked_journal_or_snapshot_is_refused(tmp_path, monkeypatch):
    folder = dead_run(tmp_path, monkeypatch)
    _, newest = numbered(folder, SNAPSHOT)[-1]
    newest.rename(tmp_path / "elsewhere.npz")
    newest.symlink_to(tmp_path / "elsewhere.npz")
    second = Counted()
    assert go(second, folder, METHODS[4]).success  # falls back to the one before
    other = tmp_path / "b"
    with pytest.raises(Stop):
        go(Counted(60), other)
    *_, (_, journal) = numbered(other, JOURNAL)
    journal.rename(tmp_path / "j")
    journal.symlink_to(tmp_path / "j")
    with pytest.raises(RunError, match="is a link"):
        go(Counted(), other)


def test_nothing_in_a_run_folder_is_pickled(tmp_path, monkeypatch):
    folder = dead_run(tmp_path, monkeypatch)
    for path in folder.iterdir():
        assert b"\x80\x04\x95" not in path.read_bytes()
        assert path.suffix in (".json", ".jsonl", ".npz", ".csv", "")


def test_a_snapshot_of_another_run_is_not_taken_for_its_own(tmp_path, monkeypatch):
    folder = dead_run(tmp_path, monkeypatch)
    with pytest.raises(Stop):
        go(Counted(250), tmp_path / "b", METHODS[4], seed=4)
    for _, path in numbered(tmp_path / "b", SNAPSHOT)[-1:]:
        shutil.copy(path, folder)
    assert same(go(Counted(), folder, METHODS[4]), go(Counted(), method=METHODS[4]))


def test_a_state_that_cannot_be_kept_is_refused_before_anything_is_paid_for(tmp_path):
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Odd:
        theta: np.ndarray
        friend: object

    @dataclass(frozen=True)
    class Method:
        def init(self, theta):
            return Odd(theta, object())

        def plan(self, state, n, rng):
            return zt.Probes.gradients(at=[state.theta], of=range(n))

        def update(self, state, answers, H):
            return Odd(H(state.theta - 0.01 * answers.mean()), state.friend)

    fun = Counted()
    with pytest.raises(RunError, match="a run folder can keep arrays, numbers, strings"):
        go(fun, tmp_path / "a", Method())
    assert fun.asked == []


def test_an_old_journal_that_lost_values_is_no_way_back(tmp_path, monkeypatch):
    """Its snapshot is given up, so that a later break does not lead into a gap."""
    folder = dead_run(tmp_path, monkeypatch, death=100)
    (old, first), (newest, _) = numbered(folder, SNAPSHOT)
    journal = folder / f"journal-{old:010d}.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    with pytest.raises(Stop):
        go(Counted(1), folder, METHODS[4])
    assert not first.exists()
    assert not journal.exists()
    assert [number for number, _ in numbered(folder, SNAPSHOT)] == [newest]
    assert same(go(Counted(), folder, METHODS[4]), go(Counted(), method=METHODS[4]))
