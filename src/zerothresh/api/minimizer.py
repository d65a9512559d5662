"""The only loop: ask, evaluate, tell."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerothresh.api.arguments import dimension_of
from zerothresh.api.display import Display
from zerothresh.api.optimizer import Optimizer
from zerothresh.api.result import Progress, Result
from zerothresh.basics import check
from zerothresh.evaluate import Arrival, Evaluator, Failure, evaluator_for
from zerothresh.evaluate.executor import OnExecutor
from zerothresh.objective.forms import BadValue, Objective, wrap
from zerothresh.rounds.estimator import Estimator
from zerothresh.runs import fingerprint
from zerothresh.session.status import MonitorFailed, Status

Array = NDArray[np.float64]


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
    workers: Any = 1,
    chunk: int | None = None,
    run: str | os.PathLike[str] | None = None,
    fsync: str = "batch",
    retries: int = 0,
    backoff: float = 0.1,
    timeout: float | None = None,
    on_nan: str = "stop",
    max_time: float | None = None,
    cost: Callable[[int], float] | None = None,
    max_cost: float | None = None,
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
    method: "auto" needs no settings; or an instance such as ``zt.VRSZHT(eta=0.01, m=10)``, or a name with
        ``options``.
    options: the method's hyper-parameters, if it is given by name.
    estimator: how gradients are estimated, ``zt.Estimator(q=10, mu=1e-3)``. ``auto`` and its parts choose
        for themselves; of an estimator that is given they take mu and the kind of difference.
    seed: a whole number; the same seed gives the same bits. None draws one: see ``result.seed``.
    vectorized: whether ``fun`` takes many points at once.
    bounds: (low, high), numbers or arrays, around 0; also the queried points stay inside.
    include, exclude: coordinates that always have, and never get, a place in the support.
    groups: a label for each coordinate; k then counts groups.
    workers: 1; a number of threads; or any ``concurrent.futures.Executor``. The bits are the same.
    chunk: points that a vectorised function gets at once, by default at most 1024.
    run: a folder that keeps every value as it arrives; called again with the same arguments, the run
        goes on where it stopped, whatever stopped it. The budget may grow.
    fsync: when values must have reached the disk itself, which only a power cut can tell apart:
        "value" (before the next is asked for), "batch" (about a tenth of a second after each batch), "never".
    retries: how often a call that raised, or took too long, is made again. Each one is charged.
    backoff: seconds before the first retry; doubled for each further one.
    timeout: seconds after which a call is given up. Its worker is left behind.
    on_nan: what a value that is not finite does: "stop" the run, be made again ("retry"), or count as
        the "worst" value seen so far.
    max_time: seconds after which no more calls are begun, in this session.
    cost, max_cost: ``cost(i)``, what a call of component i costs, and how much may be spent.
    monitor: ``monitor(x)`` gives F for the trace; its calls are not charged.
    callback: ``callback(progress)`` after each step; raise StopIteration to stop.
    progress: True for a live bar, False for none, None for one on a terminal.

    >>> import zerothresh as zt
    >>> goal = np.array([0, 0, 5.0, 0, 0, -2.0, 0, 0])
    >>> found = zt.minimize(lambda x: ((x - goal) ** 2).sum(), 8, 2, budget=500, seed=1)
    >>> found.support
    array([2, 5])
    """
    objective, start = _objective(fun, x0, n, vectorized)
    check.function("callback", callback, "callback(progress)")
    faults = Faults(retries, backoff, max_time, on_nan)
    evaluator = evaluator_for(objective, workers, chunk, timeout)
    with Optimizer(
        start,
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
        on_nan=on_nan,
        cost=cost,
        max_cost=max_cost,
        run=run,
        fsync=fsync,
        fingerprint=fingerprint(fun) if run is not None else None,
    ) as optimizer:
        objective.finite = optimizer.on_nan != "worst"
        with Display(optimizer, progress) as display:
            try:
                for _ in _steps(optimizer, evaluator, faults, display.update):
                    if callback is not None:
                        _call(optimizer, callback)
            except KeyboardInterrupt:
                _interrupted(optimizer, evaluator)
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
    retries: int = 0,
    backoff: float = 0.1,
    timeout: float | None = None,
    max_time: float | None = None,
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
    objective, start = _objective(fun, x0, n, vectorized)
    faults = Faults(retries, backoff, max_time, arguments.get("on_nan", "stop"))
    evaluator = evaluator_for(objective, workers, chunk, timeout)
    if arguments.get("run") is not None:
        arguments.setdefault("fingerprint", fingerprint(fun))
    with Optimizer(start, k, n=objective.n, **arguments) as optimizer:
        objective.finite = optimizer.on_nan != "worst"
        try:
            for _ in _steps(optimizer, evaluator, faults):
                yield optimizer.progress()
        except KeyboardInterrupt:
            _interrupted(optimizer, evaluator)
            raise
        else:
            result = optimizer.result()
            if not result.success:  # a generator has no result to put a status into
                raise RuntimeError(result.message) from (None if result.failure is None else result.failure.error)
        finally:
            evaluator.close()


@dataclass(frozen=True)
class Faults:
    """What is done about calls that fail, and when time is up."""

    retries: int = 0
    backoff: float = 0.1
    max_time: float | None = None
    on_nan: str = "stop"

    def __post_init__(self) -> None:
        check.count("retries", self.retries, low=0)
        if self.backoff != 0:
            check.positive("backoff", self.backoff, what=" (seconds), or 0")
        if self.on_nan == "retry" and self.retries == 0:
            raise ValueError("on_nan='retry' needs retries of at least 1: how often a call may be made again")
        if self.max_time is not None:
            check.positive("max_time", self.max_time, what=" (seconds), or None")

    def may_retry(self, error: BaseException, tried: int) -> bool:
        """Whether a call that failed for the ``tried``-th time is made again."""
        if isinstance(error, BadValue) and self.on_nan != "retry":
            return False
        return tried <= self.retries


def _objective(fun: Any, x0: Any, n: int | None, vectorized: bool) -> tuple[Objective, Any]:
    d = dimension_of(x0)
    objective = wrap(fun, d, n, vectorized)
    return objective, objective.d if d is None else x0


def _steps(
    optimizer: Optimizer, evaluator: Evaluator, faults: Faults, tick: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """The loop: yields after each step."""
    begun = time.monotonic()
    deadline = np.inf if faults.max_time is None else begun + faults.max_time
    while (current := optimizer.open_round) is not None:
        if time.monotonic() >= deadline:
            _time_is_up(optimizer, faults)
            return
        missing, tried, stepped = current.missing(), dict[int, int](), False
        while missing and optimizer.open_round is current:
            try:
                stepped, failures, late, trouble = _evaluate(
                    optimizer, evaluator, missing, faults, tried, deadline, tick
                )
            except MonitorFailed as failed:
                _stop_for(optimizer, "monitor", failed.__cause__)
                return
            missing = [(f.row, f.row + f.calls) for f in failures]
            lost = next((f for f in failures if not faults.may_retry(f.error, tried[f.row])), None)
            if trouble is not None:
                words = f"the run folder cannot be written ({trouble.strerror or trouble}): make room, and run it again"
                optimizer.finish(Status.DISK, f"{words}; nothing that was paid for is lost", final=False)
            elif lost is not None:
                _fail(optimizer, lost, tried[lost.row])
            elif late and optimizer.open_round is current:
                _time_is_up(optimizer, faults)
            elif missing and optimizer.check_fit(missing):
                _pause(optimizer, faults, max(tried.values()), deadline)
        if stepped:
            yield


def _evaluate(
    optimizer: Optimizer,
    evaluator: Evaluator,
    missing: list[tuple[int, int]],
    faults: Faults,
    tried: dict[int, int],
    deadline: float,
    tick: Callable[[], None],
) -> tuple[bool, list[Failure], bool, OSError | None]:
    """Ask for some rows of the open round and hand on what comes; no more is asked for once all is lost, or late.

    Returns whether a step was made, the failures, whether time was up, and what is wrong with the disk.
    """
    plan = optimizer.open_plan
    assert plan is not None
    stepped, failures, late = False, list[Failure](), False
    try:
        optimizer.prepare()
    except OSError as error:
        return stepped, failures, late, error
    trouble: OSError | None = None
    timed = deadline != np.inf
    for answer in evaluator.evaluate(plan, missing):
        try:
            if isinstance(answer, Arrival):
                stepped = optimizer.deliver(answer.start, answer.values)
            else:
                failures.append(answer)
                tried[answer.row] = tried.get(answer.row, 0) + 1
                if not faults.may_retry(answer.error, tried[answer.row]):
                    evaluator.halt()
                optimizer.fail(answer)
        except OSError as error:
            trouble = error
        trouble = trouble or optimizer.disk_trouble
        if timed and time.monotonic() >= deadline:
            late = True
        if late or trouble is not None:
            evaluator.halt()  # what is under way still comes, and has a place on the disk
        tick()
    return stepped, failures, late, trouble


def _pause(optimizer: Optimizer, faults: Faults, tried: int, deadline: float) -> None:
    """Wait before calls are made again, but not beyond the time that there is."""
    wait = min(60.0, faults.backoff * 2.0 ** min(tried - 1, 20))
    left = deadline - time.monotonic()
    time.sleep(max(0.0, min(wait, left)))
    if left <= wait:
        _time_is_up(optimizer, faults)


def _time_is_up(optimizer: Optimizer, faults: Faults) -> None:
    words = f"max_time = {faults.max_time:g} s have passed after {optimizer.nfev} of {optimizer.task.budget} calls"
    optimizer.finish(Status.TIME, words, final=False)


def _fail(optimizer: Optimizer, failure: Failure, tried: int) -> None:
    """The objective failed for good: stop with its own words."""
    error = failure.error
    times = "" if tried == 1 else f", {tried} times"
    where = f"component {failure.component}, call {optimizer.nfev}{times}"
    if isinstance(error, BadValue):
        optimizer.finish(Status.BAD_VALUE, f"{error} ({where})", failure=failure, final=False)
        return
    words = f"the objective raised {failure.words} ({where}); result.failure has the traceback"
    optimizer.finish(Status.FAILED, words, failure=failure, final=False)


def _interrupted(optimizer: Optimizer, evaluator: Evaluator) -> None:
    """Ctrl-C: wait for calls under way, so that none is paid for in vain; a second Ctrl-C does not wait."""
    with suppress(KeyboardInterrupt, OSError, MonitorFailed):
        if evaluator.outstanding and isinstance(evaluator, OnExecutor):
            words = f"waiting for {evaluator.outstanding} calls under way; Ctrl-C again leaves them"
            print(f"zerothresh: {words}", file=sys.stderr, flush=True)
        for answer in evaluator.drain():
            if isinstance(answer, Failure):
                optimizer.fail(answer)
            elif optimizer.open_round is not None:
                optimizer.deliver(answer.start, answer.values)
    optimizer.charge(evaluator.outstanding)
    words = "stopped by Ctrl-C; the best point so far is returned"
    optimizer.finish(Status.INTERRUPTED, words, final=False)


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
    words = f"the {who} raised {failure.words}; result.failure has the traceback"
    optimizer.finish(Status.CALLBACK_FAILED, words, failure=failure, final=False)
