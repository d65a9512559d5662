"""When the single-index model proves that a point is optimal: the model is F, and its best support is proven."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from zerothresh.methods.auto.arms.score_fit import ScoreFit
from zerothresh.methods.auto.models.branch_and_bound import is_best_subset
from zerothresh.methods.auto.settings.floating_point import TINY
from zerothresh.methods.auto.settings.single_index_settings import INDEX
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.requests import Probes


def certify(fit: ScoreFit) -> Generator[Probes, Answers, bool]:
    """Whether theta is proven to be optimal up to noise: values that were not used for the fit agree everywhere.

    The quadratic model must predict every component at theta and at an independent random point; and no other support
    may be better on the model, which is shown by branch and bound.
    """
    context, data = fit.context, fit.data
    known = fit.values.size == context.n == len(data)
    if not (fit.quadratic and fit.confirmed and known) or fit.diagnosis.random or fit.theta is not context.theta:
        return False
    if not fit.agrees(fit.theta, fit.values, INDEX.certificate_tolerance) or not best_of_model(fit):
        return False
    if float(np.linalg.norm(fit.theta - context.theta0)) <= INDEX.proven_reach * fit.proven:
        return True
    if context.left < context.n:
        return False
    w = np.zeros(context.d)
    w[data.C] = context.rng.normal(data.C.size)
    w *= float(np.linalg.norm(fit.theta - context.theta0)) / max(float(np.linalg.norm(w)), TINY)
    point = context.inside(context.theta0 + w)
    values = (yield from context.values([point], fit.order))[0]
    agrees = fit.agrees(point, values, INDEX.certificate_tolerance)
    fit.proven = float(np.linalg.norm(point - context.theta0)) if agrees else 0.0
    return agrees


def best_of_model(fit: ScoreFit) -> bool:
    """Whether theta is proven to be the best point of the quadratic model of all coordinates, up to a small gap."""
    data, fall = fit.data, float(fit.data.f0.mean() - fit.values.mean())
    if float(fit.values.mean()) <= data.lower_bound() + INDEX.certificate_gap * max(fall, 0.0):
        return True  # every component is at its minimum
    return data.C.size == fit.context.free().size and best_of_modelled(fit)


def best_of_modelled(fit: ScoreFit) -> bool:
    """Whether theta is proven to be the best point of the quadratic model among the modelled coordinates."""
    context, data, C = fit.context, fit.data, fit.data.C
    if C.size > INDEX.certificate_coordinates or np.delete(fit.theta, C).any():
        return False
    g, A = data.derivatives(data.slope, data.kappa, context.theta0, fit.natural, quadratic=True)
    b, x = A @ context.theta0[C] - g, fit.theta[C]
    value, fall = 0.5 * float(x @ A @ x) - float(b @ x), float(data.f0.mean() - fit.values.mean())
    forced = np.flatnonzero(np.isin(C, context.constraint.include))
    nodes = min(INDEX.certificate_nodes, int(INDEX.certificate_work / C.size**2))
    return is_best_subset(A, b, context.k, value, INDEX.certificate_gap * max(fall, 0.0), nodes, forced)


def at_common_minimum(fit: ScoreFit) -> Generator[Probes, Answers, bool]:
    """Whether all components have one minimum, as squared residuals do, and all of them reach it at theta."""
    context, data = fit.context, fit.data
    if not fit.quadratic or fit.diagnosis.random or data.lam or context.left < 2 * context.n:
        return False
    if fit.learner.shared_minimum is None:
        return False
    minimum, error = fit.learner.shared_minimum
    yield from context.starts(context.everything)
    yield from fit.complete_values(context.n)
    fit.accept(fit.theta, fit.values)
    mean, fall = float(fit.values.mean()), float(data.f0.mean()) - minimum
    return fit.theta is context.theta and mean - minimum <= INDEX.certificate_gap * fall + error
