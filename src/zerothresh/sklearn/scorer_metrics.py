"""Scorers of scikit-learn as losses of the scores of a linear model, without predicting anything twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from zerothresh.basics import check
from zerothresh.basics.arrays import Array


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

    Attributes
    ----------
    scorer: function of (estimator, X, y), higher is better.
    y: array (n,), the targets.
    w: array (n,), weights.
    weighted: bool, whether the scorer is given the weights.
    classes: array of both classes; None for regression.
    centre, scale: float: predictions of a regression are ``centre + scale * score``.
    """

    scorer: Any
    y: Any
    w: Array
    weighted: bool
    classes: Any = None
    centre: float = 0.0
    scale: float = 1.0

    def value(self, scores: Array) -> float:
        """Return the loss."""
        if self.classes is None:
            fixed: Any = FixedRegressor(self.centre + self.scale * scores)
        else:
            fixed = FixedClassifier(scores, self.classes)
        X = np.empty((scores.size, 0))
        if self.weighted:
            return -float(self.scorer(fixed, X, self.y, sample_weight=self.w))
        return -float(self.scorer(fixed, X, self.y))


@dataclass(frozen=True, eq=False)
class FunctionMetric:
    """A user's loss of all targets and predictions, which is one number."""

    function: Any
    y: Any
    centre: float = 0.0
    scale: float = 1.0

    def value(self, scores: Array) -> float:
        """Return the loss."""
        return float(self.function(self.y, self.centre + self.scale * scores))


def is_scorer(given: Any) -> bool:
    """Whether a callable is called as (estimator, X, y), as scorers are, rather than as (y, prediction)."""
    return check.call_misfit(given, ("y", "prediction")) is not None and (
        check.call_misfit(given, ("estimator", "X", "y")) is None
    )
