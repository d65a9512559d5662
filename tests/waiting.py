"""Waiting for another process or thread, on a machine of any speed."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 1800.0  # seconds; only something that hangs takes so long, however busy the machine is


def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds; fail if it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
