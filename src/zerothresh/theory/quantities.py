"""What the formulas of the theory take and give: every argument is checked, and so is every result."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array

F = TypeVar("F", bound=Callable[..., Any])

FROM_ZERO = frozenset({"t", "queries", "seed"})  # whole numbers that may be 0; the others are at least 1
POSITIVE = frozenset({"eta", "alpha", "beta", "kappa", "rho_minus", "rho_plus", "tau", "omega", "eps", "p"})
GAPS = frozenset({"gap", "past_gap", "anchor_gap", "previous_gap"})
SIGNED = GAPS | {"low", "high"}  # numbers of either sign; all others are at least 0
LARGEST = 1e140  # entry of an array: the square of it, summed over many entries, is still a floating-point number


def formula(function: F) -> F:
    """Make a function a formula: its keyword arguments are checked by their annotations and names.

    A whole number is annotated by ``int`` and a real one by ``float``; what is annotated otherwise, the function checks
    itself. Numbers for which the formula overflows or divides by 0 are refused with ``ValueError``, as those are whose
    result is no number.
    """
    parameters = inspect.signature(function).parameters
    annotations = {name: str(parameter.annotation) for name, parameter in parameters.items()}

    @functools.wraps(function)
    def checked(*arguments: Any, **named: Any) -> Any:
        given = {name: _checked(name, value, annotations.get(name, "")) for name, value in named.items()}
        try:
            with np.errstate(all="ignore"):
                result = function(*arguments, **given)
        except ArithmeticError as error:
            raise ValueError(_out_of_range(function.__name__, given)) from error
        if not _is_sound(result):
            raise ValueError(_out_of_range(function.__name__, given))
        return result

    return checked  # type: ignore[return-value]


def _checked(name: str, value: Any, annotation: str) -> Any:
    """Return an argument as a plain number."""
    if annotation == "int | None" and value is None:
        return None
    if annotation.startswith("int"):
        return check.count(name, value, low=0 if name in FROM_ZERO else 1)
    if annotation == "AtOptimum" and type(value).__name__ != annotation:
        raise ValueError(f"{name} must be a theory.AtOptimum(F_inf=..., f_inf_square=...), not {check.shown(value)}")
    if annotation != "float":
        return value
    if name in POSITIVE:
        return check.positive(name, value)
    return check.finite(name, value) if name in SIGNED else check.not_negative(name, value)


def real_array(name: str, value: object) -> Array:
    """Check that an argument is an array of finite real numbers, and return it in float64."""
    array = check.array(value)
    if array is None or array.dtype.kind not in "fiu":
        raise ValueError(f"{name} must be an array of real numbers, not {check.shown(value)}")
    numbers = array.astype(np.float64)
    if not (np.abs(numbers) < LARGEST).all():
        raise ValueError(f"{name} must hold finite numbers of a size below {LARGEST:g}, and it does not")
    return numbers


def _is_sound(result: Any) -> bool:
    """Whether the numbers of a result are finite; an interval may be infinite, but its ends are numbers."""
    if isinstance(result, tuple):
        return all(_is_sound(part) for part in result)
    if isinstance(result, np.ndarray):
        return bool(np.isfinite(result).all())
    if hasattr(result, "low") and hasattr(result, "high"):
        return not (math.isnan(result.low) or math.isnan(result.high))
    return math.isfinite(result) if isinstance(result, float) else True


def _out_of_range(name: str, given: dict[str, Any]) -> str:
    """Say that a formula has no value that is a floating-point number."""
    shown = ", ".join(
        f"{key} = {check.shown(value)}" for key, value in given.items() if isinstance(value, (int, float))
    )
    return f"the formula {name} leaves the floating-point numbers at {shown}: take numbers of a moderate size"
