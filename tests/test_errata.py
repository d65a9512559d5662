"""Each erratum of the printed theory, demonstrated by a test."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import zerothresh as zt
from zerothresh import theory
from zerothresh.sampling.directions import draw
from zerothresh.theory import errata

SHOWN: dict[str, Callable[..., None]] = {}


def shows(key: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Mark a test as the demonstration of an erratum."""

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        assert key not in SHOWN, f"two tests show {key}"
        SHOWN[key] = test
        return test

    return mark


CURVES, KAPPAS, QS = st.floats(0.01, 100.0), st.floats(1.0, 50.0), st.integers(1, 10**6)


@shows("eps-Ic-denominator")
@given(st.integers(2, 500), QS, st.data())
def test_the_printed_eps_Ic_is_negative(d, q, data):
    s, s2 = data.draw(st.integers(1, d)), data.draw(st.integers(2, d))
    printed = errata.printed_eps_Ic(d=d, q=q, s=s, s2=s2)
    assert printed < 0 <= theory.eps_Ic(d=d, q=q, s=s, s2=s2)
    assert -printed / (d - 1) == pytest.approx(theory.eps_Ic(d=d, q=q, s=s, s2=s2))


@shows("support-size")
def test_the_printed_support_may_have_four_k_and_more_elements():
    d, k, k_star = 40, 3, 2
    place = np.arange(d)
    star, now, after = (place < k_star) * 1.0, (place == 10) * 1.0, (place == 20) * 1.0
    now[11:13] = after[21:23] = 1.0  # supports of k elements each
    gradient = np.where(place >= 30, 1.0 + place, 0.0)  # of F at theta*: large somewhere else
    tilde = set(np.flatnonzero(zt.hard_threshold(gradient, 2 * k))) | set(np.flatnonzero(star))
    iterates = set(np.flatnonzero(now)) | set(np.flatnonzero(after))
    assert len(tilde | iterates) == 4 * k + k_star > theory.sparsity(k=k, k_star=k_star)
    assert len(iterates | set(np.flatnonzero(star))) == theory.sparsity(k=k, k_star=k_star)  # the one of the proofs


@shows("lemma-2-whole-gradient")
def test_the_whole_gradient_is_not_estimated_by_a_part_of_it():
    d, s, q = 10, 3, 10**9  # so many directions that the estimate is exact
    size = {"d": d, "q": q, "s": s, "s2": d}
    g = np.where(np.arange(d) < s, 0.0, 1.0)  # all of it outside of I
    left = (g**2).sum()  # ||est_I f - grad f||^2 with est_I f = grad_I f = 0
    right = 2 * (theory.eps_I(**size) + 1) * 0 + 2 * theory.eps_Ic(**size) * left
    assert left > 1e6 * right


@shows("rho-at-s2")
def test_smoothness_along_sparse_directions_says_nothing_of_dense_ones():
    d, s = 100, 5
    A = np.ones((d, d))  # f = (sum of x)^2 / 2
    sparse = s  # rho_s^+: the s x s block of ones
    u = np.full(d, d**-0.5)
    assert theory.restricted(A, s=s, supports=5).rho_plus == pytest.approx(sparse)
    assert u @ A @ u == pytest.approx(d)  # along a direction with s2 = d non-zeros
    assert u @ A @ u > 10 * sparse


@shows("random-support")
def test_on_the_support_that_the_draw_chooses_the_second_moment_is_beyond_the_bound():
    # 1,000 draws with a fixed seed; beyond the bound by more than 5 standard errors
    d, k, draws = 3000, 3, 1000
    g = np.full(d, d**-0.5)
    norms = np.empty(draws)
    for number in range(draws):
        u = np.empty((1, d))
        draw("sphere", 1, d, d, key=3, round=number, tag=1).displace(np.zeros(d), 1.0, u)
        estimate = d * (u[0] @ g) * u[0]
        norms[number] = (zt.hard_threshold(estimate, k) ** 2).sum()  # I = supp(theta^(1)) from theta^(0) = 0
    size = {"d": d, "q": 1, "s": k, "s2": d}
    bound = theory.eps_I(**size) * k / d + theory.eps_Ic(**size) * (1 - k / d)  # ||grad_I f||^2 = k/d for every I
    assert norms.mean() - 5 * norms.std() / math.sqrt(draws) > bound
    assert norms.mean() < theory.eps_I(**size | {"s": d})  # s = d holds for every I


@shows("szoht-q-s2-1")
@given(st.integers(4, 10**9), st.integers(1, 100), KAPPAS)
def test_the_printed_q_for_single_coordinates_never_suffices(d, k_star, kappa):
    k_star = min(k_star, (d - 1) // 3)
    q = errata.printed_szoht_q(d=d, s2=1, k_star=k_star, kappa=kappa)
    X = (4 * (2 * d / q + 2) + 1) * kappa**2
    least = (1 - 1 / X) * k_star * X**2
    assert least > d + k_star > (d - k_star) / 2
    assert not theory.szoht_k(d=d, q=max(1, math.floor(q)), s2=1, k_star=k_star, kappa=kappa)


@shows("szoht-q-cap")
def test_the_printed_q_may_leave_only_k_that_are_too_large():
    size = {"d": 300, "s2": 300, "k_star": 2, "kappa": 1.0}
    printed = math.ceil(errata.printed_szoht_q(**size))
    assert not theory.szoht_k(q=printed, **size)
    roomy = size | {"d": 10**6, "s2": 10**6}
    assert theory.szoht_q(**roomy) == math.ceil(errata.printed_szoht_q(**roomy))  # otherwise it is right


@shows("n-square")
def test_components_that_are_there_twice_change_nothing():
    # The bias of the estimate of F = mean f_i, and the recursion: the same for f_i and for each f_i twice
    problem = zt.problems.logistic(n=3, d=4, k_true=2, seed=0)
    twice = zt.problems.Logistic(np.tile(problem.X, (2, 1)), np.tile(problem.y, 2), problem.lam)
    theta = np.array([0.3, 0.0, -0.2, 0.0])
    runs = []
    for one in (problem, twice):
        opt = zt.minimize(
            one, theta, 2, budget=2 * one.n * 5, method=zt.FGZOHT(eta=1.0), estimator=zt.Estimator(q=4), seed=0
        )
        runs.append(opt.x_last)
    assert np.allclose(*runs, atol=1e-9)
    printed = lambda n: n**2 * theory.eps_mu(d=4, s=4, rho_plus=1.0)
    assert printed(6) == 4 * printed(3)


@shows("pm-gamma-units")
def test_the_printed_gamma_changes_with_the_units_of_F():
    # F times 100 with eta / 100 are the same iterates
    setting = {"alpha": 1.1, "eps_I": 3.0, "p": 5, "n": 10}
    one = errata.printed_pm_gamma(eta=0.01, rho_minus=1.0, rho_plus=2.0, **setting)
    other = errata.printed_pm_gamma(eta=1e-4, rho_minus=100.0, rho_plus=200.0, **setting)
    assert other < 1 < one  # diverges in one unit, converges in the other
    repaired = [theory.pm_gamma(eta=0.01 / c, rho_minus=1.0 * c, rho_plus=2.0 * c, **setting) for c in (1, 100)]
    assert repaired[0] == pytest.approx(repaired[1])


@shows("pm-memory")
def test_a_step_from_theta_star_with_a_stale_memory_is_beyond_the_printed_bound():
    # exact estimates (q to infinity, mu to 0), so that what is printed of L_mu and L_r is 0, and so is the gap
    slopes, eta, old = np.array([0.5, 1.5]), 0.01, 3.0  # f_i = a_i x^2 / 2; the memory was filled at x = 3
    held = slopes * old
    after = np.array([0.0 - eta * (0.0 - held[i] + held.mean()) for i in range(2)])  # a step from x = 0, each i
    gap = float((slopes.mean() * after**2 / 2).mean())
    curve = {"eps_I": 2.0, "rho_minus": float(slopes.mean()), "rho_plus": float(slopes.max())}
    printed = theory.pm_gamma(eta=eta, alpha=1.0, p=1, n=2, **curve) * 0.0 + 2 * 0.0 + 0.0
    assert gap > 0 == printed
    none = {"eps_abs": 0.0, "eps_Ic": 0.0, "d": 1, "s": 1, "mu": 1e-9}
    past = slopes.mean() * old**2 / 2
    A_r = theory.memory_error(past_gap=past, eps_I=2.0, rho_plus=curve["rho_plus"], **none)
    L_mu, L_r = theory.pm_errors(eta=eta, alpha=1.0, A_r=A_r, eps_mu=0.0, **curve, **none)
    assert gap <= L_mu + L_r


@shows("system-error-components")
def test_components_may_pull_at_theta_star_although_their_mean_does_not():
    centres = np.array([[1.0, 0.5], [1.0, -0.5]])  # their mean is sparse
    problem, star = zt.problems.Quadratic(np.eye(2), centres), np.array([1.0, 0.0])
    assert np.allclose(problem.gradient(star), 0)
    pulls = star - centres  # grad f_i(theta*)
    assert np.abs(pulls).max() == 0.5
    size = {"eps_I": 3.0, "eps_Ic": 1.0, "eps_abs": 1.0, "d": 2, "s": 2, "mu": 1e-9, "eps_mu": 1.0, "A_r": 0.0}
    at = theory.AtOptimum(0.0, float((np.abs(pulls).max(axis=1) ** 2).mean()))
    assert theory.pm_errors(eta=0.1, alpha=1.2, rho_minus=1.0, rho_plus=1.0, at_optimum=at, **size)[1] > 0


@shows("pm-delta-negative")
@given(st.integers(1, 9120), st.integers(1, 10**6), QS, CURVES, KAPPAS, st.integers(1, 1000), st.data())
def test_delta_is_negative_for_every_q_unless_k_star_is_in_the_thousands(k_star, more, q, lo, kappa, n, data):
    k, p = k_star + more, data.draw(st.integers(1, n))
    d = 3 * k
    s2 = data.draw(st.integers(1, d))
    size = {"eps_I": theory.eps_I(d=d, q=q, s=2 * k + k_star, s2=s2), "rho_minus": lo, "rho_plus": lo * kappa}
    a = theory.alpha(k=k, k_star=k_star)
    assert errata.printed_pm_delta(alpha=a, p=p, n=n, **size) < 0
    assert not errata.printed_pm_eta_interval(alpha=a, p=p, n=n, **size)


def test_delta_can_be_positive_where_hard_thresholding_is_at_its_worst():
    size = {"eps_I": 2.0, "rho_minus": 1.0, "rho_plus": 1.0, "p": 1, "n": 1}
    assert errata.printed_pm_delta(alpha=theory.alpha(k=9500, k_star=9499), **size) > 0
    assert errata.printed_pm_delta(alpha=theory.alpha(k=95000, k_star=9499), **size) < 0


@shows("pm-corollary-quadratic")
def test_the_printed_quadratic_is_not_that_of_the_printed_gamma():
    e, a, eps, lo, hi, share = sp.symbols("eta alpha epsilon rho_minus rho_plus share", positive=True)
    b = (1 + e**2 * lo**2) * a
    gamma = 2 * b / lo + 48 * e**2 * a * hi * eps - 2 * e * a + 1 - share
    derived = sp.Poly(sp.expand(gamma - 1), e).all_coeffs()
    printed = sp.Poly((48 * eps * a * hi + lo) * e**2 - 2 * a * e + (1 - share + 2 / lo), e).all_coeffs()
    assert [sp.simplify(x - y) for x, y in zip(derived, printed, strict=True)] == [
        sp.simplify((2 * a - 1) * lo),
        0,
        sp.simplify(2 * (a - 1) / lo - 1),
    ]
    # with alpha = 1, what is printed is gamma <= 0
    assert sp.simplify(printed[2] - (gamma - 0).subs({e: 0, a: 1})) == 0


@shows("pm-max")
def test_beyond_the_larger_root_the_quadratic_is_positive():
    # just where Delta gets positive: 1/(48 eps_I rho^+) is the larger of the two, and lies beyond the roots
    a = float(max(np.roots([1, -192, -2]))) + 1e-9
    found = errata.printed_pm_eta_interval(alpha=a, eps_I=2.0, rho_minus=1.0, rho_plus=1.0, p=1, n=1)
    assert found.high == 1 / 96
    quadratic = lambda eta: (96 * a + 1) * eta**2 - 2 * a * eta + 2
    assert quadratic(a / (96 * a + 1)) < 0 < quadratic(found.high)


@shows("pm-interval-empty")
@given(
    st.floats(1.0, 50.0), st.floats(2.0, 1e6), CURVES, KAPPAS, st.floats(0.001, 195 / 196 - 1e-6)
)  # at 195/196: a point
def test_no_saga_converges_by_the_repaired_theorem(a, eps_I, lo, kappa, share):
    curve = {"eps_I": eps_I, "rho_minus": lo, "rho_plus": lo * kappa}
    assert not theory.pm_eta_interval(alpha=a, p=share * 1000, n=1000, **curve)
    assert theory.pm_gamma(eta=theory.pm_eta(**curve), alpha=a, p=share * 1000, n=1000, **curve) >= 1 - 1e-12
    # the rate with the memory's own gap does not ask for a p: at alpha = kappa = 1, where eta has the right size
    eta = 1 / (100 * eps_I * lo)
    assert theory.pm_rate(eta=eta, alpha=1.0, eps_I=eps_I, rho_minus=lo, rho_plus=lo, p=share * 1000, n=1000) < 1


@shows("pm-eta-square")
def test_a_squared_gradient_is_not_a_squared_distance():
    # F -> c F, eta -> eta / c: distances stay, so must all that is added to squared distances
    c, eta, mu, d = 7.0, 0.1, 1e-3, 10
    eps_abs = [theory.eps_abs(d=d, q=3, s=4, s2=d, rho_plus=rho) for rho in (1.0, c)]
    printed = [6 * one * mu**2 for one in eps_abs]
    used = [6 * (eta / unit) ** 2 * one * mu**2 for unit, one in zip((1.0, c), eps_abs, strict=True)]
    assert printed[1] == pytest.approx(c**2 * printed[0])
    assert used[1] == pytest.approx(used[0])


@shows("pm-48k")
def test_the_constant_of_the_memory_lemma_is_48_rho_eps():
    eps_I, rho, gap, rest = sp.symbols("eps_I rho gap rest", positive=True)
    single = 4 * eps_I * (4 * rho * gap) + rest  # ||grad f_i - grad f_i(theta*)||^2 <= 4 rho [F - F*]
    assert sp.expand(3 * single).coeff(gap) == 48 * rho * eps_I
    # F -> c F: a squared gradient grows by c^2, and so does rho times the gap; the gap alone does not
    c = sp.Symbol("c", positive=True)
    assert sp.simplify((48 * rho * eps_I * gap).subs({rho: c * rho, gap: c * gap}) / (48 * rho * eps_I * gap)) == c**2
    # x -> t x: a squared gradient falls by t^2, and the squared gap of the lemma does not change at all
    t = sp.Symbol("t", positive=True)
    assert sp.simplify((rho * gap).subs(rho, rho / t**2) / (rho * gap)) == t**-2


@shows("memory-weights")
def test_the_printed_weights_are_a_law_for_p_1_only_and_ours_is_that_of_the_memory():
    # 20,000 memories, 5 sigma; the law of J that the library's p-SAGA uses
    r, n, p = 6, 8, 3
    assert errata.printed_memory_weights(r=r, q=1, n=n) == pytest.approx(theory.memory_weights(r=r, p=1, n=n))
    assert errata.printed_memory_weights(r=r, q=p, n=n).sum() < 0.6  # q is Hofmann's name for p
    rng = np.random.default_rng(0)
    ages = np.zeros(20_000, dtype=int)  # the step at which row 0 was refreshed last
    for u in range(1, r):
        ages[np.array([0 in rng.choice(n, p, replace=False) for _ in range(ages.size)])] = u
    seen, expected = np.bincount(ages, minlength=r) / ages.size, theory.memory_weights(r=r, p=p, n=n)
    assert (np.abs(seen - expected) < 5 * np.sqrt(expected / ages.size)).all()


@shows("gradients-left")
def test_a_vector_is_longer_than_its_largest_entry():
    s, d = 6, 20
    h = np.ones(d)
    assert 2 * (h[:s] ** 2).sum() > 2 * np.abs(h).max() ** 2  # the step that "2" stands for
    assert 2 * (h[:s] ** 2).sum() <= 2 * s * np.abs(h).max() ** 2
    # by (a+b)^2 <= 2a^2 + 2b^2, with gradients g at theta and h at theta*, the bound with the constant of the library
    rng = np.random.default_rng(1)
    for _ in range(200):
        g, h, eps_I, eps_Ic = rng.standard_normal(d), rng.standard_normal(d), 2 + rng.random(), rng.random()
        chain = 2 * eps_I * (g[:s] ** 2).sum() + 2 * eps_Ic * (g[s:] ** 2).sum() + 2 * (h[:s] ** 2).sum()
        left = theory.gradients_left(eps_I=eps_I, eps_Ic=eps_Ic, d=d, s=s) * np.abs(h).max() ** 2
        assert chain <= 4 * eps_I * ((g - h) ** 2).sum() + left


@shows("gap-may-be-negative")
def test_a_point_with_more_non_zeros_may_lie_below_theta_star():
    problem = zt.problems.Quadratic(np.eye(2), np.array([[1.0, 0.5]]))
    star, theta = problem.optimum(1)[0], problem.centre  # k* = 1, k = 2
    left = ((problem.gradient(theta) - problem.gradient(star)) ** 2).sum()
    assert left > 0 > 4 * (problem.F(theta) - problem.F(star))
    sparse = zt.problems.Quadratic(np.diag([1.0, 0.3]), np.array([[1.0, 0.0]]))  # grad F(theta*) = 0
    rng = np.random.default_rng(0)
    for x in rng.standard_normal((50, 2)):
        assert (sparse.gradient(x) ** 2).sum() <= 2 * (sparse.F(x) - sparse.F(sparse.centre)) * (1 + 1e-12)


@shows("outgoing-law")
@given(st.floats(1.01, 2.0), st.integers(2, 30))
def test_a_uniform_outgoing_step_is_not_the_mean_of_the_proof(b, m):
    gaps = np.arange(1.0, m + 1)  # F(theta^(t)) - F*, any numbers
    weighted = sum(b ** (m - 1 - t) * gaps[t] for t in range(m))
    powers = (b**m - 1) / (b - 1)
    assert weighted == pytest.approx(powers * (theory.outgoing_law(beta=b, m=m) @ gaps))
    assert abs(weighted / (powers * gaps.mean()) - 1) > 1e-3
    assert weighted < powers * gaps[-1]


@shows("vr-anchor-directions")
@given(st.integers(2, 200), st.integers(1, 20))
def test_with_directions_of_its_own_the_anchors_estimate_adds_its_error(d, q):
    # x and y: estimates of the same gradient g from independent directions, on all of R^d (n = 1, theta* with grad 0)
    inside, _ = theory.second_moment(d=d, q=q, s=d, s2=d)  # E||x||^2 / ||g||^2
    difference = 2 * (inside - 1)  # E||x - y||^2 / ||g||^2 = twice the variance
    assert difference <= 2 * inside  # counted twice, it holds
    if inside > 2:  # that is, unless there are about as many directions as dimensions
        assert difference > inside  # as printed, it does not


@shows("vr-alpha")
@given(st.floats(1.0, 4.0), CURVES, KAPPAS, st.floats(2, 100))
def test_the_printed_quadratic_of_vr_is_not_that_of_its_own_condition(a, lo, kappa, eps_I):
    hi, eta = lo * kappa, 0.3 / lo
    condition = (1 - 48 * eps_I * eta * hi) * eta * a * lo - ((1 + eta**2 * lo**2) * a - 1)  # printed just before
    printed = (48 * eps_I * a * lo * hi + lo**2) * eta**2 - a * lo * eta + a - 1
    used = a * (48 * eps_I * lo * hi + lo**2) * eta**2 - a * lo * eta + a - 1
    assert condition == pytest.approx(-used, rel=1e-9)
    assert -printed - condition == pytest.approx((a - 1) * lo**2 * eta**2, rel=1e-3, abs=1e-6 * abs(used))
    curve = {"eps_I": eps_I, "rho_minus": lo, "rho_plus": hi}
    assert errata.printed_vr_eta(alpha=1.0, **curve) == pytest.approx(theory.vr_eta(**curve))
    assert errata.printed_vr_eta(alpha=a, **curve) >= theory.vr_eta(**curve) * (1 - 1e-12)
    narrow, wide = (
        theory.vr_eta_interval(alpha=1.00001, **curve),
        errata.printed_vr_eta_interval(alpha=1.00001, **curve),
    )
    assert not narrow or (wide.low <= narrow.low and narrow.high <= wide.high)


@shows("vr-72")
def test_twelve_and_not_seventytwo():
    eps_abs, mu, rest = sp.symbols("eps_abs mu rest", positive=True)
    one = rest + 2 * eps_abs * mu**2  # a single estimate's error (the lemma on the second moment)
    both = sp.expand(3 * one + 3 * one)
    assert both.coeff(eps_abs) == 12 * mu**2
    setting = {"eta": 0.1, "m": 1, "alpha": 1.0, "rho_minus": 1.0, "eps_I": 2.0, "eps_Ic": 1.0, "d": 9, "s": 3}
    assert theory.vr_errors(eps_mu=1e-300, eps_abs=5.0, mu=1.0, **setting)[1] == pytest.approx(12 * 0.01 * 5)


@shows("vr-parenthesis")
def test_what_gradients_leave_is_in_units_of_squared_distances():
    # F -> 7 F, eta -> eta / 7: the same iterates, so the same squared distances
    size = {"m": 3, "alpha": 1.2, "eps_I": 3.0, "eps_Ic": 1.0, "d": 9, "s": 4, "mu": 1e-9}
    used, printed = [], []
    for c in (1.0, 7.0):
        at = theory.AtOptimum(0.5 * c, (0.8 * c) ** 2)
        used.append(theory.vr_errors(eta=0.1 / c, rho_minus=c, eps_mu=c**2, eps_abs=c**2, at_optimum=at, **size)[0])
        printed.append(3 * 4 * (0.5 * c) ** 2)
    assert used[0] == pytest.approx(used[1])
    assert printed[1] == pytest.approx(49 * printed[0])


@shows("vr-depends-on-q")
@given(st.integers(1, 50), KAPPAS, st.sampled_from([10**7, 10**9]), st.booleans())
@settings(max_examples=50)
def test_with_few_directions_no_k_is_left_to_vr(k_star, kappa, d, sparse):
    s2 = 1 if sparse else d
    assert theory.vr_least_k(k_star=k_star, kappa=kappa) >= 599_077 * k_star
    assert not theory.vr_k(d=d, q=1000, s2=s2, k_star=k_star, kappa=kappa)
    if d == 10**9 and k_star * kappa**2 < 10:
        q = theory.vr_q(d=d, s2=s2, k_star=k_star, kappa=kappa)
        assert q > 10**6
        assert theory.vr_k(d=d, q=q, s2=s2, k_star=k_star, kappa=kappa)


@shows("vr-constants")
@given(st.floats(2, 144), st.floats(1e-9, 10))
def test_the_constants_of_the_complexity_proof_contradict_each_other(eps_I, C_3):
    holds = lambda eps_I, C_3: C_3 / eps_I < 1 / (72 * eps_I) < C_3 / 144
    assert not holds(eps_I, C_3)
    assert holds(150, 1 / 73)  # there is room only beyond eps_I = 144


@shows("kappa-small")
@given(st.floats(1.0, 1e6))
def test_kappas_share_is_of_the_order_kappa(kappa):
    assert kappa / 2 <= theory.vr_inner(kappa=kappa) <= kappa


def vr_epochs(epochs: int, n: int, q: int, m: int) -> zt.Result:
    problem = zt.problems.quadratic(d=6, k_true=2, n=n, seed=0)
    budget = epochs * (n + 2 * m) * (q + 1) + n
    return zt.minimize(
        problem, None, 3, budget=budget, method=zt.VRSZHT(eta=0.05, m=m), estimator=zt.Estimator(q=q), seed=0
    )


@shows("vr-queries-q")
def test_an_epoch_of_vr_costs_q_times_what_is_printed():
    few, many = vr_epochs(7, 5, 2, 4), vr_epochs(7, 5, 11, 4)
    assert (few.nht, many.nht) == (28, 28)
    assert (many.nfev - 5) / (few.nfev - 5) == 12 / 3


@shows("vr-nht")
def test_an_epoch_of_vr_thresholds_m_times():
    assert [vr_epochs(7, 5, 2, m).nht for m in (4, 8)] == [28, 56]


@shows("sarah-units")
def test_the_printed_interval_of_sarah_changes_with_the_units_of_F():
    # alpha = 1.0002: there is an interval of learning rates, and it must scale with 1 / rho
    setting = {"alpha": 1.0002, "eps_I": 2.0}
    printed = [errata.printed_sarah_eta_interval(rho_minus=c, rho_plus=c, **setting) for c in (1.0, 100.0)]
    assert printed[0]
    assert not printed[1]
    used = [theory.sarah_eta_interval(rho_minus=c, rho_plus=c, **setting) for c in (1.0, 100.0)]
    assert used[1].low * 100 == pytest.approx(used[0].low)
    assert used[1].high * 100 == pytest.approx(used[0].high)


@shows("sarah-alpha")
def test_the_parentheses_of_sarahs_gamma_do_not_match_and_alpha_multiplies_all_of_it():
    (printed,) = (one.printed for one in theory.ERRATA if one.key == "sarah-alpha")
    assert printed.count(")") == printed.count("(") + 1
    setting = {"eta": 0.004, "m": 4, "alpha": 1.7, "eps_I": 2.5, "rho_minus": 0.5, "rho_plus": 1.0}
    b = theory.beta(eta=0.004, alpha=1.7, rho_minus=0.5)
    one, two, noise = 1 + b + b**2, 1 + b, 48 * 2.5 * 0.004**2
    # summing alpha (2 eta - noise) [F(theta^(t)) - F*] <= .. + alpha noise [F(theta^(t-1)) - F*] over t = 1, 2, 3
    summed = 1.7 * ((2 * 0.004 - noise) * one - noise * two)
    assert theory.sarah_delta(**setting) == pytest.approx(summed)


@shows("sarah-corollary-step")
def test_the_condition_in_the_proof_of_sarahs_corollary_is_not_that_of_its_theorem():
    b, m = sp.symbols("beta m", positive=True)
    one, two = ((b ** (m - j) - 1) / (b - 1) for j in (1, 2))
    assert sp.simplify(one - two - b ** (m - 2)) == 0  # what is printed is the difference, and the theorem has the sum
    # eta beyond the interval of the corollary: the theorem promises nothing, but the printed condition holds
    setting = {"alpha": 1.0001, "eps_I": 2.0, "rho_minus": 1.0, "rho_plus": 1.0}
    eta, m = 0.02, 400
    assert eta > theory.sarah_eta_interval(**setting).high > 0
    assert theory.sarah_delta(eta=eta, m=m, **setting) < theory.sarah_gamma(eta=eta, m=m, **setting)
    beta = theory.beta(eta=eta, alpha=1.0001, rho_minus=1.0)
    noise = 48 * 2.0 * eta**2 * beta ** (m - 2)
    left = (2 * beta ** (m - 1) - 1) / 1.0001 + noise
    assert left <= (beta ** (m - 1) - 1) / (beta - 1) * 2 * eta - noise


@shows("sarah-beta")
def test_beta_has_no_units():
    printed = [1.1 * (1 + (0.1 / c) ** 2 * c) ** 2 for c in (1.0, 7.0)]
    used = [theory.beta(eta=0.1 / c, alpha=1.1, rho_minus=c) for c in (1.0, 7.0)]
    assert used[0] == pytest.approx(used[1])
    assert abs(printed[0] / printed[1] - 1) > 0.01


@shows("sarah-unbiased")
def test_sarahs_gradient_keeps_its_errors():
    # exact gradients, two components: given i_1, the mean of g^(2) over i_2 is not grad F(theta^(2))
    slopes = np.array([1.0, 3.0])  # f_i = a_i x^2 / 2
    eta, x0 = 0.2, 1.0
    g0 = slopes.mean() * x0
    x1 = x0 - eta * g0
    g1 = slopes[0] * (x1 - x0) + g0  # i_1 = 0
    x2 = x1 - eta * g1
    g2 = np.mean([a * (x2 - x1) + g1 for a in slopes])
    assert g2 == pytest.approx(slopes.mean() * x2 + (g1 - slopes.mean() * x1))
    assert abs(g2 - slopes.mean() * x2) > 0.1
    # VR-SZHT's, by contrast, is unbiased given the past
    vr = np.mean([a * (x2 - x0) + g0 for a in slopes])
    assert vr == pytest.approx(slopes.mean() * x2)
    # a past in which i = 0 was drawn until x is about to cross 0: g is far beyond the lemma's bound, not beyond ours
    eta, x, g = 0.02, 1.0, slopes.mean()
    before = x
    while x > 0:
        before, x = x, x - eta * g
        g += slopes[0] * (x - before)
    kept = (g - slopes[0] * (x - before)) - slopes.mean() * before  # of g^(t-1)
    second = np.mean([(g + (a - slopes[0]) * (x - before)) ** 2 for a in slopes])
    printed = 12 * 2 * np.mean(slopes**2) * (x**2 + before**2)  # eps_I = 2: exact gradients
    assert second > 10 * printed
    bound = theory.sarah_second_moment(
        gap=slopes.mean() * x**2 / 2, previous_gap=slopes.mean() * before**2 / 2, kept_error=kept**2, eps_I=2.0,
        eps_Ic=0.0, eps_abs=0.0, rho_plus=3.0, d=1, s=1, mu=1e-9,
    )  # fmt: skip
    assert second <= bound


@shows("sarah-large-m")
@given(st.floats(1e-7, 1e-3), CURVES, KAPPAS, st.floats(2, 50), st.integers(3, 200))
def test_by_its_theorem_sarah_only_gains_by_more_inner_steps(small, lo, kappa, eps_I, m):
    setting = {"alpha": 1 + small, "eps_I": eps_I, "rho_minus": lo, "rho_plus": lo * kappa}
    eta = theory.sarah_eta(eps_I=eps_I, rho_minus=lo, rho_plus=lo * kappa)
    ratio = [
        theory.sarah_gamma(eta=eta, m=steps, **setting) / theory.sarah_delta(eta=eta, m=steps, **setting)
        for steps in (m, m + 1, 10 * m)
    ]
    assert ratio[0] > ratio[1] > ratio[2] > 0


def test_every_erratum_is_shown_by_a_test_of_its_own_and_none_else():
    assert set(SHOWN) == {one.key for one in theory.ERRATA}
    assert len(set(SHOWN.values())) == len(SHOWN)
    assert len(theory.ERRATA) == len({one.key for one in theory.ERRATA})
