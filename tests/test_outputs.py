"""One call returns everything: the form, the exact count of calls, and every method and constraint with it."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from zoo import instance

import zerothresh as zt

D, M, K = 12, 30, 3
A = np.random.default_rng(1).normal(size=(M, D))
BEST = np.zeros(D)
BEST[[2, 5, 9]] = 1.0, -2.0, 1.5
DATA = A @ BEST


def residuals(x):
    """A linear model minus its data; without BLAS, whose last bits depend on where x lies in memory."""
    return (A * x).sum(axis=1) - DATA


def many(X):
    """The same for many points; row by row, so that it rounds as for one point."""
    return np.stack([residuals(x) for x in X])


class Counted:
    """A function that counts its calls and keeps their points."""

    def __init__(self, fun=residuals):
        self.fun, self.points = fun, []

    def __call__(self, x):
        self.points.append(x.copy())
        return self.fun(x)


def F(x, loss=np.square):
    return float(np.mean(loss(residuals(x))))


def solve(fun=residuals, **options):
    return zt.minimize(
        fun, options.pop("x0", D), options.pop("k", K), **{"outputs": "residuals", "budget": 200, "seed": 3, **options}
    )


def same(one, other):
    return (
        np.array_equal(one.x, other.x)
        and (one.fun == other.fun or (np.isnan(one.fun) and np.isnan(other.fun)))
        and (one.nfev, one.nht, one.nit) == (other.nfev, other.nht, other.nit)
        and one.trace == other.trace
        and one.status is other.status
    )


# Counting.


def test_a_step_of_fgzoht_costs_q_plus_1_calls_whatever_m_is():
    for rows in (1, 7, M):
        fun = Counted(lambda x, rows=rows: residuals(x)[:rows])
        found = solve(fun, method=zt.FGZOHT(eta=0.02), estimator=zt.Estimator(q=5), budget=100)
        assert (np.diff(found.trace.nfev) == 6).all()
        assert found.trace.nfev[0] == 6  # the call at the start is the first one of the step
        assert found.nfev == len(fun.points) == 6 * found.nit + 1  # and F at the result


def test_a_step_with_directions_of_its_own_per_component_costs_m_q_plus_1_calls():
    fun = Counted()
    found = solve(fun, method=zt.FGZOHT(eta=0.02), estimator=zt.Estimator.paper(q=2), budget=200)
    assert (np.diff(found.trace.nfev) == M * 2 + 1).all()
    assert found.nfev == len(fun.points) == (M * 2 + 1) * found.nit + 1


@pytest.mark.parametrize(("common", "cost"), [(True, 8), (False, M * 8)])
def test_a_step_by_central_differences_costs_2_q_calls_and_the_first_look_is_extra(common, cost):
    fun = Counted()
    estimator = zt.Estimator(q=4, difference="central", common=common)
    found = solve(fun, method=zt.FGZOHT(eta=0.02), estimator=estimator, budget=3 * cost + 2)
    assert found.trace.nfev.tolist() == [1 + cost, 1 + 2 * cost, 1 + 3 * cost]
    assert found.nfev == len(fun.points) == 3 * cost + 2


@pytest.mark.parametrize(
    ("method", "first", "step"),
    [
        (zt.SZOHT(eta=0.01), 6, 6),
        (zt.SZOHT(eta=0.01, batch=4), 6, 6),
        (zt.SAGASZHT(eta=0.005), 12, 6),
        (zt.SARAHSZHT(eta=0.01, m=3), 6, None),
        (zt.VRSZHT(eta=0.01, m=3), 18, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_paper_s_methods_pay_for_points_and_not_for_components(method, first, step):
    fun = Counted()
    found = solve(fun, method=method, estimator=zt.Estimator(q=5), budget=150)
    assert found.trace.nfev[0] == first
    if step is not None:
        assert (np.diff(found.trace.nfev) == step).all()
    assert found.nfev == len(fun.points) <= 150


def test_the_first_call_is_at_the_start_and_is_not_made_again():
    x0 = np.zeros(D)
    x0[[1, 4]] = 0.5, -0.25
    fun = Counted()
    solve(fun, x0=x0, method=zt.FGZOHT(eta=0.02), budget=60)
    assert np.array_equal(fun.points[0], x0)
    assert sum(np.array_equal(point, x0) for point in fun.points) == 1


def test_a_budget_for_the_first_step_is_enough_and_one_less_is_refused_before_any_call():
    fun = Counted()
    estimator = zt.Estimator(q=5)
    assert solve(fun, method=zt.FGZOHT(eta=0.02), estimator=estimator, budget=7).nit == 1
    fun.points.clear()
    with pytest.raises(ValueError, match="take a budget of at least 7"):
        solve(fun, method=zt.FGZOHT(eta=0.02), estimator=estimator, budget=6)
    assert not fun.points


def test_a_monitor_needs_no_call_for_F_at_the_result():
    fun = Counted()
    found = solve(fun, method=zt.FGZOHT(eta=0.02), estimator=zt.Estimator(q=5), budget=60, monitor=F)
    assert found.nfev == len(fun.points) == 60
    assert found.fun == pytest.approx(F(found.x), rel=1e-12)


@pytest.mark.parametrize("name", sorted(zt.methods.available()))
def test_every_method_works_with_outputs_and_counts_calls(name):
    fun = Counted()
    found = solve(fun, method=instance(name, eta=0.005), budget=120)
    assert found.success or found.status.success, found.message
    assert found.nfev == len(fun.points) <= 120
    assert found.fun <= F(np.zeros(D)) * (1 + 1e-12)
    assert found.fun == pytest.approx(F(found.x), rel=1e-9, abs=1e-12)
    assert found.residuals is None or np.allclose(found.residuals, residuals(found.x), rtol=0, atol=1e-12)


def test_F_is_known_at_each_iterate_of_a_method_that_sees_single_components():
    found = solve(method=zt.SZOHT(eta=0.005), budget=200)
    assert found.fun < F(np.zeros(D))


# The same arithmetic as with one value per call.

STEPWISE = [name for name in sorted(zt.methods.available()) if not hasattr(zt.methods.available()[name], "search")]
ESTIMATORS = {
    "default": zt.Estimator(q=4),
    "the paper's": zt.Estimator.paper(q=2),
    "central": zt.Estimator(q=3, difference="central"),
    "central, own directions": zt.Estimator(q=2, difference="central", common=False),
    "not shared": zt.Estimator(q=3, shared=False),
}


def after_steps(fun, method, estimator, **form):
    """The iterate after five steps, with a budget that does not matter."""

    def stop(progress):
        if progress.nit == 5:
            raise StopIteration

    options = {"budget": 10**6, "method": method, "estimator": estimator, "seed": 3, "callback": stop}
    return zt.minimize(fun, D, K, **form, **options).x_last


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
@pytest.mark.parametrize("name", STEPWISE)
def test_the_iterates_are_those_of_a_function_of_single_components(name, estimator):
    """Sharing calls changes what is paid, and no bit of what a method sees."""
    method = instance(name, eta=0.005)
    shared = after_steps(residuals, method, estimator, outputs="residuals")
    single = after_steps(lambda x, i: (residuals(x) ** 2)[i], method, estimator, n=M)
    assert np.array_equal(shared, single)


@pytest.mark.parametrize("name", ["htp", "niht", "outside"])  # auto begins with the outputs themselves
def test_a_method_that_sees_F_makes_the_run_that_it_makes_on_F(name):
    def mean_loss(x):
        return math.fsum(residuals(x) ** 2) / M

    method = instance(name)
    on_F = zt.minimize(mean_loss, D, K, budget=200, method=method, seed=3)
    assert same(solve(method=method), on_F)


# What comes back.


@pytest.mark.parametrize("method", ["auto", "htp", zt.FGZOHT(eta=0.02), zt.SZOHT(eta=0.005)], ids=str)
def test_the_result_has_the_outputs_at_its_point(method):
    found = solve(method=method)
    assert np.array_equal(found.residuals, residuals(found.x))
    assert found.fun == pytest.approx(np.mean(found.residuals**2), rel=1e-12)


def test_a_function_with_one_value_per_call_has_no_residuals():
    assert zt.minimize(F, D, K, budget=60, method=zt.FGZOHT(eta=0.02)).residuals is None


# The forms.


def test_vectorised_and_single_calls_give_the_same_bits():
    assert same(solve(), solve(many, vectorized=True))
    assert same(solve(method=zt.FGZOHT(eta=0.02)), solve(many, vectorized=True, method=zt.FGZOHT(eta=0.02), chunk=3))


def test_components_are_the_f_i_themselves():
    squares = solve(lambda x: residuals(x) ** 2, outputs="components", method=zt.FGZOHT(eta=0.02))
    assert same(squares, solve(method=zt.FGZOHT(eta=0.02)))


def test_an_object_with_d_and_outputs_needs_no_start():
    class Model:
        d = D

        def outputs(self, points):
            return many(points)

    assert same(solve(Model(), x0=None), solve())


def test_lists_and_pandas_series_are_vectors():
    pandas = pytest.importorskip("pandas")
    plain = solve(budget=60)
    assert same(solve(lambda x: residuals(x).tolist(), budget=60), plain)
    assert same(solve(lambda x: pandas.Series(residuals(x), index=[f"s{i}" for i in range(M)]), budget=60), plain)


def test_whole_numbers_are_outputs():
    found = solve(lambda x: [3, 4], budget=20, method=zt.FGZOHT(eta=0.1), estimator=zt.Estimator(q=3))
    assert found.fun == 12.5


@pytest.mark.parametrize(
    ("loss", "value"),
    [
        (None, np.square),
        ("squared", np.square),
        ("huber", zt.losses.Huber().value),
        (zt.losses.Huber(delta=0.3), zt.losses.Huber(0.3).value),
        ("cauchy", zt.losses.Cauchy().value),
        ("quantile", lambda r: np.abs(r) / 2),
        (lambda r: np.abs(r) ** 1.5, lambda r: np.abs(r) ** 1.5),
    ],
    ids=["default", "squared", "huber", "Huber", "cauchy", "quantile", "function"],
)
def test_F_is_the_mean_loss(loss, value):
    found = solve(loss=loss, budget=300)
    assert found.fun == pytest.approx(F(found.x, value), rel=1e-9, abs=1e-12)
    assert found.fun < F(np.zeros(D), value)
    stepped = solve(loss=loss, budget=100, method=zt.FGZOHT(eta=0.02))
    assert stepped.fun == pytest.approx(F(stepped.x, value), rel=1e-9)


def test_an_object_with_value_is_a_loss():
    class Half:
        def value(self, r):
            return 0.5 * r * r

    assert solve(loss=Half(), budget=100, method=zt.FGZOHT(eta=0.02)).fun == pytest.approx(
        solve(loss=lambda r: 0.5 * r * r, budget=100, method=zt.FGZOHT(eta=0.02)).fun
    )


def test_a_loss_may_weigh_single_outputs():
    weights = np.linspace(0.5, 1.5, M)
    for method in ("auto", zt.FGZOHT(eta=0.02)):
        found = solve(loss=lambda r: weights * r * r, method=method)
        assert found.fun == pytest.approx(np.mean(weights * residuals(found.x) ** 2), rel=1e-9, abs=1e-15)


def test_a_loss_of_single_outputs_meets_missing_outputs():
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * A @ BEST))
    missing = np.arange(M) % 7 == 0
    for loss in (zt.losses.Poisson(counts), lambda r: np.linspace(0.5, 1.5, M) * r * r):
        found = solve(
            lambda x: np.where(missing, np.nan, 0.3 * A @ x - 1.0), loss=loss, on_nan="mask", budget=100, seed=1
        )
        assert found.status is not zt.Status.METHOD_FAILED, found.message
        assert found.success


def test_poisson_counts_are_fitted_by_log_rates():
    rates = np.exp(0.3 * A @ BEST)
    counts = np.random.default_rng(0).poisson(rates)
    found = solve(lambda x: 0.3 * A @ x, loss=zt.losses.Poisson(counts), budget=400)
    assert set(found.support) == {2, 5, 9}
    with pytest.raises(ValueError, match=r"zt\.losses\.Poisson\(counts\)"):
        solve(loss="poisson")
    with pytest.raises(ValueError, match="n = 7 outputs were announced, but the loss is one of 30"):
        solve(loss=zt.losses.Poisson(counts), n=7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outputs": "vector"}, "outputs must be one of 'residuals', 'components'"),
        ({"outputs": None, "loss": "huber"}, "loss goes with outputs='residuals'"),
        ({"outputs": "components", "loss": "huber"}, "the outputs are the f_i themselves"),
        ({"outputs": None, "on_nan": "mask"}, "on_nan='mask' goes with outputs"),
        ({"loss": "hubert"}, "did you mean 'huber'"),
        ({"loss": 3}, "loss must be one of"),
        ({"loss": zt.losses.Huber}, "must be an instance"),
        ({"loss": lambda: 0}, "loss has the signature"),
        ({"n": 0}, "n must be at least 1"),
        ({"vectorized": "yes"}, "vectorized must be True or False"),
        ({"max_cost": 3.0}, "max_cost needs cost"),
    ],
)
def test_bad_arguments_are_refused_before_any_call(arguments, message):
    fun = Counted()
    with pytest.raises(ValueError, match=message):
        solve(fun, **arguments)
    assert not fun.points


def test_a_function_of_two_arguments_is_refused_before_any_call():
    with pytest.raises(ValueError, match=r"with outputs=\.\.\. it is called as fun\(x\)"):
        solve(lambda x, i: residuals(x))


# Workers, limits and constraints.


@pytest.mark.parametrize("method", ["auto", zt.FGZOHT(eta=0.02), zt.SAGASZHT(eta=0.005)], ids=str)
def test_the_bits_are_the_same_for_any_number_of_workers(method):
    alone = solve(method=method, parallel=4)
    assert same(solve(method=method, workers=4), alone)
    with ThreadPoolExecutor(3) as pool:
        assert same(solve(method=method, workers=pool, parallel=4), alone)


@pytest.mark.slow
def test_processes_give_the_same_bits():
    with ProcessPoolExecutor(2) as pool:
        assert same(solve(workers=pool), solve(parallel=2))


@pytest.mark.parametrize("method", ["auto", zt.FGZOHT(eta=0.02)], ids=str)
@pytest.mark.parametrize(
    ("constraint", "holds"),
    [
        ({"bounds": (-1.0, 1.2)}, lambda x: (x >= -1).all() and (x <= 1.2).all()),
        ({"include": [0]}, lambda x: np.count_nonzero(np.delete(x, 0)) <= K - 1),
        ({"exclude": [2]}, lambda x: x[2] == 0),
        ({"groups": np.repeat(range(6), 2), "k": 2}, lambda x: len(set(np.flatnonzero(x) // 2)) <= 2),
    ],
    ids=["bounds", "include", "exclude", "groups"],
)
def test_every_constraint_is_kept(method, constraint, holds):
    fun = Counted()
    found = solve(fun, method=method, **constraint)
    assert holds(found.x)
    assert found.fun < F(np.zeros(D))
    if "bounds" in constraint:
        assert all(holds(point) for point in fun.points)


def test_max_cost_limits_what_calls_cost_and_the_first_look_is_paid():
    fun = Counted()
    estimator = zt.Estimator(q=4)
    found = solve(fun, method=zt.FGZOHT(eta=0.02), estimator=estimator, cost=lambda i: 2.5, max_cost=2.5 * 13)
    assert found.status is zt.Status.COST
    assert found.nfev == len(fun.points) == 11
    assert found.spent == 2.5 * 11


def test_retries_are_counted_and_change_nothing_else():
    alone, calls = solve(budget=100, method=zt.FGZOHT(eta=0.02)), []

    def shaky(x):
        calls.append(1)
        if len(calls) in (1, 9, 10):
            raise OSError("down")
        return residuals(x)

    found = solve(shaky, budget=103, method=zt.FGZOHT(eta=0.02), retries=2, backoff=0.0)
    assert np.array_equal(found.x, alone.x)
    assert found.nfev == len(calls) == alone.nfev + 3


def test_a_callback_sees_each_step_and_stops():
    seen = []

    def stop(progress):
        seen.append((progress.nit, progress.nfev))
        if progress.nit == 3:
            raise StopIteration

    found = solve(method=zt.FGZOHT(eta=0.02), estimator=zt.Estimator(q=5), callback=stop)
    assert found.status is zt.Status.CALLBACK
    assert seen == [(1, 6), (2, 12), (3, 18)]
    assert found.nfev == 19


def test_iterate_yields_the_steps_of_minimize():
    options = {"outputs": "residuals", "budget": 80, "method": zt.FGZOHT(eta=0.02), "seed": 3}
    steps = list(zt.iterate(residuals, D, K, **options))
    found = zt.minimize(residuals, D, K, **options)
    assert [step.nfev for step in steps] == found.trace.nfev.tolist()


# Ask and tell.


@pytest.mark.parametrize("method", ["auto", zt.FGZOHT(eta=0.02), zt.VRSZHT(eta=0.01, m=3)], ids=str)
@pytest.mark.parametrize("n", [None, M])
def test_ask_and_tell_gives_the_bits_of_minimize(method, n):
    opt = zt.Optimizer(D, K, outputs="residuals", n=n, budget=200, method=method, seed=3)
    while not opt.done:
        batch = opt.ask()
        assert batch.points.shape == (len(batch), D)
        assert not batch.components.any()
        half = len(batch) // 2
        if half:
            opt.tell(batch[half:], many(batch.points[half:]))
            opt.tell(batch[:half], many(batch.points[:half]))
        else:
            opt.tell(batch, many(batch.points))
    assert same(opt.result(), solve(method=method))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((1, M + 1)), r"31 outputs per call, where 30 were expected"),
        (np.zeros(M), r"tell received an array of shape \(30,\); it takes an array of shape \(1, 30\)"),
        (np.zeros((2, M)), r"an array of shape \(2, 30\)"),
        (np.full((1, M), np.nan), "nan as output 0"),
        (None, "None"),
        ([["a"] * M], "real numbers"),
    ],
)
def test_bad_outputs_in_tell_change_nothing(values, message):
    opt = zt.Optimizer(D, K, outputs="residuals", n=M, budget=50, seed=3)
    batch = opt.ask()
    with pytest.raises(ValueError, match=message):
        opt.tell(batch, values)
    opt.tell(batch, many(batch.points))
    assert opt.nfev == 1


def test_stop_before_the_first_call_ends_without_a_value():
    opt = zt.Optimizer(D, K, outputs="residuals", budget=50, seed=3)
    opt.stop()
    assert opt.done
    assert np.isnan(opt.result().fun)


# Programs that ask for outputs.


@dataclass(frozen=True)
class Halving(zt.Program):
    """Asks for outputs at points on the way to a least-squares solution, and keeps the best."""

    whole = True

    def search(self, context):
        assert context.has_outputs
        theta = context.theta0
        R = yield from context.outputs([theta])
        step = np.linalg.lstsq(A, -R[0], rcond=None)[0]
        while True:
            points = [context.H(theta + t * step) for t in (1.0, 0.5)]
            R = yield from context.outputs(points)
            assert R.shape == (2, M)
            values = context.mean_losses(R)
            assert np.allclose(values * context.unit, context.loss.value(R).mean(axis=1))
            best = int(values.argmin())
            context.move(points[best], float(values[best]))
            theta, step = points[best], 0.5 * step


def test_a_program_gets_the_outputs_themselves():
    fun = Counted()
    found = solve(fun, method=Halving(), budget=10)
    assert found.nfev == len(fun.points) == 9
    assert np.allclose(found.x, BEST)
    assert found.fun == pytest.approx(F(found.x), abs=1e-20)


def test_outputs_cannot_be_asked_for_where_a_call_returns_one_value():
    @dataclass(frozen=True)
    class Asking(zt.Program):
        def search(self, context):
            assert not context.has_outputs
            yield from context.outputs([context.theta0])

    with pytest.raises(RuntimeError, match="no outputs to ask for"):
        zt.minimize(lambda x: 1.0, D, K, budget=10, method=Asking())


def test_F_at_a_result_that_is_the_start_is_not_paid_for_again():
    @dataclass(frozen=True)
    class Idle(zt.Program):
        def search(self, context):
            yield from context.slopes(context.theta0, np.arange(2), 1e-3, context.everything, np.zeros(context.n))

    fun = Counted()
    found = solve(fun, method=Idle(), budget=10)
    assert found.nfev == len(fun.points) == 3  # the start and two steps
    assert found.fun == pytest.approx(F(np.zeros(D)))
