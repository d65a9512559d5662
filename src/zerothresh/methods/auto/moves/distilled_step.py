"""A step from few calls on many components: a race of coordinates on a few of them, then one slope of F if it is paid.

Where components differ much, no calls that a small budget has prove by Student's test that a point is better. But a
short step along a direction lowers F as soon as the direction has the right sign. So calls are spent where they say
most about it: each stage of a race asks more components for half as many coordinates (distilled sensing). If there are
more coordinates than calls, a part of them is drawn by chance.

If the calls pay for it, all components are asked for their slope along the direction that was found, so that the slope
of F is known, and the step leads down to one side or the other. Otherwise the step is as long as the components agree
on the direction, when each is compared with the mean of the others. If they hardly do, the m components that were asked
are still a part m / n of F, and a small part of that is safe.

Reference: Haupt, Castro and Nowak, *Distilled sensing*, IEEE Trans. Inf. Theory 2011.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.moves.judgement import values_here
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.grouped_slopes_settings import DISTILLED_STEP as SETTINGS
from zerothresh.methods.program.context import Asks, Context
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
    here, n = context.theta, context.n
    known = context.known_starts if here is context.theta0 else 0
    few = max(SETTINGS.curvatures, int(SETTINGS.curvature_share * calls))
    price = 2 * n - known + 2 * few  # of the slope of F along a direction, and of the curvature
    remembered = here is context.theta0 and len(context.remembered_gradients()) >= SETTINGS.least_rows
    sure = calls - price >= (0 if remembered else SETTINGS.least_race * n)
    if not sure and here is not context.theta0:
        return False  # such a step may lead up, and lose what was gained
    slopes = _Slopes(context, diagnosis, order, sure=sure)
    context.committed = sure
    C = yield from slopes.race(calls - (price if sure else few))
    G = slopes.G
    if len(G) < 2 or not G.any():
        context.committed = False
        return False
    mean = G.mean(axis=0)
    steepness = float(np.linalg.norm(mean))
    direction = np.zeros(context.d)
    direction[C] = -mean / max(steepness, TINY)
    if sure:
        moved = yield from _along(slopes, direction, C, few)
        context.committed = False
        return moved
    bend = yield from slopes.bend(direction, C, slopes.components[:few])
    unit = diagnosis.gradient_length(context.d)
    longest = 0.5 * steepness / bend if bend > 0 else unit  # the way to the minimum of the parabola
    agreement = _agreement(G, n) / square(steepness) if len(G) >= min(SETTINGS.fewest, n) else 0.0
    length = min(max(agreement, SETTINGS.least_part * len(G) / n), 1.0) * longest
    theta = context.H(context.inside(here + length * direction))
    if np.array_equal(theta, here):
        return False
    context.move(theta, fall=context.fall + max(agreement, TINY) * 0.5 * length * steepness)
    return True


def _along(slopes: _Slopes, direction: Array, C: Indices, few: int) -> Generator[Probes, Answers, bool]:
    """Ask the other components for their slopes along the direction, and go to the side where F is lower.

    So the slope of F is known, and a step to the other side may be right. A step of a part of the way to the minimum
    leads down even if the curvature, which a few components show, is several times as large as it seems.
    """
    context, here, m = slopes.context, slopes.context.theta, len(slopes.G)
    others, mu = slopes.order[m:], slopes.diagnosis.mu
    base = yield from values_here(context, others)
    near = context.inside(here + mu * direction)
    way = near - here
    length = float(np.linalg.norm(way))
    if length == 0:
        return False
    way /= length
    changes = (yield from context.values([near], others))[0] - base
    slope = float(np.append(slopes.G @ way[C], changes / length).mean())
    side = -math.copysign(1.0, slope)
    room = _room(context, side * way)
    if room == 0:
        return False
    few, trial = min(2 * few, others.size), side * min(slopes.diagnosis.gradient_length(context.d), room)
    bent = (yield from context.values([context.inside(here + trial * way)], others[:few]))[0] - base[:few]
    bend = float((bent - trial * changes[:few] / length).mean()) / square(trial)
    step = min(SETTINGS.safe_part * (0.5 * abs(slope) / bend if bend > 0 else abs(trial)), room)
    theta = context.H(context.inside(here + side * step * way))
    if np.linalg.norm(theta - here) < SETTINGS.safe_part * step:
        return False  # the constraint leads elsewhere
    context.move(theta, fall=context.fall + 0.5 * step * abs(slope))
    return True


def _room(context: Context, way: Array) -> float:
    """Return how far the bounds allow to go along a unit vector from where the run stands."""
    box, here, along = context.box, context.theta, way != 0
    if box is None:
        return math.inf
    room = np.where(way > 0, box.high - here, here - box.low)[along] / np.abs(way[along])
    return float(max(room.min(initial=math.inf), 0.0))


def _agreement(G: Array, n: int, deviations: float = SETTINGS.deviations) -> float:
    """Return a lower limit of the squared gradient of F, from the slopes of some of its n components.

    The squared mean of a sample is too large by the variance of that mean, which vanishes if all components are there
    (Cochran, *Sampling techniques*, section 2.6).

    >>> _agreement(np.array([[1.0, 0.0], [1.0, 0.1], [1.0, -0.1]]), 3)
    1.0
    """
    m, mean, part = len(G), G.mean(axis=0), 1 / len(G) - 1 / n
    squared = float(mean @ mean) - float(G.var(axis=0, ddof=1).sum()) * part
    products = (m * G @ mean - np.square(G).sum(axis=1)) / (m - 1)  # of each component with the mean of the others
    return squared - deviations * 2 * float(products.std(ddof=1)) * math.sqrt(part)


def affords_all(context: Context, calls: float) -> bool:
    """Whether the calls pay for a race that begins with all coordinates."""
    return context.free().size < SETTINGS.longest_stage * calls


def _stages(first: int, last: int) -> list[int]:
    """Return how many coordinates each stage of a race has.

    >>> _stages(50, 10)
    [50, 25, 13, 10]
    """
    sizes = [first]
    while sizes[-1] > last:
        sizes.append(max(last, math.ceil(SETTINGS.kept * sizes[-1])))
    return sizes


class _Slopes:
    """The slopes of components along the coordinates that are still in the race.

    Attributes
    ----------
    G: array of shape (components, coordinates), the slopes so far.
    values: array of shape (components,), f_i where the run stands.
    order: int64 array (n,), all components, of which the first have been asked.
    most: int, how many components may be asked.
    sure: whether all components will be asked for their values here and along the direction that is found.
    """

    def __init__(self, context: Context, diagnosis: Diagnosis, order: Indices, *, sure: bool) -> None:
        self.context, self.diagnosis, self.order, self.sure = context, diagnosis, order, sure
        self.most = context.n - sure * min(SETTINGS.curvatures, context.n // 2)  # others show the curvature
        self.G, self.values = np.empty((0, 0)), np.empty(0)

    @property
    def components(self) -> Indices:
        """The components that have been asked."""
        return self.order[: len(self.G)]

    def race(self, calls: float) -> Generator[Probes, Answers, Indices]:
        """Ask more components for slopes along fewer coordinates in each stage; return those that are left."""
        context, free = self.context, self.context.free()
        end = context.used + calls
        support = np.intersect1d(np.union1d(np.flatnonzero(context.theta), context.constraint.include), free)
        others = np.setdiff1d(free, support)
        slots = min(max(context.k - support.size, 0), others.size)
        rows = yield from self._remembered()
        entrants = int(SETTINGS.longest_stage * calls) - support.size
        entrants = max(entrants, slots) if slots and not len(rows) else slots and others.size
        if entrants < others.size:
            others = np.sort(others[context.rng.subset(others.size, entrants)]) if entrants else others[:0]
        C, finalists = np.concatenate([support, others]), support.size + slots
        self.G = rows[:, np.searchsorted(free, C)]
        sizes = _stages(C.size, math.ceil(SETTINGS.spare * finalists))[1 if len(rows) else 0 :]
        for stage, size in enumerate(sizes):
            kept = self._best(size, support.size)
            C, self.G = C[kept], self.G[:, kept]
            yield from self._ask(C, (end - context.used) / (len(sizes) - stage), end)
        kept = self._best(finalists, support.size)
        self.G = self.G[:, kept]
        return np.asarray(C[kept])

    def _remembered(self) -> Generator[Probes, Answers, Array]:
        """Return the gradients at the start that another search has measured, and put their components first."""
        context = self.context
        known = context.remembered_gradients() if context.theta is context.theta0 else {}
        free = context.free().size
        first = [i for i in self.order.tolist() if i in known and known[i].shape == (free,)]
        if len(first) < SETTINGS.least_rows:
            return np.empty((0, free))
        first = first[: self.most]
        self.order = np.concatenate([np.array(first), self.order[~np.isin(self.order, first)]])
        self.values = yield from context.starts(self.order[: len(first)])
        return np.array([known[i] for i in first])

    def _best(self, count: int, fixed: int) -> Indices:
        """Return the places of the coordinates that show the largest slopes; the first ones, which are in use, stay."""
        score = np.abs(self.G.sum(axis=0))
        score[:fixed] = np.inf
        return np.argsort(-score, kind="stable")[:count]

    def _ask(self, C: Indices, share: float, end: float) -> Asks:
        """Ask for the slopes of further components, for about so many calls; of one at least, if they pay for it."""
        context, seen = self.context, len(self.G)
        price = C.size * (1 + self.diagnosis.central)
        price = max(price - 1, 1) if self.sure else price + 1  # the value here, and one along the direction, come later
        affordable = int(min(end - context.used, context.left) / price)
        count = min(max(1, int(share / price)), affordable, self.most - seen)
        if count < 1:
            return
        components = self.order[seen : seen + count]
        base = yield from values_here(context, components)
        mu, central = self.diagnosis.mu, self.diagnosis.central
        slopes, _ = yield from context.slopes(context.theta, C, mu, components, base, central=central)
        self.G, self.values = np.concatenate([self.G, slopes]), np.concatenate([self.values, base])

    def bend(self, direction: Array, C: Indices, of: Indices) -> Generator[Probes, Answers, float]:
        """Return half the mean second derivative of the first components along a unit vector in the coordinates C."""
        context = self.context
        trial = context.inside(context.theta + self.diagnosis.gradient_length(context.d) * direction)
        way = trial - context.theta
        changes = (yield from context.values([trial], of))[0] - self.values[: of.size]
        return float((changes - self.G[: of.size] @ way[C]).mean()) / max(float(way @ way), TINY)
