"""One round, as pure functions: what the values of a round make of the search, and of what is known of F."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zerothresh.basics.arrays import Array
from zerothresh.basics.averages import mean
from zerothresh.constraint.threshold import HardThreshold
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.plan import Plan
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
    fun, best_x, best_fun, recent = None, standing.best_x, standing.best_fun, standing.recent
    told = answers.point_values() if task.outputs is None else plan.told(values)
    for point, seen, leads in told:  # what the round tells of F, free of charge
        complete = task.outputs is not None or len(seen) == task.n
        if not (complete or leads):  # of points where components are missing only the iterate tells something
            continue
        value = mean(seen)
        recent = value if recent is None else recent + RECENT_SHARE * (value - recent)
        if complete:
            fun = value if point is incumbent.theta else fun
            if (best_fun is None or value < best_fun) and task.allows(point):
                best_x, best_fun = point, value
    if search.states_fun:
        fun = incumbent.fun
        if fun is not None and (incumbent.random or best_fun is None or fun < best_fun):
            best_x, best_fun = incumbent.theta, fun
    return Standing(
        search,
        standing.nht + H.count,
        standing.nit + search.stepped,
        fun,
        best_x,
        best_fun,
        recent,
    )


def with_value(task: Task, standing: Standing, point: Array, value: float) -> Standing:
    """Return the standing with the knowledge that F(point) = value."""
    if point is standing.theta:
        standing = standing._replace(fun=value)
    if (standing.best_fun is None or value < standing.best_fun) and task.allows(point):
        standing = standing._replace(best_x=point, best_fun=value)
    return standing
