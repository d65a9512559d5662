"""`zerothresh solve`: minimise a function that a module or a file defines."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from zerothresh.cli import options
from zerothresh.cli.long_run_log import long_run_log
from zerothresh.cli.messages import FAILED, INTERRUPTED, BadInput, own_traceback, refusing, say, speaking

if TYPE_CHECKING:
    from zerothresh.api.result import Result

EXAMPLE = (
    "[bold]Example[/bold]. The file box.py holds `def loss(x, i): ...`, the loss of component i at x:\n\n"
    "  zerothresh solve box:loss --dim 500 -k 20 --components 200 --budget 200000 "
    "--run runs/a --out result.json\n\n"
    "[bold]Exit codes[/bold]. 0: success. 1: a failure stopped the run, or auto found nothing better than the "
    "start; the best point is still written. 2: bad input; the function was not called. 130: stopped "
    "by Ctrl-C or SIGTERM; the best point is written."
)


def solve(
    k: options.K,
    budget: options.Budget,
    objective: options.OptionalObjective = None,
    csv: options.Csv = None,
    target: options.Target = None,
    method: options.Method = "auto",
    dim: options.Dim = None,
    components: options.Components = None,
    x0: options.Start = None,
    bounds: options.Bounds = None,
    bounds_file: options.BoundsFile = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    groups: options.Groups = None,
    simplex: options.Simplex = None,
    values: options.Values = None,
    strict: options.Strict = False,
    vectorized: options.Vectorized = False,
    outputs: options.Outputs = None,
    loss: options.Loss = None,
    settings: options.Settings = None,
    q: options.Q = None,
    mu: options.Mu = None,
    s2: options.S2 = None,
    directions: options.Directions = None,
    difference: options.Difference = None,
    independent: options.Independent = False,
    per_component: options.PerComponent = False,
    retries: options.Retries = 0,
    backoff: options.Backoff = 0.1,
    jitter: options.Jitter = 0.0,
    timeout: options.Timeout = None,
    per_second: options.PerSecond = None,
    on_nan: options.OnNan = "stop",
    on_error: options.OnError = "stop",
    max_time: options.MaxTime = None,
    patience: options.Patience = None,
    seed: options.Seed = None,
    workers: options.Workers = 1,
    processes: options.ProcessCount = None,
    parallel: options.Parallel = None,
    run: options.Run = None,
    fsync: options.Fsync = "batch",
    out: options.Out = None,
    trace: options.Trace = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Minimise a function with at most k non-zero coordinates, from its values alone."""
    with speaking():
        from zerothresh.api.minimizer import minimize
        from zerothresh.basics import check
        from zerothresh.cli import load, outcome
        from zerothresh.cli import outputs as written_files
        from zerothresh.constraint.shares import Simplex
        from zerothresh.evaluate.worker_processes import Processes
        from zerothresh.rounds.estimator import Estimator
        from zerothresh.runs import FSYNC_MODES

        with refusing():
            check.one_of("--fsync", fsync, FSYNC_MODES)
            if out is not None and out == trace:
                raise BadInput(f"--out and --trace both name {out}: name two different files")
            for path in filter(None, (out, trace)):
                written_files.check(path, run, force=force)
            if processes is not None:
                if workers != 1:
                    raise BadInput("--workers counts threads, and --processes processes: give one of the two")
                check.count("--processes", processes)
            chosen = load.method(method, settings or [])
            given: dict[str, Any] = {"q": q, "mu": mu, "s2": s2, "difference": difference, "directions": directions}
            given |= {"shared": False if independent else None, "common": False if per_component else None}
            wanted = {name: value for name, value in given.items() if value is not None}
            estimator = Estimator(**wanted) if wanted else None
            model = None if csv is None else load.table(csv, target, loss)
            if (objective is None) == (model is None):
                raise BadInput("name a function, as module:function, or a table with --csv and --target")
            fun: Any = load.objective(objective) if objective is not None else None
            chosen_loss = load.loss(loss) if model is None else None
            chosen_include = load.names_in("--include", include, model)
            chosen_exclude = load.names_in("--exclude", exclude, model)
            if model is not None:
                model.refuse({"--groups": groups, "--simplex": simplex, "--values": values})
                fun, chosen_include = model.problem, model.include(chosen_include, chosen_exclude, [k])
            start = load.start(x0, dim, fun) if model is None else model.start(x0)
            if run is not None and not quiet:
                _announce(run, budget)
            home = Path.cwd()  # the function may change the current folder, but the files belong here
            begun = time.perf_counter()
            # SIGTERM ends the run like Ctrl-C, also where SIGINT is ignored, as in a job that a script started with &.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            result = long_run_log()(minimize)(
                fun,
                start,
                k if model is None else model.k(k),
                budget=budget,
                n=components,
                method=chosen,
                estimator=estimator,
                seed=seed,
                vectorized=vectorized,
                outputs=outputs,
                loss=chosen_loss,
                bounds=load.bounds(bounds, bounds_file, model),
                include=chosen_include,
                exclude=chosen_exclude,
                names=None if model is None else model.names,
                groups=load.groups(groups),
                constraint=None if simplex is None else Simplex(simplex),
                values=load.values(values),
                strict=strict,
                workers=workers if processes is None else Processes(processes),
                parallel=parallel,
                run=run,
                fsync=fsync,
                retries=retries,
                backoff=backoff,
                jitter=jitter,
                timeout=timeout,
                per_second=per_second,
                on_nan=on_nan,
                on_error=on_error,
                max_time=max_time,
                patience=patience,
                progress=False if quiet else None,
            )
            seconds = time.perf_counter() - begun
        if result.failure is not None and result.status.name == "FAILED":
            say(own_traceback(result.failure.error), err=True, nl=False)
        if not quiet:
            outcome.show(
                result, k, seconds, out, trace, verbose=verbose, columns=None if model is None else model.names
            )
            if model is not None:
                say("\n".join(load.model_lines(model, target, result.x)))
        if not result.success:
            say(f"zerothresh: {outcome.reason(result)}", err=True)
        useless = model is not None and result.success and model.is_useless(result.x)
        if model is not None and useless:
            say(f"zerothresh: {model.advice(result.nfev)}", err=True)
        os.chdir(home)
        named = objective if objective is not None else f"{csv}:{target}"
        coefficients = None if model is None else model.model(result.x)
        written = outcome.write(result, named, k, seconds, run, out, trace, coefficients)
        if run is not None and not (quiet and result.success):
            _how_to_continue(result, run)
    raise typer.Exit(_code(result) if written and not useless else FAILED)


def _announce(run: Path, budget: int) -> None:
    """Print what the folder holds; one that cannot be used, or that belongs to another run, is refused later."""
    from zerothresh.runs import RunError
    from zerothresh.runs.inspection import inspect
    from zerothresh.runs.paths import run_path

    try:
        if not os.path.exists(run_path(run) / "run.json"):
            say(f"zerothresh: starting a new run in {run}", err=True)
            return
        found = inspect(run)
    except RunError:
        return
    if found.state == "ended" and budget == found.budget:
        say(f"zerothresh: the run in {run} has already ended", err=True)
    elif found.holder is None and budget >= found.budget:
        say(f"zerothresh: continuing the run in {run} after {found.calls:,} calls", err=True)


def _how_to_continue(result: Result, run: Path) -> None:
    """Print how to continue a run that stopped for a reason that may be temporary."""
    name = result.status.name
    if name == "TIME" or (not result.status.success and name != "DIVERGED"):
        say(f"zerothresh: the run is kept in {run}; to continue it, run the same command again", err=True)


def _code(result: Any) -> int:
    """Return the exit code for a result."""
    if result.success:
        return 0
    return INTERRUPTED if result.status.name == "INTERRUPTED" else FAILED
