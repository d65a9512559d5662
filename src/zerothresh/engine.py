"""The only loop: ask, evaluate, tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.asktell import MonitorFailed, Optimizer
from zerothresh.display import Display
from zerothresh.evaluate import Evaluator, Failure, evaluator_for
from zerothresh.plan import Estimator
from zerothresh.problem import BadValue, wrap
from zerothresh.result import Progress, Result, Status
from zerothresh.setup import dimension_of

Array = NDArray[np.float64]


def minimize(
    fun: Any,
    x0: Any,
    k: int,
    *,
    budget: int,
    n: int | None = None,
    method: Any = None,
    options: dict[str, Any] | None = None,
    estimator: Estimator | None = None,
    seed: int | None = None,
    vectorized: bool = False,
    bounds: Any = None,
    include: Any = None,
    exclude: Any = None,
    groups: Any = None,
    workers: Any = 1,
    chunk: int | None = None,
    monitor: Callable[[Array], float] | None = None,
    callback: Callable[[Progress], Any] | None = None,
    progress: bool | None = None,
) -> Result:
    r"""Minimise F = 1/n sum f_i with at most k non-zero coordinates, from values of the f_i alone.

    Arguments
    ---------
    fun: ``fun(x)``; with ``n``, ``fun(x, i)`` for component i; with ``vectorized``, ``fun(X)`` and
        ``fun(X, I)`` for X of shape (B, d) and I of shape (B,), returning (B,); or a problem object
        with ``d``, ``n`` and ``values(points, components)``. Points arrive read-only.
    x0: the start, of shape (d,); a whole number d for zeros; None for a problem object.
    k: the most non-zero coordinates (or groups).
    budget: the most calls of f_i; never exceeded. A round that would exceed it is not begun.
    n: the number of components; None: ``fun(x)`` is F itself.
    method: an instance such as ``zt.VRSZHT(eta=0.01, m=10)``, or a name with ``options``.
    options: the method's hyper-parameters, if it is given by name.
    estimator: how gradients are estimated, ``zt.Estimator(q=10, mu=1e-3)``.
    seed: a whole number; the same seed gives the same bits. None draws one: see ``result.seed``.
    vectorized: whether ``fun`` takes many points at once.
    bounds: (low, high), numbers or arrays, around 0; also the queried points stay inside.
    include, exclude: coordinates that always have, and never get, a place in the support.
    groups: a label for each coordinate; k then counts groups.
    workers: 1; a number of threads; or any ``concurrent.futures.Executor``. The bits are the same.
    chunk: points that a vectorised function gets at once, by default at most 1024.
    monitor: ``monitor(x)`` gives F for the trace; its calls are not charged.
    callback: ``callback(progress)`` after each step; raise StopIteration to stop.
    progress: True for a live bar, False for none, None for one on a terminal.

    >>> import zerothresh as zt
    >>> goal = np.array([0, 0, 5.0, 0, 0, -2.0, 0, 0])
    >>> found = zt.minimize(lambda x: ((x - goal) ** 2).sum(), 8, 2, budget=500, method=zt.FGZOHT(eta=0.1), seed=1)
    >>> found.support
    array([2, 5])
    """
    d = dimension_of(x0)
    objective = wrap(fun, d, n, vectorized)
    if d is None:
        x0 = objective.d
    optimizer = Optimizer(
        x0,
        k,
        budget=budget,
        n=objective.n,
        method=method,
        options=options,
        estimator=estimator,
        seed=seed,
        bounds=bounds,
        include=include,
        exclude=exclude,
        groups=groups,
        monitor=monitor,
    )
    evaluator = evaluator_for(objective, workers, chunk)
    with Display(optimizer, progress) as display:
        try:
            for _ in _steps(optimizer, evaluator):
                display.update()
                if callback is not None:
                    _call(optimizer, callback)
        except KeyboardInterrupt:
            optimizer.finish(Status.INTERRUPTED, "stopped by Ctrl-C; the best point so far is returned", final=False)
        finally:
            evaluator.close()
    return optimizer.result()


def iterate(
    fun: Any,
    x0: Any,
    k: int,
    *,
    n: int | None = None,
    vectorized: bool = False,
    workers: Any = 1,
    chunk: int | None = None,
    **arguments: Any,
) -> Iterator[Progress]:
    """The run of `minimize` as a generator: a `Progress` after each step; leave the loop to stop.

    >>> import zerothresh as zt
    >>> for state in zt.iterate(lambda x: ((x - 1) ** 2).sum(), 4, 2, budget=300, method=zt.FGZOHT(eta=0.1), seed=0):
    ...     if state.nit == 3:
    ...         break
    >>> state
    <step 3: F = ?, 33 of 300 calls, 2 non-zeros>
    """
    d = dimension_of(x0)
    objective = wrap(fun, d, n, vectorized)
    optimizer = Optimizer(objective.d if d is None else x0, k, n=objective.n, **arguments)
    evaluator = evaluator_for(objective, workers, chunk)
    try:
        for _ in _steps(optimizer, evaluator):
            yield optimizer.progress()
        if optimizer.failure is not None:  # a generator has no result to put a status into
            raise RuntimeError(optimizer.result().message) from optimizer.failure.error
    finally:
        evaluator.close()


def _steps(optimizer: Optimizer, evaluator: Evaluator) -> Iterator[None]:
    """The loop: yields after each step."""
    while (plan := optimizer.open_plan) is not None:
        values = np.empty(plan.calls)
        made = 0
        failure: Failure | None = None
        arrivals = evaluator.evaluate(plan, [(0, plan.calls)])
        try:
            for answer in arrivals:
                if isinstance(answer, Failure):
                    failure = answer
                    made += answer.calls
                    break
                values[answer.start : answer.start + len(answer.values)] = answer.values
                made += len(answer.values)
        except BaseException:
            optimizer.charge(made + evaluator.outstanding)
            raise
        finally:
            arrivals.close()  # type: ignore[attr-defined]  # an evaluator's evaluate is a generator
        if failure is not None:
            optimizer.charge(made + evaluator.outstanding)
            _fail(optimizer, failure)
            continue
        try:
            stepped = optimizer.supply(values)
        except MonitorFailed as failed:
            _stop_for(optimizer, "monitor", failed.__cause__)
            stepped = False
        if stepped:
            yield


def _fail(optimizer: Optimizer, failure: Failure) -> None:
    """The objective failed: stop with its own words."""
    error = failure.error
    where = f"component {failure.component}, call {optimizer.nfev}"
    if isinstance(error, BadValue):
        optimizer.finish(Status.BAD_VALUE, f"{error} ({where})", failure=failure, final=False)
        return
    words = f"the objective raised {type(error).__name__}: {error} ({where}); result.failure has the traceback"
    optimizer.finish(Status.FAILED, words, failure=failure, final=False)


def _call(optimizer: Optimizer, callback: Callable[[Progress], Any]) -> None:
    try:
        callback(optimizer.progress())
    except StopIteration as stop:
        reason = f": {stop.value}" if stop.value is not None else ""
        optimizer.finish(Status.CALLBACK, f"the callback stopped the run{reason}")
    except Exception as error:
        _stop_for(optimizer, "callback", error)


def _stop_for(optimizer: Optimizer, who: str, error: BaseException | None) -> None:
    """The callback or the monitor failed: stop, but keep what was found."""
    assert error is not None
    failure = Failure(-1, optimizer.search.state.theta, -1, error, 0)
    words = f"the {who} raised {type(error).__name__}: {error}; result.failure has the traceback"
    optimizer.finish(Status.CALLBACK_FAILED, words, failure=failure, final=False)
