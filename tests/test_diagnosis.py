"""The diagnosis tells noise, natural length, kinks and plateaus apart, in any unit, with a few calls."""

from __future__ import annotations

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.constraint.threshold import Constraint, HardThreshold
from zerothresh.methods.auto.diagnosis import diagnose, ecnoise
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.task import Task
from zerothresh.sampling.philox import key_of

D = 8
W = np.array([3.0, -2.0, 1.0, 0.5, 0.0, 0.0, 2.0, 1.0])
SMOOTH = {
    "quadratic": lambda x: float(((x - W) ** 2).sum()),
    "of condition 1e7": lambda x: float((10.0 ** np.arange(D) * (x - W) ** 2).sum()),
    "logistic": lambda x: float(np.logaddexp(0.0, -W @ x)),
    "exponential": lambda x: float(np.exp(W @ x)),
    "Poisson": lambda x: float(np.exp(W @ x) - 3 * W @ x),
    "quartic": lambda x: float(((x - W) ** 4).sum()),
}
smooth = pytest.mark.parametrize("f", list(SMOOTH.values()), ids=list(SMOOTH))
seeds = pytest.mark.parametrize("seed", range(4))


def diagnosed(f, *, seed=0, x0=None, n=1, budget=10_000, **constraint):
    """Run a diagnosis; returns it, the unit of the context's values, and the points that were asked for."""
    theta, constraint = np.zeros(D) if x0 is None else x0, Constraint(D, 2, **constraint)
    method, key = zt.methods.Auto(), key_of(seed)
    task = Task(
        theta, n, method, zt.Estimator(), constraint, budget, reserve=0, seed=seed, key=key, estimator_given=False
    )
    context = Context(task)
    asks, points = diagnose(context), []
    with np.errstate(all="ignore"):
        probes = next(asks)
        while True:
            plan = task.plan(probes, context.round)
            points += list(plan.points())
            context.enter(HardThreshold(constraint), len(points))
            try:
                probes = asks.send(Answers(plan, np.array([f(x) for x in plan.points()], float)))
            except StopIteration as end:
                return end.value, context.unit, np.array(points)


# ECnoise: the noise from differences of high order.


def estimates(points, sd=0.01, repeats=300, bend=1e-3):
    rng = np.random.default_rng(points)
    t = np.arange(points)
    return np.array([ecnoise(5 + 0.3 * t + bend * t**2 + sd * rng.standard_normal(points)) for _ in range(repeats)])


@pytest.mark.parametrize("points", [7, 9, 15])
def test_ecnoise_recovers_the_standard_deviation_of_noise(points):
    """Nine of ten estimates are within a factor of 2 (3 with 7 points), and the median within 15 % (4 sigma)."""
    found = estimates(points) / 0.01
    factor = 3 if points == 7 else 2
    assert np.mean((found > 1 / factor) & (found < factor)) > 0.9
    assert abs(np.median(found) - 1) < 0.15


def test_ecnoise_ignores_a_smooth_function_and_finds_its_rounding():
    t = 1e-3 * np.arange(9)
    assert ecnoise(np.exp(t)) < 1e-14
    assert 1e-9 < ecnoise(np.exp(t).astype(np.float32).astype(float)) < 1e-6
    assert ecnoise(np.full(9, 3.0)) == 0.0


@pytest.mark.parametrize("c", [1e-6, 1e6])
def test_ecnoise_is_in_the_unit_of_the_values(c):
    values = np.random.default_rng(3).standard_normal(9)
    assert ecnoise(c * values) == pytest.approx(c * ecnoise(values), rel=1e-12)
    assert ecnoise(values + 7) == pytest.approx(ecnoise(values), rel=1e-9)


# Smooth functions.


@smooth
@seeds
def test_four_calls_are_enough_for_a_smooth_function_without_noise(f, seed):
    diagnosis, unit, points = diagnosed(f, seed=seed)
    assert len(points) == 4
    assert not diagnosis.random
    assert not diagnosis.rough
    assert not diagnosis.kink
    assert not diagnosis.central
    assert diagnosis.noise * unit < 1e-13 * max(map(abs, map(f, points)))
    assert 0.03 < diagnosis.length < 300


@smooth
@seeds
@pytest.mark.parametrize("c", [1e-6, 1e-3, 1e3, 1e6])
def test_the_length_scales_with_the_unit_of_the_coordinates(f, seed, c):
    """The length of f(c x) is that of f divided by c, up to a factor of 30, over twelve orders of magnitude of c."""
    if c == 1e6 and f in (SMOOTH["exponential"], SMOOTH["Poisson"]):
        c = 1e3  # beyond that the values overflow on the way
    plain, _, _ = diagnosed(f, seed=seed)
    diagnosis, _, points = diagnosed(lambda x: f(c * x), seed=seed)
    assert 1 / 30 < diagnosis.length * c / plain.length < 30
    assert not diagnosis.random
    assert not diagnosis.rough
    assert not diagnosis.kink
    assert len(points) < 60


@smooth
@seeds
@pytest.mark.parametrize(("a", "b"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 100.0), (1e6, -3e7)])
def test_the_length_does_not_depend_on_the_unit_of_the_values(f, seed, a, b):
    plain, unit, _ = diagnosed(f, seed=seed)
    diagnosis, other, points = diagnosed(lambda x: a * f(x) + b, seed=seed)
    assert 1 / 30 < diagnosis.length / plain.length < 30
    assert diagnosis.curvature * other == pytest.approx(a * plain.curvature * unit, rel=0.5)
    assert not diagnosis.random
    assert not diagnosis.rough
    assert not diagnosis.kink
    assert len(points) < 60


@smooth
@seeds
def test_the_difference_step_gives_slopes_with_an_error_below_a_thousandth(f, seed):
    diagnosis, _, _ = diagnosed(f, seed=seed)
    slopes = [(f(diagnosis.mu * e) - f(np.zeros(D))) / diagnosis.mu for e in np.eye(D)]
    true = [(f(1e-5 * e) - f(-1e-5 * e)) / 2e-5 for e in np.eye(D)]
    assert np.linalg.norm(np.subtract(slopes, true)) < 1e-3 * np.linalg.norm(true)


# Noise.


@seeds
@pytest.mark.parametrize("sd", [1e-3, 0.01, 1.0])
def test_random_values_are_recognised_and_their_standard_deviation_is_found(seed, sd):
    """Up to a factor of 3: a dozen values give the standard deviation to about 20 %, so this is 5 sigma."""
    rng = np.random.default_rng(seed)
    diagnosis, unit, _ = diagnosed(lambda x: SMOOTH["quadratic"](x) + sd * rng.standard_normal(), seed=seed)
    assert diagnosis.random
    assert diagnosis.central
    assert 1 / 3 < diagnosis.noise * unit / sd < 3
    assert sd == 1.0 or diagnosis.mu * np.linalg.norm(2 * W) > sd  # differences stand out of the noise


@pytest.mark.parametrize("sd", [1e-6, 1e-5, 3e-5, 1e-4])
def test_weak_noise_is_rarely_missed(sd):
    """Noise of 1e-7 to 1e-5 of the values is about as large as the curvature in the quick check: 6 of 100 at most."""
    rng, missed = np.random.default_rng(1), 0
    for seed in range(100):
        diagnosis, _, _ = diagnosed(lambda x: SMOOTH["quadratic"](x) + sd * rng.standard_normal(), seed=seed)
        missed += not diagnosis.random
    assert missed <= 6


@seeds
def test_noise_that_is_zero_at_the_start_and_grows_from_there_is_recognised(seed):
    rng = np.random.default_rng(seed)
    diagnosis, _, _ = diagnosed(
        lambda x: SMOOTH["quadratic"](x) + 0.01 * np.linalg.norm(x) * rng.standard_normal(), seed=seed
    )
    assert diagnosis.random


@pytest.mark.parametrize("share", [0.05, 0.1])
def test_no_difference_is_longer_than_the_step_at_which_noise_that_grows_has_doubled(share):
    """With noise of a share of F = F0 + s^2 the noise of a slope is least at sqrt(F0): up to a factor of 4, 18 of 20."""
    f0, rng, short = 25.0, np.random.default_rng(7), 0
    for seed in range(20):
        diagnosis, _, _ = diagnosed(lambda x: (f0 + x @ x) * (1 + share * rng.standard_normal()), seed=seed)
        assert diagnosis.random
        short += diagnosis.mu < 4 * np.sqrt(f0)
    assert short >= 18


@pytest.mark.parametrize("sd", [0.1, 0.3])
def test_noise_does_not_hide_a_bend_that_changes_its_sign(sd):
    """ln(1 + |x - W|^2), with |W| = 4.4, turns down at a distance of about |W|: to one side, noise hides its bend.

    About 2 % of the draws take it for a kink: 57 of 60 are 1.5 sigma below the mean.
    """
    rng, lengths = np.random.default_rng(8), []
    for seed in range(60):
        found, _, _ = diagnosed(lambda x: np.log1p(((x - W) ** 2).sum()) + sd * rng.standard_normal(), seed=seed)
        lengths.append(found.length)
    assert sorted(lengths)[56] < 12


@pytest.mark.parametrize("sd", [0.1, 0.2])
def test_a_function_that_levels_off_has_the_length_at_which_it_does(sd):
    """1 - exp(-|x - W|^2 / 30) is constant beyond a distance of about 10; noise of a fifth of its depth hides when.

    Where the noise hides the change over a step, longer ones show it by chance only: 56 of 60 draws, as 98 % are right.
    """
    rng, lengths = np.random.default_rng(9), []
    for seed in range(60):
        found, _, _ = diagnosed(
            lambda x: 1 - np.exp(-((x - 0.75 * W) ** 2).sum() / 30) + sd * rng.standard_normal(), seed=seed
        )
        lengths.append(found.length)
    assert sorted(lengths)[55] < 50


@seeds
@pytest.mark.parametrize("c", [1e-6, 1e6])
def test_noise_is_recognised_in_any_unit(seed, c):
    rng = np.random.default_rng(seed)
    diagnosis, unit, _ = diagnosed(lambda x: c * (SMOOTH["quadratic"](x) + 0.01 * rng.standard_normal()), seed=seed)
    assert diagnosis.random
    assert 1 / 3 < diagnosis.noise * unit / (0.01 * c) < 3


def rounded(decimals):
    return lambda x: round(SMOOTH["quadratic"](x), decimals)


def single(x):
    return float(np.float32(SMOOTH["quadratic"](x)))


@seeds
@pytest.mark.parametrize(
    ("f", "unit"),
    [(single, 1e-6), *((rounded(decimals), 10.0**-decimals) for decimals in (1, 2, 3, 4, 6))],
    ids=["single precision", *(f"{decimals} decimals" for decimals in (1, 2, 3, 4, 6))],
)
def test_rounded_values_are_not_mistaken_for_exact_ones(f, unit, seed):
    """The difference step must be so long that rounding is at most a fifth of the change."""
    diagnosis, _, _ = diagnosed(f, seed=seed)
    assert not diagnosis.random
    assert diagnosis.mu * np.linalg.norm(2 * W) / np.sqrt(D) > 5 * unit or diagnosis.mu >= 0.1 * diagnosis.length
    assert 0.01 < diagnosis.length < 100


# Kinks, lines, jumps and plateaus.


@seeds
@pytest.mark.parametrize("slope", [0.0, 0.5])
@pytest.mark.parametrize("c", [1e-6, 1.0, 1e6])
def test_a_kink_at_the_start_is_recognised(seed, slope, c):
    diagnosis, _, points = diagnosed(lambda x: c * float(np.abs(x).sum() + slope * (W @ x) / 3), seed=seed)
    assert diagnosis.kink
    assert not diagnosis.random
    assert np.abs(points).max() <= 1e11


@seeds
def test_a_kink_elsewhere_is_not_reported_as_one_at_the_start(seed):
    diagnosis, _, _ = diagnosed(lambda x: abs(float(W @ (x - W))), seed=seed)
    assert not diagnosis.kink
    assert not diagnosis.random
    assert not diagnosis.rough
    assert 1e-2 < diagnosis.length < 1e3


@seeds
def test_a_linear_function_has_a_moderate_length_and_step(seed):
    diagnosis, _, _ = diagnosed(lambda x: float(W @ x) + 2, seed=seed)
    assert not diagnosis.kink
    assert not diagnosis.random
    assert not diagnosis.rough
    assert diagnosis.mu <= diagnosis.length <= 1e3


@seeds
@pytest.mark.parametrize("value", [0.0, 3.0, -1e9])
def test_a_plateau_is_recognised(seed, value):
    diagnosis, _, points = diagnosed(lambda x: value, seed=seed)
    assert diagnosis.rough
    assert not diagnosis.kink
    assert not diagnosis.random
    assert diagnosis.mu > 1e-3
    assert len(points) < 100


@seeds
@pytest.mark.parametrize("edge", [0.0, 0.3, 1.0])
def test_a_jump_is_not_mistaken_for_curvature(seed, edge):
    diagnosis, _, _ = diagnosed(lambda x: float(W @ x > edge), seed=seed)
    assert diagnosis.rough
    assert diagnosis.mu > 1e-3


# Cost and bounds.


@seeds
@pytest.mark.parametrize("budget", [4, 10, 40, 99])
def test_a_small_budget_is_not_exceeded(seed, budget):
    rng = np.random.default_rng(seed)
    for f in (lambda x: rng.standard_normal(), lambda x: 3.0, lambda x: float(np.abs(x).sum())):
        _, _, points = diagnosed(f, seed=seed, budget=budget)
        assert len(points) <= budget


@seeds
def test_pure_noise_is_recognised_with_a_bounded_number_of_calls(seed):
    rng = np.random.default_rng(seed)
    diagnosis, _, points = diagnosed(lambda x: rng.standard_normal(), seed=seed)
    assert diagnosis.random
    assert len(points) < 300


@smooth
def test_no_point_leaves_the_box_or_moves_an_excluded_coordinate(f):
    for seed in range(4):
        _, _, points = diagnosed(f, seed=seed, bounds=(-1e-5, 2.0), exclude=[3])
        assert points.min() >= -1e-5
        assert points.max() <= 2.0
        assert not points[:, 3].any()


@pytest.mark.parametrize("value", [1e308, -1e308, 1e-308, 5e-324])
def test_extreme_values_give_a_finite_diagnosis(value):
    rng = np.random.default_rng(0)
    for f in (lambda x: value, lambda x: value if x.any() else 1.0, lambda x: value * rng.random()):
        diagnosis, _, _ = diagnosed(f)
        assert np.isfinite([diagnosis.mu, diagnosis.length, diagnosis.noise, diagnosis.curvature]).all()
        assert diagnosis.mu > 0
        assert diagnosis.summary()


# What the calls are for.


@pytest.mark.parametrize("sd", [1e-3, 1e-2])
def test_weak_random_noise_takes_about_thirty_calls(sd):
    """Six values at the start measure the noise, two per length show whether it hides F, and eight give the length."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        found, _, points = diagnosed(lambda x: SMOOTH["quadratic"](x) + sd * rng.standard_normal(), seed=seed)  # noqa: B023
        assert found.random
        assert len(points) <= 40


def test_noise_does_not_shorten_the_length_along_a_direction_that_the_gradient_is_nearly_orthogonal_to():
    """A quadratic whose minimum is 3 away: along 1 of 25 directions the slope is a twentieth of the usual one."""
    goal = np.full(D, 3 / np.sqrt(D))
    for seed in range(40):
        rng = np.random.default_rng(seed)
        found, _, _ = diagnosed(lambda x: 0.5 * np.sum((x - goal) ** 2) + 1e-3 * rng.standard_normal(), seed=seed)  # noqa: B023
        assert found.length > 0.1


def test_three_components_give_a_length_where_one_is_nearly_stationary():
    """Of three squares of one score, one has its minimum next to the start; the natural length is that of all."""
    for seed in range(20):
        asked, length = squares(seed)
        assert asked <= 11  # three of each, one more to the other side, and one again at a bend
        assert length > 0.4


def squares(seed):
    """Diagnose three squares; returns the calls and the natural length, which is 0.01 over W . u for the first alone."""
    targets = np.array([1e-2, 2.0, -3.0])
    theta, constraint = np.zeros(D), Constraint(D, 2)
    task = Task(
        theta,
        3,
        zt.methods.Auto(),
        zt.Estimator(),
        constraint,
        10_000,
        reserve=0,
        seed=seed,
        key=key_of(seed),
        estimator_given=False,
    )
    context, asked = Context(task), 0
    asks = diagnose(context)
    probes = next(asks)
    while True:
        plan = task.plan(probes, context.round)
        asked += plan.calls
        context.enter(HardThreshold(constraint), asked)
        values = (plan.points() @ W - targets[plan.components]) ** 2
        try:
            probes = asks.send(Answers(plan, values))
        except StopIteration as end:
            return asked, end.value.length
