"""Methods of unusual kinds that a user may write: the engine drives them all in the same way."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.rounds.method import Iterate
from zerothresh.rounds.requests import Probes
from zerothresh.rounds.workspace import LARGE, PointPool

GOAL = np.array([0.0, 2.0, 0.0, -1.0, 0.0])


def sphere(x):
    return float(((x - GOAL) ** 2).sum())


@dataclass(frozen=True)
class Descent:
    """Gradient descent that never uses H."""

    eta: float = 0.1
    sparse = False

    def init(self, theta):
        return Iterate(theta)

    def plan(self, state, n, rng):
        return Probes.gradients(at=[state.theta], of=range(n))

    def update(self, state, answers, H):
        return Iterate(state.theta - self.eta * answers.mean())


def test_a_method_without_the_l0_constraint_steps_without_using_H():
    steps = []
    result = zt.minimize(sphere, 5, 2, budget=100, method=Descent(), seed=0, callback=lambda p: steps.append(p.nit))
    assert result.nit == len(result.trace) == 9  # 9 rounds of 11 calls, and one call for F at the result
    assert steps == list(range(1, 10))
    assert result.nht == 0


@dataclass(frozen=True)
class Thoughtful(zt.Program):
    """Asks for nothing after each step."""

    def search(self, context):
        theta = context.theta0
        while True:
            yield from context.values([theta])
            theta = context.H(theta + 0.1 * GOAL)
            context.move(theta)
            yield Probes.values([], context.everything)
            yield Probes()


@pytest.mark.parametrize("stop", [1, 2, 5])
def test_a_run_is_continued_from_a_round_that_asked_for_nothing(stop, tmp_path):
    def enough(progress):
        if progress.nit == stop:
            raise StopIteration

    arguments = {"budget": 30, "method": Thoughtful(), "seed": 1, "monitor": sphere}
    whole = zt.minimize(sphere, 5, 2, **arguments)
    part = zt.minimize(sphere, 5, 2, **arguments, run=tmp_path / "run", callback=enough)
    assert part.status is zt.Status.CALLBACK
    rest = zt.minimize(sphere, 5, 2, **arguments, run=tmp_path / "run")
    assert np.array_equal(rest.x, whole.x)
    assert (rest.nit, rest.nht) == (whole.nit, whole.nht)


@dataclass(frozen=True)
class Broken(Descent):
    """Fails in its second update."""

    def update(self, state, answers, H):
        if state.theta.any():
            raise ZeroDivisionError("no step")
        return super().update(state, answers, H)


def test_an_error_in_update_ends_the_run_with_the_best_point_so_far(tmp_path):
    opt = zt.Optimizer(5, 2, budget=100, method=Broken(), seed=0, run=tmp_path / "a")
    while not opt.done:
        batch = opt.ask()
        opt.tell(batch, [sphere(x) for x in batch.points])
    opt.close()
    result = opt.result()
    assert result.status is zt.Status.METHOD_FAILED
    assert not result.success
    assert "Broken raised ZeroDivisionError: no step in round 1" in result.message
    assert "ZeroDivisionError: no step" in result.failure.traceback
    assert "fault of zerothresh" not in result.message  # it is the user's own
    assert result.fun == sphere(result.x)  # F at the result was paid for out of the calls that were kept for it
    with zt.Optimizer(5, 2, budget=100, method=Broken(), seed=0, run=tmp_path / "a") as again:
        assert again.result().status is zt.Status.METHOD_FAILED
        assert again.nfev == result.nfev


@pytest.mark.parametrize(
    "method", [zt.VRSZHT(0.1, m=3, batch=5), zt.SARAHSZHT(0.1, m=3, batch=5), zt.SZOHT(0.1, batch=5)], ids=repr
)
def test_a_batch_of_more_than_all_components_is_refused_before_the_first_call(method):
    calls = []
    with pytest.raises(ValueError, match="5"):
        zt.minimize(lambda x, i: calls.append(x) or 0.0, 5, 2, n=2, budget=200, method=method, seed=0)
    assert not calls


@dataclass(frozen=True)
class Idle(zt.Program):
    """Looks at its budget for ever after the second round."""

    def search(self, context):
        for _ in range(2):
            yield from context.values([context.theta])
        while context.left > 0:
            pass


def test_a_program_that_goes_round_without_asking_is_stopped():
    result = zt.minimize(sphere, 5, 2, budget=100, method=Idle(), seed=0)
    assert result.status is zt.Status.METHOD_FAILED
    assert "without asking for a value" in result.message


@dataclass(frozen=True)
class AsksNothing(Descent):
    """Asks for no component after the first round."""

    def plan(self, state, n, rng):
        probes = super().plan(state, n, rng)
        return probes if not state.theta.any() else zt.Probes.values(at=[], of=range(n))

    def update(self, state, answers, H):
        return state if state.theta.any() else super().update(state, answers, H)


def test_a_method_that_asks_for_nothing_too_often_is_stopped():
    result = zt.minimize(sphere, 5, 2, budget=100, method=AsksNothing(), seed=0)
    assert result.status is zt.Status.METHOD_FAILED
    assert "the method asked for nothing in 1000 rounds in a row" in result.message


def test_an_error_of_a_method_before_the_first_call_is_raised():
    @dataclass(frozen=True)
    class Hopeless(Descent):
        def plan(self, state, n, rng):
            raise ZeroDivisionError("no plan")

    with pytest.raises((ZeroDivisionError, ValueError), match="no plan"):
        zt.minimize(sphere, 5, 2, budget=100, method=Hopeless(), seed=0)


def test_a_run_whose_method_was_mended_goes_on(tmp_path, monkeypatch):
    made = {"budget": 100, "method": Broken(), "seed": 0, "run": tmp_path / "a"}
    stopped = zt.minimize(sphere, 5, 2, **made)
    monkeypatch.setattr(Broken, "update", Descent.update)
    mended = zt.minimize(sphere, 5, 2, **made)
    assert mended.status is zt.Status.BUDGET
    assert mended.nfev > stopped.nfev


@dataclass(frozen=True)
class WithBegin(Descent):
    """Has a hyper-parameter that is called like the function by which programs begin."""

    begin: int = 3


def test_a_hyper_parameter_may_be_called_begin():
    assert zt.minimize(sphere, 5, 2, budget=50, method=WithBegin(), seed=0).nit > 0


def test_a_run_folder_is_free_again_when_its_optimiser_is_dropped(tmp_path):
    opt = zt.Optimizer(5, 2, budget=100, seed=0, run=tmp_path / "run")
    batch = opt.ask()
    session = weakref.ref(opt.session)
    gc.disable()
    try:
        del opt
        assert session() is None  # no cycle keeps it alive
    finally:
        gc.enable()
    zt.Optimizer(5, 2, budget=100, seed=0, run=tmp_path / "run").close()
    assert len(batch.points) > 0


# The memory of points.


def test_memory_is_used_again_only_when_nobody_holds_the_points():
    pool = PointPool()
    first = pool.empty(2, LARGE)
    first[:] = 1.0
    row, address = first[1], first.__array_interface__["data"][0]
    del first
    second = pool.empty(2, LARGE)
    second[:] = 2.0
    assert (row == 1.0).all()  # a user kept a view
    assert second.__array_interface__["data"][0] != address
    del row
    third = pool.empty(2, LARGE)
    assert third.__array_interface__["data"][0] == address
    assert (second == 2.0).all()


def test_points_that_a_user_keeps_stay_as_they_were():
    kept, copies = [], []

    def fun(points):
        kept.append(points[1])
        copies.append(points[1].copy())
        return ((points - 1.0) ** 2)[:, :10].sum(axis=1)

    estimator = zt.Estimator(q=4, mu=1e-3, directions="sphere")
    zt.minimize(fun, LARGE, 3, budget=60, method=zt.FGZOHT(eta=1e-9), estimator=estimator, vectorized=True, seed=0)
    assert len(kept) > 5
    assert all(map(np.array_equal, kept, copies))
