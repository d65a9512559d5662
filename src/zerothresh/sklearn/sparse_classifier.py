"""Binary linear classification with few features, for any loss or metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.sklearn.linear_design import Rows
from zerothresh.sklearn.row_losses import RowLoss, of_function, of_margins
from zerothresh.sklearn.scorer_metrics import MeanMetric, ScorerMetric, is_scorer, of_all, only_jumps
from zerothresh.sklearn.sparse_linear import SparseLinear
from zerothresh.sklearn.threshold_metrics import ThresholdMetric

NAMES = ("log", "hinge", "auc", "f-beta", "balanced")
SAME = {"roc_auc": "auc", "balanced_accuracy": "balanced", "neg_log_loss": "log"}  # scorers that are one of the losses
PROBABLE = ("log", "neg_log_loss", "neg_brier_score", "d2_log_loss_score", "d2_brier_score")  # with probabilities
MISTAKES = ((0.0, 1.0), (1.0, 0.0))  # the costs of which accuracy is the mean, except for its sign


def _has_probabilities(model: Any) -> bool:
    """Whether the loss is one of probabilities; AttributeError with the reason if not."""
    if isinstance(model.loss, str) and model.loss in PROBABLE:
        return True
    raise AttributeError(f"loss={check.shown(model.loss)} gives no probabilities: take loss='log'")


class SparseClassifier(ClassifierMixin, SparseLinear):  # type: ignore[misc]  # scikit-learn has no types
    """Binary linear classification with at most k features, for any loss or metric, fitted by `zerothresh.minimize`.

    Columns are standardised inside, so that their units do not matter; the coefficients are in the user's units. The
    intercept does not count. For "auc", "f-beta", "balanced" and costs, the search begins at the solution for the log
    loss, and the intercept is the best threshold, which is found exactly (for "auc", that of "balanced").

    For more than two classes, take ``sklearn.multiclass.OneVsRestClassifier(SparseClassifier(k))``, which has at most k
    features per class.

    Parameters
    ----------
    k : int or "auto", default=10
        The largest number of features. "auto" chooses the smallest one whose held-out loss is within one standard error
        of the lowest; with a metric, among models for the log loss.
    loss : str, array of shape (2, 2) or callable, default="log"
        "log", "hinge", "auc", "f-beta" or "balanced" (balanced accuracy); costs, with a row per true and a column per
        predicted class, in the order of ``classes_``; the name of a scorer of scikit-learn, such as
        "average_precision", or a scorer; or a function ``loss(y, score)`` of labels 0 and 1 and of scores, which
        returns the loss of each row, or one number. Lower is better, except for scorers.
    beta : float, default=1.0
        The weight of recall over precision for "f-beta", where the second of ``classes_`` is positive.
    fit_intercept, max_calls, patience, ks, cv, warm_start, run, n_jobs, random_state
        As for `SparseRegressor`. The folds of k="auto" are stratified.

    Attributes
    ----------
    classes_ : array of shape (2,)
        The classes.
    coef_ : array of shape (1, n_features)
        The coefficients, at most k of which are not 0.
    intercept_ : array of shape (1,)
        The intercept.
    loss_, k_, ks_, held_out_, held_out_error_, n_calls_, result_, n_features_in_, feature_names_in_
        As for `SparseRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from zerothresh.sklearn import SparseClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseClassifier(k=2, random_state=0).fit(X, y)
    >>> (model.coef_ != 0).sum(), round(model.score(X, y), 2)
    (np.int64(2), 0.95)
    """

    def __init__(
        self,
        k: int | str = 10,
        *,
        loss: Any = "log",
        beta: float = 1.0,
        fit_intercept: bool = True,
        max_calls: int | None = None,
        patience: int | None = None,
        ks: Any = None,
        cv: Any = None,
        warm_start: bool = False,
        run: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.k, self.loss, self.beta, self.fit_intercept = k, loss, beta, fit_intercept
        self.max_calls, self.patience, self.ks, self.cv, self.warm_start = max_calls, patience, ks, cv, warm_start
        self.run, self.n_jobs, self.random_state = run, n_jobs, random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, coef_init: Any = None, intercept_init: Any = None
    ) -> SparseClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            The features.
        y : array of shape (n_samples,)
            The classes, of which there must be two.
        sample_weight : array of shape (n_samples,), default=None
            A weight of 2 is the same as a row that occurs twice.
        coef_init : array of shape (n_features,) or (1, n_features), default=None
            Coefficients to begin at, too; of more than k, the k that change the scores most are taken.
        intercept_init : float, default=None
            The intercept to begin at.

        Returns
        -------
        SparseClassifier
            The model itself.
        """
        X, y, w = self._checked(X, y, sample_weight)
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        if classes.size > 2:
            raise ValueError(
                f"Only binary classification is supported, but y has {classes.size} classes: take "
                "OneVsRestClassifier(SparseClassifier(...)), which has at most k features per class"
            )
        if np.unique(labels if w is None else labels[w > 0]).size < 2:
            raise ValueError(
                f"y has one class only, {classes[0]!r}: a classifier needs rows of two classes, with weights above 0"
            )
        self.classes_ = classes
        self._resolve(labels)
        self._fit(X, labels.astype(np.float64), w, labels, coef_init, intercept_init)
        self.coef_ = np.reshape(self.coef_, (1, -1))
        self.intercept_: Any = np.reshape(self.intercept_, 1)
        return self

    def decision_function(self, X: Any) -> Array:
        """Return scores, which are above 0 for the second class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of shape (n_samples,)
            The scores.
        """
        return self._scores(X)

    def predict(self, X: Any) -> Any:
        """Predict classes.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of shape (n_samples,)
            The classes.
        """
        scores = self._scores(X)
        return self.classes_[(scores > 0).astype(np.int64)]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of both classes; only with loss="log" and scorers of probabilities.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of shape (n_samples, 2)
            The probabilities, in the order of ``classes_``.
        """
        p = expit(self._scores(X))
        return np.column_stack([1.0 - p, p])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities of both classes.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of shape (n_samples, 2)
            The logarithms, in the order of ``classes_``.
        """
        s = self._scores(X)
        return -np.column_stack([np.logaddexp(0.0, s), np.logaddexp(0.0, -s)])

    def _resolve(self, labels: Any) -> None:
        """Check the loss and its parameters, and keep what it is."""
        given = self.loss
        self._kind: str = ""
        self._called: Any = None
        self._cost: Array | None = None
        self._beta = 1.0
        if isinstance(given, str):
            name = SAME.get(given, given)
            if name in ("accuracy", "f1"):
                self._kind, self._cost = ("cost", np.array(MISTAKES)) if name == "accuracy" else ("f-beta", None)
            elif name in NAMES:
                self._kind = name
            else:
                check.one_of("loss", name, [*NAMES, *get_scorer_names()])
                self._kind, self._called = "scorer", get_scorer(name)
            if name == "f-beta":
                self._beta = check.positive("beta", self.beta, what=" (the weight of recall)")
        elif callable(given) and is_scorer(given):
            self._kind, self._called = "scorer", given
        elif callable(given) and not isinstance(given, type):
            check.function("loss", given, "loss(y, score)")
            found = check.array(given(labels, np.zeros(labels.size)))
            rows = found is not None and found.shape == labels.shape
            if found is None or found.dtype.kind not in "fiub" or not (rows or found.size == 1):
                raise ValueError(
                    f"loss(y, score) returned {check.shown(found)}: it must return the loss of each row, "
                    f"shape ({labels.size},), or one number"
                )
            jumps = rows and only_jumps(given, labels, 0.0, 1.0)
            self._kind, self._called = ("jumps" if jumps else "rows" if rows else "number"), given
        else:
            cost = check.array(given)
            if cost is None or cost.shape != (2, 2) or cost.dtype.kind not in "fiu" or not np.isfinite(cost).all():
                raise ValueError(f"loss must be a name, costs of shape (2, 2), or a function, not {check.shown(given)}")
            self._kind, self._cost = "cost", cost.astype(np.float64)

    def _objective(self, rows: Rows, centre: float, scale: float) -> Any:
        labels = rows.y.astype(np.int64)
        if self._kind in ("log", "hinge"):
            return of_margins(self._kind, 2.0 * rows.y - 1.0, rows.w)
        if self._kind == "scorer":
            return ScorerMetric(self._called, self.classes_[labels], rows, self.classes_)
        if self._kind == "rows":
            return of_function(self._called, labels, np.zeros(rows.n), rows.w, centre=0.0, scale=1.0)
        if self._kind == "number":
            return of_all(self._called, labels, rows)
        if self._kind == "jumps":
            return MeanMetric(self._called, labels, rows.w)
        return ThresholdMetric(self._kind, rows.y, rows.w, self._beta, self._cost, bool(self.fit_intercept))

    def _stand_in(self, rows: Rows, centre: float, scale: float) -> RowLoss:
        return of_margins("log", 2.0 * rows.y - 1.0, rows.w)
