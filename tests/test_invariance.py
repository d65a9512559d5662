"""Decisions do not depend on the unit or offset of F, nor on the unit, order or origin of x.

Each test runs a method twice, the second time on the same problem in other words, and compares the number of calls
and the points that were asked for. The noise of a noisy problem is the same sequence both times.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.sampling.philox import Stream

D = 80
DATA = np.random.default_rng(5)
ROWS, TARGETS = DATA.standard_normal((300, D)), DATA.standard_normal(300)
WEIGHTS, GOAL = DATA.uniform(1.0, 5.0, D), np.where(np.arange(D) % 16 == 3, DATA.uniform(1.0, 2.0, D), 0.02)
METHODS = ["htp"]


def one(X, I):
    """A function that is not quadratic, with five large coordinates; it has one component."""
    Z = X - GOAL
    return Z**2 @ WEIGHTS + 0.1 * np.sum(Z**4, axis=1) + 0.3 * np.sin(X.sum(axis=1))


def many(X, I):
    """Components of two scores each, whose mean is minimised."""
    scores = np.einsum("bd,bd->b", X, ROWS[I])
    other = np.einsum("bd,bd->b", X, ROWS[(I + 1) % 300])
    return (scores - TARGETS[I]) ** 2 + np.logaddexp(0.0, other) + 0.05 * np.sum(X**2, axis=1)


PROBLEMS = {"one component": (one, 1, 3000), "300 components": (many, 300, 40_000)}
problems = pytest.mark.parametrize("problem", list(PROBLEMS.values()), ids=list(PROBLEMS))
noises = pytest.mark.parametrize("noise", [0.0, 0.05], ids=["exact", "noisy"])
methods = pytest.mark.parametrize("method", METHODS)


@dataclass
class Recorded:
    """A problem in other words: a F(x / c) + b, with coordinates in another order and at another origin."""

    fun: object
    noise: float
    a: float = 1.0
    b: float = 0.0
    c: float = 1.0
    order: np.ndarray = field(default_factory=lambda: np.arange(D))
    origin: float = 0.0
    points: list = field(default_factory=list)
    values: list = field(default_factory=list)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def __call__(self, X, I):
        x = (X / self.c - self.origin)[:, np.argsort(self.order)]  # x in the words of the plain problem
        plain = self.fun(x, I) + self.noise * self.rng.standard_normal(len(x))
        self.points.append(x)
        self.values.append(plain)
        return self.a * plain + self.b


def run(method, problem, noise, *, k=5, start=0.0, width=np.inf, **words):
    """Run a method on a problem in other words; returns the points asked for, in plain words, and the result."""
    fun, n, budget = problem
    recorded = Recorded(fun, noise, **words)
    c, origin = recorded.c, recorded.origin
    x0 = np.zeros(D)
    x0[: k if k < D else D] = start
    x0 = (c * (x0 + origin))[recorded.order]
    limits = {} if width == np.inf else {"bounds": (c * (origin - width), c * (origin + width))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # k = d
        result = zt.minimize(recorded, x0, k, n=n, budget=budget, method=method, seed=3, vectorized=True, **limits)
    points, values = np.concatenate(recorded.points), np.concatenate(recorded.values)
    if n == 1 and not noise:  # gains below this are rounding, which the unit changes
        close = values <= values.min() + 1e-6 * (values[0] - values.min())
        return points[: int(np.argmax(close)) + 1], points, result
    return points, points, result


def same(one, other, rtol):
    """Whether two runs asked for the same points, up to rounding; with rtol = 0, bit by bit up to the end."""
    points, all_points, result = one
    others, all_others, other_result = other
    assert len(points) == len(others)
    scale = np.abs(points).max()
    assert np.abs(points - others).max() <= rtol * scale
    if rtol == 0:
        assert len(all_points) == len(all_others)
        assert result.status is other_result.status
    return True


@methods
@problems
@noises
@pytest.mark.parametrize("a", [2.0**20, 2.0**-20])
def test_the_unit_of_f_does_not_matter_at_all(method, problem, noise, a):
    assert same(run(method, problem, noise), run(method, problem, noise, a=a), 0.0)


@methods
@problems
@noises
@pytest.mark.parametrize(("a", "b"), [(1.0, -1.0), (1.0, 40.0), (1e-3, 0.0), (7.0, -100.0)])
def test_the_offset_of_f_matters_only_by_rounding(method, problem, noise, a, b):
    assert same(run(method, problem, noise), run(method, problem, noise, a=a, b=b), 1e-4)


@methods
@problems
@noises
@pytest.mark.parametrize("c", [2.0**30, 2.0**-30])
@pytest.mark.parametrize(("start", "width"), [(0.0, 3.0), (0.5, np.inf)], ids=["box", "start"])
def test_the_unit_of_x_does_not_matter_at_all(method, problem, noise, c, start, width):
    """The first length comes from the bounds, or from a start that is not zero."""
    plain = run(method, problem, noise, start=start, width=width)
    assert same(plain, run(method, problem, noise, start=start, width=width, c=c), 0.0)


@methods
@problems
@noises
def test_a_unit_of_x_that_is_not_a_power_of_two_matters_only_by_rounding(method, problem, noise):
    plain = run(method, problem, noise, width=3.0)
    assert same(plain, run(method, problem, noise, width=3.0, c=1e-3), 1e-4)


@methods
@problems
def test_the_order_of_the_coordinates_matters_only_by_rounding(method, problem, monkeypatch):
    """Without noise: the calls of a gradient come in another order, so that each would meet other noise."""
    noise = 0.0
    plain = run(method, problem, noise, width=3.0)
    order, normal = np.random.default_rng(2).permutation(D), Stream.normal
    monkeypatch.setattr(
        Stream, "normal", lambda self, size: normal(self, size)[order] if size == D else normal(self, size)
    )
    assert same(plain, run(method, problem, noise, width=3.0, order=order), 1e-4)


@methods
@problems
@noises
def test_the_origin_of_x_matters_only_by_rounding_if_all_coordinates_may_be_non_zero(method, problem, noise):
    plain = run(method, problem, noise, k=D, start=0.3, width=3.0)
    assert same(plain, run(method, problem, noise, k=D, start=0.3, width=3.0, origin=0.25), 1e-4)
