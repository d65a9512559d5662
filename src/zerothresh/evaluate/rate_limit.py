"""A limit on how many calls may begin per second."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from zerothresh.basics import check

LEAST = 1e-6  # calls per second; one in eleven days


class RateLimit:
    """Lets calls begin at least 1 / per_second seconds after one another.

    Time that passed without a call is not made up for later, so that no interval of T seconds ever has more than
    1 + T per_second beginnings.

    Arguments
    ---------
    per_second: float, the largest number of calls per second; it may be below 1.
    time_now: function without arguments, default ``time.monotonic``: the clock, in seconds.
    """

    def __init__(self, per_second: float, time_now: Callable[[], float] = time.monotonic) -> None:
        rate = check.positive("per_second", per_second, what=" (calls that begin per second), or None")
        self.gap = 1.0 / max(rate, LEAST)
        self._now, self._next = time_now, -math.inf

    def wait(self) -> float:
        """Return the seconds until the next call may begin; 0 if it may begin now."""
        return max(0.0, self._next - self._now())

    def begin(self) -> None:
        """Take note that a call begins now."""
        self._next = self._now() + self.gap
