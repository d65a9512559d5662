"""Whatever the arguments are, a call ends in a valid result, or in a sentence before the first call; nothing else."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from fuzzing import (
    QUICK,
    THOROUGH,
    Call,
    box_of,
    calls,
    check_refusal,
    check_result,
    no_foreign_warnings,
)
from hypothesis import given
from hypothesis import strategies as st

import zerothresh as zt

MEMORY = Path("/dev/shm")


@pytest.fixture(autouse=True, scope="module")
def _same_every_time():
    """A run without a seed draws one: let it be the same in every run of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zerothresh.sampling.philox.secrets.randbits", lambda bits: 12345)
        yield


def minimized(call: Call) -> None:
    """Call `minimize`, and check whatever comes of it."""
    objective = call.objective
    bounds_are_known = "bounds" not in call.spoilt
    with no_foreign_warnings():
        try:
            if bounds_are_known:
                note_bounds(call)
            result = zt.minimize(objective.form(), call.x0, call.k, **call.named)
        except Exception as error:
            check_refusal(error)
            if objective.calls:
                pytest.fail(f"refused after {objective.calls} calls: {error}")
            return
    check_result(call, result)


def note_bounds(call: Call) -> None:
    """Let the objective watch that its points keep the bounds."""
    with suppress(TypeError, ValueError):  # they are junk, and will be refused
        call.objective.low, call.objective.high = box_of(call.named.get("bounds"))


@given(calls())
@QUICK
def test_minimize_gives_a_valid_result_or_a_sentence(call):
    minimized(call)


@pytest.mark.slow
@given(calls())
@THOROUGH
def test_minimize_gives_a_valid_result_or_a_sentence_20_000_times(call):
    minimized(call)


Ways = list[int]  # how each batch in turn is told: see `tell_all`
ways = st.lists(st.integers(0, 5), min_size=1, max_size=12)


def asked_and_told(call: Call, told: Ways, kept: bool) -> None:
    """Ask and tell, in any order and in parts, with and without a run folder, and check whatever comes of it."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder, no_foreign_warnings():
        if kept:
            call.named["run"] = Path(folder) / "run"
            call.named.setdefault("fsync", "never")
        try:
            optimizer = zt.Optimizer(call.x0, call.k, **call.named)
        except Exception as error:
            check_refusal(error)
            return
        note_bounds(call)
        try:
            optimizer = tell_all(call, optimizer, told, kept)
            check_result(call, optimizer.result())
        finally:
            optimizer.close()


MOST_ASKED = 400  # calls after which a run is stopped: some budgets are without end


def tell_all(call: Call, optimizer: zt.Optimizer, told: Ways, kept: bool) -> zt.Optimizer:
    """Tell everything that is asked for; the run folder may be closed and opened again."""
    ways = cycle(told)
    objective = call.objective
    worst = call.named.get("on_nan") == "worst"
    while not optimizer.done:
        batch = optimizer.ask()
        assert len(batch) >= 1
        how = next(ways)
        part = batch[list(range(len(batch)))[::-2]] if how == 1 else batch[: 1 + len(batch) // 2] if how == 2 else batch
        values = objective.evaluate(part.points, part.components)
        if not worst:
            values = np.nan_to_num(np.asarray(values, float)).tolist()
        if how == 3 and objective.calls < 100:
            refused_tells(optimizer, part, values)
        optimizer.tell(part, values)
        if kept and how == 4:
            optimizer.close()
            optimizer = zt.Optimizer(call.x0, call.k, **call.named)
        if objective.calls > MOST_ASKED:
            optimizer.stop("that is enough for a test")
    return optimizer


def refused_tells(optimizer: zt.Optimizer, batch: object, values: list[object]) -> None:
    """Tell nonsense, which changes nothing."""
    before = optimizer.nfev
    for wrong in (None, values[:-1], [*values, 1.0], [[1], [2, 3]], ["a"] * len(values), 1j, object()):
        with pytest.raises(ValueError, match="nothing was changed") as refusal:
            optimizer.tell(batch, wrong)
        check_refusal(refusal.value)
    with pytest.raises(ValueError, match="tell takes the batch") as refusal:
        optimizer.tell(values, batch)
    check_refusal(refusal.value)
    assert optimizer.nfev == before


@given(calls(evaluated=False), ways, st.booleans())
@QUICK
def test_ask_and_tell_give_a_valid_result_or_a_sentence(call, told, kept):
    asked_and_told(call, told, kept)


@pytest.mark.slow
@given(calls(evaluated=False), ways, st.booleans())
@THOROUGH
def test_ask_and_tell_give_a_valid_result_or_a_sentence_20_000_times(call, told, kept):
    asked_and_told(call, told, kept)
