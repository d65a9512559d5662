"""Solvers of other packages: sparse points, exact counts, repeatable runs, and errors that are told."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from bowls import Bowl, sparse_centre

import zerothresh as zt
from zerothresh.methods.external.outside import queried_points
from zerothresh.methods.external.solvers import SOLVERS

installed = pytest.mark.parametrize(
    "solver",
    [
        pytest.param(
            solver,
            marks=[
                pytest.mark.skipif(find_spec(solver) is None, reason="not installed"),
                *([pytest.mark.slow] if solver == "evosax" else []),  # it compiles for most of a minute
            ],
        )
        for solver in SOLVERS
    ],
)


@installed
@pytest.mark.filterwarnings("ignore")
def test_an_outside_solver_gets_sparse_points_is_counted_exactly_and_repeats_itself(solver):
    centre = sparse_centre(6, 2.0, -1.0)
    points = []

    class Watched(Bowl):
        def values(self, given, components):
            points.extend(given.copy())
            return super().values(given, components)

    import_module("evosax.algorithms" if solver == "evosax" else solver)  # some draw when they are imported
    results = []
    before = np.random.mtrand._rand.get_state()[1].copy()
    for budget in (700, 701, 700):
        problem = Watched(centre, n=2)
        points.clear()
        results.append(zt.minimize(problem, None, 2, budget=budget, method=zt.methods.Outside(solver), seed=1))
        assert results[-1].nfev == problem.calls == len(points)
        assert budget - 4 < results[-1].nfev <= budget  # n = 2 calls per value, and F at the result is known
        assert all(np.count_nonzero(point) <= 2 for point in points)
    assert np.array_equal(np.random.mtrand._rand.get_state()[1], before)  # nobody's global generator is touched
    assert np.array_equal(results[0].x, results[2].x)
    assert results[0].trace == results[2].trace
    assert results[0].fun < 0.2 * Bowl(centre).F(np.zeros(6))


@installed
@pytest.mark.filterwarnings("ignore")
def test_an_outside_solver_goes_on_where_it_was_stopped(solver, tmp_path):
    problem = Bowl(sparse_centre(6, 2.0, -1.0), n=2)
    whole = zt.minimize(problem, None, 2, budget=300, method=zt.methods.Outside(solver), seed=1)

    def optimizer():
        return zt.Optimizer(6, 2, n=2, budget=300, method=zt.methods.Outside(solver), seed=1, run=tmp_path / "run")

    with optimizer() as opt:
        for _ in range(40):
            batch = opt.ask()
            opt.tell(batch, problem.values(batch.points, batch.components))
    with optimizer() as opt:
        assert opt.nfev == 80
        while not opt.done:
            batch = opt.ask()
            opt.tell(batch, problem.values(batch.points, batch.components))
    assert np.array_equal(opt.result().x, whole.x)
    assert opt.result().trace == whole.trace
    assert opt.result().nfev == whole.nfev


def test_a_package_that_is_missing_is_named_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setattr(sys.modules[zt.methods.Outside.__module__], "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs the package cma, .* pip install -e '.\[peers\]'"):
        zt.methods.Outside("cma")
    with pytest.raises(ValueError, match=r"solver must be one of 'cma', .* not 'cmaa'; did you mean 'cma'"):
        zt.methods.Outside("cmaa")


@pytest.mark.parametrize(
    ("solver", "algorithm", "message"),
    [
        ("cma", "foo", r"algorithm \(of cma\) must be one of 'full', 'sep', not 'foo'"),
        ("scipy", "Powel", r"algorithm \(of scipy\) must be one of .* not 'Powel'; did you mean 'powell'"),
        ("scipy", "Newton-CG", r"algorithm \(of scipy\) must be one of"),  # which needs derivatives
        ("scipy", 3, r"must be the name of an algorithm, or None, not 3"),
        ("nlopt", "LN_FOO", r"algorithm \(of nlopt\) must be one of"),
    ],
)
def test_an_algorithm_that_the_package_does_not_have_is_refused_when_the_method_is_made(solver, algorithm, message):
    pytest.importorskip(solver)
    with pytest.raises(ValueError, match=message):
        zt.methods.Outside(solver, algorithm)


def test_warnings_of_a_package_are_its_own_and_ours_stay_ours():
    def noisy(fun):
        warnings.warn("inside", stacklevel=1)
        fun([1.0])
        warnings.warn("inside again", stacklevel=1)

    points = queried_points(noisy)
    next(points)
    with pytest.warns(UserWarning, match="outside"):
        warnings.warn("outside", stacklevel=1)
    with pytest.raises(StopIteration):
        points.send(0.0)


def test_outside_solvers_stand_beside_ours_in_a_comparison():
    problem = zt.problems.quadratic(d=6, k_true=2, n=2, condition=3, spread=0.1, seed=1)
    methods = [
        zt.methods.Outside(),
        zt.methods.Outside("scipy", "Nelder-Mead"),
        "auto",
        zt.SZOHT(eta=0.1),
        zt.methods.ZOSGD(eta=0.1),
    ]
    found = zt.compare(problem, methods, 2, budget=400, runs=2, seed=0)
    names = [row["method"] for row in found.rows()]
    assert set(names) == {"scipy", "scipy Nelder-Mead", "auto", "szoht", "zo-sgd"}


def test_an_error_inside_a_solver_is_told_and_one_that_nobody_listens_to_ends():
    def wrong(fun):
        fun([1.0])
        raise KeyError("inside")

    points = queried_points(wrong)
    next(points)
    with pytest.raises(RuntimeError, match="KeyError: 'inside'"):
        points.send(0.0)
    ended = []

    def endless(fun):
        try:
            while True:
                fun([1.0])
        finally:
            ended.append(True)

    points = queried_points(endless)
    next(points)
    points.close()
    assert ended == [True]
