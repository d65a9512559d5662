"""What stays the same during a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import Constraint
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.method import Method, is_sparse
from zerothresh.rounds.plan import Buffers


@dataclass(frozen=True)
class Task:
    """What stays the same during a run."""

    theta0: Array
    n: int
    method: Method
    estimator: Estimator
    constraint: Constraint
    budget: int
    reserve: int  # calls kept for F at the result
    seed: int
    key: int
    chosen: bool = True  # whether the user chose the estimator
    planned: int | None = None  # the budget that the run began with, if it is another
    buffers: Buffers = field(default_factory=Buffers, repr=False, compare=False)

    @property
    def d(self) -> int:
        """The dimension."""
        return self.theta0.size

    def holds(self, x: Array) -> bool:
        """Whether x may be the result; of a method without the l0 constraint, bounds alone are asked."""
        return self.constraint.holds(x) if is_sparse(self.method) else self.constraint.within_bounds(x)
