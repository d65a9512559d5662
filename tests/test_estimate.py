"""Eq. (3): its mean, its exactness, its variance, and the reductions between methods that follow."""

from __future__ import annotations

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.constraint.bounds import Box
from zerothresh.reproduce.ridge.experiments import PAPER
from zerothresh.rounds.advance import advance, start
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.plan import Plan
from zerothresh.rounds.requests import Probes

KEY = 99


def estimate(problem, theta, estimator, round_=0, components=None, box=None):
    components = range(problem.n) if components is None else components
    plan = Plan(Probes.gradients(at=[theta], of=components), estimator, problem.d, key=KEY, round=round_, box=box)
    return Answers(plan, problem.values(plan.points(), plan.components))


families = pytest.mark.parametrize("family", ["sphere", "orthogonal", "rademacher", "coordinate", "gaussian"])
differences = pytest.mark.parametrize("difference", ["forward", "central"])


@families
@differences
@pytest.mark.parametrize("s2", [1, 3, None])
@pytest.mark.parametrize("common", [True, False])
def test_the_mean_of_the_estimate_is_the_gradient(family, difference, s2, common):
    """On a quadratic, where the smoothing has no bias for directions of symmetric law: 6 sigma, fixed seed."""
    if family == "coordinate" and s2 == 3:
        pytest.skip("coordinate directions have supports of size 1")
    problem = zt.problems.quadratic(d=6, k_true=2, n=3, condition=5, spread=1.0, seed=3)
    theta = np.array([1.0, 0, -2.0, 0, 0, 0.5])
    estimator = zt.Estimator(q=4, mu=0.5, s2=s2, difference=difference, directions=family, common=common)
    draws = np.array([estimate(problem, theta, estimator, r).mean() for r in range(1000)])
    error = draws.mean(axis=0) - problem.gradient(theta)
    sigma = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert (np.abs(error) < 6 * sigma + 1e-12).all()


@families
def test_the_mean_stays_the_gradient_in_a_box_where_steps_are_bent(family):
    """On a linear function, at a corner of the box: 6 sigma, fixed seed."""
    slope = np.array([1.0, -2.0, 3.0, 0.5])

    class Linear:
        d, n = 4, 1

        def values(self, points, components):
            assert (points >= low).all()
            assert (points <= high).all()
            return points @ slope

    low, high = np.array([0.0, -1, 0, -5]), np.array([2.0, 0, 0.7, 5])
    theta = np.array([0.0, 0.0, 0.7, 1.0])
    for difference in ("forward", "central"):
        estimator = zt.Estimator(q=3, mu=0.2, directions=family, difference=difference)
        draws = np.array([estimate(Linear(), theta, estimator, r, box=Box(low, high)).mean() for r in range(4000)])
        sigma = draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
        assert (np.abs(draws.mean(axis=0) - slope) < 6 * sigma + 1e-12).all()


@pytest.mark.parametrize("family", ["orthogonal", "coordinate"])
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("s2", [None, 1, 2, 4])
def test_a_full_orthonormal_block_leaves_no_error(family, blocks, s2):
    if family == "coordinate" and s2 in (2, 4):
        pytest.skip("coordinate directions have supports of size 1")
    d = 7
    problem = zt.problems.quadratic(d=d, n=4, spread=1.0, seed=1)
    theta = np.random.default_rng(0).standard_normal(d)
    estimator = zt.Estimator(q=blocks * d, mu=1e-2, s2=s2, difference="central", directions=family)
    assert estimate(problem, theta, estimator).mean() == pytest.approx(problem.gradient(theta), abs=1e-11)


def test_the_error_of_each_family_is_what_theory_says():
    """E||error||^2/||g||^2: (d-1)/q on the sphere, (d-q)/q for orthonormal blocks; 6 sigma."""
    d, q, draws = 12, 4, 4000
    problem = zt.problems.quadratic(d=d, n=1, seed=2)
    theta = np.ones(d)
    g = problem.gradient(theta)
    for family, expected in {
        "sphere": (d - 1) / q * d / (d + 2) + (d - 2) / (q * (d + 2)),
        "orthogonal": (d - q) / q,
    }.items():
        estimator = zt.Estimator(q=q, mu=1e-5, difference="central", directions=family)
        errors = [((estimate(problem, theta, estimator, r).mean() - g) ** 2).sum() / (g @ g) for r in range(draws)]
        sigma = np.std(errors, ddof=1) / np.sqrt(draws)
        if family == "sphere":
            expected = (d - 1) / q
        assert abs(np.mean(errors) - expected) < 6 * sigma


def test_shared_directions_make_a_difference_vanish_as_the_points_meet():
    problem = zt.problems.ridge(seed=0)
    theta = np.array([0.5, 0, 0, -0.3, 0])
    for shared in (True, False):
        estimator = zt.Estimator(q=3, mu=1e-4, directions="sphere", shared=shared)
        probes = Probes.gradients(at=[theta, theta.copy()], of=[2, 7])
        plan = Plan(probes, estimator, 5, key=KEY, round=0)
        difference = Answers(plan, problem.values(plan.points(), plan.components)).difference()
        assert (np.abs(difference).max() == 0) == shared


@pytest.mark.parametrize("s2", [None, 2])
def test_the_papers_estimator_is_equation_3_written_out(s2):
    """Each component has q unit directions of its own, of s2 non-zeros, and the estimate is eq. (3) with them."""
    q, mu, theta = 6, 1e-3, np.array([0.5, 0, 0, -0.3, 0])
    problem = zt.problems.ridge(seed=0)
    d = problem.d
    plan = Plan(Probes.gradients(at=[theta], of=[2, 7]), zt.Estimator.paper(q, mu, s2), d, key=KEY, round=0)
    answers = Answers(plan, problem.values(plan.points(), plan.components))
    assert plan.calls == 2 * (q + 1)
    seen = []
    for place, i in enumerate([2, 7]):
        moved = [x for x, component in zip(plan.points(), plan.components, strict=True) if component == i]
        u = (np.array([x for x in moved if not np.array_equal(x, theta)]) - theta) / mu
        assert u.shape == (q, d)
        assert np.linalg.norm(u, axis=1) == pytest.approx(np.ones(q))
        assert ((np.abs(u) > 1e-9).sum(axis=1) == (d if s2 is None else s2)).all()
        assert np.abs(u @ u.T - np.eye(q)).max() > 1e-3  # independent, not orthonormal
        base, *values = problem.values(np.array([theta, *(theta + mu * u)]), np.full(q + 1, i))
        by_hand = d / (q * mu) * sum((value - base) * u_l for value, u_l in zip(values, u, strict=True))
        assert answers.mean(0, np.array([place])) == pytest.approx(by_hand, rel=1e-6)
        seen.append(u)
    assert not np.isclose(seen[0][:, None], seen[1][None]).all(axis=2).any()  # no direction is used twice


def test_the_papers_estimator_is_that_of_the_reproduction():
    assert zt.Estimator.paper(q=1) == PAPER
    spelt_out = zt.Estimator(
        q=200, mu=1e-4, s2=None, difference="forward", directions="sphere", shared=True, common=False
    )
    assert zt.Estimator.paper(q=200) == spelt_out
    assert zt.Estimator.paper(q=200) != zt.Estimator(q=200, mu=1e-4)
    with pytest.raises(ValueError, match="q must be"):
        zt.Estimator.paper(q=0)


def test_each_method_of_the_paper_says_how_to_get_the_papers_estimator():
    of_the_paper = [method for method in zt.methods.available().values() if method.family == "paper"]
    assert len(of_the_paper) == 8
    assert all("zt.Estimator.paper(q=...)" in method.__doc__ for method in of_the_paper)


def test_shared_directions_make_the_error_proportional_to_the_gradient_of_the_mean():
    """At the optimum of F the mean has no error to speak of; with directions of their own, components leave theirs."""
    problem = zt.problems.quadratic(d=6, n=4, spread=1.0, seed=1)
    lowest = np.linalg.solve(*_normal_equations(problem))
    assert np.abs(problem.gradient(lowest)).max() < 1e-10
    settings = {"q": 3, "mu": 1e-6, "directions": "sphere", "difference": "central"}
    common, own = (
        np.abs(estimate(problem, lowest, zt.Estimator(**settings, common=common)).mean()).max()
        for common in (True, False)
    )
    assert common < 1e-6 < 1e-2 < own


def _normal_equations(problem):
    """H and -g(0) of a quadratic, whose gradient is g(0) + H x."""
    zero = problem.gradient(np.zeros(problem.d))
    return np.array([problem.gradient(e) - zero for e in np.eye(problem.d)]).T, -zero


def test_a_method_may_set_fields_of_the_estimator_for_a_round():
    problem, theta = zt.problems.quadratic(d=5, n=2, spread=1.0, seed=1), np.ones(5)
    given = zt.Estimator(q=2, mu=1e-2, s2=2)
    own = {"q": 5, "directions": "coordinate", "s2": None, "difference": "central"}
    probes = Probes.gradients(at=[theta], of=[0, 1], estimate=own)
    assert probes.calls(given) == 2 * 10
    plan = Plan(probes, given, 5, key=KEY, round=0)
    assert (plan.calls, plan.estimator.q, plan.estimator.mu) == (20, 5, 1e-2)
    answers = Answers(plan, problem.values(plan.points(), plan.components))
    assert answers.mean() == pytest.approx(problem.gradient(theta), abs=1e-11)
    joined = probes | Probes.values(at=[theta], of=[1])
    assert joined.calls(given) == 21
    assert Probes.gradients(at=[theta], of=[0]).estimator(given) is given


def test_the_base_point_is_queried_once_and_gives_the_value():
    problem = zt.problems.ridge(seed=0)
    answers = estimate(problem, np.zeros(5), zt.Estimator(q=3), components=[4, 1])
    assert answers.at_points == pytest.approx(problem.y[[4, 1]][None] ** 2)


def test_gradients_and_plain_values_can_be_asked_for_in_one_round():
    problem = zt.problems.ridge(seed=0)
    theta, trial = np.zeros(5), np.ones(5)
    probes = Probes.values(at=[trial, theta], of=range(10)) | Probes.gradients(at=[theta], of=[3])
    plan = Plan(probes, zt.Estimator(q=4), 5, key=KEY, round=0)
    assert plan.calls == 5 + 20
    points = plan.points()
    assert np.array_equal(points, np.array([plan.point(row) for row in range(plan.calls)]))
    assert np.array_equal(points[3:17], plan.points(3, 17))
    answers = Answers(plan, problem.values(points, plan.components))
    assert answers.values.mean(axis=1) == pytest.approx([problem.F(trial), problem.F(theta)])


@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@differences
def test_rows_can_be_made_in_any_pieces(common, shared, difference):
    estimator = zt.Estimator(q=3, common=common, shared=shared, difference=difference, directions="sphere")
    probes = Probes.gradients(at=[np.zeros(4), np.ones(4)], of=[5, 2, 9])
    whole = Plan(probes, estimator, 4, key=1, round=6).points()
    pieces = Plan(probes, estimator, 4, key=1, round=6)
    assert np.array_equal(whole, np.concatenate([pieces.points(s, s + 5) for s in range(0, pieces.calls, 5)]))
    blocks = {tuple(row) for row in (whole - np.repeat([0.0, 1.0], len(whole) // 2)[:, None]).round(12).tolist()}
    per_block = 3 if difference == "forward" else 6
    number = (1 if common else 3) * (1 if shared else 2)
    assert len(blocks) == per_block * number + (difference == "forward")


# Reductions: special cases in which two methods are one.


def rounds(method, problem, numbers, *, x0=None, seed=1, estimator=None):
    """Iterates of a method whose rounds have these numbers, so that directions can be made to match."""
    estimator = estimator or zt.Estimator(q=3, mu=1e-4, directions="sphere")
    opt = zt.Optimizer(
        problem.d if x0 is None else x0, 2, n=problem.n, budget=10**6, method=method, seed=seed, estimator=estimator
    )
    standing, out = start(opt.task), []
    for number in numbers:
        standing.search.round = number
        plan = opt.task.plan(standing.search.request, number)
        before = standing.nit
        standing = advance(opt.task, standing, plan, problem.values(plan.points(), plan.components))
        if standing.nit > before:
            out.append(standing.search.state.theta)
    return np.array(out)


RIDGE = zt.problems.ridge(seed=4)
ETA = 0.02


def test_vr_with_one_inner_step_is_full_gradient_descent():
    full = rounds(zt.FGZOHT(ETA), RIDGE, range(0, 20, 2))
    vr = rounds(zt.VRSZHT(ETA, m=1), RIDGE, range(20))
    assert vr == pytest.approx(full, abs=1e-12)


def test_sarah_with_epochs_of_one_step_is_full_gradient_descent():
    assert np.array_equal(rounds(zt.FGZOHT(ETA), RIDGE, range(10)), rounds(zt.SARAHSZHT(ETA, m=1), RIDGE, range(10)))


def test_p_saga_with_all_components_is_full_gradient_descent():
    n = RIDGE.n
    full = rounds(zt.FGZOHT(ETA), RIDGE, range(1, 11))
    assert rounds(zt.PSAGASZHT(ETA, p=n, batch=n), RIDGE, range(11)) == pytest.approx(full, abs=1e-12)
    assert rounds(zt.SAGASZHT(ETA, batch=n), RIDGE, range(11)) == pytest.approx(full, abs=1e-12)


def test_szoht_with_all_components_is_full_gradient_descent():
    full = rounds(zt.FGZOHT(ETA), RIDGE, range(10))
    assert rounds(zt.SZOHT(ETA, batch=RIDGE.n), RIDGE, range(10)) == pytest.approx(full, abs=1e-12)


def test_with_one_component_szoht_and_full_gradient_descent_are_the_same_bits():
    one = zt.problems.quadratic(d=5, n=1, seed=0)
    assert np.array_equal(rounds(zt.FGZOHT(0.1), one, range(10)), rounds(zt.SZOHT(0.1), one, range(10)))


def test_with_one_component_vr_takes_full_gradient_steps_at_matching_directions():
    """n = 1 and q = d, orthonormal: every estimate is the gradient, so all methods take the same steps."""
    one = zt.problems.quadratic(d=5, n=1, seed=0)
    exact = zt.Estimator(q=5, mu=1e-2, difference="central")
    full = rounds(zt.FGZOHT(0.1), one, range(12), estimator=exact)
    for method, count in [
        (zt.VRSZHT(0.1, m=3), 12),
        (zt.SARAHSZHT(0.1, m=3), 12),
        (zt.SAGASZHT(0.1), 12),
        (zt.LSVRGSZHT(0.1), 12),
    ]:
        steps = rounds(method, one, range(count), estimator=exact)
        assert steps == pytest.approx(full[: len(steps)], abs=1e-11)


def test_pm_with_the_law_of_saga_is_saga_to_the_bit():
    for method, law in [
        (zt.SAGASZHT(ETA), zt.methods.FixedSize(1)),
        (zt.PSAGASZHT(ETA, p=3), zt.methods.FixedSize(3)),
        (zt.LSVRGSZHT(ETA, p=2.0), zt.methods.AllOrNothing(2.0)),
    ]:
        assert np.array_equal(rounds(method, RIDGE, range(30)), rounds(zt.PMSZHT(ETA, law=law), RIDGE, range(30)))


def test_the_loopless_variant_that_always_refreshes_is_saga_with_all_rows_refreshed():
    n = RIDGE.n
    always = rounds(zt.LSVRGSZHT(ETA, p=float(n), batch=n), RIDGE, range(15))
    assert always == pytest.approx(rounds(zt.SAGASZHT(ETA, batch=n), RIDGE, range(15)), abs=1e-12)


@pytest.mark.parametrize("common", [True, False])
def test_the_memory_holds_what_a_dense_table_would(common):
    """SAGA with its compressed memory against SAGA with the n x d table written out."""
    problem, eta, k = RIDGE, 0.02, 2
    estimator = zt.Estimator(q=3, mu=1e-4, directions="sphere", common=common)
    opt = zt.Optimizer(5, k, n=10, budget=10**5, method=zt.SAGASZHT(eta, batch=2), seed=1, estimator=estimator)
    standing, table, theta = start(opt.task), None, np.zeros(5)
    for _ in range(60):
        probes = standing.search.request
        plan = opt.task.plan(probes, standing.round)
        values = problem.values(plan.points(), plan.components)
        answers = Answers(plan, values)
        gradients = np.array([answers.mean(0, np.array([c])) for c in range(len(probes.components))])
        standing = advance(opt.task, standing, plan, values)
        if table is None:
            table = gradients.copy()
            continue
        i = probes.components
        g = (gradients - table[i]).mean(axis=0) + table.mean(axis=0)
        theta = zt.hard_threshold(theta - eta * g, k)
        table[i] = gradients
        assert standing.search.state.theta == pytest.approx(theta, abs=1e-10)
        assert standing.search.state.memory.mean == pytest.approx(table.mean(axis=0), abs=1e-9)


@pytest.mark.parametrize(
    ("name", "request_"), [("coefficients", "gradients"), ("values", "values"), ("moved", "around"), ("paired", "each")]
)
def test_what_was_not_asked_for_is_refused_with_the_request_that_asks_for_it(name, request_):
    asked = Probes.values([np.zeros(3)], [0]) if name != "values" else Probes.each(np.zeros((1, 3)), [0])
    answers = Answers(Plan(asked, zt.Estimator(), 3, key=1, round=0), np.zeros(1))
    with pytest.raises(AttributeError, match=rf"did not ask for Probes.{request_}\(...\)"):
        getattr(answers, name)
    with pytest.raises(AttributeError, match="no attribute 'gradient'"):
        answers.gradient
