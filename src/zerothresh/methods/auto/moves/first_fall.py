"""Something better than the start from little more than two values of F: a short step along a random sparse direction.

Where components differ so much that no slope can be told from a few of them, the budget of two values of F still
gives a fall: a short step along any direction changes F by its slope, and if it leads up, the opposite step leads down.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.signed_groups import signed_steps
from zerothresh.methods.auto.moves.component_sample import ComponentSample
from zerothresh.methods.auto.moves.judgement import lower, move_to, values_here
from zerothresh.methods.auto.settings import GROUPED_SLOPES as SETTINGS
from zerothresh.methods.auto.settings import TINY
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def first_fall(sample: ComponentSample, diagnosis: Diagnosis) -> Generator[Probes, Answers, bool]:
    """Step along random coordinates, and move the run there if F falls beyond chance; return whether it has moved.

    A few components give the slope and the curvature along the direction, and so the step at which F still falls by
    its slope. As many components as the budget allows then see the step. If it leads up, the parabola through its
    change says how far to go instead, mostly backwards; the components that the budget leaves see that.
    """
    context = sample.context
    direction = _direction(sample, diagnosis)
    here = context.theta
    own = yield from values_here(context, sample.components)
    length = float(np.linalg.norm(direction))
    if length == 0 or not own.size:
        return False
    both = yield from sample.values([context.inside(here + direction), context.inside(here - direction)])
    up, down = both - own
    slopes, bend = 0.5 * (up - down), float((up + down).mean())
    mean, spread = float(slopes.mean()), float(slopes.std(ddof=1)) if slopes.size > 1 else 0.0
    seen = abs(mean) > SETTINGS.significance * spread / math.sqrt(slopes.size)
    slope = abs(mean) if seen else spread / math.sqrt(context.n)  # of F along the direction, about
    t = min(0.5 * slope / bend, 1.0) if bend > 0 else 1.0
    step = -math.copysign(max(t, TINY), mean) * direction
    size = int(min(context.n, SETTINGS.first_fall_share * context.left))
    if size < min(SETTINGS.judges, context.n):
        return False
    judges = sample.order[::-1][:size]
    base = yield from values_here(context, judges)
    theta = context.H(context.inside(here + step))
    change = (yield from context.values([theta], judges))[0] - base
    if lower(sample, change):
        move_to(context, theta, base, change)
        return True
    few = int(min(size, context.left))
    if few < min(SETTINGS.judges, size):
        return False
    r = _fraction(float(change.mean()), 0.5 * bend * t * t)
    theta = context.H(context.inside(here + r * step))
    other = (yield from context.values([theta], judges[:few]))[0] - base[:few]
    if few == size and lower(sample, other):
        move_to(context, theta, base, other)
        return True
    bent = other - r * change[:few]  # curvature, which differs less among components than their slopes
    curved = float(bent.mean()) / (r * r - r) if r * (r - 1) else 0.0  # what curvature adds to the whole step
    better = _fraction(float(change.mean()), curved)
    for share in (r, better):
        bending = (share * share - share) / (r * r - r) * bent if r * (r - 1) else bent
        expected = float(bending.mean()) + share * float(change.mean())
        if expected < -SETTINGS.significance * math.hypot(sample.error(bending), share * sample.error(change)):
            context.move(context.H(context.inside(here + share * step)), fall=context.fall - expected)
            return True
    return False


def _fraction(change: float, curved: float) -> float:
    """Return which fraction of a step lowers F, if the step changed F by ``change`` and curvature alone by ``curved``.

    It is half of the way to the lowest point of the parabola: three quarters of the fall, and still a fall if the
    curvature is twice as large.

    >>> _fraction(3.0, 1.0)
    -0.5
    """
    if curved <= 0:
        return -1.0
    lowest = 0.5 * (curved - change) / curved
    return min(max(0.5 * lowest, -1.0), 0.5)


def _direction(sample: ComponentSample, diagnosis: Diagnosis) -> Array:
    """Return random signs on the support and on random coordinates, as many as fit, of the natural length in all."""
    context, rng = sample.context, sample.context.rng
    free, here = context.free(), context.theta
    S = np.union1d(np.flatnonzero(here), context.constraint.include)
    off = np.setdiff1d(free, S)
    slots = min(context.k - S.size, off.size)
    C = np.union1d(np.intersect1d(S, free), off[rng.subset(off.size, slots)] if slots > 0 else off[:0])
    direction = np.zeros(context.d)
    if not C.size:
        return direction
    h = diagnosis.length / math.sqrt(C.size)
    signs, box = rng.uniform(C.size), context.box
    if box is None:
        direction[C] = np.where(signs < 0.5, -h, h)
    else:
        up, down = box.high[C] - here[C], here[C] - box.low[C]
        direction[C] = h * signed_steps(signs, up, down, h)
    return direction
