r"""The single-index model: every component is a function of one linear score, plus an l2 term.

.. math:: f_i(\theta) = l_i(v_i \cdot \theta) + \frac\lambda2 \|\theta\|^2

Every loss of a linear score has this form: least squares, logistic, Poisson, hinge. Neither l_i nor v_i nor lambda
is given. The row v_i is the gradient at the start, learnt once from differences. From then on a component is a
function of one variable, and a Newton step of the sparse model costs 1 to 3 calls per component. The model itself is
minimised without calls (`zerothresh.constraint.splicing`).
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.methods.auto.arms.index_certificate import at_common_minimum, best_of_modelled, certify
from zerothresh.methods.auto.arms.learnt_model import adopted, is_learnt, publish
from zerothresh.methods.auto.arms.row_learning import RowLearner
from zerothresh.methods.auto.arms.sample_solution import SampleSolution
from zerothresh.methods.auto.arms.score_fit import ScoreFit
from zerothresh.methods.auto.diagnosis import Diagnosis
from zerothresh.methods.auto.models.index_rows import RowBlock
from zerothresh.methods.auto.models.screening import exchange_changes, in_use, strongest_coordinates
from zerothresh.methods.auto.settings.single_index_settings import INDEX, ROWS
from zerothresh.methods.program.context import Asks, Context, learning
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def affordable(context: Context) -> bool:
    """Whether the budget covers the rows with which a fit of k coordinates is meaningful, and dropping begins."""
    if is_learnt(context):
        return True
    rows = min(context.n, max(ROWS.first, INDEX.rows_per_coordinate * context.k))
    return context.left >= ROWS.reserve * rows * (context.free().size + 2)


class SingleIndexModel:
    """The search with the single-index model: rows of more and more components, and a fit to them.

    Arguments
    ---------
    context: the run.
    diagnosis: what the first calls found.
    """

    def __init__(self, context: Context, diagnosis: Diagnosis) -> None:
        self.context, self.diagnosis = context, diagnosis
        self.order = context.rng.subset(context.n, context.n)  # components in the order in which they are learnt
        self.learner = RowLearner(context, diagnosis, self.order)
        self.data, self.state = self.learner.data, ScoreFit(self.learner)
        self.sample = SampleSolution(self.state)
        self.converged = False
        self.exact = False  # whether the point is proven to be optimal

    @property
    def generalised(self) -> bool:
        """Whether held-out components have shown that the model holds for all."""
        return self.sample.generalised

    @property
    def C(self) -> Indices:
        """The modelled coordinates."""
        return self.data.C

    @property
    def start_gradients(self) -> Array:
        """The gradients at the start that are known on all free coordinates, if the components have another form."""
        known, rows = self.context.remembered_gradients(), list[Array]()
        if self.learner.several_scores:
            for i in self.order.tolist():
                if i not in known:
                    break
                rows.append(known[i])
        return np.array(rows) if rows else np.empty((0, 0))

    def search(self) -> Generator[Probes, Answers, str]:
        """Learn rows of more and more components and fit theta to them; returns the reason for stopping."""
        context, data = self.context, self.data
        if not data.C.size:
            return "No coordinate is free to change."
        if context.constraint.groups is not None:
            return "The single-index model does not support groups."
        if (state := adopted(context)) is not None:
            self.state, self.learner, self.data = state, state.learner, state.data
            context.confirmed = True
            context.remark("The model that was learnt for another k is used.")
            yield from state.fit(context.k)
            return (yield from self._conclude())
        with learning(context):
            reason = yield from self._learn()
            if not reason:
                publish(self.state)
                reason = yield from self._conclude()
            return reason

    def _learn(self) -> Generator[Probes, Answers, str]:
        """Learn rows of more and more components and fit theta to them; returns why it stopped early, or nothing."""
        context, data, n = self.context, self.data, self.context.n
        m = min(n, max(ROWS.first, context.k))
        while True:
            learnt = yield from self.learner.learn(min(m, ROWS.tested))
            rest = (m - len(data)) * (data.C.size + 2)  # calls that a wrong form would waste
            early = data.lam and not self.state.diagnosis.random and len(data) <= ROWS.tested and rest > ROWS.test_saves
            if learnt and early:  # random Hessians may look like one l2 term
                yield from self.learner.has_the_form(self.learner.elsewhere())
            learnt = learnt and not self.learner.several_scores and (yield from self.learner.learn(m))
            if self.learner.several_scores:
                return "The components are not functions of one score."
            if not learnt:
                return "The budget does not cover the rows of more components."
            first = not self.state.values.size and self.state.theta is context.theta0
            self._limit_coordinates(INDEX.max_coordinates)
            yield from self.state.fit(self._sparsity(m))
            if first and not self.state.confirmed and not self.learner.several_scores:
                yield from self.learner.has_the_form(self.state.theta)
            if self.learner.several_scores:
                return "The components are not functions of one score."
            self.context.confirmed = True
            if m == n:
                return ""
            if not (yield from self.sample.judge(m)):
                return "The budget does not cover the rows of more components."
            if self.generalised and (yield from at_common_minimum(self.state)):
                self.converged = self.exact = True
                return "Every component is at its minimum."
            self._drop_coordinates(m)
            m = n if self.generalised else min(n, math.ceil(self._growth() * m))

    def _conclude(self) -> Generator[Probes, Answers, str]:
        """Fit theta to all coordinates, and prove it if that is possible; returns the reason for stopping."""
        context, data = self.context, self.data
        yield from self._reconsider_dropped()
        if data.C.size < context.free().size:
            self.state.last = True
            yield from self.state.fit(context.k)
        self.converged = True
        self.exact = yield from certify(self.state)
        publish(self.state)
        return "The single-index model has converged" + (", and its support is proven." if self.exact else ".")

    def _sparsity(self, m: int) -> int:
        """Return the number of non-zeros that m components can determine."""
        context = self.context
        enough = m >= INDEX.rows_per_coordinate * context.k or m == context.n
        sparsity = context.k if enough else max(1, m // INDEX.rows_per_coordinate)
        return max(sparsity, context.constraint.include.size)

    def _growth(self) -> float:
        """Return by how much the number of components grows: slowly if each costs many calls."""
        return 1 + min(1.0, max(INDEX.slowest_growth, INDEX.growth / self.data.C.size))

    # Coordinates that are modelled.

    def _limit_coordinates(self, size: int) -> None:
        """Model only the most promising coordinates from now on."""
        if self.data.C.size > size:
            state = self.state
            slope, curvature = state.local_derivatives()
            include = self.context.constraint.include
            self.data.restrict(strongest_coordinates(self.data, slope, curvature, state.theta, include, size))

    def _changes(self, block: RowBlock, coordinates: Indices) -> Array:
        """Return by how much F could fall if coordinates entered the support, as far as one block of rows knows."""
        context, state = self.context, self.state
        slope, curvature = state.local_derivatives()
        at_start, rows = state.estimating(self.data.slope), block.on(coordinates)
        n, k, include = context.n, context.k, context.constraint.include
        return exchange_changes(self.data, rows, coordinates, slope, at_start, curvature, state.theta, n, k, include)

    def _drop_coordinates(self, m: int) -> None:
        """Stop modelling coordinates that could not be in the support, as far as the components show."""
        context, data = self.context, self.data
        if self.generalised:
            self._limit_coordinates(INDEX.kept_per_nonzero * context.k)
        elif m >= INDEX.rows_per_coordinate * context.k:
            change = self._changes(RowBlock(data.C, data.V), data.C)
            change[in_use(data, self.state.theta, context.constraint.include)] = -np.inf
            size = max(min(data.C.size, context.k), int(np.count_nonzero(change < 0)))
            data.restrict(np.sort(np.argsort(change, kind="stable")[:size]))

    def _reconsider_dropped(self) -> Asks:
        """Learn dropped coordinates and fit again: first those that could be in the support, and then all others.

        The others cost at most as many calls as the run has needed so far, unless a certificate depends on them.
        """
        context, data, state = self.context, self.data, self.state
        for _ in range(INDEX.rechecks):
            blocks = data.partial_blocks(np.setdiff1d(data.blocks[0].coordinates, data.C))
            if not blocks:
                return
            dropped = np.concatenate([block.coordinates for block in blocks])
            change = np.concatenate([self._changes(block, block.coordinates) for block in blocks])
            fall = max(float(data.f0.mean() - state.values.mean()), 0.0)
            promising = np.flatnonzero(change < -INDEX.negligible_recheck * fall)
            chosen = dropped[promising[np.argsort(change[promising], kind="stable")][: context.k]]
            if not chosen.size:
                chosen = dropped
            cost = (context.n - data.known_by(chosen)).sum()
            room = context.left - INDEX.recheck_reserve * context.n
            if not (state.confirmed and best_of_modelled(state)):  # else all coordinates are worth a certificate
                room = min(room, context.used)
            if cost > room or data.C.size + chosen.size > INDEX.max_coordinates:
                return
            yield from self.learner.learn_columns(np.sort(chosen))
            yield from state.fit(context.k)
