"""Ask and tell under kills, partial tells, tells out of order, duplicate and foreign batches."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import zerothresh as zt
from zerothresh.runs.journal import read as read_journal
from zerothresh.runs.paths import JOURNAL, SNAPSHOT, numbered

PROBLEM = zt.problems.ridge(n=4, d=5, seed=2)
METHODS = [
    zt.FGZOHT(0.02),
    zt.SZOHT(0.02, batch=2),
    zt.VRSZHT(0.02, m=2, output="random"),
    zt.SARAHSZHT(0.02, m=3),
    zt.SAGASZHT(0.02),
    zt.LSVRGSZHT(0.02),
    zt.methods.Auto(),
    zt.methods.NIHT(),
    zt.methods.HTP(),
    zt.methods.Index(),
    zt.methods.GuidedSAGA(),
]
BUDGET = 120


def optimizer(method, folder=None):
    return zt.Optimizer(
        5, 2, n=4, budget=BUDGET, method=method, seed=7, estimator=zt.Estimator(q=2, mu=1e-3), run=folder, fsync="never"
    )


def values(batch):
    return PROBLEM.values(np.ascontiguousarray(batch.points), batch.components)


def straight(method):
    opt = optimizer(method)
    while not opt.done:
        batch = opt.ask()
        opt.tell(batch, values(batch))
    return opt.result()


class AskTell(RuleBasedStateMachine):
    @initialize(method=st.sampled_from(METHODS), eager=st.booleans())
    def begin(self, method, eager):
        self.root = Path(tempfile.mkdtemp())
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("zerothresh.runs.folder.Run.due", lambda run: eager)
        self.method, self.copies = method, 0
        self.folder = self.root / "0"
        self.opt = optimizer(method, self.folder)
        self.told = 0

    def running(self):
        return not self.opt.done

    @rule()
    @precondition(running)
    def tell_all_that_is_missing(self):
        batch = self.opt.ask()
        self.opt.tell(batch, values(batch))
        self.told += len(batch)

    @rule(data=st.data())
    @precondition(running)
    def tell_some_in_any_order(self, data):
        batch = self.opt.ask()
        rows = data.draw(st.permutations(range(len(batch))))[: data.draw(st.integers(1, len(batch)))]
        part = batch[rows]
        self.opt.tell(part, values(part))
        self.told += len(part)

    @rule(data=st.data())
    @precondition(running)
    def tell_what_was_told_already(self, data):
        batch = self.opt.ask()
        part = batch[: data.draw(st.integers(1, len(batch)))]
        self.opt.tell(part, values(part))
        self.told += len(part)
        before = self.opt.nfev
        for again in (part, batch):
            with pytest.raises(ValueError, match="told already"):
                self.opt.tell(again, values(again))
        assert self.opt.nfev == before

    @rule()
    @precondition(running)
    def tell_a_batch_of_another_run(self):
        stranger = optimizer(self.method)
        batch = stranger.ask()
        with pytest.raises(ValueError, match="this optimiser's ask"):
            self.opt.tell(batch, values(batch))

    @rule(bad=st.sampled_from(["short", "nan", "text"]))
    @precondition(running)
    def tell_nonsense(self, bad):
        batch = self.opt.ask()
        wrong = {"short": np.zeros(len(batch) + 1), "nan": np.full(len(batch), np.nan), "text": ["x"] * len(batch)}
        with pytest.raises(ValueError, match="nothing was changed"):
            self.opt.tell(batch, wrong[bad])
        assert self.opt.ask() is batch

    @rule()
    def close_and_open(self):
        self.opt.close()
        self.opt = optimizer(self.method, self.folder)

    def _kill(self):
        """The folder as it is at this instant, and a new process that opens it."""
        self.copies += 1
        copy = self.root / str(self.copies)
        shutil.copytree(self.folder, copy)
        self.opt.close()
        self.folder = copy

    @rule()
    def kill(self):
        self._kill()
        self.opt = optimizer(self.method, self.folder)

    @rule(tail=st.binary(min_size=1, max_size=30))
    def kill_with_a_torn_tail(self, tail):
        self._kill()
        journals = numbered(self.folder, JOURNAL)
        if journals:
            _, end, _ = read_journal(journals[-1][1])
            whole = journals[-1][1].read_bytes()[:end]
            journals[-1][1].write_bytes(whole + tail.replace(b"\n", b"?"))
        self.opt = optimizer(self.method, self.folder)

    @rule()
    def kill_with_a_broken_snapshot(self):
        self._kill()
        snapshots = numbered(self.folder, SNAPSHOT)
        if len(snapshots) == 2:
            snapshots[-1][1].write_bytes(b"PK")
        self.opt = optimizer(self.method, self.folder)

    @invariant()
    def every_value_is_counted_once(self):
        if hasattr(self, "opt"):
            assert self.opt.nfev == self.told <= BUDGET

    def teardown(self):
        if not hasattr(self, "opt"):
            return
        try:
            while not self.opt.done:
                self.tell_all_that_is_missing()
            result, reference = self.opt.result(), straight(self.method)
            assert np.array_equal(result.x, reference.x)
            assert np.array_equal(result.x_last, reference.x_last)
            assert result.fun == reference.fun
            assert result.trace == reference.trace
            assert self.told == result.nfev == reference.nfev
        finally:
            self.opt.close()
            self.patch.undo()
            shutil.rmtree(self.root)


TestAskTell = AskTell.TestCase
TestAskTell.settings = settings(
    max_examples=30, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
