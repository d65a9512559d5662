"""Every formula of the theory against a plain second derivation, its limits, and what it refuses."""

from __future__ import annotations

import inspect
import math
import re
import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import zerothresh as zt
from zerothresh import theory
from zerothresh.sampling.directions import draw

CURVES = st.floats(0.01, 100.0)
KAPPAS = st.floats(1.0, 50.0)
EPS = st.floats(2.0, 1e4)
ALPHAS = st.floats(1.0, 4.0)
close = lambda x: pytest.approx(x, rel=1e-9)


@st.composite
def sizes(draw_):
    """d, q, s, s2 that are admissible."""
    d = draw_(st.integers(2, 2000))
    return {
        "d": d,
        "q": draw_(st.integers(1, 5000)),
        "s": draw_(st.integers(1, d)),
        "s2": draw_(st.integers(1, d)),
    }


@st.composite
def curves(draw_):
    rho_minus, kappa = draw_(CURVES), draw_(KAPPAS)
    return {"eps_I": draw_(EPS), "rho_minus": rho_minus, "rho_plus": rho_minus * kappa}


# The estimator's constants: from the fourth moments of a direction.


def moments(d: int, s2: int) -> tuple[sp.Rational, sp.Rational]:
    """E u_i^4 and E u_i^2 u_j^2 of a unit vector on a random support: a Dirichlet law, and a chance to be in it."""
    fourth, mixed = sp.Rational(3, s2 * (s2 + 2)), sp.Rational(1, s2 * (s2 + 2))
    one, both = sp.Rational(s2, d), sp.Rational(s2 * (s2 - 1), d * (d - 1))
    return one * fourth, both * mixed


@given(sizes())
def test_the_second_moment_follows_from_the_fourth_moments_of_a_direction(size):
    d, q, s, s2 = (size[name] for name in ("d", "q", "s", "s2"))
    fourth, mixed = moments(d, s2)
    once = d**2 * (fourth + (s - 1) * mixed)  # E ||d (u.g) u_I||^2 for g = e_i, i in I
    outside = d**2 * s * mixed if s < d else 0  # and for i outside
    inside, beyond = theory.second_moment(**size)
    assert inside == close(float(once / q + 1 - sp.Rational(1, q)))
    assert beyond == close(float(outside / q))
    # Lemma 2: twice the linear part (and 2 for the mean's own square)
    assert theory.eps_I(**size) == close(float(2 * once / q + 2))
    assert theory.eps_Ic(**size) == close(float(2 * d**2 * s * mixed / q))


@given(sizes(), CURVES)
def test_what_curvature_adds_is_within_eps_mu_and_eps_abs(size, rho):
    # |f(theta + mu u) - f(theta) - mu grad f.u| <= mu^2 rho/2 and E||u_I||^2 = s/d, by Cauchy and Schwarz:
    bound = size["d"] ** 2 * (rho / 2) ** 2 * size["s"] / size["d"]
    assert theory.eps_mu(d=size["d"], s=size["s"], rho_plus=rho) == close(4 * bound)
    assert theory.eps_abs(**size, rho_plus=rho) >= 2 * bound
    spread = theory.eps_abs(**size, rho_plus=rho) - theory.eps_mu(d=size["d"], s=size["s"], rho_plus=rho)
    pairs = (size["s"] - 1) * (size["s2"] - 1) / (size["d"] - 1) + 1
    assert spread == pytest.approx(2 * size["d"] * rho**2 * size["s"] * size["s2"] * pairs / size["q"], rel=1e-6)


@given(sizes())
def test_limits_of_the_estimator(size):
    d, s = size["d"], size["s"]
    full = size | {"s2": d}
    assert theory.eps_I(**full) == close(2 * d * (s + 2) / (size["q"] * (d + 2)) + 2)  # s2 = d: the sphere's constants
    assert theory.eps_Ic(**full) == close(2 * d * s / (size["q"] * (d + 2)))
    assert theory.eps_Ic(**size | {"s2": 1}) == 0  # a coordinate outside of I tells nothing of I
    assert theory.eps_I(**size | {"s2": 1}) == close(2 * d / size["q"] + 2)
    assert theory.eps_I(**size | {"q": 10**15}) == pytest.approx(2, abs=1e-6)  # q to infinity
    assert theory.eps_Ic(**size | {"q": 10**15}) == pytest.approx(0, abs=1e-6)
    assert theory.eps_I(**size) >= theory.eps_Ic(**size)
    assert theory.eps_I(**size | {"q": 2 * size["q"]}) - 2 == close((theory.eps_I(**size) - 2) / 2)


def test_one_dimension_has_no_pairs():
    assert theory.eps_I(d=1, q=1, s=1, s2=1) == 4.0
    assert theory.eps_Ic(d=1, q=1, s=1, s2=1) == 0.0


@pytest.mark.parametrize("s2", [1, 3, 12])
def test_the_second_moment_of_the_librarys_own_directions(s2):
    # 4 sigma of 4000 blocks; a linear f, so that nothing else is in it
    d, q, s, draws = 12, 4, 5, 4000
    g = np.arange(1.0, d + 1)
    norms = np.empty(draws)
    for number in range(draws):
        block = draw("sphere", q, d, s2, key=7, round=number, tag=1)
        points = np.empty((q, d))
        block.displace(np.zeros(d), 1.0, points)
        norms[number] = (((d / q * points.T @ (points @ g))[:s]) ** 2).sum()
    inside, outside = theory.second_moment(d=d, q=q, s=s, s2=s2)
    expected = inside * (g[:s] ** 2).sum() + outside * (g[s:] ** 2).sum()
    assert abs(norms.mean() - expected) < 4 * norms.std() / math.sqrt(draws)


# Expansivity.


@given(st.integers(1, 500), st.integers(1, 10**6))
def test_alpha_and_its_limit(k_star, more):
    k = k_star + more
    a = theory.alpha(k=k, k_star=k_star)
    assert (a - 1) ** 2 * (k - k_star) == close(4 * k_star)
    assert theory.alpha_tight(k=k, k_star=k_star, d=3 * k) <= a
    assert theory.alpha(k=10**12, k_star=k_star) == pytest.approx(1, abs=1e-4)  # k much larger than k*
    assert theory.alpha_tight(k=k, k_star=k_star, d=k) == 1.0


@given(st.integers(2, 9), st.data())
def test_hard_thresholding_expands_no_more_than_alpha(d, data):
    k = data.draw(st.integers(1, d))
    k_star = data.draw(st.integers(1, k))
    numbers = st.lists(st.floats(-5, 5), min_size=d, max_size=d).map(np.array)
    theta, star = data.draw(numbers), np.where(np.arange(d) < k_star, data.draw(numbers), 0.0)
    ratio_bound = theory.alpha_tight(k=k, k_star=k_star, d=d)
    left, right = ((zt.hard_threshold(theta, k) - star) ** 2).sum(), ((theta - star) ** 2).sum()
    assert left <= ratio_bound * right * (1 + 1e-9) + 1e-12
    if k > k_star:
        assert left <= theory.alpha(k=k, k_star=k_star) * right * (1 + 1e-9) + 1e-12


def test_the_tight_bound_is_reached():
    # Shen and Li's worst case for k = k* = 1: theta* = e_1 alone, b between the two coordinates
    b = np.array([0.618, 0.6180001])
    ratio = ((zt.hard_threshold(b, 1) - [1, 0]) ** 2).sum() / ((b - [1, 0]) ** 2).sum()
    assert ratio == pytest.approx(theory.alpha_tight(k=1, k_star=1, d=9), rel=1e-4)


# SZOHT's conditions: sympy solves for k and q what the paper states solved.


def test_szohts_bound_on_q_is_where_the_quadratic_in_k_gets_roots():
    k, q, K, kappa, d, s2 = sp.symbols("k q K kappa d s2", positive=True)
    eps_I = 2 * d / (q * (s2 + 2)) * ((2 * k + K - 1) * (s2 - 1) / (d - 1) + 3) + 2
    X = (4 * eps_I + 1) * kappa**2
    quadratic = sp.Poly(sp.expand(K * X * (X - 1) - k), k)
    discriminant = sp.simplify(quadratic.discriminant())
    numbers = {K: 3, kappa: 2, d: 700, s2: 40}
    roots = list(sp.real_roots(sp.numer(sp.together(discriminant.subs(numbers)))))
    printed = theory.errata.printed_szoht_q(d=700, s2=40, k_star=3, kappa=2.0)
    assert float(max(roots)) == pytest.approx(printed, rel=1e-9)


@given(st.integers(300, 10**6), st.integers(1, 3), st.floats(1.0, 1.3), st.data())
@settings(max_examples=60)
def test_the_k_of_szoht_are_those_that_hold_its_condition(d, k_star, kappa, data):
    s2 = data.draw(st.integers(1, d))
    q = data.draw(st.integers(1, 10**5))
    found = theory.szoht_k(d=d, q=q, s2=s2, k_star=k_star, kappa=kappa)
    k = data.draw(st.integers(k_star + 1, (d - k_star) // 2))
    X = (4 * theory.eps_I(d=d, q=q, s=2 * k + k_star, s2=s2) + 1) * kappa**2
    asked = (1 - 1 / X) * k_star * X**2  # as printed
    assume(abs(asked / k - 1) > 1e-9)
    assert (k in found) == (asked <= k)


@given(st.integers(2, 40), st.integers(1, 5), KAPPAS, EPS)
def test_szohts_k_condition_says_that_its_rate_is_below_one(times, k_star, kappa, eps_I):
    X = (4 * eps_I + 1) * kappa**2
    k = max(k_star, round(k_star * X * (X - 1) * times / 20))
    assume(abs(k / (k_star * X * (X - 1)) - 1) > 1e-6)
    rate = theory.szoht_rate(k=k, k_star=k_star, eps_I=eps_I, kappa=kappa)
    assert (rate < 1) == (k > k_star * X * (X - 1))


@given(st.integers(1, 3), st.floats(1.0, 1.5), st.sampled_from([1, 7, None]))
@settings(max_examples=30)
def test_the_least_q_is_the_least(k_star, kappa, s2):
    d = 4 * theory.szoht_least_k(k_star=k_star, kappa=kappa) + 50
    s2 = d if s2 is None else s2
    q = theory.szoht_q(d=d, s2=s2, k_star=k_star, kappa=kappa)
    allowed = lambda q: theory.szoht_k(d=d, q=q, s2=s2, k_star=k_star, kappa=kappa)
    assert allowed(q)
    assert not (q > 1 and allowed(q - 1))
    k = allowed(2 * q)[0]
    least = theory.szoht_q(d=d, s2=s2, k_star=k_star, kappa=kappa, k=k)
    assert k in allowed(least)
    assert q <= least <= 2 * q
    assert k not in allowed(least - 1)


@given(st.integers(1, 3), st.floats(1.0, 1.2), st.booleans())
@settings(max_examples=30)
def test_vrs_k_and_q_are_where_its_interval_of_learning_rates_opens(k_star, kappa, sparse):
    d = 8 * theory.vr_least_k(k_star=k_star, kappa=kappa)
    s2 = 1 if sparse else d
    q = theory.vr_q(d=d, s2=s2, k_star=k_star, kappa=kappa)
    assert not theory.vr_k(d=d, q=q - 1, s2=s2, k_star=k_star, kappa=kappa)
    k = theory.vr_k(d=d, q=2 * q, s2=s2, k_star=k_star, kappa=kappa)[0]
    for shift, opens in ((0, True), (-2, False)):
        eps_I = theory.eps_I(d=d, q=2 * q, s=2 * (k + shift) + k_star, s2=s2)
        found = theory.vr_eta_interval(
            alpha=theory.alpha(k=k + shift, k_star=k_star), eps_I=eps_I, rho_minus=1.0, rho_plus=kappa
        )
        assert bool(found) == opens


# Intervals of learning rates: sympy derives each quadratic from gamma and delta.


def test_the_quadratic_of_vr_and_sarah_is_what_many_inner_steps_leave():
    e, a, eps, lo, hi = sp.symbols("eta alpha epsilon rho_minus rho_plus", positive=True)
    b = (1 + e**2 * lo**2) * a
    z = sp.Symbol("z")  # beta^-m, which goes to 0
    vr = (1 - z) / (b - 1) * (2 * e - 48 * eps * e**2 * hi) * a - (
        2 / lo + 48 * e**2 * hi * eps * a * (1 - z) / (b - 1)
    )
    sarah = a * (2 * e * (1 - z) / (b - 1) - 48 * eps * e**2 * hi * ((1 - z) + (1 / b - z)) / (b - 1)) - (
        2 / lo + 48 * e**2 * hi * eps * a / b
    )
    quadratic = (48 * eps * a * hi + a * lo) * e**2 - a * e + (a - 1) / lo
    for left in (vr, sarah):
        assert sp.simplify(sp.cancel(left.subs(z, 0) * (b - 1) / 2 + quadratic)) == 0


@given(ALPHAS, curves())
def test_the_ends_of_the_intervals_are_roots_and_the_recommended_rate_is_the_middle(a, curve):
    small = 1 + (a - 1) / (200 * curve["eps_I"] * curve["rho_plus"] / curve["rho_minus"] + 4)
    for value in (a, small):
        vr, sarah = theory.vr_eta_interval(alpha=value, **curve), theory.sarah_eta_interval(alpha=value, **curve)
        kappa = curve["rho_plus"] / curve["rho_minus"]
        limit = 1 + 1 / (192 * curve["eps_I"] * kappa + 3)
        assume(abs(value - limit) > 1e-9)
        assert bool(vr) == bool(sarah) == (value < limit)
        if not vr:
            continue
        assert sarah.low == pytest.approx(vr.low, rel=1e-6, abs=1e-15)
        assert sarah.high == pytest.approx(vr.high, rel=1e-6)
        assert theory.vr_eta(**curve) == pytest.approx((vr.low + vr.high) / 2, rel=1e-6)
        assert vr.high <= 1 / (48 * curve["eps_I"] * curve["rho_plus"]) * (1 + 1e-9)  # the paper's min is no news
        eta = vr.low + 0.5 * (vr.high - vr.low)
        m = theory.vr_least_m(eta=eta, alpha=value, **curve)
        ratio = [
            theory.vr_gamma(eta=eta, m=steps, alpha=value, **curve)
            / theory.vr_delta(eta=eta, m=steps, alpha=value, **curve)
            for steps in (m + 1, max(1, m - 2))
        ]
        assert ratio[0] < 1
        assert m < 3 or ratio[1] > 1


@given(ALPHAS, curves(), st.floats(1e-6, 1.0), st.integers(1, 60))
def test_delta_and_gamma_are_the_unrolled_recursion(a, curve, step, m):
    eta = step / curve["rho_plus"] / a
    b = theory.beta(eta=eta, alpha=a, rho_minus=curve["rho_minus"])
    powers = sum(b**t for t in range(m))
    noise = 48 * curve["eps_I"] * eta**2 * curve["rho_plus"] * a
    assert theory.vr_delta(eta=eta, m=m, alpha=a, **curve) == pytest.approx(
        powers * 2 * eta * a - powers * noise, rel=1e-6, abs=1e-9 * powers * (eta * a + noise)
    )
    assert theory.vr_gamma(eta=eta, m=m, alpha=a, **curve) == pytest.approx(
        2 * b**m / curve["rho_minus"] + powers * noise, rel=1e-6
    )
    if m < 2:
        return
    # SARAH: sum over t = 1 .. m-1, each with the gap of the step before
    new = sum(b ** (m - 1 - t) * (2 * eta * a - noise) for t in range(1, m))
    new -= sum(b ** (m - 1 - t) * noise for t in range(2, m))
    assert theory.sarah_delta(eta=eta, m=m, alpha=a, **curve) == pytest.approx(
        new, rel=1e-6, abs=1e-9 * powers * (eta * a + noise)
    )
    old = 2 * b ** (m - 1) / curve["rho_minus"] + b ** (m - 2) * noise
    assert theory.sarah_gamma(eta=eta, m=m, alpha=a, **curve) == pytest.approx(old, rel=1e-9)


@given(ALPHAS, curves(), st.floats(0.01, 1.0), st.integers(1, 50), st.floats(1e-4, 1.0))
def test_pms_interval_is_where_gamma_is_below_one(a, curve, share, n, step):
    p = share * n
    eta = step / curve["rho_plus"]
    rate = theory.pm_gamma(eta=eta, alpha=a, p=p, n=n, **curve)
    assume(abs(rate - 1) > 1e-9)
    assert (rate < 1) == (eta in theory.pm_eta_interval(alpha=a, p=p, n=n, **curve))
    best = theory.pm_eta(**curve)
    assert theory.pm_gamma(eta=best, alpha=a, p=p, n=n, **curve) <= rate * (1 + 1e-9)


def test_pms_interval_can_be_open_with_a_full_refresh():
    curve = {"eps_I": 2.0, "rho_minus": 1.0, "rho_plus": 1.0}
    found = theory.pm_eta_interval(alpha=1.001, p=10, n=10, **curve)
    assert found
    assert theory.pm_eta(**curve) in found
    assert theory.pm_gamma(eta=theory.pm_eta(**curve), alpha=1.001, p=10, n=10, **curve) < 1


@given(curves(), st.floats(1e-3, 1e3))
def test_no_rate_depends_on_the_units_of_F(curve, unit):
    other = curve | {"rho_minus": curve["rho_minus"] * unit, "rho_plus": curve["rho_plus"] * unit}
    for rate in (theory.vr_eta, theory.pm_eta, theory.szoht_eta):
        assert rate(**other) * unit == close(rate(**curve))
    eta = theory.vr_eta(**curve)
    for gamma, delta in ((theory.vr_gamma, theory.vr_delta), (theory.sarah_gamma, theory.sarah_delta)):
        one = gamma(eta=eta, m=9, alpha=1.2, **curve) / delta(eta=eta, m=9, alpha=1.2, **curve)
        assert gamma(eta=eta / unit, m=9, alpha=1.2, **other) / delta(eta=eta / unit, m=9, alpha=1.2, **other) == (
            pytest.approx(one, rel=1e-6)
        )
    assert theory.pm_gamma(eta=eta / unit, alpha=1.2, p=1, n=3, **other) == close(
        theory.pm_gamma(eta=eta, alpha=1.2, p=1, n=3, **curve)
    )


@given(CURVES, KAPPAS, EPS, st.integers(2, 40), st.floats(1e-6, 1e-2), st.floats(0, 10), st.floats(0, 10))
def test_system_errors_are_what_the_proofs_sum_up(lo, kappa, eps_I, m, mu, F_inf, f_inf):
    hi, s, d, a, eta = lo * kappa, 7, 30, 1.3, 0.01 / lo / kappa
    e_mu, e_abs, e_Ic = 11.0 * hi**2, 13.0 * hi**2, eps_I / 2
    common = {"eps_mu": e_mu, "eps_abs": e_abs, "eps_I": eps_I, "eps_Ic": e_Ic, "d": d, "s": s, "mu": mu}
    at = theory.AtOptimum(F_inf, f_inf)
    b = (1 + eta**2 * lo**2) * a
    left = (4 * eps_I + 2) * s + 4 * e_Ic * (d - s)
    step = eta**2 * (2 * 3 * (left * f_inf + 2 * e_abs * mu**2) + 3 * s * F_inf**2) + e_mu * mu**2 / lo**2
    for errors, steps in ((theory.vr_errors, m), (theory.sarah_errors, m - 1)):
        gradients, smoothing = errors(eta=eta, m=m, alpha=a, rho_minus=lo, at_optimum=at, distance=2.0, **common)
        total = sum(b**t for t in range(steps)) * a * step
        cross = 2 * b**steps / lo * math.sqrt(s) * F_inf * 2.0
        assert gradients + smoothing == pytest.approx(total + cross, rel=1e-6)
        none = errors(eta=eta, m=m, alpha=a, rho_minus=lo, **common)
        assert none[0] == 0
        assert none[1] == pytest.approx(smoothing, rel=1e-12)
    L_mu, L_r = theory.pm_errors(
        eta=eta, alpha=a, rho_minus=lo, rho_plus=hi, A_r=5.0, at_optimum=at, distance=2.0, next_distance=1.0, **common
    )
    assert L_mu == pytest.approx(
        hi / 2 * a * (e_mu * mu**2 / lo**2 + eta**2 * (3 * 2 * e_abs * mu**2 + 3 * 5.0)), rel=1e-9
    )
    noise = hi / 2 * a * eta**2 * 3 * (left * f_inf + s * F_inf**2)
    assert L_r == pytest.approx(math.sqrt(s) * F_inf * (kappa * b * 2 + 1) + noise, rel=1e-9, abs=1e-12)


def test_the_step_bound_holds_for_an_exact_gradient_step():
    problem = zt.problems.quadratic(d=8, k_true=2, condition=5, seed=0)
    star, theta, eta = problem.centre, np.eye(8)[0], 0.4
    g = problem.gradient(theta)
    after = zt.hard_threshold(theta - eta * g, 4)
    bound = theory.step_bound(
        eta=eta,
        alpha=theory.alpha(k=4, k_star=2),
        rho_minus=0.2,
        eps_mu=0.0,
        mu=1e-9,
        distance_square=((theta - star) ** 2).sum(),
        second_moment=(g**2).sum(),
        gap=problem.F(theta) - problem.F(star),
    )
    assert ((after - star) ** 2).sum() <= bound


@given(st.integers(1, 30), st.integers(1, 20), st.data())
def test_a_row_of_the_memory_is_as_old_as_a_geometric_law_says(r, n, data):
    p = data.draw(st.integers(1, n))
    weights = theory.memory_weights(r=r, p=p, n=n)
    assert weights.sum() == close(1)
    stale = 1.0  # not refreshed since the start
    for u in range(r - 1, 0, -1):
        assert weights[u] == close(stale * p / n)
        stale *= 1 - p / n
    assert weights[0] == pytest.approx(stale, abs=1e-12)


@given(ALPHAS, curves(), st.integers(1, 20), st.floats(1e-3, 1.0), st.data())
def test_the_rate_of_pm_is_that_of_the_iterate_and_the_memory_together(a, curve, n, step, data):
    p, eta = data.draw(st.integers(1, n)), step / curve["rho_plus"] / curve["eps_I"]
    rate = theory.pm_rate(eta=eta, alpha=a, p=p, n=n, **curve)
    own = theory.pm_gamma(eta=eta, alpha=a, p=p, n=n, **curve) - 1 + p / n
    noise = 3 * 16 * curve["eps_I"] * curve["rho_plus"] * eta**2 * a * curve["rho_plus"] / 2  # of the memory, in a step
    matrix = np.array([[own, noise], [p / n, 1 - p / n]])
    assert rate == pytest.approx(np.abs(np.linalg.eigvals(matrix)).max(), rel=1e-6)
    assume(abs(own + noise - 1) > 1e-9)
    assert (rate < 1) == (own + noise < 1)


@pytest.mark.parametrize("p", [1, 5, 10])
def test_in_the_best_case_pm_needs_the_alpha_of_vr_whatever_p_is(p):
    curve = {"eps_I": 2.0, "rho_minus": 1.0, "rho_plus": 1.0, "p": p, "n": 10}
    limit, eta = 1 + 1 / 387, 1 / 194  # the eta with the smallest sum 1 + 97 eta^2 - eta of the first row
    assert theory.pm_rate(alpha=limit - 1e-6, eta=eta, **curve) < 1
    assert all(theory.pm_rate(alpha=limit + 1e-6, eta=one, **curve) > 1 for one in np.geomspace(1e-6, 10, 500))
    assert theory.alpha(k=theory.vr_least_k(k_star=1, kappa=1.0), k_star=1) == pytest.approx(limit, rel=1e-9)


def test_the_mean_gap_of_the_memory_is_that_of_memories_that_are_run():
    # 20,000 rows of a memory, 5 sigma
    gaps, n, p = np.array([9.0, 4.0, 2.0, 1.0]), 5, 2
    rng = np.random.default_rng(0)
    row = np.zeros(20_000, int)
    for u in range(1, gaps.size):
        row[rng.random(row.size) < p / n] = u
    seen = gaps[row]
    assert abs(seen.mean() - theory.past_gap(gaps=gaps, p=p, n=n)) < 5 * seen.std() / math.sqrt(row.size)
    assert theory.past_gap(gaps=[3.0], p=p, n=n) == 3.0  # filled at the start


# The lemmas of the appendix on E||g_I||^2, against estimates that are drawn.


class Bowls:
    """f_i = (theta - theta*)' A_i (theta - theta*) / 2 + h_i.(theta - theta*), where the h_i have the mean 0."""

    def __init__(self, spread: float) -> None:
        rng = np.random.default_rng(11)
        self.n, self.d, self.q, self.mu, self.I = 4, 14, 3, 1e-3, np.arange(6)
        self.A = rng.uniform(0.5, 1.5, (self.n, self.d))
        h = spread * rng.standard_normal((self.n, self.d))
        self.h = h - h.mean(axis=0)
        self.at = theory.AtOptimum(0.0, float((np.abs(self.h).max(axis=1) ** 2).mean()))
        self.constants = {
            "eps_I": theory.eps_I(d=self.d, q=self.q, s=6, s2=self.d),
            "eps_Ic": theory.eps_Ic(d=self.d, q=self.q, s=6, s2=self.d),
            "eps_abs": theory.eps_abs(d=self.d, q=self.q, s=6, s2=self.d, rho_plus=float(self.A.max())),
            "rho_plus": float(self.A.max()), "d": self.d, "s": 6, "mu": self.mu, "at_optimum": self.at,
        }  # fmt: skip

    def gap(self, e: np.ndarray) -> float:
        """F - F* at theta* + e."""
        return float(0.5 * self.A.mean(axis=0) @ e**2)

    def estimate(self, e: np.ndarray, i: int, u: np.ndarray) -> np.ndarray:
        """Eq. (3) for f_i at theta* + e, which is exact for a quadratic but for mu."""
        slopes = u @ (self.A[i] * e + self.h[i]) + self.mu / 2 * (u**2) @ self.A[i]
        return self.d / len(u) * slopes @ u

    def directions(self, rng: np.random.Generator) -> np.ndarray:
        u = rng.standard_normal((self.q, self.d))
        return u / np.linalg.norm(u, axis=1, keepdims=True)


DRAWS = 4000  # of each estimate below: a bound counts as exceeded beyond 4 standard errors
LOOSEST = 1000  # a bound that is further from the truth would hold whatever the method did


def check_bound(norms: np.ndarray, bound: float) -> None:
    """Check that a bound on a mean holds, and that it is not far away."""
    assert norms.mean() - 4 * norms.std() / math.sqrt(norms.size) <= bound
    assert bound <= LOOSEST * norms.mean()


POINTS = [(1.0, 1.0), (1.0, 0.1), (0.02, 1.0)]  # how far the current and the earlier point are from theta*


@pytest.mark.parametrize("spread", [0.0, 0.5])
@pytest.mark.parametrize(("near", "far"), POINTS)
def test_the_second_moment_of_pm_is_within_its_bound(spread, near, far):
    box, rng = Bowls(spread), np.random.default_rng(0)
    e, old = (np.where(np.arange(box.d) < 5, reach, 0.0) for reach in (near, far))
    norms = np.empty(DRAWS)
    for r in range(DRAWS):
        held = [box.estimate(old, j, box.directions(rng)) for j in range(box.n)]
        g = box.estimate(e, r % box.n, box.directions(rng)) - held[r % box.n] + np.mean(held, axis=0)
        norms[r] = (g[box.I] ** 2).sum()
    A_r = theory.memory_error(past_gap=box.gap(old), **box.constants)
    check_bound(norms, theory.pm_second_moment(gap=box.gap(e), A_r=A_r, **box.constants))


@pytest.mark.parametrize("spread", [0.0, 0.5])
@pytest.mark.parametrize(("near", "far"), POINTS)
@pytest.mark.parametrize("shared", [True, False])
def test_the_second_moment_of_vr_is_within_its_bound(spread, near, far, shared):
    box, rng = Bowls(spread), np.random.default_rng(1)
    e, anchor = (np.where(np.arange(box.d) < 5, reach, 0.0) for reach in (near, far))
    norms = np.empty(DRAWS)
    for r in range(DRAWS):
        u, v = box.directions(rng), box.directions(rng)
        mean = np.mean([box.estimate(anchor, j, v) for j in range(box.n)], axis=0)
        back = box.estimate(anchor, r % box.n, u if shared else box.directions(rng))
        norms[r] = ((box.estimate(e, r % box.n, u) - back + mean)[box.I] ** 2).sum()
    bound = theory.vr_second_moment(gap=box.gap(e), anchor_gap=box.gap(anchor), **box.constants)
    check_bound(norms, bound)


@pytest.mark.parametrize("spread", [0.0, 0.5])
@pytest.mark.parametrize(("near", "far"), POINTS)
@pytest.mark.parametrize("kept", [0.0, 3.0])
def test_the_second_moment_of_sarah_is_within_its_bound_given_what_it_has_kept(spread, near, far, kept):
    box, rng = Bowls(spread), np.random.default_rng(2)
    e, before = (np.where(np.arange(box.d) < 5, reach, 0.0) for reach in (near, far))
    carried = box.A.mean(axis=0) * before + kept * np.eye(box.d)[0]  # grad F, and an error
    norms = np.empty(DRAWS)
    for r in range(DRAWS):
        u = box.directions(rng)
        g = box.estimate(e, r % box.n, u) - box.estimate(before, r % box.n, u) + carried
        norms[r] = (g[box.I] ** 2).sum()
    gaps = {"gap": box.gap(e), "previous_gap": box.gap(before)}
    check_bound(norms, theory.sarah_second_moment(kept_error=kept**2, **gaps, **box.constants))


def test_the_second_moments_are_the_sums_of_their_proofs():
    constants = {"eps_I": 3.0, "eps_Ic": 1.0, "eps_abs": 50.0, "rho_plus": 2.0, "d": 20, "s": 5, "mu": 0.1}
    at = theory.AtOptimum(0.3, 0.2)
    one = lambda gap: 4 * 3 * (4 * 2 * gap) + (4 * 3 * 5 + 2 * 5 + 4 * 15) * 0.2 + 2 * 50 * 0.01
    F = 5 * 0.3**2
    given_ = {**constants, "at_optimum": at}
    assert theory.estimate_error(gap=7.0, **given_) == close(one(7))
    assert theory.memory_error(past_gap=7.0, **given_) == close(one(7))
    assert theory.pm_second_moment(gap=7.0, A_r=11.0, **given_) == close(3 * (one(7) + 11 + F))
    assert theory.vr_second_moment(gap=7.0, anchor_gap=2.0, **given_) == close(3 * (one(7) + 2 * one(2) + F))
    sarah = theory.sarah_second_moment(gap=7.0, previous_gap=2.0, kept_error=9.0, **given_)
    assert sarah == close(4 * (one(7) + one(2) + F + 9))


@pytest.mark.parametrize("stale", [False, True])
def test_theorem_2_holds_from_a_fresh_and_from_a_stale_memory(stale):
    # 2,000 steps of SAGA from one point; the mean gap after a step may exceed the bound by 4 standard errors at most
    box, rng = Bowls(0.0), np.random.default_rng(3)
    box.mu = 1e-6  # so that the memory, and not mu, is what counts
    k, k_star, draws = 4, 2, 2000
    star = np.where(np.arange(box.d) < k_star, 1.5, 0.0)
    far = np.where(np.arange(box.d) < k, 3.0, 0.0)
    e, old = (np.zeros(box.d), far) if stale else (far, far)  # the stale memory is met by an iterate at theta*
    lo, hi = float(box.A.mean(axis=0).min()), box.constants["rho_plus"]
    a = theory.alpha(k=k, k_star=k_star)
    size = {"d": box.d, "q": box.q, "s": 2 * k + k_star, "s2": box.d}
    constants = {
        "eps_I": theory.eps_I(**size), "eps_Ic": theory.eps_Ic(**size), "d": box.d, "s": size["s"], "mu": box.mu,
        "eps_abs": theory.eps_abs(**size, rho_plus=hi), "rho_plus": hi,
    }  # fmt: skip
    eta = theory.pm_eta(eps_I=constants["eps_I"], rho_minus=lo, rho_plus=hi)
    gaps = np.empty(draws)
    for r in range(draws):
        held = [box.estimate(old, j, box.directions(rng)) for j in range(box.n)]
        g = box.estimate(e, r % box.n, box.directions(rng)) - held[r % box.n] + np.mean(held, axis=0)
        gaps[r] = box.gap(zt.hard_threshold(star + e - eta * g, k) - star)
    A_r = theory.memory_error(past_gap=theory.past_gap(gaps=[box.gap(old)], p=1, n=box.n), **constants)
    rest = theory.pm_errors(
        eta=eta, alpha=a, rho_minus=lo, A_r=A_r,
        eps_mu=theory.eps_mu(d=box.d, s=size["s"], rho_plus=hi), **constants,
    )  # fmt: skip
    curve = {"eps_I": constants["eps_I"], "rho_minus": lo, "rho_plus": hi}
    own = theory.pm_gamma(eta=eta, alpha=a, p=1, n=box.n, **curve) - 1 + 1 / box.n
    bound = own * box.gap(e) + sum(rest)
    check_bound(gaps, bound)
    # what the memory adds is what makes it hold: without the past gaps, a step from theta* is beyond
    noise = theory.memory_error(past_gap=0.0, **constants)
    without = theory.pm_errors(
        eta=eta, alpha=a, rho_minus=lo, A_r=noise,
        eps_mu=theory.eps_mu(d=box.d, s=size["s"], rho_plus=hi), **constants,
    )  # fmt: skip
    assert (gaps.mean() > own * box.gap(e) + sum(without)) == stale


def test_the_outgoing_law_is_that_of_the_weighted_sum():
    law = theory.outgoing_law(beta=1.5, m=4)
    assert law == pytest.approx(np.array([1.5**3, 1.5**2, 1.5, 1]) / (1.5**3 + 1.5**2 + 2.5))
    assert theory.outgoing_law(beta=1.0, m=4) == pytest.approx([0.25] * 4)


def test_szohts_floor_is_the_fixed_point_of_its_recursion():
    given_ = {"eta": 0.02, "rho_minus": 0.5, "eps_mu": 9.0, "eps_abs": 90.0, "mu": 1e-3}
    rate, square = 0.97, 1.05
    x = 0.0
    for _ in range(2000):
        x = rate**2 * x + square * 1e-6 * (4 * 0.02 * 9 / (3 * 0.5) + 0.02**2 * 90)
    assert theory.szoht_floor(rate=rate, gamma_square=square, **given_) == pytest.approx(x, rel=1e-6)


# Complexities.


@given(KAPPAS, st.integers(1, 500), st.integers(1, 500), st.floats(1e-9, 0.5))
def test_orders(kappa, n, q, eps):
    log = math.log(1 / eps)
    m = 1 / (1 / kappa + 1 / kappa**3)  # kappa^3 / (kappa^2 + 1)
    assert theory.vr_estimates(n=n, kappa=kappa, eps=eps) == close((n + m) * log)
    assert theory.vr_queries(n=n, q=q, kappa=kappa, eps=eps) == close((q + 1) * (n + m) * log)
    assert theory.vr_thresholdings(kappa=kappa, eps=eps) == close(m * log)
    assert theory.szoht_queries(k=q, d=4 * n, s2=n, kappa=kappa, eps=eps) == close((q + 4) * kappa**2 * log)
    assert theory.szoht_thresholdings(kappa=kappa, eps=eps) == close(kappa**2 * log)
    assert theory.sarah_queries is theory.vr_queries


@given(st.floats(1, 20), st.floats(1, 3), st.floats(1, 50), st.floats(0.01, 0.5))
def test_hzo_hts_order_is_that_of_its_schedule(kappa, alpha, tau, eps):
    steps, directions = theory.hzo_ht_schedule(kappa=kappa, alpha=alpha, tau=tau, eps=eps)
    omega = 1 - 1 / (8 * alpha * kappa)
    assert omega**steps <= eps < omega ** (steps - 1) * (1 + 1e-9)
    geometric = tau * (omega**-steps - 1) / (1 / omega - 1)
    assert geometric - 1e-6 <= directions <= geometric + steps
    order = theory.hzo_ht_queries(kappa=kappa, alpha=alpha, tau=tau, eps=eps)
    assert 0.3 < geometric / (order * (1 - eps)) < 1.3
    assert 0.9 < theory.hzo_ht_thresholdings(kappa=kappa, alpha=alpha, eps=eps) / steps < 1.2 or steps < 10


def test_the_table_of_epochs_is_what_the_library_does():
    problem = zt.problems.quadratic(d=6, k_true=2, n=5, seed=0)
    rows = {row.method: row for row in theory.epochs(d=6, n=5, q=4, m=3, p=2)}
    estimator = zt.Estimator(q=4)
    for method in (zt.VRSZHT(eta=0.01, m=3), zt.SARAHSZHT(eta=0.01, m=3)):
        row = rows[zt.minimize(problem, None, 2, budget=999, method=method, seed=0).method and _name(method)]
        result = zt.minimize(
            problem, None, 2, budget=10 * int(row.calls) + 5, method=method, estimator=estimator, seed=0
        )
        assert (result.nfev - 5, result.nht) == (10 * row.calls, 10 * row.thresholdings)
    for method in (zt.SAGASZHT(eta=0.01), zt.PSAGASZHT(eta=0.01, p=2)):
        row = rows[_name(method)]
        budget = 5 * 5 + 10 * int(row.calls) + 5
        result = zt.minimize(problem, None, 2, budget=budget, method=method, estimator=estimator, seed=0)
        assert (result.nfev, result.nht) == (budget, 10 * row.thresholdings)
    assert (rows["saga-szht"].space, rows["vr-szht"].time) == ("O(dn)", "O(dn)")


def _name(method):
    return next(name for name, known in zt.methods.available().items() if type(method) is known)


# Restricted constants.


def test_restricted_constants_by_hand():
    A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 5.0]])
    assert [theory.restricted(A, s=s).rho_plus for s in (1, 2, 3)] == pytest.approx([5, 5, 5])
    assert [theory.restricted(A, s=s).rho_minus for s in (1, 2, 3)] == pytest.approx([2, 1, 1])
    assert theory.restricted(A, s=2).kappa == pytest.approx(5)
    assert theory.restricted(A, s=2).exact


@given(st.integers(2, 7), st.data())
@settings(max_examples=30)
def test_restricted_constants_are_extreme_over_supports_and_nested(d, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    stack = np.stack([M @ M.T + 0.1 * np.eye(d) for M in rng.standard_normal((3, d, d))])
    found = [theory.restricted(stack, s=s) for s in range(1, d + 1)]
    for s, one in enumerate(found, 1):
        blocks = [np.ix_(S, S) for S in combinations(range(d), s)]
        assert one.rho_minus == pytest.approx(min(np.linalg.eigvalsh(stack.mean(0)[b])[0] for b in blocks))
        assert one.rho_plus == pytest.approx(max(np.linalg.eigvalsh(A[b])[-1] for A in stack for b in blocks))
    assert all(a.kappa <= b.kappa * (1 + 1e-9) for a, b in pairwise(found))


def test_sampled_supports_bound_what_is_exact(monkeypatch):
    rng = np.random.default_rng(3)
    M = rng.standard_normal((12, 12))
    A = M @ M.T / 12 + 0.3 * np.eye(12)
    exact = theory.restricted(A, s=4)
    monkeypatch.setattr("zerothresh.theory.curvature.MOST_SUPPORTS", 10)
    bounds = theory.restricted(A, s=4, supports=50)
    assert bounds.how == "sampled"
    assert not bounds.exact
    assert bounds.minus.low <= exact.rho_minus <= bounds.minus.high
    assert bounds.plus.low <= exact.rho_plus <= bounds.plus.high
    assert bounds.plus.low < exact.rho_plus or bounds.minus.high > exact.rho_minus  # 50 of 495 supports miss some


@pytest.mark.parametrize("s", [2, 8])
def test_curvature_samples_tell_the_spectrum_of_a_block(s):
    # 4000 directions: ends within 4 % of Wolkowicz and Styan's, which have a closed form (about 4 sigma)
    rng = np.random.default_rng(5)
    eigenvalues = np.linspace(1, 3, s)
    u = rng.standard_normal((4000, s))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    found = theory.spectrum((u**2) @ eigenvalues, s=s, errors=0.0)
    m, deviation = eigenvalues.mean(), eigenvalues.std()
    assert found.mean == pytest.approx(m, rel=0.03)
    assert found.farthest == pytest.approx((m - deviation * (s - 1) ** 0.5, m + deviation * (s - 1) ** 0.5), abs=0.12)
    assert found.nearest == pytest.approx((m - deviation / (s - 1) ** 0.5, m + deviation / (s - 1) ** 0.5), abs=0.12)
    assert found.farthest[0] - 0.12 <= 1
    assert found.farthest[1] + 0.12 >= 3
    wider = theory.spectrum((u**2)[:40] @ eigenvalues, s=s, errors=2.0)
    assert wider.farthest[0] < theory.spectrum((u**2)[:40] @ eigenvalues, s=s, errors=0.0).farthest[0]


def test_one_curved_direction_is_found_exactly():
    # rank one: the bound of Wolkowicz and Styan is an equality
    rng = np.random.default_rng(6)
    u = rng.standard_normal((20000, 5))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    assert theory.spectrum(7 * u[:, 0] ** 2, s=5, errors=0.0).farthest[1] == pytest.approx(7, rel=0.03)


# What is refused.


@pytest.mark.parametrize(
    ("call", "condition"),
    [
        (lambda: theory.alpha(k=5, k_star=5), "k > k*"),
        (lambda: theory.eps_I(d=5, q=3, s=2, s2=6), "s2 <= d"),
        (lambda: theory.eps_Ic(d=5, q=0, s=2, s2=2), "q must be at least 1"),
        (lambda: theory.eps_abs(d=5, q=1, s=6, s2=2, rho_plus=1), "s <= d"),
        (lambda: theory.eps_mu(d=5, s=2, rho_plus=-1), "rho_plus must be a finite number above 0"),
        (lambda: theory.vr_eta(eps_I=3, rho_minus=2, rho_plus=1), "rho_s^- <= rho_s^+"),
        (lambda: theory.vr_eta_interval(alpha=0.5, eps_I=3, rho_minus=1, rho_plus=1), "alpha >= 1"),
        (lambda: theory.vr_eta_interval(alpha=1.5, eps_I=1, rho_minus=1, rho_plus=1), "eps_I >= 2"),
        (lambda: theory.pm_eta_interval(alpha=1.5, eps_I=3, rho_minus=1, rho_plus=1, p=4, n=3), "p <= n"),
        (lambda: theory.szoht_k(d=9, q=3, s2=2, k_star=3, kappa=1), "k* < d / 3"),
        (lambda: theory.szoht_k(d=90, q=3, s2=2, k_star=3, kappa=0.9), "kappa_s = rho_s^+ / rho_s^- >= 1"),
        (lambda: theory.szoht_q(d=100, s2=3, k_star=1, kappa=1), "needs k >= 72"),
        (lambda: theory.szoht_q(d=1000, s2=3, k_star=1, kappa=1, k=500), "k <= (d - k*) / 2"),
        (lambda: theory.vr_q(d=1000, s2=3, k_star=1, kappa=1, k=100), "needs k >= 599,077"),
        (lambda: theory.vr_least_m(eta=1, alpha=1.5, eps_I=3, rho_minus=1, rho_plus=1), "eta in vr_eta_interval"),
        (lambda: theory.vr_delta(eta=9, m=10**4, alpha=1.5, eps_I=3, rho_minus=1, rho_plus=1), "take a smaller m"),
        (lambda: theory.sarah_delta(eta=1, m=1, alpha=1.5, eps_I=3, rho_minus=1, rho_plus=1), "m >= 2"),
        (lambda: theory.vr_estimates(n=3, kappa=2, eps=1.5), "eps < 1"),
        (lambda: theory.szoht_queries(k=3, d=5, s2=6, kappa=2, eps=0.1), "1 <= s2 <= d"),
        (lambda: theory.epochs(d=3, n=4, q=2, p=5), "p <= n"),
        (lambda: theory.restricted(np.eye(3), s=4), "s <= d"),
        (lambda: theory.restricted(np.ones((2, 3)), s=1), "symmetric"),
        (lambda: theory.of_samples(np.ones(3), s=2), "at least 4 directions"),
        (lambda: theory.hzo_ht_queries(kappa=0.5, alpha=1, tau=1, eps=0.1), "kappa_s"),
        (lambda: theory.memory_weights(r=0, p=1, n=2), "r must be at least 1"),
    ],
)
def test_what_is_out_of_range_raises_with_the_condition_that_it_breaks(call, condition):
    with pytest.raises(ValueError) as caught:
        call()
    assert condition in str(caught.value)


def test_all_of_the_theory_is_keyword_only_and_cites():
    for name in theory.__all__:
        function = getattr(theory, name)
        if not inspect.isfunction(function) or name in ("restricted", "of_samples", "spectrum"):
            continue
        kinds = {p.kind for p in inspect.signature(function).parameters.values()}
        assert kinds == {inspect.Parameter.KEYWORD_ONLY}, name
        assert function.__doc__, name


@pytest.mark.slow
def test_the_benchmark_runs_and_finds_the_inequalities_to_hold():
    page = Path(__file__).parents[1] / "benchmarks" / "theory.py"
    done = subprocess.run([sys.executable, str(page), "--quick", "inequalities"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = re.search(r"largest measured / bound of what is proved: ([\d.]+)", done.stdout)
    assert found
    assert float(found[1]) <= 1.0
