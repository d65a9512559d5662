"""`minimize` and `iterate`: the loop over a session and an evaluator, for a user's function."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from zerothresh.api.arguments import dimension_of
from zerothresh.api.coordinate_names import names_of
from zerothresh.api.display import Display
from zerothresh.api.optimizer import Optimizer
from zerothresh.api.result import Progress, Result
from zerothresh.basics import check
from zerothresh.basics.arrays import Array
from zerothresh.evaluate import evaluator_for
from zerothresh.objective.forms import Objective, wrap
from zerothresh.objective.vector_forms import VectorObjective, policy_for, wrap_vector
from zerothresh.rounds.estimator import Estimator
from zerothresh.runs import fingerprint, stored_width
from zerothresh.session.faults import Faults
from zerothresh.session.interrupts import Interrupts
from zerothresh.session.loop import call_back, interrupt, leave, steps
from zerothresh.session.status import Status


def minimize(
    fun: Any,
    x0: Any,
    k: int,
    *,
    budget: int,
    n: int | None = None,
    method: Any = "auto",
    options: dict[str, Any] | None = None,
    estimator: Estimator | None = None,
    seed: int | None = None,
    vectorized: bool = False,
    bounds: Any = None,
    include: Any = None,
    exclude: Any = None,
    groups: Any = None,
    constraint: Any = None,
    values: Any = None,
    strict: bool = False,
    outputs: str | None = None,
    loss: Any = None,
    workers: Any = 1,
    parallel: int | None = None,
    chunk: int | None = None,
    run: str | os.PathLike[str] | None = None,
    fsync: str = "batch",
    retries: int = 0,
    backoff: float = 0.1,
    jitter: float = 0.0,
    timeout: float | None = None,
    per_second: float | None = None,
    on_nan: str = "stop",
    on_error: str = "stop",
    max_time: float | None = None,
    cost: Callable[[int], float] | None = None,
    max_cost: float | None = None,
    patience: int | None = None,
    monitor: Callable[[Array], float] | None = None,
    callback: Callable[[Progress], Any] | None = None,
    progress: bool | None = None,
    names: Sequence[str] | None = None,
) -> Result:
    r"""Minimise F = 1/n sum f_i with at most k non-zero coordinates, from values of the f_i alone.

    Arguments
    ---------
    fun: function, ``fun(x) -> float`` for F itself; with ``n``, ``fun(x, i) -> float`` for component i. With
        ``vectorized``, ``fun(X)`` or ``fun(X, I)`` for X of shape (B, d) and I of shape (B,), returning (B,). Or a
        problem object with ``d``, ``n`` and ``values(points, components)``. Points arrive read-only. With ``outputs``,
        ``fun(x)`` returns an array (m,), or with ``vectorized`` ``fun(X)`` an array (B, m).
    x0: float array (d,), the start; or an int, the dimension d, for zeros; or None with a problem object.
    k: int, the largest number of non-zero coordinates (or groups).
    budget: int, the largest number of calls of f_i. It is never exceeded: a round that does not fit is not begun.
    n: int, default None: the number of components; None means that ``fun(x)`` is F itself. With ``outputs``, the
        number m of outputs; None means that the first call tells it.
    method: str or instance, default "auto", which needs no settings: several strategies compete for the budget. Other
        methods are given by name or as an instance, for example ``zt.VRSZHT(eta=0.01, m=10)``.
    options: dict, default None: the hyper-parameters of a method that is given by name.
    estimator: Estimator, default None: how gradients are estimated, ``zt.Estimator(q=10, mu=1e-3)``. ``auto`` and its
        parts choose for themselves; of an estimator that is given they take mu and the kind of difference.
    seed: int, default None: the same seed gives bit-identical results. None draws a seed, which is ``result.seed``.
    vectorized: bool, default False: whether ``fun`` takes many points at once.
    bounds: pair (low, high) of numbers or arrays (d,), or scipy.optimize.Bounds, default None. They must
        contain 0, and every queried point keeps them.
    include, exclude: lists of coordinates, default None: those that always have a place in the support, and those
        that never get one.
    groups: d labels, default None: coordinates with one label form a group, and k counts groups.
    constraint: Simplex, Budget, Ball or an object with ``project(v)``, default None: a further constraint, which the
        result and all iterates keep, such as ``zt.Simplex()`` or ``zt.Budget(total=1, low=0.01, high=0.5)``. If 0 does
        not keep it, the start is the nearest point that does, and a remark says so.
    values: array, list of d arrays, or "integers", "bytes" or "on/off", default None: the values that coordinates may
        have; 0 must be among them, except for coordinates of ``include``. No other point is queried.
    strict: bool, default False: whether every queried point keeps the constraint too, with at most k non-zeros, because
        the function is not defined elsewhere. Methods that cannot do so are refused; ``auto`` can.
    outputs: str, default None: "residuals" or "components" if one call returns m outputs. Of residuals r_i, F is the
        mean of loss(r_i); components are the f_i themselves. A call counts once, whatever m is. The first one is made
        at the start.
    loss: str, loss or function, default None, the square: "squared", "huber", "cauchy" or "quantile"; or one of
        ``zt.losses`` with its parameter, such as ``zt.losses.Huber(delta=0.1)``; or a function of an array of
        residuals, elementwise, or an object with ``value(r)`` and perhaps ``derivative(r)`` and ``second(r)``.
    workers: int, Processes, Client or Executor, default 1: a number of threads; or ``zt.Processes(16)`` for worker
        processes, of which one that dies is replaced; or a Client of Dask; or any ``concurrent.futures.Executor``.
    parallel: int, default None: how many calls take no longer together than one; None means the number of workers.
        Methods that can, as ``auto``, then ask for more points per round: fewer rounds, perhaps more calls. The result
        is a function of the seed and of this number, bit-identical for any number of workers and any order in which
        values arrive. With 1, no call is made that may turn out to be superfluous.
    chunk: int, default None: the largest number of points that a vectorised function gets at once; None means at most
        1024, and at most 128 MiB in all calls that can run at once.
    run: path, default None: a folder that keeps every value as it arrives. Called again with the same arguments, the
        run goes on where it stopped, whatever stopped it. The budget may grow.
    fsync: str, default "batch": when values must have reached the disk itself, which matters only for a power cut:
        "value" (before the next one is asked for), "batch" (about a tenth of a second after each batch) or "never".
    retries: int, default 0: how often a call that raised an exception or took too long is made again. Every attempt is
        counted. A call whose worker process died is made again at least once.
    backoff: float, default 0.1: seconds before the first retry; doubled for each further one.
    jitter: float, default 0.0: each of these pauses is multiplied by a random number between 1 - jitter and 1 + jitter,
        so that many programs do not come back to a service at the same instant.
    timeout: float, default None: seconds after which a call is given up. Its thread is abandoned; a worker
        process is killed.
    per_second: float, default None: the largest number of calls of ``fun`` that begin per second, evenly spaced, for a
        service that limits its rate. It may be below 1. Retries count, too.
    on_nan: str, default "stop": what happens to a value that is not finite: "stop" ends the run, "retry" asks again,
        "worst" takes the worst value seen so far instead, "mask" (with ``outputs``) leaves outputs that are NaN out of
        the mean.
    on_error: str, default "stop": what happens to a call that raised an exception, took too long or killed its worker
        process, and whose retries are used up: "stop" ends the run, "worst" takes the worst value seen so far instead.
    max_time: float, default None: seconds after which no more calls are begun in this session.
    cost, max_cost: function and float, default None: ``cost(i)`` is what a call of component i costs, and max_cost is
        the limit of what may be spent. With ``outputs``, ``cost(0)`` is what a call costs.
    patience: int, default None: the number of calls without a gain after which ``auto`` stops, even if some of the
        budget is left. With None it spends the whole budget, unless it can prove that nothing better is left.
    monitor: function, default None: ``monitor(x)`` gives F for the trace; its calls are not counted.
    callback: function, default None: ``callback(progress)`` is called after each step; raise StopIteration to stop.
    progress: bool, default None: None shows a progress line if standard error is a terminal, and otherwise writes log
        lines to the logger "zerothresh". True prints these lines if `logging` is not set up. False shows nothing.
    names: d strings, default None: the names of the coordinates, for what a result prints. The index of a pandas Series
        that is given as x0 is used without them.

    Returns
    -------
    Result, with the best point whose F is known (``x``, ``fun``), the numbers of calls and steps (``nfev``, ``nht``,
    ``nit``), why the run ended (``success``, ``status``, ``message``), what the method found and what the calls were
    made for (``remarks``, ``stages``), and the history (``trace``).

    Warns
    -----
    UserWarning, before the first call, if the budget is too small to tell which coordinates matter.

    >>> import numpy as np
    >>> import zerothresh as zt
    >>> goal = np.array([0, 0, 5.0, 0, 0, -2.0, 0, 0])
    >>> found = zt.minimize(lambda x: ((x - goal) ** 2).sum(), 8, 2, budget=500, seed=1)
    >>> found.support
    array([2, 5])
    """
    objective, start = objective_of(fun, x0, n, vectorized, outputs, loss, on_nan)
    check.function("callback", callback, "callback(progress)")
    labels = names_of(names, x0, objective.d)
    faults = Faults(retries, backoff, max_time, on_nan, on_error, jitter)
    width = stored_width(run) if parallel is None else parallel
    evaluator = evaluator_for(objective, workers, chunk, timeout, per_second, width)
    with (
        Interrupts(evaluator) as interrupts,
        Optimizer(
            start,
            k,
            budget=budget,
            n=n if outputs is not None else objective.n,
            method=method,
            options=options,
            estimator=estimator,
            seed=seed,
            bounds=bounds,
            include=include,
            exclude=exclude,
            groups=groups,
            constraint=constraint,
            values=values,
            strict=strict,
            outputs=outputs,
            loss=loss,
            parallel=evaluator.width if width is None else width,
            monitor=monitor,
            on_nan=on_nan,
            on_error=on_error,
            cost=cost,
            max_cost=max_cost,
            patience=patience,
            run=run,
            fsync=fsync,
            fingerprint=fingerprint(fun) if run is not None else None,
        ) as optimizer,
    ):
        recorded = optimizer.recorded
        _agree(objective, optimizer)
        with Display(optimizer, progress, evaluator, max_time) as display:
            try:
                for _ in steps(recorded, evaluator, faults, display.update, interrupts.requested):
                    if callback is not None:
                        call_back(recorded, callback, optimizer.progress())
            except KeyboardInterrupt:
                interrupt(recorded, evaluator)
            except BaseException as error:
                leave(recorded, evaluator, error)
                raise
            finally:
                evaluator.close()
        if interrupts.requested():  # it may have come after the last call, and must not be passed over
            interrupt(recorded, evaluator)
        result = optimizer.result()
        result.names = labels
        return result


def iterate(
    fun: Any,
    x0: Any,
    k: int,
    *,
    n: int | None = None,
    vectorized: bool = False,
    workers: Any = 1,
    chunk: int | None = None,
    retries: int = 0,
    backoff: float = 0.1,
    jitter: float = 0.0,
    timeout: float | None = None,
    per_second: float | None = None,
    max_time: float | None = None,
    **arguments: Any,
) -> Iterator[Progress]:
    """Run `minimize` as a generator that yields a `Progress` after each step; leave the loop to stop.

    The arguments are those of `minimize`, except for ``callback``, ``progress`` and ``names``.

    >>> import zerothresh as zt
    >>> for state in zt.iterate(lambda x: ((x - 1) ** 2).sum(), 4, 2, budget=300, method=zt.FGZOHT(eta=0.1), seed=0):
    ...     if state.nit == 3:
    ...         break
    >>> state
    <step 3: F = ?, 33 of 300 calls, 2 non-zeros>
    """
    many = (arguments.get("outputs"), arguments.get("loss"), arguments.get("on_nan", "stop"))
    objective, start = objective_of(fun, x0, n, vectorized, *many)
    bad = arguments.get("on_nan", "stop"), arguments.get("on_error", "stop")
    faults = Faults(retries, backoff, max_time, *bad, jitter)
    width = arguments.get("parallel")
    width = stored_width(arguments.get("run")) if width is None else width
    evaluator = evaluator_for(objective, workers, chunk, timeout, per_second, width)
    arguments["parallel"] = evaluator.width if width is None else width
    if arguments.get("run") is not None:
        arguments.setdefault("fingerprint", fingerprint(fun))
    with Optimizer(start, k, n=n if many[0] is not None else objective.n, **arguments) as optimizer:
        recorded, interrupts = optimizer.recorded, Interrupts(evaluator)
        _agree(objective, optimizer)
        moves = steps(recorded, evaluator, faults, stopping=interrupts.requested)
        try:
            while True:
                with interrupts:  # not while the caller has the turn
                    try:
                        next(moves)
                    except StopIteration:
                        break
                    except BaseException as error:
                        if not isinstance(error, KeyboardInterrupt):
                            leave(recorded, evaluator, error)
                        raise
                yield optimizer.progress()
        except KeyboardInterrupt:
            interrupt(recorded, evaluator)
        finally:
            evaluator.close()
        if interrupts.requested():  # it may have come in the last call
            interrupt(recorded, evaluator)
        result = optimizer.result()
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(result.message)
        if not result.status.success:  # a generator has no result to put a status into
            raise RuntimeError(result.message) from (None if result.failure is None else result.failure.error)


def objective_of(
    fun: Any, x0: Any, n: int | None, vectorized: bool, outputs: Any = None, loss: Any = None, on_nan: str = "stop"
) -> tuple[Objective, Any]:
    """Wrap the user's function, and return it with the start or the dimension."""
    d = dimension_of(x0)
    policy = policy_for(outputs, loss, n, on_nan)
    objective = wrap(fun, d, n, vectorized) if policy is None else wrap_vector(fun, d, policy, vectorized)
    return objective, objective.d if d is None else x0


def _agree(objective: Objective, optimizer: Optimizer) -> None:
    """Let the objective know what the run knows by now of its values."""
    objective.finite = optimizer.session.on_nan != "worst"
    outputs = optimizer.task.outputs
    if isinstance(objective, VectorObjective) and outputs is not None and outputs.m is not None:
        objective.policy.learn(outputs.m)  # from the calls of an earlier session
