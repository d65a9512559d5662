"""Kinds of problems that nothing was developed on: they are in the judging set alone.

Hidden functions of few coordinates (Levy, Styblinski and Tang, Gaussian bumps, the valley of Dixon and Price), and
regressions whose components have a loss that no other problem has (pinball, Huber, softplus of two scores).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from few_coordinates import VARIANTS, Function, hide
from goal_problem import Draw, GoalProblem, family
from objectives import Array, Indices
from regressions import correlated
from scipy.optimize import minimize


def levy(draw: Draw) -> tuple[Function, int, float]:
    """Levy's function on a box of width 12: a bowl with waves, in 2 or 3 coordinates."""
    s = draw.whole(2, 2, 3)
    centre = draw.rng.uniform(0.25, 0.75, s)

    def f(z: Array) -> Array:
        w = 1 + 3 * (z - centre)
        inner = (w[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:, :-1] + 1) ** 2)
        last = (w[:, -1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[:, -1]) ** 2)
        return np.sin(np.pi * w[:, 0]) ** 2 + inner.sum(axis=1) + last

    return f, s, 0.0


def styblinski(draw: Draw) -> tuple[Function, int, float]:
    """The function of Styblinski and Tang in 2 coordinates: four local optima."""
    s = 2

    def f(z: Array) -> Array:
        x = 10 * z - 5
        return 0.5 * (x**4 - 16 * x**2 + 5 * x).sum(axis=1)

    return f, s, -39.16616570377142 * s


def bumps(draw: Draw) -> tuple[Function, int, float]:
    """Four Gaussian bumps in 3 to 5 coordinates; the deepest one is twice as deep as the next."""
    s, rng = draw.whole(4, 3, 5), draw.rng
    centres, widths = rng.uniform(0.15, 0.85, (4, s)), rng.uniform(0.25, 0.45, 4)
    depths = np.array([1.0, 0.5, 0.4, 0.3])

    def f(z: Array) -> Array:
        return -np.exp(-(((z[:, None] - centres) / widths[:, None]) ** 2).sum(axis=2)) @ depths

    best = min(
        (minimize(lambda z: float(f(z[None])[0]), c, bounds=[(0, 1)] * s).fun for c in centres), default=float("nan")
    )
    return f, s, float(best)


def valley(draw: Draw) -> tuple[Function, int, float]:
    """The valley of Dixon and Price in 2 to 4 coordinates, on a box of width 4."""
    s = draw.whole(3, 2, 4)
    centre, weights = draw.rng.uniform(0.3, 0.7, s), np.arange(2, s + 1)
    bottom = 2.0 ** (-(2.0 ** np.arange(1, s + 1) - 2) / 2.0 ** np.arange(1, s + 1))

    def f(z: Array) -> Array:
        x = bottom + 4 * (z - centre)
        return (x[:, 0] - 1) ** 2 + ((2 * x[:, 1:] ** 2 - x[:, :-1]) ** 2) @ weights

    return f, s, 0.0


HIDDEN = {f.__name__: f for f in (levy, styblinski, bumps, valley)}


def _register(name: str) -> None:
    for variant in VARIANTS:

        @family(f"{name}-{variant}", noise=variant == "noise", weak=variant == "weak")
        def hidden(draw: Draw, noise: bool, weak: bool) -> GoalProblem:
            return hide(draw, HIDDEN[name], 1000, noise, weak, 300)


for _name in HIDDEN:
    _register(_name)


def _refit(F: Callable[[Array], float], d: int, support: Indices, first: Array) -> float:
    """The lowest F on a support, by several passes of Powell's method and BFGS from the true coefficients."""

    def inside(w: Array) -> float:
        x = np.zeros(d)
        x[support] = w
        return F(x)

    w = first
    for _ in range(3):
        w = minimize(inside, w, method="Powell", options={"xtol": 1e-8, "ftol": 1e-12, "maxiter": 200}).x
        w = minimize(inside, w, method="BFGS").x
    return inside(w)


def _regression(draw: Draw, loss: Callable[[Array, Array], Array], budget: int) -> GoalProblem:
    """A regression whose component i is loss(v_i . x, y_i), to 1 % of the gap on the true support."""
    n, d, k = draw.whole(120, 80, 200), draw.whole(40, 30, 60), draw.whole(5, 3, 6)
    X, truth = correlated(draw.rng, n, d, draw.real(0.0, 0.0, 0.4)), draw.sparse(d, k, 0.5, 1.5)
    y = X @ truth + 0.2 * draw.rng.standard_t(3, n)

    def values(points: Array, components: Indices) -> Array:
        return loss(np.einsum("bd,bd->b", points, X[components]), y[components])

    def F(x: Array) -> float:
        return float(loss(X @ x, y).mean())

    support = np.flatnonzero(truth)
    return GoalProblem(values, F, d, k, budget, n=n, F_star=_refit(F, d, support, truth[support]), truth=support)


@family("pinball")
def pinball(draw: Draw) -> GoalProblem:
    """Quantile regression: every component has a kink."""
    level = draw.real(0.7, 0.2, 0.8)
    return _regression(draw, lambda z, y: np.where(y > z, level * (y - z), (1 - level) * (z - y)), 100_000)


@family("huber")
def huber(draw: Draw) -> GoalProblem:
    """Huber's loss: quadratic near its minimum, straight further out."""
    bend = draw.real(0.5, 0.3, 1.0)

    def loss(z: Array, y: Array) -> Array:
        r = np.abs(z - y)
        return np.where(r < bend, 0.5 * r**2, bend * (r - 0.5 * bend))

    return _regression(draw, loss, 100_000)


@family("two-sides")
def two_sides(draw: Draw) -> GoalProblem:
    """A smooth loss with another growth to each side, seen as F alone."""
    tilt = draw.real(0.3, 0.2, 0.4)
    parts = _regression(draw, lambda z, y: np.logaddexp(0, z - y) + np.logaddexp(0, y - z) + tilt * (z - y), 6_000)
    return GoalProblem(
        lambda points, _: np.array([parts.F(x) for x in points]),
        parts.F,
        parts.d,
        parts.k,
        6_000,
        F_star=parts.F_star,
        truth=parts.truth,
    )


REGRESSIONS = ("pinball", "huber", "two-sides")
