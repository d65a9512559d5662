"""Sparse linear models for scikit-learn: losses, weights, tables, searches over k, warm starts and run folders."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LinearRegression, QuantileRegressor
from sklearn.metrics import (
    balanced_accuracy_score,
    fbeta_score,
    make_scorer,
    mean_absolute_percentage_error,
    mean_pinball_loss,
    median_absolute_error,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import zerothresh as zt
from zerothresh.sklearn import SparseClassifier, SparseRegressor

X, Y = load_diabetes(return_X_y=True)
TUMOURS, BENIGN = load_breast_cancer(return_X_y=True)
TUMOURS, BENIGN = TUMOURS[:200, :10], BENIGN[:200]
RNG = np.random.default_rng(0)
Z = RNG.standard_normal((60, 8))
T = Z[:, [1, 4, 6]] @ [2.0, -1.0, 0.5] + 3.0 + 0.1 * RNG.standard_normal(60)


FEW = {"max_calls": 40}  # enough for 8 columns


def within(y, prediction):
    """A loss of each row that only jumps."""
    return np.abs(y - prediction) > 0.1


def share_outside(y, prediction):
    """The same as one number."""
    return np.mean(within(y, prediction))


def absolute(y, prediction):
    return np.abs(y - prediction)


def named(value):
    """The name of a case, without the addresses of functions, which differ between processes."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


def test_the_best_of_all_supports_is_found():
    fitted = SparseRegressor(3, random_state=0).fit(X, Y)
    lowest = min(
        np.mean((LinearRegression().fit(X[:, S], Y).predict(X[:, S]) - Y) ** 2)
        for S in map(list, combinations(range(X.shape[1]), 3))
    )
    assert fitted.loss_ == pytest.approx(lowest, rel=1e-9)
    assert fitted.loss_ == pytest.approx(np.mean((fitted.predict(X) - Y) ** 2), rel=1e-9)
    assert (fitted.coef_ != 0).sum() == 3
    assert fitted.k_ == 3


@pytest.mark.parametrize(
    ("settings", "measured"),
    [
        ({"loss": "absolute", **FEW}, lambda y, p: np.mean(np.abs(y - p))),
        ({"loss": "neg_mean_absolute_error", **FEW}, lambda y, p: np.mean(np.abs(y - p))),
        ({"loss": "quantile", "quantile": 0.9, **FEW}, lambda y, p: mean_pinball_loss(y, p, alpha=0.9)),
        ({"loss": "mape", **FEW}, mean_absolute_percentage_error),
        ({"loss": zt.losses.Cauchy(0.1), **FEW}, lambda y, p: np.mean(zt.losses.Cauchy(0.1).value(p - y))),
        ({"loss": "huber", "delta": 0.1, **FEW}, lambda y, p: np.mean(zt.losses.Huber(0.1).value(p - y))),
        ({"loss": absolute, **FEW}, lambda y, p: np.mean(np.abs(y - p))),
        ({"loss": "neg_median_absolute_error", "max_calls": 300}, median_absolute_error),
        (
            {"loss": make_scorer(median_absolute_error, greater_is_better=False), "max_calls": 300},
            median_absolute_error,
        ),
        ({"loss": share_outside, "max_calls": 300}, share_outside),
        ({"loss": within, "max_calls": 300}, share_outside),
    ],
    ids=named,
)
def test_the_loss_is_that_of_the_predictions_and_low(settings, measured):
    fitted = SparseRegressor(3, random_state=0, **settings).fit(Z, T)
    assert np.flatnonzero(fitted.coef_).tolist() == [1, 4, 6]
    assert fitted.loss_ == pytest.approx(measured(T, fitted.predict(Z)), rel=1e-6)
    least_squares = LinearRegression().fit(Z[:, [1, 4, 6]], T).predict(Z[:, [1, 4, 6]])
    assert fitted.loss_ <= measured(T, least_squares) + 1e-12


def test_a_quantile_is_that_of_a_linear_program_on_the_same_features():
    fitted = SparseRegressor(3, loss="quantile", quantile=0.8, random_state=0, patience=20).fit(Z, T)
    S = np.flatnonzero(fitted.coef_)
    exact = QuantileRegressor(quantile=0.8, alpha=0).fit(Z[:, S], T).predict(Z[:, S])
    assert fitted.loss_ == pytest.approx(mean_pinball_loss(T, exact, alpha=0.8), rel=1e-4)


def test_the_scale_of_huber_is_that_of_the_ordinary_residuals():
    wild = T.copy()
    wild[:6] += 50.0
    fitted = SparseRegressor(3, loss="huber", random_state=0, **FEW, patience=10).fit(Z, wild)
    assert np.allclose(fitted.coef_[[1, 4, 6]], [2.0, -1.0, 0.5], atol=0.1)
    assert 0.03 < fitted.delta_ < 0.5


@pytest.mark.parametrize("tolerance", [0.02, 0.1])
def test_a_metric_that_only_jumps_is_lowered_where_columns_nearly_agree(tolerance):
    rng = np.random.default_rng(1)
    smooth = np.cumsum(rng.standard_normal((80, 6)), axis=1) + 10 * rng.standard_normal((80, 1))
    y = smooth @ rng.standard_normal(6) + rng.standard_t(2, 80)
    outside = lambda y, p: float(np.mean(np.abs(y - p) > tolerance * y.std()))
    squares = SparseRegressor(4, random_state=0).fit(smooth, y)
    jumps = SparseRegressor(4, loss=outside, random_state=0).fit(smooth, y)
    assert jumps.loss_ < outside(y, squares.predict(smooth)) - 0.02


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "squared", "max_calls": 20},
        {"loss": "absolute", "max_calls": 20},
        {"loss": share_outside, "max_calls": 100},
        {"loss": within, "max_calls": 100},
        {"loss": "neg_max_error", "max_calls": 100},  # a scorer that takes no weights
    ],
    ids=named,
)
def test_a_weight_of_2_is_a_row_that_occurs_twice_bit_for_bit(settings):
    times = np.arange(T.size) % 3
    weighted = SparseRegressor(2, random_state=0, **settings).fit(Z, T, sample_weight=times)
    repeated = SparseRegressor(2, random_state=0, **settings).fit(np.repeat(Z, times, axis=0), np.repeat(T, times))
    assert np.array_equal(weighted.coef_, repeated.coef_)
    assert weighted.intercept_ == repeated.intercept_
    assert weighted.loss_ == repeated.loss_


def test_a_metric_of_all_rows_works_where_rows_occur_twice():
    twice = np.vstack([Z, Z[:5]])
    fitted = SparseRegressor(2, loss=share_outside, max_calls=100, random_state=0).fit(twice, np.append(T, T[:5]))
    assert fitted.loss_ == pytest.approx(share_outside(np.append(T, T[:5]), fitted.predict(twice)))


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_tables_give_what_dense_ones_give(kind):
    holes = np.where(np.random.default_rng(3).uniform(size=Z.shape) < 0.6, 0.0, Z)
    dense = SparseRegressor(3, random_state=0).fit(holes, T)
    fitted = SparseRegressor(3, random_state=0).fit(kind(holes), T)
    assert np.array_equal(fitted.coef_ != 0, dense.coef_ != 0)
    assert np.allclose(fitted.coef_, dense.coef_)
    assert np.allclose(fitted.predict(kind(holes)), dense.predict(holes))
    labels = (np.median(T) < T).astype(int)
    classes = SparseClassifier(2, random_state=0, max_calls=30).fit(kind(holes), labels)
    assert classes.loss_ == pytest.approx(
        SparseClassifier(2, random_state=0, max_calls=30).fit(holes, labels).loss_, rel=1e-3
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_give_names_and_the_same_bits(frame):
    names = [f"sensor {j}" for j in range(8)]
    table = frame({name: Z[:, j] for j, name in enumerate(names)})
    fitted, plain = (SparseRegressor(3, random_state=0).fit(given, T) for given in (table, Z))
    assert fitted.feature_names_in_.tolist() == names
    assert np.array_equal(fitted.coef_, plain.coef_)
    assert np.array_equal(fitted.predict(table), plain.predict(Z))
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame({f"other {j}": Z[:, j] for j in range(8)}))


def test_threads_change_no_bit():
    for settings in ({"loss": "absolute", "max_calls": 20}, {"loss": share_outside, "max_calls": 40}):
        one, two = (SparseRegressor(3, n_jobs=jobs, random_state=0, **settings).fit(Z, T) for jobs in (1, 2))
        assert np.array_equal(one.coef_, two.coef_)
        assert one.n_calls_ == two.n_calls_


def test_pipelines_grids_clones_and_cross_validation_work():
    pipe = make_pipeline(StandardScaler(), SparseRegressor(random_state=0, max_calls=20))
    grid = GridSearchCV(pipe, {"sparseregressor__k": [1, 3]}, cv=3).fit(Z, T)
    assert grid.best_params_ == {"sparseregressor__k": 3}
    assert np.array_equal(clone(pipe.set_params(sparseregressor__k=3)).fit(Z, T).predict(Z), grid.predict(Z))
    labels = (np.median(T) < T).astype(int)
    model = SparseClassifier(3, loss="auc", max_calls=30, patience=5, random_state=0)
    assert cross_val_score(model, Z, labels, cv=3, scoring="roc_auc").min() > 0.9


def test_k_auto_takes_the_smallest_k_within_one_standard_error():
    fitted = SparseRegressor("auto", ks=[1, 2, 3, 5, 8], random_state=0, max_calls=40).fit(Z, T)
    assert fitted.k_ == 3
    assert fitted.ks_.tolist() == [1, 2, 3, 5, 8]
    lowest = fitted.held_out_.argmin()
    assert fitted.held_out_[2] <= fitted.held_out_[lowest] + fitted.held_out_error_[lowest]
    labels = (Z[:, 4] + 0.3 * RNG.standard_normal(60) > 0).astype(int)
    model = SparseClassifier("auto", loss="balanced", ks=[1, 2, 4], cv=3, max_calls=20, random_state=0)
    assert model.fit(Z, labels).k_ == 1
    assert np.flatnonzero(model.coef_).tolist() == [4]


def scores(model):
    return model.decision_function(TUMOURS)


COST = np.array([[0.0, 5.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("settings", "measured"),
    [
        ({"loss": "auc"}, lambda m: 1 - roc_auc_score(BENIGN, scores(m))),
        ({"loss": "roc_auc"}, lambda m: 1 - roc_auc_score(BENIGN, scores(m))),
        ({"loss": "f-beta", "beta": 2.0}, lambda m: 1 - fbeta_score(BENIGN, m.predict(TUMOURS), beta=2.0)),
        ({"loss": "balanced"}, lambda m: 1 - balanced_accuracy_score(BENIGN, m.predict(TUMOURS))),
        ({"loss": COST}, lambda m: COST[BENIGN, m.predict(TUMOURS)].mean()),
        ({"loss": "average_precision"}, None),
        ({"loss": lambda y, s: np.mean((s > 0) != y)}, lambda m: np.mean(m.predict(TUMOURS) != BENIGN)),
        ({"loss": lambda y, s: (s > 0) != y}, lambda m: np.mean(m.predict(TUMOURS) != BENIGN)),
        ({"loss": "log"}, lambda m: -np.mean(m.predict_log_proba(TUMOURS)[np.arange(200), BENIGN])),
        ({"loss": "hinge"}, lambda m: np.mean(np.maximum(0, 1 - (2 * BENIGN - 1) * scores(m)))),
    ],
    ids=named,
)
def test_a_classifier_lowers_the_metric_itself(settings, measured):
    fitted = SparseClassifier(2, max_calls=40, patience=10, random_state=0, **settings).fit(TUMOURS, BENIGN)
    assert (fitted.coef_ != 0).sum() <= 2
    assert fitted.coef_.shape == (1, 10)
    if measured is not None:
        assert fitted.loss_ == pytest.approx(measured(fitted), abs=1e-9)
    assert fitted.score(TUMOURS, BENIGN) > 0.8


@pytest.mark.parametrize("loss", ["auc", "balanced"])
def test_a_warm_start_ends_neither_below_its_start_nor_below_a_cold_one(loss):
    rng = np.random.default_rng(5)
    model = SparseClassifier(2, loss=loss, max_calls=30, patience=5, random_state=0)
    cold = clone(model).fit(TUMOURS, BENIGN)
    for S in ([0, 5], [3, 7]) if loss == "auc" else ([1, 9],):
        start = np.zeros(10)
        start[S] = rng.standard_normal(2) / TUMOURS[:, S].std(axis=0)
        warm = clone(model).fit(TUMOURS, BENIGN, coef_init=start)
        assert warm.loss_ <= cold.loss_
        if loss == "auc":
            assert warm.loss_ <= 1 - roc_auc_score(BENIGN, TUMOURS @ start) + 1e-12
    again = clone(model).set_params(warm_start=True).fit(TUMOURS, BENIGN)
    first = again.loss_
    assert again.fit(TUMOURS, BENIGN).loss_ <= first


def test_classes_may_be_words_and_more_than_two_go_through_one_versus_rest():
    words = np.where(BENIGN == 1, "benign", "malignant")
    fitted = SparseClassifier(2, max_calls=20, random_state=0).fit(TUMOURS, words)
    assert fitted.classes_.tolist() == ["benign", "malignant"]
    assert np.mean(fitted.predict(TUMOURS) == words) > 0.85
    three = np.digitize(Z[:, 1], [-0.4, 0.4])
    many = OneVsRestClassifier(SparseClassifier(2, max_calls=20, random_state=0)).fit(Z, three)
    assert all((one.coef_ != 0).sum() <= 2 for one in many.estimators_)


class Counted:
    """A loss of rows that counts its calls, and ends the process's patience at one of them."""

    calls, last = 0, np.inf

    def __call__(self, y, prediction):
        Counted.calls += 1
        if Counted.calls > Counted.last:
            raise KeyboardInterrupt
        return np.abs(y - prediction)


def test_a_fit_with_a_folder_goes_on_where_it_was_stopped(tmp_path):
    def fit():
        Counted.calls = 0
        return SparseRegressor(3, loss="neg_median_absolute_error", max_calls=200, run=tmp_path).fit(Z, T)

    one, folders = fit(), sorted(path.name for path in tmp_path.iterdir())
    two = fit()
    assert np.array_equal(one.coef_, two.coef_)
    assert sorted(path.name for path in tmp_path.iterdir()) == folders
    SparseRegressor(3, loss="neg_median_absolute_error", max_calls=200, run=tmp_path).fit(Z[:50], T[:50])
    assert len(list(tmp_path.iterdir())) == 2  # other data have another folder
    start = np.ones(8)
    SparseRegressor(3, loss="neg_median_absolute_error", max_calls=200, run=tmp_path).fit(Z, T, coef_init=start)
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(ValueError, match="has to be defined in a module, and not be a lambda"):
        SparseRegressor(3, loss=lambda y, p: np.abs(y - p), run=tmp_path).fit(Z, T)


def test_ctrl_c_in_a_loss_comes_out_and_the_fit_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(Counted, "calls", 0)
    monkeypatch.setattr(Counted, "last", 15)
    model = SparseRegressor(3, loss=Counted(), run=tmp_path, max_calls=25)
    with pytest.raises(KeyboardInterrupt):
        model.fit(Z, T)
    monkeypatch.setattr(Counted, "last", np.inf)
    model.fit(Z, T)
    alone = SparseRegressor(3, loss=absolute, random_state=0, max_calls=25).fit(Z, T)
    assert model.loss_ == pytest.approx(alone.loss_, rel=1e-3)


LABELS = (T > 3).astype(int)


@pytest.mark.parametrize(
    ("model", "table", "targets", "options", "message"),
    [
        (SparseRegressor(0), Z, T, {}, "k must be at least 1"),
        (SparseRegressor("all"), Z, T, {}, r"k must be a whole number .* or 'auto', not 'all'"),
        (SparseRegressor(3, loss="l1"), Z, T, {}, "loss must be one of 'squared'"),
        (SparseRegressor(3, loss=None), Z, T, {}, "loss must be a name, a loss or a function"),
        (SparseRegressor(3, loss="quantile", quantile=1.5), Z, T, {}, "quantile must be between 0 and 1"),
        (SparseRegressor(3, loss="mape"), Z, T * 0, {}, "divides by y, which is 0 in row 0"),
        (SparseRegressor(3, loss="huber", delta=-1.0), Z, T, {}, "delta must be"),
        (SparseRegressor(3, loss=lambda y, p: "bad"), Z, T, {}, "must return the loss of each row"),
        (SparseRegressor(3, loss=lambda y, p: np.ones(3)), Z, T, {}, "must return the loss of each row"),
        (SparseRegressor(3, max_calls=0), Z, T, {}, "max_calls must be at least 1"),
        (SparseRegressor(3, fit_intercept="yes"), Z, T, {}, "fit_intercept must be True or False"),
        (SparseRegressor(3), Z, T, {"sample_weight": np.ones(3)}, "one number per row"),
        (SparseRegressor(3), Z, T, {"sample_weight": -np.ones(60)}, "must not be negative"),
        (SparseRegressor(3), Z, T, {"sample_weight": np.zeros(60)}, "zero in all rows"),
        (SparseRegressor(3), Z, T, {"coef_init": np.ones(3)}, "coef_init has 3 coefficients, but X has 8"),
        (SparseRegressor(3), Z, T, {"coef_init": np.ones(8), "intercept_init": "no"}, "one finite number|could not"),
        (SparseRegressor(3, loss=share_outside), Z, T, {"sample_weight": np.linspace(0.1, 1, 60)}, "whole numbers"),
        (SparseRegressor("auto", cv=1), Z, T, {}, "cv must be at least 2"),
        (SparseClassifier(3, loss="accurate"), Z, LABELS, {}, "loss must be one of 'log'"),
        (SparseClassifier(3, loss=[[0, 1]]), Z, LABELS, {}, r"costs of shape \(2, 2\)"),
        (SparseClassifier(3, loss="f-beta", beta=0), Z, LABELS, {}, "beta must be"),
        (SparseClassifier(3), Z, np.arange(60) % 3, {}, "has 3 classes: take OneVsRestClassifier"),
        (SparseClassifier(3), Z, LABELS * 0, {}, "one class only"),
        (SparseClassifier(3), Z, LABELS, {"sample_weight": LABELS}, "one class only"),
    ],
)  # fmt: skip
def test_bad_input_gets_a_sentence(model, table, targets, options, message):
    with pytest.raises(ValueError, match=message):
        model.fit(table, targets, **options)


def test_probabilities_are_refused_where_the_loss_has_none():
    model = SparseClassifier(2, loss="auc", max_calls=20, random_state=0).fit(TUMOURS, BENIGN)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(TUMOURS)
