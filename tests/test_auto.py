"""Auto without any settings: invariant to units, optimal where the optimum is known, and robust to any function."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
from waiting import PATIENCE
from zoo import Absolute, zoo

import zerothresh as zt
from zerothresh.constraint.threshold import Constraint
from zerothresh.methods.auto.settings.race_settings import RACE

PROGRAMS = [
    zt.methods.Auto(),
    zt.methods.NIHT(),
    zt.methods.NIHT(step="bb", momentum=True),
    zt.methods.HTP(),
    zt.methods.Index(),
    zt.methods.GuidedSAGA(),
]
programs = pytest.mark.parametrize("method", PROGRAMS, ids=repr)
ENDED = (zt.Status.BUDGET, zt.Status.CONVERGED)


# Problems in other units, shifted, or with their coordinates reordered.


def absolute():
    problem, best = Absolute(seed=1, n=15, d=8), np.zeros(8)
    best[[1, 4]] = 2, -1
    return problem, 2, best


def known(problem, k):
    return problem, k, problem.optimum(k)[0]


BASE = {
    "the paper's ridge": known(zt.problems.ridge(seed=3), 3),
    "ridge": known(zt.problems.ridge(n=20, d=12, seed=3), 3),
    "quadratic": known(zt.problems.quadratic(d=15, k_true=3, n=8, condition=10, spread=0.3, seed=1), 3),
    "one component": known(zt.problems.quadratic(d=15, k_true=3, n=1, condition=10, seed=1), 3),
    "logistic": known(zt.problems.logistic(n=40, d=12, seed=2), 3),
    "least absolute deviation": absolute(),
}
base = pytest.mark.parametrize("name", list(BASE))


class Disguised:
    """f(scale * x[order] - shift) * unit + offset, with the calls needed to close all but 1e-3 of the gap in F."""

    def __init__(self, name, *, scale=1.0, unit=1.0, offset=0.0, shift=0.0, order=None):
        self.problem, self.k, best = BASE[name]
        self.n, self.d = self.problem.n, self.problem.d
        self.scale, self.unit, self.offset = scale, unit, offset
        self.shift = np.where(best != 0, shift * np.abs(best).max(), 0.0)
        self.order = slice(None) if order is None else order
        low, start = self.problem.F(best), self.problem.F(np.zeros(self.d))
        self.bar = low + 1e-3 * (start - low)

    def original(self, points):
        return np.ascontiguousarray(self.scale * points[..., self.order] - self.shift)

    def values(self, points, components):
        return self.unit * self.problem.values(self.original(points), components) + self.offset

    def calls(self, seed, budget=6000, **options):
        reached = []

        def watch(state):
            if self.problem.F(self.original(state.x)) <= self.bar:
                reached.append(state.nfev)
                raise StopIteration

        start = np.zeros(self.d)
        start[self.order] = self.shift / self.scale
        zt.minimize(self, start, self.k, budget=budget, seed=seed, callback=watch, **options)
        return reached[0] if reached else np.inf


def median_calls(name, **disguise):
    return float(np.median([Disguised(name, **disguise).calls(seed) for seed in range(5)]))


@pytest.fixture(scope="module")
def original_calls():
    return {name: median_calls(name) for name in BASE}


@base
@pytest.mark.parametrize(
    "disguise",
    [
        {"unit": 1e-6},
        {"unit": 1e6},
        {"offset": 100.0},
        {"offset": -100.0},
        {"scale": 1e-6},
        {"scale": 1e-3},
        {"scale": 1e3},
        {"scale": 1e6},
        {"scale": 1e6, "unit": 1e-6},
        {"shift": 1.0},
        {"shift": 1.0, "scale": 1e-3},
    ],
    ids=lambda d: " ".join(f"{name} {value:g}" for name, value in d.items()),
)
def test_a_problem_in_disguise_is_solved_about_as_fast(name, disguise, original_calls):
    """The median over five seeds is at most 3 times the calls of the original problem."""
    assert median_calls(name, **disguise) <= 3 * original_calls[name] < np.inf


def test_an_offset_costs_no_single_run_its_model():
    """Rounding errors grow with the offset; no run may take agreement within them for a proof of its model."""
    for seed in range(5):
        plain = Disguised("least absolute deviation").calls(seed)
        for offset in (100.0, -1000.0):
            assert Disguised("least absolute deviation", offset=offset).calls(seed) <= 1.2 * plain


@base
def test_the_order_of_the_coordinates_does_not_matter(name, original_calls):
    order = np.random.default_rng(5).permutation(BASE[name][0].d)
    assert original_calls[name] / 3 <= median_calls(name, order=order) <= 3 * original_calls[name]


@base
def test_a_function_of_a_point_and_an_index_gives_the_same_run_as_a_problem(name):
    problem, k, _ = BASE[name]

    def black_box(x, i):
        return problem.values(x[None], np.array([i]))[0]

    one = zt.minimize(problem, None, k, budget=800, seed=1)
    other = zt.minimize(black_box, problem.d, k, n=problem.n, budget=800, seed=1)
    assert np.array_equal(one.x, other.x)
    assert one.trace == other.trace
    assert one.remarks == other.remarks


# The ridge problem of the paper.


def draws(k, count=20):
    return [(problem := zt.problems.ridge(seed=seed), *problem.optimum(k)) for seed in range(count)]


@pytest.mark.parametrize("k", [2, 3, 4])
def test_on_the_papers_ridge_it_converges_to_the_enumerated_optimum(k):
    for problem, x, low in draws(k):
        result = zt.minimize(problem, None, k, budget=2000, seed=1)
        assert result.fun == pytest.approx(low, rel=1e-9)
        np.testing.assert_allclose(result.x, x, atol=1e-4)
        assert result.status is zt.Status.CONVERGED
        assert result.nfev < 500


def test_under_noise_it_finds_the_support_of_the_optimum_in_nine_draws_of_ten():
    """At least 54 of 60 runs, with noise of 1e-3 F(0) on each value."""
    found = 0
    for k in (2, 3, 4):
        for seed, (problem, x, _) in enumerate(draws(k)):
            rng, sd = np.random.default_rng(seed), 1e-3 * problem.F(np.zeros(5))

            class Noisy:
                n, d = problem.n, problem.d

                def values(self, points, components, problem=problem, rng=rng, sd=sd):
                    return problem.values(points, components) + sd * rng.standard_normal(len(points))

            result = zt.minimize(Noisy(), None, k, budget=3000, seed=seed)
            found += np.array_equal(result.support, np.flatnonzero(x))
    assert found >= 54


def test_what_it_found_and_chose_is_in_the_remarks():
    problem = zt.problems.ridge(seed=0)
    smooth = zt.minimize(problem, None, 2, budget=2000, seed=1)
    assert "natural length" in smooth.remarks[0][1]
    assert smooth.remarks[-1][1] == "single index: The single-index model has converged, and its support is proven."
    rng = np.random.default_rng(0)
    noisy = zt.minimize(lambda x: problem.F(x) + 0.01 * rng.normal(), 5, 2, budget=2000, seed=1)
    assert "random noise" in noisy.remarks[0][1]
    little = zt.minimize(zt.problems.quadratic(d=300, k_true=3, n=1, seed=0), None, 3, budget=100, seed=1)
    assert "active subset: F depends on most of the coordinates." in [text for _, text in little.remarks]
    assert "grouped slopes" in [name for _, name in little.stages]  # there is no budget for all slopes


# Budgets.


def recorded(fun, asked):
    def recording(x, i=0):
        asked.append((x.copy(), i))
        return fun(x, i)

    return recording


def forewarned(method, *, supports, calls):
    """Expect a warning from `auto` where the calls cannot tell which support is the best one, and none elsewhere."""
    if method == zt.methods.Auto() and calls < math.log2(supports):
        return pytest.warns(UserWarning, match="is too small to tell which")
    return contextlib.nullcontext()


def kept_for_value(method, n, budget):
    """The calls that a run keeps for F at the result: `auto` keeps none if that is too large a part of the budget."""
    return 0 if method == zt.methods.Auto() and budget < RACE.value_share * n else n


UNPROVEN = 1.01  # F at the result over F at the start, at most, if there are too few calls to compare the two exactly


@programs
@pytest.mark.parametrize("n", [1, 3, 10])
@pytest.mark.parametrize("budget", [5, 10, 20, 50, 51, 100, 333])
def test_a_tiny_budget_is_never_exceeded_and_the_result_is_never_worse(method, n, budget):
    problem = zt.problems.ridge(n=n, d=30, seed=4) if n > 1 else zt.problems.quadratic(d=30, k_true=3, n=1, seed=4)
    for seed in range(3):
        asked = []
        fun = recorded(lambda x, i: problem.values(x[None], np.array([i]))[0], asked)
        kept = kept_for_value(method, n, budget)
        if budget < kept + 4:
            with pytest.raises(ValueError, match=f"take a budget of at least {kept + 4}"):
                zt.minimize(fun, 30, 3, n=n, budget=budget, method=method, seed=seed)
            assert not asked
            continue
        with forewarned(method, supports=math.comb(30, 3), calls=budget - kept):
            result = zt.minimize(fun, 30, 3, n=n, budget=budget, method=method, seed=seed)
        assert result.nfev == len(asked) <= budget
        assert result.status in ENDED
        assert result.support.size <= 3
        assert problem.F(result.x) <= (1 if kept else UNPROVEN) * problem.F(np.zeros(30))
        if kept or np.isfinite(result.fun):
            assert result.fun == pytest.approx(problem.F(result.x), rel=1e-12)


@programs
@pytest.mark.parametrize("n", [1, 20])
def test_thousands_of_coordinates_with_only_hundreds_of_calls_are_handled(method, n):
    rng = np.random.default_rng(2)
    goal, weight = np.zeros(3072), np.linspace(1, 3, 3072)
    goal[rng.permutation(3072)[:20]] = rng.normal(0, 2, 20)

    def fun(x, i=0):
        return (1 + 0.1 * i) * float((weight * (x - goal) ** 2).sum())

    one = {"n": n, "fun": fun} if n > 1 else {"fun": lambda x: fun(x)}
    result = zt.minimize(x0=3072, k=60, budget=600, method=method, seed=1, **one)
    assert result.nfev <= 600
    assert result.status in ENDED
    assert result.support.size <= 60
    assert fun(result.x) <= fun(np.zeros(3072))
    if method == zt.methods.Auto() and n == 1:
        assert fun(result.x) < 0.97 * fun(np.zeros(3072))


def test_a_few_of_many_components_are_not_mistaken_for_all():
    """Budgets of 1.5 to 10 n: a point that is good for a few components may be bad for the others."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 30))
    y = 3 * X[:, 0]
    start = float(np.mean(y**2))
    for budget in (30, 40, 60, 100, 200):
        for seed in range(10):
            kept = kept_for_value(zt.methods.Auto(), 20, budget)
            with forewarned(zt.methods.Auto(), supports=math.comb(30, 3), calls=budget - kept):
                found = zt.minimize(lambda x, i: (X[i] @ x - y[i]) ** 2, 30, 3, n=20, budget=budget, seed=seed)
            assert np.mean((X @ found.x - y) ** 2) <= (1 if kept else UNPROVEN) * start


@pytest.mark.parametrize("problem", list(zoo().values()), ids=list(zoo()))
@programs
def test_the_result_is_never_worse_than_the_start(method, problem):
    start = np.zeros(problem.d)
    start[[0, 3]] = 1.0, -0.5
    for budget in (25, 60, 150, 700):
        for x0 in (np.zeros(problem.d), start):
            result = zt.minimize(problem, x0, 3, budget=budget, method=method, seed=budget)
            kept = kept_for_value(method, problem.n, budget)
            assert problem.F(result.x) <= (1 if kept else UNPROVEN) * problem.F(x0)
            if kept or np.isfinite(result.fun):
                assert result.fun == pytest.approx(problem.F(result.x), rel=1e-12, abs=1e-14)


# Functions that are noisy or not smooth.

GOAL = np.zeros(10)
GOAL[[2, 7]] = 3.0, -2.0


def quadratic(x):
    return float(((x - GOAL) ** 2).sum())


def solve(fun, *, budget=2000, seed=0, **options):
    """Minimise with a time limit, which stops a program that loops without asking."""
    result = zt.minimize(fun, 10, 2, budget=budget, seed=seed, max_time=PATIENCE, **options)
    assert result.status is not zt.Status.TIME
    return result


@programs
@pytest.mark.parametrize("value", [0.0, 3.0, -1e12, 1e300, 1e-300])
@pytest.mark.parametrize("n", [None, 4])
def test_a_constant_function_ends_and_does_not_hang(method, value, n):
    result = solve((lambda x: value) if n is None else (lambda x, i: value), method=method, n=n)
    assert result.status in ENDED
    assert result.fun == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_functions_with_steps_and_jumps_are_minimised(seed):
    assert solve(lambda x: np.floor(4 * quadratic(x)), seed=seed).fun <= 4
    assert solve(lambda x: quadratic(x) + 5 * float(x[0] > 0.01), seed=seed).fun < 0.1
    assert solve(lambda x: float(np.ceil(np.abs(x - GOAL)).sum()), seed=seed).fun <= 5  # F(0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("digits", [1, 2, 4])
def test_rounded_values_and_single_precision_are_handled(seed, digits):
    assert solve(lambda x: round(quadratic(x), digits), seed=seed).fun < 0.02 * quadratic(np.zeros(10))
    assert solve(lambda x: float(np.float32(quadratic(x))), seed=seed).fun < 1e-3


@pytest.mark.parametrize("sd", [1e-6, 1e-5, 1e-4, 1e-2, 0.1])
def test_noise_of_any_size_is_handled(sd):
    """At most one of 10 runs ends above 1e-2 of F(0) (3e-2 for noise of 1e-2 F(0))."""
    bad = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        found = solve(lambda x, rng=rng: quadratic(x) + sd * rng.standard_normal(), seed=seed)
        bad += quadratic(found.x) > (3e-2 if sd == 0.1 else 1e-2) * quadratic(np.zeros(10))
    assert bad <= 1


def test_under_noise_it_ends_far_below_the_noise():
    """At least 7 of 8 runs end below 1e-5 of F(0), with noise a hundred times larger and 6000 calls."""
    good = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        found = solve(lambda x, rng=rng: quadratic(x) + 0.013 * rng.standard_normal(), seed=seed, budget=6000)
        good += quadratic(found.x) < 1e-5 * quadratic(np.zeros(10))
    assert good >= 7


def test_noise_that_grows_with_the_value_is_handled():
    """At most one of 8 runs ends above 1e-2 of F(0), with noise of 5 % of the value everywhere."""
    bad = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        found = solve(
            lambda x, rng=rng: (quadratic(x) + 1) * (1 + 0.05 * rng.standard_normal()), seed=seed, budget=4000
        )
        bad += quadratic(found.x) > 1e-2 * quadratic(np.zeros(10))
    assert bad <= 1


def test_components_that_are_counts_are_minimised():
    """Every component is a capped integer, with plateaus; at most one of 5 runs ends above a tenth of F(0)."""
    bad = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, truth = rng.standard_normal((20, 12)), np.zeros(12)
        truth[[2, 7]] = 1.5, -1.0
        y = X @ truth

        def counts(x, i, X=X, y=y):
            return min(float(np.floor(4 * abs(X[i] @ x - y[i]))), 40.0)

        found = zt.minimize(counts, 12, 2, n=20, budget=12_000, seed=seed)
        bad += found.fun > 0.1 * np.mean([counts(np.zeros(12), i) for i in range(20)])
    assert bad <= 1


@programs
@pytest.mark.parametrize("kind", ["far", "often", "side"])
def test_nan_counts_as_the_worst_value_and_f_at_the_result_is_true(method, kind):
    for seed in range(3):
        rng = np.random.default_rng(seed)

        def holes(x, i, rng=rng):
            out = {
                "far": np.abs(x).max() > 2.5,
                "often": x.any() and rng.random() < 0.1,
                "side": (x[2] > 1.0) or (x[7] > 1e-9),
            }[kind]
            return np.nan if out else (1 + i) * quadratic(x)

        result = solve(holes, n=3, method=method, on_nan="worst", seed=seed)
        assert result.status in ENDED
        assert result.fun == pytest.approx(2 * quadratic(result.x), rel=1e-9)
        assert result.fun <= 2 * quadratic(np.zeros(10))


@pytest.mark.parametrize("seed", range(5))
def test_one_outlier_in_fifty_values_does_no_harm(seed):
    rng = np.random.default_rng(seed)
    found = solve(lambda x: quadratic(x) + (1e4 if rng.random() < 0.02 else 0.0), seed=seed, budget=3000)
    assert quadratic(found.x) < 0.1 * quadratic(np.zeros(10))


NOISE = np.random.default_rng(0)
EXTREMES = {
    "linear": lambda x: float(x.sum()),
    "concave": lambda x: -float(((x - 1) ** 2).sum()),
    "exponential": lambda x: float(np.exp(np.minimum(x, 700)).sum()),
    "minus exponential": lambda x: -float(np.exp(np.minimum(np.abs(x).max(), 700))),
    "huge": lambda x: 1e300 * quadratic(x / 100),
    "tiny": lambda x: 1e-300 * quadratic(x),
    "denormal": lambda x: 1e-310 * quadratic(x),
    "roots": lambda x: float(np.sqrt(np.abs(x - GOAL)).sum()),
    "flat": lambda x: float((x**4).sum()),
    "waves": lambda x: float(np.sin(30 * x).sum()),
    "one coordinate": lambda x: (x[3] - 1) ** 2,
    "pure noise": lambda x: float(NOISE.standard_normal()),
}


@programs
@pytest.mark.parametrize("fun", list(EXTREMES.values()), ids=list(EXTREMES))
@pytest.mark.parametrize("budget", [30, pytest.param(600, marks=pytest.mark.slow)])
def test_no_function_makes_it_raise_or_hang(method, fun, budget):
    with np.errstate(all="ignore"):
        result = solve(fun, method=method, budget=budget, on_nan="worst")
    assert result.status in (*ENDED, zt.Status.DIVERGED)
    assert result.nfev <= budget
    assert np.isfinite(result.x).all()
    assert "eta" not in result.message


# Constraints.

CONSTRAINTS = {
    "bounds": {"bounds": (-0.5, 1.0)},
    "one-sided": {"bounds": (0.0, None)},
    "narrow": {"bounds": (0.0, 1e-5)},
    "uneven": {"bounds": (np.linspace(-1, 0, 8), np.linspace(0, 2, 8))},
    "include": {"include": [6]},
    "exclude": {"exclude": [0, 1]},
    "groups": {"groups": [0, 0, 1, 1, 2, 2, 3, 3]},
    "groups and bounds": {"groups": [0, 0, 1, 1, 2, 2, 3, 3], "bounds": (-0.5, 1.0)},
    "all": {"bounds": (-1, 1), "include": [6], "exclude": [0]},
    "nothing free": {"exclude": list(range(8))},
    "one free": {"exclude": list(range(7))},
}


@programs
@pytest.mark.parametrize("limits", list(CONSTRAINTS.values()), ids=list(CONSTRAINTS))
@pytest.mark.parametrize("n", [1, 6])
def test_constraints_hold_at_every_iterate_and_bounds_at_every_query(method, limits, n):
    problem = zt.problems.quadratic(d=8, k_true=3, n=n, condition=4, spread=0.2 if n > 1 else 0.0, seed=2)
    feasible, box = Constraint(8, 2, **limits), Constraint(8, 2, **limits).box
    asked = []
    fun = recorded(lambda x, i: problem.values(x[None], np.array([i]))[0], asked)
    for budget in (40, 900):
        asked.clear()
        iterates = []
        result = zt.minimize(
            fun, 8, 2, n=n, budget=budget, method=method, seed=1, max_time=PATIENCE, callback=lambda state, iterates=iterates: iterates.append(state.x), **limits
        )  # fmt: skip
        assert result.status in ENDED
        assert result.nfev == len(asked) <= budget
        for x in (*iterates, result.x, result.x_last):
            assert feasible.holds(x)
        if box is not None:
            points = np.array([x for x, _ in asked])
            assert (points >= box.low).all()
            assert (points <= box.high).all()
        assert problem.F(result.x) <= problem.F(np.zeros(8))


@pytest.mark.parametrize("n", [1, 6])
def test_in_a_box_it_finds_the_best_point_of_the_box(n):
    """The function is separable, so the optimum is known: clip each coordinate and keep the two of largest gain."""
    goal, weight = np.array([3.0, -2.0, 0.4, 0.0, 1.0]), np.array([1.0, 2.0, 30.0, 1.0, 1.0])
    low, high = np.full(5, -1.0), np.full(5, 1.0)
    clipped = np.clip(goal, low, high)
    gain = weight * (goal**2 - (goal - clipped) ** 2)
    best = np.where(gain >= np.sort(gain)[-2], clipped, 0.0)

    def fun(x, i=0):
        return (1 + 0.3 * i) * float((weight * (x - goal) ** 2).sum())

    for seed in range(3):
        options = {"n": n} if n > 1 else {}
        found = zt.minimize(
            fun if n > 1 else (lambda x: fun(x)), 5, 2, budget=3000, seed=seed, bounds=(-1, 1), **options
        )
        np.testing.assert_allclose(found.x, best, atol=1e-3)


def test_groups_are_selected_as_a_whole():
    goal = np.array([1.0, 1.0, 1.4, 0.0, 0.0, 0.0, 1.3, 0.0])  # the two largest coordinates are not in the best group
    for seed in range(3):
        found = zt.minimize(
            lambda x: float(((x - goal) ** 2).sum()), 8, 1, budget=1500, seed=seed, groups=[0, 0, 1, 1, 2, 2, 3, 3]
        )
        assert found.support.tolist() == [0, 1]
        np.testing.assert_allclose(found.x[:2], 1.0, atol=1e-3)
