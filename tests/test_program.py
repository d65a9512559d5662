"""Methods that are one function: they can be stopped anywhere, led there again, and told of more budget."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from waiting import PATIENCE

import zerothresh as zt
from zerothresh.rounds.advance import advance, start
from zerothresh.runs import RunError, snapshot
from zerothresh.runs.paths import SNAPSHOT, numbered

PROBLEM = zt.problems.ridge(seed=0)
BUDGET = 400


@dataclass(frozen=True)
class Compass(zt.Program):
    """Steps along the coordinates, halved where none helps: what a newcomer might write."""

    step: float = 1.0

    def search(self, context):
        theta, h = context.theta0, self.step
        F = (yield from context.values([theta])).mean()
        while h > 1e-2:
            trials = [context.H(theta + s * h * e) for e in np.eye(context.d) for s in (1, -1)]
            means = (yield from context.values(trials)).mean(axis=1)
            if means.min() < F:
                theta, F = trials[means.argmin()], means.min()
                context.move(theta, F)
            else:
                h /= 2
                context.remark(f"steps of {h:g}")


PROGRAMS = [
    zt.methods.Auto(),
    zt.methods.NIHT(),
    zt.methods.NIHT(step="bb", momentum=True),
    zt.methods.HTP(),
    zt.methods.Index(),
    zt.methods.GuidedSAGA(),
    Compass(),
]
programs = pytest.mark.parametrize("method", PROGRAMS, ids=lambda m: repr(m).split("(step=1")[0])


def noisy(points, components, seed=0):
    """The ridge problem with noise that is a function of the point, so that a program sees random values."""
    bits = np.ascontiguousarray(points).view(np.uint64).sum(axis=1) + components.astype(np.uint64)
    return PROBLEM.values(points, components) + 1e-3 * np.sin(bits.astype(float))


def optimizer(method, folder=None, budget=BUDGET):
    return zt.Optimizer(5, 2, n=10, budget=budget, method=method, seed=3, run=folder, fsync="never")


def answer(opt, asked=None, part=None, values=PROBLEM.values):
    """Tell the next batch, or the first rows of it."""
    batch = opt.ask()[:part]
    points = np.ascontiguousarray(batch.points)
    if asked is not None:
        asked += [(x.tobytes(), i) for x, i in zip(points, batch.components.tolist(), strict=True)]
    opt.tell(batch, values(points, batch.components))


def through(opt, asked=None, values=PROBLEM.values):
    with opt:
        while not opt.done:
            answer(opt, asked, values=values)
        return opt.result()


def same(one, other):
    return (
        np.array_equal(one.x, other.x)
        and np.array_equal(one.x_last, other.x_last)
        and one.fun == other.fun
        and one.trace == other.trace
        and (one.nfev, one.nht, one.nit, one.status) == (other.nfev, other.nht, other.nit, other.status)
        and (one.message, one.remarks) == (other.message, other.remarks)
    )


# Stopped and led there again.


@programs
@pytest.mark.parametrize(
    ("values", "eager"),
    [
        pytest.param(PROBLEM.values, True, id="exact, snapshots"),
        pytest.param(noisy, False, id="noisy, journal"),
        pytest.param(PROBLEM.values, False, id="exact, journal", marks=pytest.mark.slow),
        pytest.param(noisy, True, id="noisy, snapshots", marks=pytest.mark.slow),
    ],
)
def test_killed_before_and_in_the_middle_of_each_round_it_ends_the_same(method, values, eager, tmp_path, monkeypatch):
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda run: eager and run.folder.name == "run")
    whole, asked, budget = [], [], 250
    reference = through(optimizer(method, None, budget), whole, values)
    with optimizer(method, tmp_path / "run", budget) as opt:
        while not opt.done:
            for part in (max(1, len(opt.ask()) // 2), None):
                copy = tmp_path / "copy"
                shutil.copytree(tmp_path / "run", copy)
                rest = []
                assert same(through(optimizer(method, copy, budget), rest, values), reference)
                assert asked + rest == whole  # no query is asked twice, none is left out
                shutil.rmtree(copy)
                if not opt.done:
                    answer(opt, asked, part, values)
    assert asked == whole


@programs
def test_a_state_can_be_updated_twice_and_old_states_stay_usable(method):
    task = optimizer(method).task
    searches, plans, values = [start(task)], [], []
    while len(plans) < 40 and (probes := searches[-1].search.request) is not None:
        plans.append(task.plan(probes, searches[-1].round))
        values.append(PROBLEM.values(plans[-1].points(), plans[-1].components))
        searches.append(advance(task, searches[-1], plans[-1], values[-1]))
    for at in [*range(len(plans)), *reversed(range(len(plans)))]:  # forwards, and backwards
        again = task.plan(searches[at].search.request, searches[at].round)
        assert np.array_equal(again.points(), plans[at].points())
        following = advance(task, searches[at], again, values[at])
        assert np.array_equal(following.theta, searches[at + 1].theta)
        assert np.array_equal(following.search.values, searches[at + 1].search.values)
        known = searches[at + 1]
        assert (following.fun, following.best_fun, following.nit) == (known.fun, known.best_fun, known.nit)


@programs
def test_a_state_goes_another_way_with_other_values(method):
    """A fork: what one branch learns does not leak into the other."""
    task = optimizer(method).task
    trunk = start(task)
    for _ in range(3):
        plan = task.plan(trunk.search.request, trunk.round)
        trunk = advance(task, trunk, plan, PROBLEM.values(plan.points(), plan.components))
    branches = []
    for factor in (1.0, 2.0, 1.0):
        standing = trunk
        for _ in range(4):
            probes = standing.search.request
            if probes is None:
                break
            plan = task.plan(probes, standing.round)
            standing = advance(task, standing, plan, factor * PROBLEM.values(plan.points(), plan.components))
        branches.append(standing)
    assert np.array_equal(branches[0].theta, branches[2].theta)
    assert np.array_equal(branches[0].search.values, branches[2].search.values)
    assert not np.array_equal(branches[0].search.values, branches[1].search.values)


@programs
@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.update({"state.values": arrays["state.values"][:-1]}),
        lambda arrays: arrays.update({"state.values": np.append(arrays["state.values"], 1.0)}),
        lambda arrays: arrays.update({"state.values": arrays["state.values"][::-1].copy()}),
        lambda arrays: arrays.update({"state.values": arrays["state.values"][None]}),
        lambda arrays: arrays.update({"state.values": arrays["state.values"].astype("U32")}),
        lambda arrays: arrays.update({"state.values": np.full_like(arrays["state.values"], np.nan)}),
        lambda arrays: arrays.update({"state.theta": arrays["state.theta"] + 1.0}),
        lambda arrays: arrays.update({"state.theta": np.zeros(6)}),
        lambda arrays: arrays.pop("state.values"),
    ],
    ids=["short", "long", "reversed", "matrix", "words", "nan", "theta", "dimension", "missing"],
)
def test_a_snapshot_that_does_not_fit_is_refused(method, change, tmp_path, monkeypatch):
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda run: True)
    with optimizer(method, tmp_path / "run") as opt:
        while opt.nfev < 100 or opt.session.standing.nit < 1:
            answer(opt, values=noisy)  # without noise, a certificate ends the run too soon
    _, newest = numbered(tmp_path / "run", SNAPSHOT)[-1]
    meta, arrays = snapshot.read(newest)
    change(arrays)
    snapshot.write(newest, meta, arrays)
    with pytest.raises(RunError, match="does not fit this run"):
        optimizer(method, tmp_path / "run")


# More budget.


@programs
@pytest.mark.parametrize("eager", [True, False], ids=["snapshots", "journal"])
def test_a_larger_budget_goes_on_and_asks_for_nothing_twice(method, eager, tmp_path, monkeypatch):
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda run: eager)
    asked, before = [], None
    for budget in (60, 61, 90, 150, 400, 1000):
        session = []
        result = through(optimizer(method, tmp_path / "run", budget), session)
        assert result.nfev == len(asked) + len(session) <= budget
        if before is not None:
            assert result.fun <= before.fun
            assert result.nit >= before.nit
            assert before.status is not zt.Status.CONVERGED or not session  # what had ended stays so
        asked, before = asked + session, result
        session = []
        assert through(optimizer(method, tmp_path / "run", budget), session).fun == result.fun
        assert session == []
    assert before.status in (zt.Status.BUDGET, zt.Status.CONVERGED)


@programs
def test_a_run_whose_budget_grows_is_resumed_to_the_bit_as_well(method, tmp_path):
    def grown(folder, kill):
        through(optimizer(method, folder, 80))
        opt, asked, rounds = optimizer(method, folder, 300), [], 0
        while not opt.done:
            answer(opt, asked)
            rounds += 1
            if rounds in kill:
                opt.close()
                opt = optimizer(method, folder, 300)
        with opt:
            return opt.result(), asked

    (one, first), (other, second) = grown(tmp_path / "a", ()), grown(tmp_path / "b", (1, 2, 5))
    assert first == second
    assert same(one, other)


# A program of one's own.


def test_a_program_of_ten_lines_works_everywhere(tmp_path):
    options = {"budget": 2000, "method": Compass(), "seed": 1}
    found = zt.minimize(PROBLEM, None, 2, **options)
    assert found.status is zt.Status.CONVERGED
    assert found.fun == pytest.approx(PROBLEM.optimum(2)[1], abs=1e-2)
    assert found.fun == pytest.approx(PROBLEM.F(found.x), rel=1e-12)
    kept = zt.minimize(PROBLEM, None, 2, run=tmp_path / "run", **options)
    single = zt.minimize(lambda x, i: PROBLEM.values(x[None], np.array([i]))[0], 5, 2, n=10, **options)
    told = through(zt.Optimizer(5, 2, n=10, **options))
    assert same(kept, found)
    assert same(single, found)
    assert same(told, found)
    steps = list(zt.iterate(PROBLEM, None, 2, **options))
    assert len(steps) == found.nit == len(found.trace)
    assert steps[-1].fun == found.fun


def test_what_a_program_says_is_in_the_result_with_the_calls_made_by_then():
    found = zt.minimize(PROBLEM, None, 2, budget=2000, method=Compass(), seed=1)
    assert found.remarks[-1][1] == "steps of 0.0078125"
    assert found.message.endswith("(steps of 0.0078125)")
    calls = [made for made, _ in found.remarks]
    assert calls == sorted(calls)
    assert all((made - 10) % 100 == 0 for made in calls)  # F at the start, and then 10 points a round
    assert zt.minimize(PROBLEM, None, 2, budget=500, method=zt.SZOHT(0.01), seed=1).remarks == []


def test_what_auto_found_and_chose_is_told():
    found = zt.minimize(PROBLEM, None, 2, budget=2000, seed=1)
    words = " ".join(said for _, said in found.remarks)
    assert "noise" in found.remarks[0][1]
    assert "natural length" in found.remarks[0][1]
    assert found.remarks[0][0] == 4 + 2 * 3  # of one component, and of two others
    assert "index" in words
    assert found.remarks[-1][1] in found.message


def test_the_command_tells_it_too(tmp_path):
    (tmp_path / "box.py").write_text("def f(x):\n    return float(((x - 1) ** 2).sum())\n")
    code = "from zerothresh.cli.app import main; main()"
    line = [sys.executable, "-c", code, "solve", "box:f", "--dim", "6", "-k", "2", "--budget", "300"]
    for flags, wanted in ((["-v"], True), ([], False)):
        done = subprocess.run([*line, *flags], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        assert ("natural length" in done.stdout) is wanted


def test_a_round_that_asks_for_nothing_is_no_trap():
    @dataclass(frozen=True)
    class Idle(zt.Program):
        rounds: int = 3

        def search(self, context):
            for _ in range(self.rounds):
                yield zt.Probes.values([context.theta], [])
            yield from context.values([context.theta])

    assert zt.minimize(PROBLEM, None, 2, budget=100, method=Idle(), seed=0, max_time=PATIENCE).nfev >= 10
    with pytest.raises(RuntimeError, match="asked for nothing in 1000 rounds in a row"):
        zt.minimize(PROBLEM, None, 2, budget=100, method=Idle(10**9), seed=0, max_time=PATIENCE)


def test_an_error_in_a_program_is_the_programmers_to_see():
    class Wrong(zt.Program):
        def search(self, context):
            yield from context.values([context.theta])
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        zt.minimize(PROBLEM, None, 2, budget=100, method=Wrong(), seed=0)
    with pytest.raises(NotImplementedError):
        zt.minimize(PROBLEM, None, 2, budget=100, method=zt.Program(), seed=0)


def test_a_run_that_keeps_no_calls_for_the_value_goes_on_with_a_larger_budget(tmp_path):
    asked, method = [], zt.methods.Auto()
    for budget in (30, 45, 120, 400):  # n = 10: the first budget is too small to keep 10 calls for F
        session = []
        result = through(optimizer(method, tmp_path / "run", budget), session)
        assert result.nfev == len(asked) + len(session) <= budget
        asked += session
    assert PROBLEM.F(result.x) < PROBLEM.F(np.zeros(5))
    assert len(asked) > 45
