"""Scorers of scikit-learn as losses of the scores of a linear model, without predicting anything twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.sklearn.linear_design import Rows

FAR = 2.0  # standard deviations of the predictions at which a loss of rows is tried
SMALL = 1e-6  # standard deviations between two of them: rounding is far below it, and it crosses hardly any threshold


class FixedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A binary classifier whose scores are known: what a scorer asks it is answered from them."""

    def __init__(self, scores: Array, classes: Any) -> None:
        self.scores, self.classes = scores, classes
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> FixedClassifier:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Any) -> Array:
        return self.scores

    def predict(self, X: Any) -> Any:
        return self.classes[(self.scores > 0).astype(np.int64)]

    def predict_proba(self, X: Any) -> Array:
        p = expit(self.scores)
        return np.column_stack([1.0 - p, p])


class FixedRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A regressor whose predictions are known."""

    def __init__(self, scores: Array) -> None:
        self.scores = scores

    def fit(self, X: Any, y: Any) -> FixedRegressor:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Array:
        return self.scores


@dataclass(frozen=True, eq=False)
class ScorerMetric:
    """The negative score of a scorer, as a function of scores.

    Rows that stand for several are given several times, and weights only where they are not whole numbers.

    Attributes
    ----------
    scorer: function of (estimator, X, y), higher is better.
    y: array (n,), the targets.
    rows: Rows, the rows.
    classes: array of both classes; None for regression.
    centre, scale: float: predictions of a regression are ``centre + scale * score``.
    """

    scorer: Any
    y: Any
    rows: Rows
    classes: Any = None
    centre: float = 0.0
    scale: float = 1.0

    def value(self, scores: Array) -> float:
        """Return the loss."""
        copies = self.rows.copies
        y, weights = self.y, {} if copies is not None else {"sample_weight": self.rows.w}
        if copies is not None:
            scores, y = scores[copies], y[copies]
        if self.classes is None:
            fixed: Any = FixedRegressor(self.centre + self.scale * scores)
        else:
            fixed = FixedClassifier(scores, self.classes)
        return -float(self.scorer(fixed, np.empty((scores.size, 0)), y, **weights))


@dataclass(frozen=True, eq=False)
class FunctionMetric:
    """A user's loss of all targets and predictions, which is one number."""

    function: Any
    y: Any
    copies: Indices
    centre: float = 0.0
    scale: float = 1.0

    def value(self, scores: Array) -> float:
        """Return the loss."""
        return float(self.function(self.y[self.copies], self.centre + self.scale * scores[self.copies]))


@dataclass(frozen=True, eq=False)
class MeanMetric:
    """The mean of a user's losses of rows that only jump, such as whether a prediction is within a tolerance."""

    function: Any
    y: Any
    w: Array
    centre: float = 0.0
    scale: float = 1.0

    def value(self, scores: Array) -> float:
        """Return the weighted mean."""
        return float(np.average(self.function(self.y, self.centre + self.scale * scores), weights=self.w))


def only_jumps(function: Any, y: Any, centre: float, scale: float) -> bool:
    """Whether losses of rows do not change with small changes of predictions: slopes would say nothing of them."""
    far = centre + scale * np.linspace(-FAR, FAR, y.size)
    near = far + SMALL * scale
    return bool(np.array_equal(np.asarray(function(y, far)), np.asarray(function(y, near))))


def of_all(function: Any, y: Any, rows: Rows, centre: float = 0.0, scale: float = 1.0) -> FunctionMetric:
    """Return a user's loss that is one number; ValueError where weights cannot be written as copies of rows."""
    if rows.copies is None:
        raise ValueError(
            "the loss returns one number for all rows, so that sample_weight must be whole numbers: a row of weight 2 "
            "is given to it twice. Return the loss of each row for other weights"
        )
    return FunctionMetric(function, y, rows.copies, centre, scale)


def is_scorer(given: Any) -> bool:
    """Whether a callable is called as (estimator, X, y), as scorers are, rather than as (y, prediction)."""
    return check.call_misfit(given, ("y", "prediction")) is not None and (
        check.call_misfit(given, ("estimator", "X", "y")) is None
    )
