"""Functions of few coordinates, hidden among many: Hartmann6, Branin, Ackley, Rosenbrock, Michalewicz, Griewank.

The functions live on the unit cube of the active coordinates. Numbers of active coordinates are such that a solver
which knows them (BOBYQA from several starts) needs at most 250 calls in nine of ten draws. In the development set the
box is (-0.5, 0.5) and its middle is the start; in the judging set the start is not in the middle, every coordinate has
a unit of its own, and the axes of the cube are permuted and reversed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from goal_problem import Draw, GoalProblem, family
from objectives import Array

Function = Callable[[Array], Array]  # from points (B, s) of the unit cube to values (B,)

_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_ALPHA = np.array([1, 1.2, 3, 3.2])
_MICHALEWICZ = {2: -1.8013034, 3: -2.7603947, 4: -3.6988571}


def hartmann(draw: Draw) -> tuple[Function, int, float]:
    """Hartmann's function of 6 coordinates (Dixon and Szegö, 1978)."""

    def f(z: Array) -> Array:
        return -np.exp(-(_A * (z[:, None] - _P) ** 2).sum(axis=2)) @ _ALPHA

    return f, 6, -3.32236801


def branin(draw: Draw) -> tuple[Function, int, float]:
    """Branin's function of 2 coordinates, with three optima."""

    def f(z: Array) -> Array:
        x, y = 15 * z[:, 0] - 5, 15 * z[:, 1]
        return (y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10

    return f, 2, 0.39788736


def _centre(draw: Draw, s: int) -> Array:
    """An optimum that is neither near the middle of the unit cube nor near its faces."""
    return 0.5 + draw.rng.choice([-1.0, 1.0], s) * draw.rng.uniform(0.1, 0.3, s)


def ackley(draw: Draw) -> tuple[Function, int, float]:
    """Ackley's function on a box of width 64, with many local optima."""
    s = draw.whole(4, 2, 4)
    centre = _centre(draw, s)

    def f(z: Array) -> Array:
        x = 64 * (z - centre)
        return 20 + np.e - 20 * np.exp(-0.2 * np.sqrt((x**2).mean(axis=1))) - np.exp(np.cos(2 * np.pi * x).mean(axis=1))

    return f, s, 0.0


def rosenbrock(draw: Draw) -> tuple[Function, int, float]:
    """Rosenbrock's function on a box of width 4: a curved valley."""
    s = draw.whole(4, 2, 6)
    centre = _centre(draw, s)

    def f(z: Array) -> Array:
        x = 1 + 4 * (z - centre)
        return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1)

    return f, s, 0.0


def michalewicz(draw: Draw) -> tuple[Function, int, float]:
    """Michalewicz's function: separable, with steep valleys; moved around the box, which it continues periodically."""
    s = draw.whole(3, 2, 3)
    shift = draw.rng.random(s)

    def f(z: Array) -> Array:
        x = np.pi * ((z + shift) % 1.0)
        return -(np.sin(x) * np.sin(np.arange(1, s + 1) * x**2 / np.pi) ** 20).sum(axis=1)

    return f, s, _MICHALEWICZ[s]


def griewank(draw: Draw) -> tuple[Function, int, float]:
    """Griewank's function on a box of width 1,200: a bowl with ripples."""
    s = draw.whole(4, 2, 6)
    centre = _centre(draw, s)

    def f(z: Array) -> Array:
        x = 1200 * (z - centre)
        return 1 + (x**2).sum(axis=1) / 4000 - np.cos(x / np.sqrt(np.arange(1, s + 1))).prod(axis=1)

    return f, s, 0.0


VARIANTS = ("plain", "noise", "weak")
WEAK = 20  # weakly active coordinates, if there are any
FUNCTIONS = {f.__name__: f for f in (branin, ackley, rosenbrock, michalewicz, griewank)}


def hide(
    draw: Draw, function: Callable[[Draw], tuple[Function, int, float]], d: int, noise: bool, weak: bool, budget: int
) -> GoalProblem:
    """Hide a function among d coordinates.

    Weak coordinates matter by 1e-3 of F(x0) - F*. Noise is 1e-2 of that too, or of the spread of F over the box if that
    is smaller, so that it is never larger than the distance to F* that counts as solved.
    """
    rng, d = draw.rng, draw.whole(d, d // 2, 2 * d)
    low, high = np.full(d, -0.5), np.full(d, 0.5)
    while True:
        f, s, F_star = function(draw)
        active, turned = rng.permutation(d)[: s + WEAK], np.zeros(s, bool)
        if draw.judge:
            width, place = np.exp(rng.uniform(-3, 3, d)), rng.uniform(0.25, 0.75, d)
            low, high = -place * width, (1 - place) * width
            turned = rng.random(s) < 0.5
        strong, faint = active[:s], active[s:]
        start = -low / (high - low)  # the origin, in the unit cube
        z = start[strong]
        gap = float(f(np.where(turned, 1 - z, z)[None])[0]) - F_star
        sample = f(rng.random((200, s)))
        if gap > 0.25 * (np.median(sample) - F_star):
            break  # the start is not good by chance
    best = rng.uniform(0.1, 0.9, WEAK)

    def unit(points: Array, chosen: Array) -> Array:
        return (points[:, chosen] - low[chosen]) / (high - low)[chosen]

    def alone(points: Array) -> Array:
        z = unit(points, strong)
        return f(np.where(turned, 1 - z, z))

    slight = 1e-3 * gap if weak else 0.0

    def values(points: Array, _: Array) -> Array:
        out = alone(points)
        return out + slight * ((unit(points, faint) - best) ** 2).sum(axis=1) if slight else out

    F_star += slight * float(((start[faint] - best) ** 2).sum())
    problem = GoalProblem(
        values,
        lambda x: float(values(x[None], strong)[0]),
        d,
        s + draw.whole(0, 0, 3),
        budget,
        bounds=(low, high),
        F_star=F_star,
        truth=np.sort(strong),
    )
    problem.noise = draw.scale(1e-2, 5e-3, 1e-2) * min(float(sample.std()), gap) if noise else 0.0
    return problem


@family("hartmann-1000", d=1000)
@family("hartmann-10000", d=10_000)
def hidden_hartmann(draw: Draw, d: int) -> GoalProblem:
    """Hartmann's function to 1 % of its optimum, as it is usually judged."""
    problem = hide(draw, hartmann, d, False, False, 500)
    problem.target = 0.99 * problem.F_star
    return problem


def _register(name: str) -> None:
    for variant in VARIANTS:

        @family(f"{name}-{variant}", noise=variant == "noise", weak=variant == "weak")
        def hidden(draw: Draw, noise: bool, weak: bool) -> GoalProblem:
            return hide(draw, FUNCTIONS[name], 1000, noise, weak, 300)


for _name in FUNCTIONS:
    _register(_name)
