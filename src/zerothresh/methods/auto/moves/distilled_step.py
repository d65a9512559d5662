"""A step from few calls on many components: a race of coordinates on a few of them, and a step as long as is sure.

Where components differ much, no calls that a small budget has prove by Student's test that a point is better. But a
short step along a direction lowers F as soon as the direction has the right sign. So calls are spent where they say
most about it: every component that is asked halves the coordinates that are left (distilled sensing), and the last few
are asked on as many components as the calls allow. If there are more coordinates than calls, a few are drawn by chance,
so few that all components can be asked: a race that leaves out most coordinates would hardly find one of the best.

The step is as long as the components agree on the direction, when each is compared with the mean of the others. If they
hardly do, the m components that were asked are still a part m / n of F, and a small part of that is safe.

Reference: Haupt, Castro and Nowak, *Distilled sensing*, IEEE Trans. Inf. Theory 2011.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.moves.judgement import values_here
from zerothresh.methods.auto.settings import DISTILLED_STEP as SETTINGS
from zerothresh.methods.auto.settings import TINY
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def distilled_step(
    context: Context, diagnosis: Diagnosis, order: Indices, calls: float
) -> Generator[Probes, Answers, bool]:
    """Step along the coordinates that a race leaves, and move the run there; return whether it has moved.

    Arguments
    ---------
    context: the run; the step begins where it stands.
    diagnosis: what the first calls found.
    order: int64 array (n,), all components in random order.
    calls: float, about how many calls the step may cost.
    """
    here = context.theta
    slopes = _Slopes(context, diagnosis, order)
    few = max(SETTINGS.curvatures, int(SETTINGS.curvature_share * calls))
    C = yield from slopes.race(calls - few)
    G = slopes.G
    if len(G) < max(2, min(SETTINGS.fewest, context.n)) or not G.any():
        return False
    mean = G.mean(axis=0)
    direction = np.zeros(context.d)
    direction[C] = -mean
    unit = diagnosis.gradient_length(context.d) / max(float(np.linalg.norm(mean)), TINY)
    few = min(few, len(G))
    trial = context.inside(here + unit * direction)
    changes = (yield from context.values([trial], order[:few]))[0] - slopes.values[:few]
    bend = float((changes - G[:few] @ (trial - here)[C]).mean())
    square = float(mean @ mean)
    longest = 0.5 * unit * unit * square / bend if bend > 0 else unit  # the way to the minimum of the parabola
    agreement = _agreement(G, context.n) / square
    length = min(max(agreement, SETTINGS.least_part * len(G) / context.n), 1.0) * longest
    theta = context.H(context.inside(here + length * direction))
    if np.array_equal(theta, here):
        return False
    context.move(theta, fall=context.fall + max(agreement, TINY) * 0.5 * length * square)
    return True


def _agreement(G: Array, n: int) -> float:
    """Return a lower limit of the squared gradient of F, from the slopes of some of its n components.

    The squared mean of a sample is too large by the variance of that mean, which vanishes if all components are there
    (Cochran, *Sampling techniques*, section 2.6).

    >>> _agreement(np.array([[1.0, 0.0], [1.0, 0.1], [1.0, -0.1]]), 3)
    1.0
    """
    m, mean, part = len(G), G.mean(axis=0), 1 / len(G) - 1 / n
    square = float(mean @ mean) - float(G.var(axis=0, ddof=1).sum()) * part
    products = (m * G @ mean - np.square(G).sum(axis=1)) / (m - 1)  # of each component with the mean of the others
    return square - SETTINGS.deviations * 2 * float(products.std(ddof=1)) * math.sqrt(part)


def affords_all(context: Context, calls: float) -> bool:
    """Whether the calls pay for a race that begins with all coordinates."""
    return context.free().size < SETTINGS.longest_stage * calls


class _Slopes:
    """The slopes of components along the coordinates that are still in the race.

    Attributes
    ----------
    G: array of shape (components, coordinates), the slopes so far.
    values: array of shape (components,), f_i where the run stands.
    """

    def __init__(self, context: Context, diagnosis: Diagnosis, order: Indices) -> None:
        self.context, self.diagnosis, self.order = context, diagnosis, order
        self.G, self.values = np.empty((0, 0)), np.empty(0)

    def race(self, calls: float) -> Generator[Probes, Answers, Indices]:
        """Ask for slopes of more and more components along fewer and fewer coordinates; return those that are left."""
        context, n = self.context, self.context.n
        end = context.used + calls
        support = np.intersect1d(np.union1d(np.flatnonzero(context.theta), context.constraint.include), context.free())
        others = np.setdiff1d(context.free(), support)
        slots = min(max(context.k - support.size, 0), others.size)
        if slots == 0:
            others = others[:0]
        elif not affords_all(context, calls):  # they cannot be told apart
            slots = min(
                slots, max(1, int(calls / context.n) - support.size - 1)
            )  # so few that all components are asked
            others = np.sort(others[context.rng.subset(others.size, slots)])
        C, finalists = np.concatenate([support, others]), support.size + slots
        stage = max(1, int(SETTINGS.race_share * calls * (1 - SETTINGS.kept) / (C.size + 1)))
        self.G = np.empty((0, C.size))
        while C.size > finalists:
            if not (yield from self._ask(C, stage, end)):
                break
            score = np.abs(self.G.sum(axis=0))
            score[: support.size] = np.inf  # a coordinate that is in use moves in any case
            kept = np.argsort(-score, kind="stable")[: max(finalists, int(SETTINGS.kept * C.size))]
            C, self.G = C[kept], self.G[:, kept]
        score = np.abs(self.G.sum(axis=0))
        score[: support.size] = np.inf
        kept = np.argsort(-score, kind="stable")[:finalists]
        C, self.G = C[kept], self.G[:, kept]
        yield from self._ask(C, n, end)
        return C

    def _ask(self, C: Indices, most: int, end: float) -> Generator[Probes, Answers, bool]:
        """Ask for the slopes of at most so many further components; False if the calls do not pay for one."""
        context, seen = self.context, len(self.G)
        price = C.size * (1 + self.diagnosis.central) + 1
        count = min(most, context.n - seen, int(min(end - context.used, context.left) / price))
        if count < 1:
            return False
        components = self.order[seen : seen + count]
        base = yield from values_here(context, components)
        mu, central = self.diagnosis.mu, self.diagnosis.central
        slopes, _ = yield from context.slopes(context.theta, C, mu, components, base, central=central)
        self.G, self.values = np.concatenate([self.G, slopes]), np.concatenate([self.values, base])
        return True
