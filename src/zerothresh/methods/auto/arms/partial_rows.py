"""The single-index model where the budget does not pay for whole rows: screening by single entries of the rows.

Three rows tell whether the form holds. From then on an entry of a row costs one call, and `EntryScreen` says which
one to ask. A coordinate whose odds are worth a whole column is asked on all components, and joins the model if its
slope stands out. The model is minimised almost without calls, because each component is a function of one variable
that has been sampled along a random direction. Then the components that it explains least are asked first.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.arms.row_learning import RowLearner
from zerothresh.methods.auto.arms.score_fit import ScoreFit
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.curves import Curves
from zerothresh.methods.auto.models.entry_screen import EntryScreen, shrunk_sizes
from zerothresh.methods.auto.models.index_rows import RowBlock
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.single_index_settings import CURVES, ROWS
from zerothresh.methods.auto.settings.single_index_settings import PARTIAL_ROWS as SETTINGS
from zerothresh.methods.program.context import Asks, Context
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def affords_entries(context: Context) -> bool:
    """Whether single entries are to be asked: the budget pays for them, but not for enough rows. Not with bounds."""
    n, d, k = context.n, context.free().size, context.k
    enough_rows = min(n, SETTINGS.enough_rows * k)
    rows = context.left >= ROWS.reserve * enough_rows * (d + 2)
    entries = d * max(SETTINGS.first_entries, SETTINGS.first_share * n)
    columns = n * (SETTINGS.least_values + SETTINGS.columns * k)
    several = n >= SETTINGS.fewest_components * math.log(max(d, 2))
    affordable = context.left >= max(entries, columns) and n * d <= SETTINGS.most_entries
    return context.box is None and several and affordable and not rows


class PartialRows:
    """The search: entries, columns that they make worth their price, and a fit on the columns that stand out.

    Arguments
    ---------
    context: the run.
    diagnosis: what the first calls found.
    """

    def __init__(self, context: Context, diagnosis: Diagnosis) -> None:
        self.context = context
        self.order = context.rng.subset(context.n, context.n)
        self.learner = RowLearner(context, diagnosis, self.order)
        self.data, self.state = self.learner.data, ScoreFit(self.learner)
        self.free = context.free()
        used = np.union1d(np.flatnonzero(context.theta0), context.constraint.include)
        self.given = np.flatnonzero(np.isin(self.free, used))  # positions in `free` of columns modelled in any case
        self.found = self.given[:0]  # of those that stand out
        self.refused = self.given[:0]  # of those that were asked completely, and do not

    def search(self) -> Generator[Probes, Answers, str]:
        """Learn three rows, test the form, and screen until the support is full; returns the reason for stopping."""
        context, learner = self.context, self.learner
        learnt = yield from learner.learn(ROWS.tested)
        if learnt and not learner.several_scores:
            learnt = yield from learner.has_the_form(learner.elsewhere())
        if not learnt:
            return "The components are not functions of one score."
        context.confirmed = True
        rows, size = self.data.V, (yield from self._learn_curves())
        self.screen = EntryScreen(context.n, self.free.size, size)
        for place, row in enumerate(rows):
            self.screen.add(np.full(row.size, place), np.arange(row.size), row)
        self.screen.reweigh(self.screen.ratio)
        for column in self.given.tolist():
            yield from self._ask_column(column)
        if self.given.size:
            yield from self._model()
        while self.found.size < context.k and context.left > SETTINGS.kept_values * context.n:
            odds = self.screen.log_odds()
            odds[self.screen.complete()] = -np.inf
            best = int(np.argmax(odds))
            if odds[best] == -np.inf:
                break
            if odds[best] > self._worth_a_column():
                yield from self._complete(best)
            else:
                yield from self._ask(odds)
        full = self.found.size >= context.k
        if not full and self.refused.size:  # what does not stand out may still lower F
            yield from self._fit(np.union1d(self._modelled, self.refused))
        return "The support is full." if full else "The budget does not pay for more columns."

    def _worth_a_column(self) -> float:
        """Return the log odds from which a column costs less, per coordinate found, than the search on average."""
        n, d, k = self.context.n, self.free.size, self.context.k
        chance = min(SETTINGS.likely, SETTINGS.column_price * n * k / self.context.left)
        return math.log(d / k) + math.log(chance)

    def _ask(self, odds: Array) -> Asks:
        """Ask the most promising coordinates on one further component each."""
        most = int(min(float(np.count_nonzero(odds > -np.inf)), self.context.left))
        count = min(max(int(SETTINGS.share * odds.size), 1), most)
        chosen = np.argpartition(-odds, count - 1)[:count]
        yield from self._entries(self.screen.missing(chosen), chosen)

    def _entries(self, rows: Indices, columns: Indices) -> Asks:
        """Ask for entries of rows; one round per component."""
        context, data, diagnosis = self.context, self.data, self.learner.diagnosis
        at_start = data.lam * (context.theta0 - data.centre)[self.free]
        for row in np.unique(rows).tolist():
            C = np.sort(columns[rows == row])
            base, of = data.f0[row : row + 1], self.order[row : row + 1]
            if context.left < C.size * (1 + diagnosis.central):
                return
            chosen = self.free[C]
            slopes, _ = yield from context.slopes(
                context.theta0, chosen, diagnosis.mu, of, base, central=diagnosis.central
            )
            self.screen.add(np.full(C.size, row), C, slopes[0] - at_start[C])

    @property
    def _modelled(self) -> Indices:
        return np.union1d(self.given, self.found)

    def _ask_column(self, column: int) -> Asks:
        """Ask one coordinate on all components."""
        rows = np.flatnonzero(~self.screen.known[:, column])
        context, data, diagnosis = self.context, self.data, self.learner.diagnosis
        of, chosen, mu = self.order[rows], self.free[column : column + 1], diagnosis.mu
        asked = context.slopes(context.theta0, chosen, mu, of, data.f0[rows], central=diagnosis.central)
        slopes = (yield from asked)[0][:, 0] - data.lam * (context.theta0 - data.centre)[chosen]
        self.screen.add(rows, np.full(rows.size, column), slopes)

    def _complete(self, column: int) -> Asks:
        """Ask one coordinate on all components, and model it if its slope stands out."""
        yield from self._ask_column(column)
        self.refused = np.append(self.refused, column)
        while self.found.size < self.context.k:  # a new model may let refused ones stand out, too
            scores = self.screen.scores()[self.refused]
            if scores.max(initial=0.0) < self.screen.stands_out:
                return
            best = self.refused[int(np.argmax(scores))]
            self.found, self.refused = np.append(self.found, best), np.setdiff1d(self.refused, best)
            yield from self._model()

    def _model(self) -> Asks:
        """Fit on the columns that are modelled, and weigh components by what that leaves of their slopes."""
        yield from self._fit(self._modelled)
        self.screen.reweigh(self.state.local_derivatives()[0])

    def _fit(self, columns: Indices) -> Asks:
        """Minimise the modelled F on some columns, and ask for F there."""
        data = self.data
        data.C = self.free[columns]
        data.V = self.screen.columns(columns)
        data.blocks = [RowBlock(data.C, data.V)]
        yield from self.state.fit(min(self.context.k, columns.size))

    def _learn_curves(self) -> Generator[Probes, Answers, Array]:
        """Sample all l_i along the steepest of a few random directions; return about how large a row's entries are."""
        context, data, d, n = self.context, self.data, self.free.size, self.context.n
        base = yield from context.starts(self.order)
        step = self.learner.diagnosis.central_step(context.d) * math.sqrt(d)
        signs = np.where(context.rng.uniform(SETTINGS.directions * d).reshape(-1, d) < 0.5, -1.0, 1.0) / math.sqrt(d)
        U = np.zeros((SETTINGS.directions, context.d))
        U[:, self.free] = signs
        points = [context.theta0 + side * step * u for side in (1, -1) for u in U]
        l2_changes = np.array([data.l2_change(point) for point in points])
        values = (yield from context.values(points, self.order)) - l2_changes[:, None]
        along = (values[: len(U)] - values[len(U) :]) / (2 * step)
        best = np.argmax(np.abs(along), axis=0)
        slope, size = along[best, np.arange(n)], shrunk_sizes(along)
        reach = math.sqrt(d) * np.minimum(size / np.maximum(np.abs(slope), TINY), SETTINGS.longest_reach)
        curves = Curves(n)
        curves.add(np.zeros(n), base)
        self.state.curves = curves
        short = self.learner.diagnosis.curvature_step(context.d)
        z, change = yield from self._sample(U, best, slope, -short * reach, base)
        with np.errstate(all="ignore"):
            kappa = np.nan_to_num(2 * (change - z) / np.maximum(z * z, TINY), posinf=0.0, neginf=0.0)
        data.restrict(np.empty(0, np.int64))
        data.f0, data.slope, data.kappa = base, np.ones(n), kappa
        lengths = 1 / np.maximum(np.abs(kappa) * size * math.sqrt(d), TINY)
        natural = self.state.natural
        limits = CURVES.shortest_length * natural, CURVES.longest_length * natural
        length = float(np.clip(np.median(lengths), *limits))
        for place in CURVES.samples:
            z, change = yield from self._sample(U, best, slope, place * length * reach, base)
            curves.add(z, base + change)
        return size

    def _sample(
        self, U: Array, best: Indices, slope: Array, lengths: Array, base: Array
    ) -> Generator[Probes, Answers, tuple[Array, Array]]:
        """Return the scores, and the changes of l_i, at some length along each component's own direction."""
        context, changes = self.context, np.empty(lengths.size)
        part = max(1, SETTINGS.most_numbers // context.d)
        for first in range(0, lengths.size, part):
            some = slice(first, first + part)
            points = context.theta0 + lengths[some, None] * U[best[some]]
            values = yield from context.each(points, self.order[some])
            changes[some] = values - base[some] - self.data.l2_change(points)
        return slope * lengths, changes
