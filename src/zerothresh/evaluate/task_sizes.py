"""How many calls a task of a cluster should have, by what calls cost and what a task costs beside them."""

from __future__ import annotations

from collections import deque
from math import ceil
from statistics import median

MOST_OVERHEAD = 0.05  # the share of a worker's time that scheduling may take, if the round has enough calls
MOST_DEPTH = 1000  # calls one after the other in a task, however short they are
MEMORY = 15  # tasks whose costs are remembered: a median over so many passes over what happens once


class TaskSizes:
    """Learns from finished tasks how many calls to send together.

    A task costs scheduling beside its calls: the seconds from its submission to its result during which no call of it
    was made. Calls that take long enough are sent alone, so that each value is written down as soon as it is there.
    Others are sent together: one task for all free threads of a worker process, with as many calls one after the other
    as it takes to keep scheduling below 5 %. Many small tasks at once wait for the scheduler, and few large ones do
    not, so that the two overheads are measured apart.
    """

    def __init__(self) -> None:
        self._costs: deque[tuple[float, int]] = deque(maxlen=MEMORY)  # seconds and number of calls
        self._alone: deque[float] = deque(maxlen=MEMORY)  # overheads of tasks of one call
        self._together: deque[float] = deque(maxlen=MEMORY)  # and of larger ones

    def note(self, calls: int, calling: float, overhead: float, *, alone: bool) -> None:
        """Take note of a finished task.

        Arguments
        ---------
        calls, calling: the number of calls, and the seconds that they took, added up.
        overhead: seconds from submission to result without any call.
        alone: whether the calls of that time were sent one by one.
        """
        self._costs.append((calling, calls))
        (self._alone if alone else self._together).append(max(0.0, overhead))

    @property
    def alone(self) -> bool:
        """Whether calls should be sent one by one: because they are long, or because nothing is known yet."""
        return not self._alone or self._cost >= median(self._alone) / MOST_OVERHEAD

    @property
    def depth(self) -> int:
        """The number of calls one after the other in a task."""
        if self.alone or not self._together:
            return 1
        least = median(self._together) / MOST_OVERHEAD
        return MOST_DEPTH if self._cost * MOST_DEPTH <= least else max(1, ceil(least / self._cost))

    @property
    def _cost(self) -> float:
        """Seconds per call."""
        return sum(seconds for seconds, _ in self._costs) / max(1, sum(calls for _, calls in self._costs))
