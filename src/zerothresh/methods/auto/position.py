"""Where a descent stands: the oracle it asks, the point, the values and the last gradient there, and the model."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.models.component_secants import ComponentSecants
from zerothresh.methods.auto.models.quasi_newton import QuasiNewton
from zerothresh.methods.auto.models.significance import significantly_lower, steepest
from zerothresh.methods.auto.oracle import ExactOracle, Oracle
from zerothresh.methods.auto.oracle_kinds import NoisyOracle
from zerothresh.methods.auto.settings.descent_settings import DESCENT
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.program.context import Asks
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


class RememberedPoint(NamedTuple):
    """What a position knows about its point, to come back to."""

    theta: Array
    values: Array
    g: Array
    g_theta: Array
    component_gradients: Array
    total_decrease: float
    secants: ComponentSecants


class Position:
    """The point of a descent and what is known about it; moves ask through it and change it.

    Attributes
    ----------
    oracle: how values and slopes are asked for; another one takes its place as the search goes on.
    C: indices of the coordinates that are searched, shape (c,).
    theta: array of shape (d,), the point.
    values, start_values: arrays of shape (m,), f_i at theta and at the start, of the components in use.
    model: the quasi-Newton model of F.
    secants: changes of the components' gradients on all of C between full gradients.
    g: array of shape (c,), the last gradient on all of C, measured at ``g_theta``; empty if there is none.
    component_gradients: array of shape (m, c), the gradients whose mean is ``g``.
    hint: the last gradient on all of C and its point, whatever it was measured with: it says what is promising.
    signal_to_noise: float, of the last gradient.
    total_decrease: float, how much F has decreased so far, about.
    recalling: bool, whether gradients at the start that another search has measured are used.
    reporting: bool, whether the run is told of better points; not during a restart, whose points are worse at first.
    """

    def __init__(self, oracle: Oracle) -> None:
        self.oracle, self.context = oracle, oracle.context
        self.C: Indices = self.context.free()
        self.theta = self.g_theta = self.context.theta
        self.values = self.start_values = np.empty(0)
        self.model = QuasiNewton(self.C[:0])
        self.secants = ComponentSecants(self.C)
        self.g: Array = np.empty(0)
        self.component_gradients: Array = np.empty((0, 0))
        self.signal_to_noise = math.inf
        self.total_decrease = 0.0
        self.hint: tuple[Array, Array] | None = None
        self.reporting = self.recalling = True

    @property
    def F(self) -> float:
        """The mean of the values at theta of the components in use."""
        return float(self.values.mean())

    @property
    def complete(self) -> bool:
        """Whether all components are in use."""
        return self.oracle.m == self.context.n

    @property
    def calls_available(self) -> float:
        """The calls that are left, less those reserved for the components that will judge the result."""
        return self.oracle.calls_available

    @property
    def negligible(self) -> float:
        """The largest decrease of F that is not worth another round."""
        share = DESCENT.negligible if self.complete else DESCENT.negligible_on_some
        return share * max(self.total_decrease, 0.0) + self.oracle.noise_margin

    @property
    def slope_noise(self) -> float:
        """The noise of a slope here."""
        return self.oracle.slope_noise(self.theta)

    @property
    def longest_step(self) -> float:
        """The longest step that is ever made."""
        natural, way = self.oracle.diagnosis.length, float(np.linalg.norm(self.theta - self.context.theta0))
        return min(DESCENT.longest_step * max(natural, way), DESCENT.longest_way * natural)

    def values_at(self, theta: Array) -> Generator[Probes, Answers, Array]:
        """Return the values of the components in use at another point; if F is lower there, slopes come next."""
        self.oracle.foresee_slopes(theta, np.flatnonzero(theta))
        return (yield from self.oracle.values(theta))

    def go(self, theta: Array, values: Array) -> None:
        """Stand at another point without telling the run: it is a trial, or a new start."""
        self.theta, self.values = theta, values

    def standing(self) -> RememberedPoint:
        """Return what is known about the point, for `return_to`."""
        return RememberedPoint(**{name: getattr(self, name) for name in RememberedPoint._fields})

    def return_to(self, place: RememberedPoint) -> None:
        """Go back to a point with all that was known about it."""
        for name, value in place._asdict().items():
            setattr(self, name, value)

    def accept(self, theta: Array, values: Array) -> None:
        """Move to theta; it becomes the iterate of the run if all components are in use and F is better."""
        self.total_decrease += self.F - float(values.mean())
        self.go(theta, values)
        best, random = self.context.fun, self.oracle.diagnosis.random
        if self.complete and (best is None or best > self.F or random) and (self.reporting or not random):
            self.context.move(theta, self.F)

    def report(self) -> None:
        """Make theta the iterate of the run; its F is known only if all components are in use."""
        if self.reporting:
            self.context.move(self.theta, self.F if self.complete else None)

    def discard_gradient(self) -> None:
        """Discard the last gradient, because it was measured in a different way."""
        self.g = np.empty(0)

    def use(self, oracle: Oracle) -> None:
        """Ask another oracle from now on."""
        self.oracle = oracle
        self.discard_gradient()

    def use_components(self, m: int) -> Asks:
        """Use the first m components; go back to the start if the new ones say that theta is worse."""
        before = self.oracle.m
        if m == before:
            return
        context, new = self.context, self.oracle.order[before:m]
        start, at_theta = context.theta0, np.empty(0)
        moved = self.theta is not start
        if moved:
            at_theta = (yield from context.values([self.theta], new))[0]
        at_start = yield from context.starts(new)
        self.use(self.oracle.with_components(m))
        self.start_values = np.concatenate([self.start_values, at_start])
        if not moved:
            self.values = self.start_values
            return
        self.values = np.concatenate([self.values, at_theta])
        if float(at_theta.mean()) >= float(at_start.mean()) and float(self.start_values.mean()) <= self.F:
            self.go(start, self.start_values)  # theta was fitted to a few components only
        if self.complete and (context.fun is None or context.fun > self.F or self.oracle.diagnosis.random):
            context.move(self.theta, self.F)
        elif context.fun is None and significantly_lower(at_theta, at_start, context.n):
            context.move(self.theta, fall=float(np.mean(at_start - at_theta)))

    def gradient(self, C: Indices) -> Generator[Probes, Answers, Array]:
        """Return the gradient on the coordinates C at theta, from differences."""
        rows = yield from self._rows(C)
        return np.asarray(rows.mean(axis=0))

    def _rows(self, C: Indices) -> Generator[Probes, Answers, Array]:
        """Return the gradients of the components in use on the coordinates C at theta: (m, c)."""
        rows = self._remembered(C)
        known = len(rows)
        if known < self.oracle.m:
            rest = slice(known, self.oracle.m)
            more = yield from self.oracle.slopes(self.theta, C, rest, self.values[rest])
            rows = np.concatenate([rows, more]) if known else more
        return rows

    def _remembered(self, C: Indices) -> Array:
        """Return the gradients at the start that another search has measured, of the first components in the order."""
        at_start = self.theta is self.context.theta0 and not self.g.size and self.recalling
        known = self.context.remembered_gradients() if at_start and self.oracle.reads_remembered else {}
        rows = list[Array]()
        for i in self.oracle.components.tolist():
            if i not in known or known[i].shape != C.shape:
                break
            rows.append(known[i])
        return np.array(rows).reshape(len(rows), C.size)

    def full_gradient(self) -> Generator[Probes, Answers, Array]:
        """Return the gradient on all of C at theta, from the last time if theta has not moved; the model learns it."""
        if self.g.size and self.g_theta is self.theta:
            return self.g
        if self.oracle.diagnosis.random and self.theta is not self.context.theta0:
            yield from self._update_noise()
        before, self.component_gradients = self.component_gradients, (yield from self._rows(self.C))
        if isinstance(self.oracle, ExactOracle):
            self.secants = self.secants.after(self.C, self.theta - self.g_theta, before, self.component_gradients)
        g = np.asarray(self.component_gradients.mean(axis=0))
        while isinstance(self.oracle, NoisyOracle):  # lengthen the difference step while the gradient is mostly noise
            self.signal_to_noise = steepest(g, self.context.k) / max(self.slope_noise, TINY)
            affordable = self.calls_available >= DESCENT.spare_gradients * self.oracle.gradient_cost(self.C.size)
            if self.signal_to_noise > DESCENT.clear_signal or not self.oracle.may_be_longer or not affordable:
                break
            before_that, self.oracle = self.slope_noise, (yield from self.oracle.longer(self.theta, self.C))
            if self.slope_noise >= before_that:
                break
            self.component_gradients = yield from self._rows(self.C)
            g = np.asarray(self.component_gradients.mean(axis=0))
        if not self.model.coordinates.size:
            g = self._start_model(g)
        if self.g.size:
            self.model.learn(self.theta - self.g_theta, g - self.g, self.C, self.slope_noise)
        self.g, self.g_theta, self.hint = g, self.theta, (g, self.theta)
        return g

    def _start_model(self, g: Array) -> Array:
        """Start the quasi-Newton model; if there are very many coordinates, only the steepest ones are searched."""
        if self.C.size > DESCENT.most_modelled:
            forced = np.isin(self.C, self.context.constraint.include)
            forced |= (self.theta[self.C] != 0) | (self.context.theta0[self.C] != 0)
            keep = np.sort(np.argsort(-np.where(forced, np.inf, np.abs(g)), kind="stable")[: DESCENT.most_modelled])
            self.context.remark(f"Of {self.C.size} coordinates, the {keep.size} with the steepest slopes are searched.")
            self.C, self.component_gradients, g = self.C[keep], self.component_gradients[:, keep], g[keep]
        self.model = self.model.onto(self.C)
        self.secants = ComponentSecants(self.C)
        return g

    @property
    def screened(self) -> bool:
        """Whether some of the free coordinates are not searched."""
        return self.C.size < self.context.free().size

    def reopen(self) -> Asks:
        """Measure the slopes of all free coordinates here, and search the steepest ones from now on."""
        self.C = self.context.free()
        self.component_gradients = yield from self._rows(self.C)
        self.g, self.g_theta = self._start_model(np.asarray(self.component_gradients.mean(axis=0))), self.theta

    def _update_noise(self) -> Asks:
        """Measure the noise at theta, which may differ from the noise at the start."""
        values, noise = yield from self.oracle.repeated(self.theta)
        if noise > 0:
            self.oracle = self.oracle.with_noise(noise)
        share = DESCENT.noise_repeats / (DESCENT.noise_repeats + self.oracle.repeats)
        self.values = share * values + (1 - share) * self.values
        self.report()
