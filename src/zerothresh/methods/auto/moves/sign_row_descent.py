"""Descent where single slopes are lost in random noise: gradients from rows of signs, in which all coordinates move."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.message_passing import SignRows, large_entries
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.grouped_slopes_settings import GROUPED_SLOPES
from zerothresh.methods.auto.settings.grouped_slopes_settings import SIGN_ROWS as SETTINGS
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class SignRowDescent:
    """Hard-thresholded gradient steps from rows of signs, each accepted by repeated values.

    Arguments
    ---------
    context: the run.
    diagnosis: the noise, the curvature and the natural length.
    """

    def __init__(self, context: Context, diagnosis: Diagnosis) -> None:
        self.context, self.diagnosis = context, diagnosis
        self.free = context.free()
        self.theta = context.theta
        self.h = diagnosis.length / math.sqrt(self.free.size)  # the step of a coordinate in a row

    def search(self) -> Generator[Probes, Answers, None]:
        """Find the length of steps, then step and polish until the budget is spent."""
        yield from self.find_length()
        while self.context.left > SETTINGS.round + SETTINGS.compared * SETTINGS.repeats * self.context.n:
            yield from self.step()
            for _ in range(SETTINGS.polishes):
                if not (yield from self.polish()):
                    break

    def _geometry(self) -> tuple[Array, Array]:
        """Return the centre of the rows, as near to the point as the bounds allow, and the step of each coordinate."""
        free, box = self.free, self.context.box
        if box is None:
            return self.theta, np.full(free.size, self.h)
        low, high = box.low[free], box.high[free]
        steps = np.minimum(self.h, 0.5 * (high - low))
        centre = self.theta.copy()
        centre[free] = np.clip(centre[free], low + steps, high - steps)
        return centre, steps

    def _draw(self, count: int) -> SignRows:
        """Draw rows of signs over the free coordinates."""
        rng, d = self.context.rng, self.free.size
        size = SignRows.order(d)
        signs = np.where(rng.uniform(d) < 0.5, -1.0, 1.0)
        return SignRows(rng.subset(size, d), signs, size, 1 + rng.subset(size - 1, min(count, size - 1)))

    def find_length(self) -> Generator[Probes, Answers, None]:
        """Lengthen the rows as long as the odd part of F grows with them and the even part is the same for all.

        The longer a row, the less noise matters; but curvature that differs from row to row is like noise, too.
        """
        context, count = self.context, SETTINGS.trial_directions
        of = np.repeat(context.rng.integers(context.n, 1), 2 * count)
        rows, odd = self._draw(count), None
        noise = self.diagnosis.noise / math.sqrt(2)  # of the mean or half the difference of two values
        for _ in range(SETTINGS.lengthenings + 1):
            centre, steps = self._geometry()
            points = np.repeat(centre[None], 2 * count, axis=0)
            for i in range(count):
                points[i, self.free] += steps * rows.row(i)
                points[count + i, self.free] -= steps * rows.row(i)
            up, down = (yield from context.each(points, of)).reshape(2, count)
            now, even = 0.5 * (up - down), 0.5 * (up + down)
            bent = 0.0 if odd is None else _root_mean_square(now - SETTINGS.longer * odd)
            allowed = SETTINGS.bent * _root_mean_square(now) + GROUPED_SLOPES.significance * SETTINGS.longer * noise
            uneven = float(even.std(ddof=1)) > SETTINGS.uneven * noise
            if odd is not None and (bent > allowed or uneven):
                break
            if context.box is not None and bool((steps < self.h).all()):
                return
            odd = now
            self.h *= SETTINGS.longer
        self.h /= SETTINGS.longer

    def gradient(self, count: int) -> Generator[Probes, Answers, tuple[Array, float]]:
        """Estimate the gradient on the free coordinates from ``count`` values; return it and its error per entry."""
        context = self.context
        centre, steps = self._geometry()
        rows = self._draw(count)
        components = context.rng.integers(context.n, rows.rows.size)
        some = np.unique(components)
        base = np.zeros(context.n)
        if context.n > 1:
            base[some] = (yield from context.values([centre], some))[0]
        values = np.empty(rows.rows.size)
        for first in range(0, rows.rows.size, SETTINGS.round):
            part = np.arange(first, min(first + SETTINGS.round, rows.rows.size))
            points = np.repeat(centre[None], part.size, axis=0)
            for place, row in enumerate(part.tolist()):
                points[place, self.free] += steps * rows.row(row)
            values[part] = yield from context.each(points, components[part])
        values -= base[components]
        values -= values.mean()  # the curvature changes all rows by about the same
        changes, error = large_entries(rows, values, context.k)  # of F over a step: the unit of x does not matter
        scale = steps / self.h
        return changes / self.h * scale / np.maximum(scale * scale, TINY), error / self.h

    def step(self) -> Generator[Probes, Answers, bool]:
        """Estimate the gradient, step along its largest entries, and move if repeated values are lower beyond noise."""
        context = self.context
        most = max(SETTINGS.most * self.free.size, SETTINGS.round)
        count = int(min(SETTINGS.share * context.left, most))
        g, error = yield from self.gradient(max(count, 2))
        seen = np.abs(g) > SETTINGS.deviations * error
        bend = self.diagnosis.curvature
        if bend <= 0:
            bend = float(np.linalg.norm(g)) / self.diagnosis.length
        direction = np.zeros(context.d)
        direction[self.free] = np.where(seen, -g / max(bend, TINY), 0.0)
        trials = [context.H(context.inside(self.theta + t * direction)) for t in SETTINGS.fractions]
        return (yield from self._accept(trials))

    def polish(self) -> Generator[Probes, Answers, bool]:
        """Minimise along each coordinate of the support by a parabola through three values, all at once."""
        context, theta = self.context, self.theta
        S = np.intersect1d(np.flatnonzero(theta), self.free)
        repeats = SETTINGS.repeats
        if not S.size or (2 * S.size + SETTINGS.compared) * repeats * context.n > SETTINGS.polish_share * context.left:
            return False
        delta = SETTINGS.polish_step * float(np.sqrt(np.mean(theta[S] ** 2)))
        ups, downs = np.repeat(theta[None], S.size, axis=0), np.repeat(theta[None], S.size, axis=0)
        ups[np.arange(S.size), S] += delta
        downs[np.arange(S.size), S] -= delta
        points = [context.inside(point) for point in (*ups, *downs)]
        means = yield from self._means([theta, *points], repeats)
        up, down = means[1 : 1 + S.size] - means[0], means[1 + S.size :] - means[0]
        to_up = np.array([point[j] - theta[j] for point, j in zip(points[: S.size], S, strict=True)])
        to_down = np.array([theta[j] - point[j] for point, j in zip(points[S.size :], S, strict=True)])
        room = to_up + to_down
        two_sided = (to_up > 0) & (to_down > 0)
        with np.errstate(all="ignore"):
            bend = 2 * (up / to_up + down / to_down) / room
            slope = (up / to_up * to_down - down / to_down * to_up) / room
            step = np.where(two_sided & (bend > 0), -slope / bend, 0.0)
        direction = np.zeros(context.d)
        direction[S] = np.clip(step, -SETTINGS.polish_reach * delta, SETTINGS.polish_reach * delta)
        return (yield from self._accept([context.H(context.inside(theta + t * direction)) for t in (1.0, 0.5)]))

    def _accept(self, trials: list[Array]) -> Generator[Probes, Answers, bool]:
        """Move to the best of some points if it is lower beyond noise, with more repeats while that is in doubt."""
        context, repeats = self.context, SETTINGS.repeats
        if (len(trials) + 2) * repeats * context.n > context.left:
            return False
        means = yield from self._means([self.theta, *trials], repeats)
        if context.fun is None and self.theta is context.theta:
            context.move(self.theta, float(means[0]))  # or the lowest random value seen would be the result
        best = int(np.argmin(means[1:]))
        here, there, seen = 0.0, 0.0, 0  # the lowest of several is biased, so both points are asked again
        while True:
            pair = yield from self._means([self.theta, trials[best]], repeats)
            here, there, seen = here + repeats * float(pair[0]), there + repeats * float(pair[1]), seen + repeats
            error = self.diagnosis.noise * math.sqrt(2 / (seen * context.n))
            fall = (here - there) / seen
            if fall > GROUPED_SLOPES.significance * error:
                self.theta = trials[best]
                context.move(self.theta, there / seen)
                return True
            repeats = seen
            if fall < error or seen >= SETTINGS.most_repeats or 2 * repeats * context.n > context.left:
                return False

    def _means(self, points: list[Array], repeats: int) -> Generator[Probes, Answers, Array]:
        """Return F at points as means of repeated values."""
        of: Indices = np.tile(self.context.everything, repeats)
        return np.asarray((yield from self.context.values(points, of)).mean(axis=1))


def _root_mean_square(v: Array) -> float:
    return float(np.linalg.norm(v)) / math.sqrt(v.size)
