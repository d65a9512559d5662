"""Decisions do not depend on the unit or offset of F, nor on the unit, order or origin of x.

Each test runs a method twice, the second time on the same problem in other words, and compares the number of calls,
the points that were asked for, the stages and the remarks. The noise of a noisy problem is the same sequence both
times. The problems are such that `auto` uses each of its strategies on some of them.
"""

from __future__ import annotations

import functools
import re
import warnings
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.methods.auto.arms.linearised_outputs import LinearisedOutputs
from zerothresh.methods.auto.automatic import ARMS
from zerothresh.sampling.philox import Stream

D = 80
DATA = np.random.default_rng(5)
ROWS, TARGETS = DATA.standard_normal((300, D)), DATA.standard_normal(300)
WEIGHTS, GOAL = DATA.uniform(1.0, 5.0, D), np.where(np.arange(D) % 16 == 3, DATA.uniform(1.0, 2.0, D), 0.02)
TRUE = np.where(np.arange(D) % 16 == 3, 1.5, 0.0)
LINEAR = ROWS @ TRUE + 0.1 * DATA.standard_normal(300)
LINEAR += 0.5 * np.sign(LINEAR)  # no component is so close to its minimum that rounding decides how to measure it
LABELS = np.sign(ROWS @ TRUE + 0.5 * DATA.standard_normal(300))
DENSE, DENSE_GOAL = DATA.standard_normal((500, 2000)) / np.sqrt(500), np.zeros(2000)
DENSE_GOAL[::400] = [1.0, -1.2, 0.8, 1.4, -0.7]
ACTIVE, CENTRE = np.array([17, 401, 402, 777]), np.array([0.2, -0.3, 0.35, -0.1])
SLOPES = 0.3 * DATA.standard_normal((300, D)) + DATA.standard_normal(D)
WORTH = -0.03 * DATA.random(D)
WORTH[[3, 30, 55]] = [1.2, 1.7, 1.4]


def scores(X, I, rows):
    return np.einsum("bd,bd->b", np.broadcast_to(X, (len(I), X.shape[-1])), rows[I])


def one(X, I):
    """A function that is not quadratic, with five large coordinates; it has one component."""
    Z = X - GOAL
    return Z**2 @ WEIGHTS + 0.1 * np.sum(Z**4, axis=1) + 0.3 * np.sin(X.sum(axis=1))


def many(X, I):
    """Components of two scores each, whose mean is minimised."""
    other = scores(X, (I + 1) % 300, ROWS)
    return (scores(X, I, ROWS) - TARGETS[I]) ** 2 + np.logaddexp(0.0, other) + 0.05 * np.sum(X**2, axis=1)


def ridge(X, I):
    """Squares of one score each."""
    return 0.5 * (scores(X, I, ROWS) - LINEAR[I]) ** 2 + 0.05 * np.sum(X**2, axis=1)


def logistic(X, I):
    """Losses of one score each that are not squares."""
    return np.logaddexp(0.0, -LABELS[I] * scores(X, I, ROWS)) + 0.05 * np.sum(X**2, axis=1)


def squares(X, I):
    """Squared residuals of a model with two scores per component."""
    models = [np.tanh(scores(Z, I, ROWS) / 9) + 0.5 * np.tanh(scores(Z, (I + 1) % 300, ROWS) / 9) for Z in (X, TRUE)]
    return (models[0] - models[1]) ** 2


def valley(X, I):
    """A valley whose walls level off, so that long steps do not stand out of the noise either."""
    return -np.exp(-np.sum((X - TRUE) ** 2, axis=1) / 30)


def active(X, I):
    """A function of four coordinates out of many, with several valleys."""
    Z = X[:, ACTIVE] - CENTRE
    return 0.3 * np.cos(9 * Z[:, 0]) * Z[:, 1] - np.exp(-3 * np.sum(Z**2, axis=1))


def dense(X, I):
    """Least squares with more coordinates than calls."""
    return 0.5 * np.sum(((X - DENSE_GOAL) @ DENSE.T) ** 2, axis=1)


def corners(X, I):
    """A function whose sparse minima lie at corners of the box."""
    return np.abs(X @ SLOPES[0] + 9.1) + np.abs(X @ SLOPES[1] - 2.3)


def hinges(X, I):
    """The same with many components."""
    return np.abs(scores(X, I, SLOPES) + 3.1)


def plateau(X, I):
    """A function that is constant around 0."""
    return 20.0 - np.clip(np.abs(X) - 1.0, 0.0, None) @ WORTH


class Case(NamedTuple):
    """A problem to be told in several ways."""

    fun: object
    n: int
    budget: int
    noise: float = 0.0
    width: float = np.inf  # bounds are -width and width
    d: int = D
    k: int = 5
    start: float = 0.0  # the first k coordinates of the start


@dataclass
class Recorded:
    """A problem in other words: a F(x / c) + b, with coordinates in another order and at another origin."""

    fun: object
    noise: float
    a: float = 1.0
    b: float = 0.0
    c: float = 1.0
    order: np.ndarray | None = None
    origin: float = 0.0
    points: list = field(default_factory=list)
    values: list = field(default_factory=list)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def __call__(self, X, I):
        x = X / self.c - self.origin  # in the words of the plain problem
        x = x if self.order is None else x[:, np.argsort(self.order)]
        plain = self.fun(x, I) + self.noise * self.rng.standard_normal(len(x))
        self.points.append(x)
        self.values.append(plain)
        return self.a * plain + self.b


class Run(NamedTuple):
    """What a run asked for, in plain words, and what it said."""

    points: np.ndarray
    telling: int  # calls until what is left to gain is small: then rounding decides, which the unit of F changes
    result: object

    def said(self, calls, numbers):
        """The stages and remarks of the first calls, with or without the numbers in them, which have units."""
        remarks = [
            (at, text if numbers else re.sub(r"[-+]?\d[\d.,e+-]*", "#", text)) for at, text in self.result.remarks
        ]
        return [[one for one in what if one[0] < calls] for what in (list(self.result.stages), remarks)]


def run(method, case, **words):
    """Run a method on a problem in other words."""
    recorded = Recorded(case.fun, case.noise, **words)
    c, origin = recorded.c, recorded.origin
    x0 = np.where(np.arange(case.d) < case.k, case.start, 0.0)
    x0 = c * (x0 + origin)
    x0 = x0 if recorded.order is None else x0[recorded.order]
    back = slice(None) if recorded.order is None else np.argsort(recorded.order)
    iterates = [(0, x0)]
    limits = {} if case.width == np.inf else {"bounds": (c * (origin - case.width), c * (origin + case.width))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # k = d
        result = zt.minimize(
            recorded,
            x0,
            case.k,
            n=case.n,
            budget=case.budget,
            method=method,
            seed=3,
            vectorized=True,
            **limits,
            callback=lambda state: iterates.append((state.nfev, state.x)),
        )
    points, values = np.concatenate(recorded.points), np.concatenate(recorded.values)
    telling = len(points)
    if case.n == 1 and not case.noise:
        telling = int(np.argmax(values <= nearly_lowest(values))) + 1
    elif not case.noise:  # values of F at the iterates
        places = (np.stack([x for _, x in iterates]) / c - origin)[:, back]
        F = np.array([case.fun(np.tile(x, (case.n, 1)), np.arange(case.n)).mean() for x in places])
        telling = iterates[int(np.argmax(nearly_lowest(F) >= F))][0] or telling  # all calls if nothing was gained
    return Run(points, telling, result)


def nearly_lowest(values):
    """The value at which a fall is complete but for a thousandth."""
    return values.min() + 1e-3 * (values[0] - values.min())


@functools.cache
def plainly(method, case):
    """The run to compare with; several tests use it."""
    return run(method, case)


def the_same(one, other, *, numbers):
    """Whether two runs are the same bit by bit, up to numbers in remarks if these have another unit."""
    assert len(one.points) == len(other.points)
    assert np.array_equal(one.points, other.points)
    assert one.said(np.inf, numbers) == other.said(np.inf, numbers)
    return one.result.status is other.result.status


def the_same_up_to_rounding(one, other, rtol=1e-3):
    """Whether two runs made the same decisions until gains are rounding."""
    calls = one.telling
    assert len(other.points) >= calls
    assert np.abs(one.points[:calls] - other.points[:calls]).max() <= rtol * np.abs(one.points).max()
    return one.said(calls, False) == other.said(calls, False)


CASES = {  # for auto
    "smooth": Case(one, 1, 800),
    "smooth, noisy": Case(one, 1, 2000, 0.05),
    "smooth in a box": Case(one, 1, 1000, width=3.0),
    "smooth in a box, noisy": Case(one, 1, 2000, 0.05, width=3.0),
    "300 components": Case(many, 300, 20_000),
    "300 components, noisy": Case(many, 300, 20_000, 0.05),
    "ridge": Case(ridge, 300, 30_000),
    "ridge, noisy": Case(ridge, 300, 20_000, 0.05),
    "logistic": Case(logistic, 300, 12_000),
    "squares": Case(squares, 50, 12_000),
    "valley, strong noise": Case(valley, 1, 4000, 0.2),
    "few active": Case(active, 1, 100, width=0.5, d=1000, k=4),
    "few calls": Case(dense, 1, 400, d=2000),
    "few calls, noisy": Case(dense, 1, 500, 0.02, d=2000),
    "corners": Case(corners, 1, 600, width=1.0),
    "corners, noisy": Case(corners, 1, 600, 0.1, width=1.0),
    "corners, 300 components, noisy": Case(hinges, 300, 9000, 0.1, width=1.0),
    "plateau": Case(plateau, 1, 600, width=2.0, k=3),
    "plateau, noisy": Case(plateau, 1, 600, 0.05, width=2.0, k=3),
}
OTHERS = {  # for the older methods
    "smooth": Case(one, 1, 3000),
    "smooth, noisy": Case(one, 1, 3000, 0.05),
    "300 components": Case(many, 300, 40_000),
    "300 components, noisy": Case(many, 300, 40_000, 0.05),
}
TOLD = [("auto", case, name) for name, case in CASES.items()] + [("htp", case, name) for name, case in OTHERS.items()]
told = pytest.mark.parametrize(("method", "case"), [pytest.param(m, c, id=f"{m}: {name}") for m, c, name in TOLD])


def test_the_problems_reach_every_strategy_of_auto():
    reached = {name for case in CASES.values() for _, name in plainly("auto", case).result.stages}
    assert {arm.name for arm in ARMS} - {LinearisedOutputs.name} <= reached  # its own tests are below


def residual_run(a=1.0, c=1.0, order=None):
    """A run of auto on a function that returns all residuals: a r(x / c), with coordinates in another order."""
    order = np.arange(D) if order is None else order
    points = []

    def residuals(x):
        z = (x / c)[np.argsort(order)]
        points.append(z)
        return a * (np.tanh(ROWS[:90] @ z / 9) - np.tanh(ROWS[:90] @ TRUE / 9))

    found = zt.minimize(
        residuals, D, 5, outputs="residuals", budget=300, seed=3, bounds=(-4.0 * c, 4.0 * c), progress=False
    )
    return np.array(points), found


@pytest.mark.parametrize(("a", "c"), [(2.0**-20, 1.0), (1.0, 2.0**30)])
def test_the_units_of_residuals_and_of_x_do_not_matter_at_all(a, c):
    points, found = residual_run()
    others, other = residual_run(a, c)
    assert found.support.tolist() == np.flatnonzero(TRUE).tolist()
    assert np.array_equal(points, others)
    assert [name for _, name in found.stages] == [name for _, name in other.stages] == ["gauss-newton"]


def test_the_unit_of_residuals_matters_only_by_rounding():
    points, _ = residual_run()
    others, _ = residual_run(7.0, 1e-3)
    calls = min(len(points), len(others)) - 3  # the last steps are rounding
    assert calls > D // 2
    assert np.abs(points[:calls] - others[:calls]).max() <= 1e-3 * np.abs(points).max()


@told
@pytest.mark.parametrize("a", [2.0**-20])
def test_the_unit_of_f_does_not_matter_at_all(method, case, a):
    assert the_same(plainly(method, case), run(method, case, a=a), numbers=True)


@told
@pytest.mark.parametrize(("a", "b"), [(1.0, -1.0), (7.0, -100.0)])
def test_the_offset_of_f_matters_only_by_rounding(method, case, a, b):
    assert the_same_up_to_rounding(plainly(method, case), run(method, case, a=a, b=b))


@told
@pytest.mark.parametrize(("c", "begun"), [(2.0**30, "box"), (2.0**-30, "start")])
def test_the_unit_of_x_does_not_matter_at_all(method, case, c, begun):
    """The first length comes from the bounds, or from a start that is not zero."""
    case = with_lengths(case, begun)
    assert the_same(plainly(method, case), run(method, case, c=c), numbers=False)


@told
def test_a_unit_of_x_that_is_not_a_power_of_two_matters_only_by_rounding(method, case):
    case = with_lengths(case, "box")
    assert the_same_up_to_rounding(plainly(method, case), run(method, case, c=1e-3))


def in_order(order):
    """Return how numbers per coordinate are drawn in another order: in blocks of one number each."""

    def reordered(draw):
        def drawn(stream, size=1):
            numbers = draw(stream, size)
            return numbers if size % order.size else numbers.reshape(-1, order.size)[:, order].ravel()

        return drawn

    return reordered


@pytest.mark.parametrize(
    ("method", "case"),
    [("auto", CASES[name]) for name in ("smooth", "300 components", "ridge", "logistic")]
    + [("htp", OTHERS[name]) for name in ("smooth", "300 components")],
)
def test_the_order_of_the_coordinates_matters_only_by_rounding(method, case, monkeypatch):
    """Without noise: the calls of a gradient come in another order, so that each would meet other noise.

    Random numbers per coordinate are drawn in that order too. That is possible only where strategies draw for all
    coordinates: those that draw among the coordinates outside a support are not compared here.
    """
    plain = plainly(method, case)
    order = np.random.default_rng(2).permutation(D)
    subset, uniform = Stream.subset, Stream.uniform
    monkeypatch.setattr(Stream, "normal", in_order(order)(Stream.normal))
    monkeypatch.setattr(Stream, "uniform", in_order(order)(uniform))

    def drawn_subset(stream, n, size):
        with monkeypatch.context() as patch:
            patch.setattr(Stream, "uniform", uniform)
            places = subset(stream, n, size)
        return np.argsort(order)[places] if n == D else places

    monkeypatch.setattr(Stream, "subset", drawn_subset)
    assert the_same_up_to_rounding(plain, run(method, case, order=order))


DENSE_CASES = [name for name, case in CASES.items() if case.width < np.inf or case.fun is many]


@pytest.mark.parametrize("case", [CASES[name] for name in DENSE_CASES], ids=DENSE_CASES)
@pytest.mark.parametrize("origin", [0.25, -0.125])
def test_the_origin_of_x_matters_only_by_rounding_if_all_coordinates_may_be_non_zero(case, origin):
    """Otherwise 0 is the value that costs nothing, and an l2 term of a single-index model is about 0 in any case."""
    case = with_lengths(case, "box")._replace(k=case.d, start=0.25)
    assert the_same_up_to_rounding(plainly("auto", case), run("auto", case, origin=origin))


@pytest.mark.parametrize("name", list(OTHERS))
def test_the_origin_of_x_does_not_matter_to_htp_either(name):
    case = OTHERS[name]._replace(k=D, start=0.3, width=3.0)
    one, other = plainly("htp", case), run("htp", case, origin=0.25)
    assert the_same_up_to_rounding(one, other, 1e-2)  # where F is not convex, five steps multiply rounding by 30,000


def with_lengths(case, begun):
    """The problem with bounds, or without them and with a start that is not zero."""
    if begun == "start":
        return case._replace(start=0.5, width=np.inf)
    return case if case.width < np.inf else case._replace(width=3.0)
