"""Paths over k: values are shared and counted, folders are continued, and a k is chosen as the formulas say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from itertools import pairwise

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.k_path.criteria import information, one_standard_error
from zerothresh.k_path.path_program import folds
from zerothresh.k_path.shared_values import SharedValues
from zerothresh.sampling.philox import key_of


class Counted:
    """A problem that counts its calls itself."""

    fingerprint = "a counted problem"

    def __init__(self, problem):
        self.problem, self.d, self.n, self.calls = problem, problem.d, problem.n, 0
        self.asked = []

    def values(self, points, components):
        self.calls += len(points)
        self.asked += [(p.tobytes(), int(i)) for p, i in zip(points, components, strict=True)]
        return self.problem.values(points, components)


def regression(n=60, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X[:, [0, 2, 5]] @ [2.0, -1.5, 0.8] + 0.3 * rng.standard_normal(n)
    return Counted(zt.problems.Ridge(X, y, lam=0.0))


def repeats(problem):
    """How many calls asked for what an earlier one had told."""
    return len(problem.asked) - len(set(problem.asked))


def best_subset(problem, k):
    """F at the best point with k non-zeros, by least squares on every support."""
    from itertools import combinations

    X, y = problem.problem.X, problem.problem.y
    lowest = np.inf
    for support in combinations(range(problem.d), k):
        A = X[:, support]
        lowest = min(lowest, float(np.mean((A @ np.linalg.lstsq(A, y, rcond=None)[0] - y) ** 2)))
    return lowest


@pytest.fixture(scope="module")
def solved():
    problem = regression()
    return problem, zt.path(problem, None, range(1, 7), budget=20_000, seed=0)


def test_every_k_reaches_the_best_subset(solved):
    problem, found = solved
    for k, fun in zip(found.ks, found.fun, strict=True):
        assert fun <= best_subset(problem, k) * (1 + 1e-6)
        assert found[k].support.size <= k
        assert found[k].certified


def test_calls_are_counted_as_an_outside_counter_counts_them(solved):
    problem, found = solved
    assert found.nfev == problem.calls == sum(result.nfev for result in found.results)


def test_nothing_is_asked_for_twice_where_values_are_exact(solved):
    """A run of its own asks for a few values again."""
    problem, _ = solved
    alone = regression()
    zt.minimize(alone, None, 6, budget=20_000, seed=0)
    assert repeats(problem) <= repeats(alone) <= 5


def test_a_path_costs_little_more_than_its_largest_k():
    problem = regression(n=200, d=20, seed=1)
    found = zt.path(problem, None, [1, 2, 5, 10, 20], budget=100_000, seed=0)
    alone = Counted(problem.problem)
    zt.minimize(alone, None, 10, budget=100_000, seed=0)
    assert found.nfev <= 1.5 * alone.calls
    assert found.success
    assert found.status.name == "CONVERGED"


@pytest.mark.filterwarnings("ignore:the budget of 100 calls left none")
def test_f_never_rises_with_k_and_the_budget_is_never_exceeded():
    problem = zt.problems.quadratic(d=30, k_true=5, condition=50, seed=1)
    for budget in (100, 400, 3000):
        counted = Counted(problem)
        found = zt.path(counted, None, [1, 2, 3, 5, 10], budget=budget, seed=0)
        assert counted.calls == found.nfev <= budget
        known = found.fun[~np.isnan(found.fun)]
        assert (np.diff(known) <= 0).all()


def test_a_path_is_as_good_as_runs_of_their_own():
    """Of six k, each gets 1250 calls and what the others know; its own run gets 5000."""
    problem = zt.problems.quadratic(d=50, k_true=5, condition=200, seed=1)
    found = zt.path(problem, None, [1, 2, 3, 5, 10, 20], budget=7500, seed=0)
    start = problem.F(np.zeros(50))
    for k, fun in zip(found.ks, found.fun, strict=True):
        own = zt.minimize(problem, None, k, budget=5000, seed=0)
        assert fun <= own.fun + 1e-6 * start


def test_repeated_values_of_a_noisy_function_are_independent():
    """The same point is asked for again only within a run, and then each value is a new one."""
    draws = []

    def noisy(x):
        draws.append((x.tobytes(), len(draws)))
        return float(((x - 1) ** 2).sum() + 0.1 * np.random.default_rng(len(draws)).standard_normal())

    found = zt.path(noisy, 6, [1, 2, 3], budget=600, seed=0)
    assert len(draws) == found.nfev <= 600
    points = [point for point, _ in draws]
    assert len(points) > len(set(points))  # repeated values were asked for, rather than taken from memory


class AtZero:
    """A plan of calls of component 0 at the point 0."""

    d = 2

    def __init__(self, calls):
        self.calls, self.components = calls, np.zeros(calls, np.int64)

    def points(self, first, last):
        return np.zeros((last - first, self.d))


def test_a_run_that_asks_again_gets_a_new_value_and_another_run_gets_the_same_ones():
    values, first, second = SharedValues(), {}, {}
    for value in (1.0, 2.0):
        looked = values.look(AtZero(1), first, None)
        assert looked.price == 1
        values.enter(looked, np.array([value]))
        assert values.answers(looked, first).tolist() == [value]
    looked = values.look(AtZero(3), second, None)
    assert looked.missing.tolist() == [2]
    values.enter(looked, np.array([3.0]))
    assert values.answers(looked, second).tolist() == [1.0, 2.0, 3.0]


def test_the_same_seed_gives_the_same_bits_also_with_workers_and_vectorised():
    problem = zt.problems.quadratic(d=12, k_true=3, condition=10, seed=1)
    args = {"budget": 900, "seed": 3}
    one = zt.path(lambda x: problem.F(x), 12, [1, 3, 5], **args)
    two = zt.path(lambda x: problem.F(x), 12, [1, 3, 5], parallel=1, workers=3, **args)
    three = zt.path(lambda X: np.array([problem.F(x) for x in X]), 12, [1, 3, 5], vectorized=True, **args)
    for other in (two, three):
        assert [r.x.tobytes() for r in other] == [r.x.tobytes() for r in one]
        assert other.nfev == one.nfev


def test_methods_of_the_paper_have_paths_too():
    problem = zt.problems.quadratic(d=12, k_true=3, condition=4, seed=1)
    counted = Counted(problem)
    found = zt.path(counted, None, [1, 2, 3], budget=2000, method="fgzoht", options={"eta": 0.2}, seed=0)
    assert counted.calls == found.nfev <= 2000
    assert not np.isnan(found.fun).any()
    assert (np.diff(found.fun) <= 0).all()


def test_outputs_are_shared_and_each_k_has_a_fit():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 10))
    calls = []

    def residuals(x):
        calls.append(1)
        return np.expm1(0.1 * (A @ x)) - np.expm1(0.1 * (A[:, 2] * 2 - A[:, 5]))

    found = zt.path(residuals, 10, [1, 2, 3], budget=200, outputs="residuals", seed=0)
    assert len(calls) == found.nfev <= 200
    assert found[2].support.tolist() == [2, 5]
    assert found[2].fun < 1e-12
    assert found[2].residuals.shape == (40,)
    assert found[2].fit is not None


# Folders.


def test_an_ended_path_is_opened_again_without_a_call_and_takes_more_ks(tmp_path):
    problem, run = regression(), tmp_path / "path"
    args = {"budget": 20_000, "seed": 0, "run": run}
    first = zt.path(problem, None, [2, 4], **args)
    paid = problem.calls
    again = zt.path(problem, None, [2, 4], **args)
    assert problem.calls == paid == again.nfev
    assert [r.x.tobytes() for r in again] == [r.x.tobytes() for r in first]
    more = zt.path(problem, None, [1, 2, 3, 4, 6], **args)
    assert more.nfev == problem.calls
    assert repeats(problem) <= 10
    assert [more[k].x.tobytes() for k in (2, 4)] == [r.x.tobytes() for r in first]
    for k in (1, 3, 6):
        assert more[k].fun <= best_subset(problem, k) * (1 + 1e-6)


def test_a_larger_budget_goes_on(tmp_path):
    problem = Counted(zt.problems.quadratic(d=30, k_true=5, condition=50, seed=1))
    args = {"seed": 0, "run": tmp_path / "p"}
    first = zt.path(problem, None, [2, 5], budget=80, **args)
    more = zt.path(problem, None, [2, 5], budget=2000, **args)
    assert problem.calls == more.nfev <= 2000
    assert more.nfev > first.nfev
    assert (more.fun <= first.fun).all()
    assert more.fun[1] < 1e-3 * first.fun[1]
    with pytest.raises(zt.RunError, match="a budget may stay or grow"):
        zt.path(problem, None, [2, 5], budget=300, **args)


SCRIPT = """
    import sys, time
    import numpy as np
    import zerothresh as zt
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = X @ np.array([2.0, 0, -1.5, 0, 0, 0.8, 0, 0]) + 0.3 * rng.standard_normal(60)
    log = open(sys.argv[1], "a", buffering=1)
    most = int(sys.argv[3])
    made = [0]
    def loss(x, i):
        made[0] += 1
        if made[0] == most:
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
        log.write(f"{x.tobytes().hex()} {i}\\n")
        return float((X[i] @ x - y[i]) ** 2)
    found = zt.path(loss, 8, [1, 2, 3, 5], n=60, budget=20_000, seed=0, run=sys.argv[2], cv=3, progress=False)
    print(repr([r.x.tobytes().hex() for r in found]), found.nfev, found.best_k)
"""


def test_a_killed_path_goes_on_and_pays_for_nothing_twice(tmp_path):
    script, log = tmp_path / "script.py", tmp_path / "log"
    script.write_text(textwrap.dedent(SCRIPT))

    def session(log, run, most):
        command = [sys.executable, str(script), str(log), str(run), str(most)]
        return subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)

    whole = session(tmp_path / "log-whole", tmp_path / "whole", -1)
    assert whole.returncode == 0, whole.stderr
    for most in (5, 500):
        assert session(log, tmp_path / "run", most).returncode == -signal.SIGKILL
    last = session(log, tmp_path / "run", -1)
    assert last.stdout == whole.stdout
    lines = log.read_text().splitlines()
    assert len(lines) - len(set(lines)) <= 5
    assert len(lines) == int(last.stdout.split("]")[1].split()[0])


def test_ctrl_c_keeps_the_best_points_and_the_path_goes_on(tmp_path):
    problem = regression()
    seen = [0]

    def loss(x, i):
        seen[0] += 1
        if seen[0] == 400:
            os.kill(os.getpid(), signal.SIGINT)
        return float((problem.problem.X[i] @ x - problem.problem.y[i]) ** 2)

    args = {"n": 60, "budget": 20_000, "seed": 0, "run": tmp_path / "p"}
    stopped = zt.path(loss, 8, [1, 2], **args)
    assert stopped.status.name == "INTERRUPTED"
    assert not stopped.success
    ended = zt.path(loss, 8, [1, 2], **args)
    assert ended.success
    assert seen[0] == ended.nfev


def test_a_callback_and_max_time_stop_a_path():
    problem = zt.problems.quadratic(d=12, k_true=3, condition=10, seed=1)

    def callback(progress):
        raise StopIteration("enough")

    found = zt.path(problem, None, [1, 3], budget=900, seed=0, callback=callback)
    assert found.status.name == "CALLBACK"
    assert found.nfev < 900
    timed = zt.path(problem, None, [1, 3], budget=900, seed=0, max_time=1e-9)
    assert timed.status.name == "TIME"


def test_other_folders_are_refused(tmp_path):
    zt.minimize(lambda x: (x**2).sum(), 3, 1, budget=50, seed=0, run=tmp_path / "single")
    with pytest.raises(zt.RunError, match="single run"):
        zt.path(lambda x: (x**2).sum(), 3, [1], budget=50, run=tmp_path / "single")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    with pytest.raises(zt.RunError, match="other files"):
        zt.path(lambda x: (x**2).sum(), 3, [1], budget=50, run=tmp_path / "other")
    found = zt.path(lambda x: ((x - 1) ** 2).sum(), 3, [1], budget=50, run=tmp_path / "path")
    with pytest.raises(zt.RunError, match=r"no run\.json"):
        zt.minimize(lambda x: (x**2).sum(), 3, 1, budget=50, run=tmp_path / "path")
    content = json.loads((tmp_path / "path" / "path.json").read_text())
    assert content["table"]["k"] == [1]
    assert content["table"]["fun"] == found.fun.tolist()
    (tmp_path / "path" / "path.json").write_text("{}")
    with pytest.raises(zt.RunError, match="not what a path writes"):
        zt.path(lambda x: (x**2).sum(), 3, [1], budget=50, run=tmp_path / "path")


# The choice of k.


def test_held_out_f_is_that_of_fits_without_the_fold():
    """Least squares on the support that the fold's run found, by hand, with the one-standard-error rule."""
    problem = regression()
    found = zt.path(problem, None, [1, 2, 3, 5], budget=60_000, seed=4, cv=4)
    assert problem.calls == found.nfev
    X, y = problem.problem.X, problem.problem.y
    fold_of = folds(60, 4, key_of(4))
    assert sorted(np.bincount(fold_of).tolist()) == [15, 15, 15, 15]
    means, errors = [], []
    for k in found.ks:
        values = []
        for fold in range(4):
            train, test = fold_of != fold, fold_of == fold
            inside = Counted(zt.problems.Ridge(X[train], y[train], lam=0.0))
            x = zt.minimize(inside, None, k, budget=20_000, seed=0).x
            values.append(np.mean((X[test] @ x - y[test]) ** 2))
        means.append(np.mean(values))
        errors.append(np.std(values, ddof=1) / 2)
    assert np.allclose(found.held_out, means, rtol=1e-4)
    assert np.allclose(found.held_out_error, errors, rtol=1e-3)
    lowest = int(np.argmin(means))
    assert found.best_k == next(k for k, m in zip(found.ks, means, strict=True) if m <= means[lowest] + errors[lowest])
    assert found.best is found[found.best_k]


def test_folds_share_what_the_path_has_learnt():
    problem = regression(n=120)
    plain = zt.path(problem, None, [1, 2, 3], budget=60_000, seed=0)
    with_folds = zt.path(problem, None, [1, 2, 3], budget=60_000, seed=0, cv=5)
    values = 3 * 5 * 120  # of F at the points of three k and five folds
    assert with_folds.nfev <= plain.nfev + values + 300
    assert np.allclose(with_folds.fun, plain.fun)


def test_folds_get_rows_that_were_learnt_away_from_the_start():
    """Half of the components are stationary at the start, so that their rows are learnt at another point."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 6))
    y = X[:, [1, 4]] @ [2.0, -1.0]
    y[::2] += 0.1 * rng.standard_normal(40)
    start = np.array([0, 2.0, 0, 0, -1.0, 0])
    problem = Counted(zt.problems.Ridge(X, y, lam=0.0))
    found = zt.path(problem, start, [2, 3, 4], budget=30_000, seed=0, cv=4)
    assert problem.calls == found.nfev
    assert found.best_k == 2
    assert (found.held_out < 2 * found.fun + 1e-3).all()


def test_one_standard_error_rule():
    ks = [1, 2, 3, 4]
    errors = np.array([0.1, 0.1, 0.2, 0.1])
    assert one_standard_error(ks, np.array([2.0, 1.15, 1.0, 1.1]), errors) == 2
    assert one_standard_error(ks, np.array([2.0, 1.25, 1.0, 1.1]), errors) == 3
    assert one_standard_error(ks, np.array([np.nan, np.nan, 1.0, 0.9]), errors) == 3
    assert one_standard_error(ks, np.full(4, np.nan), np.full(4, np.nan)) is None


def test_criteria_are_those_of_the_formulas():
    problem = regression()
    found = zt.path(problem, None, [1, 2, 3, 5], budget=60_000, seed=0, likelihood="gaussian")
    D, s = 60 * np.log(found.fun), np.array([1, 2, 3, 5])
    assert np.allclose(found.aic, D + 2 * s)
    assert np.allclose(found.bic, D + s * np.log(60))
    assert found.best_k == found.ks[int(np.argmin(found.bic))] == 3
    assert information(0.5, 3, 100, "logistic") == (100 + 6, pytest.approx(100 + 3 * np.log(100)))
    assert information(0.0, 3, 100, "gaussian")[1] == -np.inf


def test_without_anything_to_choose_by_no_k_is_best(solved):
    assert solved[1].best_k is None
    assert solved[1].best is None


def test_a_budget_without_calls_for_the_folds_is_said():
    with pytest.warns(UserWarning, match="too small to find points without each fold"):
        found = zt.path(regression(), None, [1, 2], budget=200, seed=0, cv=3)
    assert found.best_k is None
    assert np.isnan(found.held_out).all()


# Tables and pictures.


def test_table_frame_and_picture(solved):
    pandas = pytest.importorskip("pandas")
    problem, _ = solved
    names = list("abcdefgh")
    start = pandas.Series(np.zeros(8), index=names)
    loss = lambda x, i: float((problem.problem.X[i] @ x - problem.problem.y[i]) ** 2)
    found = zt.path(loss, start, [1, 2, 3], n=60, budget=60_000, seed=0, cv=3, likelihood="gaussian")
    assert found[3].support.tolist() == [0, 2, 5]
    frame = found.frame()
    assert frame.index.tolist() == [1, 2, 3]
    assert frame.loc[3, "support"] == ["a", "c", "f"]
    text = repr(found)
    assert "a c f" in text
    assert f"* k = {found.best_k}" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "<table>" in found._repr_html_()
    assert "a c f" in found._repr_html_()
    figure = found.plot(title="a path")
    assert figure.axes[0].get_title() == "a path"
    assert len(figure.axes[0].lines) >= 2
    with pytest.raises(KeyError, match="no k = 7"):
        found[7]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ks": []}, "empty"),
        ({"ks": 3}, "several whole numbers"),
        ({"ks": "1,2"}, "several whole numbers"),
        ({"ks": [0, 1]}, "each k"),
        ({"ks": [1, 2.5]}, "each k"),
        ({"ks": [2, 9]}, "larger than the dimension"),
        ({"include": [0, 1, 2]}, "for k = 1 of the path"),
        ({"groups": [0, 0, 0, 0, 1, 1, 1, 1], "ks": [1, 3]}, "number of groups = 2"),
        ({"cv": 1, "n": 10}, "cv"),
        ({"cv": 5}, "cv needs components"),
        ({"cv": 11, "n": 10}, "as many components"),
        ({"likelihood": "gaussian"}, "number of observations"),
        ({"likelihood": "normal", "n": 10}, "likelihood"),
        ({"method": zt.methods.RSPGF(eta=0.1)}, "l0 constraint"),
        ({"method": "szoht", "options": {"eta": 0.1}, "patience": 3}, "patience"),
        ({"names": ["a"]}, "names must be 8"),
        ({"budget": 0}, "budget"),
    ],
)
def test_bad_arguments_are_refused_before_the_first_call(arguments, message):
    calls = []
    given = {"ks": [1, 2], "budget": 100, **arguments}
    with pytest.raises(ValueError, match=message):
        zt.path(lambda x, *i: calls.append(1) or 0.0, 8, **given)
    assert not calls


def test_bounds_include_exclude_and_groups_hold_for_every_k():
    goal = np.array([3.0, -2.0, 1.0, 4.0, 0.5, 2.0])
    points = []

    def fun(x):
        points.append(x.copy())
        return float(((x - goal) ** 2).sum())

    found = zt.path(fun, 6, [2, 3], budget=600, seed=0, bounds=(-1, 2.5), include=[4], exclude=[3])
    assert (np.array(points) <= 2.5).all()
    assert (np.array(points) >= -1).all()
    assert all(4 in r.support and 3 not in r.support for r in found)
    grouped = zt.path(fun, 6, [1, 2], budget=600, seed=0, groups=[0, 0, 1, 1, 2, 2])
    assert set(grouped[1].support) <= {2, 3}
    assert set(grouped[2].support) <= {0, 1, 2, 3}


def test_a_start_with_too_many_non_zeros_is_cut_for_small_k():
    goal = np.array([3.0, -2.0, 1.0, 4.0, 0.5, 2.0])
    found = zt.path(lambda x: float(((x - goal) ** 2).sum()), np.ones(6), [1, 2, 6], budget=600, seed=0)
    assert [r.support.size <= k for k, r in zip(found.ks, found, strict=True)] == [True] * 3
    assert found[1].support.tolist() == [3]


def test_a_failing_function_ends_the_path_with_what_was_found():
    def fun(x):
        if x[0] > 1:
            raise OSError("the simulator crashed")
        return float(((x - 2) ** 2).sum())

    found = zt.path(fun, 4, [1, 2], budget=300, seed=0)
    assert found.status.name == "FAILED"
    assert not found.success
    assert found.failure is not None
    worst = zt.path(fun, 4, [1, 2], budget=300, seed=0, on_error="worst")
    assert worst.success


def test_constraints_hold_for_every_k_and_at_every_point_where_that_is_wanted():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 12))
    A = A @ A.T / 12
    mean = rng.random(12)
    points = []

    def risk(x):
        points.append(x.copy())
        return float(x @ A @ x - mean @ x)

    found = zt.path(risk, 12, [1, 2, 4, 8], budget=1500, seed=0, constraint=zt.Simplex(), strict=True)
    assert found.nfev == len(points) <= 1500
    for x in points:
        assert x.min() >= 0
        assert x.sum() == pytest.approx(1)
        assert np.count_nonzero(x) <= 8
    assert [np.count_nonzero(r.x) <= k for k, r in zip(found.ks, found, strict=True)] == [True] * 4
    assert (np.diff(found.fun) <= 0).all()
    alone = min(float(A[j, j] - mean[j]) for j in range(12))
    assert found[1].fun == pytest.approx(alone)


def test_values_are_kept_for_every_k():
    goal = np.array([3.2, -2.4, 0.0, 1.1, 0.2])
    found = zt.path(lambda x: float(((x - goal) ** 2).sum()), 5, [1, 2, 3], budget=900, seed=0, values=range(-4, 5))
    assert [sorted(r.x[r.support].tolist()) for r in found] == [[3.0], [-2.0, 3.0], [-2.0, 1.0, 3.0]]


@pytest.mark.parametrize(
    "refused",
    [{"seed": 1}, {"timeout": -1}, {"retries": "x"}, {"on_nan": "other"}, {"x0": np.ones(9)}, {"cost": 3}],
    ids=str,
)
def test_a_refused_call_leaves_the_folder_as_it_was(tmp_path, refused):
    goal = np.array([3.0, -2.0, 1.0, 4.0, 0.5, 2.0, 0.0, 1.0])

    def fun(x):
        return float(((x - goal) ** 2).sum())

    args = {"x0": 8, "ks": [1, 2], "budget": 600, "seed": 0, "run": tmp_path / "p"}
    with pytest.raises((ValueError, TypeError)):
        zt.path(fun, **(args | {"ks": [3, 5], "budget": 60_000, "timeout": -1}))
    assert not (tmp_path / "p").exists()
    first = zt.path(fun, **args)
    before = (tmp_path / "p" / "path.json").read_bytes()
    with pytest.raises((ValueError, TypeError, zt.RunError)):
        zt.path(fun, **(args | {"ks": [3, 5], "budget": 60_000} | refused))
    assert (tmp_path / "p" / "path.json").read_bytes() == before
    again = zt.path(fun, **args)
    assert [r.x.tobytes() for r in again] == [r.x.tobytes() for r in first]


def test_what_is_added_is_written_before_its_first_call_and_keeps_the_table(tmp_path):
    goal, seen = np.array([3.0, -2.0, 1.0, 4.0, 0.5]), []

    def fun(x):
        seen.append(json.loads((tmp_path / "p" / "path.json").read_text()))
        return float(((x - goal) ** 2).sum())

    args = {"seed": 0, "run": tmp_path / "p"}
    zt.path(fun, 5, [1, 2], budget=40, **args)
    assert seen[0]["segments"] == [{"ks": [1, 2], "budget": 40, "cv": 0}]
    made = len(seen)
    zt.path(fun, 5, [1, 3], budget=200, **args)
    assert seen[made]["segments"] == [{"ks": [1, 2], "budget": 40, "cv": 0}, {"ks": [3], "budget": 200, "cv": 0}]
    assert seen[made]["table"]["k"] == [1, 2]


@pytest.mark.parametrize("place", ["calls", "segments"])
def test_a_path_that_was_killed_before_its_first_call_goes_on(tmp_path, monkeypatch, place):
    """The run folder is made first, and then path.json: the power goes off between the two, or after both."""
    from zerothresh.k_path.path_folder import PathFolder

    def fun(x):
        return float(((x - 1) ** 2).sum())

    write = PathFolder.write

    def killed(folder, *arguments):
        if place == "segments":
            write(folder, *arguments)
        raise SystemExit

    args = {"budget": 200, "seed": 0, "run": tmp_path / "p"}
    with monkeypatch.context() as patch:
        patch.setattr(PathFolder, "write", killed)
        with pytest.raises(SystemExit):
            zt.path(fun, 5, [1, 2], **args)
    found = zt.path(fun, 5, [1, 2], **args)
    whole = zt.path(fun, 5, [1, 2], budget=200, seed=0)
    assert [r.x.tobytes() for r in found] == [r.x.tobytes() for r in whole]


def test_more_folds_than_outputs_are_refused_with_a_sentence(tmp_path):
    calls = []

    def residuals(x):
        calls.append(1)
        return np.arange(40.0) - x[0]

    args = {"budget": 200, "outputs": "residuals", "seed": 0}
    with pytest.raises(ValueError, match="cv = 41 folds need as many outputs, but n = 40"):
        zt.path(residuals, 3, [1, 2], cv=41, n=40, **args)
    assert not calls
    found = zt.path(residuals, 3, [1, 2], cv=41, run=tmp_path / "p", **args)
    assert found.status.name == "BAD_VALUE"
    assert "cv = 41 folds need as many outputs" in found.message
    assert len(calls) == 1
    assert zt.path(residuals, 3, [1, 2], cv=5, run=tmp_path / "p", **args).success
    with pytest.raises(zt.RunError, match="5 folds"):
        zt.path(residuals, 3, [1, 2], cv=4, run=tmp_path / "p", **args)


def test_a_fold_without_any_output_has_no_held_out_f():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 4))
    gone = folds(12, 3, key_of(0)) == 1

    def residuals(x):
        return np.where(gone, np.nan, A @ x - A[:, 2])

    with pytest.warns(UserWarning, match="held-out F is not known"):
        found = zt.path(residuals, 4, [1, 2], cv=3, budget=300, outputs="residuals", on_nan="mask", seed=0)
    assert found.success
    assert found.best_k is None


def test_the_squared_loss_is_gaussian_however_it_is_given():
    A = np.random.default_rng(0).standard_normal((30, 4))
    args = {"budget": 100, "outputs": "residuals", "likelihood": "gaussian", "seed": 0}
    for loss in (None, "squared", zt.losses.Squared()):
        assert zt.path(lambda x: A @ x - A[:, 2] - A[:, 0] ** 2, 4, [1, 2], loss=loss, **args).best_k is not None
    with pytest.raises(ValueError, match="squared loss"):
        zt.path(lambda x: A @ x, 4, [1, 2], loss=zt.losses.Huber(0.1), **args)


def test_a_path_that_finds_nothing_better_than_the_start_is_no_success():
    found = zt.path(lambda x: 1.0, 6, [1, 2], budget=300, seed=0)
    alone = zt.minimize(lambda x: 1.0, 6, 2, budget=300, seed=0)
    assert not alone.success
    assert not found.success
    assert "nothing better than the start was found for k = 1, 2: a larger budget" in found.message
    for result in found:
        assert not result.success
        assert result.message.endswith(alone.message.split("found: ")[1])
    assert max(map(len, repr(found).splitlines())) <= 80
    assert "for k = 0, 1: a larger" in found.shifted(-1).message


def test_a_k_that_the_budget_ended_says_so():
    problem = zt.problems.quadratic(d=30, k_true=5, condition=50, seed=1)
    found = zt.path(problem, None, [1, 2, 5], budget=100, seed=0)
    assert found.status.name == "BUDGET"
    for result in found:
        if result.status.name == "BUDGET":
            assert "the budget of the path is spent" in result.message
    assert any(result.status.name == "BUDGET" for result in found)


def test_a_k_added_to_a_path_without_calls_left_is_no_success(tmp_path):
    rng, goal = np.random.default_rng(0), np.array([3.0, -2.0, 1.0, 4.0, 0.5, 2.0])
    noise = rng.standard_normal(10_000)
    made = []

    def noisy(x):
        made.append(1)
        return float(((x - goal) ** 2).sum() + noise[len(made)])

    args = {"budget": 120, "seed": 0, "run": tmp_path / "p"}
    first = zt.path(noisy, 6, [1, 2], **args)
    assert first.success
    assert first.nfev == 120
    with pytest.warns(UserWarning, match="the budget of 120 calls left none for k = 4"):
        more = zt.path(noisy, 6, [1, 2, 4], **args)
    assert not more.success
    assert [r.success for r in more] == [True, True, False]
    assert "raise the budget of the path" in more[4].message
    assert zt.path(noisy, 6, [1, 2, 4], **(args | {"budget": 400})).success


@pytest.mark.parametrize("extra", [1.1, 1.3, 1.5])
def test_where_calls_are_scarce_the_smallest_k_are_served_first(extra):
    problem = regression(n=120, d=9)
    alone = zt.minimize(problem, None, 8, budget=20_000, seed=1, progress=False).nfev
    start = float(np.mean(problem.problem.y**2))
    found = zt.path(problem, None, range(1, 9), budget=int(extra * alone), seed=1, progress=False)
    assert found.nfev <= int(extra * alone)
    served = [result.nfev > 0 and result.fun < start for result in found]
    assert served[0]
    assert served[:-1] == sorted(served[:-1], reverse=True)  # nobody was passed over, but the largest k comes first
    assert (found.fun[: sum(served[:-1])] < start).all()
    assert all(low <= high for low, high in pairwise(found.fun[::-1]))
