"""Descent for black boxes of which nothing is known: differences along coordinates, and a quasi-Newton model.

A gradient over all coordinates costs n d calls and is asked for seldom: it picks the support. On the
support a gradient costs n k, and quasi-Newton steps go down there. Where there are many components,
it begins with a few of them and takes more as it gets better. At the bottom, coordinates are exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.niht import better
from zerothresh.methods.auto.quasi_newton import QuasiNewton
from zerothresh.methods.auto.rough import evolve, swap
from zerothresh.methods.auto.surface import Surface
from zerothresh.methods.program.context import Asks, Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

if TYPE_CHECKING:
    from zerothresh.methods.auto.index import Model


MOST = 1500  # coordinates that a model has at the most


class Descent:
    """Where the search is: theta, f_i there for the first components, the model."""

    def __init__(self, context: Context, seen: Diagnosis, *, exchanges: int = 6, known: Model | None = None) -> None:
        self.context, self.seen, self.exchanges = context, seen, exchanges
        self.order = context.rng.subset(context.n, context.n) if known is None else known.order
        self.given = np.empty((0, 0)) if known is None else known.first  # gradients at the start, of the first
        self.spent = False  # whether the budget was what ended the search
        self.repeats = 1  # calls that a value is the mean of
        self.width = 1.0  # how much longer difference steps are than the first look said; 1 unless values are random
        self.clear = np.inf  # how far the last gradient stands out of the noise
        self.narrowed = 0  # how often in turn steps were shortened
        self.coarse = (
            1.0 if seen.kink else 0.3 if seen.rough else 0.0
        )  # a long difference step, as a share of theta; 0: a short one
        self.C = context.free()
        self.theta = context.theta
        self.values = self.start = np.empty(0)  # f_i at theta, and at the start, of the first components in order
        self.quasi = QuasiNewton(self.C[:0])
        self.g = np.empty(0)  # the last gradient on all of C, and where it was
        self.at = self.theta
        self.gained = 0.0  # how much F has fallen so far, about
        self.tried = set[bytes]()  # supports that exchanges have tried
        self.rows = np.empty((0, 0))  # the gradients of the components
        self.local: QuasiNewton | None = None  # the model that they make
        self.settled: Array | None = None  # the point where only an exchange may help
        self.kinked = False  # whether a step that promised much led nowhere
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
    def left(self) -> float:
        """Calls that are left, without those that have to tell what more components say to all this."""
        return self.context.left - 2 * (self._next - self.m)

    @property
    def _next(self) -> int:
        """Components of the level after this one."""
        return min(3 * self.m if 4 * self.m < self.context.n else self.context.n, self.context.n)

    @property
    def F(self) -> float:
        """The mean of their values at theta."""
        return float(self.values.mean())

    @property
    def slack(self) -> float:
        """How much two means differ by noise."""
        return 2 * self.seen.noise / math.sqrt(self.m * self.repeats)

    def use(self, m: int) -> Asks:
        """Use the first m components."""
        if m == self.m:
            return
        self.lost = self.pause = 0
        self._forget()
        context, more = self.context, self.order[self.m : m]
        start = context.theta0
        if self.theta is start:
            values = yield from context.starts(more)
            self.start = self.values = np.concatenate([self.values, values])
        else:  # are the new ones better here than at the start?
            here = (yield from context.values([self.theta], more))[0]
            there = yield from context.starts(more)
            self.start, self.values = np.concatenate([self.start, there]), np.concatenate([self.values, here])
            if float(here.mean()) >= float(there.mean()) and float(self.start.mean()) <= self.F:
                self.theta, self.values = start, self.start  # no: it was a fit to a few
            if self.m == context.n and (context.fun is None or context.fun > self.F or self.seen.random):
                context.move(self.theta, self.F)
            elif context.fun is None and better(here, there, context.n):
                context.move(self.theta)

    def gradient(self, C: Indices) -> Generator[Probes, Answers, Array]:
        """The gradient on C at theta, by differences."""
        given = self.given
        if self.theta is self.context.theta0 and given.shape[1:] == C.shape and 0 < len(given) <= self.m:
            self.given = given[:0]  # gradients that are known are not asked for again
            rest = slice(len(given), self.m)
            if len(given) < self.m:
                more = yield from self._slopes(C, self.of[rest], self.values[rest])
                given = np.concatenate([given, more])
            self.rows = given
        else:
            total = yield from self._slopes(C, self.of, self.values)
            for _ in range(self.repeats - 1):
                total = total + (yield from self._slopes(C, self.of, self.values))
            self.rows = total / self.repeats
        return np.asarray(self.rows.mean(axis=0))

    def _slopes(self, C: Indices, of: Indices, base: Array) -> Generator[Probes, Answers, Array]:
        slopes, _ = yield from self.context.slopes(self.theta, C, self._mu(), of, base, central=self._central)
        return slopes

    @property
    def _central(self) -> bool:
        return self.coarse > 0 or self.seen.central

    def _bends(self) -> Asks:
        """A model from the components: the curvature of each along its own gradient, by one more value (Gauss-Newton).

        f_i(theta + s) is about f_i + g_i.s + kappa_i (g_i.s)^2 / 2: exact if f_i is a function of one score
        that is quadratic, and good where a component has few scores, as the residual of a model has.
        """
        context, C, G = self.context, self.C, self.rows
        norms = np.maximum(np.linalg.norm(G, axis=1), 1e-300)
        move = np.zeros((self.m, context.d))
        move[:, C] = G / norms[:, None] * -max(self.seen.bend(context.d), self._mu())
        points = context.inside(self.theta + move)
        values = yield from context.each(points, self.of)
        z = np.einsum("rc,rc->r", (points - self.theta)[:, C], G)
        kappa = 2 * (values - self.values - z) / np.maximum(z * z, 1e-300)
        kappa = np.where(np.isfinite(kappa) & (kappa > 0), kappa, 0.0)
        A = (G * kappa[:, None]).T @ G / self.m
        share = float(np.trace(A)) / C.size
        if share > 0:
            B = np.eye(self.quasi.places.size) * share
            at = np.searchsorted(self.quasi.places, C)
            B[np.ix_(at, at)] = A + 1e-3 * share * np.eye(C.size)
            self.local = QuasiNewton(self.quasi.places, B)

    def _mu(self) -> float:
        """The step of a difference: beside a large theta it must not be lost in rounding."""
        size = float(np.abs(self.theta).max())
        if self.coarse:
            return self.coarse * (size or self.seen.length)
        return max(self.width * self.seen.mu, 1e-8 * size)

    def price(self, size: int) -> int:
        """What a gradient on ``size`` coordinates costs."""
        return self.repeats * self.m * size * (2 if self._central and self.context.box is None else 1)

    def value(self, theta: Array) -> Generator[Probes, Answers, Array]:
        """The values at another point."""
        values = yield from self.context.values([theta] * self.repeats, self.of)
        return np.asarray(values.mean(axis=0))

    def take(self, theta: Array, values: Array) -> None:
        """Go there."""
        self.gained += self.F - float(values.mean())
        self.theta, self.values = theta, values
        best = self.context.fun
        if self.m == self.context.n and (best is None or self.seen.random or best > self.F):
            self.context.move(theta, self.F)

    # The search.

    def search(self) -> Generator[Probes, Answers, str]:
        """Go down to a point that no exchange of one coordinate betters; returns why it ended, in words."""
        context = self.context
        m = self._first()
        while True:
            yield from self.use(max(m, self.m))
            words = yield from self.level()
            if self.m == context.n or context.left < self.m:
                return words
            m = self._next

    def kick(self, tries: int) -> Generator[Probes, Answers, str]:
        """Where nothing leads down from the start: begin at the best of some random sparse points."""
        context, best = self.context, (self.theta, self.values)
        S_size = min(context.k, self.C.size)
        for turn in range(tries):
            if self.left < 3 * self.price(self.C.size) + 12 * self.m:
                break
            points = []
            for _ in range(8):
                point = np.zeros(context.d)
                S = self.C[context.rng.subset(self.C.size, S_size)]
                point[S] = context.rng.normal(S_size) * self.seen.length * 3.0 ** (turn % 5 - 1)
                points.append(context.constraint.project(context.inside(self.theta + point)))
            values = yield from context.values(points, self.of)
            lowest = int(np.argmin(values.mean(axis=1)))
            self.theta, self.values = points[lowest], values[lowest]
            self._forget()
            yield from self.level()
            if float(best[1].mean()) - self.slack > self.F:
                context.move(self.theta, self.F if self.m == context.n else None)
                return "a random start led further down"
            self.theta, self.values = best
            self._forget()
        return "no random start led further down"

    def restarts(self, share: float) -> Generator[Probes, Answers, str]:
        """Begin again from a part of the best support, without what was dropped at first.

        It ends when ``share`` times the calls that led to the best point have found nothing better.
        """
        context, failed, count = self.context, 0, 0
        whole, until = self.C, (1 + share) * self.context.used
        while context.used < until and self.m == context.n:
            S = np.flatnonzero(self.theta)
            self.spent = self.left < 3 * self.price(whole.size)
            if S.size < 2 or whole.size <= context.k or self.spent:
                break
            count += 1
            if self.seen.rough and count % 4:  # the support may be right, and the bottom elsewhere on it
                yield from swap(self, count)
                yield from evolve(self, 3.0 ** -(count % 4))
                context.move(self.theta, self.F)
                continue
            best = self.theta, self.values, self.gained
            kept = np.isin(S, context.constraint.include)
            dropped = S[(context.rng.uniform(S.size) < 0.5) & ~kept]
            dropped = dropped if dropped.size else S[~kept][:1]
            start = self.theta.copy()
            start[dropped] = 0.0
            start = context.constraint.project(start)
            self.values = yield from self.value(start)
            self.theta, self.C = start, np.setdiff1d(whole, dropped)
            for C in (self.C, whole):
                self.C = C
                self.coarse = _long(self.seen) or self.coarse
                self._forget()
                self.settled = None
                yield from self.level()
            if float(best[1].mean()) - self._least(True) > self.F:
                failed, until = 0, (1 + share) * context.used
            else:
                failed += 1
                self.theta, self.values, self.gained = best
            context.move(self.theta, self.F)
            self._forget()
        return f"{count} restarts, of which the last {failed} found nothing better" if count else "no restart"

    def _first(self) -> int:
        """How many components to begin with: a few if there are many, fewer if the budget is small."""
        context = self.context
        afford = context.left / (8 * (self.C.size + 2))
        few = min(context.n, max(3, math.ceil(context.n / 9)))
        if self.theta is not context.theta0:  # a good point is known, and not to be left for what a few say
            few = context.n
        return int(max(1, min(few, context.n, afford)))

    def insist(self) -> Asks:
        """The budget is spent: ask for what would be next, so that a run whose budget is raised goes on."""
        while self.spent:
            self._forget()
            yield from self.level(force=True)

    def level(self, *, force: bool = False) -> Generator[Probes, Answers, str]:
        """Go down with the components in use; with ``force``, whatever the budget."""
        context, C = self.context, self.C
        fresh = self.theta is not context.theta0 and self.theta is not self.settled and not self.g.size
        if fresh and self.quasi.scaled and not self.coarse:
            yield from self._polish(3)  # more components: what do they say on this support?
        while True:
            self.spent = self.left < self.price(C.size) + self.m * self.repeats and not force
            if self.spent:
                return "the budget is spent"
            force = False
            g = yield from self._look_around()
            C = self.C
            if self.theta is not self.settled:
                words = yield from self._down(g)
                if words:
                    return words
                if self.theta is not self.settled:
                    continue
            self.spent = self.left < self.price(C.size) + self.m * self.repeats
            if self.spent:
                return "the budget is spent"
            g = yield from self._look_around()
            better = yield from self._exchange(g)
            if not better and not (yield from self._surer()):
                return "no exchange of a coordinate helps"

    def _down(self, g: Array) -> Generator[Probes, Answers, str]:
        """A step that may change the support, and some on it; returns why there is to be no other one, in words."""
        context, C = self.context, self.C
        last, before = self.m == context.n, self.F
        self.local = None
        if self.m > 2 and self.m >= context.k and self.left > 3 * self.m and not self.coarse:
            self.pause -= 1
            if self.pause < 0:
                yield from self._bends()
        yield from self._pick(g)
        if self.theta is not self.at:
            yield from self._polish(30 if last else 8)
        if not last and (self.theta is not self.at or before - self.F <= self._least(last)):
            return "more components are needed"
        if before - self.F > self._least(last):
            self.narrowed = 0
            return ""
        if self.local is None and self.lost and self.m >= context.k and self.pause >= 0 and not self.coarse:
            self.pause = 0  # it may be right here
            return ""
        if self.coarse and self.left < 3 * self.price(C.size):  # values are cheap beside another gradient
            yield from evolve(self)
            while (yield from self._exchange(g)):
                yield from evolve(self)
        if (yield from self._finer()):
            return ""
        if self.coarse:
            yield from evolve(self)
        if self.seen.random:
            yield from self._settle()
        self.settled = self.theta
        return ""

    def _look_around(self) -> Generator[Probes, Answers, Array]:
        """The gradient on all coordinates, unless it is known here."""
        if not self.g.size or self.at is not self.theta:
            if self.seen.random:
                yield from self._listen()
            g = yield from self.gradient(self.C)
            while self.seen.random:  # longer steps, if noise is all that shows
                self.clear = float(np.linalg.norm(g)) / (self._blur() * math.sqrt(self.C.size))
                if self.clear > 3 or self.width > 1e3 or self.left < 4 * self.price(self.C.size):
                    break
                self.width *= 4
                g = yield from self.gradient(self.C)
            if not self.quasi.places.size:
                g = self._screen(g)
            if self.g.size:
                self.quasi.learn(self.theta - self.at, g - self.g, self.C, self._blur())
            self.g, self.at = g, self.theta
        return self.g

    def _screen(self, g: Array) -> Array:
        """The model is a matrix: where there are very many coordinates, only the steepest ones are modelled."""
        context, C = self.context, self.C
        held = np.isin(C, context.constraint.include) | (self.theta[C] != 0) | (context.theta0[C] != 0)
        if C.size > MOST:
            keep = np.sort(np.argsort(-np.where(held, np.inf, np.abs(g)), kind="stable")[:MOST])
            context.remark(f"htp: of {C.size} coordinates the {MOST} steepest are looked at")
            self.C, self.rows, g = C[keep], self.rows[:, keep], g[keep]
        self.quasi = QuasiNewton(self.C)
        return g

    def _listen(self) -> Asks:
        """The noise at theta: it may be another one than at the start."""
        four = yield from self.context.values([self.theta] * 4, self.of)
        noise = float(np.sqrt(four.var(axis=0, ddof=1).mean()))
        if noise > 0:
            self.seen = replace(self.seen, noise=noise)
        share = 4 / (4 + self.repeats)
        self.values = share * four.mean(axis=0) + (1 - share) * self.values
        self.context.move(self.theta, self.F if self.m == self.context.n else None)

    def _forget(self) -> None:
        """The gradient was measured by another rule."""
        self.g = np.empty(0)

    def _finer(self) -> Generator[Probes, Answers, bool]:
        """Where F is not smooth: shorter difference steps, once long ones lead no further."""
        if not self.coarse and self.kinked:  # slopes at a point say nothing here: look further
            self.coarse, self.kinked = 0.3, False
            self.context.remark("the function has kinks: differences over longer steps")
        elif self.seen.random and not self.coarse and self.clear > 6 and self.narrowed < 4:
            self.width /= 5  # the noise is not what misleads
            self.narrowed += 1
        elif self.coarse > 2e-3:
            self.coarse /= 3
        else:
            return False
        self._forget()
        return True
        yield

    def _surer(self) -> Generator[Probes, Answers, bool]:
        """Where values are random: means of more calls, once noise is all that is left."""
        context = self.context
        if not self.seen.random or self.left < 4 * self.repeats * self.m * (self.C.size + 4):
            return False
        self.repeats *= 4
        context.remark(f"noise is all that is left: each value is now the mean of {self.repeats}")
        yield from self._settle()
        self.tried.clear()
        self._forget()
        return True

    def _settle(self) -> Asks:
        """Where values are random: to the bottom of a surface through many of them, on this support."""
        context, S = self.context, np.flatnonzero(self.theta)
        if not self.coarse and 0 < S.size <= 30:
            noise = self.seen.noise / math.sqrt(self.m)
            surface = Surface(context, self.theta, self.quasi.block(S), self._mu(), noise)
            self.theta = yield from surface.search(0.5 * context.used, self.of)
        self.values = yield from self.value(self.theta)
        context.move(self.theta, self.F if self.m == context.n else None)
        self.settled = self.theta

    def _least(self, last: bool) -> float:
        """A gain that is not worth another round."""
        return (1e-8 if last else 3e-2) * max(self.gained, 0.0) + self.slack

    def _blur(self) -> float:
        """The noise of a slope."""
        return 2 * self.seen.noise / (self._mu() * math.sqrt(max(self.m, 1) * self.repeats))

    def _pick(self, g: Array) -> Asks:
        """A step that may change the support: to the minimiser of a model, damped until F falls."""
        quasi = self.quasi
        if not quasi.scaled:
            yield from self._scale(g)
        if self.local is not None:
            trial = self._goal(self.local, g, 0.0)
            if trial is not None and self.left >= 2 * self.m:
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
                    yield from self._stretch(g, trial, values)
                    return
        damp = 0.0
        for _ in range(7):
            trial = self._goal(self.quasi, g, damp)
            if trial is None or self.left < self.m:
                return
            values = yield from self.value(trial)
            fall = self.F - float(values.mean())
            if fall > 0:
                yield from self._stretch(g, trial, values)
                return
            move = (trial - self.theta)[self.C]
            bent = 2 * (-float(g @ move) - fall) / max(float(move @ move), 1e-300)  # curvature along the step
            now = self.quasi.mean
            damp = min(max(4 * damp, 0.5 * (bent / now - 1), 0.1), max(100 * damp, 10.0))
        first = self._goal(self.quasi, g, 0.0)
        promised = 0.0 if first is None else -float(g @ (first - self.theta)[self.C])
        self.kinked = not self.seen.random and promised > 1e-4 * self.gained + 10 * self.slack

    def _stretch(self, g: Array, trial: Array, values: Array) -> Asks:
        """Take a step that lowered F, and go on in its direction as long as that pays."""
        context, C, start, length = self.context, self.C, self.theta, 1.0
        straight = trial - start
        fall = self.F - float(values.mean())
        promised = -float(g @ straight[C])
        while fall > 0.6 * length * promised and self.left >= self.m * self.repeats and length < 1e4:
            length *= 2.5  # F falls almost as steeply as at the beginning
            further = context.H(start + length * straight)
            seen = yield from self.value(further)
            more = self.F - float(seen.mean())
            if not more > fall:
                break
            trial, values, fall = further, seen, more
        self.take(trial, values)

    @property
    def _reach(self) -> float:
        """No step is longer."""
        natural = max(self.seen.length, float(np.linalg.norm(self.context.theta0)))
        return min(1e5 * max(natural, float(np.linalg.norm(self.theta))), 1e20 * natural)

    def _newton(self, g: Array, S: Indices) -> Array:
        """The model's step on the support S."""
        step = self.quasi.step(g, S)
        return step * min(1.0, self._reach / max(float(np.linalg.norm(step)), 1e-300))

    def _goal(self, model: QuasiNewton, g: Array, damp: float) -> Array | None:
        """The sparse minimiser of a model; None if it promises nothing."""
        context = self.context
        least = float(np.abs(g).max()) * math.sqrt(context.k) / self._reach
        if context.constraint.groups is not None:  # the models know no groups: a plain step, and the exact projection
            step = self.theta.copy()
            step[self.C] -= g / (model.mean * (1 + damp) + least)
            trial = context.H(step)
        else:
            trial = context.H(model.sparse(self.theta, g, self.C, context.k, context.constraint, damp, least))
        promised = -float(g @ (trial - self.theta)[self.C])
        return trial if promised > 0 and not np.array_equal(trial, self.theta) else None

    def _scale(self, g: Array) -> Asks:
        """The curvature along the thresholded gradient, by one more value of each component."""
        context, C = self.context, self.C
        whole = np.zeros(context.d)
        whole[C] = g
        step = context.constraint.project(self.theta - whole) - self.theta if self.theta.any() else -context.H(whole)
        S = np.flatnonzero(context.constraint.project(whole)) if not step.any() else np.flatnonzero(step)
        along = np.zeros(context.d)
        along[S] = -whole[S]
        size = float(np.linalg.norm(along))
        if size == 0 or self.left < self.m:
            self.quasi.scaled = True
            return
        h = max((1.0 if self.coarse else 0.1) * self.seen.length, self._mu()) / size
        point = context.inside(self.theta + h * along)
        values = yield from self.value(point)
        moved = point - self.theta
        length = float(moved @ moved)
        bent = 2 * (float(values.mean()) - self.F - float(whole @ moved)) / max(length, 1e-300)
        least = 1e-3 * size / max(self.seen.length, 1e-300)
        self.quasi.rescale(max(bent, least, 1e-300))

    def _polish(self, rounds: int) -> Asks:
        """QuasiNewton-Newton steps on the support."""
        context, quasi = self.context, self.quasi
        S = np.flatnonzero(self.theta)
        old: tuple[Array, Array] | None = None
        for _ in range(rounds):
            if S.size == 0 or self.left < self.price(S.size) + 2 * self.m:
                return
            g = yield from self.gradient(S)
            if old is not None:
                quasi.learn(self.theta - old[0], g - old[1], S, self._blur())
            old = self.theta, g
            step = self._newton(g, S)
            slope = float(g @ step)
            if not slope < 0:
                return
            before, length, fell = self.F, 1.0, False
            for _ in range(5):
                trial = self.theta.copy()
                trial[S] += length * step
                trial = context.H(trial)
                if self.left < self.m:
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
            if before - self.F <= self._least(self.m == context.n) and before - self.F <= -0.1 * slope:
                return
            if before - self.F <= 0.1 * self._least(self.m == context.n):
                return

    def _exchange(self, g: Array) -> Generator[Probes, Answers, bool]:
        """Try the exchanges of one coordinate that the model likes best, on real values."""
        context, C, quasi = self.context, self.C, self.quasi
        if context.constraint.groups is not None:
            return False
        left = self.exchanges * (10 if self.coarse else 1)
        for point in quasi.exchanges(self.theta, g, C, 4 * left):
            name = np.flatnonzero(point).tobytes()
            if name in self.tried or left == 0:
                continue
            self.tried.add(name)
            left -= 1
            trial = context.H(point)
            if self.left < self.m * self.repeats * (2 if self.coarse else 2 * context.k + 4):
                return False
            values = yield from self.value(trial)
            if self.coarse:  # slopes tell little here, and values are cheap
                if float(values.mean()) < self.F - self.slack:
                    self.take(trial, values)
                    return True
                continue
            here, there, before = (self.theta, self.values), (trial, values), self.F
            self.theta, self.values = there
            gained = self.gained
            yield from self._refine(before)
            if before - self._least(True) > self.F:
                context.move(self.theta, self.F if self.m == context.n else None)
                return True
            self.gained = gained
            self.theta, self.values = here
            context.move(self.theta, self.F if self.m == context.n else None)
        return False

    def _refine(self, bar: float) -> Asks:
        """QuasiNewton-Newton steps on a support that is on trial, as long as they may still lead below the bar."""
        quasi = self.quasi
        S = np.flatnonzero(self.theta)
        old: tuple[Array, Array] | None = None
        for _ in range(4):
            if S.size == 0 or self.left < self.price(S.size) + 2 * self.m:
                return
            g = yield from self.gradient(S)
            if old is not None:
                quasi.learn(self.theta - old[0], g - old[1], S, self._blur())
            old = self.theta, g
            step = self._newton(g, S)
            promised = -0.5 * float(g @ step)
            if self.F - 3 * promised > bar or promised <= self._least(True):
                return
            trial = self.theta.copy()
            trial[S] += step
            trial = self.context.constraint.project(trial)
            values = yield from self.value(trial)
            if not float(values.mean()) < self.F:
                return
            self.theta, self.values = trial, values


def _long(seen: Diagnosis) -> float:
    """The share of theta that a difference step is long at first, where F is not smooth; 0 where it is."""
    return 1.0 if seen.kink else 0.3 if seen.rough else 0.0
