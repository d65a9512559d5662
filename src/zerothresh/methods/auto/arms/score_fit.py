"""Fitting a sparse point to components whose rows are known: one step if they are quadratic, else curve by curve."""

from __future__ import annotations

import math

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.methods.auto.arms.curve_samples import samples_along
from zerothresh.methods.auto.arms.row_learning import RowLearner
from zerothresh.methods.auto.findings import Diagnosis
from zerothresh.methods.auto.models.centred_rows import centred_slopes, quadratic_minimiser
from zerothresh.methods.auto.models.curves import Curves, Splines
from zerothresh.methods.auto.models.index_minimiser import ModelledMean
from zerothresh.methods.auto.models.index_rows import norms
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.single_index_settings import CURVES, INDEX, ROWS
from zerothresh.methods.program.context import Asks


class ScoreFit:
    """The point that fits the components learnt so far best, and the functions l_i around it; ``learner``: the rows."""

    def __init__(self, learner: RowLearner) -> None:
        self.learner, self.context = learner, learner.context
        self.data, self.order = learner.data, learner.order
        self.theta = self.context.theta0
        self.values = np.empty(0)  # f_i at theta, of the first components
        self.quadratic = True  # whether all l_i have been quadratic so far
        self.confirmed = False  # whether values that were not used for the fit have shown that
        self.proven = 0.0  # how far from the start a random point was where quadratic components were found to agree
        self.last = False  # whether no coordinates that were dropped will be learnt any more
        self.curves = Curves(0)
        self.sign: Array | None = None  # of the rows, if the last minimiser took their mean over all components for 0

    @property
    def diagnosis(self) -> Diagnosis:
        """What the first calls found, and what the learner has corrected."""
        return self.learner.diagnosis

    @property
    def natural(self) -> float:
        """The natural length along a row."""
        return self.diagnosis.gradient_length(self.context.d)

    def fit(self, k: int) -> Asks:
        """Minimise the mean of all components with rows over k-sparse points, and move theta there."""
        if self.quadratic:
            trial = self.quadratic_minimiser(k)
            yield from self._check_quadratic(trial)
            if self.quadratic:
                return
            self.context.remark("The components are not quadratic in their score.")
            self.theta, self.values, self.sign = self.context.theta, np.empty(0), None
            if not (yield from self.learner.has_the_form(trial)):  # before curves are sampled for nothing
                return
        yield from self._fit_curves(k)

    def accept(self, theta: Array, values: Array) -> None:
        """Move to theta; it becomes the iterate of the run if all values are known and none better is."""
        self.theta, self.values = theta, values
        if values.size == self.context.n and self._improves():
            self.context.move(theta, float(values.mean()))

    def _improves(self) -> bool:
        """Whether theta, with all values known, is at least as good as the iterate of the run.

        If F is not known there, the model predicts it.
        """
        context, mean = self.context, float(self.values.mean())
        if context.theta is self.theta:
            return True
        if context.fun is not None:
            return mean < context.fun
        start = context.theta is context.theta0
        return mean < float(self.data.f0.mean()) if start else mean <= self._predicted_mean(context.theta)

    def _predicted_mean(self, theta: Array) -> float:
        """Return the mean of the modelled components at theta."""
        data = self.data
        if self.quadratic or not len(self.curves):
            return float(data.quadratic_values(theta).mean())
        return float(self._splines().at(data.scores(theta))[0].mean() + data.l2_change(theta))

    def complete_values(self, m: int) -> Asks:
        """Ask for the values at theta that are missing among the first m components."""
        known = self.values.size
        if known < m:
            if self.theta is self.context.theta0:
                more = yield from self.context.starts(self.order[known:m])
            else:
                more = (yield from self.context.values([self.theta], self.order[known:m]))[0]
            self.values = np.concatenate([self.values, more])

    def local_derivatives(self) -> tuple[Array, Array]:
        """Return l_i' and l_i'' at theta as modelled."""
        data = self.data
        if self.quadratic:
            return self.estimating(data.slope + data.kappa * data.scores(self.theta)), data.kappa
        _, slope, curvature = self._splines().at(data.scores(self.theta))
        return slope, curvature

    def estimating(self, slope: Array) -> Array:
        """Return l_i' without what is noise if the mean row of all components is 0, as far as it was found to be."""
        return slope if self.sign is None else centred_slopes(slope, self.data.kappa, self.sign)

    # Quadratic components.

    def quadratic_minimiser(self, k: int) -> Array:
        """Return the feasible minimiser of F if all l_i are quadratic, as far as the rows tell."""
        context, data = self.context, self.data
        theta, self.sign = quadratic_minimiser(
            data, context.constraint, self.natural, k, self.theta, context.n, confirmed=self.confirmed
        )
        return context.H(theta)

    def prediction_noise(self, theta: Array) -> Array:
        """Return the standard deviation that noise gives to f_i at theta minus its quadratic prediction."""
        data, noise, z = self.data, self.diagnosis.noise, self.data.scores(theta)
        row_noise = noise / self.diagnosis.mu * float(np.linalg.norm((theta - self.context.theta0)[data.C]))
        step = self.diagnosis.curvature_step(self.context.d)  # of the second differences, which need the slope as well
        curvature_noise = 2 * noise * (1 + step / self.diagnosis.mu) * np.square(z / (norms(data.V) * step))
        slope = data.slope + data.kappa * z
        return np.asarray(np.sqrt(noise**2 + np.square(slope * row_noise) + np.square(curvature_noise)))

    def agrees(self, theta: Array, values: Array, tolerance: float) -> bool:
        """Whether values of the first components at theta are those that quadratic components have there.

        Every component must agree, up to a share of the typical change and to noise.
        """
        m, predicted = values.size, self.data.quadratic_values(theta)[: values.size]
        typical = float(np.sqrt(np.mean(np.square(predicted - self.data.f0[:m]))))
        allowed = tolerance * typical + INDEX.noise_deviations * self.prediction_noise(theta)[:m]
        return bool((np.abs(values - predicted) <= allowed).all())

    def _check_quadratic(self, trial: Array) -> Asks:
        """Compare values at the model's minimiser with the predicted ones; move there, or set ``quadratic`` to False.

        A few components are asked first. The others follow if they are all there are, because then F is known.
        """
        context, m = self.context, len(self.data)
        final = m == context.n
        if self.values.size == context.n and np.allclose(trial, self.theta, rtol=CURVES.same_point, atol=0.0):
            return
        self.theta, self.values = trial, np.empty(0)
        if self.confirmed and not final:
            return
        fall = float(self.data.f0.mean() - self.data.quadratic_values(trial).mean())
        if not (fall > 0 or self.sign is not None) or context.left < m:
            # If nothing is gained elsewhere than at the start, some curvatures are negative.
            self.quadratic = bool(fall > 0) or np.array_equal(trial, context.theta0)
            self.theta, self.values = context.theta0, self.data.f0
            return
        yield from self.complete_values(min(m, ROWS.checked))
        self.quadratic = self.agrees(trial, self.values, INDEX.quadratic_tolerance)
        if not self.quadratic or not final:
            self.confirmed = self.quadratic
            return
        start, fell = float(self.data.f0.mean()), float(np.mean(self.values - self.data.f0[: self.values.size])) < 0
        ahead = context.theta is context.theta0 and fell  # what rises along straight pieces agrees for no good reason
        if ahead:
            context.move(trial, fall=fall)
        yield from self.complete_values(m)
        fails = not float(self.values.mean()) < start
        refuted = fails and fall > INDEX.noise_deviations * self.diagnosis.noise  # as noisy curvatures may bring about
        self.quadratic = self.confirmed = not refuted and self.agrees(trial, self.values, INDEX.quadratic_tolerance)
        if ahead and fails:
            context.move(context.theta0, start)
        else:
            self.accept(trial, self.values)

    # Components that are not quadratic: each l_i is a curve through the values seen so far.

    def _fit_curves(self, k: int) -> Asks:
        """Minimise the modelled F without calls, ask for the values there, add them to the curves, and repeat."""
        context, data, m = self.context, self.data, len(self.data)
        yield from self.complete_values(m)
        yield from self._sample_curves()
        everything = m == context.n
        if everything:
            self.accept(self.theta, self.values)
        final = everything and (self.last or data.C.size == context.free().size)
        share = CURVES.negligible if final else CURVES.negligible_dropped if everything else CURVES.negligible_part
        noise_margin = CURVES.margin_deviations * self.diagnosis.noise / math.sqrt(m)
        first_radius = CURVES.trust_radius * self._curvature_length()
        start, radius, searched_again = float(data.f0.mean()), first_radius, False
        for _ in range(CURVES.rounds):
            mean = float(self.values[:m].mean())
            margin = share * max(start - mean, 0.0) + noise_margin
            restarts = CURVES.restarts if final else 0
            halves = context.rng.uniform(restarts * context.d).reshape(restarts, context.d) < 0.5
            mean_model = ModelledMean(data, self._splines(), context.constraint, k, self.natural, self.theta, radius)
            trial, predicted = mean_model.search(margin, halves)
            trial = context.H(trial)
            if context.left < m:
                return
            if not mean - predicted > share * max(start - predicted, 0.0) + noise_margin:
                if not final or searched_again:
                    return
                radius, searched_again = first_radius, True  # the whole model, once more before the search ends
                yield from self._sample_far()
                continue
            trial_values = (yield from context.values([trial], self.order[:m]))[0]
            self._add_to_curves(trial, trial_values)
            decrease = mean - float(trial_values.mean())
            if decrease <= CURVES.poor_prediction * (mean - predicted):
                moves = np.abs(data.scores(trial) - data.scores(self.theta)) / norms(data.V)
                radius = CURVES.shrink * min(radius, float(moves.max()))
            elif decrease > CURVES.good_prediction * (mean - predicted):
                radius *= CURVES.grow
            if decrease > 0:
                self.accept(trial, trial_values)
                if decrease < share * (start - mean + decrease) + noise_margin:
                    return

    def _splines(self) -> Splines:
        """Return the curves around theta."""
        spacing = norms(self.data.V) * self.diagnosis.central_step(self.context.d)
        return self.curves.centre(self.data.scores(self.theta), spacing)

    def _curvature_length(self) -> float:
        """Return how far along a row the curvature shows: the median over the components."""
        lengths = 1 / np.maximum(np.abs(self.data.kappa) * norms(self.data.V), TINY)
        bounds = CURVES.shortest_length * self.natural, CURVES.longest_length * self.natural
        return float(np.clip(np.median(lengths), *bounds))

    def _add_to_curves(self, theta: Array, values: Array) -> None:
        """Add the values of all components at theta as one sample of each curve."""
        self.curves.add(self.data.scores(theta), values - self.data.l2_change(theta))

    def _sample_curves(self) -> Asks:
        """Give components without a curve their first samples: the start, four points along the row, and theta."""
        context, data, known, m = self.context, self.data, len(self.curves), len(self.data)
        if known == m:
            return
        curves = Curves(m - known)
        if context.left > (len(CURVES.samples) + 1) * m:
            curves = yield from samples_along(self.learner, known, CURVES.samples, self._curvature_length())
        curves.add(np.zeros(m - known), data.f0[known:])
        if self.theta is not context.theta0:
            curves.add(data.scores(self.theta)[known:], self.values[known:m] - float(data.l2_change(self.theta)))
        self.curves.extend(curves)

    def _sample_far(self) -> Asks:
        """Sample the curves far from the start, where other supports may lead."""
        if self.context.left > (len(CURVES.far_samples) + 1) * len(self.data):
            far = yield from samples_along(self.learner, 0, CURVES.far_samples, self._curvature_length())
            for place, sample in zip(far.z.T, far.l.T, strict=True):
                self.curves.add(place, sample)
