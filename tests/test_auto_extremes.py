"""Every method on the smallest and most constrained problems: it must end with a result, whatever the function is."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from zoo import OF_VALUES, instance

import zerothresh as zt
from zerothresh.constraint.threshold import Constraint, HardThreshold
from zerothresh.methods.auto.arms.descent import Descent
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.quasi_newton import QuasiNewton
from zerothresh.methods.program.context import Context
from zerothresh.methods.registry import family_of
from zerothresh.rounds.method import is_sparse
from zerothresh.rounds.task import Task
from zerothresh.sampling.philox import key_of

OWN = [name for name in OF_VALUES if family_of(zt.methods.available()[name]) != "external"]
PROGRAMS = {
    "auto": zt.methods.Auto(),
    "htp": zt.methods.HTP(),
    "index": zt.methods.Index(),
    "niht": zt.methods.NIHT(),
    "niht, bb and momentum": zt.methods.NIHT(step="bb", momentum=True),
    "guided-saga": zt.methods.GuidedSAGA(),
}
ENDED = (zt.Status.BUDGET, zt.Status.CONVERGED, zt.Status.DIVERGED)

PROBLEMS = {  # x0, k, and the other limits
    "one coordinate": (1, 1, {}),
    "k = d": (3, 3, {}),
    "one group": (3, 1, {"groups": [0, 0, 0]}),
    "k = the number of groups": (4, 2, {"groups": [0, 0, 1, 1]}),
    "a start that fills its group": (np.array([1.0, 2.0, 0.0]), 1, {"groups": [0, 0, 1]}),
    "include fills k": (4, 2, {"include": [0, 3]}),
    "include names all": (2, 2, {"include": [0, 1]}),
    "exclude leaves k": (5, 2, {"exclude": [0, 1, 4]}),
    "one free": (4, 2, {"exclude": [0, 1, 2]}),
    "nothing free": (3, 1, {"bounds": (0.0, 0.0)}),
    "pinned": (4, 2, {"bounds": ([0.0, -1.0, 0.0, 0.0], [0.0, 1.0, 2.0, 0.0])}),
    "pinned, in groups": (4, 1, {"bounds": (0.0, [0.0, 1.0, 2.0, 0.0]), "groups": [0, 0, 1, 1]}),
    "a start close to 0": (np.array([0.0, 1e-300, 0.0, 0.0]), 2, {}),
}
problems = pytest.mark.parametrize("problem", list(PROBLEMS.values()), ids=list(PROBLEMS))


def square(x):
    return float(((x - 1) ** 2).sum())


FUNCTIONS = {
    "square": square,
    "constant": lambda x: 1.0,
    "zero": lambda x: 0.0,
    "whole numbers": lambda x: int(3 * square(x)),
    "single precision": lambda x: float(np.float32(square(x))),
    "rounded": lambda x: round(square(x), 1),
    "steps": lambda x: float(np.floor(3 * x).sum()),
    "tiny": lambda x: 1e-300 * square(x),
    "linear": lambda x: float(-x.sum()),
    "kink": lambda x: float(np.abs(x - 1).sum()),
    "peak": lambda x: float(x.any()),
    "not a number somewhere": lambda x: np.nan if 0.3 < x.max() < 0.8 else square(x),
}
FEW = ("square", "constant", "whole numbers", "not a number somewhere")  # those on which the most code goes another way


def with_noise(seed):
    """A function whose values are random, from a generator of its own."""
    rng = np.random.default_rng(seed)
    return lambda x: square(x) + 0.3 * float(rng.standard_normal())


def check(method, fun, x0, k, limits, *, n, budget, seed):
    """Run a method, and hold it to what every run promises; a budget that is too small is refused before any call."""
    d = x0 if isinstance(x0, int) else x0.size
    asked = []

    def counted(x, i):
        asked.append(x)
        return fun(x) * (1 + i % 2) + 0.1 * i

    def minimise():
        options = {"budget": budget, "method": method, "seed": seed, "on_nan": "worst", **limits}
        return zt.minimize(counted, x0, k, n=n, **options)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # k = d, or a start that is moved into the bounds
        try:
            result = minimise()
        except ValueError as error:
            if asked or "is too small" not in str(error):
                raise
            return None
    assert result.status in ENDED, result.message
    assert result.nfev == len(asked) <= budget
    assert np.isfinite(asked).all()
    feasible = Constraint(d, k, **limits)
    assert feasible.holds(result.x) if is_sparse(method) else feasible.within_bounds(result.x)
    return result


# Every method.


@pytest.mark.parametrize("name", OWN)
@problems
def test_a_method_ends_with_a_result_on_every_small_problem(name, problem):
    for number, fun in enumerate([*(FUNCTIONS[label] for label in FEW), with_noise(1)]):
        check(instance(name), fun, *problem, n=1 + 2 * (number % 2), budget=70, seed=number)


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
@problems
def test_a_method_ends_with_a_result_on_every_small_problem_for_many_seeds(name, problem):
    for seed in range(2):
        for fun in (*FUNCTIONS.values(), with_noise(seed)):
            for n, budget in ((1, 12), (1, 400), (2, 60), (3, 150), (5, 200)):
                check(instance(name), fun, *problem, n=n, budget=budget, seed=seed)


# Auto and its parts.


@problems
def test_auto_ends_with_a_result_on_every_small_problem_and_function(problem):
    for number, fun in enumerate([*FUNCTIONS.values(), with_noise(2)]):
        check(zt.methods.Auto(), fun, *problem, n=1 + 3 * (number % 2), budget=160, seed=number)


@pytest.mark.slow
@pytest.mark.parametrize("method", list(PROGRAMS.values()), ids=list(PROGRAMS))
@problems
def test_the_parts_of_auto_end_with_a_result_on_every_small_problem_and_function(method, problem):
    for seed in range(3):
        for fun in (*FUNCTIONS.values(), with_noise(seed)):
            for n, budget in ((1, 160), (4, 160), (1, 1000)):
                check(method, fun, *problem, n=n, budget=budget, seed=seed)


ALL_AT_ONCE = {  # groups, and k such that all of them may be non-zero
    "a pair": ([0, 0], 1),
    "one group": ([0, 0, 0], 1),
    "two groups": ([0, 0, 1, 1], 2),
    "three groups": ([0, 1, 1, 2, 2], 3),
}


@pytest.mark.parametrize(("groups", "k"), list(ALL_AT_ONCE.values()), ids=list(ALL_AT_ONCE))
@pytest.mark.parametrize("name", ["square", "whole numbers", "single precision", "rounded", "steps"])
def test_auto_makes_no_restarts_if_every_group_may_be_in_the_support(groups, k, name):
    """A restart leaves a part of the support out at first; here nothing would be left to search."""
    for seed in range(12):
        result = check(
            zt.methods.Auto(), FUNCTIONS[name], len(groups), k, {"groups": groups}, n=1, budget=60, seed=seed
        )
        if name == "square":
            np.testing.assert_allclose(result.x, 1.0, atol=1e-4)


def test_auto_restarts_if_some_groups_have_to_stay_out():
    goal = np.array([1.0, 1.0, 1.4, 0.0, 0.0, 0.0, 1.3, 0.0])

    def fun(x):
        return float(((x - goal) ** 2).sum())

    found = zt.minimize(fun, 8, 1, budget=1500, seed=0, groups=[0, 0, 1, 1, 2, 2, 3, 3])
    assert any("restart" in remark and "No restarts" not in remark for _, remark in found.remarks)


def test_a_start_whose_squares_underflow_tells_nothing_of_the_l2_term():
    rows = np.random.default_rng(0).standard_normal((6, 4))

    def fun(x, i):
        return (float(rows[i] @ x) - 1.0) ** 2 + 0.1 * float(x @ x)

    for size in (1e-300, 1e-170):
        result = zt.minimize(fun, np.array([size, 0.0, 0.0, 0.0]), 2, n=6, budget=600, method="index", seed=1)
        assert result.status in ENDED
        assert result.fun < np.mean([fun(np.zeros(4), i) for i in range(6)])


@pytest.mark.parametrize("method", list(PROGRAMS.values()), ids=list(PROGRAMS))
@pytest.mark.parametrize("size", [1e9, 1e139, 1e-139])
def test_variables_of_any_size_do_not_overflow_a_method(method, size):
    """The squares of the lengths that a method tries may be beyond the floating-point numbers."""
    for fun in (FUNCTIONS["constant"], lambda x: float(np.tanh(x - 1).sum()), lambda x: square(np.tanh(x))):
        for seed in range(3):
            start = np.array([size, 0.0])
            result = check(method, lambda x, fun=fun: fun(x / size), start, 1, {}, n=3, budget=150, seed=seed)
            assert fun is not FUNCTIONS["constant"] or result.status is not zt.Status.DIVERGED


# Loops that ask for nothing.


def test_a_gauss_newton_model_that_cannot_be_paid_for_is_not_waited_for():
    """A search at a stationary point, with calls left for a gradient on one coordinate but not for the model."""
    theta, components = np.array([0.5]), 5
    limits = {"budget": 100, "reserve": 0, "seed": 3, "key": key_of(3)}
    task = Task(theta, components, zt.methods.HTP(), zt.Estimator(), Constraint(1, 1), **limits)
    context = Context(task)
    context.enter(HardThreshold(task.constraint), used=100 - 3 * components)
    found = {"length": 1.0, "curvature": 1.0, "start_value": 1.0, "largest_value": 1.0}
    descent = Descent(context, Diagnosis(noise=1e-16, random=False, rough=False, kink=False, **found))
    at = descent.at
    at.oracle = at.oracle.with_components(components)
    at.values = at.start_values = np.ones(components)
    at.model = QuasiNewton(at.C, np.eye(1))
    descent.support_step.losses = 1  # the model lost once, and is to be tried again
    with pytest.raises(StopIteration) as end:
        next(descent._iterate(np.zeros(1)))
    assert end.value.value == ""
    assert descent.local_minimum is at.theta  # otherwise the same would be tried again without end
