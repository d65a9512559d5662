"""Descent for black boxes of unknown form: differences along coordinates, and a quasi-Newton model.

A gradient over all coordinates costs n d calls and is asked for rarely: it picks the support. On the support a
gradient costs n k calls, and quasi-Newton steps minimise F there. If there are many components, the descent begins
with a few of them and uses more as it makes progress. At a local minimum, exchanges of one coordinate are tried.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.arms.single_index_model import SingleIndexModel
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.quasi_newton import MAX_MODELLED_COORDINATES, QuasiNewton
from zerothresh.methods.auto.models.significance import significantly_lower
from zerothresh.methods.auto.moves.derivative_free import evolve_on_support, swap_coordinate
from zerothresh.methods.auto.moves.response_surface import ResponseSurface
from zerothresh.methods.program.context import Asks, Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes

_BUDGET_SPENT = "The budget is spent."
_MAX_SURFACE_COORDINATES = 30  # a response surface on a larger support needs too many values
_NEGLIGIBLE = 1e-8  # share of the total decrease that is not worth another round, with all components
_NEGLIGIBLE_ON_SOME = 3e-2  # the same while only some components are used: a closer fit to them would not carry over
# first difference steps as a share of |theta|: for a kink at the start, and for jumps or kinks that show later
_COARSE_KINK, _COARSE_ROUGH = 1.0, 0.3
_FINEST_COARSE_STEP = 2e-3  # share of |theta| below which coarse difference steps are not shortened any more
_CLEAR_SIGNAL, _STRONG_SIGNAL = 3, 6  # gradient over noise: when steps are long enough, and when they may be shorter
_MAX_STEP_FACTOR = 1e3  # a difference step is lengthened up to about this factor to stand out of the noise
_MAX_SHORTENINGS = 4  # times in a row that difference steps are shortened without progress
_MAX_DAMPING_ROUNDS = 7  # increases of the damping before a support step is given up
_MAX_BACKTRACKS = 5  # reductions of a Newton step on the support
_ARMIJO = 1e-4  # share of the predicted decrease that a Newton step must achieve (Nocedal and Wright, section 3.1)
_MAX_EXTENSION = 1e4  # a step that pays is lengthened up to about this factor
_KINK_PROMISE = 1e-4  # of the total decrease: a rejected step that promised more than this hints at a kink
_TINY = 1e-300  # lower limit of divisors


class Descent:
    """The state of the search: theta, the values of the components in use there, and the models.

    Arguments
    ---------
    context: the run.
    diagnosis: what the first calls found.
    exchanges: int, how many exchanges of one coordinate are tried at a local minimum. Default: 6.
    index_model: a single-index model whose order of components and gradients at the start are used again.
        Default: None.
    """

    def __init__(
        self,
        context: Context,
        diagnosis: Diagnosis,
        *,
        exchanges: int = 6,
        index_model: SingleIndexModel | None = None,
    ) -> None:
        self.context, self.diagnosis, self.exchanges = context, diagnosis, exchanges
        self.order = context.rng.subset(context.n, context.n) if index_model is None else index_model.order
        # gradients at the start that are known already, of the first components in this order
        self.known_gradients = np.empty((0, 0)) if index_model is None else index_model.start_gradients
        self.budget_spent = False  # whether the search ended because of the budget
        self.repeats = 1  # calls per value; more than one if values are random
        self.step_factor = 1.0  # difference steps in units of the diagnosed one; not 1 only if values are random
        self.signal_to_noise = np.inf  # of the last gradient
        self.shortenings = 0  # how often in a row difference steps were shortened
        self.coarse_step = _first_coarse_step(diagnosis)  # difference step as a share of |theta|; 0: the diagnosed one
        self.C = context.free()  # candidate coordinates
        self.theta = context.theta
        self.values = self.start_values = np.empty(0)  # f_i at theta and at the start, of the components in use
        self.model = QuasiNewton(self.C[:0])
        self.g = np.empty(0)  # the last gradient on all of C; empty if there is none
        self.g_theta = self.theta  # where it was measured
        self.total_decrease = 0.0  # how much F has decreased so far, about
        self.tried_supports = set[bytes]()  # supports that exchanges have tried
        self.component_gradients = np.empty((0, 0))
        self.gauss_newton: QuasiNewton | None = None  # the model that these make
        self.local_minimum: Array | None = None  # the point from which only an exchange may lead further
        self.kink_suspected = False  # whether a step that promised much did not lower F
        # how often in a row the Gauss-Newton model lost to the quasi-Newton model, and the rounds until its next try
        self.gauss_newton_losses = self.gauss_newton_pause = 0

    # Components, values and gradients.

    @property
    def m(self) -> int:
        """The number of components in use."""
        return int(self.values.size)

    @property
    def components(self) -> Indices:
        """The components in use."""
        return self.order[: self.m]

    @property
    def calls_available(self) -> float:
        """The calls that are left, less those reserved for the components that will judge the result."""
        return self.context.left - 2 * (self._next_level - self.m)

    @property
    def _next_level(self) -> int:
        """The number of components of the next level: three times as many, or all."""
        return min(3 * self.m if 4 * self.m < self.context.n else self.context.n, self.context.n)

    @property
    def F(self) -> float:
        """The mean of the values at theta of the components in use."""
        return float(self.values.mean())

    @property
    def noise_margin(self) -> float:
        """The difference of two means that may be noise."""
        return 2 * self.diagnosis.noise / math.sqrt(self.m * self.repeats)

    def use_components(self, m: int) -> Asks:
        """Use the first m components; go back to the start if the new ones say that theta is worse."""
        if m == self.m:
            return
        self.gauss_newton_losses = self.gauss_newton_pause = 0
        self._discard_gradient()
        context, new = self.context, self.order[self.m : m]
        start = context.theta0
        if self.theta is start:
            values = yield from context.starts(new)
            self.start_values = self.values = np.concatenate([self.values, values])
        else:
            here = (yield from context.values([self.theta], new))[0]
            at_start = yield from context.starts(new)
            self.start_values = np.concatenate([self.start_values, at_start])
            self.values = np.concatenate([self.values, here])
            if float(here.mean()) >= float(at_start.mean()) and float(self.start_values.mean()) <= self.F:
                self.theta, self.values = start, self.start_values  # theta was fitted to a few components only
            if self.m == context.n and (context.fun is None or context.fun > self.F or self.diagnosis.random):
                context.move(self.theta, self.F)
            elif context.fun is None and significantly_lower(here, at_start, context.n):
                context.move(self.theta)

    def gradient(self, C: Indices) -> Generator[Probes, Answers, Array]:
        """Return the gradient on the coordinates C at theta, from differences."""
        known = self.known_gradients
        if self.theta is self.context.theta0 and known.shape[1:] == C.shape and 0 < len(known) <= self.m:
            self.known_gradients = known[:0]
            rest = slice(len(known), self.m)
            if len(known) < self.m:
                more = yield from self._slopes(C, self.components[rest], self.values[rest])
                known = np.concatenate([known, more])
            self.component_gradients = known
        else:
            total = yield from self._slopes(C, self.components, self.values)
            for _ in range(self.repeats - 1):
                total = total + (yield from self._slopes(C, self.components, self.values))
            self.component_gradients = total / self.repeats
        return np.asarray(self.component_gradients.mean(axis=0))

    def _slopes(self, C: Indices, components: Indices, base: Array) -> Generator[Probes, Answers, Array]:
        """Return the gradients of some components on C at theta."""
        mu, central = self._mu(), self._central
        slopes, _ = yield from self.context.slopes(self.theta, C, mu, components, base, central=central)
        return slopes

    @property
    def _central(self) -> bool:
        """Whether differences are central."""
        return self.coarse_step > 0 or self.diagnosis.central

    @property
    def _gauss_newton_fits(self) -> bool:
        """Whether there are enough components and calls for a Gauss-Newton model, and F is smooth."""
        enough_components = self.m > 2 and self.m >= self.context.k
        return enough_components and self.calls_available > 3 * self.m and not self.coarse_step

    def _fit_gauss_newton(self) -> Asks:
        """Make a Gauss-Newton model: the curvature of each component along its own gradient, from one more value.

        f_i(theta + s) is about f_i + g_i.s + kappa_i (g_i.s)^2 / 2. This is exact if f_i is a quadratic function of
        one score, and good if a component has few scores, as the squared residual of a model has.
        """
        context, C, G = self.context, self.C, self.component_gradients
        norms = np.maximum(np.linalg.norm(G, axis=1), _TINY)
        move = np.zeros((self.m, context.d))
        move[:, C] = G / norms[:, None] * -max(self.diagnosis.curvature_step(context.d), self._mu())
        points = context.inside(self.theta + move)
        values = yield from context.each(points, self.components)
        z = np.einsum("rc,rc->r", (points - self.theta)[:, C], G)
        kappa = 2 * (values - self.values - z) / np.maximum(z * z, _TINY)
        kappa = np.where(np.isfinite(kappa) & (kappa > 0), kappa, 0.0)
        A = (G * kappa[:, None]).T @ G / self.m
        mean_curvature = float(np.trace(A)) / C.size
        if mean_curvature > 0:
            B = np.eye(self.model.coordinates.size) * mean_curvature
            positions = np.searchsorted(self.model.coordinates, C)
            B[np.ix_(positions, positions)] = A + 1e-3 * mean_curvature * np.eye(C.size)
            self.gauss_newton = QuasiNewton(self.model.coordinates, B)

    def _mu(self) -> float:
        """Return the difference step; beside a large theta it must not be lost in rounding."""
        size = float(np.abs(self.theta).max())
        if self.coarse_step:
            return self.coarse_step * (size or self.diagnosis.length)
        return max(self.step_factor * self.diagnosis.mu, 1e-8 * size)

    def gradient_cost(self, coordinates: int) -> int:
        """Return the number of calls of a gradient on this many coordinates."""
        return self.repeats * self.m * coordinates * (2 if self._central and self.context.box is None else 1)

    def values_at(self, theta: Array) -> Generator[Probes, Answers, Array]:
        """Return the values of the components in use at another point."""
        values = yield from self.context.values([theta] * self.repeats, self.components)
        return np.asarray(values.mean(axis=0))

    def accept(self, theta: Array, values: Array) -> None:
        """Move to theta; it becomes the iterate of the run if all components are in use and F is better."""
        self.total_decrease += self.F - float(values.mean())
        self.theta, self.values = theta, values
        best = self.context.fun
        if self.m == self.context.n and (best is None or self.diagnosis.random or best > self.F):
            self.context.move(theta, self.F)

    def _move_context(self) -> None:
        """Make theta the iterate of the run; its F is known only if all components are in use."""
        self.context.move(self.theta, self.F if self.m == self.context.n else None)

    # The search.

    def search(self) -> Generator[Probes, Answers, str]:
        """Descend to a point that no exchange of one coordinate improves; returns the reason for stopping."""
        context = self.context
        m = self._first_components()
        while True:
            yield from self.use_components(max(m, self.m))
            reason = yield from self.descend()
            if self.m == context.n or context.left < self.m:
                return reason
            m = self._next_level

    def random_restarts(self, count: int) -> Generator[Probes, Answers, str]:
        """Restart from the best of some random sparse points, if nothing leads down from the start."""
        context, best = self.context, (self.theta, self.values)
        S_size = min(context.k, self.C.size)
        for turn in range(count):
            if self.calls_available < 3 * self.gradient_cost(self.C.size) + 12 * self.m:
                break
            points = []
            for _ in range(8):
                point = np.zeros(context.d)
                S = self.C[context.rng.subset(self.C.size, S_size)]
                point[S] = context.rng.normal(S_size) * self.diagnosis.length * 3.0 ** (turn % 5 - 1)
                points.append(context.constraint.project(context.inside(self.theta + point)))
            values = yield from context.values(points, self.components)
            lowest = int(np.argmin(values.mean(axis=1)))
            self.theta, self.values = points[lowest], values[lowest]
            self._discard_gradient()
            yield from self.descend()
            if float(best[1].mean()) - self.noise_margin > self.F:
                self._move_context()
                return "A restart from a random point lowered F."
            self.theta, self.values = best
            self._discard_gradient()
        return "No restart from a random point lowered F."

    def partial_restarts(self, share: float) -> Generator[Probes, Answers, str]:
        """Restart from a random part of the best support, at first without the coordinates that were dropped.

        The restarts end when ``share`` times the calls that led to the best point have found nothing better. There
        are none if all candidates may be non-zero at once, because then there is only one support to find.
        Returns what the restarts came to.
        """
        context, failures, count = self.context, 0, 0
        all_coordinates, end = self.C, (1 + share) * self.context.used
        while context.used < end and self.m == context.n:
            S = np.flatnonzero(self.theta)
            self.budget_spent = self.calls_available < 3 * self.gradient_cost(all_coordinates.size)
            if S.size < 2 or _places(context, all_coordinates) <= context.k or self.budget_spent:
                break
            count += 1
            if self.diagnosis.rough and count % 4:  # the support may be right, and the minimum elsewhere on it
                yield from swap_coordinate(self, count)
                yield from evolve_on_support(self, 3.0 ** -(count % 4))
                context.move(self.theta, self.F)
                continue
            best = self.theta, self.values, self.total_decrease
            forced = np.isin(S, context.constraint.include)
            dropped = S[(context.rng.uniform(S.size) < 0.5) & ~forced]
            dropped = dropped if dropped.size else S[~forced][:1]
            start = self.theta.copy()
            start[dropped] = 0.0
            start = context.constraint.project(start)
            self.values = yield from self.values_at(start)
            self.theta, self.C = start, np.setdiff1d(all_coordinates, dropped)
            for C in (self.C, all_coordinates):
                self.C = C
                self.coarse_step = _first_coarse_step(self.diagnosis) or self.coarse_step
                self._discard_gradient()
                self.local_minimum = None
                yield from self.descend()
            if float(best[1].mean()) - self._negligible_decrease(True) > self.F:
                failures, end = 0, (1 + share) * context.used
            else:
                failures += 1
                self.theta, self.values, self.total_decrease = best
            context.move(self.theta, self.F)
            self._discard_gradient()
        if not count:
            return "No restarts were made."
        if count == 1:
            return "The only restart found nothing better." if failures else "The only restart found a better point."
        if not failures:
            return f"Of {count} restarts, the last one found a better point."
        last = "the last one" if failures == 1 else f"the last {failures}"
        return f"Of {count} restarts, {last} found nothing better."

    def _first_components(self) -> int:
        """Return how many components to begin with: a few if there are many, fewer if the budget is small."""
        context = self.context
        affordable = context.left / (8 * (self.C.size + 2))
        few = min(context.n, max(3, math.ceil(context.n / 9)))
        if self.theta is not context.theta0:  # a good point is known; a few components must not lead away from it
            few = context.n
        return int(max(1, min(few, context.n, affordable)))

    def resume_after_budget_increase(self) -> Asks:
        """If the budget ended the search, ask for what comes next, so that a larger budget continues the run."""
        while self.budget_spent:
            self._discard_gradient()
            yield from self.descend(ignore_budget=True)

    def descend(self, *, ignore_budget: bool = False) -> Generator[Probes, Answers, str]:
        """Descend to a local minimum of the components in use; returns the reason for stopping.

        With ``ignore_budget``, the first gradient is asked for even if the budget does not cover it.
        """
        context, C = self.context, self.C
        moved = self.theta is not context.theta0 and self.theta is not self.local_minimum and not self.g.size
        if moved and self.model.scaled and not self.coarse_step:
            yield from self._newton_steps(3)  # components were added: adapt to them on the present support first
        while True:
            self.budget_spent = (
                self.calls_available < self.gradient_cost(C.size) + self.m * self.repeats and not ignore_budget
            )
            if self.budget_spent:
                return _BUDGET_SPENT
            ignore_budget = False
            g = yield from self._full_gradient()
            C = self.C
            if self.theta is not self.local_minimum:
                reason = yield from self._iterate(g)
                if reason:
                    return reason
                if self.theta is not self.local_minimum:
                    continue
            self.budget_spent = self.calls_available < self.gradient_cost(C.size) + self.m * self.repeats
            if self.budget_spent:
                return _BUDGET_SPENT
            g = yield from self._full_gradient()
            improved = yield from self._try_exchanges(g)
            if not improved and not (yield from self._average_more_calls()):
                return "No exchange of one coordinate lowers F."

    def _iterate(self, g: Array) -> Generator[Probes, Answers, str]:
        """Make a step that may change the support, and steps on it; returns a reason to stop, or an empty string."""
        context, C = self.context, self.C
        all_components, previous_F = self.m == context.n, self.F
        self.gauss_newton = None
        if self._gauss_newton_fits:
            self.gauss_newton_pause -= 1
            if self.gauss_newton_pause < 0:
                yield from self._fit_gauss_newton()
        yield from self._support_step(g)
        if self.theta is not self.g_theta:
            yield from self._newton_steps(30 if all_components else 8)
        negligible = previous_F - self.F <= self._negligible_decrease(all_components)
        if not all_components and (self.theta is not self.g_theta or negligible):
            return "More components are needed."
        if previous_F - self.F > self._negligible_decrease(all_components):
            self.shortenings = 0
            return ""
        paused = self.gauss_newton is None and self.gauss_newton_losses and self.gauss_newton_pause >= 0
        if paused and self._gauss_newton_fits:
            self.gauss_newton_pause = 0  # the Gauss-Newton model lost before, but it may be right here
            return ""
        if self.coarse_step and self.calls_available < 3 * self.gradient_cost(C.size):
            # values are cheap compared with another gradient
            yield from evolve_on_support(self)
            while (yield from self._try_exchanges(g)):
                yield from evolve_on_support(self)
        if self._adapt_difference_step():
            return ""
        if self.coarse_step:
            yield from evolve_on_support(self)
        if self.diagnosis.random:
            yield from self._minimise_surface()
        self.local_minimum = self.theta
        return ""

    def _full_gradient(self) -> Generator[Probes, Answers, Array]:
        """Return the gradient on all coordinates at theta, from the last time if theta has not moved."""
        if not self.g.size or self.g_theta is not self.theta:
            if self.diagnosis.random:
                yield from self._update_noise()
            g = yield from self.gradient(self.C)
            while self.diagnosis.random:  # lengthen the difference step while the gradient is mostly noise
                noise = max(self._slope_noise() * math.sqrt(self.C.size), _TINY)
                self.signal_to_noise = float(np.linalg.norm(g)) / noise
                affordable = self.calls_available >= 4 * self.gradient_cost(self.C.size)
                if self.signal_to_noise > _CLEAR_SIGNAL or self.step_factor > _MAX_STEP_FACTOR or not affordable:
                    break
                self.step_factor *= 4
                g = yield from self.gradient(self.C)
            if not self.model.coordinates.size:
                g = self._start_model(g)
            if self.g.size:
                self.model.learn(self.theta - self.g_theta, g - self.g, self.C, self._slope_noise())
            self.g, self.g_theta = g, self.theta
        return self.g

    def _start_model(self, g: Array) -> Array:
        """Start the quasi-Newton model; if there are very many coordinates, only the steepest ones are modelled."""
        context, C = self.context, self.C
        forced = np.isin(C, context.constraint.include) | (self.theta[C] != 0) | (context.theta0[C] != 0)
        most = MAX_MODELLED_COORDINATES
        if C.size > most:
            keep = np.sort(np.argsort(-np.where(forced, np.inf, np.abs(g)), kind="stable")[:most])
            context.remark(f"htp: Of {C.size} coordinates, only the {most} with the steepest slopes are searched.")
            self.C, self.component_gradients, g = C[keep], self.component_gradients[:, keep], g[keep]
        self.model = QuasiNewton(self.C)
        return g

    def _update_noise(self) -> Asks:
        """Measure the noise at theta, which may differ from the noise at the start."""
        four = yield from self.context.values([self.theta] * 4, self.components)
        noise = float(np.sqrt(four.var(axis=0, ddof=1).mean()))
        if noise > 0:
            self.diagnosis = replace(self.diagnosis, noise=noise)
        share = 4 / (4 + self.repeats)
        self.values = share * four.mean(axis=0) + (1 - share) * self.values
        self._move_context()

    def _discard_gradient(self) -> None:
        """Discard the last gradient, because it was measured in a different way."""
        self.g = np.empty(0)

    def _adapt_difference_step(self) -> bool:
        """Change the difference step if F is not smooth or the noise allows it; returns whether it has changed."""
        if not self.coarse_step and self.kink_suspected:  # slopes at a point are misleading here
            self.coarse_step, self.kink_suspected = _COARSE_ROUGH, False
            self.context.remark("The function has kinks; using differences over longer steps.")
        elif (
            self.diagnosis.random
            and not self.coarse_step
            and self.signal_to_noise > _STRONG_SIGNAL
            and self.shortenings < _MAX_SHORTENINGS
        ):
            self.step_factor /= 5  # the length of the step is what misleads, not the noise
            self.shortenings += 1
        elif self.coarse_step > _FINEST_COARSE_STEP:
            self.coarse_step /= 3
        else:
            return False
        self._discard_gradient()
        return True

    def _average_more_calls(self) -> Generator[Probes, Answers, bool]:
        """If values are random, average four times as many calls per value; returns whether that was affordable."""
        context = self.context
        cost = 4 * self.repeats * self.m * (self.C.size + 4)
        if not self.diagnosis.random or self.calls_available < cost:
            return False
        self.repeats *= 4
        context.remark(f"Further gains are hidden by noise; each value is now the mean of {self.repeats} calls.")
        yield from self._minimise_surface()
        self.tried_supports.clear()
        self._discard_gradient()
        return True

    def _minimise_surface(self) -> Asks:
        """If values are random: move to the minimum of a response surface through many of them, on this support."""
        context, S = self.context, np.flatnonzero(self.theta)
        if not self.coarse_step and 0 < S.size <= _MAX_SURFACE_COORDINATES:
            noise = self.diagnosis.noise / math.sqrt(self.m)
            surface = ResponseSurface(context, self.theta, self.model.block(S), self._mu(), noise)
            self.theta = yield from surface.search(0.5 * context.used, self.components)
        self.values = yield from self.values_at(self.theta)
        self._move_context()
        self.local_minimum = self.theta

    def _negligible_decrease(self, all_components: bool) -> float:
        """Return the largest decrease of F that is not worth another round."""
        share = _NEGLIGIBLE if all_components else _NEGLIGIBLE_ON_SOME
        return share * max(self.total_decrease, 0.0) + self.noise_margin

    def _slope_noise(self) -> float:
        """Return the noise of an entry of the gradient."""
        return 2 * self.diagnosis.noise / max(self._mu() * math.sqrt(max(self.m, 1) * self.repeats), _TINY)

    def _support_step(self, g: Array) -> Asks:
        """Make a step that may change the support: to the sparse minimiser of a model, damped until F decreases.

        If there is a Gauss-Newton model, it competes with the quasi-Newton model, and the winner is kept.
        """
        model = self.model
        if not model.scaled:
            yield from self._measure_curvature(g)
        if self.gauss_newton is not None:
            trial = self._model_minimiser(self.gauss_newton, g, 0.0)
            if trial is not None and self.calls_available >= 2 * self.m:
                values = yield from self.values_at(trial)
                other = self._model_minimiser(model, g, 0.0)
                if other is not None and not np.array_equal(other, trial):
                    other_values = yield from self.values_at(other)
                    if float(other_values.mean()) < float(values.mean()):
                        self.gauss_newton_losses += 1
                        self.gauss_newton_pause = self.gauss_newton_losses - 1
                        trial, values = other, other_values
                    else:
                        self.gauss_newton_losses, self.model = 0, self.gauss_newton
                if float(values.mean()) < self.F:
                    yield from self._extend_step(g, trial, values)
                    return
        damping = 0.0
        for _ in range(_MAX_DAMPING_ROUNDS):
            trial = self._model_minimiser(self.model, g, damping)
            if trial is None or self.calls_available < self.m:
                return
            values = yield from self.values_at(trial)
            decrease = self.F - float(values.mean())
            if decrease > 0:
                yield from self._extend_step(g, trial, values)
                return
            move = (trial - self.theta)[self.C]
            curvature = 2 * (-float(g @ move) - decrease) / max(float(move @ move), _TINY)  # of F along the step
            # the damping that would explain this curvature, halved; at least 4 times the last one
            needed = 0.5 * (curvature / self.model.mean_curvature - 1)
            damping = min(max(4 * damping, needed, 0.1), max(100 * damping, 10.0))
        undamped = self._model_minimiser(self.model, g, 0.0)
        promised = 0.0 if undamped is None else -float(g @ (undamped - self.theta)[self.C])
        threshold = _KINK_PROMISE * self.total_decrease + 10 * self.noise_margin
        self.kink_suspected = not self.diagnosis.random and promised > threshold

    def _extend_step(self, g: Array, trial: Array, values: Array) -> Asks:
        """Accept a step that lowered F, after extending it in its direction as long as that pays."""
        context, C, start, length = self.context, self.C, self.theta, 1.0
        direction = trial - start
        decrease = self.F - float(values.mean())
        promised = -float(g @ direction[C])
        while (  # F decreases almost as steeply as at the beginning
            decrease > 0.6 * length * promised
            and self.calls_available >= self.m * self.repeats
            and length < _MAX_EXTENSION
        ):
            length *= 2.5
            further = context.H(start + length * direction)
            further_values = yield from self.values_at(further)
            further_decrease = self.F - float(further_values.mean())
            if not further_decrease > decrease:
                break
            trial, values, decrease = further, further_values, further_decrease
        self.accept(trial, values)

    @property
    def _max_step_length(self) -> float:
        """The longest step that is ever made."""
        natural = max(self.diagnosis.length, float(np.linalg.norm(self.context.theta0)))
        return min(1e5 * max(natural, float(np.linalg.norm(self.theta))), 1e20 * natural)

    def _newton_step(self, g: Array, S: Indices) -> Array:
        """Return the quasi-Newton step on the support S."""
        step = self.model.step(g, S)
        return step * min(1.0, self._max_step_length / max(float(np.linalg.norm(step)), _TINY))

    def _model_minimiser(self, model: QuasiNewton, g: Array, damping: float) -> Array | None:
        """Return the sparse minimiser of a model, or None if it promises no decrease."""
        context = self.context
        # curvature that keeps the step below the largest length
        extra_curvature = float(np.abs(g).max()) * math.sqrt(context.k) / self._max_step_length
        if context.constraint.groups is not None:  # the models know no groups: a gradient step and the exact projection
            step = self.theta.copy()
            step[self.C] -= g / (model.mean_curvature * (1 + damping) + extra_curvature)
            trial = context.H(step)
        else:
            trial = context.H(
                model.sparse_minimiser(self.theta, g, self.C, context.k, context.constraint, damping, extra_curvature)
            )
        promised = -float(g @ (trial - self.theta)[self.C])
        return trial if promised > 0 and not np.array_equal(trial, self.theta) else None

    def _measure_curvature(self, g: Array) -> Asks:
        """Measure the curvature along the thresholded gradient with one more value, and scale the model with it."""
        context, C = self.context, self.C
        full_g = np.zeros(context.d)
        full_g[C] = g
        step = context.constraint.project(self.theta - full_g) - self.theta if self.theta.any() else -context.H(full_g)
        S = np.flatnonzero(context.constraint.project(full_g)) if not step.any() else np.flatnonzero(step)
        direction = np.zeros(context.d)
        direction[S] = -full_g[S]
        norm = float(np.linalg.norm(direction))
        if norm == 0 or self.calls_available < self.m:
            self.model.scaled = True
            return
        h = max((1.0 if self.coarse_step else 0.1) * self.diagnosis.length, self._mu()) / norm
        point = context.inside(self.theta + h * direction)
        values = yield from self.values_at(point)
        moved = point - self.theta
        square = float(moved @ moved)
        curvature = 2 * (float(values.mean()) - self.F - float(full_g @ moved)) / max(square, _TINY)
        min_curvature = 1e-3 * norm / max(self.diagnosis.length, _TINY)
        self.model.rescale(max(curvature, min_curvature, _TINY))

    def _newton_steps(self, rounds: int) -> Asks:
        """Make up to ``rounds`` quasi-Newton steps on the support, with a backtracking line search."""
        context, model = self.context, self.model
        S = np.flatnonzero(self.theta)
        last: tuple[Array, Array] | None = None
        for _ in range(rounds):
            if S.size == 0 or self.calls_available < self.gradient_cost(S.size) + 2 * self.m:
                return
            g = yield from self.gradient(S)
            if last is not None:
                model.learn(self.theta - last[0], g - last[1], S, self._slope_noise())
            last = self.theta, g
            step = self._newton_step(g, S)
            slope = float(g @ step)
            if not slope < 0:
                return
            previous_F, length, decreased = self.F, 1.0, False
            for _ in range(_MAX_BACKTRACKS):
                trial = self.theta.copy()
                trial[S] += length * step
                trial = context.H(trial)
                if self.calls_available < self.m:
                    return
                values = yield from self.values_at(trial)
                rise = float(values.mean()) - previous_F
                if rise < _ARMIJO * length * slope:
                    decreased = True
                    break
                excess = 2 * (rise - length * slope)  # minimiser of the parabola through both values, safeguarded
                length *= min(max(-length * slope / excess if excess > 0 else 0.25, 0.05), 0.5)
            if not decreased:
                return
            self.accept(trial, values)
            negligible = self._negligible_decrease(self.m == context.n)
            if previous_F - self.F <= negligible and previous_F - self.F <= -0.1 * slope:
                return
            if previous_F - self.F <= 0.1 * negligible:
                return

    def _try_exchanges(self, g: Array) -> Generator[Probes, Answers, bool]:
        """Try the exchanges of one coordinate that the model prefers; returns whether one of them lowers F."""
        context, C, model = self.context, self.C, self.model
        if context.constraint.groups is not None:
            return False
        remaining = self.exchanges * (10 if self.coarse_step else 1)
        for point in model.exchanges(self.theta, g, C, 4 * remaining):
            support_key = np.flatnonzero(point).tobytes()
            if support_key in self.tried_supports or remaining == 0:
                continue
            self.tried_supports.add(support_key)
            remaining -= 1
            trial = context.H(point)
            cost = self.m * self.repeats * (2 if self.coarse_step else 2 * context.k + 4)
            if self.calls_available < cost:
                return False
            values = yield from self.values_at(trial)
            if self.coarse_step:  # slopes say little here, and values are cheap
                if float(values.mean()) < self.F - self.noise_margin:
                    self.accept(trial, values)
                    return True
                continue
            current, previous_F, total_decrease = (self.theta, self.values), self.F, self.total_decrease
            self.theta, self.values = trial, values
            yield from self._refine_trial(previous_F)
            if previous_F - self._negligible_decrease(True) > self.F:
                self._move_context()
                return True
            self.total_decrease = total_decrease
            self.theta, self.values = current
            self._move_context()
        return False

    def _refine_trial(self, F_to_beat: float) -> Asks:
        """Make quasi-Newton steps on the support of a trial point, as long as they may still beat this value of F."""
        model = self.model
        S = np.flatnonzero(self.theta)
        last: tuple[Array, Array] | None = None
        for _ in range(4):
            if S.size == 0 or self.calls_available < self.gradient_cost(S.size) + 2 * self.m:
                return
            g = yield from self.gradient(S)
            if last is not None:
                model.learn(self.theta - last[0], g - last[1], S, self._slope_noise())
            last = self.theta, g
            step = self._newton_step(g, S)
            promised = -0.5 * float(g @ step)
            if self.F - 3 * promised > F_to_beat or promised <= self._negligible_decrease(True):
                return
            trial = self.theta.copy()
            trial[S] += step
            trial = self.context.constraint.project(trial)
            values = yield from self.values_at(trial)
            if not float(values.mean()) < self.F:
                return
            self.theta, self.values = trial, values


def _places(context: Context, coordinates: Indices) -> int:
    """Return how many of the k places of a support these coordinates can fill: one each, or one per group."""
    groups = context.constraint.groups
    return int(coordinates.size if groups is None else np.unique(groups[coordinates]).size)


def _first_coarse_step(diagnosis: Diagnosis) -> float:
    """Return the first difference step as a share of |theta| if F is not smooth; 0 if it is."""
    return _COARSE_KINK if diagnosis.kink else _COARSE_ROUGH if diagnosis.rough else 0.0
