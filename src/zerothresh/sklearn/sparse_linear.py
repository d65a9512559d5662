"""What both linear models share: how a fit begins, searches, chooses k, and what it leaves."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from zerothresh.basics import check
from zerothresh.basics.arrays import Array, Indices
from zerothresh.sklearn.k_by_folds import Chosen, choose_k, fixed, loss_on
from zerothresh.sklearn.linear_design import LinearDesign, Rows
from zerothresh.sklearn.linear_problems import Effort, MetricProblem, RowProblem, polish, search, sparse_part
from zerothresh.sklearn.row_losses import RowLoss
from zerothresh.sklearn.run_parts import part_of, seed_of

Problem = RowProblem | MetricProblem


class SparseLinear(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The base of `SparseRegressor` and `SparseClassifier`."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _objective(self, rows: Rows, centre: float, scale: float) -> Any:
        """Return the loss of scores: a `RowLoss`, or a metric with ``value(scores)``."""

    @abstractmethod
    def _stand_in(self, rows: Rows, centre: float, scale: float) -> RowLoss:
        """Return the mean loss of rows whose minimiser a metric starts from."""

    def _units(self, rows: Rows) -> tuple[float, float]:
        """Return the origin and the unit of scores."""
        return 0.0, 1.0

    def _prepare(self, rows: Rows, effort: Effort) -> None:
        """Find what the loss needs to know beforehand."""

    def _checked(self, X: Any, y: Any, sample_weight: Any, **y_checks: Any) -> tuple[Any, Any, Array | None]:
        """Check the arguments of ``fit``."""
        k = self.k
        if not (isinstance(k, str) and k == "auto"):
            if isinstance(k, str) or check.whole(k) is None:
                raise ValueError(f"k must be a whole number of at least 1 (features), or 'auto', not {check.shown(k)}")
            check.count("k", k, what=" (features), or 'auto'")
        for name in ("max_calls", "patience"):
            if getattr(self, name) is not None:
                check.count(name, getattr(self, name), what=" (calls of the loss), or None")
        check.flag("fit_intercept", self.fit_intercept)
        check.flag("warm_start", self.warm_start)
        X, y = validate_data(self, X, y, accept_sparse="csc", dtype=np.float64, **y_checks)
        if sample_weight is None:
            return X, y, None
        w = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
        if w.ndim != 1 or w.size != y.size:
            raise ValueError(f"sample_weight must have one number per row, shape ({y.size},), not {w.shape}")
        if (w < 0).any():
            raise ValueError("sample_weight must not be negative")
        if not w.any():
            raise ValueError("sample_weight is zero in all rows: at least one row needs a weight above zero")
        return X, y, w

    def _problem(self, rows: Rows) -> tuple[Problem, RowProblem | None]:
        """Return what is minimised, and where it starts from if it is a metric."""
        centre, scale = self._units(rows)
        goal = self._objective(rows, centre, scale)
        design = LinearDesign(rows, intercept=self.fit_intercept, constant=self.fit_intercept)
        if isinstance(goal, RowLoss):
            return RowProblem(design, goal), None
        first = RowProblem(design, self._stand_in(rows, centre, scale))
        free = hasattr(goal, "threshold") and self.fit_intercept
        return MetricProblem(design.without_constant() if free else design, goal.value), first

    def _fit(self, X: Any, y: Array, w: Array | None, labels: Any, coef_init: Any, intercept_init: Any) -> None:
        """Search, and keep what was found."""
        begun = self._start(coef_init, intercept_init, X.shape[1])
        seed = seed_of(self.random_state, self.run)
        effort = Effort(
            self.max_calls, self.patience, seed, joblib.effective_n_jobs(self.n_jobs), self._folder(X, y, w, begun)
        )
        self.n_calls_ = 0
        self._prepare(Rows.of(X, y, w), effort)
        if isinstance(self.k, str):
            chosen: Chosen = choose_k(self, X, y, w, labels, effort)
            self.k_, self.ks_, self.n_calls_ = chosen.k, chosen.ks, chosen.calls
            self.held_out_, self.held_out_error_ = chosen.held_out, chosen.error
        else:
            self.k_ = min(int(self.k), X.shape[1])
        rows = Rows.of(X, y, w)
        problem, point, found = self._searched(rows, self.k_, begun, effort)
        self.loss_, self.result_ = problem.F(point), found
        coef, intercept = self._predictor(rows, problem.design, point)
        self.coef_: Array = coef
        self.intercept_: Any = intercept

    def _searched(self, rows: Rows, k: int, begun: Any, effort: Effort) -> tuple[Problem, Array, Any]:
        """Return the problem, the best point, and the result of the run that found it."""
        problem, first = self._problem(rows)
        starts: list[tuple[str, Array | None]] = [("cold", None)]
        if first is not None:
            found = search(first, k, None, effort.with_patience(first), "stand-in")
            self.n_calls_ += 0 if found is None else found.nfev
            point = np.zeros(first.design.d) if found is None else found.x
            starts = [("cold", point[: problem.design.d])]
        if begun is not None:
            centre, scale = self._units(rows)
            given = problem.design.point(begun[0] / scale, (begun[1] - centre) / scale)
            starts.append(("warm", sparse_part(problem, given, k)))
        best, lowest, result = np.zeros(problem.design.d), np.inf, None
        for name, start in starts:
            found = search(problem, k, start, effort, name)
            self.n_calls_ += 0 if found is None else found.nfev
            ends = [*([] if found is None else [found.x]), *([] if start is None else [start])]
            end = min(ends, key=problem.F, default=best)
            if isinstance(problem, MetricProblem):  # of each start: a warm one is never behind a cold one
                end, calls = polish(problem, end, effort, name)
                self.n_calls_ += calls
            if lowest > problem.F(end):
                best, lowest, result = end, problem.F(end), found
        return problem, best, result

    def _predictor(self, rows: Rows, design: LinearDesign, point: Array) -> tuple[Array, float]:
        """Return the coefficients and the intercept of a point, in the units of the user's table."""
        centre, scale = self._units(rows)
        coef, intercept = design.coefficients(point)
        if self.fit_intercept:
            goal = self._objective(rows, centre, scale)
            if hasattr(goal, "threshold"):  # the best one is known exactly
                intercept -= goal.threshold(design.scores(point[None])[0])
        return scale * coef, centre + scale * intercept

    def _held_out(self, rows: Rows, design: LinearDesign, point: Array, outside: Rows) -> float:
        """Return the loss on other rows of a point that was found on some."""
        coef, intercept = self._predictor(rows, design, point)
        goal = fixed(self._objective(outside, 0.0, 1.0))
        return loss_on(goal, np.asarray(outside.X @ coef + intercept))

    def _start(self, coef_init: Any, intercept_init: Any, features: int) -> tuple[Array, float] | None:
        """Return the coefficients and the intercept to start from, if there are any."""
        if coef_init is None and self.warm_start and hasattr(self, "coef_"):
            coef_init, intercept_init = self.coef_, self.intercept_
        if coef_init is None:
            return None
        coef = check_array(coef_init, ensure_2d=False, dtype=np.float64, input_name="coef_init").ravel()
        if coef.size != features:
            raise ValueError(f"coef_init has {coef.size} coefficients, but X has {features} features")
        given = check.array(0.0 if intercept_init is None else intercept_init)
        first = None if given is None or given.size != 1 else check.real(given.ravel()[0])
        if first is None or not np.isfinite(first):
            raise ValueError(f"intercept_init must be one finite number, not {check.shown(intercept_init)}")
        return coef, first

    def _folder(self, *told: Any) -> str | None:
        """Return the folder of this fit within that of the user: other data, parameters or starts have another one."""
        parameters = {name: value for name, value in self.get_params().items() if name not in ("run", "n_jobs")}
        part = part_of(self.run, [*told, parameters])
        return None if part is None else str(part)

    def _scores(self, X: Any) -> Array:
        """Return the scores of rows."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        coef = np.ravel(self.coef_)
        S: Indices = np.flatnonzero(coef)
        chosen = X[:, S]
        if not sparse.issparse(chosen):
            chosen = np.ascontiguousarray(chosen)  # a data frame is laid out by columns, which rounds in another order
        return np.asarray(chosen @ coef[S] + np.ravel(self.intercept_)[0])
