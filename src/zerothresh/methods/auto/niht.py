r"""NIHT: normalised iterative hard thresholding, with a step size that one additional value of F determines.

.. math:: \theta^{(t+1)} = H_k(\theta^{(t)} - \eta_t g_t), \quad
    \eta_t = \frac{\|g_S\|^2}{g_S^\top \nabla^2 F g_S}, \quad S = supp(\theta^{(t)})

The curvature along g_S is 2 (F(theta - h g_S) - F(theta) + h ||g_S||^2) / h^2: one value of F, exact if F is
quadratic. A step is made only if F decreases.
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
from zerothresh.methods.auto.models.significance import significantly_lower
from zerothresh.methods.auto.settings.descent_settings import DESCENT, NIHT_STEPS
from zerothresh.methods.auto.settings.diagnosis_settings import DIAGNOSIS
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@register("niht")
@dataclass(frozen=True)
class NIHT(Program):
    """Normalised hard thresholding: gradients from differences, step sizes from one more value, descent steps only.

    If the budget covers a few gradients of F, at n (d + 1) calls each, full gradients are used. Otherwise the
    method averages gradients of a few components, along random orthogonal directions if necessary.

    Arguments
    ---------
    step: str, "exact" (the curvature along the gradient is measured) or "bb" (it is taken from the last two
        gradients, Barzilai and Borwein). Default: "exact".
    momentum: bool, whether to extrapolate (Nesterov), with a restart whenever F rises. Default: False.

    Reference: Blumensath and Davies, *Normalized iterative hard thresholding*, IEEE J. Sel. Top. Signal
    Process. 2010.

    >>> NIHT(step="bb")
    NIHT(step='bb', momentum=False)
    """

    family: ClassVar[str] = "parts of auto"
    order: ClassVar[int] = 1
    solves: ClassVar[str] = "smooth, l0"
    queries: ClassVar[str] = "n (d + 2); less with a small budget"
    memory: ClassVar[str] = "1 per call + d"
    keeps_constraints: ClassVar[bool] = False
    whole: ClassVar[bool] = True

    step: str = "exact"
    momentum: bool = False

    def __post_init__(self) -> None:
        check.one_of("step", self.step, ("exact", "bb"))
        check.flag("momentum", self.momentum)

    def search(self, context: Context) -> Asks:
        diagnosis = yield from diagnose(context)
        context.remark(f"Diagnosis: {diagnosis.summary()}.")
        context.random = diagnosis.random
        if not context.free().size:
            return
        if context.left >= NIHT_STEPS.min_gradients * context.n * (context.free().size + 1):
            context.remark((yield from FullGradientNIHT(context, diagnosis).search(self.step, self.momentum)))
        else:
            context.remark((yield from sampled_gradient_niht(context, diagnosis)))


class FullGradientNIHT:
    """NIHT with gradients of F, the mean of all components."""

    def __init__(self, context: Context, diagnosis: Diagnosis) -> None:
        self.context, self.diagnosis, self.C = context, diagnosis, context.free()

    def gradient(self, theta: Array, base: Array | None) -> Generator[Probes, Answers, tuple[float, Array]]:
        """Return F and its gradient at theta; ``base`` are the f_i(theta), or None if they are not known."""
        context = self.context
        if base is None:
            base = (yield from context.values([theta]))[0]
        mu = max(self.diagnosis.mu, DESCENT.rounding_step * float(np.abs(theta).max()))
        central = self.diagnosis.central
        slopes, _ = yield from context.slopes(theta, self.C, mu, context.everything, base, central=central)
        g = np.zeros(context.d)
        g[self.C] = slopes.mean(axis=0)
        return float(base.mean()), g

    def exact_step_size(self, theta: Array, F: float, g: Array) -> Generator[Probes, Answers, float]:
        """Return the step size that minimises F along the gradient on the support, from one value of F."""
        context = self.context
        S = np.flatnonzero(theta if theta.any() else context.constraint.project(-g))
        g_S = np.zeros(context.d)
        g_S[S] = g[S]
        square = float(g_S @ g_S)
        if square == 0:
            norm = float(np.linalg.norm(g))
            return self.diagnosis.length / max(norm, TINY) if norm else 1.0  # no step is made along a gradient of 0
        h = DESCENT.curvature_step * self.diagnosis.length / math.sqrt(square)
        value = float((yield from context.values([context.inside(theta - h * g_S)])).mean())
        curvature = 2 * (value - F + h * square) / max(h * h, TINY)
        return square / curvature if curvature > 0 else NIHT_STEPS.uncurved * h

    def search(self, rule: str, momentum: bool) -> Generator[Probes, Answers, str]:
        """Iterate until no step along the gradient lowers F; returns the reason for stopping."""
        context = self.context
        theta, previous_theta, beta, F = context.theta0, context.theta0, 1.0, math.inf
        last: tuple[Array, Array] | None = None
        known_values: Array | None = None
        while True:
            beta, previous_beta = (1 + math.sqrt(1 + 4 * beta * beta)) / 2, beta
            y = theta
            if momentum and theta is not previous_theta:
                y = context.inside(theta + ((previous_beta - 1) / beta) * (theta - previous_theta))
            F_y, g = yield from self.gradient(y, known_values if y is theta else None)
            if y is theta:
                F = F_y
                context.move(theta, F)
            eta = 0.0
            if rule == "bb" and last is not None:
                s, change = y - last[0], g - last[1]
                eta = float(s @ s) / float(s @ change) if float(s @ change) > 0 else 0.0
            last = y, g
            if eta == 0.0:
                eta = yield from self.exact_step_size(y, F_y, g)
            for _ in range(NIHT_STEPS.backtracks):
                trial = context.H(y - eta * g)
                values = yield from context.values([trial])
                if float(values.mean()) < F:
                    break
                eta /= NIHT_STEPS.backtrack
            else:
                if y is theta:
                    return "No step along the gradient lowers F."
                previous_theta, beta = theta, 1.0  # F rises: restart without momentum
                continue
            previous_theta, theta, F, known_values = theta, trial, float(values.mean()), values[0]
            context.move(theta, F)


def sampled_gradient_niht(context: Context, diagnosis: Diagnosis) -> Generator[Probes, Answers, str]:
    """Run NIHT with a running mean of gradients of a few components or along a few directions.

    This is for budgets of a few times d, which do not cover gradients of F. Returns the reason for stopping.
    """
    n, C = context.n, context.free()
    judges = context.rng.subset(
        n, max(1, min(n, int(context.left / NIHT_STEPS.judging)))
    )  # the components that judge a step
    if judges.size < min(n, NIHT_STEPS.least_judges):
        return "The budget is too small to tell whether a step lowers F."
    calls_per_gradient = max(2, int(context.left / NIHT_STEPS.sampled_gradients))
    q = min(C.size, calls_per_gradient - 1)
    batch = max(1, min(n, calls_per_gradient // (q + 1)))
    mu = max(diagnosis.mu, DESCENT.curvature_step * diagnosis.length if diagnosis.kink else 0.0)
    theta, eta, total, weight, failures = context.theta0, 0.0, np.zeros(context.d), 0.0, 0
    start_values = yield from context.starts(judges)
    F = float(start_values.mean())
    order: Indices = np.empty(0, np.int64)
    while True:
        if order.size < batch:
            order = context.rng.subset(n, n)
        components, order = order[:batch], order[batch:]
        total = NIHT_STEPS.decay * total + (yield from _sampled_gradient(context, theta, C, q, mu, components))
        weight = NIHT_STEPS.decay * weight + 1
        g = total / weight
        largest = float(np.abs(g).max())
        if largest == 0:
            failures += 1
            mu = min(DIAGNOSIS.lengthen * mu, NIHT_STEPS.longest * diagnosis.length)
            if failures > NIHT_STEPS.flat_rounds:
                return "The values do not change with x."
            continue
        eta = eta or NIHT_STEPS.first_move * diagnosis.length / largest
        best, decreased, significant = (F, theta, eta), False, False
        for step in (eta, NIHT_STEPS.factor * eta, eta / NIHT_STEPS.factor):
            trial = context.H(theta - step * g)
            values = (yield from context.values([trial], judges))[0]
            value = float(values.mean())
            if value < best[0]:
                best, decreased = (value, trial, step), True
                significant = significantly_lower(values, start_values, n)
            elif decreased:
                break
        failures = 0 if decreased else failures + 1
        F, theta, eta = best if decreased else (F, theta, eta / NIHT_STEPS.factor)
        if decreased and significant:
            context.move(theta, F if judges.size == n else None)
        if failures > NIHT_STEPS.failed_rounds:
            return "No step lowers F."


def _sampled_gradient(
    context: Context, theta: Array, C: Indices, q: int, mu: float, components: Indices
) -> Generator[Probes, Answers, Array]:
    """Estimate the mean gradient of some components, along all coordinates or along q random directions."""
    base = (yield from context.values([theta], components))[0]
    g = np.zeros(context.d)
    if q == C.size:
        slopes, _ = yield from context.slopes(theta, C, mu, components, base)
        g[C] = slopes.mean(axis=0)
        return g
    block = context.directions("orthogonal", q)
    moved = yield from context.around(theta, block, mu, q, components)
    g = block.combine((moved - base[:, None]).mean(axis=0) * (context.d / (q * mu)))
    g[np.setdiff1d(np.arange(context.d), C)] = 0.0
    return g
