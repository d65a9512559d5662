"""The page of worked examples is made from what was measured, and its rivals are what they are called."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import StandardScaler

ROOT = Path(__file__).parents[1]


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def test_forward_selection_at_once_selects_what_scikit_learn_selects(benchmarks):
    from practice_cases import forward_by_centroids

    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    S, scores, fits = forward_by_centroids(X, y, 4, folds)
    scikit = SequentialFeatureSelector(NearestCentroid(), n_features_to_select=4, scoring="balanced_accuracy", cv=folds)
    assert sorted(S) == scikit.fit(X, y).get_support(indices=True).tolist()
    assert fits == 3 * (13 + 12 + 11 + 10)
    assert scores[-1] <= 1


def test_the_page_shows_what_was_measured(benchmarks):
    from practice_page import KEPT, PAGE, page

    assert page(json.loads(KEPT.read_text())) == PAGE.read_text()


def test_no_mixture_is_better_than_the_best_one(benchmarks):
    from practice_mixture import D, K, Plant

    plant, rng = Plant(3), np.random.default_rng(0)
    lowest = plant.lowest()
    for _ in range(200):
        x = np.zeros(D)
        x[rng.choice(D, K, replace=False)] = rng.dirichlet(np.ones(K))
        assert plant(x) >= lowest - 1e-9
