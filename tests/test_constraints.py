"""Constraints beyond boxes: projections against brute force over supports, and runs that keep every promise."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize

import zerothresh as zt
from zerothresh.constraint.threshold import Constraint

entries = st.one_of(st.integers(-3, 3).map(float), st.floats(-3, 3, width=32))


def fixed_support(v, low, high, least, most):
    """The nearest point with limits and a sum, by bisection on the multiplier; None if there is none."""
    if low.sum() > most + 1e-9 or high.sum() < least - 1e-9:
        return None
    x = np.clip(v, low, high)
    if least <= x.sum() <= most:
        return x
    goal = most if x.sum() > most else least
    a, b = -100.0, 100.0
    for _ in range(70):  # 200 / 2**70 is far below the spacing of numbers near the sums here
        middle = 0.5 * (a + b)
        if np.clip(v - middle, low, high).sum() > goal:
            a = middle
        else:
            b = middle
    return np.clip(v - 0.5 * (a + b), low, high)


def brute_force(v, k, low, high, totals, labels, include):
    """The least squared distance of all supports; infinite if no support has the sum."""
    groups = np.unique(labels)
    forced = {labels[j] for j in include}
    best = np.inf
    for size in range(k + 1):
        for chosen in combinations(groups, size):
            if not forced <= set(chosen):
                continue
            S = np.flatnonzero(np.isin(labels, chosen))
            x = fixed_support(v[S], low[S], high[S], *totals)
            if x is not None and totals[0] - 1e-9 <= x.sum() <= totals[1] + 1e-9:
                out = np.zeros(v.size)
                out[S] = x
                best = min(best, np.square(out - v).sum())
    return best


@st.composite
def budgets(draw):
    d = draw(st.integers(1, 7))
    v = np.array(draw(st.lists(entries, min_size=d, max_size=d)))
    low = np.array(draw(st.lists(st.sampled_from([-1.0, 0.0, 0.0, 0.25, 0.5]), min_size=d, max_size=d)))
    high = low + np.array(draw(st.lists(st.sampled_from([0.0, 0.25, 1.0, 2.0, np.inf]), min_size=d, max_size=d)))
    totals = draw(st.sampled_from([(1.0, 1.0), (0.5, 2.0), (-np.inf, 1.5), (2.0, np.inf), (0.0, 0.0)]))
    labels = np.array(draw(st.lists(st.integers(0, 3), min_size=d, max_size=d))) if draw(st.booleans()) else None
    if labels is not None:
        labels = np.unique(labels, return_inverse=True)[1]
    places = d if labels is None else int(labels.max()) + 1
    k = draw(st.integers(1, places))
    include = [draw(st.integers(0, d - 1))] if draw(st.booleans()) else []
    return v, k, low, high, totals, labels, include


@given(budgets())
@settings(deadline=None, max_examples=400)
def test_no_support_is_nearer_than_the_projection_onto_a_budget(case):
    v, k, low, high, totals, labels, include = case
    units = np.arange(v.size) if labels is None else labels
    expected = brute_force(v, k, low, high, totals, units, include)
    given_set = zt.Budget(total=totals, low=low, high=high)
    if not np.isfinite(expected):
        with pytest.raises(ValueError, match=r"cannot be kept|is in include"):
            Constraint(v.size, k, constraint=given_set, groups=labels, include=include)
        return
    constraint = Constraint(v.size, k, constraint=given_set, groups=labels, include=include)
    x = constraint.project(v)
    assert constraint.holds(x)
    assert abs(np.square(x - v).sum() - expected) <= 1e-9 * (1 + expected)
    again = constraint.project(x)
    assert np.allclose(again, x, atol=1e-12)


@given(st.lists(entries, min_size=2, max_size=8).map(np.array), st.integers(1, 4), st.sampled_from([0.5, 1.0, 10.0]))
@settings(deadline=None, max_examples=200)
def test_no_support_is_nearer_than_the_projection_onto_the_simplex(v, k, total):
    k = min(k, v.size)
    x = Constraint(v.size, k, constraint=zt.Simplex(total)).project(v)
    none = np.zeros(v.size)
    expected = brute_force(v, k, none, none + np.inf, (total, total), np.arange(v.size), [])
    assert np.count_nonzero(x) <= k
    assert (x >= 0).all()
    assert abs(x.sum() - total) <= 1e-12 * total
    assert abs(np.square(x - v).sum() - expected) <= 1e-9 * (1 + expected)


@given(st.lists(entries, min_size=2, max_size=6).map(np.array), st.integers(1, 3), st.sampled_from(["l1", "l2"]))
@settings(deadline=None, max_examples=100)
def test_no_support_is_nearer_than_the_two_step_projection_onto_a_ball(v, k, norm):
    k, ball = min(k, v.size), zt.Ball(1.5, norm)
    x = Constraint(v.size, k, constraint=ball).project(v)
    distances = []
    for S in combinations(range(v.size), k):
        kept = np.zeros(v.size)
        kept[list(S)] = v[list(S)]
        distances.append(np.square(ball.project(kept) - v).sum())
    assert np.square(x - v).sum() <= min(distances) + 1e-9


@st.composite
def grids(draw):
    d = draw(st.integers(1, 5))
    v = np.array(draw(st.lists(entries, min_size=d, max_size=d)))
    choices = [[0.0, 1.0], [-2.0, 0.0, 0.5], [0.0, 3.0, 4.0], [0.0]]
    values = [draw(st.sampled_from(choices)) for _ in range(d)]
    include = [draw(st.integers(0, d - 1))] if draw(st.booleans()) else []
    for j in include:
        values[j] = draw(st.sampled_from([[1.0, 2.0], [-1.0, 0.0]]))
    labels = draw(st.sampled_from([None, [0, 0, 1, 1, 2][:d]]))
    places = d if labels is None else len(set(labels))
    return v, draw(st.integers(1, places)), values, include, labels


@given(grids())
@settings(deadline=None, max_examples=200)
def test_no_point_of_a_grid_is_nearer_than_the_projection(case):
    v, k, values, include, labels = case
    constraint = Constraint(v.size, k, values=values, include=include, groups=labels)
    units = np.arange(v.size) if labels is None else np.array(labels)
    forced = {units[j] for j in include}
    always = np.isin(units, list(forced))
    best, count = np.inf, 0
    for x in product(*[grid if always[j] else {0.0, *grid} for j, grid in enumerate(values)]):
        x = np.array(x)
        if len(set(units[np.flatnonzero(x)]) | forced) <= k:
            best, count = min(best, np.square(x - v).sum()), count + 1
            assert constraint.holds(x)
    if not include or labels is None:
        listed = list(constraint.further.listed(10**4))
        assert len(listed) == len({x.tobytes() for x in listed}) == constraint.further.size
    x = constraint.project(v)
    assert constraint.holds(x)
    assert abs(np.square(x - v).sum() - best) < 1e-12
    assert np.array_equal(constraint.project(x), x)


# Runs.

D, K = 12, 3
RNG = np.random.default_rng(5)
A = RNG.normal(size=(30, D))
GOAL = np.zeros(D)
GOAL[[1, 4, 8]] = [0.5, 0.3, 0.2]
SETS = {
    "simplex": {"constraint": zt.Simplex()},
    "limits": {"constraint": zt.Budget(total=1, low=0.25, high=0.6)},
    "most": {"constraint": zt.Budget(total=(None, 0.7), low=0.1, high=0.5)},
    "ball": {"constraint": zt.Ball(0.4, "l1")},
    "groups": {"constraint": zt.Budget(total=1, low=0.05), "groups": np.arange(D) // 2, "include": [0]},
    "bounds": {"bounds": (0, 0.4)},
    "values": {"values": [0, 0.2, 0.3, 0.5, 0.6]},
}


def loss(x):
    return float(np.square(A @ (x - GOAL)).mean())


def watched(**arguments):
    """A run with its constraint, the points that were asked for, and all iterates."""
    points, iterates = [], []

    def fun(x):
        points.append(x.copy())
        return loss(x)

    result = zt.minimize(fun, D, K, callback=lambda p: iterates.append(p.x), seed=0, progress=False, **arguments)
    names = {"constraint", "values", "groups", "include", "strict", "bounds"}
    constraint = Constraint(D, K, **{name: value for name, value in arguments.items() if name in names})
    return result, constraint, points, iterates


@pytest.mark.parametrize("name", SETS)
def test_every_iterate_and_result_is_feasible_and_auto_gets_better(name):
    result, constraint, points, iterates = watched(budget=400, **SETS[name])
    assert result.success
    assert constraint.holds(result.x)
    assert all(constraint.holds(x) for x in iterates)
    assert result.fun < 0.5 * loss(constraint.project(np.zeros(D)))
    assert result.nfev == len(points) <= 400


@pytest.mark.parametrize("name", SETS)
def test_every_queried_point_is_feasible_if_the_user_says_strict(name):
    result, constraint, points, _ = watched(budget=400, strict=True, **SETS[name])
    assert result.success
    assert all(constraint.holds(x) for x in points)


@pytest.mark.parametrize("name", ["simplex", "limits", "most", "ball"])
@pytest.mark.parametrize("method", ["fgzoht", "szoht", "vr-szht", "zo-sgd", "hzo-ht"])
def test_methods_that_know_nothing_of_constraints_keep_them_by_H(name, method):
    options = {"eta": 0.02} | ({"m": 5} if method == "vr-szht" else {})
    result, constraint, _, iterates = watched(budget=400, method=method, options=options, **SETS[name])
    assert all(constraint.within_bounds(x) for x in iterates)
    if method != "zo-sgd":  # whose iterates have any number of non-zeros
        assert all(constraint.holds(x) for x in iterates)
    assert result.fun < loss(constraint.project(np.zeros(D)))


def best_of_all(low, high, total):
    """The lowest value over all supports, by SciPy's quadratic programs."""
    best = np.inf
    for S in combinations(range(D), K):
        S = list(S)

        def value(x, S=S):
            out = np.zeros(D)
            out[S] = x
            return loss(out)

        found = scipy_minimize(
            value,
            np.full(K, total / K),
            bounds=[(low, high)] * K,
            constraints={"type": "eq", "fun": lambda x: x.sum() - total},
            options={"ftol": 1e-12},
        )
        best = min(best, found.fun)
    return best


@pytest.mark.parametrize("strict", [False, True])
def test_auto_finds_the_best_support_of_all(strict):
    result, *_ = watched(budget=1500, strict=strict, constraint=zt.Budget(total=1.2, low=0.2, high=0.55))
    assert result.fun <= best_of_all(0.2, 0.55, 1.2) + 1e-8


def test_a_function_that_is_not_defined_outside_is_minimised_with_strict():
    def entropy_like(x):
        assert abs(x.sum() - 1) < 1e-9
        assert x.min() >= 0
        return loss(x) + 0.01 * float(np.sqrt(x).sum())

    result = zt.minimize(entropy_like, D, K, budget=600, constraint=zt.Simplex(), strict=True, seed=0)
    assert result.success
    assert result.fun < 0.04


def test_all_points_of_a_small_grid_are_a_proof():
    result, *_ = watched(budget=1000, values="on/off", include=[0])
    assert result.status.name == "CONVERGED"
    assert result.nfev < 1 + 2 * (1 + D + D * D)
    best = min(
        loss(np.array([float(first), *[float(j in S) for j in range(1, D)]]))
        for first in (0, 1)
        for count in range(K)
        for S in combinations(range(1, D), count)
    )
    assert result.fun == best


def test_bytes_are_searched_among_many_values():
    goal = np.zeros(30)
    goal[[3, 17, 28]] = [200.0, 31.0, 255.0]
    result = zt.minimize(lambda x: float(np.abs(x - goal).sum()), 30, 3, budget=3000, values="bytes", seed=0)
    assert result.fun == 0


class Halfspace:
    """x_0 + ... + x_{d-1} <= 1, by its projection, which has to know the support."""

    def project(self, v, support):
        over = v[support].sum() - 1.0
        if over <= 0:
            return v
        v[support] -= over / len(support)
        return v


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_no_point_that_is_asked_for_is_outside_of_a_ball_as_computed(norm):
    sizes = []

    def f(x):
        sizes.append(np.linalg.norm(x, 2 if norm == "l2" else 1))
        return loss(x)

    zt.minimize(f, D, K, budget=400, constraint=zt.Ball(0.3, norm), strict=True, seed=0)
    assert max(sizes) <= 0.3
    rng = np.random.default_rng(0)
    for radius in rng.uniform(0.1, 10.0, 300):
        x = zt.Ball(radius, norm).project(rng.standard_normal(20) * 100)
        assert radius * (1 - 1e-10) <= np.linalg.norm(x, 2 if norm == "l2" else 1) <= radius


def test_a_convex_set_is_given_by_a_projection_on_the_support():
    goal = np.array([2.0, 0, 0, 1.5, 0, 0.1])

    def fun(x):
        return float(np.square(x - goal).sum())

    result = zt.minimize(fun, 6, 2, budget=600, constraint=Halfspace(), seed=0)
    assert abs(result.fun - 2.76) < 1e-6  # one that is negative makes room for the largest: (1.5, 0, 0, 0, -0.5, 0)
    bounded = zt.minimize(fun, 6, 2, budget=600, constraint=Halfspace(), bounds=(0, 0.6), strict=True, seed=0)
    assert np.allclose(bounded.x, [0.6, 0, 0, 0.4, 0, 0], atol=1e-4)


def test_the_start_is_feasible_and_a_remark_says_so():
    result, *_ = watched(budget=50, constraint=zt.Simplex())
    assert "0 is not feasible" in result.remarks[0][1]
    result = zt.minimize(loss, np.ones(D), K, budget=50, constraint=zt.Simplex(), seed=0)
    assert "x0 is not feasible" in result.remarks[0][1]
    x0 = np.zeros(D)
    x0[2] = 1.0
    result = zt.minimize(loss, x0, K, budget=50, constraint=zt.Simplex(), seed=0)
    assert not any("not feasible" in remark for _, remark in result.remarks)


def test_a_budget_without_a_sum_and_without_lower_limits_is_bounds():
    constraint = Constraint(5, 2, constraint=zt.Budget())
    assert constraint.further is None
    assert constraint.project(np.array([-3.0, 1, 2, 0, 0])).tolist() == [0, 1, 2, 0, 0]
    assert not constraint.holds(np.array([-1.0, 0, 0, 0, 0]))


@pytest.mark.parametrize(
    "given_set",
    [
        zt.Budget(total=0, low=-1, high=1),
        zt.Budget(total=0, low=None),
        zt.Budget(total=0, low=np.where(np.arange(D) == 3, -1.0, 0.0)),
        zt.Budget(total=(0, 1), low=-1),
        zt.Budget(low=0.5, high=0.5),
    ],
    ids=["box", "free", "one", "pair", "switches"],
)
@pytest.mark.parametrize("strict", [False, True])
def test_auto_leaves_zero_although_it_keeps_the_constraint(given_set, strict):
    goal = np.where(np.arange(D) == 3, -0.8, np.where(np.arange(D) == 5, 0.8, 0.0))
    result = zt.minimize(
        lambda x: float(((x - goal) ** 2).sum()), D, 3, budget=600, constraint=given_set, strict=strict, seed=0
    )
    assert result.status.name not in ("METHOD_FAILED", "FAILED"), result.message
    assert result.fun < 1.0
    assert Constraint(D, 3, constraint=given_set, strict=strict).holds(result.x)


def test_auto_has_nothing_to_complain_of_where_zero_is_best():
    for given_set in (zt.Budget(total=0, low=-1, high=1), zt.Budget(low=0.5, high=0.5)):
        result = zt.minimize(lambda x: float((x**2).sum()), D, 3, budget=300, constraint=given_set, seed=0)
        assert result.status.name in ("BUDGET", "CONVERGED"), result.message


BAD = [
    (lambda: zt.minimize(loss, D, K, budget=99, constraint=zt.Budget(total=0)), "Budget leaves only one point"),
    (
        lambda: zt.minimize(loss, D, K, budget=99, constraint=zt.Budget(total=0, low=None, high=0)),
        "at their upper limits the sum is already the total of 0; take a smaller total",
    ),
    (
        lambda: zt.minimize(loss, D, K, budget=99, constraint=zt.Budget(total=0.5, low=0.5), include=[1]),
        "at their lower limits the sum is already the total of 0.5; take a larger total",
    ),
    (lambda: zt.Simplex(-1.0), "total must be a finite number above 0"),
    (lambda: zt.Simplex("1"), "total must be a number above 0"),
    (lambda: zt.Simplex(1e-300), "total must be 0 or of a size from 1e-70 to 1e+70, not 1e-300"),
    (lambda: zt.Simplex(1e300), "total must be 0 or of a size"),
    (lambda: zt.Budget(total=-1e200), "total must be 0 or of a size"),
    (lambda: zt.Budget(total=(None, 1e200)), "total must be 0 or of a size"),
    (lambda: zt.Budget(total=(np.inf, None)), "the least total must be below infinity"),
    (lambda: zt.Budget(low=[0, 1e-200]), "low must be 0 or of a size"),
    (lambda: zt.Budget(high=1e300), "high must be 0 or of a size"),
    (lambda: zt.Ball(1e-300, "l1"), "radius must be 0 or of a size"),
    (lambda: zt.Budget(low=2, high=1), "low = 2 is above high = 1"),
    (lambda: zt.Budget(total=(2, 1)), "least total is above the largest"),
    (lambda: zt.Budget(total="x"), "total must be a number, a pair"),
    (lambda: zt.Budget(low=[1, np.nan]), "NaN"),
    (lambda: Constraint(5, 2, constraint=zt.Budget(total=1, high=0.4)), "sum to 0.8, which is below the total of 1"),
    (lambda: Constraint(5, 2, constraint=zt.Budget(total=0.5, low=0.6)), "no choice of at most k = 2"),
    (lambda: Constraint(5, 2, constraint=zt.Budget(total=0.5, low=0.6), include=[0]), "sum to 0.6, which is above"),
    (lambda: Constraint(5, 2, constraint=zt.Budget(low=[1, 2, 3])), "low must be a number or an array of length d = 5"),
    (lambda: Constraint(5, 2, constraint=zt.Simplex), "not the class Simplex itself"),
    (lambda: Constraint(5, 2, constraint="simplex"), "an object with a function project"),
    (lambda: Constraint(5, 2, constraint=zt.Simplex(), values="bytes"), "cannot be given together"),
    (lambda: Constraint(5, 2, constraint=zt.Simplex(), strict="yes"), "strict"),
    (lambda: Constraint(5, 2, values=[1, 2]), "0 must be among the values of coordinate 0"),
    (lambda: Constraint(5, 2, values="integers"), "needs bounds"),
    (lambda: Constraint(5, 2, values="letters"), "values must be"),
    (lambda: Constraint(5, 2, values=[[0, 1]] * 4), "list of d = 5 lists"),
    (lambda: Constraint(5, 2, values=[0, np.inf]), "finite numbers"),
    (lambda: Constraint(2, 1, values=[0, 5], bounds=(-1, 1), include=[0]).project(np.ones(2)), None),
    (lambda: Constraint(2, 1, values=[3, 5], bounds=(-1, 1), include=[0]), "no value of coordinate 0"),
    (
        lambda: zt.minimize(loss, D, K, budget=99, method="htp", constraint=zt.Simplex()),
        "htp does not support constraint",
    ),
    (
        lambda: zt.minimize(loss, D, K, budget=99, method=zt.SZOHT(0.1), values="on/off"),
        "szoht does not support values",
    ),
    (
        lambda: zt.minimize(loss, D, K, budget=99, method=zt.SZOHT(0.1), constraint=zt.Simplex(), strict=True),
        "szoht does not support strict=True",
    ),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[str(message)[:30] for _, message in BAD])
def test_what_cannot_be_is_refused_in_a_sentence(make, message):
    if message is None:
        make()
        return
    with pytest.raises(ValueError, match=r".+") as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


class Shifted:
    """A function that makes zeros non-zero is no projection that keeps supports."""

    def project(self, v):
        return v + 1.0


def test_a_projection_that_does_not_keep_zeros_is_refused():
    with pytest.raises(ValueError, match=r"it must keep zeros"):
        Constraint(5, 2, constraint=Shifted())


def test_a_run_folder_knows_its_constraint(tmp_path):
    arguments = {"budget": 120, "seed": 0, "run": tmp_path / "run", "progress": False}
    zt.minimize(loss, D, K, constraint=zt.Simplex(), **arguments)
    for other in ({}, {"constraint": zt.Simplex(2.0)}, {"constraint": zt.Simplex(), "strict": True}):
        with pytest.raises(zt.RunError, match=r"another constraint"):
            zt.minimize(loss, D, K, **other, **arguments)
    again = zt.minimize(loss, D, K, constraint=zt.Simplex(), **(arguments | {"budget": 200}))
    assert again.nfev > 120


@pytest.mark.parametrize("name", SETS)
def test_a_run_that_stops_goes_on_to_the_same_bits(name, tmp_path):
    whole = zt.minimize(loss, D, K, budget=300, seed=1, progress=False, **SETS[name])
    calls = iter(range(150))

    class Mortal:
        fingerprint = "the same"

        def __call__(self, x):
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return loss(x)

    class Immortal(Mortal):
        def __call__(self, x):
            return loss(x)

    arguments = {"budget": 300, "seed": 1, "run": tmp_path / "run", "progress": False}
    first = zt.minimize(Mortal(), D, K, **SETS[name], **arguments)
    assert first.status.name == "INTERRUPTED"
    second = zt.minimize(Immortal(), D, K, **SETS[name], **arguments)
    assert (
        -D <= second.nfev - whole.nfev <= 1
    )  # the call in which it was stopped may count; then the last round may not fit
    assert np.allclose(second.x, whole.x, atol=1e-6)


@pytest.mark.parametrize("strict", [False, True])
def test_neither_the_unit_nor_the_offset_of_F_nor_the_unit_of_x_matters(strict):
    def run(fun, total):
        rules = zt.Budget(total=total, low=0.2 * total, high=0.55 * total)
        return zt.minimize(fun, D, K, budget=500, constraint=rules, strict=strict, seed=0).x / total

    plain = run(loss, 1.0)
    assert np.allclose(run(lambda x: 1e4 * loss(x) + 1e4, 1.0), plain, atol=1e-3)
    assert np.allclose(run(lambda x: 1e-6 * loss(x / 1000), 1000.0), plain, atol=1e-3)


@pytest.mark.parametrize("seed", [0, 3])
def test_with_strict_a_scan_of_all_coordinates_serves_more_than_one_swap(seed):
    rng = np.random.default_rng(seed)
    goal = np.zeros(300)
    goal[rng.choice(300, 6, replace=False)] = rng.dirichlet(np.full(6, 5.0))
    weight, asked = 1 + rng.random(300), []

    def apart(x):
        asked.append((float((weight * (x - goal) ** 2).sum()), np.count_nonzero(x)))
        return asked[-1][0]

    zt.minimize(apart, 300, 6, budget=4000, constraint=zt.Simplex(), strict=True, seed=0, progress=False)
    assert max(count for _, count in asked) <= 6
    assert min(F for F, _ in asked[:1500]) < 1e-12  # six scans of all would take 1,764 calls alone
