"""Where a Gauss-Newton search is: a point, its outputs, and a Jacobian whose columns were measured at various times."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.losses import Custom, Squared
from zerothresh.methods.program.context import Context
from zerothresh.methods.residual.jacobians.filtered_jacobian import FilteredJacobian, row_scaling
from zerothresh.methods.residual.jacobians.loss_weights import slopes, total_loss
from zerothresh.methods.residual.jacobians.robust_fit import Fits, far_fit, sparse_fits
from zerothresh.methods.residual.jacobians.sparse_choice import Choice
from zerothresh.methods.residual.nothing_left import within_rounding
from zerothresh.methods.residual.residual_settings import EXCHANGE, LOOK, TINY, UNKNOWN
from zerothresh.methods.residual.track_record import TrackRecord
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


@dataclass(frozen=True)
class Evaluated:
    """A point, its outputs (NaN where one is missing), and the sum of their losses."""

    x: Array
    r: Array
    f: float


Runs = Generator[Probes, Answers, list[Evaluated]]
Beside = tuple[Indices, Sequence[Evaluated]]  # coordinates, and a run at a difference step along each of them


def choice_of(context: Context) -> Choice:
    """Return what may be non-zero as the models want it."""
    constraint, d, box = context.constraint, context.d, context.box
    unit = np.arange(d) if constraint.groups is None else constraint.groups
    low = np.full(d, -np.inf) if box is None else box.low
    high = np.full(d, np.inf) if box is None else box.high
    forced = np.unique(unit[constraint.include]) if constraint.include.size else np.empty(0, np.int64)
    return Choice(unit, context.k, forced, low, high)


class Linearised:
    """The present run, the columns of J with their ages, lengths of coordinates, and the noise.

    Attributes
    ----------
    at: the present `Evaluated`.
    J, measured: float64 arrays (n, d), the columns as they are believed to be now, and as they were measured.
    age: float64 array (d,), the variance of the error of each column in units of curvature: 0 when measured.
    length: float64 array (d,), the length of each coordinate, by which all steps are measured; D is one over it.
    step: float, a difference step over the length.
    noise: float, the summed square of the noise of a difference of two runs.
    floor: float, the sum of losses that noise alone would leave.
    width: int, the number of runs that take no longer than one.
    """

    def __init__(self, context: Context, width: int = 1) -> None:
        self.context, self.choice, self.width = context, choice_of(context), width
        self.loss = None if isinstance(context.loss, Squared) else context.loss
        self.step, self.noise, self.curvature = LOOK.step, 0.0, 0.0
        self.floor = -np.inf if isinstance(self.loss, Custom) else 0.0  # a user's loss may fall below 0
        self.best = np.inf
        self.published = np.inf  # the sum of losses at the point whose columns are kept for the result
        self.predictions = TrackRecord()
        self.tabu: set[tuple[int, ...]] = set()
        self.fresh_age = np.zeros(context.d)
        self.restarts, self.refused, self.returns = 0, 0, 0  # refused: a first run that led too far away
        self.restarted_early, self.looked = False, False
        self.interrupted: Any = None  # the `SupportDescent` whose steps were interrupted last
        self.fixed = self.choice.high <= self.choice.low

    # Runs.

    def runs(self, points: Sequence[Array]) -> Runs:
        """Ask for the outputs at some points, in one round; the best feasible one becomes the iterate."""
        outputs = yield from self.context.outputs(list(points))
        found = [Evaluated(x, r, total_loss(self.loss, r)) for x, r in zip(points, outputs, strict=True)]
        for run, F in zip(found, self.context.mean_losses(outputs).tolist(), strict=True):
            if run.f < self.best and self.context.constraint.holds(run.x):
                self.best = run.f
                self.context.move(run.x.copy(), F)
        return found

    def begin(self, x: Array) -> Generator[Probes, Answers, None]:
        """Make the first run."""
        self.at = (yield from self.runs([x]))[0]
        self.start = self.at.f
        self.size = float(np.linalg.norm(np.nan_to_num(self.at.r)))
        n, d = self.at.r.size, x.size
        self.J, self.measured = np.zeros((n, d)), np.zeros((n, d))
        self.age, self.D = np.full(d, UNKNOWN), np.ones(d)
        self.length = self._first_lengths(x)

    def _first_lengths(self, x: Array) -> Array:
        """Lengths from the bounds if they are finite, else from the start if it is not 0, else 1 by convention."""
        room = self.choice.high - self.choice.low
        finite = np.isfinite(room) & (room > 0)
        if finite.any():
            return np.where(finite, room, np.median(room[finite]))
        size = np.abs(x)
        return np.where(size > 0, size, size.max() if size.any() else 1.0)

    @property
    def support(self) -> Indices:
        """The coordinates that are not 0, or whose unit is chosen or forced; all free ones if all may be non-zero."""
        return self.support_of(self.at.x)

    def support_of(self, x: Array) -> Indices:
        """Return the same for another point."""
        if self.choice.everything:
            return np.flatnonzero(~self.fixed | (x != 0))
        return self.choice.coordinates(self.choice.units(np.flatnonzero(x)))

    @property
    def done(self) -> bool:
        """Whether nothing is left to gain."""
        return self.enough(self.at, self.J[:, self.support], self.support)

    def enough(self, run: Evaluated, J: Array, S: Indices) -> bool:
        """Whether nothing is left to gain after a run, where J are the columns S."""
        return run.f <= max(self.floor, within_rounding(self.loss, run.r, J, run.x[S]))

    def change(self, run: Evaluated) -> Array:
        """Return how the outputs differ from those at the present point; 0 where one is missing."""
        return np.nan_to_num(run.r - self.at.r)

    def columns(self, chosen: Indices) -> Generator[Probes, Answers, None]:
        """Measure some columns at the present point, all in one round."""
        if chosen.size:
            self.differ(chosen, (yield from self.runs(self.beside(self.at.x, chosen))))

    def beside(self, x: Array, chosen: Indices) -> list[Array]:
        """Return the points at a difference step from x along some coordinates."""
        steps = self.step * np.where(self.noise > 0, self.length, np.maximum(np.abs(x), self.length))
        return [self.choice.moved(x, np.where(np.arange(x.size) == j, steps, 0.0)) for j in chosen]

    def differ(self, chosen: Indices, runs: Sequence[Evaluated]) -> None:
        """Take columns from runs beside the present point, one for each."""
        for j, run in zip(chosen, runs, strict=True):
            h = run.x[j] - self.at.x[j]
            if np.isfinite(run.f) and h != 0:
                self.J[:, j] = self.change(run) / h
                self.measured[:, j] = self.J[:, j]
            self.age[j] = self.fresh_age[j]
        self._publish()

    def _publish(self) -> None:
        """Keep the columns of the support for the result, if this is the best point whose columns were measured.

        A run beside this point, for a column, may be a little better: then these columns are the nearest ones.
        """
        S = self.support
        if S.size and self.at.f <= self.published:
            self.published = self.at.f
            self.context.linearised(S, self.J[:, S])

    def set_metric(self) -> None:
        """Take the lengths of coordinates from their columns: over a length, the linear model uses up the outputs.

        No length is above the size of the start, if that is not 0, nor above the room between bounds.
        """
        norms, room = np.linalg.norm(self.J, axis=0), self.choice.high - self.choice.low
        most = float(np.abs(self.context.theta0).max()) or np.inf
        with np.errstate(all="ignore"):
            length = np.minimum(np.minimum(self.size / norms, most), np.where(room > 0, room, np.inf))
        usable = np.isfinite(length) & (length > 0)
        self.length = np.where(usable, length, length[usable].max(initial=TINY) if usable.any() else 1.0)
        self.D = 1 / self.length
        if self.noise > 0:
            self.curvature = self.curvature or self.size**2
            self.fresh_age = np.full(norms.size, self.noise / self.step**2 / self.curvature)
            self.age = np.maximum(self.age, self.fresh_age)

    def old_columns(self) -> Indices:
        """Return the coordinates whose columns are old."""
        return np.flatnonzero((self.age > EXCHANGE.aged * self.fresh_age) & ~self.fixed)

    def saved(self) -> tuple[Any, ...]:
        """Return where the search is, to come back to it."""
        return self.at, self.J.copy(), self.measured.copy(), self.age.copy(), self.D.copy()

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Go back to where the search was."""
        self.at = saved[0]
        self.J, self.measured, self.age, self.D = (array.copy() for array in saved[1:])

    # The noise of F.

    def spread(self, f: float) -> float:
        """Return the standard deviation of the sum of losses that the noise of one run causes."""
        variance = self.noise / 2 / self.at.r.size
        return 2 * float(np.sqrt(variance * f)) + variance * float(np.sqrt(2 * self.at.r.size))

    # The model.

    def filter_on(self, S: Indices) -> FilteredJacobian:
        """Return the columns of some coordinates as a filter."""
        return FilteredJacobian(self.J[:, S], np.diag(self.age[S]), self.D[S], self.noise, self.curvature)

    def take(self, run: Evaluated, S: Indices, known: FilteredJacobian) -> None:
        """Move to a run, with what was learnt of the columns S on the way; the others have aged."""
        away = (run.x - self.at.x) * self.D
        self.age = self.age + 0.5 * float(away @ away)
        self.at, self.curvature = run, known.curvature
        self.J[:, S], self.age[S] = known.J, np.diag(known.rescaled(self.D[S]).P)
        self._publish()

    def move(self, run: Evaluated, beside: Beside | None = None) -> None:
        """Move to a run that was asked for outside a descent; the columns along the step learn from it."""
        S = np.flatnonzero((run.x != 0) | (self.at.x != 0))
        known = self.filter_on(S)
        s = (run.x - self.at.x)[S] * self.D[S]
        self.take(run, S, known.learn(s, self.change(run) - known.change(s), moved=True))
        if beside is not None:
            self.differ(*beside)

    def gains_at(self, y: Array) -> Array:
        """Return by how much each coordinate alone would lower the sum of losses after a move to y, by the model."""
        pull = slopes(self.loss, self.at.r + self.J @ (y - self.at.x))
        return np.asarray((pull @ self.J) ** 2 / np.maximum(np.einsum("ij,ij->j", self.J, self.J), TINY))

    def fits(self, J: Array, restarts: int, starts: Sequence[Indices] = ()) -> Fits:
        """Return sparse minimisers of the linearised model with the predicted sums of losses, best first."""
        at, uniform = self.at, self.context.rng.uniform
        return sparse_fits(self.loss, at.r, J, at.x, self.choice, uniform, restarts, starts)

    def far_fit(self, restarts: int) -> Array:
        """Return a sparse minimiser of the linearised model for a point that may be far away."""
        at, uniform = self.at, self.context.rng.uniform
        return far_fit(self.loss, at.r, self.J, at.x, self.choice, uniform, restarts).y

    def scaled_columns(self) -> Array:
        """Return J with old columns scaled by rows as those of the support have changed, if that predicts better."""
        S = self.support
        if S.size < 2:
            return self.J.copy()
        factors, error = row_scaling(self.measured[:, S], self.J[:, S], EXCHANGE.row_ridge)
        J = self.J.copy()
        if error < EXCHANGE.row_gain:
            old = self.age > 0
            old[S] = False
            J[:, old] = self.measured[:, old] * factors[:, None]
        return J
