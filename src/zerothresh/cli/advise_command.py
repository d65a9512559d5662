"""`zerothresh advise`: what the theory guarantees on a problem, and what to run in practice."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zerothresh.cli import options
from zerothresh.cli.messages import FAILED, INTERRUPTED, own_traceback, refusing, say, speaking

if TYPE_CHECKING:
    from zerothresh.api.result import Result

_PROBLEM, _CURVATURE, _OUT = "The problem", "Curvature, given or measured", "Forecast and output"

EXAMPLES = (
    "[bold]With a function[/bold], `def loss(x, i): ...` in box.py, which is called at most 2000 times:\n\n"
    "  zerothresh advise box:loss --dim 50 -k 5 --components 30 --probe 2000\n\n"
    "[bold]With numbers[/bold], if the curvatures are known:\n\n"
    "  zerothresh advise --dim 1000 -k 200 --k-star 1 --components 30 --rho-minus 1 --rho-plus 2\n\n"
    "[bold]How to read the output[/bold]. The first lines say what to run and why. 'In theory' shows what the theorems "
    "of the papers say about this problem. "
    "They require many more non-zeros k than the solution's k*, because hard thresholding can expand errors by the "
    "factor alpha = 1 + 2 sqrt(k*/(k - k*)), and many directions q, because gradients are estimates. On most real "
    "problems they guarantee nothing. 'The gap' shows by what factor they are too conservative. 'In practice' has two "
    "commands that you can run as they are. docs/theory.md explains the background."
)

Objective = Annotated[
    str | None,
    typer.Argument(metavar="MODULE:FUNCTION", help="The function to probe, named as in `zerothresh solve`."),
]
KStar = Annotated[
    int | None,
    typer.Option(
        help="k*, the number of non-zeros of the solution that the theory compares with (default: k/2).",
        rich_help_panel=_PROBLEM,
    ),
]
RhoMinus = Annotated[
    float | None,
    typer.Option(
        help="rho^-, the smallest curvature of F along directions with 2k + k* non-zeros.", rich_help_panel=_CURVATURE
    ),
]
RhoPlus = Annotated[
    float | None,
    typer.Option(help="rho^+, the largest curvature of any f_i along such directions.", rich_help_panel=_CURVATURE),
]
ProbeCalls = Annotated[
    int,
    typer.Option(
        "--probe", help="Largest number of calls for measuring both; never exceeded.", rich_help_panel=_CURVATURE
    ),
]
S2 = Annotated[
    int | None,
    typer.Option(
        help="s2, the number of non-zeros of a direction in the theory (default: the better of 1 and d).",
        rich_help_panel=_OUT,
    ),
]
Eps = Annotated[
    float,
    typer.Option(help="Forecast the calls until F - F* is this share of its initial value.", rich_help_panel=_OUT),
]
Trial = Annotated[
    int,
    typer.Option(
        help="Number of calls for a trial run of each recommendation (default: no trial).", rich_help_panel=_OUT
    ),
]
Seed = Annotated[int | None, typer.Option(help="The seed of probing and trials.", rich_help_panel=_OUT)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.", rich_help_panel=_OUT)]


def advise(
    k: options.K,
    objective: Objective = None,
    dim: options.Dim = None,
    components: options.Components = None,
    k_star: KStar = None,
    x0: options.Start = None,
    vectorized: options.Vectorized = False,
    outputs: options.Outputs = None,
    loss: options.Loss = None,
    rho_minus: RhoMinus = None,
    rho_plus: RhoPlus = None,
    probe: ProbeCalls = 2000,
    s2: S2 = None,
    eps: Eps = 1e-3,
    trial: Trial = 0,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Advise on a problem: what the theory guarantees, what to run in practice, and the gap between the two."""
    with speaking():
        from zerothresh.advice import advise as ask
        from zerothresh.advice.probing import ProbeFailed
        from zerothresh.cli import load

        home = Path.cwd()
        try:
            with refusing():
                fun: Any = None if objective is None else load.objective(objective)
                start = None if fun is None else load.start(x0, dim, fun)
                found = ask(
                    fun,
                    start,
                    k,
                    n=components,
                    d=dim if fun is None else None,
                    k_star=k_star,
                    rho_minus=rho_minus,
                    rho_plus=rho_plus,
                    s2=s2,
                    eps=eps,
                    probe=probe,
                    trial=trial,
                    seed=seed,
                    vectorized=vectorized,
                    outputs=outputs,
                    loss=load.loss(loss),
                )
        except ProbeFailed as failed:
            _failed(failed.result)
        os.chdir(home)
        named = None if x0 is None else str(x0)
        found = replace(found, objective=objective or "MODULE:FUNCTION", start=named, loss=loss)
        if as_json:
            say(found.to_json())
        else:
            from rich.console import Console

            Console(soft_wrap=False).print(found)


def _failed(result: Result) -> None:
    """Print the traceback of the user's function and a message, and exit."""
    if result.failure is not None and result.status.name == "FAILED":
        say(own_traceback(result.failure.error), err=True, nl=False)
    say(f"zerothresh: {result.message}", err=True)
    raise typer.Exit(INTERRUPTED if result.status.name == "INTERRUPTED" else FAILED)
