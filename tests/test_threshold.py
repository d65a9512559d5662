from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zerothresh as zt
from zerothresh.constraint.threshold import Constraint, Diverged, HardThreshold

vectors = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=9).map(np.array)


@given(vectors, st.integers(1, 9))
@settings(deadline=None)
def test_the_largest_k_stay_and_ties_go_to_the_lowest_index(v, k):
    out = zt.hard_threshold(v, k)
    order = sorted(range(v.size), key=lambda j: (-abs(v[j]), j))
    expected = np.zeros_like(v)
    expected[order[:k]] = v[order[:k]]
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("k", [1, 10, 333, 5000])
def test_long_vectors_too(k):
    v = np.random.default_rng(k).standard_normal(5000).round(2)
    out = zt.hard_threshold(v, k)
    order = np.lexsort((np.arange(v.size), -np.abs(v)))[:k]
    expected = np.zeros_like(v)
    expected[order] = v[order]
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_not_finite_is_not_thresholded_silently(bad):
    v = np.array([1.0, bad, 3.0])
    with pytest.raises(Diverged):
        zt.hard_threshold(v, 2)
    with pytest.raises(Diverged):
        Constraint(3, 2, bounds=(-1, 1)).project(v)


@pytest.mark.parametrize("exponent", [-990, -600, -350, 350, 600, 990])
@pytest.mark.parametrize(
    "named", [{"bounds": (-1.0, 2.0)}, {"groups": [0, 0, 1, 1, 2]}, {"include": [4]}, {"exclude": [1]}]
)
def test_the_projection_is_the_same_at_every_scale(exponent, named):
    v, scale = np.array([1.0, -3.0, 2.5, 2.4, 0.1]), 2.0**exponent
    expected = Constraint(5, 2, **named).project(v)
    scaled = {"bounds": (-1.0 * scale, 2.0 * scale)} if "bounds" in named else named
    assert np.array_equal(Constraint(5, 2, **scaled).project(v * scale), expected * scale)


def test_what_lies_far_outside_of_the_bounds_is_told_apart():
    assert Constraint(2, 1, bounds=(-1, 1)).project(np.array([1e17, 2e17])).tolist() == [0, 1]


def nearest(v, feasible):
    """The distance of the nearest point of a set that is listed by its possible supports."""
    return min(float(((v - x) ** 2).sum()) for x in feasible)


@given(vectors, st.data())
@settings(max_examples=150, deadline=None)
def test_the_projection_under_constraints_is_the_nearest_point(v, data):
    d = v.size
    k = data.draw(st.integers(1, d))
    low = -np.array(data.draw(st.lists(st.integers(0, 3), min_size=d, max_size=d)), float)
    high = np.array(data.draw(st.lists(st.integers(0, 3), min_size=d, max_size=d)), float)
    include = data.draw(st.lists(st.integers(0, d - 1), max_size=k, unique=True))
    exclude = [j for j in data.draw(st.lists(st.integers(0, d - 1), unique=True)) if j not in include]
    constraint = Constraint(d, k, bounds=(low, high), include=include, exclude=exclude)
    x = constraint.project(v)
    assert constraint.holds(x)
    kept = np.clip(v, low, high)
    others = [j for j in range(d) if j not in include and j not in exclude]
    feasible = []
    for chosen in combinations(others, min(len(others), k - len(include))):
        y = np.zeros(d)
        y[list(chosen) + include] = kept[list(chosen) + include]
        feasible.append(y)
    assert ((v - x) ** 2).sum() == pytest.approx(nearest(v, feasible))


@given(st.lists(st.integers(-4, 4).map(float), min_size=6, max_size=6).map(np.array), st.integers(1, 3))
@settings(deadline=None)
def test_groups_stay_or_go_as_a_whole(v, k):
    groups = [7, 7, 1, 1, 5, 5]
    x = Constraint(6, k, groups=groups).project(v)
    feasible = []
    for chosen in combinations([7, 1, 5], k):
        feasible.append(np.where(np.isin(groups, chosen), v, 0.0))
    assert ((v - x) ** 2).sum() == pytest.approx(nearest(v, feasible))


def test_uses_are_counted():
    H = HardThreshold(Constraint(3, 1))
    H(np.ones(3))
    H(np.ones(3))
    assert H.count == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bounds": (1, 2)}, "they must contain 0"),
        ({"bounds": 3}, "bounds must be a pair"),
        ({"bounds": [(0, 1)] * 4}, "bounds must be a pair"),
        ({"include": [4]}, "include names coordinate 4"),
        ({"include": [0, 1, 2]}, "include names 3 coordinates, but only k = 2 may be non-zero"),
        ({"include": [1], "exclude": [1]}, "coordinate 1 is in both include and exclude"),
        ({"exclude": [0.5]}, "exclude must be a list of coordinates"),
        ({"groups": [0, 1]}, r"groups must have shape \(4,\), one label per coordinate"),
        ({"groups": [0, 0, 0, 0]}, "k = 2 is larger than the number of groups = 1"),
    ],
)
def test_constraints_that_make_no_sense_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Constraint(4, 2, **arguments)


def test_a_solution_under_constraints_is_found_and_no_query_leaves_the_box():
    goal = np.array([3.0, -3.0, 2.0, 0.5, 0.0, 4.0])
    low, high = np.array([0, -1, 0, 0, 0, 0.0]), np.array([1, 1, 9, 9, 9, 9.0])

    def f(X):
        assert (low <= X).all()
        assert (high >= X).all()
        assert (X[:, 5] == 0).all()
        return ((X - goal) ** 2).sum(axis=1)

    for difference in ("forward", "central"):
        estimator = zt.Estimator(q=12, mu=1e-3, difference=difference)
        result = zt.minimize(
            f, 6, 3, budget=20_000, method=zt.FGZOHT(eta=0.05), estimator=estimator, seed=0,
            vectorized=True, bounds=(low, high), include=[3], exclude=[5],
        )  # fmt: skip
        assert result.success
        # hard thresholding may end on any of the supports {3} + two of {0, 1, 2}: each is locally best
        support = result.support
        assert 3 in support
        assert result.x[support] == pytest.approx(np.array([1, -1, 2, 0.5])[support], abs=0.05)


def test_scipy_bounds_are_understood():
    from scipy.optimize import Bounds

    assert Constraint(2, 1, bounds=Bounds([-1, -1], [1, 1])).project(np.array([5.0, 0.0])).tolist() == [1.0, 0.0]
