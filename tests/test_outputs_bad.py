"""One call returns everything: every form of bad output gets a sentence, and missing outputs can be left out."""

from __future__ import annotations

import re

import numpy as np
import pytest
from test_outputs import DATA, A, Counted, D, F, K, M, residuals, same, solve

import zerothresh as zt

FEW = {"budget": 60, "method": zt.FGZOHT(eta=0.02), "estimator": zt.Estimator(q=5)}


def after(calls, bad):
    """The residuals, and from a number of calls on something bad."""
    made = []

    def fun(x):
        made.append(x)
        return residuals(x) if len(made) <= calls else bad(x)

    fun.made = made
    return fun


def series(labels):
    pandas = pytest.importorskip("pandas")
    return lambda x: pandas.Series(residuals(x), index=labels)


BAD = {
    "another length": (lambda x: residuals(x)[:-1], "returned 29 outputs per call, where 30 were expected"),
    "a longer one": (lambda x: np.append(residuals(x), 0.0), "returned 31 outputs per call, where 30 were expected"),
    "a scalar": (lambda x: 1.5, r"returned the number 1\.5; it must return a vector of outputs \(leave outputs out"),
    "a scalar of NumPy": (lambda x: np.float64(1.5), "returned the number"),
    "None": (lambda x: None, r"returned None; it must return a vector of outputs \(is a `return` missing\?\)"),
    "complex": (lambda x: residuals(x) + 1j, r"\(complex128\); it must return a vector of outputs, all of them real"),
    "strings": (lambda x: ["a"] * M, "all of them real numbers"),
    "a ragged list": (lambda x: [[1.0], [2.0, 3.0]], "all of them real numbers"),
    "a dict": (lambda x: {"r": residuals(x)}, "all of them real numbers"),
    "two dimensions": (lambda x: residuals(x)[None], r"shape \(1, 30\); .* \(pass vectorized=True"),
    "nothing": (lambda x: np.empty(0), r"shape \(0,\)"),
    "NaN": (lambda x: np.where(np.arange(M) == 4, np.nan, residuals(x)), r"nan as output 4; .* \(on_nan='mask' takes"),
    "an infinity": (
        lambda x: np.where(np.arange(M) == 7, -np.inf, residuals(x)),
        "-inf as output 7; it must return finite",
    ),
    "an infinite loss": (
        lambda x: np.where(np.arange(M) == 2, 1e200, residuals(x)),
        r"1e\+200 as output 2, whose loss",
    ),
}


LENGTHS = ("another length", "a longer one")  # the first call tells the length


@pytest.mark.parametrize(("kind", "first"), [(k, f) for k in BAD for f in (0, 1, 9) if f or k not in LENGTHS])
def test_a_bad_output_ends_the_run_with_a_sentence(kind, first):
    bad, sentence = BAD[kind]
    fun = after(first, bad)
    found = solve(fun, **FEW)
    assert found.status is zt.Status.BAD_VALUE
    assert not found.success
    assert re.search(sentence, found.message), found.message
    assert f"(call {first + 1})" in found.message
    assert found.nfev == len(fun.made) == first + 1
    assert np.array_equal(found.failure.point, fun.made[-1])
    assert (found.residuals is None) == (first == 0)


def test_the_first_call_may_be_checked_by_n():
    found = solve(n=M + 1, **FEW)
    assert found.status is zt.Status.BAD_VALUE
    assert "returned 30 outputs per call, where 31 were expected" in found.message
    assert solve(n=M, **FEW).success


def test_a_series_with_another_index_than_the_first_is_refused():
    names = [f"s{i}" for i in range(M)]
    found = solve(after(3, series(names[::-1])), **FEW)
    assert found.success  # the first Series comes after three arrays: its index is the first one
    first, calls = series(names), []

    def fun(x):
        calls.append(x)
        return first(x) if len(calls) < 4 else series(names[::-1])(x)

    found = solve(fun, **FEW)
    assert found.status is zt.Status.BAD_VALUE
    assert "which are not those of the first call" in found.message
    assert found.nfev == 4


def test_workers_that_return_series_at_once_must_agree(tmp_path):
    names = [f"s{i}" for i in range(M)]
    pandas = pytest.importorskip("pandas")

    def fun(x):  # the first call, which is alone, has no index
        return residuals(x) if not x.any() else pandas.Series(residuals(x), index=names[:: 1 if x[0] > 0 else -1])

    found = solve(fun, workers=4, **FEW)
    assert found.status is zt.Status.BAD_VALUE
    assert "which are not those of the first call" in found.message


def test_a_vectorised_function_is_told_the_shape():
    found = solve(lambda X: X @ A.T[:, :5], vectorized=True, **FEW)
    assert found.success
    for bad in (lambda X: residuals(X[0]), lambda X: np.zeros((len(X) + 1, M)), lambda X: 0.0):
        found = solve(bad, vectorized=True, **FEW)
        assert found.status is zt.Status.BAD_VALUE
        assert "it must return an array of shape (1, m), the outputs of one call per row" in found.message


@pytest.mark.parametrize("retries", [0, 3])
@pytest.mark.parametrize("on_nan", ["stop", "retry"])
def test_a_loss_that_fails_ends_the_run_at_once_with_a_sentence_and_its_traceback(retries, on_nan):
    def loss(r):
        raise RuntimeError("no such loss")

    again = {"retries": retries, "backoff": 0.0, "on_nan": on_nan if retries else "stop"}
    found = solve(loss=loss, **FEW, **again)
    assert found.status is zt.Status.BAD_VALUE
    assert "the loss failed on the outputs of a call: RuntimeError: no such loss" in found.message
    assert found.nfev == 1
    assert found.failure is not None
    found = solve(loss=lambda r: r.sum(), **FEW, **again)
    assert found.status is zt.Status.BAD_VALUE
    assert "one real number per entry" in found.message
    assert found.nfev == 1


def test_a_batch_beyond_the_outputs_is_named_after_the_first_call():
    found = solve(**{**FEW, "method": zt.SZOHT(eta=0.01, batch=M + 1)})
    assert found.status is zt.Status.BAD_VALUE
    assert "with the 30 outputs that the function returns: cannot draw 31 different components" in found.message
    assert found.nfev == 1
    with pytest.raises(ValueError, match="cannot draw 31"):
        solve(n=M, **{**FEW, "method": zt.SZOHT(eta=0.01, batch=M + 1)})


def test_a_bad_output_is_asked_for_again_with_on_nan_retry():
    calls = []

    def fun(x):
        calls.append(x)
        return np.full(M, np.nan) if len(calls) in (1, 8) else residuals(x)

    found = solve(fun, **{**FEW, "budget": 62}, on_nan="retry", retries=1, backoff=0.0)
    alone = solve(**FEW)
    assert np.array_equal(found.x, alone.x)
    assert found.nfev == alone.nfev + 2


def test_the_worst_outputs_take_the_place_of_bad_ones():
    def fun(x):
        r = residuals(x)
        return r if x[0] <= 0 else np.where(np.arange(M) == 3, np.inf, r)

    for method in (zt.FGZOHT(eta=0.02), "auto"):
        found = solve(fun, on_nan="worst", budget=200, method=method)
        assert found.status.success
        assert found.x[0] <= 0
        assert found.fun == pytest.approx(F(found.x))
    found = solve(lambda x: np.full(M, np.inf), on_nan="worst", **FEW)
    assert found.status is zt.Status.BAD_VALUE
    assert "the outputs at the start are not all finite" in found.message


# Missing outputs.


def present(x, missing):
    r = residuals(x)
    return r[~missing]


def test_a_missing_output_is_left_out_of_the_mean():
    missing = np.arange(M) % 5 == 2
    fun = Counted(lambda x: np.where(missing, np.nan, residuals(x)))
    for method in ("auto", zt.FGZOHT(eta=0.02), zt.SAGASZHT(eta=0.005)):
        fun.points.clear()
        found = solve(fun, on_nan="mask", budget=200, method=method)
        assert found.status.success
        assert found.fun == pytest.approx(np.mean(present(found.x, missing) ** 2), rel=1e-9, abs=1e-15)
        assert np.array_equal(np.isnan(found.residuals), missing)
        assert found.nfev == len(fun.points)
    found = solve(fun, on_nan="mask", budget=300)
    assert set(found.support) == {2, 5, 9}


def test_outputs_that_are_never_there_change_nothing_for_the_mean_gradient():
    """A missing output counts as the mean of the others, so that a step of all components is one without it."""
    missing = np.arange(M) >= 20
    masked = solve(lambda x: np.where(missing, np.nan, residuals(x)), on_nan="mask", **FEW)
    short = solve(lambda x: residuals(x)[:20], **FEW)
    assert np.allclose(masked.x, short.x, rtol=1e-9)
    assert masked.fun == pytest.approx(short.fun, rel=1e-9)


def test_F_where_different_outputs_are_missing_is_the_mean_of_those_that_are_there():
    rng = np.random.default_rng(5)
    seen = {}

    def fun(x):
        r = np.where(rng.random(M) < 0.2, np.nan, residuals(x))
        seen[x.tobytes()] = np.nanmean(r**2)
        return r

    found = solve(fun, on_nan="mask", budget=100, method="htp")
    assert found.status.success
    assert found.fun == pytest.approx(seen[found.x.tobytes()], rel=1e-12)


def test_a_call_without_any_output_is_a_bad_value():
    found = solve(after(4, lambda x: np.full(M, np.nan)), on_nan="mask", **FEW)
    assert found.status is zt.Status.BAD_VALUE
    assert "no output that is there: all 30 are NaN" in found.message
    found = solve(after(4, lambda x: np.full(M, np.inf)), on_nan="mask", **FEW)
    assert found.status is zt.Status.BAD_VALUE
    assert "inf as output 0" in found.message


def test_a_mask_that_is_not_needed_changes_nothing():
    for method in ("auto", zt.FGZOHT(eta=0.02)):
        assert same(solve(on_nan="mask", method=method), solve(method=method))


def test_masked_arrays_have_missing_outputs():
    missing = np.arange(M) == 11
    found = solve(lambda x: np.ma.array(residuals(x), mask=missing), on_nan="mask", **FEW)
    assert np.array_equal(np.isnan(found.residuals), missing)


def test_tell_takes_missing_outputs_too():
    opt = zt.Optimizer(D, K, outputs="residuals", budget=40, method=zt.FGZOHT(eta=0.02), seed=3, on_nan="mask")
    while not opt.done:
        batch = opt.ask()
        table = batch.points @ A.T - DATA
        table[:, 3] = np.nan
        opt.tell(batch, table)
    assert np.isnan(opt.result().residuals[3])
