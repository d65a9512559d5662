"""Minimising the modelled F of components that are curves of one score each: sparse Newton steps and exchanges.

No calls are made here. Decreases count relative to the fall of the model from where the search began, so that nothing
depends on the offset or the unit of F.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint import splicing
from zerothresh.constraint.threshold import Constraint
from zerothresh.methods.auto.models.curves import Splines
from zerothresh.methods.auto.models.index_rows import IndexRows, norms
from zerothresh.methods.auto.settings.floating_point import EPS, TINY
from zerothresh.methods.auto.settings.single_index_settings import CURVES


def sparse_minimiser(
    data: IndexRows,
    constraint: Constraint,
    A: Array,
    b: Array,
    k: int,
    theta: Array,
    *,
    only_current_support: bool = False,
) -> Array:
    """Minimise the quadratic model 1/2 x'Ax - b'x on C within the constraint, by exchanges of coordinates.

    With ``only_current_support``, exchanges start from the support of theta alone.
    """
    C = data.C
    forced = np.flatnonzero(np.isin(C, constraint.include))
    start = np.flatnonzero(theta[C])
    starts = [start] if start.size else []
    out = np.zeros(theta.size)
    out[C] = splicing.best_subset(A, b, k, starts=starts, forced=forced, only_given_starts=only_current_support)
    return splicing.make_feasible(A, b, out, C, constraint)


@dataclass(frozen=True)
class ModelledMean:
    """The mean of the modelled components around a point, and searches for its sparse minimiser.

    Arguments
    ---------
    data: the rows and the l2 term.
    splines: the functions l_i around ``centre``.
    constraint: the feasible set.
    k: int, the largest number of non-zeros.
    natural: float, the natural length along a row.
    centre: array of shape (d,), where the search begins.
    trust_radius: float, how far the scores may move from there, in the unit of a row of norm 1.
    """

    data: IndexRows
    splines: Splines
    constraint: Constraint
    k: int
    natural: float
    centre: Array
    trust_radius: float

    def at(self, theta: Array) -> tuple[float, Array, Array]:
        """Return the modelled F, and l_i' and l_i'' of all components."""
        value, slope, curvature = self.splines.at(self.data.scores(theta))
        return float(value.mean()) + float(self.data.l2_change(theta)), slope, curvature

    def derivatives(self, theta: Array, slope: Array, curvature: Array) -> tuple[Array, Array]:
        """Return gradient and Hessian on C."""
        return self.data.derivatives(slope, curvature, theta, self.natural)

    def trusted(self, theta: Array) -> bool:
        """Whether the scores at theta lie within the trust radius."""
        moved = np.abs(self.data.scores(theta) - self.data.scores(self.centre)) / norms(self.data.V)
        return bool(moved.max() <= self.trust_radius)

    def negligible(self, share: float, begun: float, value: float) -> float:
        """Return a share of the fall so far, and what rounding may do to a mean."""
        return share * max(begun - value, 0.0) + CURVES.rounding * EPS * abs(value)

    def descend(self, theta: Array, begun: float) -> tuple[Array, float]:
        """Make damped sparse Newton steps until none lowers the modelled F; returns the point and its value.

        Only the first step may choose any support; the others start from the current one.
        """
        value, slope, curvature = self.at(theta)
        for iteration in range(CURVES.newton_steps):
            g, A = self.derivatives(theta, slope, curvature)
            mean_curvature, damping = float(np.trace(A)) / g.size, 0.0
            for _ in range(CURVES.dampings):
                damped = A + (damping * mean_curvature) * np.eye(g.size)
                b = damped @ theta[self.data.C] - g
                only_current = iteration > 0 or damping > 0
                trial = sparse_minimiser(
                    self.data, self.constraint, damped, b, self.k, theta, only_current_support=only_current
                )
                if self.trusted(trial) and (at_trial := self.at(trial))[0] < value:
                    break
                damping = max(CURVES.damping_growth * damping, CURVES.first_damping)
            else:
                break
            decrease = value - at_trial[0]
            theta, (value, slope, curvature) = trial, at_trial
            if decrease <= self.negligible(CURVES.converged_step, begun, value):
                break
        return theta, value

    def refit(self, theta: Array, S: Indices, begun: float) -> tuple[Array, float]:
        """Minimise the modelled F on the support C[S] with Newton's method; returns the point and its value."""
        data, support = self.data, self.data.C[S]
        W = data.V[:, S]
        value, slope, curvature = self.at(theta)
        for _ in range(CURVES.refit_steps):
            g = W.T @ slope / len(W) + data.lam * (theta - data.centre)[support]
            A = (W * np.maximum(curvature, 0.0)[:, None]).T @ W / len(W) + data.lam * np.eye(S.size)
            mean_curvature = float(np.trace(A)) / S.size
            shift = CURVES.refit_shift * mean_curvature + TINY
            for _ in range(CURVES.refit_dampings):
                trial = theta.copy()
                trial[support] -= splicing.minimiser(A + shift * np.eye(S.size), g)
                trial = self._clipped(trial)
                if (at_trial := self.at(trial))[0] < value:
                    break
                shift = max(CURVES.refit_growth * shift, CURVES.first_damping * mean_curvature)
            else:
                break
            decrease = value - at_trial[0]
            theta, (value, slope, curvature) = trial, at_trial
            if decrease <= self.negligible(CURVES.converged_refit, begun, value):
                break
        return theta, value

    def _clipped(self, theta: Array) -> Array:
        box = self.constraint.box
        return theta if box is None else np.clip(theta, box.low, box.high)

    def exchange(self, theta: Array, value: float, begun: float) -> tuple[Array, float]:
        """Drop a coordinate, refit the others, add the most promising one; return the first improvement."""
        data = self.data
        support = np.flatnonzero(theta[data.C])
        forced = np.isin(data.C[support], self.constraint.include)
        _, _, curvature = self.at(theta)
        bend = (data.V[:, support] ** 2 * np.maximum(curvature, 0)[:, None]).mean(axis=0) + data.lam
        bar = value if value == math.inf else value - self.negligible(CURVES.better_exchange, begun, value)
        loss = np.where(forced, np.inf, theta[data.C[support]] ** 2 * bend)
        for a in np.argsort(loss, kind="stable")[: min(CURVES.dropped, np.count_nonzero(~forced))].tolist():
            rest = np.delete(support, a)
            without = theta.copy()
            without[data.C[support[a]]] = 0.0
            if rest.size:
                without, _ = self.refit(without, rest, begun)
            _, slope, curvature = self.at(without)
            g, A = self.derivatives(without, slope, curvature)
            gain = g * g / np.diag(A)
            gain[support] = -1.0
            for j in np.argsort(-gain, kind="stable")[: CURVES.added].tolist():
                trial, at_trial = self.refit(without, np.append(rest, j), begun)
                if at_trial < bar and self.trusted(trial):
                    return trial, at_trial
        return theta, value

    def exchange_all(self, theta: Array, value: float, begun: float) -> tuple[Array, float]:
        """Exchange coordinates until no exchange lowers the modelled F."""
        for _ in range(CURVES.exchanges * self.k):
            trial, _ = self.exchange(theta, value, begun)
            if trial is theta:
                break
            theta, value = self.descend(trial, begun)
        return theta, value

    def search(self, worth_asking: float, halves: NDArray[np.bool_]) -> tuple[Array, float]:
        """Find a sparse minimiser of the modelled F.

        Other supports are searched only if descent alone gains little, and restarts are made only if exchanges gain
        nothing: otherwise new values are worth more than a better minimiser of the present model.

        Arguments
        ---------
        worth_asking: float, a decrease that is just worth a round of calls.
        halves: array of shape (restarts, d) of booleans, the coordinates that each restart keeps.
        """
        begun = self.at(self.centre)[0]
        theta0 = self.data.theta0
        theta, value = self.descend(self.centre, begun)
        if begun - value > CURVES.worth_searching * worth_asking:
            return theta, value
        if self.centre is not theta0 and self.trusted(theta0):
            begun = max(begun, self.at(theta0)[0])
            theta, value = min((theta, value), self.descend(theta0, begun), key=lambda found: found[1])
        theta, value = self.exchange_all(theta, value, begun)
        if self.at(self.centre)[0] - value > worth_asking:
            return theta, value
        work = CURVES.newton_steps * self.data.C.size**2 * len(self.data)
        restarts = min(len(halves), int(CURVES.work / work)) if np.count_nonzero(theta) > 1 else 0
        for half in halves[:restarts]:
            start = self.constraint.project(np.where(half, theta, 0.0))
            other = self.descend(self.exchange(start, math.inf, begun)[0], begun)
            other = self.exchange_all(*other, begun)
            if other[1] < value and self.trusted(other[0]):
                theta, value = other
        return theta, value
