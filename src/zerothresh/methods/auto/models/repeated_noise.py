"""The noise of random values, from all that were asked for again."""

from __future__ import annotations

import math
from dataclasses import dataclass

from zerothresh.methods.auto.settings.diagnosis_settings import DIAGNOSIS


@dataclass
class RepeatedNoise:
    """The standard deviation of a value: a first estimate, and what further values at known points have shown.

    The first estimate comes from a few values, so that it may be off by a factor of 1.4.

    >>> noise = RepeatedNoise(1.0)
    >>> for _ in range(100):
    ...     noise.see(8.0, 0.5)  # values off by sqrt(8), from means that are as unsure as a value: a variance of 4
    >>> round(noise.deviation, 2)
    1.96
    """

    first: float
    squares: float = 0.0
    repeats: int = 0

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        known = DIAGNOSIS.start_repeats - 1
        return math.sqrt((known * self.first * self.first + self.squares) / (known + self.repeats))

    def see(self, square: float, share: float) -> None:
        """Take into account the squared difference of a value from what was expected at its point.

        ``share`` is the part of its variance that is the noise of the value itself. What was expected must be more than
        the mean of earlier values: points are asked again because these were low, and some of them by chance.
        """
        self.squares += share * square
        self.repeats += 1
