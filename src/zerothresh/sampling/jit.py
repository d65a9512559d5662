"""The decorator `kernel`, which compiles a function by numba with the settings that all kernels share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a numeric loop, and cache the machine code on disk for later processes.

    The settings are ``error_model="numpy"``, because Python's check for a zero divisor prevents vectorisation; no
    ``fastmath``, because a reordered sum would make the bits depend on the processor; and ``nogil``, so that an
    objective on another thread can run at the same time.

    Arguments
    ---------
    function: a function of numbers and NumPy arrays that numba can compile in nopython mode.

    Returns
    -------
    The compiled function, which is called like the original.
    """
    options = {"error_model": "numpy", "nogil": True}
    try:
        return numba.njit(cache=True, **options)(function)  # type: ignore[no-any-return]
    except RuntimeError:  # there is no folder to cache machine code in: compile again in each process
        return numba.njit(**options)(function)  # type: ignore[no-any-return]
