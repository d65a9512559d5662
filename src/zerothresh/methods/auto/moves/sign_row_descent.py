"""Descent where single slopes are lost in random noise: gradients from rows of signs, in which all coordinates move."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.message_passing import SignRows, large_entries
from zerothresh.methods.auto.settings import GROUPED_SLOPES, TINY
from zerothresh.methods.auto.settings import SIGN_ROWS as SETTINGS
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
        """Lengthen the rows while the odd part of F grows with them, so that the noise matters least."""
        context, box = self.context, self.context.box
        component = context.rng.subset(context.n, min(context.n, SETTINGS.trial_directions))
        component = np.resize(component, SETTINGS.trial_directions)
        rows, odd = self._draw(SETTINGS.trial_directions), None
        noise = self.diagnosis.noise / math.sqrt(2)
        for _ in range(SETTINGS.lengthenings + 1):
            centre, steps = self._geometry()
            points = np.repeat(centre[None], 2 * component.size, axis=0)
            for i in range(component.size):
                points[i, self.free] += steps * rows.row(i)
                points[-1 - i, self.free] -= steps * rows.row(i)
            values = yield from context.each(points, np.concatenate([component, component[::-1]]))
            now = 0.5 * (values[: component.size] - values[component.size :][::-1])
            if odd is not None:
                missing = float(np.linalg.norm(now - SETTINGS.longer * odd)) / math.sqrt(now.size)
                size = float(np.linalg.norm(now)) / math.sqrt(now.size)
                if missing > SETTINGS.bent * size + GROUPED_SLOPES.significance * SETTINGS.longer * noise:
                    self.h /= SETTINGS.longer
                    return
            odd = now
            if box is not None and bool((steps < self.h).all()):
                return
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
        estimate, error = large_entries(rows, values / self.h, context.k)
        scale = steps / self.h
        return estimate * scale / np.maximum(scale * scale, TINY), error

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
        repeats = max(SETTINGS.least_repeats, int(SETTINGS.test_share * context.left / max(context.n, 1)))
        if repeats * (len(trials) + 2) * context.n > context.left:
            repeats = int(context.left / ((len(trials) + 2) * context.n))
        if repeats < 1:
            return False
        means = yield from self._means([self.theta, *trials], repeats)
        best = int(np.argmin(means[1:]))
        again = yield from self._means([trials[best]], repeats)  # the lowest of several is biased
        error = self.diagnosis.noise * math.sqrt(2 / (repeats * context.n))
        if float(again[0]) - float(means[0]) < -GROUPED_SLOPES.significance * error:
            self.theta = trials[best]
            context.move(self.theta, float(again[0]))
            return True
        return False

    def _means(self, points: list[Array], repeats: int) -> Generator[Probes, Answers, Array]:
        """Return F at points as means of repeated values."""
        of: Indices = np.tile(self.context.everything, repeats)
        return np.asarray((yield from self.context.values(points, of)).mean(axis=1))
