r"""The single-index model: every component is a function of one linear score, plus an l2 term.

.. math:: f_i(\theta) = l_i(v_i \cdot \theta) + \frac\lambda2 \|\theta\|^2

Every loss of a linear score has this form: least squares, logistic, Poisson, hinge. Neither l_i nor v_i nor lambda
is given. The row v_i is the gradient at the start, learnt once from differences. From then on a component is a
function of one variable, and a Newton step of the sparse model costs 1 to 3 calls per component. The model itself is
minimised without calls (`zerothresh.constraint.splicing`).
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint import splicing
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.curves import Curves, Splines
from zerothresh.methods.auto.models.quasi_newton import MAX_MODELLED_COORDINATES
from zerothresh.methods.auto.models.significance import significantly_lower
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.program.context import Asks, Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

_FIRST_ROWS = 16  # components to begin with, or k if that is more
_TESTED_ROWS = 3  # rows learnt before anything else: the test of the model's form needs three
_WEAK_ROW = 1e-3  # a row below this share of the typical norm belongs to a component that is stationary at the start
_FORM_TOLERANCE = 0.05  # relative deviation up to which second differences count as those of one l2 term
_QUADRATIC_TOLERANCE = 1e-3  # relative error of a predicted decrease up to which the components count as quadratic
_MAX_PREDICTION_ERROR = 0.2  # of a slope: above this the components have more than one score
_HELD_OUT_RATIO = 0.05  # if held-out components fall below this share of their start values, the model generalises
_CURVE_SAMPLES = (-1.0, 1.0, -2.5, 2.5)  # first samples of a curve along its row, in curvature lengths
_FIRST_TRUST_RADIUS = 40  # in curvature lengths
_MAX_CURVE_ROUNDS = 40  # rounds of minimising the modelled F and asking for the values there
_MAX_RECHECKS = 10  # times that coordinates dropped earlier are reconsidered
_TINY = 1e-300  # lower limit of divisors


def affordable(context: Context) -> bool:
    """Whether the budget covers the rows of the first few components."""
    return context.left >= 1.5 * min(context.n, max(_FIRST_ROWS, context.k)) * (context.d + 2)


class SingleIndexModel:
    """What is known of the components: their rows v_i, and the functions l_i around the current point.

    Arguments
    ---------
    context: the run.
    diagnosis: what the first calls found.
    """

    def __init__(self, context: Context, diagnosis: Diagnosis) -> None:
        self.context, self.diagnosis = context, diagnosis
        n, d = context.n, context.d
        self.order = context.rng.subset(n, n)  # components in the order in which they are learnt
        self.C = context.free()  # coordinates that are modelled
        self.R = np.empty((0, d))  # rows of the components learnt so far, on C
        self.complete_rows = np.empty((0, d))  # rows on all free coordinates, of the components learnt before screening
        self.f0 = np.empty(0)  # f_i at the start
        self.kappa = np.empty(0)  # l_i'' at the start, in the unit in which the row is a gradient
        self.slope = np.empty(0)  # l_i' at the start: 1 where the row was learnt there
        self.typical_norm = 0.0  # of a row
        self.lam = 0.0  # the l2 term is lam/2 |theta - centre|^2
        self.centre = np.zeros(d)
        self.quadratic = True  # whether all l_i have been quadratic so far
        self.theta = context.theta0
        self.values = np.empty(0)  # f_i at theta
        self.noise = diagnosis.noise
        self.converged = False
        self.several_scores = False  # whether the components turned out to have more than one score
        self.start_gradients = np.empty((0, 0))  # in that case, the gradients learnt so far, for another method to use
        self.curves = Curves(0)
        self.pending: list[tuple[Array, Array]] = []  # points and values that have not been added to the curves yet

    @property
    def exact(self) -> bool:
        """Whether the model predicted F so well that the model's optimum is that of F."""
        moved = self.context.theta is not self.context.theta0
        return self.converged and self.quadratic and not self.diagnosis.random and moved

    # Learning the rows.

    def learn_rows(self, m: int) -> Generator[Probes, Answers, bool]:
        """Learn the rows of the first m components; False if the budget or the form of F does not allow it."""
        context, C = self.context, self.C
        known = len(self.R)
        if m <= known:
            return True
        components = self.order[known:m]
        if context.left < components.size * (C.size + 2) + m:
            return False
        base = yield from context.starts(components)
        central = self.diagnosis.central
        rows, h = yield from context.slopes(context.theta0, C, self.diagnosis.mu, components, base, central=central)
        self.f0 = np.concatenate([self.f0, base])
        if known == 0:
            fits = yield from self._fit_l2_term(rows, components, base)
            if not fits:
                self.several_scores, self.start_gradients = True, rows
                return False
            yield from self._find_centre(rows, components, base)
        rows = rows - self.lam * (context.theta0 - self.centre)[C]
        curvatures = yield from self._start_curvatures(rows, components, base)
        if not central:
            rows = rows - 0.5 * h * (curvatures[:, None] * rows**2 + self.lam)  # the bias of forward differences
        slope = np.ones(components.size)
        norms = np.linalg.norm(rows, axis=1)
        self.typical_norm = self.typical_norm or float(np.median(norms))
        weak = np.flatnonzero(norms < _WEAK_ROW * self.typical_norm)
        if weak.size and context.left > weak.size * (C.size + 1) + m:
            rows[weak], curvatures[weak], slope[weak] = yield from self._rows_from_another_point(
                components[weak], base[weak]
            )
        self.kappa = np.concatenate([self.kappa, curvatures])
        self.slope = np.concatenate([self.slope, slope])
        self.R = np.concatenate([self.R[:, : C.size], rows])
        if C.size == context.free().size and len(self.complete_rows) == known:
            self.complete_rows = self.R
        return True

    def _fit_l2_term(self, rows: Array, components: Indices, base: Array) -> Generator[Probes, Answers, bool]:
        """Measure lam: only the l2 term changes on a move orthogonal to a row and to the start.

        Returns False if the components disagree about lam, so that they do not have the form of the model.
        """
        context = self.context
        d, C, theta = context.d, self.C, context.theta0
        chosen = np.argsort(-np.linalg.norm(rows, axis=1), kind="stable")[: min(3, len(rows))]
        if d < 3:
            return True
        h = self.diagnosis.length
        points, lengths = [], []
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
            lengths.append(h)
        values = yield from context.each(np.array(points), np.repeat(components[chosen], 2))
        pairs = values.reshape(-1, 2)
        estimates = (pairs[:, 0] + pairs[:, 1] - 2 * base[chosen]) / np.square(lengths)
        median = float(np.median(estimates))
        typical_value = float(np.abs(base).mean())
        floor = 6 * self.noise / square(h) + 1e-6 * typical_value / square(h)
        if np.abs(estimates - median).max() > _FORM_TOLERANCE * abs(median) + 4 * floor:
            return False
        self.lam = median if abs(median) > floor else 0.0
        return True

    def _l2_change(self, points: Array) -> Array:
        """Return the l2 term at points minus the l2 term at the start."""
        moved, start = points - self.centre, self.context.theta0 - self.centre
        return np.asarray(0.5 * self.lam * (np.einsum("...d,...d->...", moved, moved) - float(start @ start)))

    def _find_centre(self, rows: Array, components: Indices, base: Array) -> Asks:
        """Decide whether the l2 term is centred at 0 or at the start.

        If it is centred at 0, v_i is the gradient without that of the l2 term, and a move orthogonal to v_i sees no
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
        w -= row * (float(row @ w) / max(float(row @ row), _TINY))
        norm = float(np.linalg.norm(w))
        if norm <= 1e-6 * float(np.linalg.norm(theta)):
            return
        w *= self.diagnosis.length / norm
        points = context.inside(np.array([theta + w, theta - w]))
        pair = yield from context.each(points, np.repeat(components[a : a + 1], 2))
        second_difference = float(pair.sum()) - 2 * float(base[a])
        expected = self.lam * float(w @ w)
        if abs(second_difference - expected) > _FORM_TOLERANCE * abs(expected) + 40 * self.noise:
            self.centre = theta

    def _start_curvatures(self, rows: Array, components: Indices, base: Array) -> Generator[Probes, Answers, Array]:
        """Measure l_i'' at the start with one value along each row, in the unit in which l_i' = 1."""
        context = self.context
        norms = np.maximum(np.linalg.norm(rows, axis=1), _TINY)
        move = self._in_full_space(rows / norms[:, None] * -self.diagnosis.curvature_step(context.d))
        points = context.inside(context.theta0 + move)
        values = yield from context.each(points, components)
        moved = points - context.theta0
        z = np.einsum("rc,rc->r", moved[:, self.C], rows)
        l2_change = self._l2_change(points)
        curvatures = 2 * (values - base - l2_change - z) / np.maximum(z * z, _TINY)
        return np.where(np.isfinite(curvatures), curvatures, 0.0)

    def _rows_from_another_point(
        self, components: Indices, base: Array
    ) -> Generator[Probes, Answers, tuple[Array, Array, Array]]:
        """Learn the rows of components that are stationary at the start from a random point nearby.

        Returns the rows, and l_i'' and l_i' at the start.
        """
        context, C = self.context, self.C
        w = np.zeros(context.d)
        w[C] = context.rng.normal(C.size)
        point = context.inside(context.theta0 + (self.diagnosis.length / max(float(np.linalg.norm(w)), _TINY)) * w)
        values = (yield from context.values([point], components))[0]
        slopes, _ = yield from context.slopes(point, C, self.diagnosis.mu, components, values)
        rows = slopes - self.lam * (point - self.centre)[C]
        z = rows @ (point - context.theta0)[C]
        change = values - base - self._l2_change(point)
        curvatures = np.where(z != 0, 2 * (z - change) / np.where(z != 0, z * z, 1.0), 0.0)
        return rows, curvatures, 1.0 - curvatures * z

    def _in_full_space(self, rows: Array) -> Array:
        """Extend rows on C by zeros to all d coordinates."""
        out = np.zeros((len(rows), self.context.d))
        out[:, self.C] = rows
        return out

    # Minimising the model.

    def scores(self, theta: Array) -> Array:
        """Return z_i = v_i . (theta - start) of the components learnt so far."""
        return np.asarray(self.R @ (theta - self.context.theta0)[self.C])

    def fit(self, m: int, k: int) -> Asks:
        """Minimise the mean of the first m components over k-sparse points, and move theta there.

        Returns the gradient and the Hessian of the model on C.
        """
        context = self.context
        if self.theta is context.theta0:
            self.values = self.f0[:m].copy()
        elif self.values.size < m:
            more = (yield from context.values([self.theta], self.order[self.values.size : m]))[0]
            self.values = np.concatenate([self.values, more])
        if self.quadratic:
            derivatives = yield from self._fit_quadratic(m, k)
            if self.quadratic:
                return derivatives
            context.remark("The components are not quadratic in their score.")
        return (yield from self._fit_curves(m, k))

    def _fit_quadratic(self, m: int, k: int) -> Asks:
        """Make one step, which is exact if all l_i are quadratic; otherwise set ``quadratic`` to False."""
        context, theta, C, V = self.context, self.theta, self.C, self.R[:m]
        curvature = self.kappa[:m]
        slope = self.slope[:m] + curvature * self.scores(theta)[:m]
        g, A = self._derivatives(V, slope, curvature, theta)
        trial = context.H(self._sparse_minimiser(A, A @ theta[C] - g, k, theta))
        mean = float(self.values.mean())
        move = (trial - theta)[C]
        if context.left < m or not move.any():
            return g, A
        trial_values = (yield from context.values([trial], self.order[:m]))[0]
        predicted = mean + float(g @ move) + 0.5 * float(move @ A @ move)
        tolerance = 5 * self.noise / math.sqrt(m) + 1e-9 * abs(float(self.f0.mean()))
        error = abs(predicted - float(trial_values.mean()))
        self.quadratic = error <= _QUADRATIC_TOLERANCE * abs(mean - predicted) + tolerance
        self.pending.append((trial, trial_values))
        if float(trial_values.mean()) < mean:
            self._accept(trial, trial_values)
            g = g + A @ move
        return g, A

    def _derivatives(self, V: Array, slope: Array, curvature: Array, theta: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian on C of the mean of the modelled components.

        Curvatures have a small positive lower limit, so that the Hessian is positive definite.
        """
        m, C = len(V), self.C
        squares = np.maximum(np.einsum("rc,rc->r", V, V), _TINY)  # each score has the unit of its own component
        lowest = 1e-4 * float(np.median(np.abs(curvature) * squares)) / squares
        # A straight piece is assumed to continue for a thousand natural lengths, or longer if all l_i seem quadratic.
        share = 1e-7 if self.quadratic else 1e-3
        lowest = lowest + share / (np.sqrt(squares) * self.diagnosis.gradient_length(self.context.d))
        curvature = np.maximum(curvature, lowest)
        g = V.T @ slope / m + self.lam * (theta - self.centre)[C]
        return g, (V * curvature[:, None]).T @ V / m + self.lam * np.eye(C.size)

    def _accept(self, theta: Array, values: Array) -> None:
        """Move to theta; it becomes the iterate of the run only if the values of all components are known."""
        self.theta, self.values = theta, values
        if values.size == self.context.n:
            self.context.move(theta, float(values.mean()))

    # Components that are not quadratic: each l_i is a curve through the values seen so far.

    def _fit_curves(self, m: int, k: int) -> Asks:
        """Minimise the modelled F without calls, ask for the values there, add them to the curves, and repeat."""
        context, C, V = self.context, self.C, self.R[:m]
        yield from self._sample_curves(m)
        all_components, mean0 = m == context.n, abs(float(self.f0[:m].mean()))
        noise_margin = 2 * self.noise / math.sqrt(m)
        negligible = (1e-10 if all_components else 1e-2) * mean0
        g, A = np.zeros(C.size), np.eye(C.size)
        trust_radius = _FIRST_TRUST_RADIUS * self._curvature_length()
        for _ in range(_MAX_CURVE_ROUNDS):
            splines = self.curves.centre(self.scores(self.theta)[:m], self._spacing(V))
            trial, predicted, g, A = self._minimise(splines, V, k, trust_radius, negligible + noise_margin)
            trial = context.H(trial)
            mean = float(self.values[:m].mean())
            if not mean - predicted > negligible + noise_margin or context.left < m:
                return g, A
            trial_values = (yield from context.values([trial], self.order[:m]))[0]
            self._add_to_curves(trial, trial_values)
            decrease = mean - float(trial_values.mean())
            if decrease > 0.1 * (mean - predicted):
                trust_radius = 2 * trust_radius if decrease > 0.5 * (mean - predicted) else trust_radius
            else:
                moves = np.abs(self.scores(trial)[:m] - self.scores(self.theta)[:m]) / self._norms(V)
                trust_radius = 0.3 * min(trust_radius, float(moves.max()))
            if decrease > 0:
                self._accept(trial, trial_values)
                if decrease < negligible + noise_margin:
                    return g, A
        return g, A

    @staticmethod
    def _norms(V: Array) -> Array:
        """Return the norms of rows, at least tiny."""
        return np.asarray(np.maximum(np.linalg.norm(V, axis=1), _TINY))

    def _spacing(self, V: Array) -> Array:
        """Return the smallest useful distance between two samples of a curve."""
        return np.asarray(self._norms(V) * self.diagnosis.central_step(self.context.d))

    def _curvature_length(self) -> float:
        """Return how far along a row the curvature shows: the median over the components."""
        lengths = 1 / np.maximum(np.abs(self.kappa) * self._norms(self.R), _TINY)
        natural = self.diagnosis.gradient_length(self.context.d)
        return min(max(float(np.median(lengths)), 0.03 * natural), 3 * natural)

    def _without_l2_term(self, point: Array, values: Array) -> Array:
        """Subtract the l2 term from values at a point."""
        return np.asarray(values - self._l2_change(point))

    def _add_to_curves(self, theta: Array, values: Array) -> None:
        """Add the values of the first components at theta as one sample of each curve."""
        m = values.size
        z = self.scores(theta)[:m]
        if m < len(self.curves):
            z = np.concatenate([z, self.curves.z[m:, -1]])
            samples = np.concatenate([self._without_l2_term(theta, values), self.curves.l[m:, -1]])
            self.curves.add(z, samples)
        else:
            self.curves.add(z, self._without_l2_term(theta, values))

    def _sample_curves(self, m: int) -> Asks:
        """Give components without a curve their first samples: the start and four points along the row."""
        context, known = self.context, len(self.curves)
        if known < m:
            V, components = self.R[known:m], self.order[known:m]
            curves = Curves(m - known)
            curves.add(np.zeros(m - known), self._without_l2_term(context.theta0, self.f0[known:m]))
            norms = self._norms(V)
            unit_rows, length = V / norms[:, None], self._curvature_length()
            for share in _CURVE_SAMPLES:
                if context.left < 2 * m:
                    break
                points = context.inside(context.theta0 + self._in_full_space(unit_rows * (share * length)))
                values = yield from context.each(points, components)
                z = np.einsum("rc,rc->r", (points - context.theta0)[:, self.C], V)
                curves.add(z, values - self._l2_change(points))
            if self.theta is not context.theta0:
                curves.add(
                    self.R[known:m] @ (self.theta - context.theta0)[self.C],
                    self._without_l2_term(self.theta, self.values[known:m]),
                )
            self.curves.extend(curves)
        for theta, values in self.pending:
            if theta is not self.theta and values.size >= m:
                self._add_to_curves(theta, values[:m])
        self.pending = []

    def _minimise(
        self, splines: Splines, V: Array, k: int, trust_radius: float, negligible: float
    ) -> tuple[Array, float, Array, Array]:
        """Find a sparse minimiser of the modelled F without calls.

        Other supports are searched only if descent alone gains less than a hundred times what is negligible:
        otherwise new values are worth more than a better minimiser of the present model.

        Arguments
        ---------
        splines: the curves l_i around the current point.
        V: array of shape (m, |C|), the rows.
        k: int, the largest number of non-zeros.
        trust_radius: float, how far the scores may move, in the unit of a row of norm 1.
        negligible: float, a decrease that is not worth a round of calls.

        Returns
        -------
        the point, the modelled F there, its gradient and its Hessian on C.
        """
        context, C, start = self.context, self.C, self.theta
        z0, norms = V @ (start - context.theta0)[C], self._norms(V)

        def F(theta: Array) -> tuple[float, Array, Array]:
            value, slope, curvature = splines.at(V @ (theta - context.theta0)[C])
            return float(value.mean()) + float(self._l2_change(theta)), slope, curvature

        def trusted(trial: Array) -> bool:
            if trust_radius == math.inf:
                return True
            return bool((np.abs(V @ (trial - context.theta0)[C] - z0) / norms).max() <= trust_radius)

        def descend(theta: Array) -> tuple[Array, float]:
            """Make damped sparse Newton steps until none lowers the modelled F."""
            value, slope, curvature = F(theta)
            for iteration in range(20):
                g, A = self._derivatives(V, slope, curvature, theta)
                damping, moved = 0.0, False
                for _ in range(8):
                    damped = A + (damping * float(np.trace(A)) / C.size) * np.eye(C.size)
                    b = damped @ theta[C] - g
                    only_current = iteration > 0 or damping > 0
                    trial = self._sparse_minimiser(damped, b, k, theta, only_current_support=only_current)
                    if trusted(trial):
                        at_trial = F(trial)
                        if at_trial[0] < value:
                            moved = True
                            break
                    damping = max(8 * damping, 0.03)
                if not moved:
                    break
                decrease = value - at_trial[0]
                theta, (value, slope, curvature) = trial, at_trial
                if decrease <= 1e-12 * abs(value):
                    break
            return theta, value

        def refit(theta: Array, S: Indices) -> tuple[Array, float]:
            """Minimise the modelled F on the support C[S] with Newton's method."""
            W = V[:, S]
            value, slope, curvature = F(theta)
            for _ in range(15):
                g = W.T @ slope / len(W) + self.lam * (theta - self.centre)[C[S]]
                A = (W * np.maximum(curvature, 0.0)[:, None]).T @ W / len(W) + self.lam * np.eye(S.size)
                shift, moved = 1e-9 * float(np.trace(A)) / S.size + _TINY, False
                for _ in range(6):
                    trial = theta.copy()
                    trial[C[S]] -= splicing.minimiser(A + shift * np.eye(S.size), g)
                    trial = context.inside(trial)
                    at_trial = F(trial)
                    if at_trial[0] < value:
                        moved = True
                        break
                    shift = max(16 * shift, 0.03 * float(np.trace(A)) / S.size)
                if not moved:
                    break
                decrease = value - at_trial[0]
                theta, (value, slope, curvature) = trial, at_trial
                if decrease <= 1e-6 * abs(value):
                    break
            return theta, value

        def exchange(theta: Array, value: float) -> tuple[Array, float]:
            """Drop a coordinate, refit the others, add the most promising one; return the first improvement."""
            support = np.flatnonzero(theta[C])
            forced = np.isin(C[support], context.constraint.include)
            _, slope, curvature = F(theta)
            mean_curvature = (V[:, support] ** 2 * np.maximum(curvature, 0)[:, None]).mean(axis=0) + self.lam
            loss = theta[C[support]] ** 2 * mean_curvature
            for a in np.argsort(loss, kind="stable")[:8].tolist():
                if forced[a]:
                    continue
                rest = np.delete(support, a)
                without = theta.copy()
                without[C[support[a]]] = 0.0
                if rest.size:
                    without, _ = refit(without, rest)
                _, slope, curvature = F(without)
                g, A = self._derivatives(V, slope, curvature, without)
                gain = g * g / np.diag(A)
                gain[support] = -1.0
                for j in np.argsort(-gain, kind="stable")[:2].tolist():
                    trial, trial_value = refit(without, np.append(rest, j))
                    if trial_value < value - 1e-9 * abs(value) and trusted(trial):
                        return trial, trial_value
            return theta, value

        start_value = F(start)[0]
        theta, value = descend(start)
        large_decrease = start_value - value > 100 * negligible
        if start is not context.theta0 and not large_decrease and trusted(context.theta0):
            other = descend(context.theta0)
            theta, value = other if other[1] < value else (theta, value)
        for _ in range(0 if large_decrease else 3 * k):
            trial, _ = exchange(theta, value)
            if trial is theta:
                break
            theta, value = descend(trial)
        restart = not large_decrease and len(V) == context.n and np.count_nonzero(theta) > 1
        for _ in range(12 if restart else 0):  # from a random half of the support
            half = theta * (context.rng.uniform(context.d) < 0.5)
            other = descend(exchange(context.constraint.project(half), math.inf)[0])
            theta, value = other if other[1] < value and trusted(other[0]) else (theta, value)
        _, slope, curvature = F(theta)
        return theta, value, *self._derivatives(V, slope, curvature, theta)

    def _local_derivatives(self, m: int) -> Generator[Probes, Answers, tuple[Array, Array]]:
        """Measure l_i' and l_i'' at theta with two values along each row."""
        context, V = self.context, self.R[:m]
        norms = np.maximum(np.linalg.norm(V, axis=1), _TINY)
        move = self._in_full_space(V / norms[:, None] * self.diagnosis.central_step(context.d))
        points = np.concatenate([context.inside(self.theta + move), context.inside(self.theta - move)])
        components = np.concatenate([self.order[:m]] * 2)
        values = yield from context.each(points, components)
        l2_change = self._l2_change(points) - self._l2_change(self.theta)
        z = np.einsum("rc,rc->r", (points - self.theta)[:, self.C], np.concatenate([V, V]))
        change = values - np.concatenate([self.values[:m]] * 2) - l2_change
        z1, z2, c1, c2 = z[:m], z[m:], change[:m], change[m:]
        gap = np.where(np.abs(z1 - z2) > 0, z1 - z2, _TINY)
        with np.errstate(all="ignore"):
            curvature = 2 * (c1 / z1 - c2 / z2) / gap
            slope = c1 / z1 - 0.5 * curvature * z1
        return np.nan_to_num(slope, posinf=0, neginf=0), np.nan_to_num(curvature, posinf=0, neginf=0)

    def _sparse_minimiser(
        self, A: Array, b: Array, k: int, theta: Array, *, only_current_support: bool = False
    ) -> Array:
        """Minimise the quadratic model on C within the constraint.

        With ``only_current_support``, exchanges start from the support of theta alone.
        """
        context, C = self.context, self.C
        constraint = context.constraint
        forced = np.flatnonzero(np.isin(C, constraint.include))
        start = np.flatnonzero(theta[C])
        starts = [start] if start.size else []
        out = np.zeros(context.d)
        out[C] = splicing.best_subset(A, b, k, starts=starts, forced=forced, only_given_starts=only_current_support)
        return splicing.make_feasible(A, b, out, C, constraint)

    # The whole search.

    def search(self) -> Generator[Probes, Answers, str]:
        """Learn rows of more and more components and fit theta to them; returns the reason for stopping."""
        context = self.context
        n, k = context.n, context.k
        if not self.C.size:
            return "No coordinate is free to change."
        if context.constraint.groups is not None:
            return "The single-index model does not support groups."
        few_coordinates = self.C.size <= 3 * k
        growth = 1 + min(1.0, max(0.25, 50 / self.C.size))
        m = min(n, max(64, 4 * self.C.size)) if few_coordinates else min(n, max(_FIRST_ROWS, k))
        tested = False
        while True:
            learnt = (yield from self.learn_rows(min(m, _TESTED_ROWS))) and (yield from self.learn_rows(m))
            if not learnt:
                if self.several_scores:
                    return "The components are not functions of one score."
                return "The budget does not cover the rows of more components."
            if self.C.size > MAX_MODELLED_COORDINATES:
                curvature = np.maximum(self.kappa, 0.0) @ self.R**2 / m
                curvature = np.maximum(curvature, 1e-12 * curvature.max())
                self._keep_promising(self.slope @ self.R / m, curvature, MAX_MODELLED_COORDINATES)
            sparsity = k if m >= 3 * k or m == n else max(1, m // 3)
            sparsity = max(sparsity, context.constraint.include.size)
            g, A = yield from self.fit(m, sparsity)
            if not tested:
                tested = True
                error = yield from self._prediction_error(min(m, 5))
                context.remark(f"The single-index model predicts slopes with an error of {100 * error:.2g} %.")
                if error > _MAX_PREDICTION_ERROR:
                    self.several_scores = True
                    self.start_gradients = self.R + self.lam * (context.theta0 - self.centre)[self.C]
                    return "The components are not functions of one score."
            if m == n:
                break
            if few_coordinates:
                m = min(n, 2 * m)
                continue
            held_out = self.order[m : m + max(50, m)]
            if context.left < 2 * held_out.size:
                return "The budget does not cover the rows of more components."
            start_values = yield from context.starts(held_out)
            values = (yield from context.values([self.theta], held_out))[0]
            if significantly_lower(values, start_values, n):
                context.move(self.theta)
            if float(values.mean()) < _HELD_OUT_RATIO * float(start_values.mean()):
                self._keep_promising(g, np.diag(A), 3 * k)
                m = n
            else:
                m = min(n, math.ceil(growth * m))
        yield from self._reconsider_dropped(A)
        self.converged = True
        return "The single-index model has converged."

    def _prediction_error(self, count: int) -> Generator[Probes, Answers, float]:
        """Measure how well the model predicts slopes along a random direction at theta: the test of its form."""
        context = self.context
        chosen = np.argsort(-np.linalg.norm(self.R, axis=1), kind="stable")[:count]
        components, V = self.order[chosen], self.R[chosen]
        w = np.zeros(context.d)
        w[self.C] = context.rng.normal(self.C.size)
        w /= max(float(np.linalg.norm(w)), _TINY)
        norms = np.maximum(np.linalg.norm(V, axis=1), _TINY)
        U = self._in_full_space(V / norms[:, None])
        h = self.diagnosis.central_step(context.d)
        t = self.theta
        move = np.tile(h * w, (count, 1))
        points = t + np.concatenate([move, -move, h * U, -h * U])
        inside = context.inside(points)
        f = (yield from context.each(inside, np.concatenate([components] * 4))).reshape(4, -1)
        slope_along_w, slope_along_row = (f[0] - f[1]) / (2 * h), (f[2] - f[3]) / (2 * h)
        l2_gradient = self.lam * (t - self.centre)
        predicted = (slope_along_row - U @ l2_gradient) * (U @ w) + float(l2_gradient @ w)
        floor = 5 * self.noise / h
        error = np.abs(slope_along_w - predicted) / (np.abs(slope_along_w) + np.abs(predicted) + floor)
        return float(np.median(error))

    def _keep_promising(self, g: Array, curvature: Array, size: int) -> None:
        """Restrict the model to the coordinates of largest predicted gain, and those that must stay."""
        diagonal = np.sqrt(np.maximum(curvature, _TINY))
        x = self.theta[self.C]
        score = np.where((x != 0) | (self.context.theta0[self.C] != 0), np.inf, np.abs(g) / diagonal)
        score[np.isin(self.C, self.context.constraint.include)] = np.inf
        keep = np.sort(np.argsort(-score, kind="stable")[: max(size, np.count_nonzero(score == np.inf))])
        self.C, self.R = self.C[keep], self.R[:, keep]

    def _reconsider_dropped(self, A: Array) -> Asks:
        """Reconsider the coordinates that were dropped, using the components whose rows are complete."""
        context = self.context
        free = context.free()
        for _ in range(_MAX_RECHECKS):
            if self.C.size == free.size or not len(self.complete_rows):
                return
            m = len(self.complete_rows)
            if context.left < 3 * m:
                return
            slope, curvature = yield from self._local_derivatives(m)
            g = self.complete_rows.T @ slope / m + self.lam * (self.theta - self.centre)[free]
            h = (self.complete_rows**2 * np.maximum(curvature, 0)[:, None]).sum(axis=0) / m + self.lam
            h = np.maximum(h, _TINY)
            gain = g * g / (2 * h)
            gain[np.isin(free, self.C)] = 0.0
            x = self.theta[self.C]
            loss = 0.5 * (x**2 * np.diag(A))[x != 0]
            smallest_loss = float(loss.min()) if np.count_nonzero(x) >= context.k else 0.0
            promising = np.flatnonzero(gain > max(smallest_loss, 1e-9 * abs(float(self.f0.mean()))))
            if not promising.size:
                return
            promising = free[promising[np.argsort(-gain[promising], kind="stable")][: context.k]]
            if context.left < (context.n - m) * promising.size + 4 * context.n:
                return
            yield from self._learn_columns(promising)
            previous = self.theta
            _, A = yield from self.fit(context.n, context.k)
            if np.array_equal(previous != 0, self.theta != 0):
                return

    def _learn_columns(self, coordinates: Indices) -> Asks:
        """Learn further coordinates of the rows that are not complete."""
        context, m = self.context, len(self.complete_rows)
        free = context.free()
        components = self.order[m : len(self.R)]
        base = self.f0[m : len(self.R)]
        slopes, h = yield from context.slopes(context.theta0, coordinates, self.diagnosis.mu, components, base)
        new = slopes - self.lam * (context.theta0 - self.centre)[coordinates]
        curvatures = self.kappa[m : len(self.R)]
        new = new - 0.5 * h * (curvatures[:, None] * new**2 + self.lam)
        columns = np.concatenate([self.complete_rows[:, np.searchsorted(free, coordinates)], new])
        C = np.concatenate([self.C, coordinates])
        order = np.argsort(C, kind="stable")
        self.C = C[order]
        self.R = np.ascontiguousarray(np.concatenate([self.R, columns], axis=1)[:, order])
