"""The one account of a run: the budget, the calls made, the calls that failed, and what they cost."""

from __future__ import annotations

from zerothresh.basics.arrays import Array, Indices
from zerothresh.rounds.plan import Plan


class Ledger:
    """Every call is entered here once: when its value arrives, or when it fails.

    Arguments
    ---------
    budget: int, the most calls that may be made.
    reserve: int, default 0: calls that are kept for F at the result.
    prices: float64 array (n,), default None: what a call of each component costs, in the user's currency.
    max_cost: float, default None: the most that may be spent.

    >>> import numpy as np
    >>> ledger = Ledger(10, reserve=2, prices=np.array([1.0, 2.0]), max_cost=6.0)
    >>> ledger.fail(component=1, calls=2)
    >>> ledger.nfev, ledger.remaining(), ledger.spent, ledger.affords(3.0)
    (2, 6, 4.0, False)
    """

    def __init__(
        self, budget: int, *, reserve: int = 0, prices: Array | None = None, max_cost: float | None = None
    ) -> None:
        self.budget, self.reserve, self.prices, self.max_cost = budget, reserve, prices, max_cost
        self.completed = 0  # calls of rounds that are over
        self.arrived = 0  # values of the open round
        self.failed = 0  # calls that gave no value, or whose round was left
        self._paid, self._paid_open = 0.0, 0.0  # for rounds that are over, and for the open one

    @property
    def nfev(self) -> int:
        """Calls of f_i so far, the paper's #IZO."""
        return self.completed + self.arrived + self.failed

    def remaining(self, *, final: bool = False) -> int:
        """Return how many calls may still be made; those kept for the end only in the ``final`` round."""
        return self.budget - self.nfev - (0 if final else self.reserve)

    # Calls.

    def arrive(self, plan: Plan, start: int, count: int) -> None:
        """Enter ``count`` values of the open round, from row ``start`` on."""
        self.arrived += count
        if self.prices is not None:
            self._paid_open += self.price(plan.components[start : start + count])

    def complete(self, plan: Plan, free: int = 0) -> None:
        """Close the open round, all of whose values have arrived; ``free`` of its calls had not to be made.

        Its price is summed in the order of its rows, so that the sum does not depend on which value came first.
        """
        self.completed, self.arrived = self.completed + plan.calls - free, 0
        if self.prices is not None:
            self._paid, self._paid_open = self._paid + self.price(plan.components[free:]), 0.0

    def abandon(self) -> None:
        """Leave the open round; the values that it has were paid for."""
        self.failed, self.arrived = self.failed + self.arrived, 0
        self._paid, self._paid_open = self._paid + self._paid_open, 0.0

    def fail(self, component: int, calls: int) -> None:
        """Enter calls of a component that gave no value."""
        self.failed += calls
        if self.prices is not None:
            self._paid += float(self.prices[component]) * calls

    def lose(self, calls: int) -> None:
        """Enter calls that were under way when the run was interrupted, whatever their components."""
        self.failed += calls

    def recall(self, calls: int) -> None:
        """Enter calls as made with a value that had been entered as failed."""
        self.failed, self.completed = self.failed - calls, self.completed + calls

    # Cost.

    @property
    def spent(self) -> float:
        """What the calls have cost, in the user's currency; 0 without prices."""
        return self._paid + self._paid_open

    def price(self, components: Indices) -> float:
        """Return what one call of each of these components costs."""
        return 0.0 if self.prices is None else float(self.prices[components].sum())

    def reserved_price(self, *, final: bool = False) -> float:
        """Return what F at the result will cost, as long as it is still to come."""
        if self.prices is None or self.reserve == 0 or final:
            return 0.0
        return float(self.prices.sum())

    def affords(self, price: float) -> bool:
        """Return whether so much more may be spent."""
        return self.max_cost is None or self.spent + price <= self.max_cost

    # Going on.

    def resume(self, completed: int, failed: int, spent: float | None) -> None:
        """Go on from a snapshot; if no prices were known then, each call so far counts at their mean."""
        self.completed, self.failed, self.arrived = completed, failed, 0
        if spent is None:
            spent = 0.0 if self.prices is None else (completed + failed) * float(self.prices.mean())
        self._paid, self._paid_open = spent, 0.0
