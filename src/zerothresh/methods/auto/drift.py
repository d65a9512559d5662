"""Where noise hides every single step: steps that are not judged lead to a support, a surface to the bottom on it."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.surface import Surface
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

JUDGES = 48  # calls that F is the mean of when two points are compared
STEPS = 12  # steps of the first stage
MOST = 30  # coordinates of a support that a surface is made for


class Drift:
    """theta, what F is there about, and the lengths that work."""

    def __init__(self, context: Context, seen: Diagnosis) -> None:
        self.context, self.seen, self.C = context, seen, context.free()
        self.theta = context.theta
        self.mu = self.eta = self.first = 0.0
        self.surfaces: dict[bytes, Surface] = {}

    def _slopes(self, theta: Array, of: Indices, mu: float) -> Generator[Probes, Answers, Array]:
        """The mean gradient of some components, by central differences."""
        base = np.zeros(of.size)  # it cancels, unless there are bounds
        if self.context.box is not None:
            base = (yield from self.context.values([theta], of))[0]
        slopes, _ = yield from self.context.slopes(theta, self.C, mu, of, base, central=True)
        g = np.zeros(self.context.d)
        g[self.C] = slopes.mean(axis=0)
        return g

    def _judge(self, points: list[Array], calls: int) -> Generator[Probes, Answers, Array]:
        """F at points, each the mean of about this many calls."""
        context = self.context
        turns = max(1, math.ceil(calls / context.n))
        values = yield from context.values(points * turns)
        return np.asarray(values.mean(axis=1).reshape(turns, len(points)).mean(axis=0))

    def search(self) -> Generator[Probes, Answers, str]:
        """Find lengths that work, then go in stages; returns why it ended, in words."""
        context = self.context
        if not (yield from self._calibrate()):
            return "no length of a step shows through the noise"
        steps, failed = STEPS, 0
        while failed < 12:
            fresh = failed % 3 == 2  # from the start again, to another support perhaps
            theta, eta = (context.theta0, self.first) if fresh else (self.theta, self.eta)
            mean = np.zeros(context.d)
            many = 3 * STEPS if fresh else steps
            for t in range(many):
                of = context.rng.subset(context.n, min(context.n, 4))
                g = yield from self._slopes(theta, of, self.mu)
                theta = context.H(theta - eta * g)
                if 2 * t >= many:  # once it is near
                    mean += (theta - mean) / (t + 1 - (many + 1) // 2)
            points = [self.theta, context.H(mean), theta]
            points.append((yield from self._settle(points[1])))
            found = yield from self._judge(points, JUDGES * 2 ** min(failed, 5))
            best = int(np.argmin(found))
            failed = failed + 1 if best == 0 else max(0, failed - 1)
            if best == 0 and not fresh:
                self.eta /= 2.0
                size = 0.5 * float(np.abs(self.theta).max())
                self.mu = max(self.mu / 1.7, min(self.mu, size))  # long differences may mislead, short ones are noise
                steps = math.ceil(1.2 * steps)
            self.theta = points[best]
            context.move(self.theta, float(found[best]))
        return "no stage leads further down"

    def _settle(self, theta: Array) -> Generator[Probes, Answers, Array]:
        """The bottom of a surface through many values, on the support; one that is known is made surer."""
        context, S = self.context, np.flatnonzero(theta)
        if not 0 < S.size <= MOST or context.left < 20 * context.n:
            return theta
        name = S.tobytes()
        if name not in self.surfaces:
            some = yield from context.values([theta] * 8)
            noise = float(some.mean(axis=1).std(ddof=1))
            self.surfaces[name] = Surface(context, theta, np.eye(S.size) / self.first, self.mu, max(noise, 1e-300))
        theta = yield from self.surfaces[name].search(0.4 * context.used, context.everything)
        return theta

    def _calibrate(self) -> Generator[Probes, Answers, bool]:
        """Try gradients over steps of several lengths, and moves of the same lengths: what lowers F most is taken."""
        context = self.context
        of = context.rng.subset(context.n, min(context.n, 8))
        trials, settings = [self.theta], [(0.0, 0.0)]
        for share in (1.0, 0.3, 0.1, 0.03, 0.01, 0.003):
            length = share * self.seen.length
            g = yield from self._slopes(self.theta, of, length)
            size = float(np.linalg.norm(context.constraint.project(g) if context.box is None else g))
            if size > 0:
                for times in (0.5, 2.0):
                    trials.append(context.H(self.theta - (times * length / size) * g))
                    settings.append((length, times * length / size))
        found = yield from self._judge(trials, JUDGES // 4)
        few = np.unique(np.append(np.argsort(found, kind="stable")[:4], 0))
        found = yield from self._judge([trials[a] for a in few.tolist()], JUDGES)
        best = int(few[np.argmin(found)])
        self.theta, (self.mu, eta) = trials[best], settings[best]
        self.eta = self.first = 0.6 * eta
        context.move(self.theta, float(found.min()))
        return best > 0
