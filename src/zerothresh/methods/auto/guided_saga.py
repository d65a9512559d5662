"""Guided SAGA: the memory's rows are measured again only along directions in which they can have changed."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.diagnosis import Diagnosis, diagnose
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.program import Program
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@register("guided-saga")
@dataclass(frozen=True)
class GuidedSAGA(Program):
    r"""SAGA with rows that are learnt once, n (d + 1) calls, and then kept up to date by 3 or 4 calls a step.

    A row a_i is the gradient of f_i where i was last drawn. It is measured again along itself, along the
    way that theta has gone since, and along one random direction:

    .. math:: a_i' = a_i + \sum_b (\partial_b f_i(\theta) - a_i \cdot b)\, b, \quad
        \theta \leftarrow H_k(\theta - \eta (a_i' - a_i + \bar a))

    The learning rate is 1 / 3L, with L the curvature of the components along their own gradients, which one
    value each tells; once a pass F is asked for, and if it has risen the pass is undone and the rate halved.

    Reference: Defazio et al., NIPS 2014, for SAGA.

    >>> GuidedSAGA()
    GuidedSAGA()
    """

    family: ClassVar[str] = "parts of auto"
    order: ClassVar[int] = 4
    solves: ClassVar[str] = "smooth finite sum, l0"
    queries: ClassVar[str] = "n (d + 1) once, then 3 or 4"
    memory: ClassVar[str] = "1 a call + n d"

    def search(self, context: Context) -> Asks:
        seen = yield from diagnose(context)
        context.remark(seen.words())
        context.random = seen.random
        n, C, theta = context.n, context.free(), context.theta0
        base = (yield from context.values([theta]))[0]
        slopes, _ = yield from context.slopes(theta, C, seen.mu, context.everything, base, central=seen.central)
        rows, places = np.zeros((n, context.d)), np.tile(theta, (n, 1))
        rows[:, C] = slopes
        F, mean = float(base.mean()), rows.mean(axis=0)
        if not mean.any():
            context.remark("all components together are stationary at the start")
            return
        eta = 1 / (3 * (yield from _steepest(context, seen, theta, base, rows)))
        eta = min(eta, 10 * seen.length / max(float(np.linalg.norm(mean)), 1e-300))
        least = 1e-6 * eta
        kept = theta, rows.copy(), places.copy(), mean
        while eta > least:
            for _ in range(n):
                i = context.rng.integers(n, 1)
                basis = _orthonormal([rows[i[0]], theta - places[i[0]], context.rng.normal(context.d)])
                mu = max(seen.mu, 1e-8 * float(np.abs(theta).max()))
                points = [theta, *(context.inside(theta + mu * b) for b in basis)]
                values = (yield from context.values(points, i))[:, 0]
                change = ((values[1:] - values[0]) / mu - basis @ rows[i[0]]) @ basis
                step = eta * (change + mean)
                far = 1e3 * max(seen.length, float(np.linalg.norm(kept[0])))  # from one pass to the next
                theta = context.H(theta - step * min(1.0, far / max(float(np.linalg.norm(step)), 1e-300)))
                rows[i[0]] += change
                places[i[0]] = points[0]
                mean = mean + change / n
                context.move(theta)
            value = float((yield from context.values([theta])).mean())
            if value < F:
                F, kept = value, (theta, rows.copy(), places.copy(), mean)
                context.move(theta, F)
            else:
                theta, rows, places, mean = kept[0], kept[1].copy(), kept[2].copy(), kept[3]
                context.move(theta, F)
                eta /= 2
        context.remark("no pass lowers F")


def _steepest(
    context: Context, seen: Diagnosis, theta: Array, base: Array, rows: Array
) -> Generator[Probes, Answers, float]:
    """The curvature of components along their own gradients; a tenth of them may be steeper."""
    h = max(seen.bend(context.d), seen.mu)
    norms = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    points = context.inside(theta - h * rows / norms[:, None])
    values = yield from context.each(points, context.everything)
    z = np.einsum("rd,rd->r", points - theta, rows)
    length = np.maximum(((points - theta) ** 2).sum(axis=1), 1e-300)
    bends = 2 * (values - base - z) / length
    steep = float(np.quantile(bends, 0.9))
    return steep if 0 < steep < np.inf else max(float(norms.max()), 1e-300) / seen.length


def _orthonormal(vectors: list[Array]) -> Array:
    """The vectors made orthonormal, in turn; those that add nothing are left out."""
    basis = np.empty((0, vectors[0].size))
    for v in vectors:
        size = float(np.linalg.norm(v))
        if size == 0:
            continue
        w = v / size
        for _ in range(2):
            w = w - basis.T @ (basis @ w)
        rest = float(np.linalg.norm(w))
        if rest > 1e-6:
            basis = np.concatenate([basis, w[None] / rest])
    return basis
