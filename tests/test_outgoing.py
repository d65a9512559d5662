"""What an epoch of VR-SZHT and SARAH-SZHT hands on to the next one, and what a run returns."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.rounds.advance import advance, start

M = 4
RIDGE = zt.problems.ridge(seed=0)
RANDOM = [zt.VRSZHT(0.02, m=M, output="random"), zt.SARAHSZHT(0.02, m=M, output="random")]
LAST = [zt.VRSZHT(0.02, m=M), zt.SARAHSZHT(0.02, m=M)]
# The laws of the appendix: VR-SZHT "random t' in [m-1]", SARAH-SZHT "uniformly at random from {0, 1, ..., m}".
LAWS = [range(M), range(M + 1)]


def states(method, problem, rounds, seed=0):
    """Yield the state before each round, and the point that a run would return then."""
    estimator = zt.Estimator(q=1, mu=1e-4)
    opt = zt.Optimizer(problem.d, 2, n=problem.n, budget=10**9, method=method, seed=seed, estimator=estimator)
    standing = start(opt.task)
    for _ in range(rounds):
        yield standing.search.state, standing.theta
        plan = opt.task.plan(standing.search.request, standing.round)
        standing = advance(opt.task, standing, plan, problem.values(plan.points(), plan.components))


def epochs(method, problem, count):
    """Yield theta^(0) .. theta^(m) of each epoch, its outgoing iterate, and what a run returned at each step."""
    anchors = isinstance(method, zt.VRSZHT)  # VR-SZHT has a round for the anchor, SARAH-SZHT steps in that round
    length = M + anchors
    seen = list(states(method, problem, count * length + 1))
    for epoch in range(count):
        before = seen[epoch * length][0]
        steps = seen[epoch * length + 1 + anchors : (epoch + 1) * length + 1]
        iterates = [before.outgoing, *[state.theta for state, _ in steps]]
        assert len(iterates) == M + 1
        yield iterates, steps[-1][0].outgoing, [point for _, point in steps]


@pytest.mark.parametrize(("method", "law"), list(zip(RANDOM, LAWS, strict=True)))
def test_random_outgoing_iterates_have_the_law_of_the_appendix(method, law):
    """Each index of the law is as frequent as the others: 4 sigma of a binomial count, fixed seed; no other occurs."""
    count = 2000
    problem = zt.problems.quadratic(d=3, n=2, spread=1.0, seed=0)
    found = np.zeros(M + 1, int)
    for iterates, outgoing, _ in epochs(method, problem, count):
        found[[x is outgoing for x in iterates].index(True)] += 1
    p = 1 / len(law)
    sigma = np.sqrt(count * p * (1 - p))
    inside = [t in law for t in range(M + 1)]
    assert np.abs(found[inside] - count * p).max() < 4 * sigma
    assert not found[np.logical_not(inside)].any()


@pytest.mark.parametrize("method", RANDOM)
def test_successive_draws_of_the_outgoing_iterate_are_independent(method):
    """Two epochs in a row draw the same index with probability 1/|law|: 4 sigma, fixed seed."""
    count = 2000
    problem = zt.problems.quadratic(d=3, n=2, spread=1.0, seed=0)
    drawn = [[x is out for x in iterates].index(True) for iterates, out, _ in epochs(method, problem, count)]
    p = 1 / len(LAWS[RANDOM.index(method)])
    same = np.mean([one == other for one, other in pairwise(drawn)])
    assert abs(same - p) < 4 * np.sqrt(p * (1 - p) / (count - 1))


@pytest.mark.parametrize("method", RANDOM)
def test_a_run_returns_the_outgoing_iterate_of_the_last_complete_epoch(method):
    moved = False
    for iterates, outgoing, points in epochs(method, RIDGE, 12):
        assert all(point is iterates[0] for point in points[:-1])  # in the middle: what the epoch before handed on
        assert points[-1] is outgoing
        moved |= outgoing is not iterates[0]
    assert moved


@pytest.mark.parametrize("method", LAST)
def test_by_default_an_epoch_hands_on_its_last_iterate_and_a_run_returns_the_iterate(method):
    for iterates, outgoing, points in epochs(method, RIDGE, 6):
        assert outgoing is iterates[-1]
        assert all(point is iterate for point, iterate in zip(points, iterates[1:], strict=True))


@pytest.mark.parametrize("method", RANDOM)
def test_before_the_first_epoch_is_complete_a_run_returns_the_start(method):
    x0 = np.array([0.5, 0.0, -0.25, 0.0, 0.0])
    estimator = zt.Estimator(q=2, mu=1e-4)
    steps = 2  # inner steps that fit: the anchor, two of them, and F at the end
    budget = 3 * RIDGE.n + (steps - isinstance(method, zt.SARAHSZHT)) * 2 * 3 + RIDGE.n
    result = zt.minimize(RIDGE, x0, 2, budget=budget, method=method, seed=0, estimator=estimator)
    assert (result.nit, result.nht) == (steps, steps)
    assert np.array_equal(result.x_last, x0)
    assert result.fun == pytest.approx(RIDGE.F(x0))


@pytest.mark.parametrize("method", RANDOM)
@pytest.mark.parametrize("budget", [331, 500, 812, 1200])
def test_trace_progress_and_result_are_about_one_point(method, budget):
    """Wherever the budget ends, in an epoch or behind one."""
    settings = {"budget": budget, "method": method, "seed": 3, "estimator": zt.Estimator(q=2, mu=1e-4)}
    result = zt.minimize(RIDGE, None, 2, monitor=RIDGE.F, **settings)
    *_, last = zt.iterate(RIDGE, None, 2, monitor=RIDGE.F, **settings)
    assert np.array_equal(last.x, result.x_last)
    assert result.trace.fun[-1] == RIDGE.F(result.x_last)
    assert result.trace.support[-1].tolist() == np.flatnonzero(result.x_last).tolist()


@pytest.mark.parametrize("method", RANDOM)
def test_a_run_that_is_stopped_anywhere_goes_on_to_the_same_point(method, tmp_path):
    """A monitor gives F, so that a stop pays no calls for it, and both runs have the same number of rounds."""
    settings = {"method": method, "seed": 1, "estimator": zt.Estimator(q=2, mu=1e-4), "monitor": RIDGE.F}
    whole = zt.minimize(RIDGE, None, 2, budget=1500, **settings)
    for steps in range(1, 2 * M + 2):
        folder = tmp_path / f"{steps}"

        def stop(progress, steps=steps):
            if progress.nit == steps:
                raise StopIteration

        zt.minimize(RIDGE, None, 2, budget=1500, run=folder, callback=stop, **settings)
        result = zt.minimize(RIDGE, None, 2, budget=1500, run=folder, **settings)
        assert result.x_last.tobytes() == whole.x_last.tobytes()
        assert np.array_equal(result.trace.fun, whole.trace.fun)


def test_one_step_per_epoch_would_never_leave_the_start():
    with pytest.raises(ValueError, match="m must be at least 2 with output='random'"):
        zt.VRSZHT(0.1, m=1, output="random")
    assert zt.SARAHSZHT(0.1, m=1, output="random").m == 1
