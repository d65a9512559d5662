"""`zerothresh path`: minimise a function for several k, and help to choose one."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zerothresh.cli import options
from zerothresh.cli.long_run_log import long_run_log
from zerothresh.cli.messages import FAILED, INTERRUPTED, BadInput, own_traceback, refusing, say, speaking

if TYPE_CHECKING:
    from zerothresh.k_path import PathResult

EXAMPLE = (
    "[bold]Example[/bold]. The file box.py holds `def loss(x, i): ...`, the loss of component i at x:\n\n"
    "  zerothresh path box:loss --dim 500 --ks 1,2,5,10,20 --components 200 --budget 300000 --cv 5 "
    "--run runs/path --plot path.png\n\n"
    "[bold]Exit codes[/bold] are those of `zerothresh solve`."
)

_CHOICE = "The choice of k"
LOSS_OF = {"gaussian": ("mse", "squared"), "logistic": ("logistic",), "poisson": ("poisson",)}  # by likelihood

Ks = Annotated[
    str,
    typer.Option(
        metavar="LIST",
        help="The values of k: 1,2,5,10, or 1:20 for all from 1 to 20, or both.",
        rich_help_panel=_CHOICE,
    ),
]
Cv = Annotated[
    int | None,
    typer.Option(
        help="Cross-validate over the components with this number of folds, and choose k by the one-standard-error "
        "rule.",
        rich_help_panel=_CHOICE,
    ),
]
Likelihood = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="What F is, for AIC and BIC: gaussian (a mean square), or logistic, poisson or nll (a mean negative "
        "log-likelihood).",
        rich_help_panel=_CHOICE,
    ),
]
PlotFile = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw F against k into this file.", rich_help_panel=options.RUN),
]


def path(
    ks: Ks,
    budget: options.Budget,
    objective: options.OptionalObjective = None,
    csv: options.Csv = None,
    target: options.Target = None,
    cv: Cv = None,
    likelihood: Likelihood = None,
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
    plot: PlotFile = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Minimise a function for several k at little more than the price of one, and help to choose k."""
    with speaking():
        from zerothresh.basics import check
        from zerothresh.cli import load
        from zerothresh.cli import outputs as written_files
        from zerothresh.constraint.shares import Simplex
        from zerothresh.evaluate.worker_processes import Processes
        from zerothresh.k_path import path as solve_path
        from zerothresh.runs import FSYNC_MODES

        with refusing():
            check.one_of("--fsync", fsync, FSYNC_MODES)
            if out is not None and out == plot:
                raise BadInput(f"--out and --plot both name {out}: name two different files")
            for file in filter(None, (out, plot)):
                written_files.check(file, None, force=force)
            if plot is not None:
                load.need_matplotlib("--plot")
            if processes is not None:
                if workers != 1:
                    raise BadInput("--workers counts threads, and --processes processes: give one of the two")
                check.count("--processes", processes)
            wanted = load.whole_numbers("--ks", ks)
            chosen = load.method(method, settings or [])
            model = None if csv is None else load.table(csv, target, loss)
            if (objective is None) == (model is None):
                raise BadInput("name a function, as module:function, or a table with --csv and --target")
            fits = LOSS_OF.get(likelihood or "")
            if model is not None and fits is not None and (loss or "mse") not in fits:
                raise BadInput(f"--likelihood {likelihood} goes with --loss {fits[0]}: F is the mean of another loss")
            fun: Any = load.objective(objective) if objective is not None else None
            chosen_loss = load.loss(loss) if model is None else None
            chosen_include = load.names_in("--include", include, model)
            chosen_exclude = load.names_in("--exclude", exclude, model)
            if model is not None:
                model.refuse({"--groups": groups, "--simplex": simplex, "--values": values})
                fun, chosen_include = model.problem, model.include(chosen_include, chosen_exclude, wanted)
            start = load.start(x0, dim, fun) if model is None else model.start(x0)
            home = Path.cwd()
            begun = time.perf_counter()
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            found = long_run_log()(solve_path)(
                fun,
                start,
                wanted if model is None else [model.k(k) for k in wanted],
                budget=budget,
                cv=cv,
                likelihood=likelihood,
                n=components,
                method=chosen,
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
        if model is not None:
            found = found.shifted(-1)  # the intercept is not counted
        named = objective if objective is not None else f"{csv}:{target}"
        if found.failure is not None and found.status.name == "FAILED":
            say(own_traceback(found.failure.error), err=True, nl=False)
        if not quiet:
            say(found.text(width=80))
            say(f"seed {found.seed}, {seconds:.2f} s" + ("" if run is None else f", kept in {run}"))
        os.chdir(home)
        if model is not None and found.best is not None and not quiet:
            say("\n".join(load.model_lines(model, target, found.best.x)))
        written = _write(found, named, seconds, run, out, plot)
        if not found.success:
            say(f"zerothresh: {found.message}", err=True)
    raise typer.Exit(_code(found) if written else FAILED)


def as_json(found: PathResult, objective: str, seconds: float, run: Path | None) -> str:
    """Return a path as JSON, with vectors as indices and values of their non-zeros, and null for NaN."""
    from zerothresh import __version__
    from zerothresh.cli.outcome import finite, sparse

    columns = found.columns()
    rows = []
    for place, result in enumerate(found.results):
        row = {name: column[place] for name, column in columns.items() if name not in ("support", "nonzeros")}
        row = {name: finite(value) if isinstance(value, float) else value for name, value in row.items()}
        rows.append({**row, "x": sparse(result.x), "status": result.status.name})
    content = {
        "zerothresh": __version__,
        "objective": objective,
        "d": int(found.results[0].x.size),
        "ks": list(found.ks),
        "best_k": found.best_k,
        "chosen_by": found.chosen_by,
        "nfev": found.nfev,
        "budget": found.budget,
        "success": found.success,
        "status": found.status.name,
        "message": found.message,
        "seed": found.seed,
        "seconds": round(seconds, 3),
        "run": None if run is None else str(run),
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in content.items()]
    listed = ",\n".join(f"    {json.dumps(row, allow_nan=False)}" for row in rows)
    return "{\n" + ",\n".join(lines) + ',\n  "path": [\n' + listed + "\n  ]\n}\n"


def _write(
    found: PathResult, objective: str, seconds: float, run: Path | None, out: Path | None, plot: Path | None
) -> bool:
    """Write the files, and return whether all could be written; a result that cannot be written is printed."""
    from zerothresh.basics import files

    written = True
    if out is not None:
        text = as_json(found, objective, seconds, run)
        try:
            files.write(out, text)
        except OSError as error:
            written = False
            say(f"zerothresh: {out} could not be written ({error.strerror}); its content follows", err=True)
            say(text)
    if plot is not None:
        try:
            found.plot(title=objective).savefig(plot, dpi=150)
        except (OSError, ValueError) as error:
            written = False
            say(f"zerothresh: {plot} could not be drawn ({error})", err=True)
    return written


def _code(found: Any) -> int:
    """Return the exit code for a path."""
    if found.success:
        return 0
    return INTERRUPTED if found.status.name == "INTERRUPTED" else FAILED
