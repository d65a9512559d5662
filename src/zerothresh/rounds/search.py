"""One round, as pure functions: which points to query next, and what their values make of the search."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from zerothresh.constraint.threshold import HardThreshold
from zerothresh.methods.program.context import Setting
from zerothresh.methods.program.program import Program
from zerothresh.rounds.answers import Answers
from zerothresh.rounds.method import is_sparse
from zerothresh.rounds.plan import Plan
from zerothresh.rounds.requests import Probes
from zerothresh.rounds.task import Task
from zerothresh.sampling.philox import Stream

Array = NDArray[np.float64]


class Search(NamedTuple):
    """What a run knows after a number of rounds; a tuple, because one is made in every round."""

    state: Any  # the method's
    round: int = 0
    nfev: int = 0
    nht: int = 0
    nit: int = 0
    fun: float | None = None  # F at the iterate, where the round's own values give it
    best_x: Array | None = None
    best_fun: float | None = None
    recent: float | None = None


def begin(task: Task) -> Search:
    """The search before the first round."""
    method = task.method
    if isinstance(method, Program):
        budget = (task.budget if task.planned is None else task.planned) - task.reserve
        estimator = task.estimator if task.chosen else None
        return Search(
            method.init(task.theta0, Setting(task.theta0, task.n, task.key, task.constraint, budget, estimator))
        )
    return Search(method.init(task.theta0))


def next_probes(task: Task, search: Search) -> Probes | None:
    """What the method asks for in this round; None: it is done."""
    return task.method.plan(search.state, task.n, Stream(task.seed, search.round, key=task.key))


def plan_of(task: Task, probes: Probes, round: int) -> Plan:
    """The queries that answer the probes."""
    box, buffers = task.constraint.box, task.buffers
    return Plan(probes, task.estimator, task.d, key=task.key, round=round, box=box, buffers=buffers)


def advance(task: Task, search: Search, plan: Plan, values: Array) -> Search:
    """The search after a round: estimate, update, threshold, count."""
    answers = Answers(plan, values)
    H = HardThreshold(task.constraint)
    state = task.method.update(search.state, answers, H)
    fun, best_x, best_fun, recent = None, search.best_x, search.best_fun, search.recent
    for point, value, complete in _means(task, answers):  # what the round tells of F, free of charge
        recent = value if recent is None else recent + 0.1 * (value - recent)
        if complete:
            fun = value if point is state.theta else fun
            if (best_fun is None or value < best_fun) and task.holds(point):
                best_x, best_fun = point, value
    stepped = H.count > 0  # an epoch's anchor is not a step
    if not is_sparse(task.method):
        stepped = state.theta is not search.state.theta
    if isinstance(task.method, Program):
        stepped = state.theta is not search.state.theta  # and a point on trial is none
        fun = state.fun
        if fun is not None and (state.random or best_fun is None or fun < best_fun):
            best_x, best_fun = state.theta, fun
    return Search(
        state=state,
        round=search.round + 1,
        nfev=search.nfev + plan.calls,
        nht=search.nht + H.count,
        nit=search.nit + stepped,
        fun=fun,
        best_x=best_x,
        best_fun=best_fun,
        recent=recent,
    )


def _means(task: Task, answers: Answers) -> Iterator[tuple[Array, float, bool]]:
    """Points with the mean of the component values seen there, and whether it is over all components."""
    probes, seen = answers.probes, answers.at_points
    if seen is not None and probes.points:
        complete = len(probes.components) == task.n
        for point, row in zip(probes.points, seen, strict=True):
            yield point, mean(row), complete
            if not complete:
                break  # the first point is the iterate
    if len(probes.value_components) == task.n:
        for point, row in zip(probes.value_points, answers.values, strict=True):
            yield point, mean(row), True


def mean(values: Array) -> float:
    """The mean, rounded once: the same bits for any order and any release of NumPy."""
    numbers: list[float] = values.tolist()
    if len(numbers) == 1:
        return numbers[0]
    try:
        return math.fsum(numbers) / len(numbers)
    except OverflowError:  # numbers near the largest one
        return math.fsum(number / len(numbers) for number in numbers)


def known(task: Task, search: Search, point: Array, value: float) -> Search:
    """Take note that F(point) = value."""
    if point is search.state.theta:
        search = search._replace(fun=value)
    if (search.best_fun is None or value < search.best_fun) and task.holds(point):
        search = search._replace(best_x=point, best_fun=value)
    return search


def first_step(task: Task, prices: Array | None = None, rounds: int = 16) -> tuple[int, float]:
    """How many calls pass before the first step has been made, and their price: rounds gone through with zeros."""
    search, calls, price = begin(task), 0, 0.0
    if isinstance(task.method, Program):
        rounds = 1  # a program fits itself into the budget, once it has had a first look
    for _ in range(rounds):
        probes = next_probes(task, search)
        if probes is None:
            break
        plan = plan_of(task, probes, search.round)
        calls += plan.calls
        price += 0.0 if prices is None else float(prices[plan.components].sum())
        search = advance(task, search, plan, np.zeros(plan.calls))
        if search.nit:
            break
    return calls, price
