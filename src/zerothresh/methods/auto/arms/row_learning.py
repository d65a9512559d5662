"""Learning the rows of the single-index model from differences at the start, and testing the model's form."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.index_rows import IndexRows, balanced_move, common_minimum, norms
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.settings import ROWS, TINY
from zerothresh.methods.program.context import Asks, Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class RowLearner:
    """Learns the rows of components, one group after the other.

    Arguments
    ---------
    context: the run.
    diagnosis: what the first calls found.
    order: int64 array (n,), the components in the order in which they are learnt.
    """

    def __init__(self, context: Context, diagnosis: Diagnosis, order: Indices) -> None:
        self.context, self.diagnosis, self.order = context, diagnosis, order
        self.data = IndexRows(context.theta0, context.free())
        self.several_scores = False  # whether the components turned out to have another form
        self._norms = np.empty(0)  # of the gradients at the start, without the l2 term
        self._often_weak = False  # whether many components are stationary at the start
        self._elsewhere = list[tuple[Indices, Array, Array]]()  # positions learnt at another point, it, values there

    def learn(self, m: int) -> Generator[Probes, Answers, bool]:
        """Learn the rows of the first m components; False if the budget or the form of F does not allow it."""
        context, data = self.context, self.data
        known = len(data)
        if m <= known:
            return True
        components, C = self.order[known:m], data.C
        if context.left < components.size * (C.size * (1 + self.diagnosis.central) + 2) + m:
            return False
        base = yield from context.starts(components)
        if self._often_weak:
            rows, kappa, slope = yield from self._rows_elsewhere(np.arange(known, m))
            data.append(rows, base, slope, kappa)
            return True
        gradients, h = yield from self._gradients(C, components, base)
        if known == 0:
            if self._strong(gradients).size < 2 and components.size < min(context.n, ROWS.first):
                return (yield from self.learn(min(context.n, m + ROWS.tested)))  # what is known is not asked again
            fits = yield from self._fit_l2_term(gradients, components, base)
            if not fits:
                self.several_scores = True
                return False
            yield from self._find_centre(gradients, components, base)
        rows = gradients - data.lam * (context.theta0 - data.centre)[C]
        kappa = yield from self._start_curvatures(rows, components, base)
        rows = self._unbiased(rows, kappa, h)
        slope = np.ones(components.size)
        lengths = norms(rows)
        self._norms = np.concatenate([self._norms, lengths])
        row_noise = self.diagnosis.noise / self.diagnosis.mu * np.sqrt(C.size)
        weak = np.flatnonzero(
            lengths < max(ROWS.weak * float(np.quantile(self._norms, ROWS.typical)), ROWS.weak_deviations * row_noise)
        )
        if weak.size and context.left > weak.size * (C.size + 1) + m:
            self._often_weak = weak.size > ROWS.often_weak * components.size
            rows[weak], kappa[weak], slope[weak] = yield from self._rows_elsewhere(known + weak)
        data.append(rows, base, slope, kappa)
        return True

    def learn_columns(self, coordinates: Indices) -> Asks:
        """Learn coordinates that were dropped earlier for all components that do not know them."""
        data, first = self.data, 0
        for block in data.blocks:
            last = first + len(block.rows)
            missing = np.setdiff1d(coordinates, block.coordinates)
            if missing.size:
                components, base = self.order[first:last], data.f0[first:last]
                gradients, h = yield from self._gradients(missing, components, base)
                rows = gradients - data.lam * (self.context.theta0 - data.centre)[missing]
                rows = self._unbiased(rows, data.kappa[first:last], h)
                for positions, point, values in self._elsewhere:
                    here = np.flatnonzero((first <= positions) & (positions < last))
                    chosen = positions[here]
                    rows[chosen - first] = yield from self._rows_at(point, missing, self.order[chosen], values[here])
                block.add(missing, rows)
            first = last
        data.extend()

    def _gradients(
        self, C: Indices, components: Indices, base: Array
    ) -> Generator[Probes, Answers, tuple[Array, Array]]:
        """Return gradients at the start on C, and the difference steps; what the run knows is not asked again."""
        context, diagnosis = self.context, self.diagnosis
        steps = context.steps_inside(context.theta0, C, diagnosis.mu)
        if C.size < context.free().size:
            slopes = context.slopes(context.theta0, C, diagnosis.mu, components, base, central=diagnosis.central)
            return (yield from slopes)
        known = context.remembered_gradients()
        new = np.array([i not in known for i in components.tolist()])
        if new.any():
            slopes = context.slopes(
                context.theta0, C, diagnosis.mu, components[new], base[new], central=diagnosis.central
            )
            context.remember_gradients(components[new], (yield from slopes)[0])
        return np.array([known[i] for i in components.tolist()]), steps

    def _unbiased(self, rows: Array, kappa: Array, h: Array) -> Array:
        """Subtract the bias of forward differences, h/2 times the second derivative along a coordinate."""
        if self.diagnosis.central and self.context.box is None:
            return rows
        return rows - 0.5 * h * (kappa[:, None] * rows**2 + self.data.lam)

    @staticmethod
    def _strong(gradients: Array) -> Indices:
        """Return the gradients that are not those of components stationary at the start, the largest first."""
        lengths = norms(gradients)
        order = np.argsort(-lengths, kind="stable")
        return np.asarray(order[lengths[order] > ROWS.weak * lengths.max()], np.int64)

    # The l2 term.

    def _moves_inside(self) -> tuple[Array, Array]:
        """Return the room on C to both sides, as the sign of the only side that is open, or 0 for both; and the room."""
        context, C = self.context, self.data.C
        if context.box is None:
            return np.zeros(C.size), np.full(C.size, np.inf)
        up, down = context.box.high[C] - context.theta0[C], context.theta0[C] - context.box.low[C]
        inward = np.where(down <= 0, 1.0, np.where(up <= 0, -1.0, 0.0))
        return inward, np.where(inward > 0, up, np.where(inward < 0, down, np.minimum(up, down)))

    def _second_difference(
        self, move: Array, component: Indices, base: float, slope: float
    ) -> Generator[Probes, Answers, float]:
        """Return twice the second-order change of a component over a move on C, from both sides if bounds allow it."""
        context, data = self.context, self.data
        full = data.full(move[None])[0]
        points = np.array([context.theta0 + full, context.theta0 - full])
        both = bool((context.inside(points[1]) == points[1]).all())
        points = context.inside(points[: 1 + both])
        values = yield from context.each(points, np.repeat(component, len(points)))
        if both:
            return float(values.sum()) - 2 * base
        return 2 * (float(values[0]) - base - slope)

    def _fit_l2_term(self, gradients: Array, components: Indices, base: Array) -> Generator[Probes, Answers, bool]:
        """Measure lam: only the l2 term changes on a move that leaves the score as it is.

        Returns False if the components disagree about lam, so that they do not have the form of the model.
        """
        context, data, C = self.context, self.data, self.data.C
        lengths = norms(gradients)
        chosen = self._strong(gradients)[: ROWS.tested]
        if C.size < ROWS.tested:
            return True
        inward, room = self._moves_inside()
        random = context.rng.normal(chosen.size * C.size).reshape(chosen.size, C.size)
        estimates, floors = [], []
        for a, w in zip(chosen, random, strict=True):
            move = balanced_move(gradients[a], context.theta0[C], w, inward)
            length = float(np.linalg.norm(move))
            if not length > 0:
                return True
            with np.errstate(divide="ignore"):
                longest = float(np.min(room / np.maximum(np.abs(move), TINY)))
            move *= min(self.diagnosis.length / length, longest)
            length = float(np.linalg.norm(move))
            slope = float(gradients[a] @ move)
            change = yield from self._second_difference(move, components[a : a + 1], float(base[a]), slope)
            estimates.append(change / square(length))
            slope_noise = self.diagnosis.noise * length / self.diagnosis.mu if inward.any() else 0.0
            floors.append((self.diagnosis.noise + slope_noise + ROWS.l2_share * lengths[a] * length) / square(length))
        median, floor = float(np.median(estimates)), float(max(floors))
        deviation = float(np.abs(np.array(estimates) - median).max())
        if deviation > ROWS.form_tolerance * abs(median) + ROWS.form_deviations * floor:
            return False
        data.lam = median if abs(median) > ROWS.l2_deviations * floor else 0.0
        return True

    def _find_centre(self, gradients: Array, components: Indices, base: Array) -> Asks:
        """Decide whether the l2 term is centred at 0 or at the start.

        If it is centred at 0, v_i is the gradient without that of the l2 term, and a move orthogonal to v_i sees no
        other curvature than lam.
        """
        context, data, C = self.context, self.data, self.data.C
        theta = context.theta0[C]
        if not data.lam or not theta.any() or C.size < ROWS.tested:
            return
        a = int(np.argmax(norms(gradients)))
        row = gradients[a] - data.lam * theta
        w = theta - row * (float(row @ theta) / max(float(row @ row), TINY))
        length = float(np.linalg.norm(w))
        if length <= ROWS.shortest_move * float(np.linalg.norm(theta)):
            return
        _, room = self._moves_inside()
        w *= min(self.diagnosis.length / length, float(np.min(room / np.maximum(np.abs(w), TINY))))
        if not w.any():
            return
        slope = float(gradients[a] @ w)
        change = yield from self._second_difference(w, components[a : a + 1], float(base[a]), slope)
        expected = data.lam * float(w @ w)
        if abs(change - expected) > ROWS.form_tolerance * abs(expected) + ROWS.centre_deviations * self.diagnosis.noise:
            data.centre = context.theta0

    # The functions l_i at the start.

    def _start_curvatures(self, rows: Array, components: Indices, base: Array) -> Generator[Probes, Answers, Array]:
        """Return l_i'' at the start in the unit in which l_i' = 1: from a common minimum, or one value along each row."""
        data = self.data
        shared = None if self.diagnosis.random else common_minimum(data.f0, data.kappa, self.diagnosis.noise)
        if shared is None:
            return (yield from self._measured_curvatures(rows, components, base, data.theta0))
        minimum, error = shared
        clear = base - minimum > error / ROWS.same_minimum
        kappa = 0.5 / np.where(clear, base - minimum, 1.0)
        rest = self._measured_curvatures(rows[~clear], components[~clear], base[~clear], data.theta0)
        kappa[~clear] = yield from rest
        return np.asarray(kappa)

    def _measured_curvatures(
        self, rows: Array, components: Indices, values: Array, point: Array
    ) -> Generator[Probes, Answers, Array]:
        """Measure l_i'' at a point where l_i' = 1 with one further value along each row."""
        context, data = self.context, self.data
        move = data.full(rows / norms(rows)[:, None] * -self.diagnosis.curvature_step(context.d))
        points = context.inside(point + move)
        changes = (yield from context.each(points, components)) - values
        changes = changes - (data.l2_change(points) - data.l2_change(point))
        z = np.einsum("rc,rc->r", (points - point)[:, data.C], rows)
        with np.errstate(all="ignore"):
            kappa = 2 * (changes - z) / np.maximum(z * z, TINY)
        return np.where(np.isfinite(kappa), kappa, 0.0)

    def _rows_at(
        self, point: Array, C: Indices, components: Indices, values: Array
    ) -> Generator[Probes, Answers, Array]:
        """Measure the gradients of l_i(v_i . theta) at a point on C."""
        central = self.diagnosis.central
        slopes, _ = yield from self.context.slopes(point, C, self.diagnosis.mu, components, values, central=central)
        return np.asarray(slopes - self.data.lam * (point - self.data.centre)[C])

    def _rows_elsewhere(self, positions: Indices) -> Generator[Probes, Answers, tuple[Array, Array, Array]]:
        """Learn the rows of components that are stationary at the start from a random point nearby.

        Returns the rows, and l_i'' and l_i' at the start.
        """
        context, data, C = self.context, self.data, self.data.C
        if self._elsewhere:
            point = context.theta0.copy()
            point[C] = self._elsewhere[0][1][C]  # a move along dropped coordinates would change scores unseen
        else:
            w = np.zeros(context.d)
            w[C] = context.rng.normal(C.size)
            point = context.inside(context.theta0 + (self.diagnosis.length / max(float(np.linalg.norm(w)), TINY)) * w)
        components = self.order[positions]
        values = (yield from context.values([point], components))[0]
        self._elsewhere.append((positions, point, values))
        rows = yield from self._rows_at(point, C, components, values)
        kappa = yield from self._measured_curvatures(rows, components, values, point)
        return rows, kappa, 1.0 - kappa * (rows @ (point - context.theta0)[C])

    def prediction_error(self, theta: Array) -> Generator[Probes, Answers, float]:
        """Measure how well the model predicts slopes along a random direction at theta: the test of its form."""
        context, data = self.context, self.data
        count = min(ROWS.checked, len(data))
        chosen = np.argsort(-norms(data.V), kind="stable")[:count]
        w = np.zeros(context.d)
        w[data.C] = context.rng.normal(data.C.size)
        w /= max(float(np.linalg.norm(w)), TINY)
        U = data.full(data.V[chosen] / norms(data.V[chosen])[:, None])
        step = self.diagnosis.central_step(context.d)
        moves = np.concatenate([np.tile(w, (count, 1)), U])
        ahead, back = context.inside(theta + step * moves), context.inside(theta - step * moves)
        f = yield from context.each(np.concatenate([ahead, back]), np.tile(self.order[chosen], 4))
        f = f.reshape(2, 2 * count)
        change = f[0] - f[1] - (data.l2_change(ahead) - data.l2_change(back))
        z = np.einsum("rc,rc->r", (ahead - back)[:, data.C], np.tile(data.V[chosen], (2, 1)))
        z_random, z_row = z[:count], z[count:]
        predicted = change[count:] * z_random / np.where(z_row != 0, z_row, np.inf)
        floor = ROWS.slope_deviations * self.diagnosis.noise
        error = np.abs(change[:count] - predicted) / (np.abs(change[:count]) + np.abs(predicted) + floor)
        return float(np.median(error))
