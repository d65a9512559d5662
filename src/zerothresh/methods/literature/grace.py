"""GraCe: find the large coordinates of a gradient with a few adaptive queries each."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@register("grace")
@dataclass(frozen=True)
class GraCe(Program):
    r"""Gradient compressed sensing, with H_k after the step: about n (2 s log log(d/s) + s + 1) calls per step.

    The coordinates are divided at random into groups of gamma d / s, so that most large ones are alone in their group.
    A group is divided into numbered blocks, and each of its coordinates gets a random sign. Two values then tell in
    which block the large coordinate is:

    .. math:: \mathrm{block} = \mathrm{round}\,
        \frac{F(\theta + \mu \sum_j \mathrm{block}_j \sigma_j e_j) - F(\theta)}
             {F(\theta + \mu \sum_j \sigma_j e_j) - F(\theta)}

    That block is divided again, into more and more parts, D, D^{1.5}, ..., until at most two coordinates are left. The
    slopes along the coordinates that were found are then measured by differences.

    The constants of the theorem's dependent random partition are not in the published code, and are not used here
    either. The method does not sample components: every value is one of F. The published code has no H_k.

    Arguments
    ---------
    eta: float. Learning rate.
    s: int, default 5. Number of large coordinates of the gradient.
    gamma: float, default 0.7. Groups have gamma d / s coordinates.
    parts: int, default 10. D, the number of blocks that a group is first divided into.
    repeats: int, default 1. Number of random partitions per step; the coordinates that any of them finds are measured.
    mu: float, default 1e-6. Length of the differences; small, because it is multiplied by a block's number.

    Reference: Qiu and Tong, *Gradient compressed sensing: a query-efficient gradient estimator for
    high-dimensional zeroth-order optimization*, ICML 2024.

    >>> GraCe(eta=0.1).s
    5
    """

    family: ClassVar[str] = "literature"
    topic: ClassVar[str] = "Sparse gradients by compressed sensing"
    order: ClassVar[int] = 23
    solves: ClassVar[str] = "smooth with sparse gradients, l0"
    queries: ClassVar[str] = "about n (2 s log log(d/s) + s + 1)"
    memory: ClassVar[str] = "s d"
    keeps_constraints: ClassVar[bool] = False

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
        check.count("parts", self.parts, low=2, what=" (the number of blocks of a group)")

    def search(self, context: Context) -> Asks:
        context.unit = 1.0  # eta is in the user's units
        theta = context.theta0
        while True:
            F = float((yield from context.values([theta])).mean())
            context.move(theta, F)
            if not context.free().size:
                return
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
        """The coordinates that are left when each group has been narrowed down."""
        free = context.free()
        order = free[context.rng.subset(free.size, free.size)]
        size = max(1, int(self.gamma * free.size / self.s))
        groups = [order[start : start + size] for start in range(0, free.size, size)]
        parts = float(min(self.parts, context.d))  # more blocks than coordinates are as good as one per coordinate
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
                    # the first block if the ratio is not a number, because the differences overflow
                    block = round(min(max(1.0, float(ratio)), float(blocks[i][-1])))
                    groups[place] = old[blocks[i] == block]
            parts = parts**1.5
        return np.concatenate(groups)

    def _means(self, context: Context, points: Array) -> Generator[Probes, Answers, Array]:
        """The values of F at the rows of ``points``, moved into the bounds."""
        out: Array = (yield from context.values([context.inside(point) for point in points])).mean(axis=1)
        return out


def _moved(theta: Array, groups: list[Indices], places: list[int], steps: list[Array]) -> Array:
    """One point per group, theta moved along all coordinates of the group."""
    points = np.repeat(theta[None], len(places), axis=0)
    for row, (place, step) in enumerate(zip(places, steps, strict=True)):
        points[row, groups[place]] += step
    return points
