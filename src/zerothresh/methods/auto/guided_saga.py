"""Guided SAGA: the stored gradients are measured again only along directions in which they can have changed."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.diagnosis import Diagnosis, diagnose
from zerothresh.methods.auto.settings.descent_settings import DESCENT, GUIDED
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.program.base_class import Program
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@register("guided-saga")
@dataclass(frozen=True)
class GuidedSAGA(Program):
    r"""SAGA whose stored gradients are learnt once, for n (d + 1) calls, and then updated with 3 or 4 calls per step.

    The stored gradient a_i is that of f_i where i was last drawn. It is measured again along itself, along the
    path that theta has taken since then, and along one random direction:

    .. math:: a_i' = a_i + \sum_b (\partial_b f_i(\theta) - a_i \cdot b)\, b, \quad
        \theta \leftarrow H_k(\theta - \eta (a_i' - a_i + \bar a))

    The learning rate is 1 / 3L, where L is the curvature of the components along their own gradients, measured with
    one value per component. F is evaluated once per pass; if it has risen, the pass is undone and the rate halved.

    Reference: Defazio et al., NIPS 2014, for SAGA.

    >>> GuidedSAGA()
    GuidedSAGA()
    """

    family: ClassVar[str] = "parts of auto"
    order: ClassVar[int] = 4
    solves: ClassVar[str] = "smooth finite sum, l0"
    queries: ClassVar[str] = "n (d + 1) once, then 3 or 4"
    memory: ClassVar[str] = "1 per call + n d"
    keeps_constraints: ClassVar[bool] = False

    def search(self, context: Context) -> Asks:
        diagnosis = yield from diagnose(context)
        context.remark(f"Diagnosis: {diagnosis.summary()}.")
        context.random = diagnosis.random
        n, C, theta = context.n, context.free(), context.theta0
        base = (yield from context.values([theta]))[0]
        central = diagnosis.central
        slopes, _ = yield from context.slopes(theta, C, diagnosis.mu, context.everything, base, central=central)
        gradients, measured_at = np.zeros((n, context.d)), np.tile(theta, (n, 1))
        gradients[:, C] = slopes
        F, mean = float(base.mean()), gradients.mean(axis=0)
        if not mean.any():
            context.remark("The start is a stationary point of F.")
            return
        curvature = yield from _component_curvature(context, diagnosis, theta, base, gradients)
        eta = 1 / max(GUIDED.rate_divisor * curvature, TINY)
        eta = min(eta, GUIDED.first_move * diagnosis.length / max(float(np.linalg.norm(mean)), TINY))
        min_eta = GUIDED.least_rate * eta
        best = theta, gradients.copy(), measured_at.copy(), mean  # the state after the best pass
        while eta > min_eta:
            for _ in range(n):
                i = context.rng.integers(n, 1)
                basis = _orthonormal([gradients[i[0]], theta - measured_at[i[0]], context.rng.normal(context.d)])
                mu = max(diagnosis.mu, DESCENT.rounding_step * float(np.abs(theta).max()))
                points = [theta, *(context.inside(theta + mu * b) for b in basis)]
                values = (yield from context.values(points, i))[:, 0]
                change = ((values[1:] - values[0]) / mu - basis @ gradients[i[0]]) @ basis
                step = eta * (change + mean)
                way = float(np.linalg.norm(best[0] - context.theta0))
                max_step = GUIDED.longest_step * max(diagnosis.length, way)
                theta = context.H(theta - step * min(1.0, max_step / max(float(np.linalg.norm(step)), TINY)))
                gradients[i[0]] += change
                measured_at[i[0]] = points[0]
                mean = mean + change / n
                context.move(theta)
            value = float((yield from context.values([theta])).mean())
            if value < F:
                F, best = value, (theta, gradients.copy(), measured_at.copy(), mean)
                context.move(theta, F)
            else:
                theta, gradients, measured_at, mean = best[0], best[1].copy(), best[2].copy(), best[3]
                context.move(theta, F)
                eta /= 2
        context.remark("No further pass lowers F.")


def _component_curvature(
    context: Context, diagnosis: Diagnosis, theta: Array, base: Array, gradients: Array
) -> Generator[Probes, Answers, float]:
    """Measure the curvature of each component along its own gradient; return a high quantile of them."""
    h = max(diagnosis.curvature_step(context.d), diagnosis.mu)
    norms = np.maximum(np.linalg.norm(gradients, axis=1), TINY)
    points = context.inside(theta - h * gradients / norms[:, None])
    values = yield from context.each(points, context.everything)
    z = np.einsum("rd,rd->r", points - theta, gradients)
    squares = np.maximum(((points - theta) ** 2).sum(axis=1), TINY)
    curvatures = 2 * (values - base - z) / squares
    steep = float(np.quantile(curvatures, GUIDED.steep_quantile))
    return steep if 0 < steep < np.inf else max(float(norms.max()), TINY) / diagnosis.length


def _orthonormal(vectors: list[Array]) -> Array:
    """Orthonormalise the vectors one after the other; those that depend on earlier ones are left out."""
    basis = np.empty((0, vectors[0].size))
    for v in vectors:
        norm = float(np.linalg.norm(v))
        if norm == 0:
            continue
        w = v / norm
        for _ in range(2):  # twice, because once leaves a component of rounding
            w = w - basis.T @ (basis @ w)
        remaining = float(np.linalg.norm(w))
        if remaining > GUIDED.independent:
            basis = np.concatenate([basis, w[None] / remaining])
    return basis
