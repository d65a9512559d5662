"""Constraints beyond boxes: projections against brute force over supports, and runs that keep every promise."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    for _ in range(200):
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
    best = np.inf
    for x in product(*[grid if always[j] else {0.0, *grid} for j, grid in enumerate(values)]):
        x = np.array(x)
        if len(set(units[np.flatnonzero(x)]) | forced) <= k:
            best = min(best, np.square(x - v).sum())
    x = constraint.project(v)
    assert constraint.holds(x)
    assert abs(np.square(x - v).sum() - best) < 1e-12
    assert np.array_equal(constraint.project(x), x)
