"""Handing a single-index model that one run has learnt on to runs for other k of the same function."""

from __future__ import annotations

from copy import copy, deepcopy

import numpy as np

from zerothresh.basics.arrays import Indices
from zerothresh.methods.auto.arms.row_learning import RowLearner
from zerothresh.methods.auto.arms.score_fit import ScoreFit
from zerothresh.methods.auto.models.curves import Curves
from zerothresh.methods.program.context import Context

_NAME = "single index"


class LearntModel:
    """The rows of all components, and what is known of the functions l_i: neither depends on k."""

    def __init__(self, fit: ScoreFit) -> None:
        self._unit = fit.context.unit
        self._learner, self._curves = deepcopy_of(fit.learner, fit.context), deepcopy(fit.curves)
        self._quadratic, self._confirmed, self._proven = fit.quadratic, fit.confirmed, fit.proven

    def restricted(self, members: Indices) -> LearntModel:
        """Return the model of some components alone, which are counted from 0 in their order."""
        part = copy(self)
        order = self._learner.order
        kept = np.flatnonzero(np.isin(order, members))
        part._learner = learner = deepcopy_of(self._learner, self._learner.context)
        learner.order = np.searchsorted(members, order[kept])
        learner.keep(kept)
        part._curves = Curves(0)
        if len(self._curves):
            part._curves.z, part._curves.l = self._curves.z[kept], self._curves.l[kept]
        return part

    def fits(self, context: Context) -> bool:
        """Whether a run began at the same point and measures values in the same unit."""
        same_size = len(self._learner.data) == context.n
        return same_size and context.unit == self._unit and np.array_equal(context.theta0, self._learner.data.theta0)

    def fit(self, context: Context) -> ScoreFit:
        """Return the model for another run, which stands at its start."""
        fit = ScoreFit(deepcopy_of(self._learner, context))
        fit.values, fit.curves = fit.data.f0.copy(), deepcopy(self._curves)
        fit.quadratic, fit.confirmed, fit.proven = self._quadratic, self._confirmed, self._proven
        return fit


def deepcopy_of(learner: RowLearner, context: Context) -> RowLearner:
    """Return what has been learnt as if another run had learnt it."""
    copied = RowLearner(context, learner.diagnosis, learner.order)
    for name, value in vars(learner).items():
        if name != "context":
            setattr(copied, name, deepcopy(value))
    return copied


def publish(fit: ScoreFit) -> None:
    """Keep a model of all components for runs for other k, if there are any."""
    if fit.context.family is not None and len(fit.data) == fit.context.n:
        fit.context.family.learnt[_NAME] = LearntModel(fit)


def adopted(context: Context) -> ScoreFit | None:
    """Return the model that a run for another k has learnt, or None if there is none."""
    model = None if context.family is None else context.family.learnt.get(_NAME)
    return model.fit(context) if isinstance(model, LearntModel) and model.fits(context) else None


def is_learnt(context: Context) -> bool:
    """Whether there is a model to be adopted."""
    return context.family is not None and _NAME in context.family.learnt
