r"""NIHT: normalised iterative hard thresholding, with the step that one more value tells.

.. math:: \theta^{(t+1)} = H_k(\theta^{(t)} - \eta_t g_t), \quad
    \eta_t = \frac{\|g_S\|^2}{g_S^\top \nabla^2 F g_S}, \quad S = supp(\theta^{(t)})

The curvature along g_S is 2 (F(theta - h g_S) - F(theta) + h ||g_S||^2) / h^2: one value of F, exact if F is
quadratic. A step is made only if F falls.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis, diagnose
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.program import Program
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@register("niht")
@dataclass(frozen=True)
class NIHT(Program):
    """Normalised hard thresholding: gradients by differences, steps by one more value, down only.

    Where the budget holds a few gradients of F, n (d + 1) calls each, these are what it uses. Else it
    takes gradients of a few components, along random orthogonal directions if need be, and averages them.

    Arguments
    ---------
    step: "exact", the curvature along the gradient is measured, or "bb", it is taken from the last two
        gradients (Barzilai and Borwein).
    momentum: extrapolate (Nesterov), and begin again when F rises.

    Reference: Blumensath and Davies, *Normalized iterative hard thresholding*, IEEE J. Sel. Top. Signal
    Process. 2010.

    >>> NIHT(step="bb")
    NIHT(step='bb', momentum=False)
    """

    family: ClassVar[str] = "parts of auto"
    order: ClassVar[int] = 1
    solves: ClassVar[str] = "smooth, l0"
    queries: ClassVar[str] = "n (d + 2); less with a small budget"
    memory: ClassVar[str] = "1 a call + d"

    step: str = "exact"
    momentum: bool = False

    def __post_init__(self) -> None:
        check.one_of("step", self.step, ("exact", "bb"))
        if not isinstance(self.momentum, (bool, np.bool_)):
            raise ValueError(f"momentum must be True or False, not {self.momentum!r}")

    def search(self, context: Context) -> Asks:
        seen = yield from diagnose(context)
        context.remark(seen.words())
        context.random = seen.random
        if not context.free().size:
            return
        if context.left >= 3 * context.n * (context.free().size + 1):
            context.remark((yield from Whole(context, seen).search(self.step, self.momentum)))
        else:
            context.remark((yield from sampled(context, seen)))


class Whole:
    """With gradients of F."""

    def __init__(self, context: Context, seen: Diagnosis) -> None:
        self.context, self.seen, self.C = context, seen, context.free()

    def gradient(self, theta: Array, base: Array | None) -> Generator[Probes, Answers, tuple[float, Array]]:
        """F and its gradient; ``base`` are the f_i(theta), if they are known."""
        context = self.context
        if base is None:
            base = (yield from context.values([theta]))[0]
        mu = max(self.seen.mu, 1e-8 * float(np.abs(theta).max()))
        slopes, _ = yield from context.slopes(theta, self.C, mu, context.everything, base, central=self.seen.central)
        g = np.zeros(context.d)
        g[self.C] = slopes.mean(axis=0)
        return float(base.mean()), g

    def exact(self, theta: Array, F: float, g: Array) -> Generator[Probes, Answers, float]:
        """The step that minimises F along the gradient on the support."""
        context = self.context
        S = np.flatnonzero(theta if theta.any() else context.constraint.project(-g))
        g_S = np.zeros(context.d)
        g_S[S] = g[S]
        square = float(g_S @ g_S)
        if square == 0:
            return self.seen.length / max(float(np.linalg.norm(g)), 1e-300)
        h = 0.1 * self.seen.length / math.sqrt(square)
        value = float((yield from context.values([context.inside(theta - h * g_S)])).mean())
        curvature = 2 * (value - F + h * square) / max(h * h, 1e-300)
        return square / curvature if curvature > 0 else 10 * h

    def search(self, rule: str, momentum: bool) -> Generator[Probes, Answers, str]:
        context = self.context
        theta, before, beta, F = context.theta0, context.theta0, 1.0, math.inf
        last: tuple[Array, Array] | None = None
        known: Array | None = None
        while True:
            beta, beta_before = (1 + math.sqrt(1 + 4 * beta * beta)) / 2, beta
            y = theta
            if momentum and theta is not before:
                y = context.inside(theta + ((beta_before - 1) / beta) * (theta - before))
            F_y, g = yield from self.gradient(y, known if y is theta else None)
            if y is theta:
                F = F_y
                context.move(theta, F)
            eta = 0.0
            if rule == "bb" and last is not None:
                s, change = y - last[0], g - last[1]
                eta = float(s @ s) / float(s @ change) if float(s @ change) > 0 else 0.0
            last = y, g
            if eta == 0.0:
                eta = yield from self.exact(y, F_y, g)
            for _ in range(20):
                trial = context.H(y - eta * g)
                values = yield from context.values([trial])
                if float(values.mean()) < F:
                    break
                eta /= 4
            else:
                if y is theta:
                    return "no step along the gradient lowers F"
                before, beta = theta, 1.0  # F rises: begin again without momentum
                continue
            before, theta, F, known = theta, trial, float(values.mean()), values[0]
            context.move(theta, F)


def sampled(context: Context, seen: Diagnosis) -> Generator[Probes, Answers, str]:
    """With gradients of a few components, or along a few directions, averaged: for budgets of a few d."""
    n, C = context.n, context.free()
    judges = context.rng.subset(n, max(1, min(n, int(context.left / 4))))
    if judges.size < min(n, 5):
        return "the budget is too small to judge a step"
    share = max(2, int(context.left / 10))
    q = min(C.size, share - 1)
    batch = max(1, min(n, share // (q + 1)))
    mu = max(seen.mu, 0.1 * seen.length if seen.kink else 0.0)
    theta, eta, total, weight, failed = context.theta0, 0.0, np.zeros(context.d), 0.0, 0
    start = yield from context.starts(judges)
    F = float(start.mean())
    order: Indices = np.empty(0, np.int64)
    while True:
        if order.size < batch:
            order = context.rng.subset(n, n)
        of, order = order[:batch], order[batch:]
        total = 0.5 * total + (yield from _gradient(context, theta, C, q, mu, of))
        weight = 0.5 * weight + 1
        g = total / weight
        largest = float(np.abs(g).max())
        if largest == 0:
            failed += 1
            mu = min(10 * mu, 1e6 * seen.length)
            if failed > 20:
                return "values do not change"
            continue
        eta = eta or 0.5 * seen.length / largest
        best, fell, sure = (F, theta, eta), False, False
        for step in (eta, 3 * eta, eta / 3):
            trial = context.H(theta - step * g)
            values = (yield from context.values([trial], judges))[0]
            value = float(values.mean())
            if value < best[0]:
                best, fell, sure = (value, trial, step), True, better(values, start, n)
            elif fell:
                break
        failed = 0 if fell else failed + 1
        F, theta, eta = best if fell else (F, theta, eta / 3)
        if fell and sure:
            context.move(theta, F if judges.size == n else None)
        if failed > 30:
            return "no step lowers F"


def better(values: Array, start: Array, n: int) -> bool:
    """Whether values of some components are lower than at the start by more than chance; of all n, at all."""
    change = values - start
    if change.size == n:
        return float(change.mean()) < 0
    if change.size < 5:
        return False
    return float(change.mean()) + 3 * float(change.std(ddof=1)) / math.sqrt(change.size) < 0


def _gradient(
    context: Context, theta: Array, C: Indices, q: int, mu: float, of: Indices
) -> Generator[Probes, Answers, Array]:
    """The mean gradient of some components, along all coordinates or along q random directions."""
    base = (yield from context.values([theta], of))[0]
    g = np.zeros(context.d)
    if q == C.size:
        slopes, _ = yield from context.slopes(theta, C, mu, of, base)
        g[C] = slopes.mean(axis=0)
        return g
    block = context.directions("orthogonal", q)
    moved = yield from context.around(theta, block, mu, q, of)
    g = block.combine((moved - base[:, None]).mean(axis=0) * (context.d / (q * mu)))
    g[np.setdiff1d(np.arange(context.d), C)] = 0.0
    return g
