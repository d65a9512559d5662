"""Learning the rows of the single-index model from differences at the start, and testing the model's form."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.arms.l2_term import SharedL2Term
from zerothresh.methods.auto.findings import Diagnosis
from zerothresh.methods.auto.models.index_rows import IndexRows, common_minimum, norms, strong_rows
from zerothresh.methods.auto.settings.diagnosis_settings import DIAGNOSIS
from zerothresh.methods.auto.settings.floating_point import EPS, TINY
from zerothresh.methods.auto.settings.single_index_settings import INDEX, ROWS
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
        self.shared_minimum: tuple[float, float] | None = None  # of all l_i, and its error, if they are squares
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
        rounding = DIAGNOSIS.rounding * EPS * float(np.abs(base).max())  # that of the first component may be less
        self.diagnosis = replace(self.diagnosis, noise=max(self.diagnosis.noise, rounding))
        gradients, h = yield from self._gradients(C, components, base)
        if known == 0:
            if strong_rows(gradients).size < 2 and components.size < min(context.n, ROWS.first):
                return (yield from self.learn(min(context.n, m + ROWS.tested)))  # what is known is not asked again
            if (yield from self._length_is_too_short(gradients, components, base)):
                gradients, h = yield from self._gradients(C, components, base)
            l2_term = SharedL2Term(context, self.diagnosis, data)
            if not (yield from l2_term.fit(gradients, components, base)):
                self.several_scores = True
                return False
            yield from l2_term.find_centre(gradients, components, base)
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

    def keep(self, positions: Indices) -> None:
        """Forget all components but those at these positions, which are in increasing order."""
        self.data.keep(positions)
        for place, (learnt, point, values) in enumerate(self._elsewhere):
            kept = np.isin(learnt, positions)
            self._elsewhere[place] = np.searchsorted(positions, learnt[kept]), point, values[kept]

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
        context, mu, central = self.context, self.diagnosis.mu, self.diagnosis.central
        steps = context.steps_inside(context.theta0, C, mu)
        if C.size < context.free().size:
            return (yield from context.slopes(context.theta0, C, mu, components, base, central=central))
        known = context.remembered_gradients()
        new = np.array([i not in known for i in components.tolist()])
        if new.any():
            slopes = context.slopes(context.theta0, C, mu, components[new], base[new], central=central)
            context.remember_gradients(components[new], (yield from slopes)[0])
        return np.array([known[i] for i in components.tolist()]), steps

    def _unbiased(self, rows: Array, kappa: Array, h: Array) -> Array:
        """Subtract the bias of forward differences, h/2 times the second derivative along a coordinate."""
        if self.diagnosis.central and self.context.box is None:
            return rows
        return rows - 0.5 * h * (kappa[:, None] * rows**2 + self.data.lam)

    def _length_is_too_short(
        self, gradients: Array, components: Indices, base: Array
    ) -> Generator[Probes, Answers, bool]:
        """Test the natural length on the component of the largest gradient; if it is far too short, correct it.

        The diagnosis may have met a component that hardly depends on theta, and whose length says nothing.
        """
        context, C = self.context, self.data.C
        a = int(np.argmax(norms(gradients)))
        downhill = self.data.full(-gradients[a : a + 1] / norms(gradients[a : a + 1])[:, None])[0]
        natural, noise = self.diagnosis.gradient_length(context.d), self.diagnosis.noise
        step = natural
        for _ in range(ROWS.lengthenings):
            point = context.inside(context.theta0 + step * downhill)
            value = float((yield from context.each(point[None], components[a : a + 1]))[0])
            expected = float(gradients[a] @ (point - context.theta0)[C])
            hidden = INDEX.noise_deviations * noise * (1 + step / self.diagnosis.mu)
            if abs(value - float(base[a]) - expected) > max(ROWS.visible_bend * abs(expected), hidden):
                break
            step *= ROWS.lengthening
        if step < ROWS.lengthening**2 * natural:
            return False
        length = step * np.sqrt(context.d)
        curvature = float(norms(gradients)[a]) / step / context.d
        self.diagnosis = replace(self.diagnosis, length=float(length), curvature=curvature)
        context.remembered_gradients().clear()  # they were measured with steps that were too short
        context.remark(f"The natural length is rather {length:.1g}.")
        return True

    # The functions l_i at the start.

    def _start_curvatures(self, rows: Array, components: Indices, base: Array) -> Generator[Probes, Answers, Array]:
        """Return l_i'' at the start, where l_i' = 1, from a common minimum or from one value along each row."""
        data = self.data
        if self.shared_minimum is None and 0 < len(data) <= ROWS.first and not self.diagnosis.random:
            self.shared_minimum = common_minimum(data.f0, data.slope, data.kappa, self.diagnosis.noise)
        if self.shared_minimum is None:
            return (yield from self._measured_curvatures(rows, components, base, data.theta0))
        minimum, error = self.shared_minimum
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
        context, C = self.context, self.data.C
        if self._elsewhere:
            point = context.theta0.copy()
            point[C] = self._elsewhere[0][1][C]  # a move along dropped coordinates would change scores unseen
        else:
            point = self.elsewhere()
        components = self.order[positions]
        values = (yield from context.values([point], components))[0]
        self._elsewhere.append((positions, point, values))
        rows = yield from self._rows_at(point, C, components, values)
        kappa = yield from self._measured_curvatures(rows, components, values, point)
        return rows, kappa, 1.0 - kappa * (rows @ (point - context.theta0)[C])

    def elsewhere(self) -> Array:
        """Return a random point at the natural length from the start."""
        context = self.context
        move = self.data.full(context.rng.normal(self.data.C.size)[None])[0]
        return context.inside(context.theta0 + move * (self.diagnosis.length / float(np.linalg.norm(move))))

    def has_the_form(self, theta: Array) -> Generator[Probes, Answers, bool]:
        """Test whether the model predicts slopes at another point; if not, the components have several scores."""
        error = yield from self.prediction_error(theta)
        self.context.remark(f"The single-index model predicts slopes with an error of {100 * error:.2g} %.")
        self.several_scores = error > (ROWS.noisy_prediction_error if self.diagnosis.random else ROWS.prediction_error)
        return not self.several_scores

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
        predicted = change[count:] * z[:count] / np.where(z[count:] != 0, z[count:], np.inf)
        rounding = DIAGNOSIS.rounding * EPS * float(np.abs(f).max())  # values here may be larger than at the start
        floor = ROWS.slope_deviations * max(self.diagnosis.noise, rounding)
        size = np.abs(change[:count]) + np.abs(predicted)
        error = np.abs(change[:count] - predicted) / (size + floor)
        return float(np.median(error[size > floor])) if (size > floor).any() else 0.0  # a flat component tells nothing
