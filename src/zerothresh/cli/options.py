"""The options of `zerothresh solve` and `zerothresh advise`, each with its help text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_PROBLEM, _METHOD, _ESTIMATE = "The problem", "The method", "The gradient estimate"
_TABLE = "A linear model of a table"
_FAULTS, RUN = "Failed calls and time limits", "The run and its output"

Objective = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:FUNCTION",
        help="What to minimise: module:function (the current folder is searched first), path/to/file.py:function, "
        "or the name of a problem object with d, n and values(points, components).",
    ),
]
OptionalObjective = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODULE:FUNCTION]",
        help="What to minimise: module:function (the current folder is searched first), path/to/file.py:function, "
        "or the name of a problem object with d, n and values(points, components). Not with --csv.",
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.csv",
        help="Fit a linear model with an intercept to this table, whose first line has the names, instead of "
        "minimising a function of your own; k counts columns.",
        rich_help_panel=_TABLE,
    ),
]
Target = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column of --csv to predict.", rich_help_panel=_TABLE)
]
K = Annotated[int, typer.Option("-k", help="The largest number of non-zero coordinates.", rich_help_panel=_PROBLEM)]
Budget = Annotated[
    int,
    typer.Option(
        help="The largest number of calls of the function (#IZO); never exceeded. It may be raised when a run is "
        "continued.",
        rich_help_panel=_PROBLEM,
    ),
]
Dim = Annotated[
    int | None,
    typer.Option(
        help="The dimension d, which is the length of x; the run starts at 0. Not needed for a problem object.",
        rich_help_panel=_PROBLEM,
    ),
]
Components = Annotated[
    int | None,
    typer.Option(
        help="The number n of components: F is the mean of function(x, i) over i = 0, ..., n-1. Without it, F is "
        "function(x).",
        rich_help_panel=_PROBLEM,
    ),
]
Start = Annotated[
    Path | None,
    typer.Option(metavar="FILE.npy", help="A file with the start, a vector of length d.", rich_help_panel=_PROBLEM),
]
Bounds = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LOW HIGH", help="Every coordinate stays between these two values.", rich_help_panel=_PROBLEM),
]
BoundsFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A file with the bounds of each coordinate, low and high: an array (d, 2) as .npy, or text with a line "
        "for each coordinate.",
        rich_help_panel=_PROBLEM,
    ),
]
Include = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="Coordinates that always have a place in the support, such as 0,3,10:12; they count towards k.",
        rich_help_panel=_PROBLEM,
    ),
]
Exclude = Annotated[
    str | None,
    typer.Option(metavar="LIST", help="Coordinates that stay 0, such as 0,3,10:12.", rich_help_panel=_PROBLEM),
]
Groups = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A file with a label per coordinate: an array (d,) as .npy, or text with a label on each line. "
        "Coordinates with one label form a group, and k counts groups.",
        rich_help_panel=_PROBLEM,
    ),
]
Simplex = Annotated[
    float | None,
    typer.Option(
        metavar="TOTAL",
        help="No coordinate is negative, and all of them sum to this total, as the shares of a mixture sum to 1.",
        rich_help_panel=_PROBLEM,
    ),
]
Values = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="The values that coordinates may have: integers (with --bounds), bytes, on/off, or numbers separated by "
        "commas, such as 0,0.5,1. Only such points are queried.",
        rich_help_panel=_PROBLEM,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Query feasible points only: with at most k non-zeros, and with --simplex of the right sum.",
        rich_help_panel=_PROBLEM,
    ),
]
Vectorized = Annotated[
    bool,
    typer.Option(
        "--vectorized",
        help="The function takes many points at once: X of shape (B, d), with --components also I of shape (B,); it "
        "returns an array of shape (B,).",
        rich_help_panel=_PROBLEM,
    ),
]

Outputs = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="One call returns a vector of outputs, and counts once: residuals, of which F is the mean loss, or "
        "components, the f_i themselves. --components, their number, is not needed.",
        rich_help_panel=_PROBLEM,
    ),
]
Loss = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[:NUMBER]",
        help="The loss of a residual: squared (default), huber, cauchy or quantile; with its parameter, as in "
        "huber:0.5 (the size of ordinary residuals) or quantile:0.9. With --csv also mae, mape, and logistic for a "
        "target of two values.",
        rich_help_panel=_PROBLEM,
    ),
]

Method = Annotated[
    str,
    typer.Option(
        help="The name of the method; `zerothresh methods` lists them. auto needs no settings.", rich_help_panel=_METHOD
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A hyper-parameter of the method, such as eta=0.01. May be given several times.",
        rich_help_panel=_METHOD,
    ),
]

Q = Annotated[
    int | None,
    typer.Option(
        help="The number of directions per estimate, which costs q + 1 calls (default: 10).", rich_help_panel=_ESTIMATE
    ),
]
Mu = Annotated[
    float | None,
    typer.Option(
        help="The finite-difference step size, as small as the noise of the function allows (default: 1e-3; auto and "
        "its parts measure it).",
        rich_help_panel=_ESTIMATE,
    ),
]
S2 = Annotated[
    int | None,
    typer.Option(help="The number of non-zeros of a direction (default: d).", rich_help_panel=_ESTIMATE),
]
Directions = Annotated[
    str | None,
    typer.Option(
        help="How directions are drawn: orthogonal (default), sphere (as in the paper), gaussian, rademacher or "
        "coordinate.",
        rich_help_panel=_ESTIMATE,
    ),
]
Difference = Annotated[
    str | None,
    typer.Option(
        help="The kind of difference: forward (default), or central, which costs 2q calls.", rich_help_panel=_ESTIMATE
    ),
]
Independent = Annotated[
    bool,
    typer.Option(
        "--independent",
        help="Draw separate directions for the two estimates inside a difference of vr-szht or sarah-szht; noisier.",
        rich_help_panel=_ESTIMATE,
    ),
]
PerComponent = Annotated[
    bool,
    typer.Option(
        "--per-component",
        help="Draw separate directions for each component of a round, as in the paper; noisier.",
        rich_help_panel=_ESTIMATE,
    ),
]

Retries = Annotated[
    int,
    typer.Option(
        help="How often a call that raised or timed out is repeated; each attempt counts as a call.",
        rich_help_panel=_FAULTS,
    ),
]
Backoff = Annotated[
    float,
    typer.Option(help="Seconds to wait before the first retry; doubled for each further one.", rich_help_panel=_FAULTS),
]
Timeout = Annotated[float | None, typer.Option(help="Seconds after which a call is given up.", rich_help_panel=_FAULTS)]
Jitter = Annotated[
    float,
    typer.Option(
        help="Multiply each wait before a retry by a random number between 1 - jitter and 1 + jitter.",
        rich_help_panel=_FAULTS,
    ),
]
PerSecond = Annotated[
    float | None,
    typer.Option(
        help="The largest number of calls of the function that begin per second; it may be below 1.",
        rich_help_panel=_FAULTS,
    ),
]
OnNan = Annotated[
    str,
    typer.Option(
        help="What to do with NaN or an infinity: stop the run (stop), repeat the call (retry), use the worst value "
        "seen so far (worst), or, with --outputs, leave outputs that are NaN out of the mean (mask).",
        rich_help_panel=_FAULTS,
    ),
]
OnError = Annotated[
    str,
    typer.Option(
        help="What to do with a call that raised, timed out or killed its worker process, after its retries: stop the "
        "run (stop), or use the worst value seen so far (worst).",
        rich_help_panel=_FAULTS,
    ),
]
MaxTime = Annotated[
    float | None,
    typer.Option(help="Seconds after which this session starts no further calls.", rich_help_panel=_FAULTS),
]
Patience = Annotated[
    int | None,
    typer.Option(
        help="Calls without a gain after which auto stops although the budget is not spent.", rich_help_panel=RUN
    ),
]

Seed = Annotated[
    int | None,
    typer.Option(
        help="The seed: the same seed gives the same run. Without it, a seed is drawn and shown.", rich_help_panel=RUN
    ),
]
Workers = Annotated[int, typer.Option(help="The number of threads that call the function.", rich_help_panel=RUN)]
ProcessCount = Annotated[
    int | None,
    typer.Option(
        "--processes",
        help="Call the function in this number of worker processes instead of threads. One that dies is replaced, and "
        "its call repeated.",
        rich_help_panel=RUN,
    ),
]
Parallel = Annotated[
    int | None,
    typer.Option(
        help="How many calls take no longer together than one; the number of workers if it is not given. Rounds get "
        "as wide, and the result depends on this number and the seed alone.",
        rich_help_panel=RUN,
    ),
]
Run = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Keep every value in this folder as it arrives. The same command continues the run, whatever stopped it; "
        "see `zerothresh show` and `zerothresh export`.",
        rich_help_panel=RUN,
    ),
]
Fsync = Annotated[
    str,
    typer.Option(
        help="When a value in --run must be safe from a power failure: value (before the next call), batch (about a "
        "tenth of a second later) or never (whenever the system writes it).",
        rich_help_panel=RUN,
    ),
]
Out = Annotated[
    Path | None, typer.Option(metavar="FILE.json", help="Write the result to this file.", rich_help_panel=RUN)
]
Trace = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.csv",
        help="Write one row per step to this file: calls, #NHT, F if it is known, support.",
        rich_help_panel=RUN,
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Overwrite existing files. A file that the same --run wrote, unchanged since, is overwritten without it.",
        rich_help_panel=RUN,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Show what the method found and chose, and when.", rich_help_panel=RUN),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no live display and no summary.", rich_help_panel=RUN)]
