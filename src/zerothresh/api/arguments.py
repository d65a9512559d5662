"""From a user's arguments to a `Task`: everything is checked here, before the first call is paid for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.threshold import Constraint
from zerothresh.methods.registry import make, name_of
from zerothresh.rounds.advance import first_step
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.method import chooses_steps
from zerothresh.rounds.task import Task
from zerothresh.sampling.philox import key_of, seed_of


def dimension_of(x0: Any) -> int | None:
    """Return d, from a start or a whole number; None if x0 is None, because a problem object knows its own d."""
    if x0 is None:
        return None
    if isinstance(x0, (int, np.integer)) and not isinstance(x0, bool):
        return check.count("the dimension d (x0 as a whole number)", x0)
    return int(start_of(x0).size)


def start_of(x0: Any) -> Array:
    """Return the start as a vector of finite numbers."""
    try:
        array = np.asarray(x0)
    except ValueError:
        raise ValueError("x0 must be a vector of d numbers or the dimension d, not a ragged list") from None
    if array.ndim == 0:
        raise ValueError(f"x0 must be a vector of shape (d,) or the dimension d as a whole number, not {x0!r}")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"x0 must be a vector of shape (d,) or the dimension d, not of shape {array.shape}")
    if array.dtype.kind not in "fiu":
        raise ValueError(f"x0 must hold real numbers, not {array.dtype}")
    theta = array.astype(np.float64)
    if not np.isfinite(theta).all():
        j = int(np.flatnonzero(~np.isfinite(theta))[0])
        raise ValueError(f"x0 must be finite, but x0[{j}] is {theta[j]}")
    return theta


def make_task(
    x0: Any,
    k: Any,
    *,
    d: int,
    n: int,
    budget: Any,
    method: Any,
    options: dict[str, Any] | None,
    estimator: Estimator | None,
    seed: Any,
    monitored: bool,
    prices: Array | None,
    max_cost: float | None,
    bounds: Any,
    include: Any,
    exclude: Any,
    groups: Any,
    first_budget: int | None = None,
) -> Task:
    """Check all arguments, and return them as a task whose start is feasible."""
    k = check.count("k", k, what=" (non-zero coordinates)")
    if groups is None and k > d:
        raise ValueError(f"k = {k} is larger than the dimension d = {d}: take k from 1 to {d}")
    budget = check.count("budget", budget, what=" (calls of the objective)")
    made = make("auto" if method is None else method, options)
    given = estimator is not None
    if estimator is None:
        estimator = Estimator()
    if not isinstance(estimator, Estimator):
        raise ValueError(f"estimator must be a zt.Estimator(q=..., mu=...), not {estimator!r}")
    estimator.support_size(d)
    constraint = Constraint(d, k, bounds=bounds, include=include, exclude=exclude, groups=groups)
    if constraint.plain and k == d:
        warnings.warn(f"k = d = {d}: all coordinates may be non-zero, so nothing is thresholded", stacklevel=4)
    theta0 = _feasible(x0, d, k, constraint)
    if given or not chooses_steps(made):
        estimator.check_start(theta0)
    number = seed_of(seed)
    task = Task(
        theta0=theta0,
        n=n,
        method=made,
        estimator=estimator,
        constraint=constraint,
        budget=budget,
        reserve=0 if monitored else n,
        seed=number,
        key=key_of(number),
        estimator_given=given,
        first_budget=first_budget,
    )
    with np.errstate(all="ignore"):
        step, price = first_step(task, prices)
    if prices is not None and max_cost is not None:
        price += float(prices.sum()) if task.reserve else 0.0
        if price > max_cost:
            raise ValueError(
                f"max_cost = {max_cost:g} is too small: the first step of {name_of(made)}, and F at the result, "
                f"cost {price:g}; take a max_cost of at least that"
            )
    if step + task.reserve > budget:
        kept = f", and F at the result {task.reserve} more" if task.reserve else ""
        raise ValueError(
            f"budget = {budget} is too small: the first step of {name_of(made)} needs {step} calls{kept}; "
            f"take a budget of at least {step + task.reserve}"
            + ("" if chooses_steps(made) else f", or fewer directions than q = {estimator.q}")
        )
    return task


def costs_of(n: int, cost: Callable[[int], float] | None, max_cost: float | None) -> tuple[Array | None, float | None]:
    """Return what a call of each component costs, in the user's currency, and the most that may be spent."""
    if cost is None:
        if max_cost is not None:
            raise ValueError("max_cost needs cost: a function from a component's number to what a call of it costs")
        return None, None
    if not callable(cost):
        raise ValueError(f"cost must be a function from a component's number to what a call of it costs, not {cost!r}")
    prices = np.empty(n)
    for i in range(n):
        prices[i] = cost(i)
        if not (np.isfinite(prices[i]) and prices[i] >= 0):
            raise ValueError(f"cost({i}) is {prices[i]}; a cost must be a finite number of at least 0")
    return prices, None if max_cost is None else check.positive("max_cost", max_cost, what=" (the most to spend)")


def _feasible(x0: Any, d: int, k: int, constraint: Constraint) -> Array:
    """Return the start, read-only; one that is not feasible is projected, with a warning."""
    theta = np.zeros(d) if x0 is None or np.ndim(x0) == 0 else start_of(x0)
    if not constraint.holds(theta):
        projected = constraint.project(theta)
        if np.count_nonzero(projected) < np.count_nonzero(theta):
            count = np.count_nonzero(theta)
            what = f"x0 has {count} non-zero coordinates, more than k = {k} allows: only its k largest entries are kept"
        else:
            what = "x0 is outside the bounds: it is moved to the nearest point inside"
        warnings.warn(what, stacklevel=5)
        theta = projected
    theta.flags.writeable = False
    return theta
