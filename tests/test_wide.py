"""Rounds as wide as the machine: the declared width and the seed decide, never the workers or the order of arrival."""

from __future__ import annotations

import threading
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from bowls import Bowl, sparse_centre

import zerothresh as zt
from zerothresh.methods.program.foresight import Foresight

WIDTH, BUDGET = 12, 900


def bowl(x):
    """A curved function of 25 coordinates whose best support has 3 of them."""
    z = x - CENTRE
    return float((SCALES * z**2).sum() + 0.3 * (z[:-1] * z[1:]).sum() ** 2)


CENTRE = sparse_centre(25, 2.0, -1.0, 1.5)
SCALES = np.linspace(1.0, 4.0, 25)


def noisy(x, i):
    """Twenty components, each with a shift of its own."""
    return float(((x - CENTRE - 0.05 * np.sin(np.arange(25) + i)) ** 2).sum())


def residuals(x):
    """Forty outputs of a curved model of 25 coordinates."""
    return np.tanh(DESIGN @ x) - np.tanh(DESIGN @ CENTRE)


DESIGN = np.random.default_rng(3).normal(size=(40, 25)) / 5
KINDS = {
    "F": (bowl, {}),
    "bounds": (bowl, {"bounds": (-3, 3)}),
    "components": (noisy, {"n": 20}),
    "residuals": (residuals, {"outputs": "residuals"}),
    "population": (bowl, {"method": zt.methods.Outside("cma")}),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def go(kind, fun=None, **settings):
    own, arguments = KINDS[kind]
    return zt.minimize(fun or own, 25, 3, **({"budget": BUDGET, "seed": 4} | arguments | settings))


def ask(kind, **settings):
    _, arguments = KINDS[kind]
    return zt.Optimizer(25, 3, **({"budget": BUDGET, "seed": 4} | arguments | settings))


def values_of(kind, batch):
    fun, arguments = KINDS[kind]
    if "n" in arguments:
        return np.array([fun(x, i) for x, i in zip(batch.points, batch.components, strict=True)])
    return np.array([fun(x) for x in batch.points])


def same(one, other):
    return np.array_equal(one.x, other.x) and one.nfev == other.nfev and one.trace == other.trace


@kinds
@pytest.mark.parametrize("workers", [2, 5])
def test_the_same_width_gives_the_same_bits_on_any_number_of_threads(kind, workers):
    assert same(go(kind, workers=workers, parallel=WIDTH), go(kind, parallel=WIDTH))


@kinds
def test_the_order_in_which_values_arrive_changes_no_bit(kind):
    opt, rng = ask(kind, parallel=WIDTH), np.random.default_rng(0)
    while not opt.done:
        batch = opt.ask()
        values = values_of(kind, batch)
        for part in np.array_split(rng.permutation(len(batch)), min(3, len(batch))):
            opt.tell(batch[np.sort(part)], values[np.sort(part)])
    assert same(opt.result(), go(kind, parallel=WIDTH))


@kinds
@pytest.mark.parametrize("budget", [150, 151, 152, 163, 400])
def test_every_call_of_a_wide_round_is_counted_and_none_is_beyond_the_budget(kind, budget):
    calls, lock = 0, threading.Lock()
    own = KINDS[kind][0]

    def counted(*arguments):
        nonlocal calls
        with lock:
            calls += 1
        return own(*arguments)

    result = go(kind, counted, budget=budget, parallel=WIDTH, workers=4)
    assert result.nfev == calls <= budget


def test_the_width_is_the_number_of_workers_unless_it_is_declared():
    assert same(go("residuals", workers=WIDTH), go("residuals", parallel=WIDTH))
    assert not same(go("residuals", workers=WIDTH), go("residuals"))
    assert same(go("residuals", workers=2, parallel=1), go("residuals"))
    assert ask("F").task.width == 1


@pytest.mark.parametrize("parallel", [0, -1, 2.5, "all"])
def test_a_width_that_is_no_number_of_calls_is_refused(parallel):
    with pytest.raises(ValueError, match="parallel must be"):
        go("F", parallel=parallel)


@pytest.mark.parametrize("kind", ["F", "residuals"])
def test_a_run_keeps_the_width_that_it_began_with(kind, tmp_path):
    whole = go(kind, parallel=WIDTH)
    with ask(kind, parallel=WIDTH, run=tmp_path / "a", fingerprint=KINDS[kind][0].__qualname__) as opt:
        for _ in range(3):
            batch = opt.ask()
            opt.tell(batch, values_of(kind, batch))
    with pytest.raises(zt.RunError, match="started with parallel = 12, not 1: continue it with the same"):
        go(kind, run=tmp_path / "a", parallel=1)
    assert same(go(kind, run=tmp_path / "a", workers=3), whole)  # without a width, that of the folder is taken


def test_a_folder_without_a_width_has_rounds_of_width_one(tmp_path):
    go("F", run=tmp_path / "a", budget=300)
    assert "parallel" not in (tmp_path / "a" / "run.json").read_text()
    with pytest.raises(zt.RunError, match="started with parallel = 1, not 4"):
        go("F", run=tmp_path / "a", budget=300, parallel=4)
    assert ask("F", run=tmp_path / "a", fingerprint="bowl").task.width == 1


def test_ask_returns_as_many_points_as_are_wanted_or_says_why_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(ask("population", parallel=30).ask()) == 1  # the start comes first
        opt = ask("population", parallel=30)
        batch = opt.ask()
        opt.tell(batch, values_of("population", batch))
        assert len(opt.ask(at_least=30)) >= 30
        szoht = ask("F", method=zt.SZOHT(eta=0.01), parallel=50)
        assert len(szoht.ask(at_least=11)) == 11
    with pytest.warns(UserWarning, match=r"11 points, fewer than the 50 wanted: szoht can choose its next points only"):
        szoht.ask(at_least=50)
    with pytest.warns(UserWarning, match=r"because parallel is 1: create the optimiser with parallel=50"):
        ask("F").ask(at_least=50)
    with pytest.warns(UserWarning, match=r"because 19 calls are left of the budget"):
        ask("F", method=zt.SZOHT(eta=0.01), parallel=50, budget=20).ask(at_least=50)
    with pytest.raises(ValueError, match="at_least must be"):
        szoht.ask(at_least=0)


@pytest.mark.parametrize("solver", [name for name in ("cma", "nevergrad", "pypop7") if find_spec(name)])
@pytest.mark.filterwarnings("ignore")
def test_solvers_with_populations_hand_out_whole_ones(solver):
    problem, width = Bowl(sparse_centre(6, 2.0, -1.0), n=2), 24
    method, rows = zt.methods.Outside(solver), []
    opt = zt.Optimizer(6, 2, n=2, budget=700, method=method, seed=1, parallel=width)
    while not opt.done:
        batch = opt.ask()
        rows.append(len(batch))
        opt.tell(batch, problem.values(batch.points, batch.components))
    assert set(rows[1:-2]) == {width}
    assert 696 < opt.nfev <= 700
    assert opt.result().fun < 0.2 * problem.F(np.zeros(6))


def test_a_population_that_is_rehearsed_gets_the_points_of_one_that_is_not():
    pytest.importorskip("pypop7")
    narrow, wide = (
        zt.minimize(bowl, 25, 3, budget=400, method=zt.methods.Outside("pypop7"), seed=2, parallel=width)
        for width in (1, 2)
    )
    assert np.array_equal(narrow.x, wide.x)


class Foreseen(zt.Program):
    """A program that says what it will ask for next, and is right every other time."""

    def search(self, context):
        rounds = []
        for turn in range(6):
            here, there = (np.full(context.d, 0.1 * number) for number in (turn, turn + 1))
            if turn % 2 == 0:
                context.foresee([there, there + 7.0], context.everything)
            before = context.round
            yield from context.values([here])
            rounds.append(context.round - before)
        context.remark(f"{rounds}")


@pytest.mark.parametrize(("width", "ahead"), [(1, 0), (2, 1), (3, 2), (50, 2)])
def test_what_a_program_foresees_is_there_without_a_round(width, ahead):
    calls = []

    def fun(x):
        calls.append(x[0])
        return float(x[0])

    result = zt.minimize(fun, 3, 2, budget=40, method=Foreseen(), parallel=width, seed=0)
    assert result.remarks[-1][1] == str([1, 0] * 3 if ahead else [1] * 6)
    assert len(calls) == result.nfev == 1 + (3 * (1 + ahead) if ahead else 6)  # one more for F at the result


def test_a_value_that_was_foreseen_is_used_once():
    foresight, here, of = Foresight(), np.ones(3), np.array([0, 2])
    foresight.want([here, here, np.full(3, np.inf), 2 * here], of)
    points, components = foresight.extra(3)
    assert points.shape == (2, 3)  # each point once, none that is not finite, and no part of what does not fit
    assert components.tolist() == [0, 2]
    assert foresight.extra(50) is None  # what did not fit is forgotten
    foresight.keep(points, components, np.array([5.0, 6.0]))
    assert foresight.take(here, np.array([0, 1])) is None
    assert foresight.take(here, of).tolist() == [5.0, 6.0]
    assert foresight.take(here, of) is None


def test_wide_rounds_of_auto_are_fewer_until_a_goal_is_reached():
    found = {}
    for width in (1, 50):
        opt, rounds, best = ask("F", parallel=width), 0, None
        while best is None or best > 0.01:
            batch = opt.ask()
            opt.tell(batch, values_of("F", batch))
            rounds, best = rounds + 1, opt.progress().best_fun
        found[width] = rounds, opt.nfev
    assert found[50][0] <= 0.75 * found[1][0]
    assert found[50][1] <= 2.5 * found[1][1]
