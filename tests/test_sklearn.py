"""The estimators for scikit-learn pass its own checks."""

from __future__ import annotations

import warnings

import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from zerothresh.sklearn import SparseClassifier, SparseRegressor, SparseSelector

CHECKED = [
    SparseRegressor(k=3, max_calls=20),
    SparseClassifier(k=3, max_calls=20),
    SparseSelector(LinearRegression(), k=2, cv=2, budget=10),
    SparseSelector(LogisticRegression(), k=2, cv=2, budget=10),
    pytest.param(SparseRegressor(k="auto", ks=[1, 3], cv=2, max_calls=20), marks=pytest.mark.slow),
    pytest.param(SparseRegressor(k=3), marks=pytest.mark.slow),
    pytest.param(SparseRegressor(k=3, loss="huber"), marks=pytest.mark.slow),
    pytest.param(SparseClassifier(k=3), marks=pytest.mark.slow),
    pytest.param(SparseClassifier(k=3, loss="auc", max_calls=200), marks=pytest.mark.slow),
]
SKIPPED = {"check_array_api_input": "SCIPY_ARRAY_API is not set"}  # for other array libraries, such as CuPy


@pytest.mark.parametrize("estimator", CHECKED, ids=repr)
def test_every_check_of_scikit_learn_passes(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small budgets are announced
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {one["check_name"]: one["exception"] for one in results if one["status"] not in ("passed", "skipped")}
    assert not failed
    for one in results:
        if one["status"] == "skipped":
            assert SKIPPED[one["check_name"]] in str(one["exception"])
    assert len(results) > 40
