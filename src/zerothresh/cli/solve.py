"""`zerothresh solve`: minimise a function that a module or a file defines."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from zerothresh.cli.say import FAILED, INTERRUPTED, BadInput, own_traceback, refusing, speaking

EXAMPLE = (
    "[bold]Example[/bold]. The file box.py holds `def loss(x, i): ...`, the loss of component i at x:\n\n"
    "  zerothresh solve box:loss --dim 500 -k 20 --components 200 --budget 200000 "
    "--method vr-szht --set eta=0.01 --set m=10 --out result.json\n\n"
    "[bold]Exit codes[/bold]. 0: all went well. 1: a failure stopped the run; the best point is written all "
    "the same. 2: bad input, and nothing was queried. 130: Ctrl-C; the best point is written."
)

_PROBLEM, _METHOD, _ESTIMATE, _RUN = "The problem", "The method", "The gradient estimate", "The run and its output"


def solve(
    objective: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="What to minimise: module:function (the current folder is searched first), path/to/file.py:function, "
            "or a problem object with d, n and values(points, components).",
        ),
    ],
    k: Annotated[int, typer.Option("-k", help="The most non-zero coordinates.", rich_help_panel=_PROBLEM)],
    budget: Annotated[
        int,
        typer.Option(help="The most calls of the function (#IZO); never exceeded.", rich_help_panel=_PROBLEM),
    ],
    method: Annotated[
        str, typer.Option(help="The method, by name: see `zerothresh methods`.", rich_help_panel=_METHOD)
    ],
    dim: Annotated[
        int | None,
        typer.Option(help="d, the length of x; the start is 0. A problem object knows it.", rich_help_panel=_PROBLEM),
    ] = None,
    components: Annotated[
        int | None,
        typer.Option(
            help="n: F is the mean of function(x, i) for i = 0 .. n-1. Without it, F is function(x).",
            rich_help_panel=_PROBLEM,
        ),
    ] = None,
    x0: Annotated[
        Path | None, typer.Option(metavar="FILE.npy", help="The start, a vector.", rich_help_panel=_PROBLEM)
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="Every coordinate stays between them.", rich_help_panel=_PROBLEM),
    ] = None,
    vectorized: Annotated[
        bool,
        typer.Option(
            "--vectorized",
            help="The function takes many points at once: X of shape (B, d) (and I of shape (B,)), and returns (B,).",
            rich_help_panel=_PROBLEM,
        ),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A hyper-parameter of the method, such as eta=0.01; may be given again.",
            rich_help_panel=_METHOD,
        ),
    ] = None,
    q: Annotated[
        int, typer.Option(help="Directions; an estimate costs q + 1 calls (forward).", rich_help_panel=_ESTIMATE)
    ] = 10,
    mu: Annotated[
        float,
        typer.Option(
            help="Length of a step along a direction; as small as the function's noise allows.",
            rich_help_panel=_ESTIMATE,
        ),
    ] = 1e-3,
    s2: Annotated[
        int | None,
        typer.Option(help="Size of a direction's random support (default: d).", rich_help_panel=_ESTIMATE),
    ] = None,
    directions: Annotated[
        str,
        typer.Option(
            help="orthogonal, sphere (the paper's), rademacher or coordinate.",
            rich_help_panel=_ESTIMATE,
        ),
    ] = "orthogonal",
    difference: Annotated[
        str, typer.Option(help="forward, or central (2q calls).", rich_help_panel=_ESTIMATE)
    ] = "forward",
    independent: Annotated[
        bool,
        typer.Option(
            "--independent",
            help="Draw the two estimates inside a difference of vr-szht or sarah-szht apart; noisier.",
            rich_help_panel=_ESTIMATE,
        ),
    ] = False,
    per_component: Annotated[
        bool,
        typer.Option(
            "--per-component",
            help="Draw directions afresh for each component of a round, as the paper does; noisier.",
            rich_help_panel=_ESTIMATE,
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(help="The same seed gives the same run. Without it one is drawn, and told.", rich_help_panel=_RUN),
    ] = None,
    workers: Annotated[int, typer.Option(help="Threads that call the function.", rich_help_panel=_RUN)] = 1,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the result here.", rich_help_panel=_RUN)
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Write a row a step here: calls, #NHT, support.", rich_help_panel=_RUN),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.", rich_help_panel=_RUN)] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="No live display and no summary.", rich_help_panel=_RUN)
    ] = False,
) -> None:
    """Minimise a function with at most k non-zero coordinates, from its values alone."""
    with speaking():
        from zerothresh.cli import load, outcome
        from zerothresh.engine import minimize
        from zerothresh.files import check_file
        from zerothresh.plan import Estimator

        with refusing():
            if out is not None and out == trace:
                raise BadInput(f"--out and --trace both name {out}: name two files")
            for path in filter(None, (out, trace)):
                check_file(path, overwrite=force)
            chosen = load.method(method, settings or [])
            estimator = Estimator(q, mu, s2, difference, directions, shared=not independent, common=not per_component)
            fun = load.objective(objective)
            begun = time.perf_counter()
            result = minimize(
                fun,
                load.start(x0, dim, fun),
                k,
                budget=budget,
                n=components,
                method=chosen,
                estimator=estimator,
                seed=seed,
                vectorized=vectorized,
                bounds=bounds,
                workers=workers,
                progress=False if quiet else None,
            )
            seconds = time.perf_counter() - begun
        if result.failure is not None and result.status.name == "FAILED":
            typer.echo(own_traceback(result.failure.error), err=True, nl=False)
        if not quiet:
            outcome.show(result, k, seconds, out)
        elif not result.success:
            typer.echo(f"zerothresh: {result.message}", err=True)
        written = outcome.write(result, objective, k, seconds, out, trace)
    raise typer.Exit(_code(result) if written else FAILED)


def _code(result: Any) -> int:
    if result.success:
        return 0
    return INTERRUPTED if result.status.name == "INTERRUPTED" else FAILED
