"""One round, as pure functions: what the values of a round make of the search, and of what is known of F."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.basics.averages import mean
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.plan import Plan
from zerothresh.rounds.requests import PointValues
from zerothresh.rounds.search import Search, begin
from zerothresh.rounds.task import Task

RECENT_SHARE = 0.1  # of a new value in the running mean of values seen at iterates: about the last ten count
TRIAL_ROUNDS = 16  # rounds gone through to find the first step; an epoch's anchor and a memory take one or two


class Standing(NamedTuple):
    """Where a run stands after a number of rounds; a tuple, because one is made in every round."""

    search: Search
    nht: int = 0  # hard thresholdings
    nit: int = 0  # steps
    fun: float | None = None  # F at the incumbent, where it is known
    best_x: Array | None = None  # the best feasible point whose F is known
    best_fun: float | None = None
    recent: float | None = None  # a running mean of the values seen at iterates
    best_outputs: Array | None = None  # the outputs at the best point, where calls return many and they are known

    @property
    def round(self) -> int:
        """The number of the round that is wanted now."""
        return self.search.round

    @property
    def theta(self) -> Array:
        """The iterate."""
        return self.search.incumbent.theta


def start(task: Task) -> Standing:
    """Return where a run stands before the first round."""
    return Standing(begin(task))


@np.errstate(all="ignore")  # numbers may overflow: an iterate that is not finite is noticed by H
def advance(task: Task, standing: Standing, plan: Plan, values: Array) -> Standing:
    """Return where the run stands after a round: estimate, update, threshold, count."""
    answers = Answers(plan, plan.rows(values))
    H = HardThreshold(task.constraint)
    search = standing.search.advance(answers, H)
    incumbent = search.incumbent
    if task.constraint.further is not None and search.stepped and not task.allows(incumbent.theta):
        raise RuntimeError("the method moved to a point that is not feasible")
    fun, best_x, best_fun, recent = None, standing.best_x, standing.best_fun, standing.recent
    best_outputs = standing.best_outputs
    told = answers.point_values() if task.outputs is None else plan.told(values)
    for point, seen, leads, outputs in told:  # what the round tells of F, free of charge
        complete = task.outputs is not None or len(seen) == task.n
        if not (complete or leads):  # of points where components are missing only the iterate tells something
            continue
        value = mean(seen)
        recent = value if recent is None else recent + RECENT_SHARE * (value - recent)
        if complete:
            here = point is incumbent.theta or (task.outputs is not None and np.array_equal(point, incumbent.theta))
            fun = value if here else fun
            if (best_fun is None or value < best_fun) and task.allows(point):
                best_x, best_fun, best_outputs = point, value, outputs
    if search.states_fun:
        fun = incumbent.fun
        if fun is not None and (incumbent.random or best_fun is None or fun < best_fun):
            if task.outputs is not None:
                best_outputs = _outputs_at(incumbent.theta, told, best_x, best_outputs)
            best_x, best_fun = incumbent.theta, fun
    if best_outputs is not None and best_outputs is not standing.best_outputs:
        best_outputs = best_outputs.copy()  # or it would keep the outputs of the whole round
    return Standing(
        search,
        standing.nht + H.count,
        standing.nit + search.stepped,
        fun,
        best_x,
        best_fun,
        recent,
        best_outputs,
    )


def _outputs_at(
    theta: Array, told: list[PointValues], best_x: Array | None, best_outputs: Array | None
) -> Array | None:
    """Return the outputs at a point, if this round or the best point so far tells them."""
    for point, _, _, outputs in reversed(told):
        if point is theta or np.array_equal(point, theta):
            return outputs
    return best_outputs if best_x is not None and np.array_equal(best_x, theta) else None


def with_value(task: Task, standing: Standing, point: Array, value: float, outputs: Array | None = None) -> Standing:
    """Return the standing with the knowledge that F(point) = value, and maybe of the outputs there."""
    if point is standing.theta:
        standing = standing._replace(fun=value)
    if (standing.best_fun is None or value < standing.best_fun) and task.allows(point):
        standing = standing._replace(best_x=point, best_fun=value, best_outputs=outputs)
    return standing
