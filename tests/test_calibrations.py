"""Problems where one run returns all residuals."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import zerothresh as zt

MAKERS = {
    "mixture": zt.problems.mixture,
    "deconvolution": lambda **given: zt.problems.deconvolution(d=60, k_true=4, **given),
    "ode": zt.problems.ode,
}
makers = pytest.mark.parametrize("make", list(MAKERS.values()), ids=list(MAKERS))


@makers
def test_the_truth_explains_the_data_and_a_point_beside_it_does_not(make):
    problem = make(seed=3)
    assert problem.F(problem.truth) == 0.0
    assert problem.F(1.01 * problem.truth) > 1e-7
    assert problem.F(np.zeros(problem.d)) > 1e-2
    assert problem.outputs(problem.truth[None]).shape == (1, problem.n)


@makers
def test_noise_is_in_the_data_and_as_large_as_was_asked_for(make):
    problem, clean = make(seed=3, noise=0.02), make(seed=3)
    error = problem.outputs(problem.truth[None])[0]
    size = np.sqrt(np.mean(clean.measured**2))
    assert np.std(error) == pytest.approx(0.02 * size, rel=5 / np.sqrt(2 * problem.n))  # five standard deviations
    assert np.array_equal(error, problem.outputs(problem.truth[None])[0])


@makers
def test_a_run_has_the_same_bits_in_any_batch_and_in_another_process(make):
    problem = make(seed=1)
    points = 0.1 * np.random.default_rng(0).standard_normal((9, problem.d))
    together = problem.outputs(points)
    assert all(np.array_equal(together[b], problem.outputs(points[b : b + 1])[0]) for b in range(9))
    copied = pickle.loads(pickle.dumps(problem))  # noqa: S301
    assert np.array_equal(copied.outputs(points), together)


@makers
def test_components_are_the_squares_of_the_residuals(make):
    problem = make(seed=2)
    x = 0.5 * problem.truth
    squares = problem.outputs(x[None])[0] ** 2
    assert np.array_equal(problem.values(np.tile(x, (problem.n, 1)), np.arange(problem.n)), squares)
    assert problem.F(x) == pytest.approx(squares.mean())


def test_trajectories_follow_the_differential_equation():
    """A single species that grows at rate 1: exp(t), up to the error of the method of Runge and Kutta."""
    problem = zt.problems.ode(trajectories=2, samples=4, duration=1.0)
    x = np.zeros(60)
    x[10] = 1.0  # u_0' = u_0
    run = np.moveaxis(problem.simulate(x[None]).reshape(2, 3, 4), -1, 0)
    times = np.array([0.25, 0.5, 0.75, 1.0])
    first = run[:, :, 0] / np.exp(times)[:, None]
    assert first == pytest.approx(np.broadcast_to(first[0], (4, 2)), rel=1e-6)
    assert np.ptp(run[:, :, 1:], axis=0).max() == 0.0


def test_trajectories_that_blow_up_stay_finite():
    assert np.isfinite(zt.problems.ode().outputs(np.full((1, 60), 50.0))).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: zt.problems.mixture(d=0), "d must be"),
        (lambda: zt.problems.mixture(k_true=41), "k_true = 41 does not fit into d = 40"),
        (lambda: zt.problems.mixture(width=0), "width must be"),
        (lambda: zt.problems.deconvolution(d=20, k_true=5), "k_true = 5 does not fit into d = 20"),
        (lambda: zt.problems.ode(noise=-1), "noise must be"),
        (lambda: zt.problems.ode(duration=0), "duration must be"),
    ],
)
def test_wrong_parameters_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
