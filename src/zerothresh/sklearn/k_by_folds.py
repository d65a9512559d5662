"""The number of features, chosen by held-out loss: a path over k without each fold, and the one-standard-error rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from zerothresh.api.several_k import values_of_k
from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.k_path.criteria import held_out, one_standard_error
from zerothresh.k_path.pathing import path
from zerothresh.sklearn.linear_design import Rows
from zerothresh.sklearn.linear_problems import Effort, checked, places, settings
from zerothresh.sklearn.row_losses import RowLoss

EVERY = 10  # values of k up to here are all tried
GROWTH = 1.25  # from one value to the next beyond
MOST = 30  # the largest value, if the user does not give any
PATH_CALLS = 2  # times the calls of a single fit, for a whole path


@dataclass(frozen=True)
class Chosen:
    """The chosen k, and what it was chosen by."""

    k: int
    ks: Indices
    held_out: Array
    error: Array
    calls: int


def default_ks(features: int) -> list[int]:
    """Return the values of k that are tried.

    >>> default_ks(100)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 17, 22, 28]
    """
    ks = list(range(1, EVERY + 1))
    while ks[-1] * GROWTH <= MOST:
        ks.append(int(np.ceil(ks[-1] * GROWTH)))
    return [k for k in ks if k <= features] if features < ks[-1] else ks


def choose_k(model: Any, X: Any, y: Array, w: Array | None, labels: Any, effort: Effort) -> Chosen:
    """Return the smallest k whose held-out loss is within one standard error of the lowest.

    Arguments
    ---------
    model: a `SparseLinear`.
    X, y, w: the table, its targets and weights.
    labels: array (n,), the classes by which folds are stratified; None for regression.
    effort: Effort, of the whole path of each fold.
    """
    ks = default_ks(X.shape[1]) if model.ks is None else values_of_k(model.ks)
    ks = sorted({min(k, X.shape[1]) for k in ks})
    cv = 5 if model.cv is None else model.cv
    if check.whole(cv) is not None:
        folds = check.count("cv", cv, low=2, what=" (folds)")
        kind = KFold if labels is None else StratifiedKFold
        splitter: Any = kind(folds, shuffle=True, random_state=effort.seed)
    else:
        splitter = check_cv(cv, y, classifier=labels is not None)
    found, calls, folds = dict[tuple[int, int], float](), 0, 0
    for fold, (train, test) in enumerate(splitter.split(X, y if labels is None else labels)):
        folds += 1
        kept = None if w is None else w[train]
        if kept is not None and not kept.any():
            raise ValueError(f"all rows outside of fold {fold} have the weight 0: take other folds")
        rows = Rows.of(X[train], y[train], kept)
        target, first = model._problem(rows)
        problem = target if first is None else first
        least, chosen = places(problem, 1)
        if least == 0:
            continue
        extra = least - 1 if problem.design.features > problem.design.useless.size else least
        most = problem.design.features - problem.design.useless.size
        wanted = sorted({max(min(k, most) + extra, 1) for k in ks})
        budget = PATH_CALLS * (effort.max_calls or problem.calls)
        run = None if effort.run is None else f"{effort.run}/fold-{fold}"
        walked = path(problem, problem.design.d, wanted, budget=budget, run=run, **chosen, **settings(problem, effort))
        checked(walked)
        calls += walked.nfev
        outside = Rows.of(X[test], y[test], None if w is None or not w[test].any() else w[test])
        for k in ks:
            point = walked[max(min(k, most) + extra, 1)].x
            found[k, fold] = model._held_out(rows, problem.design, point, outside)
    means, errors = held_out(found, ks, folds)
    best = one_standard_error(ks, means, errors)
    return Chosen(ks[0] if best is None else best, np.array(ks), means, errors, calls)


def loss_on(goal: Any, scores: Array) -> float:
    """Return the loss of scores of other rows than those that were fitted."""
    return goal.mean(scores) if isinstance(goal, RowLoss) else float(goal.value(scores))


def fixed(goal: Any) -> Any:
    """Return a metric whose threshold is 0, because that was chosen on other rows."""
    return replace(goal, free=False) if hasattr(goal, "free") else goal
