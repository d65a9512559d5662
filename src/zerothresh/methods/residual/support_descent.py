"""Trust-region Gauss-Newton steps on one support, with a Jacobian that learns from every step."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.residual.jacobians.curvature_fit import curvature
from zerothresh.methods.residual.jacobians.curved_model import CurvedModel
from zerothresh.methods.residual.jacobians.filtered_jacobian import FilteredJacobian
from zerothresh.methods.residual.linearised import Beside, Evaluated, Linearised
from zerothresh.methods.residual.residual_settings import STEP, TINY
from zerothresh.methods.residual.trials import trial
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class SupportDescent:
    """Steps on the coordinates S, from the present point of a `Linearised`; they are taken over by `Linearised.take`.

    Attributes
    ----------
    at: the present `Evaluated`.
    known: the filtered Jacobian on S; steps s are in its metric.
    radius: float, of the trust region in the metric.
    seen: the last runs, which show the curvature of the outputs.
    """

    def __init__(self, state: Linearised, S: Indices) -> None:
        self.state, self.S, self.at = state, S, state.at
        self.resume()
        size = self._size()
        self.radius = STEP.first_radius * size if size > 0 else np.inf
        self.seen = [self.at]
        self.errors, self.poor = np.zeros(2), False  # of predictions without and with curvature; of the last step

    def resume(self) -> None:
        """Take the columns as they are now: others may have been measured since the last step."""
        known = self.state.filter_on(self.S)
        self.known = known.rescaled(self._metric(known))
        self.learnt = bool((self.state.age[self.S] > self.state.fresh_age[self.S]).any())  # since they were measured

    def promise(self) -> float:
        """Return the share of F that the linear model leaves on this support, however far its minimum is."""
        return 1 - self._proposal(self._model(bends=False), np.inf)[2] / self.at.f

    def iterate(
        self, most: int, least_gain: float, confirm: bool, crawl: float = 0.0
    ) -> Generator[Probes, Answers, str]:
        """Make steps; return why they end: "goal", "minimum", "most" or "crawl".

        To ``confirm`` a minimum, columns that have only learnt from steps are measured. Steps crawl if F has fallen by
        less than a share ``crawl`` of itself in the runs of two sets of columns and steps.
        """
        state, refreshed, measured = self.state, 0, np.inf
        used, before = state.context.used, self.at.f
        for _ in range(most):
            if state.enough(self.at, self.known.J, self.S):
                return "goal"
            if state.context.used - used >= STEP.window * (self.S.size + 1):
                if before - self.at.f < crawl * before:
                    return "crawl"
                used, before = state.context.used, self.at.f
            model = self._model(self._bends())
            s, y, gain = self._proposal(model, self.radius)
            clear = gain > max(least_gain * self.at.f, state.spread(self.at.f))
            if not clear or not np.linalg.norm(s) > STEP.least_step * self._size():
                settled = measured - self.at.f < STEP.settled * measured and least_gain >= STEP.least_gain
                if not confirm or not self.learnt or state.noise > 0 or refreshed >= STEP.refreshes or settled:
                    return "minimum"
                yield from self._measure_all()
                refreshed, measured = refreshed + 1, self.at.f
                continue
            others = [self._proposal(model, radius) for radius in self._other_radii(float(np.linalg.norm(s)))]
            run, beside = yield from trial(state, y, self.S, [other[1] for other in others])
            s, gain = next(((step, fall) for step, point, fall in others if point is run.x), (s, gain))
            if np.isfinite(run.f):
                yield from self._judge(run, s, gain)
                if beside is not None and self.at is run:
                    self._differ(beside)
            else:
                self.radius = STEP.shrink**2 * float(np.linalg.norm(s))
        return "most"

    def _metric(self, known: FilteredJacobian) -> Array:
        """Return one over the length of each coordinate, which is not below its value.

        A column that has grown since the start, as where an exponential has taken over, makes its coordinate shorter:
        over a length, the linear model still uses up the outputs of the start.
        """
        state, norms = self.state, np.linalg.norm(known.J, axis=0)
        now = np.where(norms > 0, state.size / np.maximum(norms, TINY), np.inf)
        length = np.maximum(np.minimum(state.length[self.S], now), TINY)
        return np.asarray(1 / np.maximum(np.abs(self.at.x[self.S]), length))

    def _size(self) -> float:
        return float(np.linalg.norm(self.at.x[self.S] * self.known.D))

    # The model.

    def _bends(self) -> bool:
        """Whether the last step was predicted badly, or curvature has predicted outputs better than none."""
        return len(self.seen) > 1 and (self.poor or bool(self.errors[1] < STEP.curved * self.errors[0]))

    def _model(self, bends: bool) -> CurvedModel:
        """Return the model of the outputs in the metric of the steps."""
        terms = self._curvature() if bends else (np.empty((0, self.at.r.size)), np.empty((0, self.S.size)))
        return CurvedModel(self.state.loss, self.at.r, self.known.scaled(), *terms)

    def _curvature(self) -> tuple[Array, Array]:
        """Return what the last runs have shown of the curvature, as terms of the model."""
        known, at = self.known, self.at
        others = [run for run in self.seen if (run.x[self.S] != at.x[self.S]).any()]
        T = np.array([(run.x - at.x)[self.S] * known.D for run in others]).reshape(len(others), self.S.size)
        changes = np.array([np.nan_to_num(run.r - at.r) for run in others]).reshape(len(others), at.r.size)
        return curvature(T, changes - T @ known.scaled().T, known.P, known.doubt_by_noise)

    def _other_radii(self, length: float) -> list[float]:
        """Return radii that idle workers try beside a step: shorter ones, and a longer one if the radius limits it."""
        state = self.state
        room = min(state.width, state.context.left) - 1 - self.S.size
        if state.noise > 0 or room < len(STEP.beside) or not (self.poor or len(self.seen) <= STEP.unsure):
            return []
        return [by * length for by in STEP.beside]

    def _proposal(self, model: CurvedModel, radius: float) -> tuple[Array, Array, float]:
        """Return a step in the metric, the point it leads to, and the gain that the model predicts."""
        S, x, D, choice = self.S, self.at.x, self.known.D, self.state.choice
        s = model.minimiser(radius, (choice.low[S] - x[S]) * D, (choice.high[S] - x[S]) * D)
        y = x.copy()
        y[S] = np.clip(x[S] + s / D, choice.low[S], choice.high[S])
        s = (y - x)[S] * D
        return s, y, self.at.f - model.value(s)

    # What a run tells.

    def _judge(self, run: Evaluated, s: Array, gain: float) -> Generator[Probes, Answers, None]:
        """Learn from a run, move there if F is lower, and set the radius; measure J where it is to blame."""
        before, length = self.at, float(np.linalg.norm(s))
        ratio = (before.f - run.f) / gain
        self.state.predictions = self.state.predictions.after(gain, before.f - run.f)
        tolerated = self.state.spread(before.f) / 2 if ratio > -1 else 0.0
        moved = run.f < before.f + tolerated
        doubt, bend = self.known.doubt(s), length**4 / 4
        if run.f < STEP.huge * before.f:
            self._learn(run, s, moved)
        self.poor = ratio < STEP.poor
        if moved:
            self.at, self.learnt = run, True
            self.known = self.known.rescaled(self._metric(self.known))
        self._resize(ratio, moved, length, gain, run.f - before.f)
        if ratio < STEP.bad and doubt > STEP.blame * bend:
            self.radius = max(self.radius, length)
            yield from self._measure_doubtful()

    def _learn(self, run: Evaluated, s: Array, moved: bool) -> None:
        """Learn J and its curvature from a step."""
        actual, curved, known = np.nan_to_num(run.r - self.at.r), self._model(bends=True), self.known
        plain = actual - known.change(s)
        bent = plain - np.nan_to_num(curved.outputs(s) - self.at.r - known.change(s))
        scale = max(float(actual @ actual), TINY)
        self.errors = STEP.forget * self.errors + np.array([plain @ plain, bent @ bent]) / scale
        if self._bends() and moved:
            self.known = replace(known, J=curved.slopes(s) * known.D)
        self.known = self.known.learn(s, bent if self._bends() else plain, moved)
        most = min(STEP.remembered * self.S.size, STEP.most_remembered)
        self.seen = [*self.seen, run][-most - 1 :]

    def _resize(self, ratio: float, moved: bool, length: float, gain: float, rise: float) -> None:
        """Set the radius by how good the prediction was."""
        if ratio < STEP.poor:
            by = STEP.shrink
            if not moved:  # the minimum of the parabola through both values with the predicted slope
                by = float(np.clip(gain / max(gain + rise, TINY) / 2, STEP.least_shrink, STEP.shrink))
            self.radius = by * min(length, self.radius)
        elif ratio > STEP.good:
            self.radius = max(self.radius, STEP.grow * length)
        else:
            self.radius = max(min(self.radius, STEP.grow * length), length)

    # Refreshing J.

    def _measure_all(self) -> Generator[Probes, Answers, None]:
        """Measure all columns of the support at the present point."""
        state = self.state
        state.take(self.at, self.S, self.known)
        yield from state.columns(self.S)
        self.known, self.learnt = state.filter_on(self.S).rescaled(self.known.D), False

    def _differ(self, beside: Beside) -> None:
        """Take all columns of the support, and perhaps others, from runs beside the present point."""
        state = self.state
        state.take(self.at, self.S, self.known)
        state.differ(*beside)
        self.known, self.learnt = state.filter_on(self.S).rescaled(self.known.D), False

    def _measure_doubtful(self) -> Generator[Probes, Answers, None]:
        """Measure J along the direction that is known least."""
        state, D = self.state, self.known.D
        u = np.zeros(self.at.x.size)
        u[self.S] = np.linalg.eigh(self.known.P)[1][:, -1] / D
        u *= state.step / max(float(np.max(np.abs(u[self.S]) * D)), TINY)
        y = state.choice.inside(self.at.x, u)
        run = (yield from state.runs([y]))[0]
        s = (y - self.at.x)[self.S] * D
        if np.isfinite(run.f) and s.any():
            self.known = self.known.measured(s, np.nan_to_num(run.r - self.at.r) - self.known.change(s))
