"""Sampling the functions l_i of the single-index model along their rows."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.methods.auto.arms.row_learning import RowLearner
from zerothresh.methods.auto.models.curves import Curves
from zerothresh.methods.auto.models.index_rows import norms
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def samples_along(
    learner: RowLearner, first: int, places: tuple[float, ...], length: float
) -> Generator[Probes, Answers, Curves]:
    """Sample l_i of the components from ``first`` on at places along their rows, in one round.

    Arguments
    ---------
    learner: the rows, and the run.
    first: int, the position of the first component.
    places: where to sample, in units of ``length``.
    length: float, a distance from the start.
    """
    context, data, V = learner.context, learner.data, learner.data.V[first:]
    unit_rows = V / norms(V)[:, None]
    points = context.theta0 + data.full(np.concatenate([unit_rows * (place * length) for place in places]))
    points = context.inside(points)
    values = yield from context.each(points, np.tile(learner.order[first : len(data)], len(places)))
    z = np.einsum("rc,rc->r", (points - context.theta0)[:, data.C], np.tile(V, (len(places), 1)))
    samples, curves = values - data.l2_change(points), Curves(len(V))
    for place, sample in zip(np.split(z, len(places)), np.split(samples, len(places)), strict=True):
        curves.add(place, sample)
    return curves
