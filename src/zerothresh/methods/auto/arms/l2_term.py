"""Measuring the l2 term that components of the single-index model share, and testing that they share it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.findings import Diagnosis
from zerothresh.methods.auto.models.index_rows import IndexRows, balanced_move, norms, strong_rows
from zerothresh.methods.auto.models.squares import square
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.single_index_settings import ROWS
from zerothresh.methods.program.context import Asks, Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class SharedL2Term:
    """The l2 term lam/2 |theta - c|^2 of all components: its strength, and whether c is 0 or the start.

    Arguments
    ---------
    context: the run.
    diagnosis: what the first calls found.
    data: the model, whose ``lam`` and ``centre`` are set here.
    """

    context: Context
    diagnosis: Diagnosis
    data: IndexRows

    def _moves_inside(self) -> tuple[Array, Array]:
        """Return, on C, the sign of the side to which alone the start can move, or 0 for both; and the room there."""
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

    def fit(self, gradients: Array, components: Indices, base: Array) -> Generator[Probes, Answers, bool]:
        """Measure lam: only the l2 term changes on a move that leaves the score as it is.

        Returns False if the components disagree about lam, so that they do not have the form of the model.
        """
        context, data, C = self.context, self.data, self.data.C
        lengths = norms(gradients)
        chosen = strong_rows(gradients)[: ROWS.tested]
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

    def find_centre(self, gradients: Array, components: Indices, base: Array) -> Asks:
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
