"""Money, in the user's own currency: what calls cost, what has been spent, and the limit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Spending:
    """What a run has spent; without prices, nothing ever costs anything.

    >>> purse = Spending(np.array([1.0, 2.0]), limit=6.0)
    >>> purse.complete(np.array([0, 1, 1]))
    >>> purse.total, purse.allows(1.0), purse.allows(2.0)
    (5.0, True, False)
    """

    def __init__(self, prices: Array | None, limit: float | None) -> None:
        self.prices, self.limit = prices, limit
        self._done, self._open = 0.0, 0.0  # of rounds that are over, and of the open one

    @property
    def total(self) -> float:
        """What has been spent."""
        return self._done + self._open

    def price(self, components: Indices) -> float:
        """Of one call of each."""
        return 0.0 if self.prices is None else float(self.prices[components].sum())

    def price_of_all(self) -> float:
        """Of F at a point."""
        return 0.0 if self.prices is None else float(self.prices.sum())

    def allows(self, price: float) -> bool:
        """Whether so much more is within the limit."""
        return self.limit is None or self.total + price <= self.limit

    def arrive(self, components: Indices) -> None:
        """Values of the open round came."""
        self._open += self.price(components)

    def complete(self, components: Indices) -> None:
        """The round is over: summed in the order of its rows, whoever came first."""
        self._done, self._open = self._done + self.price(components), 0.0

    def leave(self) -> None:
        """The round is left; what came of it was paid for."""
        self._done, self._open = self.total, 0.0

    def lose(self, component: int, calls: int) -> None:
        """Calls that gave no value."""
        self._done += 0.0 if self.prices is None else float(self.prices[component]) * calls

    def resume(self, amount: float | None, calls: int) -> None:
        """Go on from what a snapshot says; None: no prices were known then, and each call counts at their mean."""
        if amount is None:
            amount = 0.0 if self.prices is None else calls * float(self.prices.mean())
        self._done = amount
