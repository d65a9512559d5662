"""Selection of k features for any estimator, by its cross-validated score seen as a black box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import get_tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from zerothresh.api.minimizer import minimize
from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.session.status import Status
from zerothresh.sklearn.fold_scores import FoldScores
from zerothresh.sklearn.linear_problems import checked
from zerothresh.sklearn.linear_start import linear_start
from zerothresh.sklearn.run_parts import part_of, seed_of

SHARE = 0.1  # of the fits that a forward selection would make
LEAST = 20  # subsets, if that is more


class SparseSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # no types
    """Select at most k features for an estimator by its cross-validated score, seen as a black box.

    The search begins at the features that a forward selection for least squares takes, which costs no fit, and goes on
    by `zerothresh.minimize` among subsets. No subset is fitted twice on a fold.

    Parameters
    ----------
    estimator : estimator
        What the features are selected for. It is cloned for each fit.
    k : int, default=10
        The largest number of features, or of groups.
    scoring : str or callable, default=None
        The name of a scorer or a function of (estimator, X, y); None takes ``estimator.score``.
    cv : int, splitter or iterable, default=5
        The folds. A number of folds is drawn with ``random_state``, stratified by classes.
    budget : int, default=None
        The largest number of fits, each of one subset on one fold. None takes a tenth of what a forward selection
        (`sklearn.feature_selection.SequentialFeatureSelector`) would make, but at least 20 per fold.
    groups : array of shape (n_features,), default=None
        A label per feature; features with one label are selected together, and k counts groups.
    start : "linear", None or array, default="linear"
        Where the search begins: a forward selection for least squares, a random subset, or a mask or indices.
    error_score : "raise" or float, default=nan
        The score of a fit that fails; NaN takes the worst one that was seen.
    run : path, default=None
        A folder that keeps every score: a selection that was killed goes on with the same call, and fits nothing twice.
        Other data or parameters get other folders within it.
    n_jobs : int, default=None
        Threads that fit at once. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        The seed of the folds and of the search. None draws another one in each fit, but takes 0 where ``run`` is given,
        so that a selection that was killed goes on.

    Attributes
    ----------
    support_ : array of bool of shape (n_features,)
        The features that are selected.
    score_ : float
        Their cross-validated score.
    fold_scores_ : array of shape (n_folds,)
        Their score on each fold.
    n_fits_ : int
        The fits that this call has made.
    n_calls_ : int
        The scores that were asked for, with those of earlier calls in the same folder.
    result_ : zerothresh.Result
        The result of the search.
    n_features_in_, feature_names_in_
        The number of features, and their names if X has names.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from zerothresh.sklearn import SparseSelector
    >>> X, y = load_wine(return_X_y=True)
    >>> selector = SparseSelector(KNeighborsClassifier(), k=3, budget=100, random_state=0).fit(X, y)
    >>> selector.transform(X).shape, selector.n_fits_ <= 100
    ((178, 3), True)
    """

    def __init__(
        self,
        estimator: Any,
        k: int = 10,
        *,
        scoring: Any = None,
        cv: Any = 5,
        budget: int | None = None,
        groups: Any = None,
        start: Any = "linear",
        error_score: Any = np.nan,
        run: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator, self.k, self.scoring, self.cv, self.budget = estimator, k, scoring, cv, budget
        self.groups, self.start, self.error_score = groups, start, error_score
        self.run, self.n_jobs, self.random_state = run, n_jobs, random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags.required = inner.target_tags.required
        return tags

    def fit(self, X: Any, y: Any = None, **parameters: Any) -> SparseSelector:
        """Select features.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            The features.
        y : array of shape (n_samples,), default=None
            The targets.
        **parameters : dict
            What the estimator's ``fit`` is given, too; arrays with a value per row, such as ``sample_weight``, are cut
            into folds.

        Returns
        -------
        SparseSelector
            The selector itself.
        """
        k = check.count("k", self.k, what=" (features, or groups of them)")
        tags = get_tags(self)
        checks = {"accept_sparse": "csr", "ensure_min_features": 1, "ensure_all_finite": not tags.input_tags.allow_nan}
        if tags.target_tags.required or y is not None:
            X, y = validate_data(self, X, y, multi_output=True, **checks)
        else:
            X = validate_data(self, X, **checks)
        d = X.shape[1]
        units = self._units(d)
        k = min(k, int(units.max()) + 1)
        seed = seed_of(self.random_state, self.run)
        classes = y is not None and is_classifier(self.estimator)
        folds = self._folds(X, y, classes, seed)
        if not isinstance(self.error_score, str):
            score = check.real(self.error_score)
            if score is None:
                raise ValueError(f"error_score must be 'raise' or a number, not {check.shown(self.error_score)}")
        elif self.error_score != "raise":
            raise ValueError(f"error_score must be 'raise' or a number, not {check.shown(self.error_score)}")
        folder = self._folder(X, y, folds, parameters)
        problem = FoldScores(
            clone(self.estimator),
            X,
            y,
            folds,
            check_scoring(self.estimator, scoring=self.scoring),
            {name: value for name, value in parameters.items() if value is not None},
            self.error_score,
            folder,
        )
        start = self._begin(X, y, k, units, classes, seed)
        found = minimize(
            lambda on, fold: problem(on[units], fold),  # a coordinate per feature, or per group
            np.bincount(units, weights=start).clip(max=1.0),
            k,
            n=len(folds),
            values="on/off",
            budget=self._budget(int(units.max()) + 1, k, len(folds)),
            on_nan="worst",
            workers=joblib.effective_n_jobs(self.n_jobs),
            parallel=1,
            seed=seed,
            run=None if folder is None else folder / "search",
            progress=False,
        )
        if found.nfev <= len(folds) and found.status is Status.BAD_VALUE:
            raise ValueError(
                "the estimator could not be fitted with the first features on any fold, so that no score is known: "
                f"begin at others by start=, or give error_score a number. The last failure: {problem.failure}"
            ) from problem.failure
        checked(found)
        self.support_ = found.x[units] != 0
        self.fold_scores_ = np.array([-problem(found.x[units], fold) for fold in range(len(folds))])
        self.score_ = float(self.fold_scores_.mean())
        self.n_fits_, self.n_calls_, self.result_ = problem.fits, found.nfev, found
        return self

    def _get_support_mask(self) -> Any:
        check_is_fitted(self, "support_")
        return self.support_

    def _units(self, d: int) -> Any:
        """Return the number of the unit of each feature: its group, or itself."""
        if self.groups is None:
            return np.arange(d)
        labels = np.asarray(self.groups)
        if labels.shape != (d,):
            raise ValueError(f"groups must have one label per feature, shape ({d},), not {labels.shape}")
        return np.unique(labels, return_inverse=True)[1].ravel()

    def _folds(self, X: Any, y: Any, classes: bool, seed: int) -> list[Any]:
        """Return the folds."""
        cv = 5 if self.cv is None else self.cv
        if check.whole(cv) is None:
            folds = list(check_cv(cv, y, classifier=classes).split(X, y))
        else:
            number = check.count("cv", cv, low=2, what=" (folds)")
            kind = StratifiedKFold if classes and type_of_target(y) in ("binary", "multiclass") else KFold
            folds = list(kind(number, shuffle=True, random_state=seed).split(X, y))
        if not folds:
            raise ValueError("cv has no folds")
        return folds

    def _budget(self, units: int, k: int, folds: int) -> int:
        """Return the largest number of fits."""
        if self.budget is not None:
            return check.count("budget", self.budget, low=folds, what=f" (fits; a subset takes {folds}), or None")
        forward = sum(units - i for i in range(k)) * folds
        return max(int(SHARE * forward), LEAST * folds)

    def _begin(self, X: Any, y: Any, k: int, units: Any, classes: bool, seed: int) -> Array:
        """Return the mask where the search begins."""
        d = X.shape[1]
        start = np.zeros(d)
        if self.start is None or (isinstance(self.start, str) and y is None):
            drawn = np.random.default_rng(seed).permutation(int(units.max()) + 1)[:k]
            start[np.isin(units, drawn)] = 1.0
            return start
        if isinstance(self.start, str):
            check.one_of("start", self.start, ("linear",))
            targets = np.asarray(y).reshape(len(y), -1)
            if classes:
                targets = np.column_stack([column == label for column in targets.T for label in np.unique(column)])
            targets = targets.astype(np.float64)
            spread = targets.std(axis=0)
            start[linear_start(X, targets / np.where(spread > 0, spread, 1.0), k, units)] = 1.0
            return start
        given = np.asarray(self.start)
        mask = given.dtype.kind == "b" and given.shape == (d,)
        numbers = given.ndim == 1 and given.dtype.kind in "iu" and given.size > 0 and np.isin(given, range(d)).all()
        if not mask and not numbers:
            shown = check.shown(self.start)
            raise ValueError(f"start must be 'linear', None, or a mask or indices of features, not {shown}")
        start[given] = 1.0
        if np.unique(units[start != 0]).size > k:
            raise ValueError(f"start has more features (or groups) than k = {k}")
        return start

    def _folder(self, X: Any, y: Any, folds: Any, parameters: Any) -> Path | None:
        """Return the folder of this selection within that of the user."""
        left_out = ("run", "n_jobs", "budget")
        settings = {name: value for name, value in self.get_params().items() if name not in left_out}
        return part_of(self.run, [X, y, folds, settings, parameters])
