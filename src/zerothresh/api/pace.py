"""How fast calls come, measured over a recent stretch of the run, and how long the rest of the budget takes."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

WINDOW = 30.0  # seconds; long enough to smooth rounds, short enough to follow a function that becomes slower
SETTLED = 2.0  # seconds of a run or of a stage before which its pace says little about what follows
LEAST = 8  # calls; the window is extended into the past until it holds so many, because calls may take minutes
LONGEST = 1000 * 86_400.0  # seconds; a longer time left is no forecast that anybody can use


class Sample(NamedTuple):
    """How many calls had been made at some time."""

    time: float
    calls: int


class Pace:
    """The pace of a run: calls per second over the last half minute, of the present stage if it has lasted long enough.

    Arguments
    ---------
    now: float, the time at the beginning of this session, in seconds of any clock.
    calls: int, the calls that earlier sessions made.

    >>> pace = Pace(0.0, 100)
    >>> pace.note(5.0, 100, "diagnosis"), pace.rate  # nothing has arrived
    (None, None)
    >>> pace.note(10.0, 120, "diagnosis"), pace.rate, pace.left(10)
    (None, 2.0, 5.0)
    """

    def __init__(self, now: float, calls: int) -> None:
        self.begun = Sample(now, calls)
        self.elapsed = 0.0  # seconds of this session
        self.rate: float | None = None  # calls per second; None while no call has ended
        self._stage, self._entered = "", self.begun
        self._samples = deque([self.begun])

    def note(self, now: float, calls: int, stage: str) -> None:
        """Take note of the number of calls at some time, and of the stage; times must not decrease."""
        here = Sample(now, calls)
        samples = self._samples
        if stage != self._stage:
            self._entered = here if self._stage else self.begun  # the first stage begins with the run
            self._stage = stage
        if calls > samples[-1].calls:
            samples.append(here)
        while len(samples) > 1 and now - samples[1].time >= WINDOW and calls - samples[1].calls >= LEAST:
            samples.popleft()
        since, entered = samples[0], self._entered
        if now - entered.time >= SETTLED and calls - entered.calls >= LEAST:
            since = max(since, entered)
        self.elapsed = now - self.begun.time
        seconds, made = now - since.time, calls - since.calls
        self.rate = made / seconds if made > 0 and seconds > 0 else None

    def left(self, calls: int) -> float | None:
        """Return about how many seconds so many more calls take; None if nothing sensible can be said."""
        if self.rate is None or self.elapsed < SETTLED:
            return None
        seconds = calls / self.rate
        return seconds if seconds <= LONGEST else None
