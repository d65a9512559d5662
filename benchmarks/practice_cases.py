"""The examples of practice.py that are about tables: what is fitted on each split, and what is kept of it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from practice_data import Row, Table, cut
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.feature_selection import RFE, SelectKBest, f_classif, f_regression
from sklearn.linear_model import LinearRegression, LogisticRegression, OrthogonalMatchingPursuit, lars_path
from sklearn.metrics import balanced_accuracy_score, make_scorer, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import StandardScaler

from zerothresh.sklearn import SparseClassifier, SparseRegressor, SparseSelector

WAVELENGTHS, TOLERANCE = 10, 1.0  # per cent of fat
COMPONENTS = 20  # of the partial least squares that see all wavelengths
GENES, FITS = 20, 2000
FOLDS = 5
MARKERS, CALLS = 5, 2000  # features of the model of tumours; calls per search of a metric


def outside(y: np.ndarray, prediction: np.ndarray) -> float:
    """Return the share of predictions that are off by more than the tolerance."""
    return float(np.mean(np.abs(y - np.ravel(prediction)) > TOLERANCE))


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a function returns, and the seconds that it took."""
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of solvers that want more iterations, which changes nothing here
        found = fit()
    return found, time.perf_counter() - begun


def chosen_by_lars(X: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Return the last set of at most k columns on the path of the Lasso."""
    Z = StandardScaler().fit_transform(X)
    _, _, coefs = lars_path(Z, y - y.mean(), method="lasso")
    return max((np.flatnonzero(c) for c in coefs.T if (c != 0).sum() <= k), key=len)


def wavelengths(table: Table, split: int) -> Iterator[Row]:
    """At most 10 of 100 wavelengths; the figure is the share of test spectra within the tolerance."""
    X, y, X_test, y_test = cut(*table, split, classes=False)

    def row(method: str, model: Any, seconds: float, used: int, columns: Any = slice(None), **more: Any) -> Row:
        inside = [1 - outside(b, model.predict(A[:, columns])) for A, b in ((X, y), (X_test, y_test))]
        error = float(np.sqrt(np.mean((np.ravel(model.predict(X_test[:, columns])) - y_test) ** 2)))
        return {"method": method, "train": inside[0], "test": inside[1], "rmse": error, "features": used, **more,
                "seconds": seconds}  # fmt: skip

    k, Z = WAVELENGTHS, StandardScaler().fit_transform(X)
    choices: dict[str, Callable[[], Any]] = {
        "univariate": lambda: SelectKBest(f_regression, k=k).fit(X, y).get_support(indices=True),
        "Lasso": lambda: chosen_by_lars(X, y, k),
        "OMP": lambda: np.flatnonzero(OrthogonalMatchingPursuit(n_nonzero_coefs=k).fit(Z, y).coef_),
        "RFE": lambda: RFE(LinearRegression(), n_features_to_select=k).fit(Z, y).get_support(indices=True),
        "abess": lambda: abess_support("LinearRegression", X, y, k),
    }  # fmt: skip
    for name, choose in choices.items():
        S, seconds = timed(choose)
        yield row(name, LinearRegression().fit(X[:, S], y), seconds, len(S), S)
    model, seconds = timed(lambda: PLSRegression(COMPONENTS).fit(X, y))
    yield row("all wavelengths", model, seconds, X.shape[1])
    for name, loss in {"squared": "squared", "tolerance": outside}.items():
        model, seconds = timed(lambda loss=loss: SparseRegressor(k, loss=loss, random_state=split).fit(X, y))
        yield row(f"zerothresh, {name}", model, seconds, int((model.coef_ != 0).sum()), calls=model.n_calls_)
    scoring = make_scorer(outside, greater_is_better=False)
    model, seconds = timed(lambda: SparseSelector(LinearRegression(), k, scoring=scoring, random_state=split).fit(X, y))
    S = np.flatnonzero(model.support_)
    yield row("zerothresh, selector", LinearRegression().fit(X[:, S], y), seconds, S.size, S, calls=model.n_fits_)


def abess_support(kind: str, X: np.ndarray, y: np.ndarray, k: int) -> np.ndarray:
    """Return the columns that abess takes."""
    import abess

    return np.flatnonzero(getattr(abess, kind)(support_size=k).fit(StandardScaler().fit_transform(X), y).coef_)


def forward_by_centroids(X: np.ndarray, y: np.ndarray, k: int, folds: Any) -> tuple[list[int], list[float], int]:
    """Return what scikit-learn's SequentialFeatureSelector selects for NearestCentroid, and what it would have cost.

    Squared distances to centroids add up over features, so that all candidates of a step are scored at once. The fits
    are those that the selector of scikit-learn would have made. tests/test_practice.py compares both.
    """
    classes, labels = np.unique(y, return_inverse=True)
    parts, sums, truths = [], [], []
    for train, test in folds:
        centres = np.stack([X[train][labels[train] == c].mean(axis=0) for c in range(classes.size)])
        parts.append((X[test][:, :, None] - centres.T[None]) ** 2)  # (rows, features, classes)
        sums.append(np.zeros((len(test), 1, classes.size)))
        truths.append(labels[test])
    S: list[int] = []
    scores: list[float] = []
    fits = 0
    while len(S) < k:
        total = np.zeros(X.shape[1])
        for part, so_far, truth in zip(parts, sums, truths, strict=True):
            right = (so_far + part).argmin(axis=2) == truth[:, None]
            total += np.mean([right[truth == c].mean(axis=0) for c in np.unique(truth)], axis=0)
        fits += (X.shape[1] - len(S)) * len(parts)
        total[S] = -1.0
        S.append(int(total.argmax()))
        scores.append(float(total.max()) / len(parts))
        sums = [so_far + part[:, [S[-1]]] for so_far, part in zip(sums, parts, strict=True)]
    return S, scores, fits


def tumour_genes(table: Table, split: int) -> Iterator[Row]:
    """20 of 2,308 genes for nearest centroids; the figures are balanced accuracies in the folds and on test rows."""
    X, y, X_test, y_test = cut(*table, split, classes=True)
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=split).split(X, y))

    def row(method: str, S: Any, seconds: float, fits: int, **more: Any) -> Row:
        S = np.sort(S)
        held = []
        for train, test in folds:
            model = NearestCentroid().fit(X[train][:, S], y[train])
            held.append(balanced_accuracy_score(y[test], model.predict(X[test][:, S])))
        test = balanced_accuracy_score(y_test, NearestCentroid().fit(X[:, S], y).predict(X_test[:, S]))
        return {"method": method, "train": float(np.mean(held)), "test": float(test), "features": len(S), "fits": fits,
                **more, "seconds": seconds}  # fmt: skip

    (S, scores, fits), seconds = timed(lambda: forward_by_centroids(X, y, GENES, folds))
    yield row("SequentialFeatureSelector", S, seconds, fits, best=max(scores))
    S, seconds = timed(lambda: SelectKBest(f_classif, k=GENES).fit(X, y).get_support(indices=True))
    yield row("univariate", S, seconds, 0)
    rfe, Z = (
        RFE(LogisticRegression(max_iter=500), n_features_to_select=GENES, step=0.2),
        StandardScaler().fit_transform(X),
    )
    S, seconds = timed(lambda: rfe.fit(Z, y).get_support(indices=True))
    yield row("RFE", S, seconds, 0)
    for name, start in {"zerothresh, selector": "linear", "zerothresh, selector, random start": None}.items():
        selector = SparseSelector(
            NearestCentroid(),
            GENES,
            scoring="balanced_accuracy",
            cv=folds,
            budget=FITS,
            start=start,
            random_state=split,
        )
        found, seconds = timed(lambda selector=selector: clone(selector).fit(X, y))
        yield row(name, np.flatnonzero(found.support_), seconds, found.n_fits_, best=found.score_)


def tumour_markers(table: Table, split: int) -> Iterator[Row]:
    """At most 5 of 30 features of tumours by the AUC; cold and warm starts."""
    X, y, X_test, y_test = cut(*table, split, classes=True)
    scale = StandardScaler().fit(X)
    Z, Z_test, k = scale.transform(X), scale.transform(X_test), MARKERS

    def row(method: str, coef: Any, seconds: float, **more: Any) -> Row:
        coef = np.ravel(coef)
        return {"method": method, "train": float(roc_auc_score(y, Z @ coef)), "features": int((coef != 0).sum()),
                "test": float(roc_auc_score(y_test, Z_test @ coef)), **more, "seconds": seconds}  # fmt: skip

    def l1() -> np.ndarray:
        best = np.zeros(Z.shape[1])
        for C in np.geomspace(1e-3, 1.0, 30):
            coef = LogisticRegression(l1_ratio=1, C=C, solver="liblinear").fit(Z, y).coef_[0]
            best = coef if (coef != 0).sum() <= k else best
        return best

    def on(S: np.ndarray) -> np.ndarray:
        coef = np.zeros(Z.shape[1])
        coef[S] = LogisticRegression(C=np.inf, max_iter=1000).fit(Z[:, S], y).coef_[0]
        return coef

    starts = {}
    starts["L1"], seconds = timed(l1)
    yield row("L1", starts["L1"], seconds)
    starts["abess"], seconds = timed(lambda: on(abess_support("LogisticRegression", Z, y, k)))
    yield row("abess", starts["abess"], seconds)
    coef, seconds = timed(lambda: on(SelectKBest(f_classif, k=k).fit(Z, y).get_support(indices=True)))
    yield row("univariate", coef, seconds)
    coef, seconds = timed(
        lambda: on(RFE(LogisticRegression(), n_features_to_select=k).fit(Z, y).get_support(indices=True))
    )
    yield row("RFE", coef, seconds)
    model = SparseClassifier(k, loss="auc", max_calls=CALLS, random_state=split)
    found, seconds = timed(lambda: clone(model).fit(Z, y))
    cold = row("zerothresh, cold", found.coef_, seconds, calls=found.n_calls_)
    yield cold
    for name, start in starts.items():
        found, seconds = timed(lambda start=start: clone(model).fit(Z, y, coef_init=start))
        begun = float(roc_auc_score(y, Z @ start))
        yield row(
            f"zerothresh, warm from {name}", found.coef_, seconds, calls=found.n_calls_, begun=begun, cold=cold["train"]
        )
