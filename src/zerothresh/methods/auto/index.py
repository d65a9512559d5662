r"""Index: for components of one score, :math:`f_i(\theta) = l_i(v_i \cdot \theta) + \frac\lambda2 \|\theta\|^2`.

Every loss of a linear score is one: least squares, logistic, Poisson, hinge. Neither l_i nor v_i nor
lambda is told. The direction v_i is the gradient at the start, learnt once by differences; from then on a
component is a function of one number, and a Newton step of the sparse model costs 1 to 3 calls a
component. The model itself is solved without calls (`zerothresh.splicing`).
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint import splicing
from zerothresh.methods.auto.curves import Curves, Splines
from zerothresh.methods.auto.descent import MOST, Descent
from zerothresh.methods.auto.diagnosis import Diagnosis, diagnose
from zerothresh.methods.auto.niht import better
from zerothresh.methods.program.context import Asks, Context
from zerothresh.methods.program.program import Program
from zerothresh.methods.registry import register
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

Told = Generator[Probes, Answers, str]


@register("index")
@dataclass(frozen=True)
class Index(Program):
    """Learn the directions of the components once, then solve the sparse model without calls.

    Where components are no functions of one score the method says so, and goes on as `htp`; so it does to
    check the end, if they are and are not quadratic.

    >>> Index()
    Index()
    """

    family: ClassVar[str] = "parts of auto"
    order: ClassVar[int] = 3
    solves: ClassVar[str] = "f_i of a few projections of theta, l0"
    queries: ClassVar[str] = "d + 2 a component once, then 1 to 5 a component"
    memory: ClassVar[str] = "1 a call + n d"

    def search(self, context: Context) -> Asks:
        seen = yield from diagnose(context)
        context.remark(seen.words())
        context.random = seen.random
        model = Model(context, seen)
        if context.n > 2:
            context.remark((yield from model.search()))
        else:
            context.remark("fewer than three components do not show whether they are functions of one score")
        if not model.exact and model.C.size:
            descent = Descent(context, seen, known=model)
            context.remark("htp: " + (yield from descent.search()))
            yield from descent.insist()


def affordable(context: Context) -> bool:
    """Whether the budget allows the rows of a few components."""
    return context.left >= 1.5 * min(context.n, max(16, context.k)) * (context.d + 2)


class Model:
    """What is known of the components: their rows v_i, and l_i around the current point."""

    def __init__(self, context: Context, seen: Diagnosis) -> None:
        self.context, self.seen = context, seen
        n, d = context.n, context.d
        self.order = context.rng.subset(n, n)  # components in the order in which they are learnt
        self.C = context.free()  # coordinates that are modelled
        self.R = np.empty((0, d))  # rows of the first components, on C
        self.full = np.empty((0, d))  # complete rows, of the first components
        self.f0 = np.empty(0)  # f_i at the start, of the first components
        self.kappa = np.empty(0)  # l_i'' at the start, in the unit in which the row is a gradient
        self.slope = np.empty(0)  # l_i' there: 1 where the row was learnt at the start
        self.typical = 0.0  # the size of a row
        self.lam = 0.0  # the l2 term is lam/2 |theta - centre|^2
        self.centre = np.zeros(d)
        self.quadratic = True
        self.theta = context.theta0
        self.values = np.empty(0)  # f_i at theta, of the first components
        self.noise = seen.noise
        self.done = False
        self.several = False  # whether components turned out to have more than one score
        self.first = np.empty((0, 0))  # the gradients of the first components, if so
        self.curves = Curves(0)
        self.notes: list[tuple[Array, Array]] = []  # points with values that no curve knows yet

    @property
    def exact(self) -> bool:
        """Whether the model told F to a thousandth, so that its optimum is F's."""
        return self.done and self.quadratic and not self.seen.random and self.context.theta is not self.context.theta0

    # Learning.

    def learn(self, m: int) -> Generator[Probes, Answers, bool]:
        """The rows of the first m components; False if the budget does not allow it."""
        context, C = self.context, self.C
        have = len(self.R)
        if m <= have:
            return True
        of = self.order[have:m]
        if context.left < of.size * (C.size + 2) + m:
            return False
        known = yield from context.starts(of)
        central = self.seen.central
        rows, h = yield from context.slopes(context.theta0, C, self.seen.mu, of, known, central=central)
        self.f0 = np.concatenate([self.f0, known])
        if have == 0:
            ok = yield from self._isotropic(rows, of, known)
            if not ok:
                self.several, self.first = True, rows
                return False
            yield from self._find_centre(rows, of, known)
        rows = rows - self.lam * (context.theta0 - self.centre)[C]
        bends = yield from self._bends(rows, of, known)
        if not central:
            rows = rows - 0.5 * h * (bends[:, None] * rows**2 + self.lam)  # what forward differences add
        slope = np.ones(of.size)
        norms = np.linalg.norm(rows, axis=1)
        self.typical = self.typical or float(np.median(norms))
        weak = np.flatnonzero(norms < 1e-3 * self.typical)
        if weak.size and context.left > weak.size * (C.size + 1) + m:
            rows[weak], bends[weak], slope[weak] = yield from self._elsewhere(of[weak], known[weak])
        self.kappa = np.concatenate([self.kappa, bends])
        self.slope = np.concatenate([self.slope, slope])
        self.R = np.concatenate([self.R[:, : C.size], rows])
        if C.size == context.free().size and len(self.full) == have:
            self.full = self.R
        return True

    def _isotropic(self, rows: Array, of: Indices, known: Array) -> Generator[Probes, Answers, bool]:
        """The l2 term: what changes on a move orthogonal to a row and to the start. False: no such structure."""
        context = self.context
        d, C, theta = context.d, self.C, context.theta0
        chosen = np.argsort(-np.linalg.norm(rows, axis=1), kind="stable")[: min(3, len(rows))]
        if d < 3:
            return True
        h = self.seen.length
        points, sizes = [], []
        for a in chosen:
            basis = np.zeros((d, 2))
            basis[C, 0] = rows[a]
            basis[:, 1] = theta
            q, _ = np.linalg.qr(basis[:, : 1 + bool(theta.any())])
            w = np.zeros(d)
            w[C] = context.rng.normal(C.size)
            for _ in range(2):
                w -= q @ (q.T @ w)
            norm = float(np.linalg.norm(w))
            if norm == 0:
                return True
            w *= h / norm
            points += [context.inside(theta + w), context.inside(theta - w)]
            sizes.append(h)
        values = yield from context.each(np.array(points), np.repeat(of[chosen], 2))
        pairs = values.reshape(-1, 2)
        found = (pairs[:, 0] + pairs[:, 1] - 2 * known[chosen]) / np.square(sizes)
        middle = float(np.median(found))
        typical = float(np.abs(known).mean())
        floor = 6 * self.noise / h**2 + 1e-6 * typical / h**2
        if np.abs(found - middle).max() > 0.05 * abs(middle) + 4 * floor:
            return False
        self.lam = middle if abs(middle) > floor else 0.0
        return True

    def _ridge(self, points: Array) -> Array:
        """The l2 term at points, beyond what it is at the start."""
        moved, start = points - self.centre, self.context.theta0 - self.centre
        return np.asarray(0.5 * self.lam * (np.einsum("...d,...d->...", moved, moved) - float(start @ start)))

    def _find_centre(self, rows: Array, of: Indices, known: Array) -> Asks:
        """Whether the l2 term is around 0 or around the start.

        Around 0, v_i is the gradient without the pull of the l2 term, and a move orthogonal to that sees no
        other curvature than lam.
        """
        context, theta = self.context, self.context.theta0
        if not self.lam or not theta[self.C].any() or context.d < 3:
            return
        a = int(np.argmax(np.linalg.norm(rows, axis=1)))
        row = np.zeros(context.d)
        row[self.C] = rows[a] - self.lam * theta[self.C]
        w = np.zeros(context.d)
        w[self.C] = theta[self.C]
        w -= row * (float(row @ w) / max(float(row @ row), 1e-300))
        size = float(np.linalg.norm(w))
        if size < 1e-6 * float(np.linalg.norm(theta)):
            return
        w *= self.seen.length / size
        points = context.inside(np.array([theta + w, theta - w]))
        pair = yield from context.each(points, np.repeat(of[a : a + 1], 2))
        bent = float(pair.sum()) - 2 * float(known[a])
        expected = self.lam * float(w @ w)
        if abs(bent - expected) > 0.05 * abs(expected) + 40 * self.noise:
            self.centre = theta

    def _bends(self, rows: Array, of: Indices, known: Array) -> Generator[Probes, Answers, Array]:
        """l_i'' at the start by one more value along each row, in the unit in which l_i' = 1."""
        context = self.context
        norms = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
        move = self._lift(rows / norms[:, None] * -self.seen.bend(context.d))
        points = context.inside(context.theta0 + move)
        values = yield from context.each(points, of)
        moved = points - context.theta0
        z = np.einsum("rc,rc->r", moved[:, self.C], rows)
        ridge = self._ridge(points)
        bends = 2 * (values - known - ridge - z) / np.maximum(z * z, 1e-300)
        return np.where(np.isfinite(bends), bends, 0.0)

    def _elsewhere(self, of: Indices, known: Array) -> Generator[Probes, Answers, tuple[Array, Array, Array]]:
        """Rows of components that are stationary at the start, from another point: rows, bends, slopes at the start."""
        context, C = self.context, self.C
        w = np.zeros(context.d)
        w[C] = context.rng.normal(C.size)
        at = context.inside(context.theta0 + (self.seen.length / max(float(np.linalg.norm(w)), 1e-300)) * w)
        base = (yield from context.values([at], of))[0]
        slopes, _ = yield from context.slopes(at, C, self.seen.mu, of, base)
        rows = slopes - self.lam * (at - self.centre)[C]
        z = rows @ (at - context.theta0)[C]
        change = base - known - self._ridge(at)
        bends = np.where(z != 0, 2 * (z - change) / np.where(z != 0, z * z, 1.0), 0.0)
        return rows, bends, 1.0 - bends * z

    def _lift(self, rows: Array) -> Array:
        out = np.zeros((len(rows), self.context.d))
        out[:, self.C] = rows
        return out

    # Solving.

    def scores(self, theta: Array) -> Array:
        """z_i = v_i . (theta - start)."""
        return np.asarray(self.R @ (theta - self.context.theta0)[self.C])

    def fit(self, m: int, k: int) -> Asks:
        """Fit theta to the first m components; returns gradient and Hessian of the model on C there."""
        context = self.context
        if self.theta is context.theta0:
            self.values = self.f0[:m].copy()
        elif self.values.size < m:
            more = (yield from context.values([self.theta], self.order[self.values.size : m]))[0]
            self.values = np.concatenate([self.values, more])
        if self.quadratic:
            found = yield from self._fit_quadratic(m, k)
            if self.quadratic:
                return found
            context.remark("the components are not quadratic in their score")
        return (yield from self._fit_curves(m, k))

    def _fit_quadratic(self, m: int, k: int) -> Asks:
        """One step, exact if all l_i are quadratic; else that is noted."""
        context, theta, C, V = self.context, self.theta, self.C, self.R[:m]
        bend = self.kappa[:m]
        slope = self.slope[:m] + bend * self.scores(theta)[:m]
        g, A = self._derivatives(V, slope, bend, theta)
        trial = context.H(self._sparse(A, A @ theta[C] - g, k, theta))
        mean = float(self.values.mean())
        move = (trial - theta)[C]
        if context.left < m or not move.any():
            return g, A
        tried = (yield from context.values([trial], self.order[:m]))[0]
        predicted = mean + float(g @ move) + 0.5 * float(move @ A @ move)
        slack = 5 * self.noise / math.sqrt(m) + 1e-9 * abs(float(self.f0.mean()))
        self.quadratic = abs(predicted - float(tried.mean())) <= 1e-3 * abs(mean - predicted) + slack
        self.notes.append((trial, tried))
        if float(tried.mean()) < mean:
            self._take(trial, tried)
            g = g + A @ move
        return g, A

    def _derivatives(self, V: Array, slope: Array, bend: Array, theta: Array) -> tuple[Array, Array]:
        """Gradient and Hessian on C of the mean of the modelled components; bends below 0 count as almost none."""
        m, C = len(V), self.C
        square = np.maximum(np.einsum("rc,rc->r", V, V), 1e-300)  # the unit of a score is its own component's
        least = 1e-4 * float(np.median(np.abs(bend) * square)) / square
        # straight pieces: a slope that goes on for a thousand natural lengths, or more if there seem to be none
        share = 1e-7 if self.quadratic else 1e-3
        least = least + share / (np.sqrt(square) * self.seen.across(self.context.d))
        bend = np.maximum(bend, least)
        g = V.T @ slope / m + self.lam * (theta - self.centre)[C]
        return g, (V * bend[:, None]).T @ V / m + self.lam * np.eye(C.size)

    def _take(self, theta: Array, values: Array) -> None:
        """Go to theta; it becomes the iterate if it is known to be better, and not only on the first components."""
        self.theta, self.values = theta, values
        if values.size == self.context.n:
            self.context.move(theta, float(values.mean()))

    # Components that are not quadratic: curves.

    def _fit_curves(self, m: int, k: int) -> Asks:
        """Minimise the modelled F without calls, ask for the values there, learn from them, and again."""
        context, C, V = self.context, self.C, self.R[:m]
        yield from self._sample(m)
        whole, mean0 = m == context.n, abs(float(self.f0[:m].mean()))
        slack = 2 * self.noise / math.sqrt(m)
        least = (1e-10 if whole else 1e-2) * mean0
        g, A = np.zeros(C.size), np.eye(C.size)
        reach = 40 * self._across()  # curves are known for a few natural lengths
        for _ in range(40):
            splines = self.curves.centre(self.scores(self.theta)[:m], self._spacing(V))
            trial, predicted, g, A = self._minimise(splines, V, k, reach, least + slack)
            trial = context.H(trial)
            mean = float(self.values[:m].mean())
            if not mean - predicted > least + slack or context.left < m:
                return g, A
            tried = (yield from context.values([trial], self.order[:m]))[0]
            self._note(trial, tried)
            gained = mean - float(tried.mean())
            if gained > 0.1 * (mean - predicted):
                reach = 2 * reach if gained > 0.5 * (mean - predicted) else reach
            else:
                far = float((np.abs(self.scores(trial)[:m] - self.scores(self.theta)[:m]) / self._norms(V)).max())
                reach = 0.3 * min(reach, far)
            if gained > 0:
                self._take(trial, tried)
                if gained < least + slack:
                    return g, A
        return g, A

    @staticmethod
    def _norms(V: Array) -> Array:
        return np.asarray(np.maximum(np.linalg.norm(V, axis=1), 1e-300))

    def _spacing(self, V: Array) -> Array:
        return np.asarray(self._norms(V) * self.seen.fine(self.context.d))

    def _across(self) -> float:
        """How far along a row the curvature shows: the middle one of the components."""
        shown = 1 / np.maximum(np.abs(self.kappa) * self._norms(self.R), 1e-300)
        known = self.seen.across(self.context.d)
        return min(max(float(np.median(shown)), 0.03 * known), 3 * known)

    def _flat(self, point: Array, values: Array) -> Array:
        """Values without the l2 term."""
        return np.asarray(values - self._ridge(point))

    def _note(self, theta: Array, values: Array) -> None:
        """Values at theta are one more place of each curve."""
        m = values.size
        z = self.scores(theta)[:m]
        if m < len(self.curves):
            z = np.concatenate([z, self.curves.z[m:, -1]])
            flat = np.concatenate([self._flat(theta, values), self.curves.l[m:, -1]])
            self.curves.add(z, flat)
        else:
            self.curves.add(z, self._flat(theta, values))

    def _sample(self, m: int) -> Asks:
        """The first places of the curves of components that have none: the start and four along the row."""
        context, have = self.context, len(self.curves)
        if have < m:
            V, of = self.R[have:m], self.order[have:m]
            curves = Curves(m - have)
            curves.add(np.zeros(m - have), self._flat(context.theta0, self.f0[have:m]))
            norms = self._norms(V)
            unit, across = V / norms[:, None], self._across()
            for share in (-1.0, 1.0, -2.5, 2.5):
                if context.left < 2 * m:
                    break
                points = context.inside(context.theta0 + self._lift(unit * (share * across)))
                values = yield from context.each(points, of)
                z = np.einsum("rc,rc->r", (points - context.theta0)[:, self.C], V)
                curves.add(z, values - self._ridge(points))
            if self.theta is not context.theta0:
                curves.add(
                    self.R[have:m] @ (self.theta - context.theta0)[self.C], self._flat(self.theta, self.values[have:m])
                )
            self.curves.extend(curves)
        for theta, values in self.notes:
            if theta is not self.theta and values.size >= m:
                self._note(theta, values[:m])
        self.notes = []

    def _minimise(
        self, splines: Splines, V: Array, k: int, reach: float, worth: float
    ) -> tuple[Array, float, Array, Array]:
        """A sparse minimiser of the modelled F: point, F there, gradient and Hessian.

        As long as going down promises more than it is worth, the search for other supports waits.
        """
        context, C, start = self.context, self.C, self.theta
        z0, norms = V @ (start - context.theta0)[C], self._norms(V)

        def F(theta: Array) -> tuple[float, Array, Array]:
            value, slope, bend = splines.at(V @ (theta - context.theta0)[C])
            return float(value.mean()) + float(self._ridge(theta)), slope, bend

        def near(trial: Array) -> bool:
            return reach == math.inf or bool((np.abs(V @ (trial - context.theta0)[C] - z0) / norms).max() <= reach)

        def descend(theta: Array) -> tuple[Array, float]:
            value, slope, bend = F(theta)
            for turn in range(20):
                g, A = self._derivatives(V, slope, bend, theta)
                damp, moved = 0.0, False
                for _ in range(8):
                    damped = A + (damp * float(np.trace(A)) / C.size) * np.eye(C.size)
                    trial = self._sparse(damped, damped @ theta[C] - g, k, theta, alone=turn > 0 or damp > 0)
                    if near(trial):
                        there = F(trial)
                        if there[0] < value:
                            moved = True
                            break
                    damp = max(8 * damp, 0.03)
                if not moved:
                    break
                fall = value - there[0]
                theta, (value, slope, bend) = trial, there
                if fall <= 1e-12 * abs(value):
                    break
            return theta, value

        def refit(theta: Array, S: Indices) -> tuple[Array, float]:
            """Newton's method on the places S of C."""
            W = V[:, S]
            value, slope, bend = F(theta)
            for _ in range(15):
                g = W.T @ slope / len(W) + self.lam * (theta - self.centre)[C[S]]
                A = (W * np.maximum(bend, 0.0)[:, None]).T @ W / len(W) + self.lam * np.eye(S.size)
                size, moved = 1e-9 * float(np.trace(A)) / S.size + 1e-300, False
                for _ in range(6):
                    trial = theta.copy()
                    trial[C[S]] -= splicing.minimiser(A + size * np.eye(S.size), g)
                    trial = context.inside(trial)
                    there = F(trial)
                    if there[0] < value:
                        moved = True
                        break
                    size = max(16 * size, 0.03 * float(np.trace(A)) / S.size)
                if not moved:
                    break
                fall = value - there[0]
                theta, (value, slope, bend) = trial, there
                if fall <= 1e-6 * abs(value):
                    break
            return theta, value

        def exchanged(theta: Array, value: float) -> tuple[Array, float]:
            """Drop a coordinate, fit the others again, add the one that promises most; the first that helps."""
            places = np.flatnonzero(theta[C])
            held = np.isin(C[places], context.constraint.include)
            _, slope, bend = F(theta)
            loss = theta[C[places]] ** 2 * ((V[:, places] ** 2 * np.maximum(bend, 0)[:, None]).mean(axis=0) + self.lam)
            for a in np.argsort(loss, kind="stable")[:8].tolist():
                if held[a]:
                    continue
                rest = np.delete(places, a)
                without = theta.copy()
                without[C[places[a]]] = 0.0
                if rest.size:
                    without, _ = refit(without, rest)
                _, slope, bend = F(without)
                g, A = self._derivatives(V, slope, bend, without)
                gain = g * g / np.diag(A)
                gain[places] = -1.0
                for j in np.argsort(-gain, kind="stable")[:2].tolist():
                    trial, there = refit(without, np.append(rest, j))
                    if there < value - 1e-9 * abs(value) and near(trial):
                        return trial, there
            return theta, value

        now = F(start)[0]
        theta, value = descend(start)
        enough = now - value > 100 * worth
        if start is not context.theta0 and not enough and near(context.theta0):
            other = descend(context.theta0)
            theta, value = other if other[1] < value else (theta, value)
        for _ in range(0 if enough else 3 * k):
            trial, _ = exchanged(theta, value)
            if trial is theta:
                break
            theta, value = descend(trial)
        for _ in range(12 if not enough and len(V) == context.n and np.count_nonzero(theta) > 1 else 0):
            begin = theta * (context.rng.uniform(context.d) < 0.5)  # a part of the support, and down from there
            other = descend(exchanged(context.constraint.project(begin), math.inf)[0])
            theta, value = other if other[1] < value and near(other[0]) else (theta, value)
        _, slope, bend = F(theta)
        return theta, value, *self._derivatives(V, slope, bend, theta)

    def _local(self, m: int) -> Generator[Probes, Answers, tuple[Array, Array]]:
        """l_i' and l_i'' at theta, by two values along each row."""
        context, V = self.context, self.R[:m]
        norms = np.maximum(np.linalg.norm(V, axis=1), 1e-300)
        move = self._lift(V / norms[:, None] * self.seen.fine(context.d))
        points = np.concatenate([context.inside(self.theta + move), context.inside(self.theta - move)])
        of = np.concatenate([self.order[:m]] * 2)
        values = yield from context.each(points, of)
        ridge = self._ridge(points) - self._ridge(self.theta)
        z = np.einsum("rc,rc->r", (points - self.theta)[:, self.C], np.concatenate([V, V]))
        change = values - np.concatenate([self.values[:m]] * 2) - ridge
        z1, z2, c1, c2 = z[:m], z[m:], change[:m], change[m:]
        gap = np.where(np.abs(z1 - z2) > 0, z1 - z2, 1e-300)
        with np.errstate(all="ignore"):
            bend = 2 * (c1 / z1 - c2 / z2) / gap
            slope = c1 / z1 - 0.5 * bend * z1
        return np.nan_to_num(slope, posinf=0, neginf=0), np.nan_to_num(bend, posinf=0, neginf=0)

    def _sparse(self, A: Array, b: Array, k: int, theta: Array, *, alone: bool = False) -> Array:
        """The minimiser of the quadratic model on C, within the constraint."""
        context, C = self.context, self.C
        constraint = context.constraint
        forced = np.flatnonzero(np.isin(C, constraint.include))
        start = np.flatnonzero(theta[C])
        out = np.zeros(context.d)
        out[C] = splicing.solve(A, b, k, starts=[start] if start.size else [], forced=forced, alone=alone)
        return splicing.inside(A, b, out, C, constraint)

    # The whole.

    def search(self) -> Told:
        context = self.context
        n, k = context.n, context.k
        if not self.C.size:
            return "no coordinate is free"
        if context.constraint.groups is not None:
            return "groups: the index model has no groups"
        small = self.C.size <= 3 * k
        growth = 1 + min(1.0, max(0.25, 50 / self.C.size))
        m = min(n, max(64, 4 * self.C.size)) if small else min(n, max(16, k))
        tested = False
        while True:
            if not ((yield from self.learn(min(m, 3))) and (yield from self.learn(m))):
                if self.several:
                    return "components are not functions of one score"
                return "the budget allows no more rows"
            if self.C.size > MOST:  # the model is a matrix
                curvature = np.maximum(self.kappa, 0.0) @ self.R**2 / m
                self._screen(self.slope @ self.R / m, np.maximum(curvature, 1e-12 * curvature.max()), MOST)
            size = k if m >= 3 * k or m == n else max(1, m // 3)
            size = max(size, context.constraint.include.size)
            g, A = yield from self.fit(m, size)
            if not tested:
                tested = True
                wrong = yield from self._prediction(min(m, 5))
                context.remark(f"the slope of a component is predicted to {100 * wrong:.2g} %")
                if wrong > 0.2:
                    self.several, self.first = True, self.R + self.lam * (context.theta0 - self.centre)[self.C]
                    return "components are not functions of one score"
            if m == n:
                break
            if small:
                m = min(n, 2 * m)
                continue
            held = self.order[m : m + max(50, m)]
            if context.left < 2 * held.size:
                return "the budget allows no more rows"
            there = yield from context.starts(held)
            here = (yield from context.values([self.theta], held))[0]
            if better(here, there, n):
                context.move(self.theta)
            if float(here.mean()) < 0.05 * float(there.mean()):
                self._screen(g, np.diag(A), 3 * k)
                m = n
            else:
                m = min(n, math.ceil(growth * m))
        yield from self._recheck(A)
        self.done = True
        return "the index model has converged"

    def _prediction(self, count: int) -> Generator[Probes, Answers, float]:
        """How wrong the model is about slopes along a random direction at theta: the structure test."""
        context = self.context
        chosen = np.argsort(-np.linalg.norm(self.R, axis=1), kind="stable")[:count]
        of, V = self.order[chosen], self.R[chosen]
        w = np.zeros(context.d)
        w[self.C] = context.rng.normal(self.C.size)
        w /= max(float(np.linalg.norm(w)), 1e-300)
        norms = np.maximum(np.linalg.norm(V, axis=1), 1e-300)
        U = self._lift(V / norms[:, None])
        h = self.seen.fine(context.d)
        t = self.theta
        aside = np.tile(h * w, (count, 1))
        points = t + np.concatenate([aside, -aside, h * U, -h * U])
        inside = context.inside(points)
        f = (yield from context.each(inside, np.concatenate([of] * 4))).reshape(4, -1)
        across, along = (f[0] - f[1]) / (2 * h), (f[2] - f[3]) / (2 * h)
        pull = self.lam * (t - self.centre)
        predicted = (along - U @ pull) * (U @ w) + float(pull @ w)
        floor = 5 * self.noise / h
        wrong = np.abs(across - predicted) / (np.abs(across) + np.abs(predicted) + floor)
        return float(np.median(wrong))

    def _screen(self, g: Array, curvature: Array, size: int) -> None:
        """Keep the most promising coordinates."""
        diagonal = np.sqrt(np.maximum(curvature, 1e-300))
        x = self.theta[self.C]
        score = np.where((x != 0) | (self.context.theta0[self.C] != 0), np.inf, np.abs(g) / diagonal)
        score[np.isin(self.C, self.context.constraint.include)] = np.inf
        keep = np.sort(np.argsort(-score, kind="stable")[: max(size, np.count_nonzero(score == np.inf))])
        self.C, self.R = self.C[keep], self.R[:, keep]

    def _recheck(self, A: Array) -> Asks:
        """Coordinates that were set aside are looked at again, through the components whose rows are complete."""
        context = self.context
        every = context.free()
        for _ in range(10):
            if self.C.size == every.size or not len(self.full):
                return
            m = len(self.full)
            if context.left < 3 * m:
                return
            slope, bend = yield from self._local(m)
            g = self.full.T @ slope / m + self.lam * (self.theta - self.centre)[every]
            h = np.maximum((self.full**2 * np.maximum(bend, 0)[:, None]).sum(axis=0) / m + self.lam, 1e-300)
            gain = g * g / (2 * h)
            gain[np.isin(every, self.C)] = 0.0
            x = self.theta[self.C]
            loss = 0.5 * (x**2 * np.diag(A))[x != 0]
            bar = float(loss.min()) if np.count_nonzero(x) >= context.k else 0.0
            better = np.flatnonzero(gain > max(bar, 1e-9 * abs(float(self.f0.mean()))))
            if not better.size:
                return
            better = every[better[np.argsort(-gain[better], kind="stable")][: context.k]]
            if context.left < (context.n - m) * better.size + 4 * context.n:
                return
            yield from self._widen(better)
            before = self.theta
            _, A = yield from self.fit(context.n, context.k)
            if np.array_equal(before != 0, self.theta != 0):
                return

    def _widen(self, more: Indices) -> Asks:
        """Learn further coordinates of the rows."""
        context, m = self.context, len(self.full)
        every = context.free()
        of = self.order[m : len(self.R)]
        slopes, h = yield from context.slopes(context.theta0, more, self.seen.mu, of, self.f0[m : len(self.R)])
        fresh = slopes - self.lam * (context.theta0 - self.centre)[more]
        bends = self.kappa[m : len(self.R)]
        fresh = fresh - 0.5 * h * (bends[:, None] * fresh**2 + self.lam)
        columns = np.concatenate([self.full[:, np.searchsorted(every, more)], fresh])
        C = np.concatenate([self.C, more])
        place = np.argsort(C, kind="stable")
        self.C = C[place]
        self.R = np.ascontiguousarray(np.concatenate([self.R, columns], axis=1)[:, place])
