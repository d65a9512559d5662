"""What `zerothresh solve` leaves behind: a summary on the terminal, a JSON file, a trace."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import typer

from zerothresh.api.result import Result
from zerothresh.basics.files import write as write_file
from zerothresh.cli import outputs
from zerothresh.cli.messages import own_traceback, print_rows
from zerothresh.methods.registry import name_of

_MOST_SHOWN = 12  # coordinates of the support in the summary


def as_json(result: Result, objective: str, k: int, seconds: float, run: Path | None = None) -> str:
    """The result as JSON; vectors by their non-zeros, and null for what is not a number."""
    from zerothresh import __version__

    content = {
        "zerothresh": __version__,
        "objective": objective,
        "d": int(result.x.size),
        "k": k,
        "x": _sparse(result.x),
        "fun": _number(result.fun),
        "nfev": result.nfev,
        "nht": result.nht,
        "nit": result.nit,
        "budget": result.budget,
        "success": result.success,
        "status": result.status.name,
        "message": result.message,
        "remarks": [{"nfev": calls, "words": words} for calls, words in result.remarks],
        "seed": result.seed,
        "method": {"name": name_of(result.method), **_fields(result.method)},
        "estimator": _fields(result.estimator),
        "seconds": round(seconds, 3),
        "run": None if run is None else str(run),
        "failure": _failure(result),
    }
    # A line a key, so that people can read it and a support of thousands does not fill a page.
    lines = [f"  {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(
    result: Result, objective: str, k: int, seconds: float, run: Path | None, out: Path | None, trace: Path | None
) -> bool:
    """Write the files; what cannot be written goes to the standard output, for the calls are paid for."""
    written = True
    made: dict[Path | None, Callable[[], str]] = {
        out: lambda: as_json(result, objective, k, seconds, run),
        trace: result.trace.to_csv,  # reads the rows of earlier sessions from the run folder
    }
    for path, make in made.items():
        if path is None:
            continue
        try:
            text = make()
        except (OSError, ValueError) as error:
            written = False
            typer.echo(
                f"zerothresh: {path} could not be written: the run's own trace.csv is broken ({error})", err=True
            )
            continue
        if run is not None:
            outputs.note(run, path, text)
        try:
            write_file(path, text)
        except OSError as error:
            written = False
            typer.echo(f"zerothresh: {path} could not be written ({error.strerror}); its content follows", err=True)
            typer.echo(text)
    return written


def show(result: Result, k: int, seconds: float, out: Path | None, *, verbose: bool = False) -> None:
    """The summary; verbose: before it what the method found and chose."""
    if verbose:
        for calls, words in result.remarks:
            typer.echo(f"after {calls:,} calls: {words}")
        if not result.remarks:
            typer.echo(f"{name_of(result.method)} chooses nothing: its settings are the user's")
    some = " ".join(map(str, result.support[:_MOST_SHOWN]))
    more = " ..." if result.support.size > _MOST_SHOWN else ""
    rows = {
        "F": "not known" if math.isnan(result.fun) else f"{result.fun:.8g}",
        "#IZO": f"{result.nfev:,} of {result.budget:,}",
        "#NHT": f"{result.nht:,}",
        "steps": f"{result.nit:,}",
        "non-zeros": f"{result.support.size} of at most {k}, in {result.x.size:,} coordinates",
        "support": f"{some}{more}" if some else "empty",
        "stopped": result.message.removesuffix("; result.failure has the traceback"),  # it is above
        "time": f"{seconds:.2f} s",
        "seed": str(result.seed),
    }
    if out is not None:
        rows["result"] = str(out)
    print_rows(name_of(result.method), rows)


def _sparse(x: Any) -> dict[str, list[Any]]:
    indices = np.flatnonzero(x)
    return {"indices": indices.tolist(), "values": [_number(value) for value in x[indices].tolist()]}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _fields(made: Any) -> dict[str, Any]:
    """The fields of a dataclass, as JSON knows them; others (a law of J) as they are written in Python."""
    if not dataclasses.is_dataclass(made):
        return {"made": repr(made)}
    out = {}
    for field in dataclasses.fields(made):
        value = getattr(made, field.name)
        out[field.name] = value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
    return out


def _failure(result: Result) -> dict[str, Any] | None:
    failure = result.failure
    if failure is None:
        return None
    return {
        "type": type(failure.error).__name__,
        "message": str(failure.error),
        "component": failure.component,
        "point": _sparse(failure.point),
        "traceback": own_traceback(failure.error),
    }
