"""Curvatures of a black box, estimated from queries: counted, within the budget, and in the units of the function."""

from __future__ import annotations

import numpy as np
import pytest

import zerothresh as zt
from zerothresh import theory
from zerothresh.advice import ProbeFailed, probe


def test_probing_is_charged_and_never_exceeds_its_budget():
    problem = zt.problems.quadratic(d=30, k_true=3, condition=3, n=6, spread=0.2, seed=0)
    for budget in (150, 400, 2000):
        calls = []

        def counted(X, components, calls=calls):
            calls.append(len(X))
            return problem.values(X, components)

        found = probe(counted, 30, 3, k_star=1, budget=budget, n=6, vectorized=True, seed=0)
        assert found.queries == sum(calls) <= budget
        assert found.constants.queries == found.queries
    exact = theory.restricted(problem.A, s=7, supports=3000)
    assert found.constants.minus.low <= exact.rho_minus
    assert exact.rho_plus <= 1.5 * found.constants.plus.high
    assert 0.5 < found.constants.rho_plus / exact.rho_plus < 2
    assert found.components == 6
    assert found.trusted
    assert found.start == pytest.approx(problem.F(np.zeros(30)))


def test_probing_scales_with_the_units_of_f_and_of_x():
    problem = zt.problems.logistic(n=8, d=12, k_true=2, seed=0)
    one = probe(problem, None, 2, k_star=1, budget=900, seed=4).constants
    big = probe(lambda x, i: 1e6 * problem.values(x[None], np.array([i]))[0], 12, 2, n=8, k_star=1, budget=900, seed=4)
    assert big.constants.rho_plus == pytest.approx(1e6 * one.rho_plus, rel=0.02)


def test_a_function_that_fails_while_probed_says_so():
    def broken(x):
        raise OSError("the licence server is down")

    with pytest.raises(ProbeFailed, match="licence server") as caught:
        probe(broken, 9, 2, k_star=1, budget=300)
    assert caught.value.result.failure is not None


def test_a_budget_that_is_too_small_is_refused():
    for calls in (-3, 1e3):
        with pytest.raises(ValueError, match=r"probe must be .*\(calls for probing\)"):
            zt.advise(lambda x: (x**2).sum(), 4, 2, probe=calls)
    with pytest.raises(ValueError, match="at least 122 calls"):
        probe(lambda x: 0.0, 9, 2, k_star=1, budget=20)
