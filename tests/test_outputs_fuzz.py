"""One call returns everything: whatever is asked for and returned, the count is exact, and nothing is raised later."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from fuzzing import QUICK, check_refusal
from hypothesis import strategies as st
from zoo import instance

import zerothresh as zt

MEMORY = Path("/dev/shm")
D = 6
A = np.random.default_rng(2).normal(size=(40, D))
LOSSES = {
    None: np.square,
    "huber": zt.losses.Huber().value,
    "cauchy": zt.losses.Cauchy().value,
    "quantile": zt.losses.Quantile().value,
}
ODD = {
    "nan": lambda r: np.where(np.arange(r.size) == 0, np.nan, r),
    "all nan": lambda r: r * np.nan,
    "inf": lambda r: np.where(np.arange(r.size) == 0, np.inf, r),
    "huge": lambda r: r * 1e200,
    "long": lambda r: np.append(r, 1.0),
    "scalar": lambda r: 1.0,
    "none": lambda r: None,
    "raises": lambda r: 1 // 0,
}


class Odd:
    """Residuals of a linear model; at some calls something odd is returned instead."""

    fingerprint = "odd"

    def __init__(self, m, odd):
        self.m, self.odd, self.calls = m, odd, 0

    def honest(self, x):
        return (A[: self.m] * x).sum(axis=1) - A[: self.m, 1] * 2

    def __call__(self, x):
        self.calls += 1
        r = self.honest(x)
        return ODD[self.odd[self.calls]](r) if self.calls in self.odd else r


settings = st.fixed_dictionaries(
    {
        "method": st.sampled_from(sorted(zt.methods.available())),
        "budget": st.integers(1, 120),
        "on_nan": st.sampled_from(["stop", "worst", "retry", "mask"]),
        "loss": st.sampled_from(list(LOSSES)),
        "workers": st.sampled_from([1, 1, 3]),
        "estimator": st.builds(
            zt.Estimator,
            q=st.integers(1, 4),
            difference=st.sampled_from(["forward", "central"]),
            common=st.booleans(),
            shared=st.booleans(),
        ),
        "bounds": st.sampled_from([None, (-1.0, 1.0)]),
        "seed": st.integers(0, 5),
    }
)
odd = st.dictionaries(st.integers(1, 60), st.sampled_from(list(ODD)), max_size=2)


def counted(given, m, k, odd, kept):
    """Make a run, and check whatever comes of it."""
    fun = Odd(m, odd)
    named = {**given, "method": instance(given["method"], eta=0.01), "retries": 1, "backoff": 0.0}
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if kept:
            named["run"] = f"{folder}/run"
        try:
            found = zt.minimize(fun, D, k, outputs="residuals", **named)
        except ValueError as error:
            check_refusal(error)
            assert fun.calls == 0
            return
        assert found.nfev == fun.calls <= given["budget"]
        assert np.count_nonzero(found.x) <= k or not getattr(named["method"], "sparse", True)
        assert given["bounds"] is None or np.abs(found.x).max() <= 1
        assert found.status in (
            (zt.Status.BUDGET, zt.Status.CONVERGED, zt.Status.DIVERGED)
            if not odd
            else (zt.Status.BUDGET, zt.Status.CONVERGED, zt.Status.DIVERGED, zt.Status.BAD_VALUE, zt.Status.FAILED)
        )
        if found.residuals is not None and not odd:
            assert np.allclose(found.residuals, fun.honest(found.x))
        if not odd and np.isfinite(found.fun):
            assert found.fun == pytest.approx(LOSSES[given["loss"]](fun.honest(found.x)).mean(), rel=1e-6, abs=1e-12)
        if kept and found.status.success:
            again = zt.minimize(fun, D, k, outputs="residuals", **named)
            assert again.nfev == found.nfev == fun.calls
            assert np.array_equal(again.x, found.x)


cases = (settings, st.integers(1, 40), st.integers(1, 3), odd, st.booleans())


@hypothesis.given(*cases)
@hypothesis.settings(QUICK, max_examples=50)
def test_the_count_is_exact_and_everything_ends_in_a_result(given, m, k, odd, kept):
    counted(given, m, k, odd, kept)


@pytest.mark.slow
@hypothesis.given(*cases)
@hypothesis.settings(QUICK, max_examples=2000)
def test_the_count_is_exact_and_everything_ends_in_a_result_2_000_times(given, m, k, odd, kept):
    counted(given, m, k, odd, kept)
