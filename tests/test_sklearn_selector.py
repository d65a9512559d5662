"""Selection of features for any estimator: what is fitted, how often, and what survives a kill."""

from __future__ import annotations

import os
import re
import threading
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from killing import die, killed
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from zerothresh.sklearn import SparseSelector

X, Y = load_wine(return_X_y=True)
RNG = np.random.default_rng(0)
Z = RNG.standard_normal((60, 12))
T = Z[:, 2] * Z[:, 5] + Z[:, 9] + 0.05 * RNG.standard_normal(60)  # least squares see the last one only


DEATH = {"at": np.inf}  # the number of the fit at which the process is killed: no parameter of a selection


class Diary(ClassifierMixin, BaseEstimator):
    """Naive Bayes that writes down which rows and columns it is fitted on."""

    def __init__(self, path=""):
        self.path = path

    def fit(self, X, y, sample_weight=None):
        if len(Path(self.path).read_text().splitlines() if os.path.exists(self.path) else []) >= DEATH["at"]:
            die()
        self.model_ = GaussianNB().fit(X, y, sample_weight=sample_weight)
        self.classes_ = self.model_.classes_
        with open(self.path, "a") as file:
            file.write(f"{X.shape} {X.sum():.12g}\n")
        return self

    def predict(self, X):
        return self.model_.predict(X)


def selector(path, **options):
    return SparseSelector(Diary(str(path)), **{"k": 3, "cv": 3, "budget": 60, "random_state": 0, **options})


def test_no_subset_is_fitted_twice_on_a_fold_and_the_budget_holds(tmp_path):
    found = selector(tmp_path / "diary").fit(X, Y)
    lines = (tmp_path / "diary").read_text().splitlines()
    assert len(lines) == len(set(lines)) == found.n_fits_ <= 60
    assert found.support_.sum() <= 3
    assert found.score_ == pytest.approx(found.fold_scores_.mean())
    assert found.transform(X).shape == (178, found.support_.sum())


def test_a_selection_that_is_killed_goes_on_and_pays_for_nothing_twice(tmp_path):
    alone = selector(tmp_path / "alone").fit(X, Y)
    paid = len((tmp_path / "alone").read_text().splitlines())
    diary, runs = tmp_path / "diary", tmp_path / "runs"

    def first():
        DEATH["at"] = paid // 2
        selector(diary, run=runs).fit(X, Y)

    was_killed, _ = killed(first, lambda: None)
    assert was_killed
    assert len(diary.read_text().splitlines()) == paid // 2
    found = selector(diary, run=runs).fit(X, Y)
    lines = diary.read_text().splitlines()
    assert len(lines) == len(set(lines)) == paid
    assert found.n_fits_ == paid - paid // 2
    assert np.array_equal(found.support_, alone.support_)
    assert found.score_ == alone.score_
    again = selector(diary, run=runs).fit(X, Y)
    assert again.n_fits_ == 0
    assert np.array_equal(again.support_, found.support_)
    scores = next(runs.glob("*/scores.jsonl"))
    scores.write_text("[]\n{}\n" + scores.read_text()[:-9])  # a damaged line costs a fit at most, not the selection
    assert selector(diary, run=runs).fit(X, Y).n_fits_ <= 1


def test_the_score_is_that_of_forward_selection_or_better_with_fewer_fits():
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, Y))
    forward = SequentialFeatureSelector(GaussianNB(), n_features_to_select=4, cv=folds).fit(X, Y)

    def score(S):
        return np.mean([GaussianNB().fit(X[a][:, S], Y[a]).score(X[b][:, S], Y[b]) for a, b in folds])

    found = SparseSelector(GaussianNB(), 4, cv=folds, budget=120, random_state=0).fit(X, Y)
    assert found.score_ == pytest.approx(score(found.support_))
    assert found.score_ >= score(forward.get_support()) - 1e-12
    assert found.n_fits_ <= 120 < 3 * (13 + 12 + 11 + 10)


def test_the_best_of_all_subsets_is_found_although_no_linear_model_sees_two_of_its_features():
    found = SparseSelector(KNeighborsRegressor(4), 3, cv=2, budget=300, random_state=0).fit(Z, T)
    folds = list(KFold(2, shuffle=True, random_state=int(np.random.RandomState(0).randint(2**31 - 1))).split(Z))

    def score(S):
        return np.mean([KNeighborsRegressor(4).fit(Z[a][:, S], T[a]).score(Z[b][:, S], T[b]) for a, b in folds])

    best = max((list(S) for size in (1, 2, 3) for S in combinations(range(12), size)), key=score)
    assert found.score_ == pytest.approx(score(best))
    assert np.flatnonzero(found.support_).tolist() == best


def test_groups_are_taken_whole_and_counted_once():
    groups = np.arange(12) // 3
    found = SparseSelector(LinearRegression(), 2, groups=groups, cv=3, budget=40, random_state=0).fit(Z, T)
    assert all(found.support_[groups == g].all() or not found.support_[groups == g].any() for g in range(4))
    assert np.unique(groups[found.support_]).size <= 2
    assert found.support_[9:].all()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_give_the_names_of_what_is_selected(frame):
    table = frame({f"sensor {j}": Z[:, j] for j in range(12)})
    found = SparseSelector(LinearRegression(), 2, cv=3, budget=30, random_state=0).fit(table, T)
    plain = SparseSelector(LinearRegression(), 2, cv=3, budget=30, random_state=0).fit(Z, T)
    assert np.array_equal(found.support_, plain.support_)
    assert "sensor 9" in found.get_feature_names_out().tolist()


def test_sparse_tables_and_tables_with_missing_values_go_to_estimators_that_take_them():
    found = SparseSelector(LinearRegression(), 2, cv=3, budget=30, random_state=0).fit(sparse.csr_matrix(Z), T)
    assert found.support_[9]
    holes = Z.copy()
    holes[::7, 9] = np.nan
    trees = SparseSelector(HistGradientBoostingRegressor(max_iter=10), 2, cv=2, budget=20, random_state=0)
    assert trees.fit(holes, T).support_[9]
    with pytest.raises(ValueError, match="contains NaN"):
        SparseSelector(LinearRegression(), 2, cv=3, budget=30).fit(holes, T)


def test_weights_go_to_the_fits_with_their_rows(tmp_path):
    weights = np.where(Y == 0, 2.0, 1.0)
    seen = []

    class Weighed(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            seen.append(np.array_equal(sample_weight, np.where(y == 0, 2.0, 1.0)))
            return super().fit(X, y, sample_weight)

    SparseSelector(Weighed(), 2, cv=3, budget=12, random_state=0).fit(X, Y, sample_weight=weights)
    assert all(seen)
    assert len(seen) >= 6


def test_threads_change_nothing_but_the_time():
    names = set()

    class Seen(GaussianNB):
        def fit(self, X, y):
            names.add(threading.current_thread().name)
            return super().fit(X, y)

    one, two = (SparseSelector(Seen(), 3, cv=3, budget=60, n_jobs=n, random_state=0).fit(X, Y) for n in (1, 2))
    assert np.array_equal(one.support_, two.support_)
    assert one.score_ == two.score_
    assert len(names) > 1


def test_pipelines_and_grids_select_and_fit():
    pipe = make_pipeline(
        SparseSelector(KNeighborsClassifier(), cv=3, budget=15, random_state=0), KNeighborsClassifier()
    )
    grid = GridSearchCV(pipe, {"sparseselector__k": [1, 3]}, cv=2).fit(X, Y)
    assert grid.best_params_["sparseselector__k"] in (1, 3)
    assert grid.score(X, Y) > 0.7


class Fragile(LinearRegression):
    """A regression that cannot do with the first feature."""

    def fit(self, X, y):
        if np.isin(X, Z[:, 0]).any():
            raise RuntimeError("no convergence")
        return super().fit(X, y)


def test_fits_that_fail_are_the_worst_or_raise():
    start = [5, 9]
    with pytest.warns(FitFailedWarning, match="RuntimeError: no convergence"):
        found = SparseSelector(Fragile(), 2, cv=3, budget=200, start=start, random_state=0).fit(Z, T)
    assert not found.support_[0]
    with pytest.raises(ValueError, match="no convergence"):
        SparseSelector(Fragile(), 2, cv=3, budget=60, start=[0, 9], error_score="raise", random_state=0).fit(Z, T)
    with (
        pytest.warns(FitFailedWarning),
        pytest.raises(ValueError, match=r"with the first features on any fold.*begin at others by start="),
    ):
        SparseSelector(Fragile(), 2, cv=3, budget=60, start=[0, 9], random_state=0).fit(Z, T)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be at least 1"),
        ({"k": "auto"}, "k must be a whole number"),
        ({"cv": 1}, "cv must be at least 2"),
        ({"budget": 2}, "budget must be at least 3 .*a subset takes 3"),
        ({"groups": [1, 2]}, r"groups must have one label per feature, shape \(12,\)"),
        ({"start": "forward"}, "start must be one of 'linear'"),
        ({"start": [0, 99]}, "a mask or indices of features"),
        ({"start": np.ones(12, bool)}, "more features .* than k = 2"),
        ({"error_score": "best"}, "error_score must be 'raise' or a number"),
        ({"scoring": lambda model, X, y: "good"}, "it must return one number"),
        ({"scoring": "goodness"}, "scoring"),
    ],
    ids=lambda given: re.sub(r" at 0x[0-9a-f]+", "", str(given)),
)
def test_bad_input_gets_a_sentence(options, message):
    model = SparseSelector(LinearRegression(), **{"k": 2, "cv": 3, "budget": 30, "random_state": 0, **options})
    with pytest.raises(ValueError, match=message):
        model.fit(Z, T)
