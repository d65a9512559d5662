"""From a user's arguments to a `Task`: everything is checked here, before the first call is paid for."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from zerothresh.basics import capacity, check
from zerothresh.basics.arrays import Array
from zerothresh.constraint.shares import ShareSet
from zerothresh.constraint.threshold import Constraint
from zerothresh.losses import Itself
from zerothresh.methods.registry import YOUR_OWN, family_of, make, name_of
from zerothresh.objective.forms import components_of
from zerothresh.rounds.advance import TRIAL_ROUNDS, advance, start
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.method import (
    asks_feasible,
    bounds_k_itself,
    chooses_steps,
    keeps_constraints,
    reserved_calls,
    sees_whole,
)
from zerothresh.rounds.plan import Plan
from zerothresh.rounds.task import Task
from zerothresh.rounds.vector_outputs import VectorOutputs
from zerothresh.sampling.philox import key_of, seed_of

VECTORS = 4  # vectors of length d that any run holds at least: the start, the iterate, the next one and a point
COMPONENT_NUMBERS = 2  # numbers per component that a round of all components holds: its place, and its value
MOST_CALLS = 1 << 1000  # the largest budget: no run can spend it, but methods can still plan with it as a float
MOST_TRIED = 10**7  # calls of a round beyond the budget that is still gone through, to say what the first step takes


def dimension_of(x0: Any) -> int | None:
    """Return d, from a start or a whole number; None if x0 is None, because a problem object knows its own d."""
    if x0 is None:
        return None
    if isinstance(x0, (int, np.integer)) and not isinstance(x0, bool):
        return check.count("the dimension d (x0 as a whole number)", x0)
    return int(start_of(x0).size)


def start_of(x0: Any) -> Array:
    """Return the start as a vector of finite numbers."""
    array = check.array(x0)
    if array is None:
        raise ValueError(f"x0 must be a vector of d numbers or the dimension d, not a ragged list or {check.shown(x0)}")
    if array.ndim == 0:
        raise ValueError(
            f"x0 must be a vector of shape (d,) or the dimension d as a whole number, not {check.shown(x0)}"
        )
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"x0 must be a vector of shape (d,) or the dimension d, not of shape {array.shape}")
    if array.dtype.kind not in "fiu":
        raise ValueError(f"x0 must hold real numbers, not {array.dtype}")
    with np.errstate(all="ignore"):
        theta = array.astype(np.float64)
    if not np.isfinite(theta).all():
        j = int(np.flatnonzero(~np.isfinite(theta))[0])
        raise ValueError(f"x0 must be finite, but x0[{j}] is {theta[j]}")
    size = np.abs(theta)
    if size.max() >= check.LARGEST_SIZE:
        j = int(size.argmax())
        raise ValueError(
            f"x0 must have entries of a size below {check.LARGEST_SIZE:g}, but x0[{j}] is {theta[j]:g}: measure the "
            "variable in a larger unit"
        )
    return theta


def make_task(
    x0: Any,
    k: Any,
    *,
    d: int,
    n: int | None,
    budget: Any,
    method: Any,
    options: dict[str, Any] | None,
    estimator: Estimator | None,
    seed: Any,
    monitored: bool,
    prices: Array | None,
    max_cost: float | None,
    patience: int | None,
    bounds: Any,
    include: Any,
    exclude: Any,
    groups: Any,
    constraint: Any = None,
    values: Any = None,
    strict: bool = False,
    first_budget: int | None = None,
    outputs: VectorOutputs | None = None,
    parallel: Any = 1,
) -> Task:
    """Check all arguments, and return them as a task whose start is feasible.

    If one call returns many outputs, ``n`` is their number, or None as long as it is not known; the method sees as many
    components, or only their mean.
    """
    known = n is not None
    n = 1 if n is None else components_of(n)
    k = check.count("k", k, what=" (non-zero coordinates)")
    if groups is None and k > d:
        raise ValueError(f"k = {k} is larger than the dimension d = {d}: take k from 1 to {d}")
    budget = check.count("budget", budget, what=" (calls of the objective)")
    if budget > MOST_CALLS:
        raise ValueError(f"budget must be at most 2**1000 (calls of the objective), not {check.shown(budget)}")
    capacity.need(VECTORS * capacity.NUMBER * d, f"the dimension d = {d}", "take fewer coordinates")
    made = make("auto" if method is None else method, options)
    if patience is not None:
        made = _with_patience(made, patience)
    given = estimator is not None
    if estimator is None:
        estimator = Estimator()
    if not isinstance(estimator, Estimator):
        raise ValueError(f"estimator must be a zt.Estimator(q=..., mu=...), not {check.shown(estimator)}")
    estimator.support_size(d)
    if outputs is not None:
        outputs = replace(outputs, whole=sees_whole(made))
    if not known:  # the first step is tried with as many outputs as it needs at least
        n = max(n, check.whole(getattr(made, "batch", None)) or 1)
    elif outputs is None or not outputs.whole:
        _check_batch(made, n)
    feasible = Constraint(
        d,
        k,
        bounds=bounds,
        include=include,
        exclude=exclude,
        groups=groups,
        constraint=constraint,
        values=values,
        strict=strict,
    )
    _check_constraint(made, feasible)
    if feasible.plain and k == d and not bounds_k_itself(made):
        warnings.warn(f"k = d = {d}: all coordinates may be non-zero, so nothing is thresholded", stacklevel=4)
    theta0, remark = _feasible(x0, d, k, feasible)
    if given or not chooses_steps(made):
        estimator.check_start(theta0)
    number = seed_of(seed)
    task = Task(
        theta0=theta0,
        n=n,
        method=made,
        estimator=estimator,
        constraint=feasible,
        budget=budget,
        reserve=_reserve(made, n, budget if first_budget is None else first_budget, monitored, outputs),
        seed=number,
        key=key_of(number),
        estimator_given=given,
        first_budget=first_budget,
        outputs=outputs,
        opening=remark,
        width=check.count("parallel", parallel, what=" (the calls that can run at once), or None"),
    )
    if outputs is None and (task.reserve or chooses_steps(made)):
        _need_components(n)
    first = first_step(task if outputs is None else _trial(task, n), prices)
    if prices is not None and max_cost is not None:
        price = first.price + (float(prices.sum()) if task.reserve else 0.0)
        if price > max_cost:
            raise ValueError(
                f"max_cost = {max_cost:g} is too small: the first step of {name_of(made)}, and F at the result, "
                f"cost {price:g}; take a max_cost of at least that"
            )
    if first.calls + task.reserve > budget:
        kept = f", and F at the result {task.reserve} more" if task.reserve else ""
        needs = "needs" if first.complete else "needs at least"
        raise ValueError(
            f"budget = {budget} is too small: the first step of {name_of(made)} {needs} {first.calls} calls{kept}; "
            f"take a budget of at least {first.calls + task.reserve}"
            + ("" if chooses_steps(made) else f", or fewer directions than q = {estimator.q}")
        )
    doubts = getattr(made, "doubts", None)
    if callable(doubts) and (sentence := doubts(task)):
        warnings.warn(sentence, stacklevel=4)
    return task


def _reserve(method: Any, n: int, budget: int, monitored: bool, outputs: VectorOutputs | None) -> int:
    """Return how many calls are kept for F at the result; a monitor tells F, and one call with outputs does."""
    if monitored or bounds_k_itself(method):
        return 0
    return reserved_calls(method, n, budget) if outputs is None else 1


def _with_patience(method: Any, patience: Any) -> Any:
    """Return a method that stops after so many calls without a gain."""
    number = check.count("patience", patience, what=" (calls without a gain), or None")
    if not (dataclasses.is_dataclass(method) and any(field.name == "patience" for field in dataclasses.fields(method))):
        raise ValueError(f"patience goes with method='auto'; {name_of(method)} runs until its budget is spent")
    return dataclasses.replace(method, patience=number)  # type: ignore[type-var]


def _check_batch(method: Any, n: int) -> None:
    """Refuse a batch that exceeds n, also where the first step does not draw it; an own method may mean anything."""
    batch = check.whole(getattr(method, "batch", None))
    if batch is not None and batch > n and family_of(type(method)) != YOUR_OWN:
        raise ValueError(f"cannot draw {batch} different components out of n = {n}: take a batch of at most {n}")


def _need_components(n: int) -> None:
    """Refuse more components than this machine has memory for, where all of them are asked for in one round."""
    capacity.need(
        COMPONENT_NUMBERS * capacity.NUMBER * n,
        f"a round of all n = {n} components",
        "take fewer components, or monitor=F and a method that asks for a few components per step, such as szoht",
    )


def _trial(task: Task, m: int) -> Task:
    """Return a task with m outputs for a trial with zeros; a user's loss may be one of another number of outputs."""
    assert task.outputs is not None
    return replace(task, outputs=replace(task.outputs, loss=Itself())).with_outputs(m)


class FirstStep(NamedTuple):
    """What the first step of a method takes."""

    calls: int
    price: float
    complete: bool  # whether these are all of its calls; otherwise it takes more


def first_step(task: Task, prices: Array | None = None) -> FirstStep:
    """Return how many calls the first step takes, and their price, by going through rounds with zeros for values.

    A method that fits itself into the budget is tried for one round only: it decides after its first answers. Nor is it
    tried on behind a round that is far beyond the budget.
    """
    calls, price, complete = 0, 0.0, True
    looked = task.outputs is not None  # the call at the start comes first, and is not made again
    if looked:
        calls, price = 1, 0.0 if prices is None else float(prices[0])
    try:
        with np.errstate(all="ignore"):
            standing = start(task)
            for _ in range(1 if chooses_steps(task.method) else TRIAL_ROUNDS):
                probes = standing.search.request
                if probes is None:
                    break
                plan = task.plan(probes, standing.round)
                free = 1 if looked and plan.find(task.theta0) is not None else 0
                looked = looked and not free
                calls += plan.calls - free
                if calls <= task.budget:
                    _need_points(task, plan)
                if plan.calls > max(task.budget, MOST_TRIED):
                    complete = False
                    break
                price += 0.0 if prices is None else float(prices[plan.components[free:]].sum())
                if task.outputs is not None and chooses_steps(task.method):
                    break  # it may know how many outputs there are, which is not certain here
                standing = advance(task, standing, plan, plan.zeros())
                if standing.nit:
                    break
    except (ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
        raise ValueError(
            f"{name_of(task.method)} cannot make its first step with these settings, {check.shown(task.method)} "
            f"({type(error).__name__}: {error}): take hyper-parameters of a moderate size"
        ) from error
    return FirstStep(calls, price, complete)


def _need_points(task: Task, plan: Plan) -> None:
    """Refuse a round whose points do not fit into this machine's memory; those of one estimate are made at once."""
    estimate = plan.estimator.calls if plan.probes.components.size else 1
    capacity.need(
        capacity.NUMBER * (estimate * task.d + plan.calls),
        f"a round of {name_of(task.method)} with {plan.calls} calls, of which {estimate} at a time, at d = {task.d}",
        f"take fewer directions than q = {plan.estimator.q}" if estimate > 1 else "take fewer coordinates",
    )


def costs_of(n: int, cost: Callable[[int], float] | None, max_cost: float | None) -> tuple[Array | None, float | None]:
    """Return what a call of each component costs, in the user's currency, and the most that may be spent."""
    if cost is None:
        if max_cost is not None:
            raise ValueError("max_cost needs cost: a function from a component's number to what a call of it costs")
        return None, None
    if not callable(cost):
        raise ValueError(
            f"cost must be a function from a component's number to what a call of it costs, not {check.shown(cost)}"
        )
    check.function("cost", cost, "cost(i)")
    limit = None if max_cost is None else check.positive("max_cost", max_cost, what=" (the most to spend)")
    capacity.need(
        capacity.NUMBER * n, f"the cost of each of n = {n} components", "leave cost out, or take fewer components"
    )
    prices = np.empty(n)
    for i in range(n):
        try:
            price = cost(i)
        except Exception as error:
            raise ValueError(f"cost({i}) raised {type(error).__name__}: {check.shown(error)}") from error
        number = check.real(price)
        if number is None or not (np.isfinite(number) and number >= 0):
            raise ValueError(f"cost({i}) is {check.shown(price)}; a cost must be a finite number of at least 0")
        prices[i] = number
    return prices, limit


def _check_constraint(method: Any, constraint: Constraint) -> None:
    """Refuse a constraint that leaves nothing to choose, and a method that does not keep the user's constraint."""
    name, further = name_of(method), constraint.further
    if isinstance(further, ShareSet) and (sentence := further.why_single()):
        raise ValueError(sentence)
    what = "values" if further is not None and further.discrete else "constraint"
    if further is not None and not keeps_constraints(method):
        raise ValueError(f"{name} does not support {what}=: take method='auto'")
    if further is not None and getattr(method, "within", None) is not None:
        raise ValueError(f"{name} has a constraint of its own (within): give only one of within and {what}")
    if constraint.strict and not asks_feasible(method):
        why = "values=: it" if what == "values" else "strict=True: it"
        raise ValueError(f"{name} does not support {why} queries points that are not feasible; take method='auto'")


def _feasible(x0: Any, d: int, k: int, constraint: Constraint) -> tuple[Array, str]:
    """Return the start, read-only, and a remark about it.

    One that is not feasible is projected: with a warning if a user's start breaks k or the bounds, and otherwise with a
    remark, because 0 does not keep every constraint.
    """
    given = not (x0 is None or isinstance(x0, (int, np.integer)))
    theta = start_of(x0) if given else np.zeros(d)
    if constraint.further is not None:
        if constraint.holds(theta):
            theta.flags.writeable = False
            return theta, ""
        what = "x0 is" if given else "0 is"
        theta = constraint.project(theta)
        return theta, f"{what} not feasible, so that the run starts at a feasible point near it."
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
    return theta, ""
