"""GraCe: the large coordinates of a gradient are found by a few adaptive questions each."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.program import Program
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@register("grace")
@dataclass(frozen=True)
class GraCe(Program):
    r"""Gradient compressed sensing, with H_k after the step: about n (2 s log log(d/s) + s + 1) calls a step.

    The coordinates are cut at random into groups of gamma d / s, so that most large ones are alone in
    theirs. In a group, each coordinate j has a random sign and the number of the block it is in, and two
    values tell in which block the large one is:

    .. math:: \mathrm{block} = \mathrm{round}\,
        \frac{F(\theta + \mu \sum_j \mathrm{block}_j \sigma_j e_j) - F(\theta)}
             {F(\theta + \mu \sum_j \sigma_j e_j) - F(\theta)}

    That block is cut again, into more and more parts, D, D^{1.5}, ..., until two coordinates are left.
    What was found is measured by differences along the coordinates.

    Published are the abstract, the theorem's rate and code for the experiments; the constants of the
    dependent random partition in the theorem are not in that code, and are not used here either. A batch
    of components is not part of it: every value is one of F. The published code has no H_k.

    Arguments
    ---------
    eta: learning rate.
    s: large coordinates of the gradient.
    gamma: groups have gamma d / s coordinates.
    parts: D, the blocks that a group is first cut into.
    repeats: random partitions a step; what any of them finds is measured.
    mu: length of the differences. Small, because a block's number multiplies it.

    Reference: Qiu and Tong, *Gradient compressed sensing: a query-efficient gradient estimator for
    high-dimensional zeroth-order optimization*, ICML 2024.

    >>> GraCe(eta=0.1).s
    5
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "Sparse gradients by compressed sensing"
    order: ClassVar[int] = 23
    solves: ClassVar[str] = "smooth with sparse gradients, l0"
    queries: ClassVar[str] = "n (2 s log log(d/s) + s + 1), about"
    memory: ClassVar[str] = "s d"

    eta: float
    s: int = 5
    gamma: float = 0.7
    parts: int = 10
    repeats: int = 1
    mu: float = 1e-6

    def __post_init__(self) -> None:
        for name in ("eta", "gamma", "mu"):
            check.positive(name, getattr(self, name))
        for name in ("s", "repeats"):
            check.count(name, getattr(self, name))
        check.count("parts", self.parts, low=2, what=" (blocks of a group)")

    def search(self, context: Context) -> Asks:
        context.unit = 1.0  # eta is in the user's units
        theta = context.theta0
        while True:
            F = float((yield from context.values([theta])).mean())
            context.move(theta, F)
            found = np.empty(0, np.int64)
            for _ in range(self.repeats):
                found = np.union1d(found, (yield from self._large(context, theta, F)))
            g = np.zeros(context.d)
            if found.size:
                steps = context.steps_inside(theta, found, self.mu)
                points = np.repeat(theta[None], found.size, axis=0)
                points[np.arange(found.size), found] += steps
                g[found] = ((yield from self._means(context, points)) - F) / steps
            theta = context.H(theta - self.eta * g)
            context.move(theta)

    def _large(self, context: Context, theta: Array, F: float) -> Generator[Probes, Answers, Indices]:
        """The coordinates that are left when each group has been cut down."""
        free = context.free()
        order = free[context.rng.subset(free.size, free.size)]
        size = max(1, int(self.gamma * free.size / self.s))
        groups = [order[start : start + size] for start in range(0, free.size, size)]
        parts = float(self.parts)
        while any(group.size > 2 for group in groups):
            cut = [place for place, group in enumerate(groups) if group.size > 2]
            signs: list[Array] = []
            blocks: list[Indices] = []
            for place in cut:
                group = groups[place]
                turned = self.mu * np.where(context.rng.uniform(group.size) < 0.5, -1.0, 1.0)
                moved = theta.copy()
                moved[group] += turned
                signs.append(np.where(context.inside(moved)[group] == moved[group], turned, -turned))
                blocks.append(1 + np.arange(group.size) // -(-group.size // int(parts)))
            alone = yield from self._means(context, _moved(theta, groups, cut, signs))
            changed = [i for i in range(len(cut)) if alone[i] != F]
            weighted = [signs[i] * blocks[i] for i in changed]
            values = yield from self._means(context, _moved(theta, groups, [cut[i] for i in changed], weighted))
            for place in cut:
                groups[place], old = np.empty(0, np.int64), groups[place]
                i = cut.index(place)
                if i in changed:
                    ratio = (values[changed.index(i)] - F) / (alone[i] - F)
                    groups[place] = old[blocks[i] == min(max(round(float(ratio)), 1), int(blocks[i][-1]))]
            parts = parts**1.5
        return np.concatenate(groups)

    def _means(self, context: Context, points: Array) -> Generator[Probes, Answers, Array]:
        """F at each row."""
        out: Array = (yield from context.values([context.inside(point) for point in points])).mean(axis=1)
        return out


def _moved(theta: Array, groups: list[Indices], places: list[int], steps: list[Array]) -> Array:
    """A point a group, moved along all of its coordinates."""
    points = np.repeat(theta[None], len(places), axis=0)
    for row, (place, step) in enumerate(zip(places, steps, strict=True)):
        points[row, groups[place]] += step
    return points
