"""One call returns everything: run folders keep the outputs of each call, and a run that was killed goes on."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from killing import die, killed
from test_outputs import D, Halving, K, M, many, residuals, same

import zerothresh as zt
from zerothresh.runs import RunError, snapshot
from zerothresh.runs.inspection import inspect
from zerothresh.runs.journal import Journal, ValueLine
from zerothresh.runs.journal import read as read_journal
from zerothresh.runs.paths import JOURNAL, SNAPSHOT, numbered

METHODS = [
    zt.FGZOHT(0.02),
    zt.SZOHT(0.01, batch=2),
    zt.VRSZHT(0.01, m=3, output="random"),
    zt.SAGASZHT(0.005),
    zt.PMSZHT(0.005, law=zt.methods.FixedSize(2)),
    zt.methods.Auto(),
    zt.methods.HTP(),
    zt.methods.NIHT(),
    zt.methods.Index(),
    Halving(),
    zt.methods.GaussNewton(),
    zt.methods.GaussNewton(width=4),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)


class Counted:
    """The residuals with a ledger of all points that were asked for, and a death at a given call."""

    fingerprint = "residuals"

    def __init__(self, dies_at=None):
        self.asked, self.dies_at = [], dies_at

    def __call__(self, x):
        self.asked.append(x.tobytes())
        if self.dies_at is not None and len(self.asked) >= self.dies_at:
            die()
        return residuals(x)


def go(fun, folder=None, method=METHODS[0], budget=90, **options):
    made = {"outputs": "residuals", "budget": budget, "method": method, "seed": 3}

    def run():
        return zt.minimize(fun, D, K, run=folder, **{**made, **options})

    if getattr(fun, "dies_at", None) is None:
        return run()
    dead, fun.asked = killed(run, lambda: fun.asked)
    return None if dead else run()


@pytest.mark.parametrize(
    ("method", "period"),
    [
        pytest.param(METHODS[3], 1, marks=pytest.mark.slow),
        (METHODS[5], 1),
        *((method, period) for method in METHODS for period in (13, 31)),
    ],
    ids=lambda value: value if isinstance(value, int) else type(value).__name__,
)
def test_a_run_that_is_killed_again_and_again_is_the_run_that_never_was(tmp_path, monkeypatch, method, period):
    if period in (1, 13):
        monkeypatch.setattr("zerothresh.runs.folder.SHARE", np.inf)  # a snapshot after every round
    alone = Counted()
    whole = go(alone, method=method)
    asked, result = [], None
    while result is None:
        fun = Counted(dies_at=period + 1)
        result = go(fun, tmp_path / "run", method=method)
        asked += fun.asked[:period] if result is None else []
        assert len(asked) < 200
    assert same(result, whole)
    assert np.array_equal(result.residuals, whole.residuals)
    assert asked == alone.asked[: len(asked)]  # in this order, and none twice
    assert len(alone.asked) - len(asked) <= period


@every_method
def test_a_run_that_has_ended_makes_no_call_and_a_larger_budget_goes_on(tmp_path, method):
    first = go(Counted(), tmp_path / "run", method=method, budget=60)
    fun = Counted()
    assert same(go(fun, tmp_path / "run", method=method, budget=60), first)
    assert not fun.asked
    more = go(fun, tmp_path / "run", method=method, budget=120)
    assert more.nfev == first.nfev + len(fun.asked)
    assert more.fun <= first.fun


def test_the_workers_of_a_resumed_run_change_no_bit(tmp_path):
    whole = go(Counted(), method=zt.methods.Auto(), parallel=3)
    go(Counted(dies_at=30), tmp_path / "run", method=zt.methods.Auto(), workers=3)
    assert same(go(Counted(), tmp_path / "run", method=zt.methods.Auto(), workers=5), whole)


def test_each_call_is_a_line_of_the_journal_with_all_outputs(tmp_path):
    go(Counted(dies_at=20), tmp_path / "run")
    lines, _, _ = read_journal(numbered(tmp_path / "run", JOURNAL)[0][1])
    assert [line.values.shape for line in lines] == [(1, M)] * 19
    assert np.array_equal(lines[0].values[0], residuals(np.zeros(D)))
    assert [line.start for line in lines] == [0, *range(1, 11), *range(8)]  # the first look is row 0 of round 0


@pytest.mark.parametrize(
    "table", [np.zeros((1, 1)), np.random.default_rng(0).normal(size=(5, 7)), np.full((2, 3), np.nan)]
)
def test_outputs_come_back_from_a_journal_to_the_bit(tmp_path, table):
    journal = Journal(tmp_path / "journal-0.jsonl", "never")
    journal.claim(len(table), table.shape[1])
    journal.values(0, False, 4, table)
    journal.values(1, True, 0, np.array([0.5]))
    journal.values(2, False, 9, table)
    journal.close()
    lines, _, torn = read_journal(tmp_path / "journal-0.jsonl")
    assert not torn
    assert [(line.round, line.final, line.start) for line in lines] == [(0, False, 4), (1, True, 0), (2, False, 9)]
    assert lines[0].values.tobytes() == lines[2].values.tobytes() == table.tobytes()
    assert isinstance(lines[0], ValueLine)
    assert lines[0].values.shape == table.shape


def test_smooth_outputs_take_less_room_than_their_bytes(tmp_path):
    journal = Journal(tmp_path / "journal-0.jsonl", "never")
    spectrum = np.exp(-(np.linspace(-3, 3, 5000) ** 2))[None]
    journal.claim(1, 5000)
    journal.values(0, False, 0, spectrum)
    journal.close()
    assert (tmp_path / "journal-0.jsonl").stat().st_size < 8 * 5000 * 4 / 3


@pytest.mark.parametrize(
    "change",
    [
        {"m": 1 << 50},
        {"n": 1 << 50},
        {"n": 0},
        {"m": -1},
        {"m": 29},
        {"m": "30"},
        {"z": "AAAA"},
        {"z": ""},
        {"n": 2, "m": 15},
    ],
    ids=str,
)
def test_a_forged_line_is_refused_without_allocating_what_it_declares(tmp_path, change):
    from zlib import crc32

    go(Counted(dies_at=5), tmp_path / "run")
    path = numbered(tmp_path / "run", JOURNAL)[0][1]
    lines = path.read_bytes().rstrip(b"\0").splitlines()
    body = json.dumps({**json.loads(lines[2][9:]), **change}).encode()
    lines[2] = b"%08x %b" % (crc32(body), body)
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(RunError):
        go(Counted(), tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "forged"),
    [
        ("outputs", 29),
        ("outputs", 1 << 50),
        ("outputs", -3),
        ("outputs", "30"),
        ("outputs", 30.0),
        ("best_outputs", np.zeros(29)),
        ("best_outputs", np.zeros((1, 30))),
        ("best_outputs", np.zeros(30, np.int64)),
        ("best_outputs", np.full(30, np.nan)),
        ("first_outputs", np.zeros(29)),
    ],
    ids=str,
)
def test_a_forged_snapshot_is_refused(tmp_path, name, forged):
    for method in (METHODS[0], zt.methods.HTP()):
        folder = tmp_path / type(method).__name__
        go(Counted(), folder, method=method, budget=60)
        path = numbered(folder, SNAPSHOT)[-1][1]
        meta, arrays = snapshot.read(path)
        where = meta if name == "outputs" else arrays
        where[name] = forged
        snapshot.write(path, meta, arrays)
        with pytest.raises(RunError, match="does not fit this run"):
            go(Counted(), folder, method=method, budget=90)


def test_a_damaged_line_is_cut_off_and_asked_for_again(tmp_path):
    go(Counted(dies_at=15), tmp_path / "run")
    path = numbered(tmp_path / "run", JOURNAL)[0][1]
    data = bytearray(path.read_bytes().rstrip(b"\0"))
    data[-30] ^= 1
    path.write_bytes(bytes(data))
    fun = Counted()
    whole = go(Counted())
    assert same(go(fun, tmp_path / "run"), whole)
    assert len(fun.asked) == whole.nfev - 13


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "huber"}, r"loss = 'Squared\(\)', not 'Huber\(delta=1.0\)'"),
        ({"outputs": "components"}, "outputs = 'residuals', not 'components'"),
        ({"on_nan": "mask"}, "another on_nan than 'mask'"),
        ({"n": M + 1}, "returned 30 outputs, not 31"),
    ],
)
def test_another_form_is_another_run(tmp_path, options, message):
    go(Counted(dies_at=30), tmp_path / "run")
    with pytest.raises(RunError, match=message):
        go(Counted(), tmp_path / "run", **options)
    assert go(Counted(), tmp_path / "run", n=M).success


def test_a_function_with_one_value_per_call_cannot_continue_it(tmp_path):
    go(Counted(dies_at=30), tmp_path / "run")

    def fun(x):
        return 0.0

    fun.fingerprint = "residuals"
    with pytest.raises(RunError, match="n = None, not 1"):
        zt.minimize(fun, D, K, budget=90, method=METHODS[0], seed=3, run=tmp_path / "run")


def test_a_function_whose_length_has_changed_is_told_so_in_the_next_session(tmp_path):
    go(Counted(dies_at=30), tmp_path / "run")

    def fun(x):
        return residuals(x)[:7]

    fun.fingerprint = "residuals"
    found = go(fun, tmp_path / "run")
    assert found.status is zt.Status.BAD_VALUE
    assert "7 outputs per call, where 30 were expected" in found.message


def test_a_first_call_that_fails_is_counted_and_made_again(tmp_path):
    def broken(x):
        raise OSError("down")

    broken.fingerprint = "residuals"
    found = go(broken, tmp_path / "run")
    assert (found.status, found.nfev) == (zt.Status.FAILED, 1)
    whole = go(Counted())
    again = go(Counted(), tmp_path / "run", budget=91)
    assert again.nfev == whole.nfev + 1
    assert np.array_equal(again.x, whole.x)


def test_masked_and_worst_runs_go_on(tmp_path):
    def masked(x):
        return np.where(np.arange(M) == 2, np.nan, residuals(x))

    def worst(x):
        return np.where(x[0] > 0, np.inf, residuals(x))

    for on_nan, fun in (("mask", masked), ("worst", worst)):
        for method in (zt.FGZOHT(0.02), zt.methods.HTP()):
            folder = tmp_path / f"{on_nan}{type(method).__name__}"
            whole = go(fun, method=method, on_nan=on_nan, budget=90)
            with zt.Optimizer(
                D, K, outputs="residuals", budget=90, method=method, seed=3, on_nan=on_nan, run=folder
            ) as opt:
                for _ in range(4):
                    batch = opt.ask()
                    opt.tell(batch[:1], [fun(batch.points[0])])
            found = zt.Optimizer(D, K, outputs="residuals", budget=90, method=method, seed=3, on_nan=on_nan, run=folder)
            while not found.done:
                batch = found.ask()
                found.tell(batch, [fun(x) for x in batch.points])
            result = found.result()
            found.close()
            assert same(result, whole)
            assert np.array_equal(result.residuals, whole.residuals, equal_nan=True)


def test_show_counts_calls_and_knows_the_best_value(tmp_path):
    found = go(Counted(), tmp_path / "run")
    report = inspect(tmp_path / "run")
    assert (report.calls, report.best_fun, report.state) == (found.nfev, found.fun, "ended")
    assert report.identity["outputs"] == "residuals"
    go(Counted(dies_at=26), tmp_path / "other")
    assert inspect(tmp_path / "other").calls == 25


def test_a_copy_without_its_newest_snapshot_leads_to_the_same_end(tmp_path, monkeypatch):
    monkeypatch.setattr("zerothresh.runs.folder.SHARE", np.inf)
    for method in (METHODS[3], zt.methods.Auto()):
        folder = tmp_path / type(method).__name__
        go(Counted(dies_at=70), folder, method=method)
        copy = tmp_path / f"{folder.name}-copy"
        shutil.copytree(folder, copy)
        numbered(copy, SNAPSHOT)[-1][1].write_bytes(b"broken")
        assert same(go(Counted(), copy, method=method), go(Counted(), folder, method=method))


def test_costs_are_those_of_calls_in_every_session(tmp_path):
    options = {"cost": lambda i: 2.0, "max_cost": 60.0}
    found = go(Counted(), tmp_path / "run", **options)
    assert found.status is zt.Status.COST
    assert found.spent == 2.0 * found.nfev <= 60
    more = go(Counted(), tmp_path / "run", cost=lambda i: 2.0, max_cost=100.0)
    assert more.spent == 2.0 * more.nfev <= 100
    assert more.nfev > found.nfev


def test_vectorised_calls_are_kept_by_the_batch(tmp_path):
    whole = go(Counted())
    fun = lambda X: many(X)
    fun.fingerprint = "residuals"
    assert same(go(fun, tmp_path / "run", vectorized=True, chunk=4), whole)
