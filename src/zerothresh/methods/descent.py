"""Descent for black boxes of which nothing is known: differences along coordinates, and a quasi-Newton model.

A gradient over all coordinates costs n d calls and is asked for seldom: it picks the support. On the
support a gradient costs n k, and quasi-Newton steps go down there. Where there are many components,
it begins with a few of them and takes more as it gets better. At the bottom, coordinates are exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.estimate import Answers
from zerothresh.methods.base import Array
from zerothresh.methods.look import Look
from zerothresh.methods.program import Asks, Room
from zerothresh.methods.quasi import Quasi
from zerothresh.plan import Indices, Probes


class Descent:
    """Where the search is: theta, f_i there for the first components, the model."""

    def __init__(self, room: Room, seen: Look, *, exchanges: int = 6) -> None:
        self.room, self.seen, self.exchanges = room, seen, exchanges
        self.order = room.rng.subset(room.n, room.n)
        self.C = room.free()
        self.theta = room.theta
        self.values = np.empty(0)  # of the first components in order
        self.quasi = Quasi(room.d)
        self.g = np.empty(0)  # the last gradient on all of C, and where it was
        self.at = self.theta
        self.gained = 0.0  # how much F has fallen so far, about
        self.tried = set[bytes]()  # supports that exchanges have tried
        self.rows = np.empty((0, 0))  # the gradients of the components
        self.local: Quasi | None = None  # the model that they make
        self.lost = self.pause = 0  # how often in turn it was the worse one, and the rounds until it is tried again

    # What is asked for.

    @property
    def m(self) -> int:
        """Components in use."""
        return int(self.values.size)

    @property
    def of(self) -> Indices:
        """Their numbers."""
        return self.order[: self.m]

    @property
    def F(self) -> float:
        """The mean of their values at theta."""
        return float(self.values.mean())

    @property
    def slack(self) -> float:
        """How much two means differ by noise."""
        return 2 * self.seen.noise / math.sqrt(self.m)

    def use(self, m: int) -> Asks:
        """Use the first m components."""
        if m == self.m:
            return
        self.lost = self.pause = 0
        more = (yield from self.room.values([self.theta], self.order[self.m : m]))[0]
        self.values = np.concatenate([self.values, more])
        if self.m == self.room.n:
            self.room.move(self.theta, self.F)

    def gradient(self, C: Indices) -> Generator[Probes, Answers, Array]:
        """The gradient on C at theta, by differences."""
        room, mu = self.room, self._mu()
        steps = yield from room.along(self.theta, C, mu, self.of)
        slopes = steps.slopes(self.values)
        if self.seen.central and room.box is None:
            other = yield from room.along(self.theta, C, -mu, self.of)
            slopes = 0.5 * (slopes + other.slopes(self.values))
        self.rows = slopes
        return np.asarray(slopes.mean(axis=0))

    def _bends(self) -> Asks:
        """A model from the components: the curvature of each along its own gradient, by one more value (Gauss-Newton).

        f_i(theta + s) is about f_i + g_i.s + kappa_i (g_i.s)^2 / 2: exact if f_i is a function of one score
        that is quadratic, and good where a component has few scores, as the residual of a model has.
        """
        room, C, G = self.room, self.C, self.rows
        norms = np.maximum(np.linalg.norm(G, axis=1), 1e-300)
        move = np.zeros((self.m, room.d))
        move[:, C] = G / norms[:, None] * -max(self.seen.bend(room.d), self._mu())
        points = room.inside(self.theta + move)
        values = yield from room.each(points, self.of)
        z = np.einsum("rc,rc->r", (points - self.theta)[:, C], G)
        kappa = 2 * (values - self.values - z) / np.maximum(z * z, 1e-300)
        kappa = np.where(np.isfinite(kappa) & (kappa > 0), kappa, 0.0)
        A = (G * kappa[:, None]).T @ G / self.m
        share = float(np.trace(A)) / C.size
        if share > 0:
            self.local = Quasi(room.d)
            self.local.rescale(share)
            self.local.B[np.ix_(C, C)] = A + 1e-3 * share * np.eye(C.size)

    def _mu(self) -> float:
        """The step of a difference: beside a large theta it must not be lost in rounding."""
        return max(self.seen.mu, 1e-8 * float(np.abs(self.theta).max()))

    def price(self, size: int) -> int:
        """What a gradient on ``size`` coordinates costs."""
        return self.m * size * (2 if self.seen.central and self.room.box is None else 1)

    def value(self, theta: Array) -> Generator[Probes, Answers, Array]:
        """The values at another point."""
        return (yield from self.room.values([theta], self.of))[0]

    def take(self, theta: Array, values: Array) -> None:
        """Go there."""
        self.gained += self.F - float(values.mean())
        self.theta, self.values = theta, values
        if self.m == self.room.n or self.room.theta is self.room.theta0:
            self.room.move(theta, self.F if self.m == self.room.n else None)

    # The search.

    def search(self) -> Generator[Probes, Answers, str]:
        """Go down to a point that no exchange of one coordinate betters; returns why it ended, in words."""
        room = self.room
        m = self._first()
        while True:
            yield from self.use(max(m, self.m))
            words = yield from self.level()
            if self.m == room.n or room.left < self.m:
                return words
            m = min(room.n, 3 * self.m)

    def _first(self) -> int:
        """How many components to begin with: a few if there are many, fewer if the budget is small."""
        room = self.room
        afford = room.left / (4 * (self.C.size + 2))
        few = room.n if room.n <= 12 else max(4, math.ceil(room.n / 9))
        return int(max(1, min(few, afford)))

    def level(self) -> Generator[Probes, Answers, str]:
        """Go down with the components in use."""
        room, C = self.room, self.C
        last = self.m == room.n
        while True:
            if room.left < self.price(C.size) + self.m:
                return "the budget is spent"
            g = yield from self.gradient(C)
            if self.g.size and self.at is not self.theta:
                self.quasi.learn(self.theta - self.at, g - self.g, C, self._blur())
            self.g, self.at = g, self.theta
            before = self.F
            self.local = None
            if self.m > 2 and self.m >= room.k and room.left > 3 * self.m:
                self.pause -= 1
                if self.pause < 0:
                    yield from self._bends()
            yield from self._pick(g)
            if self.theta is not self.at:
                yield from self._polish(30 if last else 8)
            gain = before - self.F
            if gain > self._least(last):
                continue
            if not last:
                return "more components are needed"
            if self.local is None and self.lost and self.m >= room.k and self.pause >= 0:
                self.pause = 0  # it may be right here
                continue
            if self.theta is not self.at:
                g = yield from self.gradient(C)
                self.quasi.learn(self.theta - self.at, g - self.g, C, self._blur())
                self.g, self.at = g, self.theta
            better = yield from self._exchange(g)
            if not better:
                return "no exchange of a coordinate helps"

    def _least(self, last: bool) -> float:
        """A gain that is not worth another round."""
        return (1e-8 if last else 3e-2) * max(self.gained, 0.0) + self.slack

    def _blur(self) -> float:
        """The noise of a slope."""
        return 2 * self.seen.noise / (self._mu() * math.sqrt(max(self.m, 1)))

    def _pick(self, g: Array) -> Asks:
        """A step that may change the support: to the minimiser of a model, damped until F falls."""
        room, quasi = self.room, self.quasi
        if not quasi.scaled:
            yield from self._scale(g)
        if self.local is not None:
            trial = self._goal(self.local, g, 0.0)
            if trial is not None and room.left >= 2 * self.m:
                values = yield from self.value(trial)
                other = self._goal(quasi, g, 0.0)
                if other is not None and not np.array_equal(other, trial):
                    others = yield from self.value(other)
                    if float(others.mean()) < float(values.mean()):
                        self.lost += 1
                        self.pause = self.lost - 1
                        trial, values = other, others
                    else:
                        self.lost, self.quasi = 0, self.local
                if float(values.mean()) < self.F:
                    self.take(trial, values)
                    return
        damp = 0.0
        for _ in range(7):
            trial = self._goal(self.quasi, g, damp)
            if trial is None or room.left < self.m:
                return
            values = yield from self.value(trial)
            fall = self.F - float(values.mean())
            if fall > 0:
                self.take(trial, values)
                return
            move = (trial - self.theta)[self.C]
            bent = 2 * (-float(g @ move) - fall) / max(float(move @ move), 1e-300)  # curvature along the step
            now = float(np.trace(self.quasi.B)) / room.d
            damp = min(max(4 * damp, 0.5 * (bent / now - 1), 0.1), max(100 * damp, 10.0))

    def _goal(self, model: Quasi, g: Array, damp: float) -> Array | None:
        """The sparse minimiser of a model; None if it promises nothing."""
        room = self.room
        trial = room.H(model.sparse(self.theta, g, self.C, room.k, room.constraint, damp))
        promised = -float(g @ (trial - self.theta)[self.C])
        return trial if promised > 0 and not np.array_equal(trial, self.theta) else None

    def _scale(self, g: Array) -> Asks:
        """The curvature along the thresholded gradient, by one more value of each component."""
        room, C = self.room, self.C
        whole = np.zeros(room.d)
        whole[C] = g
        step = room.constraint.project(self.theta - whole) - self.theta if self.theta.any() else -room.H(whole)
        S = np.flatnonzero(room.constraint.project(whole)) if not step.any() else np.flatnonzero(step)
        along = np.zeros(room.d)
        along[S] = -whole[S]
        size = float(np.linalg.norm(along))
        if size == 0 or room.left < self.m:
            self.quasi.scaled = True
            return
        h = max(0.1 * self.seen.length, self._mu()) / size
        point = room.inside(self.theta + h * along)
        values = yield from self.value(point)
        if self.room.constraint.holds(point) and float(values.mean()) < self.F:
            pass  # kept for the model alone: the next step is longer
        moved = point - self.theta
        length = float(moved @ moved)
        bent = 2 * (float(values.mean()) - self.F - float(whole @ moved)) / max(length, 1e-300)
        least = 1e-3 * size / max(self.seen.length, 1e-300)
        self.quasi.rescale(max(bent, least, 1e-300))

    def _polish(self, rounds: int) -> Asks:
        """Quasi-Newton steps on the support."""
        room, quasi = self.room, self.quasi
        S = np.flatnonzero(self.theta)
        old: tuple[Array, Array] | None = None
        for _ in range(rounds):
            if S.size == 0 or room.left < self.price(S.size) + 2 * self.m:
                return
            g = yield from self.gradient(S)
            if old is not None:
                quasi.learn(self.theta - old[0], g - old[1], S, self._blur())
            old = self.theta, g
            step = quasi.step(g, S)
            slope = float(g @ step)
            if not slope < 0:
                return
            before, length, fell = self.F, 1.0, False
            for _ in range(5):
                trial = self.theta.copy()
                trial[S] += length * step
                trial = room.H(trial)
                if room.left < self.m:
                    return
                values = yield from self.value(trial)
                rise = float(values.mean()) - before
                if rise < 1e-4 * length * slope:
                    fell = True
                    break
                curved = 2 * (rise - length * slope)
                length *= min(max(-length * slope / curved if curved > 0 else 0.25, 0.05), 0.5)
            if not fell:
                return
            self.take(trial, values)
            if before - self.F <= self._least(self.m == room.n) and before - self.F <= -0.1 * slope:
                return
            if before - self.F <= 0.1 * self._least(self.m == room.n):
                return

    def _exchange(self, g: Array) -> Generator[Probes, Answers, bool]:
        """Try the exchanges of one coordinate that the model likes best, on real values."""
        room, C, quasi = self.room, self.C, self.quasi
        left = self.exchanges
        for _, point in quasi.exchanges(self.theta, g, C, 4 * self.exchanges):
            name = np.flatnonzero(point).tobytes()
            if name in self.tried or left == 0:
                continue
            self.tried.add(name)
            left -= 1
            trial = room.H(point)
            if room.left < self.m * (2 * room.k + 4):
                return False
            values = yield from self.value(trial)
            here, there, before = (self.theta, self.values), (trial, values), self.F
            self.theta, self.values = there
            gained = self.gained
            yield from self._refine(before)
            if self.F < before - self._least(True):
                room.move(self.theta, self.F if self.m == room.n else None)
                return True
            self.gained = gained
            self.theta, self.values = here
            room.move(self.theta, self.F if self.m == room.n else None)
        return False

    def _refine(self, bar: float) -> Asks:
        """Quasi-Newton steps on a support that is on trial, as long as they may still lead below the bar."""
        room, quasi = self.room, self.quasi
        S = np.flatnonzero(self.theta)
        old: tuple[Array, Array] | None = None
        for _ in range(4):
            if S.size == 0 or room.left < self.price(S.size) + 2 * self.m:
                return
            g = yield from self.gradient(S)
            if old is not None:
                quasi.learn(self.theta - old[0], g - old[1], S, self._blur())
            old = self.theta, g
            step = quasi.step(g, S)
            promised = -0.5 * float(g @ step)
            if self.F - 3 * promised > bar or promised <= self._least(True):
                return
            trial = self.theta.copy()
            trial[S] += step
            trial = self.room.constraint.project(trial)
            values = yield from self.value(trial)
            if not float(values.mean()) < self.F:
                return
            self.theta, self.values = trial, values
