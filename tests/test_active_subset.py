"""The arm for few active coordinates finds them, searches on them, and gives up at once where F depends on everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.constraint.threshold import Constraint, HardThreshold
from zerothresh.methods.auto.arms.active_subset import ActiveSubset
from zerothresh.methods.auto.diagnosis import Diagnosis, diagnose
from zerothresh.methods.auto.models.gaussian_process import fit, log_expected_improvement
from zerothresh.methods.auto.models.quadratic_surface import interpolate, minimise_in_box
from zerothresh.methods.auto.models.random_process import UNASKED, _negative_log_posterior, fit_random, random_forms
from zerothresh.methods.auto.models.repeated_noise import RepeatedNoise
from zerothresh.methods.auto.moves.active_screen import ActiveScreen
from zerothresh.methods.auto.moves.believed_best import report_believed_best
from zerothresh.methods.auto.moves.bisection import TooManyActive
from zerothresh.methods.auto.moves.cube_search import CubeSearch
from zerothresh.methods.auto.moves.slope_decoding import SlopeDecoding
from zerothresh.methods.auto.moves.slope_steps import SlopeSteps, step_share
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.task import Task
from zerothresh.sampling.philox import key_of

D = 1000
EXACT = Diagnosis(1e-15, False, 1.0, 1.0, 1.0, 1.0, False, False)  # what the first calls find without noise
A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann(z):
    return -float(np.array([1, 1.2, 3, 3.2]) @ np.exp(-(A * (z - P) ** 2).sum(axis=1)))


def embedded(f, p, seed, d=D):
    """F on (-0.5, 0.5)^d that depends on p coordinates, and these."""
    active = np.random.default_rng(seed).choice(d, p, replace=False)
    return lambda x: f(x[active] + 0.5), active


def driven(f, part, *, d=D, k=6, seed=0, n=1, budget=300, bounds=(-0.5, 0.5), told=None, **constraint):
    """Run ``part``, a generator function of a context and a diagnosis, which is made unless one is ``told``.

    Returns what it returned (None if the budget ended it), the context, the points asked for, and the calls before.
    """
    constraint = Constraint(d, k, bounds=bounds, **constraint)
    task = Task(
        np.zeros(d),
        n,
        zt.methods.Auto(),
        zt.Estimator(),
        constraint,
        budget,
        reserve=0,
        seed=seed,
        key=key_of(seed),
        estimator_given=False,
    )
    context, points, before = Context(task), [], []

    def program():
        diagnosis = told or (yield from diagnose(context))
        context.random = diagnosis.random
        before.append(len(points))
        return (yield from part(context, diagnosis))

    asks, result = program(), None
    with np.errstate(all="ignore"):
        probes = next(asks)
        while True:
            plan = task.plan(probes, context.round)
            if len(points) + plan.calls > budget:
                break
            asked = list(plan.points())
            components = getattr(plan, "components", np.zeros(len(asked), int))
            values = [f(x) if n == 1 else f(x, int(i)) for x, i in zip(asked, components, strict=True)]
            points += asked
            context.enter(HardThreshold(constraint), len(points))
            try:
                probes = asks.send(Answers(plan, np.array(values, float)))
            except StopIteration as end:
                result = end.value
                break
    return result, context, np.array(points), before[0]


def arm(context, diagnosis):
    return (yield from ActiveSubset().search(context, diagnosis))


def screened(context, diagnosis):
    screen = ActiveScreen(context, diagnosis)
    assert not (yield from screen.dense())
    yield from screen.screen(0.01, 2)
    return set(screen.active)


def bisected(context, diagnosis):
    return (yield from screened(context, replace(diagnosis, rough=True)))  # slopes are not asked for


def decoded(base, *, limit=20, share=0.0, at=0.01):
    """A part that looks for slopes at the point ``base``, in the order of the coordinates."""

    def part(context, diagnosis):
        theta = np.full(context.d, base)
        screen = ActiveScreen(context, diagnosis)
        values = yield from screen.values([theta, theta + at])
        return (
            yield from SlopeDecoding(
                context,
                screen.comparison,
                screen.components,
                SlopeSteps(theta, screen.region(), np.arange(context.d), step_share(screen.comparison)),
                values[0],
                share=share,
                limit=limit,
                steepest=np.zeros(1),
            ).search(1000)
        )

    return part


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("d", [10_000, 100_000])
def test_six_coordinates_are_found_with_as_many_calls_whatever_d_is(d, seed):
    f, active = embedded(hartmann, 6, seed, d=d)
    found, context, _, before = driven(f, screened, d=d, seed=seed)
    assert found == set(active.tolist())
    assert context.used - before <= 42  # bisection takes about 54 and 59


@pytest.mark.parametrize("seed", range(3))
def test_bisection_finds_the_six_coordinates_with_fewer_calls_than_one_by_one(seed):
    f, active = embedded(hartmann, 6, seed, d=10_000)
    found, context, _, before = driven(f, bisected, d=10_000, seed=seed)
    assert found == set(active.tolist())
    assert context.used - before <= 75  # halving six groups one by one takes 6 log2(d) = 80


@pytest.mark.parametrize("seed", range(2))
def test_hartmann_in_1000_dimensions_reaches_one_percent_within_200_calls(seed):
    f, _ = embedded(hartmann, 6, seed)
    _, context, points, _ = driven(f, arm, seed=seed, budget=200)
    assert f(context.theta) <= -0.99 * 3.32237
    assert np.count_nonzero(context.theta) <= 6
    assert context.fun * context.unit == pytest.approx(f(context.theta), rel=1e-12)
    assert np.abs(points).max() <= 0.5


@pytest.mark.parametrize("seed", range(5))
def test_dense_least_squares_is_recognised_after_eight_calls(seed):
    rng = np.random.default_rng(seed)
    M, b = rng.standard_normal((60, 2 * D)), rng.standard_normal(60)
    ended, context, _, before = driven(lambda x: float(np.mean((M @ x - b) ** 2)), arm, d=2 * D, seed=seed)
    assert "most of the coordinates" in ended.reason
    assert not ended.certified
    assert context.used - before <= 8
    assert context.theta is context.theta0


@pytest.mark.parametrize("screened_by", [screened, bisected])
def test_decisions_do_not_depend_on_offset_and_unit_of_f(screened_by):
    f, active = embedded(hartmann, 6, 0)
    calls, told = [], Diagnosis(1e-13, False, 1.0, 1.0, 1.0, 1.0, False, False)
    for scale, offset in ((1.0, 0.0), (2.0**-20, 0.0), (1024.0, 4096.0), (2.0**-20, -1.0)):
        found, context, _, before = driven(lambda x, s=scale, o=offset: s * f(x) + o, screened_by, told=told)
        assert found == set(active.tolist())
        calls.append(context.used - before)
    if screened_by is bisected:  # rounding next to a large offset hides what slopes are
        assert len(set(calls)) == 1
    assert calls[0] == calls[1]
    assert max(calls) <= 90


# Slopes of groups.


def test_a_group_of_two_slopes_that_looks_like_one_of_a_single_slope_is_divided():
    found, *_ = driven(lambda x: 1 + x[200] + x[600], decoded(0.1), told=EXACT)
    assert set(found) == {200, 600}  # both sums are as if coordinate 400 had the slope 2
    assert found[200] == pytest.approx(found[600], rel=1e-3)


def test_slopes_of_opposite_sign_that_cancel_are_found():
    found, _, _, _ = driven(lambda x: 1 + x[200] - x[600] + 0.1 * x[601], decoded(0.1), told=EXACT)
    assert set(found) == {200, 600, 601}


def test_a_slope_that_is_alone_takes_two_sums_whatever_its_group_is():
    found, context, *_ = driven(lambda x: 1 - x[123_456], decoded(0.1), d=200_000, told=EXACT)
    assert set(found) == {123_456}
    assert context.used <= 8


def test_weak_slopes_are_left_and_a_single_weak_one_is_found():
    weak = np.random.default_rng(0).standard_normal(1000)
    strong = np.array([3, 500, 501, 900])
    found, context, _, _ = driven(
        lambda x: x[strong].sum() + 1e-5 * float(weak @ x), decoded(0.1, share=0.01), told=EXACT
    )
    assert set(found) == set(strong.tolist())
    assert context.used <= 35
    found, _, _, _ = driven(lambda x: x[strong].sum() + 1e-5 * x[77], decoded(0.1, share=0.01), told=EXACT)
    assert set(found) == {*strong.tolist(), 77}


def test_steps_stay_within_the_bounds():
    for base in (-0.5, 0.5):
        found, _, points, _ = driven(lambda x: x[5] ** 2 + x[6], decoded(base, at=-base / 50), told=EXACT)
        assert set(found) == {5, 6}
        assert np.abs(points).max() <= 0.5


def test_too_many_slopes_are_given_up():
    weights = np.random.default_rng(0).uniform(1, 2, D)
    with pytest.raises(TooManyActive):
        driven(lambda x: float(weights @ x), decoded(0.1), told=EXACT)


def test_random_values_and_jumps_are_not_asked_for_slopes():
    for told in (replace(EXACT, random=True), replace(EXACT, rough=True)):

        def part(context, diagnosis):
            screen = ActiveScreen(context, diagnosis)
            yield from screen.values([np.zeros(D), np.ones(D)])
            return (yield from screen.decode(np.zeros(D), np.zeros(1), np.arange(D), 0.01))

        found, context, _, _ = driven(lambda x: x[3], part, told=told)
        assert found is False
        assert context.used == 2


# The search.


def test_weak_coordinates_do_not_keep_the_screen_from_the_strong_ones():
    f, active = embedded(hartmann, 6, 0)
    weak = np.setdiff1d(np.random.default_rng(5).choice(D, 20, replace=False), active)
    found, context, _, before = driven(lambda x: f(x) + 4e-4 * float((x[weak] ** 2).sum()), screened)
    assert found == set(active.tolist())
    assert context.used - before <= 80


def test_noise_does_not_lead_to_wrong_coordinates():
    f, active = embedded(lambda z: float(((z - 0.2) ** 2).sum()), 3, 1)
    rng = np.random.default_rng(0)
    found, _, _, _ = driven(lambda x: f(x) + 2e-3 * rng.standard_normal(), screened, k=3, budget=400)
    assert found == set(active.tolist())


def test_a_hybrid_that_noise_takes_for_another_one_leaves_no_wrong_coordinate():
    def rippled(z):
        x = 64 * (z - 0.4)
        return float(-20 * np.exp(-0.2 * np.sqrt((x**2).mean())) - np.exp(np.cos(2 * np.pi * x).mean()))

    wrong = 0
    for seed in range(8):
        f, active = embedded(rippled, 4, seed)
        rng = np.random.default_rng(seed)
        found, _, _, _ = driven(
            lambda x, f=f, rng=rng: f(x) + 1e-2 * rng.standard_normal(), screened, k=4, seed=seed, budget=400
        )
        wrong += len(found - set(active.tolist()))
    assert wrong == 0


def test_a_flat_start_is_left():
    f, active = embedded(lambda z: min(hartmann(z), -0.5), 6, 2)
    _, context, _, _ = driven(f, arm, seed=2, budget=300)
    assert f(context.theta) < -1.5
    assert set(np.flatnonzero(context.theta)) <= set(active.tolist())


def test_without_bounds_the_region_comes_from_the_natural_length():
    f, active = embedded(lambda z: float(((z - 40.0) ** 2).sum()), 2, 3)
    found, _, _, _ = driven(f, screened, k=2, bounds=None)
    assert found == set(active.tolist())


def test_excluded_and_included_coordinates_are_respected():
    f, active = embedded(hartmann, 6, 4)
    other = int(np.setdiff1d(np.arange(D), active)[0])
    _, context, points, _ = driven(f, arm, k=5, include=[other], exclude=[int(active[0])], budget=200)
    assert context.constraint.holds(context.theta)
    assert not points[:, active[0]].any()
    assert f(context.theta) < f(np.zeros(D))


def test_components_are_screened_by_a_few_of_them():
    f, active = embedded(lambda z: float(((z - 0.7) ** 2).sum()), 2, 6)
    found, context, _, before = driven(lambda x, i: (1 + i) * f(x), screened, k=2, n=50, budget=3000)
    assert found == set(active.tolist())
    assert context.used - before < 50 * 10


def test_the_arm_fits_only_where_bisection_is_cheaper_than_a_gradient():
    def fits(d, **constraint):
        def part(context, diagnosis):
            return ActiveSubset().fits(context, diagnosis)
            yield

        return driven(lambda x: float(x @ x), part, d=d, k=2, **constraint)[0]

    assert not fits(100)
    assert fits(1000)
    assert not fits(1000, groups=np.arange(1000) // 2)


# The models.


def test_the_process_goes_through_its_values_and_is_unsure_elsewhere():
    X = np.random.default_rng(0).random((25, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1]
    process = fit(X, y, np.ones(25), (False, "gauss"), None)
    mean, deviation = process.predict(np.concatenate([X, [[3.0, 3.0]]]))
    assert np.abs(mean[:-1] - process.t).max() < 0.02
    assert deviation[-1] > 10 * deviation[:-1].max()


def test_a_process_given_its_own_values_is_the_same():
    X = np.random.default_rng(0).random((20, 2))
    y = np.exp(X[:, 0]) * (1 + X[:, 1])
    for form in ((False, "sum"), (True, "matern")):
        process = fit(X, y, np.ones(20), form, None)
        again, Z = process.given(X, y, np.ones(20)), np.random.default_rng(1).random((5, 2))
        assert again.predict(Z)[0] == pytest.approx(process.predict(Z)[0], abs=1e-6)


def test_a_process_says_whether_it_predicts_values_that_are_left_out():
    X = np.random.default_rng(0).random((40, 2))
    smooth = np.sin(5 * X[:, 0]) + X[:, 1] ** 2
    ripples = np.random.default_rng(1).standard_normal(40)
    assert fit(X, smooth, np.ones(40), (False, "matern"), None).predicts()
    assert not fit(X, smooth + 0.5 * ripples, np.ones(40), (False, "matern"), None).predicts()


def searched(Z, y, *, noise=0.0, known=0):
    """A search of the unit cube with these values, and the list of what it reports."""
    reports = []
    search = CubeSearch(
        None,
        lambda points: iter(()),
        lambda z, fun: reports.append((z, fun)),
        (Z, y, np.ones(y.size)),
        known=known,
        noise=RepeatedNoise(noise),
        random=noise > 0,
    )
    return search, reports


def test_a_value_that_is_low_by_chance_is_not_believed():
    rng = np.random.default_rng(3)
    Z = rng.random((40, 2))
    F = ((Z - 0.3) ** 2).sum(axis=1)
    y = F + 0.03 * rng.standard_normal(40)
    lucky = int(np.argmin(np.abs(F - 0.08)))
    y[lucky] = y.min() - 0.01
    search, reports = searched(Z, y, noise=0.03)
    report_believed_best(search)
    z, believed = reports[0]
    assert np.abs(z - Z[lucky]).max() > 0
    assert ((z - 0.3) ** 2).sum() < F[lucky]
    assert believed > y.min()


def test_points_that_may_be_infeasible_are_not_reported():
    Z = np.random.default_rng(0).random((30, 2))
    F = ((Z - 0.3) ** 2).sum(axis=1)
    order = np.argsort(F)
    search, reports = searched(Z[order], F[order], noise=1e-3, known=10)
    report_believed_best(search)
    assert np.abs(Z[order][10:] - reports[0][0]).sum(axis=1).min() == 0


def test_a_known_basin_is_left_out_unless_noise_hides_its_bottom():
    Z = np.random.default_rng(0).random((50, 2))
    for noise in (0.0, 0.1):
        search, _ = searched(Z, Z.sum(axis=1), noise=noise)
        search.close_basin(np.array([0.2, 0.2]), np.full(2, 0.2))
        outside = search.outside_basins()
        assert (outside.size == 50) == (noise > 0)
        assert noise or (np.abs(Z[outside] - 0.2).max(axis=1) > 0.15).all()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_the_wrong_well_of_a_sum_over_coordinates_is_left(seed):
    f, _ = embedded(
        lambda z: float((0.5 * (x**4 - 16 * x**2 + 5 * x)).sum()) if (x := 10 * z - 5).size else 0.0, 4, seed
    )
    _, context, _, _ = driven(f, arm, k=4, seed=seed, budget=200)
    assert f(context.theta) < -0.97 * 4 * 39.166  # the next best of the 16 wells has 91 %


def test_expected_improvement_has_no_jump_where_its_expansion_begins():
    mean = np.linspace(5.9, 6.1, 41)
    steps = np.diff(log_expected_improvement(mean, np.ones(41), 0.0))
    assert (steps < 0).all()
    assert np.abs(steps).max() < 0.12


def test_interpolation_recovers_a_quadratic_from_enough_values():
    rng = np.random.default_rng(1)
    H = rng.standard_normal((3, 3))
    H, g, moves = H + H.T, rng.standard_normal(3), rng.standard_normal((10, 3))
    values = 2.0 + moves @ g + 0.5 * np.einsum("ij,jk,ik->i", moves, H, moves)
    c, slope, bent = interpolate(moves, values, np.zeros((3, 3)), 0.0)
    assert c == pytest.approx(2.0)
    assert slope == pytest.approx(g)
    assert bent == pytest.approx(H)


def test_an_indefinite_model_has_its_minimum_on_the_boundary():
    x, value = minimise_in_box(np.array([0.1, 0.0]), np.diag([-1.0, 2.0]), -np.ones(2), np.ones(2), np.zeros((1, 2)))
    assert x == pytest.approx([-1.0, 0.0])
    assert value == pytest.approx(-0.6)


# Random values.


def random_bowl(points, noise, seed=0):
    """Values with noise of a bowl in 3 coordinates at random points, and its minimiser."""
    rng = np.random.default_rng(seed)
    Z, best = rng.random((points, 3)), np.array([0.3, 0.6, 0.45])
    return Z, ((Z - best) ** 2).sum(axis=1) + noise * rng.standard_normal(points), best


@pytest.mark.parametrize("form", [(True, "gauss"), (False, "matern"), (True, "sum"), (False, "bowl")])
def test_slopes_of_the_posterior_density_of_random_values_are_its_differences(form):
    Z, y, _ = random_bowl(15, 0.05)
    process = fit_random(Z, y, np.ones(15), form, None, 0.05)
    prior = np.zeros(5), np.ones(5)

    def density(parameters):
        return _negative_log_posterior(parameters, form[1], Z, process.t, process.known, prior)

    at = np.array([0.1, -0.3, 0.4, 0.2, -2.0])
    value, slopes = density(at)
    steps = [(density(at + h)[0] - density(at - h)[0]) / 2e-5 for h in 1e-5 * np.eye(5)]
    assert np.isfinite(value)
    assert slopes == pytest.approx(steps, rel=1e-4, abs=1e-4)


def test_a_bowl_is_recognised_through_noise_and_its_minimum_found():
    Z, y, best = random_bowl(40, 0.01)
    processes = [fit_random(Z, y, np.ones(40), form, None, 0.01) for form in random_forms(3)]
    process = max(processes, key=lambda one: one.evidence)
    assert process.is_bowl
    candidates = np.random.default_rng(1).random((4000, 3))
    lowest = candidates[np.argmin(process.mean(candidates))]
    assert np.abs(lowest - best).max() < 0.1


def test_a_further_value_is_worth_nothing_where_the_outcome_is_known():
    Z, y, best = random_bowl(40, 0.05)
    process = fit_random(Z, y, np.ones(40), (False, "gauss"), None, 0.05)
    points = np.concatenate([[best], Z[np.argsort(y)[-1:]], best + 0.1 * np.eye(3)])
    worth = process.worth(points, np.full(5, UNASKED))
    assert (worth >= 0).all()
    assert worth[1] < 1e-3 * worth.max()  # the worst point does not become the best one


def test_believing_a_point_changes_no_mean_and_makes_it_surer():
    Z, y, _ = random_bowl(30, 0.05)
    process = fit_random(Z, y, np.ones(30), (False, "gauss"), None, 0.05)
    x, others = np.array([0.2, 0.2, 0.2]), np.random.default_rng(1).random((9, 3))
    for z, number in ((x, UNASKED), (Z[3], 3)):
        believing = process.believing(z, number)
        assert believing.mean(others) == pytest.approx(process.mean(others), abs=1e-6)
        worth = [one.worth(np.stack([z, Z[5]]), np.array([number, 5]))[0] for one in (process, believing)]
        assert worth[1] <= worth[0] + 1e-12


def test_the_noise_is_learnt_from_what_was_asked_again():
    rng, noise = np.random.default_rng(0), RepeatedNoise(5.0)
    for _ in range(400):
        first, second = 2.0 * rng.standard_normal(2)
        noise.see((second - first) ** 2, 0.5)
    assert noise.deviation == pytest.approx(2.0, rel=0.1)  # 400 degrees of freedom: a sigma of 3.5 %


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_ripples_below_the_noise_do_not_hide_the_bottom_of_a_bowl(seed):
    def rippled(z):
        x = 1200 * (z - 0.37)
        return float(1 + (x**2).sum() / 4000 - np.cos(x / np.sqrt([1, 2, 3])).prod())

    f, active = embedded(rippled, 3, seed)
    rng = np.random.default_rng(seed)
    _, context, _, _ = driven(lambda x: f(x) + 0.4 * rng.standard_normal(), arm, k=3, seed=seed, budget=300)
    assert set(np.flatnonzero(context.theta)) == set(active.tolist())
    assert f(context.theta) < 1.0  # beside the bottom F is 1 in the mean


def test_diagnosis_has_what_the_arm_reads():
    assert {"noise", "random", "length"} <= set(Diagnosis.__dataclass_fields__)
