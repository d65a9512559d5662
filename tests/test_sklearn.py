"""The estimators for scikit-learn: its own checks, and what this library promises beyond them."""

from __future__ import annotations

import warnings

from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from zerothresh.sklearn import SparseRegressor, SparseSelector

CHECKED = [
    SparseRegressor(k=3, max_calls=300),
    SparseSelector(LinearRegression(), k=2, cv=2, budget=10),
    SparseSelector(LogisticRegression(), k=2, cv=2, budget=10),
]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_agrees(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the budget", UserWarning)
        check(estimator)
