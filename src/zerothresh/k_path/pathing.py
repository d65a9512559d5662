"""`zerothresh.path`: the best points for several k, at little more than the price of one."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np

from zerothresh.api.arguments import dimension_of, start_of
from zerothresh.api.coordinate_names import names_of
from zerothresh.api.fit import fit_of
from zerothresh.api.minimizer import minimize
from zerothresh.api.result import Progress, Result
from zerothresh.api.several_k import values_of_k
from zerothresh.basics import check
from zerothresh.constraint.threshold import Constraint
from zerothresh.k_path.criteria import held_out, information, likelihood_of, one_standard_error
from zerothresh.k_path.one_k import RunForK
from zerothresh.k_path.path_folder import PathFolder
from zerothresh.k_path.path_program import Book, PathProgram, Segment, count_of, holder_of_best
from zerothresh.k_path.path_result import PathResult, listed
from zerothresh.losses import Squared, loss_of
from zerothresh.methods.registry import make, name_of
from zerothresh.rounds.estimator import Estimator
from zerothresh.rounds.method import is_sparse, must_improve
from zerothresh.runs import RunError
from zerothresh.session.machine import what_would_help
from zerothresh.session.status import Status

SPENT = "the budget of the path is spent"
NO_CALL = "no call was made for this k"
NOTHING = "nothing better than the start was found"


def path(
    fun: Any,
    x0: Any,
    ks: Iterable[int],
    *,
    budget: int,
    n: int | None = None,
    cv: int | None = None,
    likelihood: str | None = None,
    names: Sequence[str] | None = None,
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
    callback: Callable[[Progress], Any] | None = None,
    progress: bool | None = None,
) -> PathResult:
    r"""Minimise F for several k, the largest number of non-zero coordinates, and help to choose one.

    A value that one k has paid for is free for all others. What does not depend on k is learnt once: the diagnosis,
    gradients at the start, and, where every component is a function of one linear score, the whole model of F. A point
    that is found for one k is known to all larger ones, so F never rises with k.

    Arguments
    ---------
    fun, x0: as in `minimize`.
    ks: whole numbers, for example ``[1, 2, 5, 10]`` or ``range(1, 21)``.
    budget: int, the largest number of calls of f_i for the whole path. It is never exceeded.
    cv: int, default None: the number of folds of a cross-validation over the components (of ``n`` or ``outputs``). Each
        fold leaves some components out, and F on these at the points found without them is the held-out F. At most half
        of the budget goes to the path itself before the folds get theirs.
    likelihood: str, default None: what F is, for AIC = D + 2 s and BIC = D + s log n at a point with s non-zeros.
        "gaussian": the mean square of n residuals, D = n log F. "logistic", "poisson" or "nll": the mean negative
        log-likelihood of n observations, D = 2 n F.
    names: d strings, default None: the names of the coordinates; those of a pandas Series that is given as x0 are used.
    run: path, default None: a folder that keeps every value as it arrives. The same call goes on where it stopped and
        pays for nothing twice; other values of k may be added, and the budget may grow.
    callback: function, default None: called after each step for any k; raise StopIteration to stop.

    All other arguments are those of `minimize`. ``patience`` holds for each k.

    Returns
    -------
    PathResult, with a result per k (``results``, ``path[k]``), ``fun``, ``best_k``, ``frame()`` and ``plot()``.

    >>> import numpy as np
    >>> import zerothresh as zt
    >>> goal = np.array([0, 0, 5.0, 0, 0, -2.0, 0, 0])
    >>> found = zt.path(lambda x: ((x - goal) ** 2).sum(), 8, [1, 2, 3], budget=600, seed=1)
    >>> found.fun.round(6).tolist(), found[2].support.tolist()
    ([4.0, 0.0, 0.0], [2, 5])
    """
    wanted = values_of_k(ks)
    d = dimension_of(x0)
    if d is None:
        d = check.count("the problem's d", getattr(fun, "d", None))
    labels = names_of(names, x0, d)
    budget = check.count("budget", budget, what=" (calls of the objective)")

    def feasible(k: int) -> Constraint:
        return Constraint(
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

    for k in wanted:
        if groups is None and k > d:
            raise ValueError(f"k = {k} is larger than the dimension d = {d}: take every k from 1 to {d}")
        try:
            limits = feasible(k)
        except ValueError as error:
            raise ValueError(f"{error} (for k = {k} of the path)") from None
    largest = d if groups is None else int(np.unique(np.asarray(limits.groups)).size)
    kind = likelihood_of(likelihood)
    if kind == "gaussian" and not (loss is None or isinstance(loss_of(loss), Squared)):
        raise ValueError("likelihood='gaussian' goes with the squared loss, of which F is the mean")
    components = n if n is not None else getattr(fun, "n", 1)
    many = outputs is not None or (check.whole(components) or 1) > 1
    if kind is not None and not many:
        raise ValueError("likelihood needs the number of observations: pass n=... or outputs=...")
    number = 0
    if cv is not None:
        number = check.count("cv", cv, low=2, what=" (folds), or None")
        if not many:
            raise ValueError("cv needs components to leave out: pass n=... or outputs=...")
        if (outputs is None or n is not None) and number > (check.whole(components) or 1):
            what = "components" if outputs is None else "outputs"
            raise ValueError(f"cv = {number} folds need as many {what}, but n = {components}: take fewer folds")
    made = _made(method, options, patience)
    program = PathProgram(made)
    book = program.book
    book.constraint = feasible
    book.x0 = None if x0 is None or check.whole(x0) is not None else start_of(x0)
    folder = None if run is None else PathFolder(run)
    earlier = [] if folder is None else folder.segments()
    book.segments = _segments(folder, wanted, budget, number)
    if folder is not None and book.segments != earlier:
        book.begin = folder.writer(book.segments)  # nothing is kept of a call that is refused
    result = minimize(
        fun,
        x0,
        largest,
        budget=budget,
        n=n,
        method=program,
        estimator=estimator,
        seed=seed,
        vectorized=vectorized,
        bounds=bounds,
        include=include,
        exclude=exclude,
        groups=groups,
        constraint=constraint,
        values=values,
        strict=strict,
        outputs=outputs,
        loss=loss,
        workers=workers,
        parallel=parallel,
        chunk=chunk,
        run=None if folder is None else folder.calls,
        fsync=fsync,
        retries=retries,
        backoff=backoff,
        jitter=jitter,
        timeout=timeout,
        per_second=per_second,
        on_nan=on_nan,
        on_error=on_error,
        max_time=max_time,
        cost=cost,
        max_cost=max_cost,
        callback=callback,
        progress=progress,
    )
    found = _result(result, book, wanted, number, kind, labels)
    if folder is not None and (book.begun or earlier):
        folder.write(book.segments if book.begun else earlier, found.columns())
    return found


def _made(method: Any, options: dict[str, Any] | None, patience: int | None) -> Any:
    """Return the method of the runs."""
    made: Any = make("auto" if method is None else method, options)
    if not is_sparse(made):
        raise ValueError(f"{name_of(made)} does not keep the l0 constraint, so that it has no path over k")
    if patience is not None:
        if not (is_dataclass(made) and hasattr(made, "patience")):
            raise ValueError(f"patience goes with method='auto'; {name_of(made)} runs until its budget is spent")
        made = replace(made, patience=check.count("patience", patience, what=" (calls without a gain), or None"))  # type: ignore[type-var]
    return made


def _segments(folder: PathFolder | None, ks: list[int], budget: int, cv: int) -> list[Segment]:
    """Return what the path has to do: what earlier sessions were asked for, and what is new."""
    if folder is None:
        return [Segment(tuple(ks), budget, cv)]
    folder.check_new()
    segments = folder.segments()
    known = {k for segment in segments for k in segment.ks}
    folded = next((segment.cv for segment in segments if segment.cv), 0)
    if cv and folded and cv != folded:
        raise RunError(f"the path in {folder.folder} was cut into {folded} folds, not {cv}: take cv={folded}")
    if segments and budget < segments[-1].budget:
        raise RunError(
            f"the path in {folder.folder} has a budget of {segments[-1].budget} calls, which is more than the {budget} "
            "that were given now: a budget may stay or grow"
        )
    new = tuple(k for k in ks if k not in known)
    cv = cv or folded
    if new or not segments or budget > segments[-1].budget or (cv and not segments[-1].cv):
        segments.append(Segment(new, budget, cv))
    return segments


def _result(
    result: Result, book: Book, ks: list[int], cv: int, likelihood: str | None, names: tuple[str, ...] | None
) -> PathResult:
    """Return what has been found."""
    results = [_result_for(result, book, k, names) for k in ks]
    fun = np.array([one.fun for one in results])
    everything = all(book.runs[k].ended for k in ks if k in book.runs) and len(book.runs) > 0
    status, message = result.status, result.message
    if status is Status.CONVERGED:
        message = "every k has been solved"
        if not everything:
            status, message = Status.BUDGET, "the budget is spent"
    if book.refusal:
        status, message = Status.BAD_VALUE, book.refusal
    if status.success:
        message += _shortcomings(book, ks, results, status, result.budget)
    found = PathResult(
        ks=tuple(ks),
        results=results,
        fun=fun,
        nfev=result.nfev,
        budget=result.budget,
        success=status.success and all(one.success for one in results),
        status=status,
        message=message,
        seed=result.seed,
        failure=result.failure,
        names=names,
    )
    if likelihood is not None:
        observations = next((count_of(run.task) for run in book.runs.values()), 1)
        both = [information(one.fun, one.support.size, observations, likelihood) for one in results]
        found.aic, found.bic = np.array([a for a, _ in both]), np.array([b for _, b in both])
        if not np.isnan(found.bic).all():
            found.best_k, found.chosen_by = ks[int(np.nanargmin(found.bic))], "which has the lowest BIC"
    if cv and not book.refusal:
        found.held_out, found.held_out_error = held_out(book.held_out, ks, cv)
        found.best_k = one_standard_error(ks, found.held_out, found.held_out_error)
        found.chosen_by = "the smallest with held-out F within one standard error of the lowest"
        unknown = [k for k, value in zip(ks, found.held_out, strict=True) if np.isnan(value)]
        if unknown:  # a choice among the others alone could mislead
            found.best_k, found.chosen_by = None, ""
            some = "for any k" if len(unknown) == len(ks) else f"for k = {', '.join(map(str, unknown))}"
            why = f"the budget of {result.budget:,} calls was too small to find points without each fold {some}"
            advice = "raise it"
            if any(np.isnan(book.held_out.get((k, fold), 0.0)) for k in unknown for fold in range(cv)):
                why, advice = f"a fold has no output that is a number {some}", "take fewer folds, or another seed"
            said = f"{why}, so that held-out F is not known there, and no k is chosen: {advice}"
            warnings.warn(said, stacklevel=3)
    return found


def _idle(run: RunForK | None) -> bool:
    """Whether a run has paid for nothing, though it has more to ask."""
    return run is None or (run.paid == 0 and not run.ended)


def _shortcomings(book: Book, ks: list[int], results: Sequence[Result], status: Status, budget: int) -> str:
    """Return what the message adds about k without a success, and warn of those that got no calls."""
    by_k = dict(zip(ks, results, strict=True))
    idle = [k for k in ks if _idle(book.runs.get(k))]
    poor = [k for k in ks if k not in idle and not by_k[k].success and not np.isnan(by_k[k].fun)]
    unknown = [k for k in ks if k not in idle and np.isnan(by_k[k].fun)]
    said = ""
    if poor:
        advice = what_would_help(book.runs[poor[0]].task, by_k[poor[0]].status)
        said += f"; {NOTHING} for {listed(poor)}: {advice}"
    if unknown:
        said += f"; F is not known for {listed(unknown)}"
    if idle:
        said += f"; no call was made for {listed(idle)}"
    if idle and status is Status.BUDGET:
        warnings.warn(
            f"the budget of {budget:,} calls left none for {listed(idle)}, where nothing was searched: raise it",
            stacklevel=4,
        )
    return said


def _result_for(result: Result, book: Book, k: int, names: tuple[str, ...] | None) -> Result:
    """Return the result for one k: the best point that is known to be feasible for it."""
    run, best = book.runs.get(k), book.best(k)
    start = result.x_last * 0.0 if run is None else run.standing.theta
    x, fun = (start, np.nan) if best is None else best
    search = None if run is None else run.standing.search
    holder = holder_of_best(list(book.runs.values()), k)
    outputs = None if holder is None else holder.standing.best_outputs
    fit = None
    if holder is not None and holder.task.outputs is not None:
        box, loss = holder.task.constraint.box, holder.task.outputs.loss
        fit = fit_of(x, outputs, holder.standing.search.linearisation, loss, box)
    proven = run is not None and run.ended and bool(run.standing.search.certified)
    ended = run is not None and run.ended and not run.why
    status, message = result.status, result.message if run is None or not run.why else run.why
    if ended:
        status, message = Status.CONVERGED, "the method has nothing more to ask"
    elif status is Status.CONVERGED:
        status, message = Status.BUDGET, message if run is not None and run.why else SPENT
    success = best is not None and not _idle(run)
    if success and run is not None and must_improve(run.task.method) and not proven:
        success = not np.array_equal(x, run.task.theta0)
        if not success and status.success:
            message = f"{message}; {NOTHING}: {what_would_help(run.task, status)}"
    if status.success and _idle(run):
        message = f"{NO_CALL}: {'raise the budget of the path' if status is Status.BUDGET else message}"
    return Result(
        x=x.copy(),
        fun=fun,
        support=np.flatnonzero(x),
        residuals=None if outputs is None else outputs.copy(),
        fit=fit,
        jacobian=None if fit is None else fit.jacobian.copy(),
        nfev=0 if run is None else run.paid,
        nht=0 if run is None else run.standing.nht,
        nit=0 if run is None else run.standing.nit,
        x_last=start.copy(),
        success=success,
        status=status,
        message=message,
        remarks=[] if search is None else list(search.remarks),
        stages=[] if search is None or run is None or run.paid < run.asked else list(search.stages),
        trace=result.trace if run is None else run.trace,
        failure=result.failure,
        seed=result.seed,
        budget=result.budget,
        spent=result.spent,
        method=None if run is None else run.task.method,
        estimator=result.estimator,
        k=k,
        certified=proven,
        names=names,
    )
