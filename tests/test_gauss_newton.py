"""Sparse Gauss-Newton: what its models compute, how many runs it makes, and that no unit of F or x changes that."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest
from killing import die, killed

import zerothresh as zt
from zerothresh.methods import GaussNewton
from zerothresh.methods.residual.jacobians.curvature_fit import curvature
from zerothresh.methods.residual.jacobians.curved_model import CurvedModel
from zerothresh.methods.residual.jacobians.filtered_jacobian import FilteredJacobian, row_scaling
from zerothresh.methods.residual.jacobians.loss_weights import total_loss, working
from zerothresh.methods.residual.jacobians.output_noise import like_noise
from zerothresh.methods.residual.jacobians.robust_fit import far_fit
from zerothresh.methods.residual.jacobians.sparse_choice import Choice
from zerothresh.methods.residual.jacobians.sparse_fit import SparseFit, damped_fit
from zerothresh.methods.residual.jacobians.trust_step import bounded_least_squares_step, quadratic_step
from zerothresh.methods.residual.nothing_left import within_rounding
from zerothresh.methods.residual.residual_settings import NOTHING

LOSSES = [zt.losses.Huber(0.3), zt.losses.Cauchy(0.3), zt.losses.Quantile(0.5), zt.losses.Squared()]


class Curves:
    """Outputs phi(A x) minus those of a sparse truth."""

    def __init__(self, seed=0, d=40, k=3, n=60, link=np.tanh, noise=0.0, positive=False, interrupt=None):
        self.interrupt = interrupt
        rng = np.random.default_rng(seed)
        self.A, self.link, self.calls, self.noise, self.rng = rng.normal(size=(n, d)), link, [], noise, rng
        self.A /= np.sqrt(k)
        self.truth, self.d, self.k = np.zeros(d), d, k
        signs = np.ones(k) if positive else rng.choice([-1, 1], k)
        self.truth[rng.choice(d, k, replace=False)] = signs * rng.uniform(0.5, 1.5, k)
        self.y = link(self.A @ self.truth)

    def __call__(self, x):
        if len(self.calls) == self.interrupt:
            raise KeyboardInterrupt
        self.calls.append(x.copy())
        return self.link(self.A @ x) - self.y + self.noise * self.rng.normal(size=self.y.size)


def solve(fun, **options):
    arguments = {"outputs": "residuals", "method": "gauss-newton", "budget": 1000, "seed": 1, **options}
    return zt.minimize(fun, arguments.pop("x0", fun.d), arguments.pop("k", fun.k), **arguments)


def free(d, k):
    return Choice(np.arange(d), k, np.empty(0, np.int64), np.full(d, -np.inf), np.full(d, np.inf))


def no_chance(size):
    return np.zeros(size)


# Models.


@pytest.mark.parametrize("seed", range(6))
def test_a_far_fit_finds_the_support_although_the_linear_model_is_wrong_in_the_outputs_that_change_most(seed):
    fun = Curves(seed, d=100, k=5, n=100, link=np.exp)
    fit = far_fit(None, fun(np.zeros(100)), fun.A, np.zeros(100), free(100, 5), np.random.default_rng(1).random, 8)
    assert np.array_equal(fit.y != 0, fun.truth != 0)
    assert 0 < fit.share < 0.8


def test_a_far_fit_of_linear_outputs_is_exact_and_the_same_in_any_unit_of_the_outputs():
    fun = Curves(0, link=lambda z: z)
    one, other = (
        far_fit(None, c * fun(np.zeros(40)), c * fun.A, np.zeros(40), free(40, 3), np.random.default_rng(1).random, 2)
        for c in (1.0, 1024.0)
    )
    assert one.y == pytest.approx(fun.truth, abs=1e-12)
    assert np.array_equal(one.y, other.y)


@pytest.mark.parametrize("seed", range(4))
def test_the_price_of_an_exchange_is_what_refitting_gives(seed):
    rng = np.random.default_rng(seed)
    problem = SparseFit(rng.normal(size=(20, 8)), rng.normal(size=20), free(8, 3))
    leaving, prices = problem.prices([1, 4, 6])
    before = problem.fit(np.array([1, 4, 6]))[1]
    for (a, unit), entering in itertools.product(enumerate(leaving), (0, 2, 3, 5, 7)):
        after = problem.fit(np.array(sorted({1, 4, 6, entering} - {unit})))[1]
        assert prices[entering, a] == pytest.approx(after - before, rel=1e-6)


@pytest.mark.parametrize("limits", [{}, {"low": -0.2, "high": 0.3}, {"groups": True}, {"forced": [2]}])
def test_a_sparse_fit_is_the_best_of_all_supports_of_a_small_problem(limits):
    rng = np.random.default_rng(3)
    J, truth = rng.normal(size=(25, 8)), np.array([0, 1.0, 0, 0, -2.0, 0, 0.7, 0])
    y = J @ truth + 0.1 * rng.normal(size=25)
    unit = np.arange(8) // 2 if "groups" in limits else np.arange(8)
    low, high = np.full(8, limits.get("low", -np.inf)), np.full(8, limits.get("high", np.inf))
    forced = np.array(limits.get("forced", []), dtype=np.int64)
    problem = SparseFit(J, y, Choice(unit, 2, forced, low, high))
    supports = (list(pair) for pair in itertools.combinations(range(unit.max() + 1), 2) if set(forced) <= set(pair))
    best = min(problem.fit(problem.choice.coordinates(units))[1] for units in supports)
    value, S, z = problem.solve(no_chance, 0)[0]
    assert value == pytest.approx(best, rel=1e-9)
    assert len(set(unit[S])) <= 2
    assert set(forced) <= set(S)
    assert ((z >= low[S]) & (z <= high[S])).all()


def test_a_filtered_jacobian_is_exact_after_a_step_of_a_quadratic_and_broyden_s_when_it_is_old():
    rng = np.random.default_rng(0)
    J, bend = rng.normal(size=(5, 3)), rng.normal(size=5)
    s = np.array([0.3, -0.2, 0.5])
    fresh = FilteredJacobian(J, np.zeros((3, 3)), np.ones(3))
    surprise = bend * (s @ s)  # of outputs J x + bend |x|^2 along s
    after = fresh.learn(s, surprise, moved=True)
    assert np.allclose(after.J, J + np.outer(2 * bend, s))
    old = FilteredJacobian(J, 1e12 * np.eye(3), np.ones(3)).learn(s, surprise, moved=True)
    assert np.allclose(old.J, J + np.outer(surprise, s) / (s @ s), rtol=1e-6)
    assert np.allclose(fresh.learn(s, surprise, moved=False).J, J)


def test_rows_that_are_scaled_are_recognised_and_others_are_not():
    rng = np.random.default_rng(0)
    before, factors = rng.normal(size=(30, 4)), rng.uniform(0.5, 2.0, 30)
    found, error = row_scaling(before, factors[:, None] * before, 1e-9)
    assert np.allclose(found, factors, rtol=1e-3)
    assert error < 1e-3
    assert row_scaling(before, rng.normal(size=(30, 4)), 1e-3)[1] > 0.25


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_weights_give_the_slope_of_the_loss(loss):
    r = np.array([-2.0, -0.1, 0.05, 0.4, 3.0, np.nan])
    w, u = working(loss, r)
    assert np.allclose(2 * w[:-1] ** 2 * u[:-1], loss.derivative(r[:-1]), rtol=1e-6)
    assert w[-1] == 0
    assert total_loss(loss, r) == pytest.approx(loss.value(r[:-1]).mean() * r.size)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_the_minimiser_of_a_curved_model_is_no_worse_than_any_point_of_a_grid(loss):
    rng = np.random.default_rng(2)
    model = CurvedModel(
        loss, rng.normal(size=7), rng.normal(size=(7, 2)), rng.normal(size=(1, 7)), np.array([[0.6, 0.8]])
    )
    radius, edge = 0.8, np.full(2, np.inf)
    s = model.minimiser(radius, -edge, edge)
    start = model.value(np.zeros(2))
    grid = (
        radius * a * np.array([np.cos(t), np.sin(t)]) for a in np.linspace(0, 1, 30) for t in np.linspace(0, 6.28, 90)
    )
    best = min(model.value(point) for point in grid)
    assert np.linalg.norm(s) <= radius * (1 + 1e-3)
    assert start - model.value(s) > 0.9 * (start - best)


def test_the_curvature_fit_predicts_a_quadratic_from_more_runs_than_it_has_second_derivatives():
    rng = np.random.default_rng(4)
    H = rng.standard_normal((7, 3, 3))
    H += H.transpose(0, 2, 1)
    T, s = 0.1 * rng.standard_normal((20, 3)), 0.1 * rng.standard_normal(3)
    a, c = curvature(T, 0.5 * np.einsum("ki,nij,kj->kn", T, H, T), np.zeros((3, 3)), 0.0)
    assert np.allclose((c @ s) ** 2 @ a, 0.5 * np.einsum("i,nij,j->n", s, H, s), rtol=0.05)


def test_surprises_that_noise_or_errors_of_the_jacobian_explain_are_no_curvature():
    rng = np.random.default_rng(5)
    T = 0.1 * rng.standard_normal((6, 3))
    surprises = T @ rng.standard_normal((3, 7))
    sizes = []
    for doubt, noise in ((0.0, 0.0), (1e3, 0.0), (0.0, 1e3)):
        a, c = curvature(T, surprises, doubt * np.eye(3), noise)
        sizes.append(float(np.linalg.norm((c @ T[0]) ** 2 @ a)))
    assert max(sizes[1:]) < 0.01 * sizes[0]


def test_steps_respect_the_radius_and_the_bounds():
    rng = np.random.default_rng(1)
    J, r, low, high = rng.normal(size=(9, 4)), rng.normal(size=9), np.full(4, -0.1), np.full(4, 0.2)
    s = bounded_least_squares_step(J, r, 0.15, low, high)
    assert np.linalg.norm(s) <= 0.15 * (1 + 1e-2)
    assert ((s >= low) & (s <= high)).all()
    H = np.diag([1.0, -1.0, 2.0, 0.5])
    assert np.linalg.norm(quadratic_step(H, r[:4], 0.5)) == pytest.approx(0.5, rel=2e-3)


def test_columns_of_noise_are_recognised_and_columns_of_a_function_are_not():
    rng = np.random.default_rng(0)
    base = rng.normal(size=200)
    assert like_noise(rng.normal(size=(200, 6)) - base[:, None])
    assert not like_noise(rng.normal(size=(200, 6)))
    assert not like_noise(np.where(np.arange(200)[:, None] < 3, 0.0, rng.normal(size=(200, 6)) - base[:, None]))


# Runs.


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_the_truth_in_little_more_than_d_runs_and_says_so(seed):
    fun = Curves(seed)
    result = solve(fun)
    assert np.array_equal(result.x != 0, fun.truth != 0)
    assert np.allclose(result.x, fun.truth, atol=1e-6)
    assert result.nfev == len(fun.calls) <= 1.05 * fun.d + 20
    assert result.success


def test_all_columns_are_asked_for_in_one_round():
    fun = Curves(0)
    optimizer = zt.Optimizer(fun.d, fun.k, n=fun.y.size, outputs="residuals", method="gauss-newton", budget=200, seed=0)
    widest = 0
    while not optimizer.done:
        batch = optimizer.ask()
        widest = max(widest, len(batch.points))
        optimizer.tell(batch, np.array([fun(x) for x in batch.points]))
    assert widest == fun.d
    assert np.array_equal(optimizer.result().x != 0, fun.truth != 0)


def test_groups_of_columns_find_few_non_zeros_among_many_in_fewer_runs_than_columns():
    fun = Curves(1, d=400, k=4, n=300, link=lambda z: 1 / (1 + np.exp(-z)))
    result = solve(fun, budget=4000)
    assert np.array_equal(result.x != 0, fun.truth != 0)
    assert result.nfev < 0.7 * fun.d


def test_groups_of_columns_cost_no_more_than_five_per_cent_if_they_are_of_no_use():
    fun = Curves(1, d=300, k=5, n=40, link=lambda z: np.exp(np.clip(z, -50, 50)))
    result = solve(fun, budget=6000)
    columns = {name: used for used, name in result.stages}["support"]
    assert fun.d < columns <= 1.05 * fun.d + 3
    assert np.array_equal(result.x != 0, fun.truth != 0)


def test_a_budget_below_the_number_of_columns_is_kept_and_gains():
    fun = Curves(2, d=300, k=3, n=200, link=lambda z: 1 / (1 + np.exp(-z)))
    result = solve(fun, budget=120)
    assert result.nfev == len(fun.calls) <= 120
    assert result.fun < 0.5 * np.mean(fun(np.zeros(fun.d)) ** 2)


@pytest.mark.parametrize("budget", range(2, 60, 3))
def test_a_budget_far_below_the_number_of_columns_gains_or_says_why_not(budget):
    fun = Curves(2, d=50, k=3, n=80, link=lambda z: 1 / (1 + np.exp(-z)))
    result = solve(fun, budget=budget)
    assert result.nfev == len(fun.calls) <= budget
    said = [sentence for _, sentence in result.remarks]
    if budget >= 41:  # the support stands out, and nothing is left to say
        assert np.array_equal(result.x != 0, fun.truth != 0)
        assert result.fun < 1e-12 * np.mean(fun(np.zeros(fun.d)) ** 2)
    elif result.nfev < 3:
        assert "the budget is spent" in result.message
    elif not result.success:
        assert said == ["The budget is too small to measure a single column."]
    else:
        assert "columns; " in said[0]
    if budget >= 20:
        assert result.fun < 0.9 * np.mean(fun(np.zeros(fun.d)) ** 2)


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20])
def test_the_unit_of_the_outputs_changes_no_point(scale):
    one, other = Curves(0), Curves(0)
    solve(one)
    scaled = lambda x: scale * other(x)
    scaled.d, scaled.k = one.d, one.k
    solve(scaled)
    assert np.array_equal(np.array(one.calls), np.array(other.calls))


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20])
def test_the_unit_of_x_changes_no_point_where_the_start_or_bounds_show_it(scale):
    for limits in ({"x0": "start"}, {"bounds": (-2.0, 2.0)}):
        one, other = Curves(0), Curves(0)
        start = np.where(one.truth != 0, 0.9 * one.truth, 0.0)
        plain = {"x0": start} if "x0" in limits else limits
        turned = {"x0": start * scale} if "x0" in limits else {"bounds": (-2.0 * scale, 2.0 * scale)}
        solve(one, **plain)
        scaled = lambda x, other=other: other(x / scale)
        scaled.d, scaled.k = one.d, one.k
        solve(scaled, **turned)
        assert len(one.calls) == len(other.calls)
        assert np.allclose(np.array(one.calls), np.array(other.calls), rtol=1e-9, atol=1e-12)


def test_without_a_start_the_unit_of_x_costs_a_few_runs_and_changes_no_result():
    one, other = Curves(0), Curves(0)
    expected = solve(one)
    scaled = lambda x: other(x * 1e9)
    scaled.d, scaled.k = one.d, one.k
    found = solve(scaled)
    assert np.allclose(found.x * 1e9, expected.x, rtol=1e-5)
    assert len(other.calls) <= len(one.calls) + 12


@pytest.mark.parametrize(
    "limits",
    [
        {"bounds": (0.0, 1.0)},
        {"include": [0]},
        {"exclude": [0, 1, 2]},
        {"groups": np.arange(40) // 2},
        {"bounds": (-0.5, 2.0), "include": [3], "exclude": [5]},
    ],
    ids=str,
)
def test_every_constraint_is_kept_and_F_falls(limits):
    fun = Curves(4, positive=True)
    result = solve(fun, **limits)
    units = np.arange(fun.d) if "groups" not in limits else limits["groups"]
    assert len(set(units[np.flatnonzero(result.x)]) | set(units[limits.get("include", [])])) <= fun.k
    low, high = limits.get("bounds", (-np.inf, np.inf))
    assert all(((x >= low) & (x <= high)).all() for x in fun.calls)
    assert not any(x[limits.get("exclude", [])].any() for x in fun.calls)
    assert result.fun < 0.6 * np.mean(fun(np.zeros(fun.d)) ** 2)


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_seen_and_the_support_is_right_all_the_same(seed):
    fun = Curves(seed, noise=1e-3)
    result = solve(fun)
    assert np.array_equal(result.x != 0, fun.truth != 0)
    assert any("noisy" in text for _, text in result.remarks)
    assert result.nfev <= 8 * fun.d


@pytest.mark.parametrize("loss", [zt.losses.Huber(0.05), zt.losses.Cauchy(0.05)], ids=lambda loss: type(loss).__name__)
def test_outliers_are_forgiven_by_a_robust_loss_within_three_times_d_runs(loss):
    fun = Curves(0, d=60, k=3, n=80)
    fun.y[:8] += np.where(np.arange(8) % 2, 2.0, -1.5)
    result = solve(fun, loss=loss)
    assert np.array_equal(result.x != 0, fun.truth != 0)
    assert np.allclose(result.x, fun.truth, atol=0.05)
    assert result.nfev <= 3 * fun.d + 20


def test_missing_outputs_are_left_out():
    fun = Curves(0)
    broken = lambda x: np.where(np.arange(fun.y.size) % 9 == len(fun.calls) % 9, np.nan, fun(x))
    broken.d, broken.k = fun.d, fun.k
    result = solve(broken, on_nan="mask")
    assert np.array_equal(result.x != 0, fun.truth != 0)


@pytest.mark.filterwarnings("ignore:k = d")
def test_steps_that_crawl_away_for_ever_leave_runs_to_other_starts():
    def drifting(x):  # F falls without end towards large x, and there is an exact solution on the other side
        return np.array([1 + 0.2 / (1 + x[0] ** 2) - 1.3 * np.exp(-4 * (x[0] + 1.5) ** 2)])

    found = zt.minimize(drifting, [1.0], 1, outputs="residuals", method="gauss-newton", budget=60, seed=0)
    assert found.fun < 1e-12


@pytest.mark.filterwarnings("ignore:k = d")
def test_a_column_that_has_grown_shortens_the_steps_along_its_coordinate():
    t = 45 + 5 * np.arange(1, 17)  # the data of Meyer, whose exponential takes over on the way
    y = [34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872]

    def meyer(x):
        with np.errstate(all="ignore"):
            return np.clip(np.nan_to_num(x[0] * np.exp(np.minimum(x[1] / (t + x[2]), 300))), -1e100, 1e100) - y

    found = zt.minimize(meyer, [0.0562, 1733.0, 332.0], 3, outputs="residuals", method="gauss-newton", budget=400)
    assert found.fun < 100  # 5.5 at the minimum, 1e8 at the start


@pytest.mark.filterwarnings("ignore:k = d")
def test_all_coordinates_at_once_reach_a_minimum_that_is_not_zero():
    t, y = np.linspace(0, 1, 12), np.array([1.2, 0.9, 1.0, 0.7, 0.55, 0.6, 0.4, 0.42, 0.3, 0.2, 0.27, 0.15])
    fun = lambda x: x[0] * np.exp(-x[1] * t) - y
    result = zt.minimize(fun, np.array([1.0, 1.0]), 2, outputs="residuals", method="gauss-newton", budget=60, seed=0)
    J = np.stack([np.exp(-result.x[1] * t), -result.x[0] * t * np.exp(-result.x[1] * t)], axis=1)
    r = fun(result.x)
    assert np.abs(J.T @ r).max() < 1e-5 * np.linalg.norm(J) * np.linalg.norm(r)


class Rounded(Curves):
    """The same without BLAS, whose last bits depend on where x lies in memory; it may die at a given call."""

    fingerprint = "curves"

    def __init__(self, dies_at=None, **options):
        super().__init__(**options)
        self.y, self.dies_at = self.link((self.A * self.truth).sum(axis=1)), dies_at

    def __call__(self, x):
        self.calls.append(x.tobytes())
        if len(self.calls) == self.dies_at:
            die()
        return self.link((self.A * x).sum(axis=1)) - self.y


WAYS = ["gauss-newton", GaussNewton(width=8), "auto"]
every_way = pytest.mark.parametrize("method", WAYS, ids=str)
every_size = pytest.mark.parametrize("size", [{}, {"d": 80, "k": 4}], ids=["columns", "groups"])


@every_size
@every_way
def test_the_bits_are_the_same_for_any_number_of_workers_and_every_run_is_counted(method, size):
    alone, together = Rounded(**size), Rounded(**size)
    expected, found = solve(alone, method=method, parallel=8), solve(together, method=method, workers=8)
    assert np.array_equal(found.x, expected.x)
    assert np.array_equal(found.residuals, expected.residuals)
    assert found.stages == expected.stages
    assert found.nfev == expected.nfev == len(alone.calls) == len(together.calls)
    assert sorted(together.calls) == sorted(alone.calls)


@every_size
@every_way
def test_a_run_that_is_killed_goes_on_and_asks_for_nothing_twice(tmp_path, method, size):
    whole = Rounded(**size)
    expected, asked = solve(whole, method=method), []
    for _ in range(2):
        first = Rounded(dies_at=24, **size)
        dead, calls = killed(
            lambda run=first: solve(run, method=method, run=tmp_path / "run"), lambda run=first: run.calls
        )
        assert dead
        asked += calls[:-1]
    second = Rounded(**size)
    found = solve(second, method=method, run=tmp_path / "run")
    assert np.array_equal(found.x, expected.x)
    assert found.nfev == expected.nfev
    assert asked + second.calls == whole.calls


def test_the_first_run_two_of_a_look_and_one_per_column_come_before_the_support():
    result = solve(Curves(0))
    assert {name: used for used, name in result.stages}["support"] == 1 + 2 + 40


@pytest.mark.parametrize("budget", [2, 3, 43, 44, 45, 47, 50, 53])
@pytest.mark.parametrize("width", [1, 4, 8])
def test_no_budget_is_exceeded_however_wide_the_rounds_are(width, budget):
    fun = Curves(0)
    result = solve(fun, method=GaussNewton(width=width), budget=budget)
    assert result.nfev == len(fun.calls) <= budget


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("d", [40, 80])
def test_more_width_takes_fewer_rounds_and_finds_the_same(d, seed):
    rounds = []
    for width in (1, 16):
        fun = Curves(seed, d=d)
        asked = []
        many = lambda X, fun=fun, asked=asked: asked.append(len(X)) or np.array([fun(x) for x in X])
        many.d, many.k = fun.d, fun.k
        result = solve(many, method=GaussNewton(width=width), vectorized=True)
        assert np.allclose(result.x, fun.truth, atol=1e-6)
        rounds.append(len(asked))
    assert rounds[1] < 0.8 * rounds[0]


def test_every_step_fills_its_round_with_columns_that_may_be_wanted_next():
    fun, sizes = Curves(0, d=100, k=5, n=100, link=np.exp), []
    opt = zt.Optimizer(100, 5, outputs="residuals", method=GaussNewton(width=16), budget=1000, seed=0)
    while not opt.done:
        batch = opt.ask()
        sizes.append(len(batch.points))
        opt.tell(batch, np.array([fun(x) for x in batch.points]))
    assert sizes[:2] == [1, 16]  # the start, a look with the first groups of columns
    assert sum(size < 16 for size in sizes[1:]) <= 1  # only the last columns may leave workers idle
    assert max(sizes) == 16
    assert np.array_equal(opt.result().x != 0, fun.truth != 0)


def test_a_width_that_is_no_number_of_calls_is_refused_with_a_sentence():
    with pytest.raises(ValueError, match="width"):
        GaussNewton(width=0)


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path):
    whole, first, second = Curves(0), Curves(0, interrupt=45), Curves(0, interrupt=45)
    expected = solve(whole)
    with contextlib.suppress(KeyboardInterrupt):
        solve(first, run=tmp_path / "run")
    result = solve(second, run=tmp_path / "run")
    assert len(second.calls) == len(whole.calls) - 45
    assert np.array_equal(result.x, expected.x)


@pytest.mark.filterwarnings("ignore:k = d")
@pytest.mark.parametrize("start", [1.0, 1e6, 1e12])
def test_an_enormous_start_does_not_make_the_residuals_that_are_left_nothing(start):
    rng = np.random.default_rng(4)
    A, b = rng.normal(size=(12, 3)), rng.normal(size=12)
    least = float(np.mean((A @ np.linalg.lstsq(A, b, rcond=None)[0] - b) ** 2))
    result = zt.minimize(
        lambda x: A @ x - b, np.full(3, start), 3, outputs="residuals", method="gauss-newton", budget=200
    )
    assert result.fun == pytest.approx(least, rel=1e-6)


def test_residuals_that_are_small_beside_their_parts_are_not_enough_unless_it_is_rounding():
    J, x = np.array([[1.0], [2.0]]), np.array([1e6])
    assert within_rounding(None, np.zeros(2), J, x) < 2 * 1e-7
    assert within_rounding(None, np.zeros(2), J, x) == pytest.approx(5e12 * NOTHING.rounding**2)
    assert within_rounding(None, np.zeros(2), J, 0 * x) == 0


def test_a_start_that_matches_all_outputs_is_the_result_after_one_run():
    fun = Curves(0)
    result = solve(fun, x0=fun.truth.copy())
    assert result.nfev == 1
    assert result.success


def test_outputs_that_never_change_end_the_search_without_success():
    fun = lambda x: np.ones(30)
    fun.d, fun.k = 50, 3
    result = solve(fun)
    assert not result.success
    assert result.nfev <= 80
    assert result.remarks[-1][1] == "The outputs did not change along any coordinate: check that the function uses x."


def test_a_loss_that_falls_below_zero_is_not_taken_for_a_proof():
    fun = Curves(0, d=20, k=2, n=30)
    result = solve(fun, loss=lambda r: r**2 - 5.0, budget=300)
    assert np.array_equal(result.x != 0, fun.truth != 0)


def test_a_function_of_single_values_is_refused_with_a_sentence():
    with pytest.raises(ValueError, match="outputs='residuals'"):
        zt.minimize(lambda x: float(x @ x), 4, 2, method="gauss-newton", budget=100)


def test_columns_that_are_equal_up_to_their_errors_get_no_enormous_values():
    """Their difference consists of errors only, and fits whatever is left."""
    rng = np.random.default_rng(0)
    column, y = rng.standard_normal(40), rng.standard_normal(40)
    A = np.stack([column, column + 1e-7 * rng.standard_normal(40)], axis=1)
    free = np.full(2, np.inf)
    assert np.abs(np.linalg.lstsq(A, y, rcond=None)[0]).max() > 1e5
    z = damped_fit(A, y, -free, free)
    assert np.abs(z).max() < 100
    assert z.sum() == pytest.approx(column @ y / (column @ column), rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_a_net_whose_columns_are_multiples_of_each_other_at_the_start_is_not_left_there(seed):
    """At x = 0, all hidden units see the same inputs: eight directions for forty columns."""
    rng = np.random.default_rng(seed)
    X, bias, out = rng.standard_normal((50, 8)), rng.uniform(-1, 1, 5), rng.choice([-1.0, 1.0], 5)
    teacher = np.zeros(40)
    teacher[rng.choice(40, 4, replace=False)] = rng.choice([-1, 1], 4) * rng.uniform(0.8, 1.6, 4)

    def answer(x):
        return np.tanh(X @ x.reshape(5, 8).T + bias) @ out

    y = answer(teacher)
    found = zt.minimize(
        lambda x: answer(x) - y,
        40,
        8,
        outputs="residuals",
        method="gauss-newton",
        budget=600,
        seed=seed,
        progress=False,
    )
    assert found.fun < 0.2 * np.mean((answer(np.zeros(40)) - y) ** 2)
