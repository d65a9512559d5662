"""The options of `zerothresh solve`, each with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_PROBLEM, _METHOD, _ESTIMATE = "The problem", "The method", "The gradient estimate"
_FAULTS, _RUN = "When calls fail, and when to stop", "The run and its output"

Objective = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:FUNCTION",
        help="What to minimise: module:function (the current folder is searched first), path/to/file.py:function, "
        "or a problem object with d, n and values(points, components).",
    ),
]
K = Annotated[int, typer.Option("-k", help="The most non-zero coordinates.", rich_help_panel=_PROBLEM)]
Budget = Annotated[
    int,
    typer.Option(
        help="The most calls of the function (#IZO); never exceeded. It may grow when a run goes on.",
        rich_help_panel=_PROBLEM,
    ),
]
Dim = Annotated[
    int | None,
    typer.Option(help="d, the length of x; the start is 0. A problem object knows it.", rich_help_panel=_PROBLEM),
]
Components = Annotated[
    int | None,
    typer.Option(
        help="n: F is the mean of function(x, i) for i = 0 .. n-1. Without it, F is function(x).",
        rich_help_panel=_PROBLEM,
    ),
]
Start = Annotated[Path | None, typer.Option(metavar="FILE.npy", help="The start, a vector.", rich_help_panel=_PROBLEM)]
Bounds = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LOW HIGH", help="Every coordinate stays between them.", rich_help_panel=_PROBLEM),
]
Vectorized = Annotated[
    bool,
    typer.Option(
        "--vectorized",
        help="The function takes many points at once: X of shape (B, d) (and I of shape (B,)), and returns (B,).",
        rich_help_panel=_PROBLEM,
    ),
]

Method = Annotated[
    str,
    typer.Option(
        help="The method, by name: see `zerothresh methods`. auto needs no settings.", rich_help_panel=_METHOD
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A hyper-parameter of the method, such as eta=0.01; may be given again.",
        rich_help_panel=_METHOD,
    ),
]

Q = Annotated[
    int | None,
    typer.Option(help="Directions; an estimate costs q + 1 calls (default: 10).", rich_help_panel=_ESTIMATE),
]
Mu = Annotated[
    float | None,
    typer.Option(
        help="Length of a step along a direction, as small as the function's noise allows (default: 1e-3; auto and "
        "its parts measure it).",
        rich_help_panel=_ESTIMATE,
    ),
]
S2 = Annotated[
    int | None,
    typer.Option(help="Size of a direction's random support (default: d).", rich_help_panel=_ESTIMATE),
]
Directions = Annotated[
    str | None,
    typer.Option(
        help="orthogonal (default), sphere (the paper's), rademacher or coordinate.", rich_help_panel=_ESTIMATE
    ),
]
Difference = Annotated[
    str | None, typer.Option(help="forward (default), or central (2q calls).", rich_help_panel=_ESTIMATE)
]
Independent = Annotated[
    bool,
    typer.Option(
        "--independent",
        help="Draw the two estimates inside a difference of vr-szht or sarah-szht apart; noisier.",
        rich_help_panel=_ESTIMATE,
    ),
]
PerComponent = Annotated[
    bool,
    typer.Option(
        "--per-component",
        help="Draw directions afresh for each component of a round, as the paper does; noisier.",
        rich_help_panel=_ESTIMATE,
    ),
]

Retries = Annotated[
    int,
    typer.Option(help="How often a call that raised or took too long is made again; charged.", rich_help_panel=_FAULTS),
]
Backoff = Annotated[
    float,
    typer.Option(help="Seconds before the first retry; doubled for each further one.", rich_help_panel=_FAULTS),
]
Timeout = Annotated[float | None, typer.Option(help="Seconds after which a call is given up.", rich_help_panel=_FAULTS)]
OnNan = Annotated[
    str,
    typer.Option(
        help="What NaN or an infinity does: stop the run, be made again (retry), or count as the worst value seen "
        "(worst).",
        rich_help_panel=_FAULTS,
    ),
]
MaxTime = Annotated[
    float | None,
    typer.Option(help="Seconds after which no more calls are begun, in this session.", rich_help_panel=_FAULTS),
]

Seed = Annotated[
    int | None,
    typer.Option(help="The same seed gives the same run. Without it one is drawn, and told.", rich_help_panel=_RUN),
]
Workers = Annotated[int, typer.Option(help="Threads that call the function.", rich_help_panel=_RUN)]
Run = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Keep every value here as it arrives. The same command again goes on where the run stopped, "
        "whatever stopped it; see `zerothresh show` and `zerothresh export`.",
        rich_help_panel=_RUN,
    ),
]
Fsync = Annotated[
    str,
    typer.Option(
        help="When a value of --run has to be on the disk itself, should the power fail: value (before the next "
        "call), batch (about a tenth of a second later) or never (when the system likes).",
        rich_help_panel=_RUN,
    ),
]
Out = Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the result here.", rich_help_panel=_RUN)]
Trace = Annotated[
    Path | None,
    typer.Option(metavar="FILE.csv", help="Write a row a step here: calls, #NHT, support.", rich_help_panel=_RUN),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Overwrite files that exist. What the same --run wrote, unchanged since, needs no --force.",
        rich_help_panel=_RUN,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Tell what the method found and chose, and when.", rich_help_panel=_RUN),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No live display and no summary.", rich_help_panel=_RUN)]
