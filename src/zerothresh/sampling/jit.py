"""Compiled kernels: numba with the settings that every kernel of the project shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a fixed-order numeric loop, and keep the machine code between sessions.

    ``error_model="numpy"`` because Python's check for a zero divisor blocks vectorisation; no
    ``fastmath``, because a reordered sum would make the bits depend on the processor; ``nogil``, so
    that an objective on another thread can go on.
    """
    options = {"error_model": "numpy", "nogil": True}
    try:
        return numba.njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # no folder to keep the machine code in: compile anew in each process
        return numba.njit(**options)(function)  # type: ignore[no-any-return]
