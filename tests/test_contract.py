"""What every registered method must do, on every problem of the zoo."""

from __future__ import annotations

import numpy as np
import pytest
from zoo import BY_OTHERS, OF_VALUES, instance, zoo

import zerothresh as zt
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import Constraint, HardThreshold
from zerothresh.rounds.advance import advance, start
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.method import is_sparse
from zerothresh.rounds.search import Search, begin
from zerothresh.rounds.task import Task
from zerothresh.sampling.philox import key_of

K = 3
ZOO = zoo()
ESTIMATORS = {
    "default": zt.Estimator(q=4, mu=1e-4),
    "sphere, independent": zt.Estimator(q=3, mu=1e-4, directions="sphere", shared=False, common=False),
    "central, supports": zt.Estimator(q=3, mu=1e-3, directions="sphere", s2=2, difference="central"),
}


def is_program(name: str) -> bool:
    """Whether a method ends when it has found what it wants, and pays for F at the result as it goes."""
    return issubclass(zt.methods.available()[name], zt.Program)


def limit(name: str, d: int) -> int:
    """The most non-zeros: a method without the l0 constraint says so, and is exempt from this clause alone."""
    return K if is_sparse(instance(name)) else d


def copied(search: Search) -> dict[str, Array]:
    """What a snapshot would keep of a search, copied."""
    return {name: np.array(array) for name, array in search.arrays().items()}


def same(one: dict[str, Array], other: dict[str, Array]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def run(name: str, problem: zt.Problem, **options: object) -> zt.Result:
    arguments: dict[str, object] = {
        "budget": 700,
        "method": instance(name),
        "seed": 7,
        "estimator": ESTIMATORS["default"],
    }
    return zt.minimize(problem, None, K, **{**arguments, **options})


methods = pytest.mark.parametrize("name", OF_VALUES)
problems = pytest.mark.parametrize("problem", list(ZOO.values()), ids=list(ZOO))
estimators = pytest.mark.parametrize("estimator", list(ESTIMATORS.values()), ids=list(ESTIMATORS))


@methods
@problems
@estimators
def test_a_request_is_repeatable_and_advancing_leaves_a_search_as_it_was(name, problem, estimator):
    theta = np.zeros(problem.d)
    theta[1] = 0.5
    limits = {"budget": 10**6, "reserve": 0, "seed": 3, "key": key_of(3)}
    task = Task(theta, problem.n, instance(name), estimator, Constraint(problem.d, K), **limits)
    search, other = begin(task), begin(task)
    for round_ in range(8):
        before = copied(search)
        plan, again = task.plan(search.request, round_), task.plan(other.request, round_)
        assert np.array_equal(plan.points(), again.points())
        assert np.array_equal(plan.components, again.components)
        assert plan.calls == len(plan.points()) == search.request.calls(estimator)
        values = problem.values(plan.points(), plan.components)
        following = search.advance(Answers(plan, values), HardThreshold(task.constraint))
        repeated = other.advance(Answers(again, values), HardThreshold(task.constraint))
        assert same(copied(following), copied(repeated))
        assert same(copied(search), before)
        assert np.count_nonzero(following.incumbent.theta) <= limit(name, problem.d)
        if round_ == 4:  # a snapshot leads to the same place
            repeated = begin(task).restored(following.arrays(), round_ + 1)
        search, other = following, repeated


@methods
@problems
@estimators
def test_iterates_are_sparse_and_the_budget_is_kept_to_the_call(name, problem, estimator):
    made = 0

    class Counted:
        d, n = problem.d, problem.n

        def values(self, points, components):
            nonlocal made
            made += len(points)
            assert not points.flags.writeable
            return problem.values(points, components)

    seen = []
    for budget in (400, 401, 640):
        made = 0
        result = zt.minimize(
            Counted(), None, K, budget=budget, method=instance(name), estimator=estimator, seed=1,
            callback=lambda state: seen.append(state.support.size),
        )  # fmt: skip
        assert result.status in ((zt.Status.BUDGET, zt.Status.CONVERGED) if is_program(name) else (zt.Status.BUDGET,))
        assert result.nfev == made <= budget
        assert np.count_nonzero(result.x) <= limit(name, problem.d)
        assert result.fun == pytest.approx(problem.F(result.x), abs=1e-12)
        assert result.trace.nfev[-1] + (0 if is_program(name) else problem.n) <= made
    assert max(seen) <= limit(name, problem.d)


@methods
@problems
def test_same_seed_same_bits_and_other_seeds_other_bits(name, problem):
    first, second, other = run(name, problem), run(name, problem), run(name, problem, seed=8)
    assert np.array_equal(first.x, second.x)
    assert first.trace == second.trace
    by_coordinates = getattr(instance(name), "estimator", None) == "coord" and problem.n == 1  # nothing is drawn
    if not is_program(name) and not by_coordinates:  # a program may find the very same point
        assert not np.array_equal(first.x_last, other.x_last)


@methods
@problems
@estimators
def test_serial_vectorised_ask_tell_and_threads_agree_to_the_bit(name, problem, estimator):
    def single(x, i):
        return problem.values(x[None], np.array([i]))[0]

    options = {"budget": 500, "method": instance(name), "seed": 5, "estimator": estimator, "parallel": 2}
    vectorised = zt.minimize(problem, None, K, **options)
    serial = zt.minimize(single, problem.d, K, n=problem.n, **options)
    cut = zt.minimize(problem, None, K, workers=2, chunk=30, **options)
    opt = zt.Optimizer(problem.d, K, n=problem.n, **options)
    while not opt.done:
        batch = opt.ask()
        opt.tell(batch, problem.values(batch.points, batch.components))
    for result in (serial, cut, opt.result()):
        assert np.array_equal(vectorised.x_last, result.x_last)
        assert vectorised.fun == result.fun
        assert vectorised.trace == result.trace
        assert vectorised.nfev == result.nfev


@methods
@pytest.mark.parametrize("workers", [2, 5])
def test_any_number_of_threads_gives_the_same_bits_at_one_width(name, workers):
    problem = ZOO["quadratic"]

    def single(x, i):
        return problem.values(x[None], np.array([i]))[0]

    options = {"budget": 400, "method": instance(name), "seed": 5, "n": problem.n}
    alone = zt.minimize(single, problem.d, K, parallel=workers, **options)
    shared = zt.minimize(single, problem.d, K, workers=workers, **options)
    assert np.array_equal(alone.x_last, shared.x_last)
    assert alone.trace == shared.trace


@methods
def test_the_search_moves_with_the_problem(name):
    """A copy with other coordinates' names gives the same values, and a shifted one is solved as well."""
    plain = zt.problems.quadratic(d=6, k_true=2, condition=2, n=1, seed=4)
    from zoo import Translated

    shifted = Translated(plain, 2.0)
    exact = zt.Estimator(q=6, mu=1e-4)
    budget = 4000 if name in ("zscg", "sparse-rs") else 1500  # these two take their time
    options = {"budget": budget, "method": instance(name, eta=0.5), "estimator": exact, "seed": 0}
    start = shifted.shift.copy()
    at_zero = zt.minimize(plain, None, 6 - 1, **options)
    moved = zt.minimize(shifted, start, 6 - 1, **options)
    assert at_zero.fun < 1e-3 * plain.F(np.zeros(6))
    assert moved.fun < 1e-3 * shifted.F(np.zeros(6))


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_calls_and_thresholdings_follow_the_closed_forms(batch):
    problem, q = ZOO["ridge"], 4
    n, cost, m, p = problem.n, q + 1, 4, max(2, batch)
    steps = {
        "fgzoht": lambda r: n * cost * r,
        "szoht": lambda r: batch * cost * r,
        "vr-szht": lambda r: (-(-r // m)) * n * cost + 2 * r * batch * cost,
        "sarah-szht": lambda r: (-(-r // m)) * n * cost + 2 * (r - (-(-r // m))) * batch * cost,
        "p-saga-szht": lambda r: n * cost + r * p * cost,
        "saga-szht": lambda r: n * cost + r * batch * cost,
    }
    for name, calls in steps.items():
        result = run(name, problem, method=instance(name, batch=batch, p=p), budget=2000)
        assert len(result.trace) > 3
        assert result.trace.nfev.tolist() == [calls(r) for r in range(1, len(result.trace) + 1)], name
        assert result.trace.nht.tolist() == list(range(1, len(result.trace) + 1)), name
        assert result.nht == result.nit == len(result.trace)


def test_the_loopless_variant_pays_for_all_components_at_a_refresh_only():
    problem = ZOO["ridge"]
    result = run("lsvrg-szht", problem, budget=4000)
    paid = np.diff(result.trace.nfev)
    assert set(paid.tolist()) == {5, 5 * problem.n}
    assert np.mean(paid > 5) == pytest.approx(2 / problem.n, abs=0.12)  # p/n, p = 2


@pytest.mark.parametrize("difference", ["forward", "central"])
def test_an_estimate_costs_q_plus_1_or_2_q(difference):
    estimator = zt.Estimator(q=6, mu=1e-3, difference=difference)
    result = run("szoht", ZOO["ridge"], estimator=estimator)
    assert result.trace.nfev[0] == (7 if difference == "forward" else 12)


@methods
@pytest.mark.parametrize("problem", ["ridge", "quadratic", "one component", "translated", "permuted"])
def test_converges_to_the_enumerated_optimum_of_strongly_convex_problems(name, problem):
    """With k = d and k > k* the theory has no expansivity: all variance-reduced methods reach F*."""
    target = ZOO[problem]
    k = target.d - 1
    exact = zt.Estimator(q=target.d, mu=1e-5)
    near = problem in ("ridge", "permuted")
    method = instance(name, eta=0.05 if near else 0.3, radius=3.0 if near else 10.0, q=target.d)
    budget = min(40_000, 6000 * target.n) if name in BY_OTHERS else 6_000  # many of them ask for F a point at a time
    result = zt.minimize(target, None, k, budget=budget, method=method, estimator=exact, seed=2, monitor=target.F)
    plain = getattr(target, "problem", target)
    best = plain.F(plain.minimum_on(np.arange(plain.d))) if problem == "translated" else plain.optimum(k)[1]
    start = target.F(np.zeros(target.d))
    gap = (result.trace.fun[-1] - best) / (start - best)
    if getattr(method, "has_floor", False) and target.n > 1:
        assert gap < 0.3  # without variance reduction there is a floor: that is the paper's point
    else:
        assert gap < 1e-2
    assert result.fun >= best - 1e-9 or not is_sparse(method)  # without the constraint F can be lower


def test_a_step_by_hand_is_what_the_engine_does():
    """advance() is the whole of a round: two of them by hand are two steps of minimize."""
    problem = ZOO["ridge"]
    opt = zt.Optimizer(problem.d, K, n=problem.n, budget=2000, method=zt.FGZOHT(eta=0.05), seed=3)
    standing = start(opt.task)
    for _ in range(2):
        plan = opt.task.plan(standing.search.request, standing.round)
        standing = advance(opt.task, standing, plan, problem.values(plan.points(), plan.components))
    states = zt.iterate(problem, None, K, budget=2000, method=zt.FGZOHT(eta=0.05), seed=3)
    next(states)
    assert np.array_equal(next(states).x, standing.search.state.theta)
