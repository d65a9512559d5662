"""A race of coordinates for the largest slopes of F = mean f_i: the more components a coordinate has been asked on, the
more others have been given up.

Where components differ more than their mean gradient is large, groups tell nothing that coordinates do not: the spread
of a group's slopes grows with its size. What is left to gain is to stop early with the coordinates that show no slope.

Reference: Haupt, Castro and Nowak, *Distilled sensing*, IEEE Trans. Inf. Theory 2011; Karnin, Koren and Somekh,
*Almost optimal exploration in multi-armed bandits*, ICML 2013.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Indices
from zerothresh.methods.auto.moves.best_first import FoundSlope
from zerothresh.methods.auto.moves.component_sample import ComponentSample
from zerothresh.methods.auto.moves.support_polish import SampledPoint
from zerothresh.methods.auto.settings.grouped_slopes_settings import COORDINATE_RACE as SETTINGS
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def coordinate_race(
    sample: ComponentSample, at: SampledPoint, free: Indices, h: float, calls: float, finalists: int
) -> Generator[Probes, Answers, list[FoundSlope]]:
    """Return the finalists with their slopes on all components, the largest first.

    Arguments
    ---------
    sample: all components.
    at: the point, and the values of all components there, in the sample's order.
    free: indices of the coordinates; if ``calls`` do not suffice for all of them, a random part takes part.
    h: float, the difference step.
    calls: float, about how many calls the race may cost.
    finalists: int, how many coordinates are asked on all components.
    """
    n, components = sample.size, sample.components
    finalists = max(1, min(finalists, free.size, int(SETTINGS.final_share * calls / n)))
    race = max(calls - finalists * n, 0.0)
    entrants = int(min(max(race / (SETTINGS.cost * SETTINGS.first), finalists), free.size))
    C = free[sample.context.rng.subset(free.size, entrants)] if entrants < free.size else free
    target = max(1, int(race / (SETTINGS.cost * entrants))) if entrants > finalists else n
    sums, seen = np.zeros(C.size), 0
    while True:
        target = min(target, n)
        while seen < target:
            part = min(target, seen + max(1, SETTINGS.round // C.size))
            of = slice(seen, part)
            slopes, _ = yield from sample.context.slopes(at.theta, C, h, components[of], at.values[of])
            sums += slopes.sum(axis=0)
            seen = part
        order = np.argsort(-np.abs(sums), kind="stable")
        if seen == n:
            error = sample.noise * math.sqrt(2 / n) / h
            return [FoundSlope(int(C[i]), float(sums[i] / n), error) for i in order]
        short = sample.context.left < SETTINGS.kept_back * finalists * n
        order = order[: finalists if short else max(finalists, int(SETTINGS.kept * C.size))]
        C, sums = C[order], sums[order]
        target = n if C.size <= finalists else max(seen + 1, math.ceil(SETTINGS.growth * seen))
