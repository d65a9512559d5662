"""Global minimisation over the few coordinates that matter, within the unit cube.

Two kinds of descents take turns. A Gaussian process with expected improvement needs few values where F is smooth on
the scale of the cube; a quadratic model in a trust region sees through ripples that mislead the process. Neither alone
suffices: the first solves Hartmann's function and never Ackley's, the second is slower on Hartmann's.

References: Jones, Schonlau and Welch, *Efficient global optimization of expensive black-box functions*, 1998;
Powell, *The BOBYQA algorithm for bound constrained optimization without derivatives*, 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.models.gaussian_process import (
    FORMS,
    Form,
    GaussianProcess,
    fit,
    log_expected_improvement,
)
from zerothresh.methods.auto.models.quadratic_surface import interpolate, minimise_in_box
from zerothresh.methods.auto.settings import GLOBAL_SEARCH as SET
from zerothresh.methods.auto.settings import TINY
from zerothresh.methods.program.context import Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Ask = Callable[[list[Array]], Generator[Probes, Answers, Array]]  # points of the cube -> values of F


class GlobalSearch:
    """Descents within the unit cube, which share all values.

    Arguments
    ---------
    context: the run, for its random numbers.
    ask: returns F at points of the cube.
    Z, y, counts: arrays of shape (points, p), (points,) and (points,): values that are known already, and of how many
        calls each is the mean.
    noise: float, the standard deviation of a value; ``random``: whether a point gives different values.
    """

    def __init__(
        self, context: Context, ask: Ask, Z: Array, y: Array, counts: Array, noise: float, random: bool
    ) -> None:
        self.context, self._ask = context, ask
        self.Z, self.y, self.counts = Z, y, counts
        self.noise, self.random = noise, random
        self.p = Z.shape[1]
        self.basins: list[tuple[Array, Array]] = []  # bottoms of descents, and how wide they are
        self.process: GaussianProcess | None = None  # the last one
        self._parameters: dict[Form, Array] = {}

    def ask(self, points: list[Array]) -> Generator[Probes, Answers, Array]:
        """Ask for F at points, and keep the values."""
        values = yield from self._ask(points)
        self.Z = np.concatenate([self.Z, points])
        self.y = np.concatenate([self.y, values])
        self.counts = np.concatenate([self.counts, np.ones(len(points))])
        return values

    @property
    def fall(self) -> float:
        """The fall of F from its median so far to its lowest value."""
        return float(np.median(self.y) - self.y.min())

    def best(self) -> int:
        """Return the index of the best point: of the lowest value, or of the lowest mean of the process under noise."""
        if not self.random or self.process is None:
            return int(np.argmin(self.y))
        mean, _ = self.process.predict(self.Z)
        return int(np.argmin(mean))

    def fresh_start(self) -> Array:
        """Return the best known point that lies in no basin that is done with."""
        outside = self._outside()
        return self.Z[outside[np.argmin(self.y[outside])]] if outside.size else self.context.rng.uniform(self.p)

    def _outside(self) -> Array:
        use = np.ones(self.y.size, bool)
        for bottom, size in self.basins:
            use &= (np.abs(self.Z - bottom) / size).max(axis=1) > 1
        return np.flatnonzero(use)

    # Descents by a Gaussian process.

    def descend_by_process(self, *, everywhere: bool) -> Generator[Probes, Answers, None]:
        """Follow the expected improvement, in the whole cube or around the best of some fresh random points."""
        rng, p = self.context.rng, self.p
        begin, width = (0, 1.0) if everywhere else (self.y.size, SET.later_width)
        fresh = max(p + SET.first_points - (self.y.size if everywhere else 0), 0)
        if fresh:
            yield from self.ask(list(rng.uniform(fresh * p).reshape(fresh, p)))
        self._parameters, failures, form, turn = {}, 0, None, 0
        while failures < (SET.patience if everywhere else SET.later_patience):
            used = self._usable(begin)
            refit = turn % SET.form_every < 2
            process = self._fit(used, None if refit else form)
            form, self.process = process.form, process
            own = begin + int(np.argmin(self.y[begin:]))
            centre, lowest = self.Z[own], self.y[own]
            z = self._propose(process, centre, width, by_mean=turn % SET.mean_every == SET.mean_every - 1)
            value = float((yield from self.ask([z]))[0])
            turn += 1
            if value < lowest - SET.gain * self.fall:
                failures = 0
            else:
                failures += 1
                width = width if everywhere else max(SET.narrowing * width, SET.least_width)
        own = begin + int(np.argmin(self.y[begin:]))
        self.basins.append((self.Z[own], SET.basin * np.clip(process.lengths, *SET.length_range)))

    def _usable(self, begin: int) -> Array:
        """Choose the values for a model: not those of basins that are done with, and not too many."""
        chosen = np.union1d(self._outside(), np.arange(begin, self.y.size))
        if chosen.size > SET.most_points:  # the lowest half, and the newest
            order = chosen[np.argsort(self.y[chosen], kind="stable")]
            kept = set(order[: SET.most_points // 2].tolist())
            newest = [i for i in reversed(chosen.tolist()) if i not in kept]
            chosen = np.array(sorted(kept | set(newest[: SET.most_points - len(kept)])))
        return chosen

    def _fit(self, used: Array, form: Form | None) -> GaussianProcess:
        """Fit the process in one form, or in all forms, of which the evidence chooses."""
        X, y, counts = self.Z[used], self.y[used], self.counts[used]
        best: GaussianProcess | None = None
        for candidate in FORMS if form is None else (form,):
            process = fit(X, y, counts, candidate, self._parameters.get(candidate), self.random)
            self._parameters[candidate] = process.parameters
            best = process if best is None or process.evidence > best.evidence else best
        assert best is not None  # there is at least one form
        return best

    def _propose(self, process: GaussianProcess, centre: Array, width: float, *, by_mean: bool) -> Array:
        """Return the point of largest expected improvement, or of smallest mean, near the centre."""
        rng, p = self.context.rng, self.p
        low, high = np.maximum(centre - width, 0.0), np.minimum(centre + width, 1.0)
        lengths = np.clip(process.lengths, *SET.length_range)
        target = float(process.predict(centre[None])[0][0]) if self.random else float(process.t.min())

        def score(points: Array) -> Array:
            mean, deviation = process.predict(points)
            return -mean if by_mean else log_expected_improvement(mean, deviation, target)

        count = len(SET.distances) * SET.near_candidates
        moved = rng.uniform(count * p).reshape(count, p) < max(0.4, 2 / p)
        far = np.repeat(SET.distances, SET.near_candidates)[:, None] * lengths
        near = np.clip(centre + far * rng.normal(count * p).reshape(count, p) * moved, low, high)
        wide = low + (high - low) * rng.uniform(SET.global_candidates * p).reshape(-1, p)
        candidates = np.concatenate([wide, near])
        scores = score(candidates)
        top = np.argsort(-scores, kind="stable")[: SET.refined]
        points, values, distance = candidates[top], scores[top], SET.refined_distance
        for _ in range(SET.refinements):
            moves = rng.normal(points.size * SET.refined_points).reshape(len(points), SET.refined_points, p)
            around = np.clip(points[:, None] + distance * lengths * moves, low, high)
            found = score(around.reshape(-1, p)).reshape(len(points), -1)
            i = np.argmax(found, axis=1)
            better = found[np.arange(len(points)), i] > values
            points = np.where(better[:, None], around[np.arange(len(points)), i], points)
            values = np.maximum(values, found.max(axis=1))
            distance *= SET.refined_shrink
        z = points[int(np.argmax(values))]
        if not self.random and np.abs(self.Z - z).max(axis=1).min() < SET.same:
            z = low + (high - low) * rng.uniform(p)
        return np.asarray(z)

    # Descents by a quadratic model.

    def descend_by_quadratic(self, start: Array | None) -> Generator[Probes, Answers, None]:
        """Minimise quadratic models within a trust region, from a known point of the cube, or else from a random one."""
        p, radius = self.p, SET.first_radius
        begin = self.y.size
        if start is None:
            yield from self.ask([self.context.rng.uniform(p)])
            centre = self.y.size - 1
        else:
            centre = int(np.argmin(np.abs(self.Z - start).max(axis=1)))
        centre = yield from self._design(centre, radius)
        used = np.concatenate([[centre], np.setdiff1d(np.arange(begin, self.y.size), [centre])])
        H, idle = np.zeros((p, p)), 0
        while radius > SET.last_radius and idle < SET.later_patience:
            z0 = self.Z[centre]
            moves = (self.Z[used] - z0) / radius
            values = self.y[used]
            ridge = (self.noise**2 / max(float(values.var()), TINY)) if self.random else 0.0
            _, g, H = interpolate(moves, values, H, ridge)
            low, high = np.maximum(-z0 / radius, -1.0), np.minimum((1 - z0) / radius, 1.0)
            starts = np.concatenate([np.zeros((1, p)), -np.sign(g)[None], 2 * self.context.rng.uniform(2 * p).reshape(2, p) - 1])
            step, predicted = minimise_in_box(g, H, low, high, starts)
            length = float(np.abs(step).max())
            if -predicted < SET.gain * self.fall * min(radius, 1.0) or length < SET.failing:
                idle += 1
                far = np.abs(moves).max(axis=1) > 2
                if far.any():
                    used = yield from self._improve(used, centre, radius)
                    centre = int(used[np.argmin(self.y[used])])
                radius, H = 0.5 * radius, 0.25 * H
                continue
            value = float((yield from self.ask([np.clip(z0 + radius * step, 0.0, 1.0)]))[0])
            new = self.y.size - 1
            ratio = (self.y[centre] - value) / -predicted
            if value < self.y[centre]:
                idle = 0 if value < self.y[centre] - SET.gain * self.fall else idle + 1
                centre = new
            used = self._replace(used, new, centre)
            factor = 1.0
            if ratio > SET.growing and length > 0.9:
                factor = 2.0
            elif ratio < SET.failing:
                if (np.abs(self.Z[used] - self.Z[centre]).max(axis=1) > 2 * radius).any():
                    used = yield from self._improve(used, centre, radius)
                    centre = int(used[np.argmin(self.y[used])])
                else:
                    factor = 0.5
            radius, H = factor * radius, factor**2 * H
            radius = min(radius, 0.5)

    def _design(self, centre: int, radius: float) -> Generator[Probes, Answers, int]:
        """Ask for two further points along each coordinate, as BOBYQA does; return the best index."""
        p, z0, y0 = self.p, self.Z[centre].copy(), self.y[centre]
        signs = np.where(z0 + radius <= 1.0, 1.0, -1.0)
        first = [z0 + radius * signs[j] * np.eye(p)[j] for j in range(p)]
        values = yield from self.ask(first)
        second = []
        for j in range(p):
            other = 2 * signs[j] if values[j] < y0 else -signs[j]
            if not 0.0 <= z0[j] + radius * other <= 1.0:
                other = 2 * signs[j] if 0.0 <= z0[j] + 2 * radius * signs[j] <= 1.0 else 0.5 * signs[j]
            second.append(z0 + radius * other * np.eye(p)[j])
        yield from self.ask(second)
        members = np.concatenate([[centre], np.arange(self.y.size - 2 * p, self.y.size)])
        return int(members[np.argmin(self.y[members])])

    def _replace(self, used: Array, new: int, centre: int) -> Array:
        """Take a new point into the model in place of the one that is farthest from the centre."""
        most = (self.p + 1) * (self.p + 2) // 2
        used = np.concatenate([used, [new]])
        if used.size > most:
            far = np.abs(self.Z[used] - self.Z[centre]).max(axis=1)
            used = np.delete(used, int(np.argmax(far)))
        return used

    def _improve(self, used: Array, centre: int, radius: float) -> Generator[Probes, Answers, Array]:
        """Replace the farthest point of the model by one in the direction that the near points show least of."""
        moves = (self.Z[used] - self.Z[centre]) / radius
        size = np.abs(moves).max(axis=1)
        near = moves[size <= 2]
        _, _, Vt = np.linalg.svd(np.concatenate([near, np.zeros((self.p, self.p))]))
        direction = Vt[-1] / np.abs(Vt[-1]).max()
        z = self.Z[centre] + radius * direction
        if ((z < 0) | (z > 1)).any():
            z = self.Z[centre] - radius * direction
        yield from self.ask([np.clip(z, 0.0, 1.0)])
        used = np.delete(used, int(np.argmax(size)))
        return np.concatenate([used, [self.y.size - 1]])
