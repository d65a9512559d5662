"""Linear regression with few features, for any loss or metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.losses import loss_of
from zerothresh.sklearn.linear_design import LinearDesign, Rows
from zerothresh.sklearn.linear_problems import Effort, RowProblem, search
from zerothresh.sklearn.row_losses import RowLoss, of_function, of_own, of_residuals
from zerothresh.sklearn.scorer_metrics import MeanMetric, ScorerMetric, is_scorer, of_all, only_jumps
from zerothresh.sklearn.sparse_linear import SparseLinear

NAMES = ("squared", "absolute", "huber", "quantile", "mape")
SAME = {  # scorers that are one of the losses, up to a rising function
    "r2": "squared",
    "neg_mean_squared_error": "squared",
    "neg_root_mean_squared_error": "squared",
    "neg_mean_absolute_error": "absolute",
    "neg_mean_absolute_percentage_error": "mape",
}
ORDINARY = 1.345  # standard deviations of normal noise: Huber's loss then has 95 % of the efficiency of squares
LEAST_DELTA = 1e-3  # standard deviations of y: where half of the residuals are 0, others still have a size
DEVIATION = 1.4826  # standard deviations per median absolute deviation, of normal noise


class SparseRegressor(RegressorMixin, SparseLinear):  # type: ignore[misc]  # scikit-learn has no types
    """Linear regression with at most k features, for any loss or metric, fitted by `zerothresh.minimize`.

    Columns are standardised inside, so that their units do not matter; the coefficients are in the user's units. The
    intercept does not count.

    Parameters
    ----------
    k : int or "auto", default=10
        The largest number of features. "auto" chooses the smallest one whose held-out loss is within one standard error
        of the lowest.
    loss : str, loss or callable, default="squared"
        "squared", "absolute", "huber", "quantile" or "mape" (mean absolute percentage error); the name of a scorer of
        scikit-learn, such as "neg_median_absolute_error", or a scorer; a loss of ``zerothresh.losses``, such as
        ``Cauchy(0.1)``, of residuals in the unit of y; or a function ``loss(y, prediction)``, which returns the loss of
        each row, or one number. Lower is better, except for scorers.
    quantile : float, default=0.5
        Which quantile "quantile" describes, between 0 and 1.
    delta : float, default=None
        The size up to which a residual is ordinary for "huber", in the unit of y. None takes 1.345 times the standard
        deviation of the residuals of an absolute fit, estimated by their median.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    max_calls : int, default=None
        The largest number of calls of the loss per search. None takes 20 per feature and 400 more, and a search ends
        much earlier where nothing is gained any more; for metrics, it is 100 per feature and 1,000 more, but at most
        20,000.
    patience : int, default=None
        The calls without a gain after which a search ends. None takes 2 per feature and 60 more; with ``max_calls`` and
        for metrics, all calls are made.
    ks : sequence of int, default=None
        The values that k="auto" tries. None takes 1 to 10 and some up to 28, as far as there are so many features.
    cv : int, splitter or iterable, default=None
        The folds of k="auto"; None takes 5, and numbers of folds are drawn with ``random_state``.
    warm_start : bool, default=False
        Whether ``fit`` also begins at the coefficients that are there. What is found is never worse than they are, nor
        than what a fit without them finds.
    run : path, default=None
        A folder that keeps every value, so that a fit that was killed goes on. Fits of other data, or with other
        parameters, get other folders within it.
    n_jobs : int, default=None
        Threads that evaluate the loss. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        The seed of the search. None draws another one in each fit, but takes 0 where ``run`` is given.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        The coefficients, at most k of which are not 0.
    intercept_ : float
        The intercept.
    loss_ : float
        The loss of the training data; for a scorer, the negative score.
    delta_ : float
        With loss="huber": the size up to which a residual is ordinary.
    k_ : int
        The number of features that were allowed.
    ks_, held_out_, held_out_error_ : arrays
        With k="auto": the values that were tried, their held-out losses, and the standard errors.
    n_calls_ : int
        The calls of the loss, each of all rows.
    result_ : zerothresh.Result
        The result of the search, in terms of the standardised columns.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of str
        Their names, if X has names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from zerothresh.sklearn import SparseRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SparseRegressor(k=3, loss="absolute", random_state=0).fit(X, y)
    >>> model.feature_names_in_[model.coef_ != 0].tolist()
    ['bmi', 's1', 's5']
    """

    def __init__(
        self,
        k: int | str = 10,
        *,
        loss: Any = "squared",
        quantile: float = 0.5,
        delta: float | None = None,
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
        self.k, self.loss, self.quantile, self.delta, self.fit_intercept = k, loss, quantile, delta, fit_intercept
        self.max_calls, self.patience, self.ks, self.cv, self.warm_start = max_calls, patience, ks, cv, warm_start
        self.run, self.n_jobs, self.random_state = run, n_jobs, random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, coef_init: Any = None, intercept_init: Any = None
    ) -> SparseRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            The features.
        y : array of shape (n_samples,)
            The targets.
        sample_weight : array of shape (n_samples,), default=None
            A weight of 2 is the same as a row that occurs twice.
        coef_init : array of shape (n_features,), default=None
            Coefficients to begin at, too; of more than k, the k that change the prediction most are taken.
        intercept_init : float, default=None
            The intercept to begin at.

        Returns
        -------
        SparseRegressor
            The model itself.
        """
        X, y, w = self._checked(X, y, sample_weight, y_numeric=True)
        y = np.asarray(y, np.float64)
        self._resolve(y)
        self._fit(X, y, w, None, coef_init, intercept_init)
        return self

    def predict(self, X: Any) -> Array:
        """Predict targets.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            The features.

        Returns
        -------
        array of shape (n_samples,)
            The predictions.
        """
        return self._scores(X)

    def _resolve(self, y: Array) -> None:
        """Check the loss and its parameters, and keep what it is."""
        given = self.loss
        self._kind: str = ""
        self._called: Any = None
        if isinstance(given, str):
            name = SAME.get(given, given)
            if name in NAMES:
                self._kind = name
            else:
                check.one_of("loss", name, [*NAMES, *get_scorer_names()])
                self._kind, self._called = "scorer", get_scorer(name)
        elif check.has_function(given, "value") or not callable(given):
            if given is None or isinstance(given, type):
                raise ValueError(f"loss must be a name, a loss or a function, not {check.shown(given)}")
            self._kind, self._called = "own", loss_of(given)
        elif is_scorer(given):
            self._kind, self._called = "scorer", given
        else:
            check.function("loss", given, "loss(y, prediction)")
            found = check.array(given(y, np.full(y.size, y.mean())))
            rows = found is not None and found.shape == y.shape and y.size > 1
            if found is None or found.dtype.kind not in "fiub" or not (rows or found.size == 1):
                raise ValueError(
                    f"loss(y, prediction) returned {check.shown(found)}: it must return the loss of each row, "
                    f"shape ({y.size},), or one number"
                )
            jumps = rows and only_jumps(given, y, float(y.mean()), float(y.std()) or 1.0)
            self._kind, self._called = ("jumps" if jumps else "rows" if rows else "number"), given
        if self._kind == "quantile":
            q = check.positive("quantile", self.quantile, what=" and below 1")
            if q >= 1:
                raise ValueError(f"quantile must be between 0 and 1, not {check.shown(self.quantile)}")
        if self._kind == "huber" and self.delta is not None:
            check.positive("delta", self.delta, what=" (the size of ordinary residuals), or None")
        if self._kind == "mape" and (y == 0).any():
            raise ValueError(
                f"loss='mape' divides by y, which is 0 in row {int(np.argmax(y == 0))}: leave such rows out, or take "
                "loss='absolute'"
            )

    def _units(self, rows: Rows) -> tuple[float, float]:
        mean = float(rows.w @ rows.y) / rows.n
        centre = (float(rows.y[0]) if (rows.y == rows.y[0]).all() else mean) if self.fit_intercept else 0.0
        size = float(np.abs(rows.y - centre).max())
        if not size > 0:
            return centre, 1.0
        return centre, size * float(np.sqrt(rows.w @ ((rows.y - centre) / size) ** 2 / rows.n))

    def _objective(self, rows: Rows, centre: float, scale: float) -> Any:
        z = (rows.y - centre) / scale
        if self._kind == "scorer":
            return ScorerMetric(self._called, rows.y, rows, centre=centre, scale=scale)
        if self._kind == "number":
            return of_all(self._called, rows.y, rows, centre, scale)
        if self._kind == "jumps":
            return MeanMetric(self._called, rows.y, rows.w, centre, scale)
        if self._kind == "own":
            return of_own(self._called, z, rows.w, scale)
        if self._kind == "rows":
            return of_function(self._called, rows.y, z, rows.w, centre=centre, scale=scale)
        quantile, delta = self.quantile, self.delta_ if self._kind == "huber" else 1.0
        return of_residuals(self._kind, z, rows.w, scale, targets=rows.y, quantile=quantile, delta=delta)

    def _stand_in(self, rows: Rows, centre: float, scale: float) -> RowLoss:
        return of_residuals("squared", (rows.y - centre) / scale, rows.w, scale, targets=rows.y)

    def _prepare(self, rows: Rows, effort: Effort) -> None:
        if self._kind != "huber":
            return
        if self.delta is not None:
            self.delta_ = float(self.delta)
            return
        centre, scale = self._units(rows)
        design = LinearDesign(rows, intercept=self.fit_intercept, constant=self.fit_intercept)
        loss = of_residuals("absolute", (rows.y - centre) / scale, rows.w, scale, targets=rows.y)
        k = rows.X.shape[1] if isinstance(self.k, str) else int(self.k)
        problem = RowProblem(design, loss)
        found = search(problem, k, None, effort.with_patience(problem), "absolute")
        self.n_calls_ += 0 if found is None else found.nfev
        scores = design.scores(np.zeros((1, design.d)) if found is None else found.x[None])[0]
        residuals = np.abs(scale * scores + centre - rows.y)
        order = np.argsort(residuals, kind="stable")
        half = int(np.searchsorted(np.cumsum(rows.w[order]), 0.5 * rows.w.sum()))
        self.delta_ = max(ORDINARY * DEVIATION * float(residuals[order][half]), LEAST_DELTA * scale)
