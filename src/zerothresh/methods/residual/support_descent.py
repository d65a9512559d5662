"""Trust-region Gauss-Newton steps on one support, with a Jacobian that learns from every step."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.residual.jacobians.loss_weights import slopes, total_loss, working
from zerothresh.methods.residual.jacobians.trust_step import bounded_step
from zerothresh.methods.residual.linearised import Linearised, Run
from zerothresh.methods.residual.residual_settings import STEP, TINY
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class SupportDescent:
    """Steps on the coordinates S, from the present point of a `Linearised`; they are taken over by `Linearised.take`."""

    def __init__(self, state: Linearised, S: Indices) -> None:
        self.state, self.S, self.at = state, S, state.at
        self.known = state.filter_on(S)
        self.learnt = int((state.age[S] > state.fresh_age[S]).any())  # moves since all columns were measured
        size = float(np.linalg.norm(self.at.x[S] * self.known.D))
        self.radius = STEP.first_radius * size if size > 0 else np.inf
        self.B = np.zeros((S.size, S.size))  # the second-order term of F, learnt along steps
        self.errors = np.zeros(2)  # of prediction, without and with it

    def iterate(self, most: int, least_gain: float) -> Generator[Probes, Answers, str]:
        """Make steps; return why they end: "goal", "minimum" or "most"."""
        state, refreshed = self.state, 0
        for _ in range(most):
            if self.at.f <= state.goal:
                return "goal"
            s, y = self._proposal()
            gain = self.at.f - self._model(s, self._bends())
            size = max(float(np.linalg.norm(self.at.x[self.S] * self.known.D)), TINY)
            enough = gain > max(least_gain * self.at.f, state.spread(self.at.f)) and np.linalg.norm(s) > STEP.least_step * size
            if not enough or np.array_equal(y, self.at.x):
                if self.learnt == 0 or state.noise > 0 or refreshed >= STEP.refreshes:
                    return "minimum"
                yield from self._measure_all()
                refreshed += 1
                continue
            run = (yield from state.runs([y]))[0]
            if not np.isfinite(run.f):
                self.radius = STEP.shrink**2 * float(np.linalg.norm(s))
                continue
            yield from self._judge(run, s, gain)
        return "most"

    # The model.

    def _bends(self) -> bool:
        """Whether the second-order term has predicted clearly better than none."""
        return bool(self.B.any() and self.errors[1] < STEP.second_order * self.errors[0])

    def _model(self, s: Array, bends: bool) -> float:
        """Return the predicted sum of losses after a step."""
        value = total_loss(self.state.loss, self.at.r + self.known.change(s))
        return value + float(s @ self.B @ s) if bends else value

    def _proposal(self) -> tuple[Array, Array]:
        """Return a step in the metric, and the point it leads to."""
        S, x, D, choice = self.S, self.at.x, self.known.D, self.state.choice
        w, u = working(self.state.loss, self.at.r)
        low, high = (choice.low[S] - x[S]) * D, (choice.high[S] - x[S]) * D
        B = self.B if self._bends() else None
        s = bounded_step(w[:, None] * self.known.scaled(), w * u, self.radius, B, low, high)
        y = x.copy()
        y[S] = np.clip(x[S] + s / D, choice.low[S], choice.high[S])
        return (y - x)[S] * D, y

    # What a run tells.

    def _judge(self, run: Run, s: Array, gain: float) -> Generator[Probes, Answers, None]:
        state, known, before = self.state, self.known, self.at
        length = float(np.linalg.norm(s))
        ratio = (before.f - run.f) / gain
        tolerated = 0.5 * state.spread(before.f) if ratio > -1 else 0.0
        moved = run.f < before.f + tolerated
        doubt, bend = known.doubt(s), 0.25 * length**4
        expected = known.change(s)
        surprise = np.nan_to_num(run.r - before.r) - expected
        if run.f < STEP.huge * before.f:
            self._learn_second_order(run, s, surprise, moved, bend / max(bend + doubt, TINY))
            self.known = known.learn(s, surprise, moved)
        if moved:
            self.at = run
            self.learnt += 1
            self._update_metric()
        self._resize(ratio, moved, length, gain, run.f - before.f)
        if ratio < STEP.bad and doubt > STEP.blame * bend:
            self.radius = max(self.radius, length)
            yield from self._measure_doubtful()

    def _learn_second_order(self, run: Run, s: Array, surprise: Array, moved: bool, share: float) -> None:
        """Update B along s, and the record of predictions without and with it."""
        before, loss = self.at, self.state.loss
        plain = before.f - self._model(s, bends=False)
        bent, actual = plain - float(s @ self.B @ s), before.f - run.f
        scale = max(abs(actual), abs(plain), TINY)
        self.errors = STEP.forget * self.errors + np.abs(np.array([actual - plain, actual - bent])) / scale
        if moved:
            old, new = np.nan_to_num(before.r), np.nan_to_num(run.r)
            self.B = self.B * float(np.clip(new @ old / max(old @ old, TINY), 0.0, 1.0))
        bending = float(slopes(loss, run.r if moved else before.r) @ surprise) * share
        self.B = self.B + (bending - float(s @ self.B @ s)) * np.outer(s, s) / max(float(s @ s) ** 2, TINY)

    def _update_metric(self) -> None:
        """Let the metric grow with the columns, as Levenberg and Marquardt's does."""
        norms = np.linalg.norm(self.known.J, axis=0)
        D = np.maximum(self.known.D, norms)
        ratio = D / self.known.D
        self.B = self.B / np.outer(ratio, ratio)
        self.known = self.known.rescaled(D)

    def _resize(self, ratio: float, moved: bool, length: float, gain: float, rise: float) -> None:
        """Set the radius by how good the prediction was."""
        if ratio < STEP.poor:
            by = STEP.shrink
            if not moved:  # the minimum of the parabola through both values and the predicted slope
                by = float(np.clip(0.5 * gain / max(gain + rise, TINY), STEP.least_shrink, STEP.shrink))
            self.radius = by * min(length, self.radius)
        elif ratio > STEP.good:
            self.radius = max(self.radius, STEP.grow * length)
        else:
            self.radius = max(min(self.radius, STEP.grow * length), length)

    # Refreshing J.

    def _measure_all(self) -> Generator[Probes, Answers, None]:
        """Measure all columns of the support."""
        state = self.state
        state.take(self.at, self.S, self.known)
        yield from state.columns(self.S)
        self.known, self.learnt = state.filter_on(self.S).rescaled(self.known.D), 0

    def _measure_doubtful(self) -> Generator[Probes, Answers, None]:
        """Measure J along the direction that is known least."""
        state, D = self.state, self.known.D
        _, V = np.linalg.eigh(self.known.P)
        u = V[:, -1] / D
        length = np.maximum(np.abs(self.at.x[self.S]), state.length[self.S]) if state.noise == 0 else state.length[self.S]
        u = u * state.step / max(float(np.max(np.abs(u) / length)), TINY)
        y, choice = self.at.x.copy(), state.choice
        y[self.S] += u
        if ((y < choice.low) | (y > choice.high)).any():
            y[self.S] -= 2 * u
            y = np.clip(y, choice.low, choice.high)
        run = (yield from state.runs([y]))[0]
        s = (y - self.at.x)[self.S] * D
        if np.isfinite(run.f) and s.any():
            self.known = self.known.measured(s, np.nan_to_num(run.r - self.at.r) - self.known.change(s))
