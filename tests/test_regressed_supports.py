"""A support that a regression through noise proposes is the incumbent only until a better one has been compared with it."""

from __future__ import annotations

import numpy as np
import pytest

import zerothresh as zt
from zerothresh.methods.auto.moves.regressed_supports import RegressedSupports
from zerothresh.methods.auto.moves.sparse_surface import SparseSurface
from zerothresh.methods.auto.moves.surface_minima import SurfaceMinima
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context

D, K = 12, 2
GOAL = np.zeros(D)
GOAL[[3, 8]] = 1.5, -1.0


class Proposals:
    """A regression that proposes given points, one per descent."""

    def __init__(self, context: Context, points: list[np.ndarray]) -> None:
        self.context, self.points = context, points
        self.C, self.H, self.radius, self.F = context.free(), np.eye(D), 0.5, 0.0
        self.round_size, self.settled = 200, True
        self.reopened: list[np.ndarray] = []

    def search(self) -> Asks:
        point = self.points[min(len(self.reopened), len(self.points) - 1)]
        self.F = float((yield from self.context.values([point] * self.round_size)).mean())
        return point

    def reopen(self, theta: np.ndarray) -> None:
        self.reopened.append(theta)


class Proposed(Program):
    """A search among proposals."""

    def __init__(self, points: list[np.ndarray]) -> None:
        self.points = points

    def search(self, context: Context) -> Asks:
        yield from context.values([context.theta0])
        context.random = True
        self.proposals = Proposals(context, self.points)
        yield from RegressedSupports(context, self.proposals, SurfaceMinima(context)).search()


def at(**entries: float) -> np.ndarray:
    point = np.zeros(D)
    for name, value in entries.items():
        point[int(name[1:])] = value
    return point


def solve(points, seed, budget=6000):
    method, rng = Proposed(points), np.random.default_rng(seed)

    def noisy(x):
        return float((x - GOAL) @ (x - GOAL)) + 0.5 * rng.standard_normal()

    return zt.minimize(noisy, D, K, budget=budget, method=method, seed=seed), method.proposals


@pytest.mark.parametrize("seed", range(5))
def test_the_better_support_wins_whatever_comes_first(seed):
    """The wrong supports leave at least 1 of F; a comparison has a standard error of about 0.1."""
    wrong, right = at(x3=0.7, x5=0.4), at(x3=0.5, x8=-0.3)
    for points in ([wrong, right], [right, wrong], [wrong, at(x1=0.3, x8=-0.5), right, wrong]):
        result, proposals = solve(points, seed)
        assert np.flatnonzero(result.x).tolist() == [3, 8]
        assert np.abs(result.x - GOAL).max() < 0.25  # found by the surface: the proposal was further away
        assert result.nfev <= 6000
        assert proposals.reopened
        assert all(np.count_nonzero(start) <= K for start in proposals.reopened)


def test_a_new_descent_opens_all_coordinates_and_begins_with_as_few_values_as_the_first():
    class Reopening(Program):
        def search(self, context: Context) -> Asks:
            surface = self.surface = SparseSurface(context, 1.0)
            self.first = surface.frames
            for _ in range(6):
                yield from surface.search()
            self.later, self.narrowed = surface.frames, surface.T.size
            surface.reopen(at(x3=1.0))

    method, rng = Reopening(), np.random.default_rng(0)
    zt.minimize(
        lambda x: float((x - GOAL) @ (x - GOAL)) + 0.5 * rng.standard_normal(), D, K, budget=4000, method=method
    )
    assert method.narrowed < D == method.surface.T.size
    assert method.surface.frames == method.first < method.later
    assert np.array_equal(method.surface.theta, at(x3=1.0))
