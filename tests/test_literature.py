"""Methods from the literature: each on a problem where its theory holds, and a test that fails without its idea."""

from __future__ import annotations

import shutil
import warnings
from itertools import pairwise

import numpy as np
import pytest
from bowls import Bowl, sparse_centre
from zoo import BY_OTHERS, instance

import zerothresh as zt
from zerothresh.constraint.threshold import Constraint, HardThreshold, hard_threshold
from zerothresh.methods.literature.cosamp import cosamp
from zerothresh.methods.literature.zoro import measurements
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.method import is_sparse
from zerothresh.rounds.plan import Plan
from zerothresh.rounds.task import Task
from zerothresh.sampling.philox import Stream, key_of

KEY = key_of(1)
by_others = pytest.mark.parametrize("name", BY_OTHERS)
thresholded = pytest.mark.parametrize(
    "name", ["zo-sgd", "zo-svrg", "zo-spider", "zo-adamm", "rspgf", "zscg", "zo-prox-svrg"]
)


def run(method, problem, k, budget, *, q=5, mu=1e-5, directions="orthogonal", seed=0, **options):
    estimator = zt.Estimator(q=q, mu=mu, directions=directions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # k = d
        return zt.minimize(problem, None, k, budget=budget, method=method, estimator=estimator, seed=seed, **options)


def rounds(method, problem, k, count, estimator, theta=None):
    """States and probes of the first rounds, by hand."""
    state = method.init(np.zeros(problem.d) if theta is None else theta)
    H = HardThreshold(Constraint(problem.d, k))
    for number in range(count):
        probes = method.plan(state, problem.n, Stream(1, number, key=KEY))
        plan = Plan(probes, estimator, problem.d, key=KEY, round=number)
        state = method.update(state, Answers(plan, problem.values(plan.points(), plan.components)), H)
        yield state, plan


# What all of them share, and the solvers of other packages too.


@by_others
def test_killed_between_and_within_rounds_it_ends_the_same_and_asks_nothing_twice(name, tmp_path, monkeypatch):
    monkeypatch.setattr("zerothresh.runs.folder.Run.due", lambda run: run.folder.name == "run")
    problem, whole = zt.problems.ridge(n=4, d=6, seed=1), []

    def optimizer(folder=None):
        options = {"estimator": zt.Estimator(q=3, mu=1e-3), "seed": 3, "run": folder, "fsync": "never"}
        return zt.Optimizer(6, 2, n=4, budget=240, method=instance(name), **options)

    def answer(opt, asked, part=None):
        batch = opt.ask()[:part]
        asked += [(x.tobytes(), i) for x, i in zip(batch.points, batch.components.tolist(), strict=True)]
        opt.tell(batch, problem.values(np.ascontiguousarray(batch.points), batch.components))

    def through(opt, asked):
        with opt:
            while not opt.done:
                answer(opt, asked)
            return opt.result()

    reference = through(optimizer(), whole)
    assert reference.nfev == len(whole) <= 240
    asked, number = [], 0
    with optimizer(tmp_path / "run") as opt:
        while not opt.done:
            if number % 9 in (1, 5):  # before a round, and in the middle of one
                if number % 9 == 5:
                    answer(opt, asked, max(1, len(opt.ask()) // 2))
                copy, rest = tmp_path / "copy", []
                shutil.copytree(tmp_path / "run", copy)
                again = through(optimizer(copy), rest)
                assert asked + rest == whole
                assert np.array_equal(again.x, reference.x)
                assert (again.fun, again.nfev, again.nht) == (reference.fun, reference.nfev, reference.nht)
                assert again.trace == reference.trace
                shutil.rmtree(copy)
            if not opt.done:
                answer(opt, asked)
            number += 1
    assert asked == whole


@pytest.mark.parametrize("batch", [1, 3])
def test_calls_follow_the_closed_forms(batch):
    n, d, q, m = 4, 6, 3, 5
    problem, cost = zt.problems.ridge(n=n, d=d, seed=1), q + 1
    epochs = lambda r: -(-r // m)
    forms = {
        "zo-sgd": lambda r: batch * cost * r,
        "zo-adamm": lambda r: batch * cost * r,
        "rspgf": lambda r: batch * cost * r,
        "szoht-theory": lambda r: batch * cost * r,
        "zscg": lambda r: n * cost * r,
        "zo-svrg": lambda r: epochs(r) * n * cost + 2 * batch * cost * r,
        "zo-prox-svrg": lambda r: 2 * d * (epochs(r) * n + 2 * batch * r),
        "zo-spider": lambda r: 2 * d * (epochs(r) * n + 2 * batch * (r - epochs(r))),
        "zoro": lambda r: n * (measurements(4.0, 5, d) + 1) * r,
        "ht-es": lambda r: 2 * 4 * n * r,  # 2 + ceil(ln 6) pairs
    }
    for name, calls in forms.items():
        method = instance(name, batch=batch, m=m, q=q)
        result = run(method, problem, 3, 900, q=q)
        assert len(result.trace) > 5
        assert result.trace.nfev.tolist() == [calls(r) for r in range(1, result.nit + 1)], name
        assert result.nht == (result.nit if is_sparse(method) else 0)
    for estimator, calls in {"rand": 2, "ave": cost, "coord": 2 * d}.items():
        result = run(instance("zo-svrg", m=m, estimator=estimator), problem, 3, 900, q=q)
        assert result.trace.nfev[0] == (n + 2) * calls


@thresholded
def test_a_final_threshold_changes_the_returned_point_and_nothing_else(name):
    problem = zt.problems.ridge(n=4, d=6, seed=1)
    assert not is_sparse(instance(name))
    assert is_sparse(instance(name, threshold=True))
    dense, sparse = (run(instance(name, threshold=t), problem, 2, 600) for t in (False, True))
    assert np.count_nonzero(dense.x_last) > 2
    assert np.array_equal(sparse.x_last, hard_threshold(dense.x_last, 2))
    assert sparse.fun == pytest.approx(problem.F(sparse.x))
    assert np.count_nonzero(sparse.x) <= 2
    assert (dense.nht, sparse.nht) == (0, sparse.nit)
    assert sparse.trace.nfev.tolist() == dense.trace.nfev.tolist()


@by_others
def test_bounds_hold_at_every_queried_point(name):
    problem = zt.problems.ridge(n=4, d=6, seed=1)
    low, high = -0.2 * np.arange(6), np.full(6, 0.3)

    class Checked:
        n, d = problem.n, problem.d

        def values(self, points, components):
            assert (points >= low).all()
            assert (points <= high).all()
            return problem.values(points, components)

    result = run(instance(name), Checked(), 3, 500, bounds=(low, high), exclude=[5])
    assert result.success
    assert result.nit > 0
    assert result.x_last[5] == 0


# Hard thresholding.


def test_sarah_plus_ends_an_epoch_when_the_square_of_the_gradient_has_fallen_enough():
    problem = Bowl(sparse_centre(8, 2.0, -1.0), a=np.linspace(0.5, 1.0, 8), n=5, spread=0.2)
    method = zt.methods.SARAHPlus(eta=0.3, gamma=0.125, m=200)
    lengths, t, before = [], 0, None
    for state, plan in rounds(method, problem, 8, 300, zt.Estimator(q=8, mu=1e-5)):
        full = len(plan.probes.components) == 5
        if full and before is not None:
            lengths.append(t)
            assert before.now <= 0.125 * before.first  # the epoch ended because the squared norm had decreased enough
        elif before is not None and t > 1:
            assert before.now > 0.125 * before.first  # and it did not end earlier
        t = 1 if full else t + 1
        before = state
    assert len(lengths) > 5
    assert max(lengths) < 60 < method.m
    assert len(set(lengths)) > 1  # those of SARAH are all equal
    result = run(method, problem, 8, 8000, q=8)
    best = problem.F(problem.c)
    assert result.fun - best < 1e-8 * (problem.F(np.zeros(8)) - best)


def test_sarah_plus_by_the_step_ends_epochs_where_the_gradient_stays_large_off_the_support():
    problem = Bowl([3.0, 2.0, 1.5, 1.5, 1.5, 1.5], n=4, spread=0.1)
    counts = {}
    for measure in ("gradient", "step"):
        method = zt.methods.SARAHPlus(eta=0.3, m=10_000, measure=measure)
        states = list(rounds(method, problem, 2, 200, zt.Estimator(q=6, mu=1e-5)))
        counts[measure] = sum(len(plan.probes.components) == 4 for _, plan in states)
    assert counts["gradient"] == 1
    assert counts["step"] > 5


def test_hzo_ht_grows_q_and_with_it_the_system_error_vanishes():
    problem = Bowl([3.0, -2.0, 1.0, 0.8, -0.6, 0.5, 0.4, 0.3, 0.2, 0.1])  # the optimum is not stationary
    best = problem.F(hard_threshold(problem.c, 2))
    growing = zt.methods.HZOHT(eta=0.3, tau=10, omega=0.9)
    gaps = {}
    for method in (growing, zt.methods.HZOHT(eta=0.3, tau=10, omega=1.0)):
        result = run(method, problem, 2, 12_000, q=1, directions="sphere", monitor=problem.F)
        gaps[method.omega] = float(np.mean(result.trace.fun[-5:])) - best
    assert gaps[0.9] < 0.1 * gaps[1.0]
    result = run(growing, problem, 2, 12_000, q=1)
    assert np.diff(result.trace.nfev, prepend=0).tolist() == [growing.directions(t) + 1 for t in range(result.nit)]
    assert growing.directions(20) == int(np.ceil(10 / 0.9**20))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_hzo_ht_projects_in_two_steps_onto_further_constraints(norm):
    problem = Bowl([3.0, -2.5, 1.0, 0.5, 0.0, 0.0])
    ball = zt.methods.Ball(2.0, norm)
    result = run(zt.methods.HZOHT(eta=0.3, tau=6, omega=0.99, within=ball), problem, 2, 4000, q=6)
    size = np.linalg.norm(result.x_last, 1 if norm == "l1" else 2)
    assert size == pytest.approx(2.0, abs=1e-9)
    assert result.support.tolist() == [0, 1]
    assert result.x == pytest.approx(ball.project(hard_threshold(problem.c, 2)), abs=2e-3)
    rng = np.random.default_rng(0)
    for _ in range(200):  # the projection is the nearest point of the ball
        v, other = 3 * rng.standard_normal((2, 5))
        inside = other * min(1.0, 2.0 / np.linalg.norm(other, 1 if norm == "l1" else 2))
        nearest = ball.project(v)
        assert np.linalg.norm(nearest, 1 if norm == "l1" else 2) <= 2 + 1e-12
        assert np.linalg.norm(v - nearest) <= np.linalg.norm(v - inside) + 1e-12


@pytest.mark.parametrize(
    ("d", "k_star", "kappa", "s2"), [(1000, 1, 1.0, 1000), (20_000, 2, 1.0, 20_000), (10**5, 1, 1.3, 10**5), (5000, 1, 1.0, 200)]
)  # fmt: skip
def test_szoht_theory_has_the_numbers_of_the_theory(d, k_star, kappa, s2):
    method = zt.methods.SZOHTTheory(rho_minus=2.0, rho_plus=2.0 * kappa, k_star=k_star, s2=s2)
    assert method.directions(d) == zt.theory.szoht_q(d=d, s2=s2, k_star=k_star, kappa=kappa)
    error = zt.theory.eps_I(d=d, q=method.directions(d), s=2 * 100 + k_star, s2=s2)
    assert method.eta(d, 100) == pytest.approx(zt.theory.szoht_eta(eps_I=error, rho_minus=2.0, rho_plus=2.0 * kappa))


def test_szoht_theory_asks_for_q_where_the_theory_has_none():
    with pytest.raises(ValueError, match="never sufficient: set q"):
        zt.methods.SZOHTTheory(rho_minus=1.0, rho_plus=1.0, s2=1).directions(100)
    assert zt.methods.SZOHTTheory(rho_minus=1.0, rho_plus=1.0, s2=1, q=7).directions(100) == 7


def test_szoht_theory_takes_q_and_eta_from_the_curvatures():
    method = zt.methods.SZOHTTheory(rho_minus=1.0, rho_plus=2.0, k_star=1)
    d, k, s, s2, kappa2 = 20, 4, 9, 20, 4.0  # s = 2 k + k*
    inner = 2 * np.sqrt(9 * kappa2 * (9 * kappa2 - 1) + 0.5 - 0.5 + 1.5 * (d - 1) / (s2 - 1))
    q = int(np.ceil(16 * d * (s2 - 1) * kappa2 / ((s2 + 2) * (d - 1)) * (18 * kappa2 - 1 + inner)))
    assert method.directions(d) == q
    error = 2 * d / (q * (s2 + 2)) * ((s - 1) * (s2 - 1) / (d - 1) + 3) + 2
    assert method.eta(d, k) == pytest.approx(1 / ((4 * error + 1) * 4))
    method, problem = zt.methods.SZOHTTheory(1.0, 1.0, k_star=1), Bowl(sparse_centre(6, 1.0))
    result = run(method, problem, 3, 40_000, directions="sphere")
    assert result.trace.nfev[0] == method.directions(6) + 1
    assert result.fun < 1e-6 * problem.F(np.zeros(6))
    # in other units the run is the same, because eta follows from the curvatures
    other = Bowl(problem.c, scale=64.0)
    again = run(zt.methods.SZOHTTheory(64.0, 64.0, k_star=1), other, 3, 40_000, directions="sphere")
    assert again.x_last == pytest.approx(result.x_last, rel=1e-6)
    assert method.eta(6, 3) > 3 * zt.methods.SZOHTTheory(1.0, 2.0).eta(
        6, 3
    )  # a smaller step where the curvatures differ more


def test_ht_es_needs_only_the_order_of_values_and_keeps_to_k():
    centre = sparse_centre(10, 2.0, -1.5)
    plain, bent = Bowl(centre), Bowl(centre, transform=lambda v: v**3)
    early = [run(zt.methods.HTES(size=1.0), problem, 2, 250).x_last for problem in (plain, bent)]
    assert np.array_equal(*early)
    assert np.abs(early[0] - centre).max() > 1e-3  # it has not converged yet
    one = run(zt.methods.HTES(size=1.0), plain, 2, 2000)
    assert one.fun < 1e-6 * plain.F(np.zeros(10))
    assert np.array_equal(one.support, np.flatnonzero(centre))
    assert max(support.size for support in one.trace.support) <= 2


# Sparse gradients by compressed sensing.


def test_cosamp_recovers_sparse_vectors_from_few_signs():
    rng, failures = np.random.default_rng(0), 0
    for _ in range(50):
        A = rng.choice([-1.0, 1.0], (measurements(4.0, 4, 120), 120)) / np.sqrt(120)
        g = np.zeros(120)
        g[rng.choice(120, 4, replace=False)] = rng.standard_normal(4)
        failures += not np.allclose(cosamp(A, A @ g, 4), g, atol=1e-8)
    assert len(A) < 60
    assert failures <= 2


def test_zoro_recovers_a_sparse_gradient_from_fewer_values_than_coordinates():
    problem = Bowl(sparse_centre(200, 3.0, -2.0, 1.0), a=(sparse_centre(200, 1, 1, 1) != 0).astype(float))
    method = zt.methods.ZORO(eta=0.5, s=3)
    (state, plan), *_ = rounds(method, problem, 3, 1, zt.Estimator(q=2, mu=1e-6))
    assert plan.calls == measurements(4.0, 3, 200) + 1 < 60
    assert state.theta == pytest.approx(-0.5 * problem.gradient(np.zeros(200)), abs=1e-4)
    result = run(method, problem, 3, 1500, mu=1e-6)
    assert result.fun < 1e-6 * problem.F(np.zeros(200))
    averaged = run(zt.FGZOHT(eta=0.5 * 52 / 200), problem, 3, 1500, q=50, mu=1e-6)  # as many values, without recovery
    assert averaged.fun > 1e3 * result.fun


def test_ada_zoro_learns_the_sparsity_uses_old_measurements_and_tries_the_last_support_first():
    centre = sparse_centre(200, 3.0, -2.0, 1.0, 1.5)
    problem = Bowl(centre, a=(centre != 0).astype(float))
    method = zt.methods.AdaZORO(eta=0.4, s=1, phi=1e-3)
    calls, found = 0, []
    for state, plan in rounds(method, problem, 4, 40, zt.Estimator(q=2, mu=1e-6)):
        calls += plan.calls
        if not state.y.size:  # a step has been made
            found.append((calls, state.s, state.support.tolist()))
            calls = 0
    s = found[0][1]
    assert 4 <= s <= 8
    assert found[0][0] == measurements(4.0, s, 200) + 1  # over all attempts: no measurement was repeated
    assert set(np.flatnonzero(centre)) <= set(found[0][2])
    assert [cost for cost, _, _ in found[1:12]] == [2 * s + 1] * 11  # the support stays, so 2 s values are enough
    result = run(method, problem, 4, 1200, mu=1e-6)
    assert result.fun < 1e-6 * problem.F(np.zeros(200))


def test_ada_zoro_notices_that_the_support_of_the_gradient_has_moved():
    class Moving(Bowl):  # at first only coordinate 0 has a slope, beyond 1 only coordinate 7
        def values(self, points, components):
            x = points
            return np.where(x[:, 0] < 1, -x[:, 0], -1 + 1e-9 * x[:, 0]) + np.where(x[:, 0] < 1, 0, -3.0 * x[:, 7])

    found = [
        s.support.tolist()
        for s, _ in rounds(zt.methods.AdaZORO(eta=0.6), Moving(np.zeros(60)), 4, 8, zt.Estimator(mu=1e-6))
        if not s.y.size
    ]
    assert found[0] == [0]
    assert 7 in found[-1]


@pytest.mark.parametrize(("d", "s"), [(1, 1), (2, 2), (3, 3), (2, 5), (3, 1)])
@pytest.mark.parametrize("b", [0.5, 4.0])
def test_ada_zoro_solves_least_squares_on_all_coordinates_once_it_has_2_d_measurements(d, s, b, monkeypatch):
    """Noise keeps every gradient from being accepted, and beyond 2 d rows there is nothing more to ask for."""
    looks = [0]

    def counted(*numbers):
        looks[0] += 1
        assert looks[0] < 10_000, "it looks for a number of rows that is never enough"
        return measurements(*numbers)

    monkeypatch.setattr("zerothresh.methods.literature.ada_zoro.measurements", counted)
    rng, seen, eta, mu = np.random.default_rng(1), [], 1e-3, 0.1

    class Noisy(Bowl):
        def values(self, points, components):
            values = super().values(points, components) + rng.standard_normal(len(points))
            seen.extend(zip(points, values, strict=True))
            return values

    before, steps = np.zeros(d), 0
    method = zt.methods.AdaZORO(eta=eta, s=s, b=b, phi=0.0)
    for state, _ in rounds(method, Noisy(np.ones(d)), d, 60, zt.Estimator(mu=mu)):
        if state.y.size:  # more measurements are wanted for the same step
            continue
        steps += 1
        A = np.array([point - before for point, _ in seen[1:]]) / mu
        y = np.array([value - seen[0][1] for _, value in seen[1:]]) / mu
        assert len(y) == 2 * d
        np.testing.assert_allclose(state.theta, before - eta * np.linalg.lstsq(A, y, rcond=None)[0], atol=1e-12)
        before = state.theta
        seen.clear()
    assert steps >= 12


def test_grace_finds_the_large_coordinates_with_a_few_queries_each():
    d = 3000
    centre = sparse_centre(d, 3.0, -2.0, 1.0)
    problem = Bowl(centre, a=(centre != 0).astype(float))
    method = zt.methods.GraCe(eta=0.5, s=3, repeats=2)
    result = run(method, problem, 3, 1500)
    costs = np.diff(result.trace.nfev, prepend=0)
    assert costs.max() < 48 < measurements(4.0, 3, d) < d  # halving the blocks would take twice as many calls
    assert result.fun < 1e-4 * problem.F(np.zeros(d))
    assert np.array_equal(result.support, np.flatnonzero(centre))


def test_grace_ends_if_nothing_is_free_and_takes_any_number_of_blocks():
    problem = Bowl(np.ones(3))
    result = run(zt.methods.GraCe(eta=0.1), problem, 1, 60, bounds=(0.0, 0.0))
    assert result.status is zt.Status.CONVERGED
    assert result.nfev == problem.calls == 1
    many = run(zt.methods.GraCe(eta=0.1, s=1, parts=10**300), Bowl(np.ones(30)), 3, 400)
    enough = run(zt.methods.GraCe(eta=0.1, s=1, parts=30), Bowl(np.ones(30)), 3, 400)
    assert many.status is zt.Status.BUDGET
    assert np.array_equal(many.x, enough.x)


def test_grace_takes_some_block_if_the_differences_overflow():
    class Huge(Bowl):
        def values(self, points, components):
            return np.where(points.any(axis=1), -1.7e308, 1.7e308)

    with np.errstate(all="ignore"):
        result = run(zt.methods.GraCe(eta=1e-320, s=1), Huge(np.ones(12)), 2, 100)
    assert result.status in (zt.Status.BUDGET, zt.Status.DIVERGED)


# l1 relaxations.


def test_rspgf_solves_the_l1_problem_with_gaussian_directions():
    problem = Bowl([2.0, -1.0, 0.3, 0.1, -0.2, 0.0])
    result = run(zt.methods.RSPGF(eta=0.03, lam=0.5), problem, 6, 8000, q=24)
    assert result.x_last == pytest.approx([1.5, -0.5, 0, 0, 0, 0], abs=0.1)
    assert np.count_nonzero(result.x_last) < 5  # the proximal step makes zeros
    _, plan = next(rounds(zt.methods.RSPGF(eta=0.1), problem, 6, 1, zt.Estimator(q=50, mu=1e-3)))
    lengths = np.linalg.norm(plan.points()[1:], axis=1) / 1e-3
    assert lengths.std() > 0.1  # not on a sphere
    assert np.mean(lengths**2) == pytest.approx(1, abs=0.4)


def test_zscg_stays_in_the_l1_ball_and_finds_its_best_point():
    problem = Bowl([2.0, -1.0, 0.3, 0.1, -0.2, 0.0])
    best = zt.methods.Ball(1.5, "l1").project(problem.c)
    sizes = []
    result = run(
        zt.methods.ZSCG(radius=1.5), problem, 6, 20_000, q=6, callback=lambda p: sizes.append(np.abs(p.x).sum())
    )
    assert max(sizes) <= 1.5 + 1e-9
    assert result.fun - problem.F(best) < 1e-2 * (problem.F(np.zeros(6)) - problem.F(best))
    first = next(rounds(zt.methods.ZSCG(radius=1.5), problem, 6, 1, zt.Estimator(q=60, mu=1e-6)))[0]
    assert first.theta.tolist() == [1.5, 0, 0, 0, 0, 0]  # a vertex: one coordinate, where the slope is largest


def test_zo_prox_svrg_reaches_the_l1_solution_that_sampling_alone_does_not():
    problem = Bowl([2.0, -1.0, 0.3, 0.1, -0.2, 0.0], n=8, spread=1.0)
    solution = np.array([1.5, -0.5, 0, 0, 0, 0])
    exact = run(zt.methods.ZOProxSVRG(eta=0.3, lam=0.5, m=16), problem, 6, 12_000)
    assert exact.x_last == pytest.approx(solution, abs=1e-6)
    gauss = run(zt.methods.ZOProxSVRG(eta=0.05, lam=0.5, m=4, estimator="gauss"), problem, 6, 30_000, q=60)
    assert gauss.x_last == pytest.approx(solution, abs=0.1)
    sampled = run(zt.methods.RSPGF(eta=0.3, lam=0.5), problem, 6, 12_000, q=12)
    assert np.abs(sampled.x_last - solution).max() > 1e-2


# No sparsity.


def drift(method, **options):
    """How far a method goes from the optimum of a sum of different components."""
    problem = Bowl([2.0, -1.0, 0.5, 0.0], n=6, spread=1.0)
    states = rounds(method, problem, 4, 30, zt.Estimator(q=4, mu=1e-6), theta=problem.c.copy())
    return max(float(np.abs(state.theta - problem.c).max()) for state, _ in states)


def test_zo_sgd_steps_by_one_component_and_is_not_sparse():
    problem = Bowl([2.0, -1.0, 0.5, 0.25])
    result = run(zt.methods.ZOSGD(eta=0.3), problem, 1, 2000, q=4)
    assert result.x == pytest.approx(problem.c, abs=1e-4)
    assert result.fun < 1e-6
    assert drift(zt.methods.ZOSGD(eta=0.1)) > 0.05  # it samples components and does not reduce their noise
    _, plan = next(rounds(zt.methods.ZOSGD(eta=0.1), Bowl(np.ones(4), n=6), 4, 1, zt.Estimator(q=4)))
    assert (plan.calls, len(plan.probes.components)) == (5, 1)


@pytest.mark.parametrize("estimator", ["rand", "ave", "coord"])
def test_zo_svrg_stays_at_the_optimum_whatever_component_it_draws(estimator):
    method = zt.methods.ZOSVRG(eta=0.1, m=5, estimator=estimator)
    assert drift(method) < (
        2e-2 if estimator == "rand" else 1e-3
    )  # it would be 0.5 with a control variate of the wrong sign
    problem = Bowl([2.0, -1.0, 0.5, 0.0], n=6, spread=1.0)
    best = problem.F(problem.c)
    result = run(
        zt.methods.ZOSVRG(eta=0.05 if estimator == "rand" else 0.2, m=12, estimator=estimator), problem, 4, 12_000, q=4
    )
    assert result.fun - best < (1e-4 if estimator == "rand" else 1e-6) * (problem.F(np.zeros(4)) - best)


def test_zo_spider_keeps_the_gradient_by_recursion_and_its_steps_short_if_wanted():
    assert drift(zt.methods.ZOSPIDER(eta=0.1, m=10)) < 1e-3
    problem = Bowl([2.0, -1.0, 0.5, 0.0], n=6, spread=1.0)
    best = problem.F(problem.c)
    result = run(zt.methods.ZOSPIDER(eta=0.3, m=12), problem, 4, 12_000)
    assert result.fun - best < 1e-10 * (problem.F(np.zeros(4)) - best)
    steps, last = [], np.zeros(4)
    for state, _ in rounds(zt.methods.ZOSPIDER(eta=0.3, m=5, length=0.01), problem, 4, 30, zt.Estimator(mu=1e-5)):
        steps.append(np.linalg.norm(state.theta - last))
        last = state.theta
    assert steps == pytest.approx([0.01] * 30)  # SPIDER as first published: steps of fixed length


def test_zo_adamm_has_momentum_and_a_scale_of_its_own_for_each_coordinate():
    scaled = [Bowl([1.0, 1.0, 1.0], a=[1.0, 100.0, 0.01], scale=s) for s in (1.0, 1024.0)]
    one, two = (run(zt.methods.ZOAdaMM(eta=0.02), problem, 3, 4000, q=3, mu=1e-6) for problem in scaled)
    assert one.x_last == pytest.approx([1, 1, 1], abs=0.05)  # without scaling, eta = 0.02 would be too small for a_3
    assert two.x_last == pytest.approx(one.x_last, rel=1e-5)
    states = [state for state, _ in rounds(zt.methods.ZOAdaMM(eta=0.02), scaled[0], 3, 40, zt.Estimator(q=3, mu=1e-6))]
    assert np.abs(states[0].theta) == pytest.approx(0.02 * 0.1 / np.sqrt(0.7) * np.ones(3), rel=1e-3)
    assert np.linalg.norm(states[5].m) > np.linalg.norm(states[0].m)  # the momentum grows
    assert all((b.v_hat >= a.v_hat).all() for a, b in pairwise(states))
    assert any((b.v < b.v_hat).any() for b in states)


# Search without gradients.


def test_sparse_rs_exchanges_less_and_less_and_finds_the_best_corners():
    d, k = 30, 10
    gain = np.linspace(-1, 1, d)

    class Corners:
        n = 1

        def __init__(self):
            self.d, self.seen = d, []

        def values(self, points, components):
            self.seen += [point.copy() for point in points]
            return -(points * gain).sum(axis=1)

    problem = Corners()
    result = run(zt.methods.SparseRS(size=1.0, values="corners", redraw=0.0), problem, k, 3000)
    best = np.sort(np.abs(gain))[-k:].sum()
    assert -result.fun == pytest.approx(best, rel=0.02)
    assert set(np.abs(result.x[result.support])) == {1.0}
    current, exchanged = problem.seen[1], []
    for trial in problem.seen[2:-1]:
        exchanged.append(np.count_nonzero((current != 0) & (trial == 0)))
        if (trial * gain).sum() > (current * gain).sum():
            current = trial
    early, late = exchanged[:10], exchanged[-500:]
    assert min(early) == 4  # 0.8 k / 2
    assert set(late) == {1}
    assert sorted(set(exchanged), reverse=True) == [4, 2, 1]


@pytest.mark.parametrize("groups", [[0, 0, 0], [0, 0, 1], [0, 1, 1, 2]])
@pytest.mark.parametrize("name", ["sparse-rs", "es-swaps"])
def test_a_start_with_more_non_zeros_than_k_groups_is_searched_from(name, groups):
    start = np.where(np.array(groups) == groups[1], [1.0, 2.0, 3.0, 4.0][: len(groups)], 0.0)
    problem = Bowl(np.full(len(groups), 0.8))
    result = zt.minimize(problem, start, 1, budget=150, method=instance(name), groups=groups, seed=1)
    assert result.status is zt.Status.BUDGET
    assert Constraint(len(groups), 1, groups=groups).holds(result.x)
    assert problem.F(result.x) < problem.F(start)


@pytest.mark.parametrize("values", ["corners", "uniform"])
def test_sparse_rs_draws_within_the_widest_bounds(values):
    method = zt.methods.SparseRS(values=values)
    largest = np.finfo(float).max
    limits = {"budget": 100, "reserve": 0, "seed": 3, "key": KEY}
    bounds = Constraint(3, 2, bounds=(-largest, largest))
    context = Context(Task(np.zeros(3), 1, method, zt.Estimator(), bounds, **limits))
    with np.errstate(over="ignore"):  # as a program runs
        drawn = np.array([method._values(context, np.arange(3)) for _ in range(20)])
    assert np.isfinite(drawn).all()
    assert (drawn < 0).any()
    assert (drawn > 0).any()


@pytest.mark.parametrize("name", ["sarah-plus", "zo-spider"])
def test_a_batch_above_n_is_refused_before_the_first_call(name):
    problem = Bowl(np.ones(3), n=2)
    with pytest.raises(ValueError, match="cannot draw 5 different components out of n = 2"):
        zt.minimize(problem, None, 1, budget=200, method=instance(name, batch=5), seed=1)
    assert problem.calls == 0


def test_es_swaps_leaves_a_wrong_support_and_adapts_its_steps():
    problem = Bowl(sparse_centre(12, 2.0, -1.5, 1.0))
    wrong = np.setdiff1d(np.arange(12), np.flatnonzero(problem.c))[:3]
    start = np.zeros(12)
    start[wrong] = 1.0
    options = {"budget": 4000, "seed": 0}
    with_swaps = zt.minimize(problem, start, 3, method=zt.methods.ESSwaps(size=1.0), **options)
    without = zt.minimize(problem, start, 3, method=zt.methods.ESSwaps(size=1.0, swaps=0.0), **options)
    assert np.array_equal(with_swaps.support, np.flatnonzero(problem.c))
    assert with_swaps.fun < 1e-9  # steps of fixed size would stall near 1e-1
    assert set(without.support) <= set(wrong)
    assert without.fun > 1
