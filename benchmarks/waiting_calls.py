"""Calls that only wait, in a module that imports little: each worker process imports it."""

from __future__ import annotations

import asyncio
import time

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Waiting:
    """A quadratic function whose calls wait; it can be sent to another process."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, x: Array) -> float:
        time.sleep(self.seconds)
        return float(((x - 1) ** 2).sum())

    async def awaited(self, x: Array) -> float:
        """Wait without a thread."""
        await asyncio.sleep(self.seconds)
        return float(((x - 1) ** 2).sum())
