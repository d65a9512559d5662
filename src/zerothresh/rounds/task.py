"""What stays the same during a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.constraint.threshold import Constraint
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.method import is_sparse
from zerothresh.rounds.plan import Plan
from zerothresh.rounds.requests import Probes
from zerothresh.rounds.shared_plan import SharedPlan
from zerothresh.rounds.vector_outputs import VectorOutputs
from zerothresh.rounds.workspace import Workspace


@dataclass
class Family:
    """What runs of the same function for other k know, so that no one learns or pays for it twice.

    Attributes
    ----------
    best: function of k that returns the best point that is known to be feasible for it, and F there; None if none is.
    learnt: what a strategy has learnt of the function itself, whatever k is, by the name of the strategy.
    learning: the k of the runs that are learning such a thing at present.
    unit: the unit in which all of them measure values; 0: not known yet.
    """

    best: Callable[[int], tuple[Array, float] | None] = lambda k: None
    learnt: dict[str, Any] = field(default_factory=dict)
    learning: set[int] = field(default_factory=set)
    unit: float = 0.0

    def of(self, members: Indices) -> Family:
        """Return the family of runs that see some of the components only: what was learnt of these stays known."""
        return Family(learnt={name: one.restricted(members) for name, one in self.learnt.items()}, unit=self.unit)


@dataclass(frozen=True)
class Task:
    """The problem as the engine sees it, the method, and the limits."""

    theta0: Array  # the start, (d,), feasible and read-only
    n: int  # components
    method: Any
    estimator: Estimator
    constraint: Constraint
    budget: int  # the most calls of f_i
    reserve: int  # calls that are kept for F at the result
    seed: int
    key: int  # of the random numbers, from the seed
    estimator_given: bool = True  # whether the user gave the estimator
    first_budget: int | None = None  # the budget that the run began with, if it has been raised since
    outputs: VectorOutputs | None = None  # if one call returns many outputs; then a call is a point
    opening: str = ""  # what the user is told of the start
    width: int = 1  # the calls that take no longer together than one, as the user declared
    workspace: Workspace = field(default_factory=Workspace, repr=False, compare=False)
    family: Family | None = field(default=None, repr=False, compare=False)  # if there are runs for other k

    @property
    def d(self) -> int:
        """The dimension."""
        return self.theta0.size

    def allows(self, x: Array) -> bool:
        """Return whether x may be the result; a method without the l0 constraint need only keep the bounds."""
        return self.constraint.holds(x) if is_sparse(self.method) else self.constraint.within_bounds(x)

    def check_queries(self, plan: Plan) -> None:
        """Refuse a round that asks at a point that is not feasible, where the user forbids that."""
        if not self.constraint.strict:
            return
        last = None
        for row in range(plan.calls):
            point = plan.point(row)
            if point is not last and not (last is not None and np.array_equal(point, last)):
                if not self.constraint.holds(point):
                    raise RuntimeError("the method asked for a point that is not feasible, which strict forbids")
                last = point

    def plan(self, probes: Probes, round: int) -> Plan:
        """Return the queries that answer the probes of a round."""
        box, outputs = self.constraint.box, self.outputs
        if outputs is None:
            return Plan(probes, self.estimator, self.d, key=self.key, round=round, box=box, workspace=self.workspace)
        return SharedPlan(
            probes, self.estimator, self.d, outputs, key=self.key, round=round, box=box, workspace=self.workspace
        )

    def with_outputs(self, m: int) -> Task:
        """Return the task once the number of outputs is known."""
        assert self.outputs is not None
        outputs = replace(self.outputs, m=m)
        return replace(self, outputs=outputs, n=outputs.components)
