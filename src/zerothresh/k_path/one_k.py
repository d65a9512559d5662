"""The run of a path for one k: a search of its own, whose values are shared with the others."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from zerothresh.basics.arrays import Array, Indices
from zerothresh.basics.averages import mean
from zerothresh.constraint.threshold import Diverged
from zerothresh.k_path.shared_values import Asked, Looked, SharedValues, parts
from zerothresh.methods.program.context import Context
from zerothresh.rounds.advance import Standing, advance, start, with_value
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.plan import Plan
from zerothresh.rounds.requests import Probes
from zerothresh.rounds.search import Stage
from zerothresh.rounds.task import Task
from zerothresh.session.trace import Trace

EMPTY = 1000  # rounds in a row that ask for nothing, after which a search will never ask again
DIVERGED = "an iterate left the floating-point numbers"
NO_OUTPUT = "a call had no finite value among the outputs that the run sees"

Round = Generator[Probes, Answers, None]


class RunForK:
    """A run for one k, which asks what a run of `minimize` would ask, as long as the path gives it calls.

    Arguments
    ---------
    task: Task with this k; its budget is what the run plans with.
    values: SharedValues of the path.
    members: int64 array, default None: the components (or outputs) that it sees, in increasing order; None: all.

    Attributes
    ----------
    standing: Standing, where the run is.
    trace: Trace; its calls are those that the path had made by then.
    asked, paid: int, the values that it has had, and those of them that had to be paid for.
    ended: bool, whether the method has nothing more to ask.
    why: str, why it ended otherwise than by itself; empty if it did not.
    """

    def __init__(self, task: Task, values: SharedValues, members: Indices | None = None) -> None:
        self.task, self._values, self.members = task, values, members
        self.standing: Standing = start(task)
        self.trace = Trace()
        self.asked = self.paid = 0
        self.ended, self.why = False, ""
        self._seen: Asked = {}
        self._looked: Looked | None = None  # the round that it wants, as far as it is known

    @property
    def k(self) -> int:
        """The number of non-zeros that are allowed."""
        return self.task.constraint.k

    @property
    def stages(self) -> list[Stage]:
        """What its calls were made for."""
        return list(self.standing.search.stages)

    @property
    def learns(self) -> bool:
        """Whether it is learning what the runs for other k will use."""
        return self.task.family is not None and self.k in self.task.family.learning

    @property
    def value_cost(self) -> int:
        """The number of calls that tell F at a point."""
        return self.task.n if self.task.outputs is None else 1

    @property
    def found_something(self) -> bool:
        """Whether it has ended, or knows F at a point that is not the start."""
        return self.ended or not (
            self.standing.best_x is None or np.array_equal(self.standing.best_x, self.task.theta0)
        )

    @property
    def owes_value(self) -> bool:
        """Whether F at its iterate is not known, and has to be if that is to be a result."""
        return self.asked > 0 and self.standing.fun is None

    # Rounds.

    def price(self) -> int:
        """Return how many calls its next round costs; 0 if it wants none, or if all of them are known."""
        looked = self._wanted()
        return 0 if looked is None else looked.price

    def _wanted(self) -> Looked | None:
        """Return the next round that asks for something, or None if the method has nothing more to ask."""
        for _ in range(EMPTY):
            if self._looked is not None or self.ended:
                return self._looked
            try:
                probes = self.standing.search.request
            except Diverged:
                self._end(DIVERGED)
                return None
            if probes is None:
                self._end("")
                return None
            plan = self.task.plan(probes, self.standing.round)
            if plan.calls:
                self.task.check_queries(plan)
                self._looked = self._look(plan, self._seen)
            else:
                self._advance(plan, plan.zeros(), 0)
        self._end(f"the method asked for nothing in {EMPTY} rounds in a row")
        return None

    def _end(self, why: str) -> None:
        self.ended, self.why = True, why

    def take_round(self, context: Context) -> Round:
        """Make the next round; what is known of it is not asked for again."""
        looked = self._wanted()
        if looked is None:
            return
        yield from self._pay(looked)
        self._looked = None
        self.asked += looked.plan.calls
        values = self._answers(looked, self._seen)
        if _nothing(values):
            self._end(NO_OUTPUT)
        else:
            self._advance(looked.plan, values, context.used)

    def _advance(self, plan: Plan, values: Array, used: int) -> None:
        """Let the search go on with the values of a round."""
        before = self.standing
        try:
            self.standing = after = advance(self.task, before, plan, values)
        except Diverged:
            self._end(DIVERGED)
            return
        if after.nit > before.nit:
            support = np.flatnonzero(after.theta)
            self.trace.append(step=after.nit, nfev=used, nht=after.nht, fun=after.fun, support=support)

    def take_value(self) -> Round:
        """Ask for F at the iterate, which the search itself does not know."""
        theta, outputs = self.standing.theta, self.task.outputs
        looked = self._look(self._plan_of_values(theta, range(self.task.n)), self._seen)
        yield from self._pay(looked)
        values = self._answers(looked, self._seen)
        if outputs is None:
            self.standing = with_value(self.task, self.standing, theta, mean(values))
        elif not _nothing(values):
            self.standing = with_value(self.task, self.standing, theta, float(outputs.values(values)[0]), values[0])

    def take_held_out(self, n: int) -> Generator[Probes, Answers, float | None]:
        """Ask for the components, of n, that the run does not see at its best point; return their mean, if any."""
        theta, outputs, members = self.standing.best_x, self.task.outputs, self.members
        if theta is None or members is None:
            return None
        if np.array_equal(theta, self.task.theta0) and not self.standing.search.certified:
            return None  # the calls did not suffice to find anything: F there says nothing about this k
        others = np.setdiff1d(np.arange(n), members)
        looked = self._values.look(self._plan_of_values(theta, others), {}, None)
        yield from self._pay(looked)
        values = self._values.answers(looked, {})
        if outputs is None:
            return mean(values)
        if _nothing(values[:, others]):
            return math.nan
        return float(outputs.mean_loss(outputs.losses(values[:, others])[0]))

    def _plan_of_values(self, theta: Array, of: range | Indices) -> Plan:
        """Return the calls that tell components at a point."""
        one = self.task.outputs is not None
        return self.task.plan(
            Probes.outputs(at=[theta]) if one else Probes.values(at=[theta], of=of), self.standing.round
        )

    # Values.

    def _look(self, plan: Plan, seen: Asked) -> Looked:
        """Return what is known of the calls of a round."""
        return self._values.look(plan, seen, None if self.task.outputs is not None else self.members)

    def _pay(self, looked: Looked) -> Round:
        """Ask for the values that nobody has paid for."""
        for first, last in parts(looked.price, looked.plan.d):
            part = looked.part(first, last)
            if self.task.outputs is not None:
                table = (yield Probes.outputs(list(part.points()))).outputs
            else:
                table = (yield Probes.each(part.points(), part.components())).paired
            self._values.enter(part, table)
            self.paid += part.price

    def _answers(self, looked: Looked, seen: Asked) -> Array:
        """Return the values of all calls of a round, of the outputs that the run sees."""
        values = self._values.answers(looked, seen)
        return values if values.ndim == 1 or self.members is None else values[:, self.members]


def _nothing(values: Array) -> bool:
    """Whether some call has no output that is a number."""
    return values.ndim == 2 and bool(np.isnan(values).all(axis=1).any())
