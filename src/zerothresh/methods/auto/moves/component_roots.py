"""Components that are squares above one level, seen as runs that return their signed roots.

Gauss-Newton asks for all outputs of a point; here one such run is a call of each component. The sign of a root is the
one that the linear model expects, so that roots pass through zero smoothly. The level is a little below the lowest
value seen, and depends neither on the unit nor on the offset of F.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.losses import Squared
from zerothresh.methods.auto.settings.squares_settings import SQUARES
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class ComponentRoots:
    """What a Gauss-Newton search sees of a run in place of its context; calls are counted in values of F.

    Arguments
    ---------
    context: the run.
    values: float64 array (n,), those of the components at the iterate.

    Attributes
    ----------
    level: float, the value above which components are taken for squares.
    expect: tells the roots that the linear model expects at a point; None before the first run.
    """

    has_outputs, loss = True, Squared()

    def __init__(self, context: Context, values: Array) -> None:
        self.context = context
        self.theta0, self.d, self.k = context.theta, context.d, context.k
        self.constraint, self.box = context.constraint, context.box
        self.width = max(context.width // context.n, 1)
        self.random = False
        self._at_start = values
        self.expect: Callable[[Array], Array] | None = None
        self._lowest, self._mean, self._means = float(values.min()), float(values.mean()), np.empty(0)
        self.level = self.likely_level

    @property
    def height(self) -> float:
        """How far F is above the lowest value of a component so far."""
        return self._mean - self._lowest

    @property
    def likely_level(self) -> float:
        """The lowest value, less what the smallest of n roots leaves: about the n-th part of a typical root."""
        return self._lowest - self.height / self.context.n**2

    @property
    def stale(self) -> bool:
        """Whether the level is wrong by more than is negligible beside what is left of F."""
        return abs(self.level - self.likely_level) > SQUARES.stale * self.height

    @property
    def theta(self) -> Array:
        """The iterate."""
        return self.context.theta

    @property
    def left(self) -> float:
        """The values of F that are left."""
        return self.context.left / self.context.n

    @property
    def used(self) -> int:
        """The values of F that the calls so far would have paid for."""
        return self.context.used // self.context.n

    @property
    def rng(self) -> Any:
        """The random numbers of this round."""
        return self.context.rng

    def roots(self, x: Array, values: Array) -> Array:
        """Return the signed roots of the values at a point."""
        sizes = np.sqrt(np.maximum(values - self.level, 0.0))
        return sizes if self.expect is None else np.where(self.expect(x) < 0, -sizes, sizes)

    def outputs(self, points: Sequence[Array]) -> Generator[Probes, Answers, Array]:
        """Return the roots of all components at points, (points, n)."""
        new = [x for x in points if x is not self.theta0]
        told = iter((yield from self.context.values(new)))
        values = np.array([self._at_start if x is self.theta0 else next(told) for x in points])
        self._means = values.mean(axis=1)
        self._lowest = min(self._lowest, float(values.min()))
        for x, mean in zip(points, self._means.tolist(), strict=True):
            if mean < self._mean and self.context.constraint.holds(x):
                self._mean = mean
        return np.array([self.roots(x, row) for x, row in zip(points, values, strict=True)])

    def mean_losses(self, outputs: Array) -> Array:
        """Return F at the points whose outputs came last."""
        return self._means

    def move(self, theta: Array, fun: float) -> None:
        """Make a point the iterate, if F is lower there than at the present one."""
        if self.context.fun is None or fun < self.context.fun:
            self.context.move(theta, fun)

    def remark(self, message: str) -> None:
        """Tell the user what was found."""
        self.context.remark(message)

    def stage(self, name: str) -> None:
        """The stages of Gauss-Newton are not those of the run."""

    def linearised(self, coordinates: Indices, jacobian: Array) -> None:
        """The derivatives of roots are not those of what the user's function returns."""
