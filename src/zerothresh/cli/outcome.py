"""The output of `zerothresh solve`: a summary on the terminal, a JSON file and a trace."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zerothresh.api.arms_plot import spans
from zerothresh.api.result import Result
from zerothresh.basics.files import write as write_file
from zerothresh.cli import outputs
from zerothresh.cli.messages import as_options, own_traceback, print_rows, say
from zerothresh.methods.registry import name_of

_MOST_SHOWN = 12  # coordinates of the support that the summary lists


def as_json(
    result: Result,
    objective: str,
    k: int,
    seconds: float,
    run: Path | None = None,
    model: dict[str, float] | None = None,
) -> str:
    """Return a result as JSON, with vectors as indices and values of their non-zeros, and null for NaN."""
    from zerothresh import __version__

    content = {
        "zerothresh": __version__,
        "objective": objective,
        "d": int(result.x.size),
        "k": k,
        "x": sparse(result.x),
        "fun": finite(result.fun),
        "nfev": result.nfev,
        "nht": result.nht,
        "nit": result.nit,
        "budget": result.budget,
        "success": result.success,
        "status": result.status.name,
        "message": result.message,
        "remarks": [{"nfev": calls, "message": remark} for calls, remark in result.remarks],
        "stages": [{"nfev": calls, "name": name} for calls, name in result.stages],
        "seed": result.seed,
        "method": {"name": name_of(result.method), **_fields(result.method)},
        "estimator": _fields(result.estimator),
        "seconds": round(seconds, 3),
        "run": None if run is None else str(run),
        "failure": _failure(result),
    }
    if result.residuals is not None:
        content["residuals"] = [finite(value) for value in result.residuals.tolist()]
    if result.fit is not None:
        content["standard_errors"] = [finite(value) for value in result.fit.standard_errors.tolist()]
    if model is not None:
        content["model"] = model
    # One line per key, so that people can read it and a support of thousands does not fill a page.
    lines = [f"  {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write(
    result: Result,
    objective: str,
    k: int,
    seconds: float,
    run: Path | None,
    out: Path | None,
    trace: Path | None,
    model: dict[str, float] | None = None,
) -> bool:
    """Write the result and the trace, and return whether both were written.

    What cannot be written is printed instead, because the calls have been made.
    """
    written = True
    made: dict[Path | None, Callable[[], str]] = {
        out: lambda: as_json(result, objective, k, seconds, run, model),
        trace: result.trace.to_csv,  # which reads the rows of earlier sessions from the run folder
    }
    for path, make in made.items():
        if path is None:
            continue
        try:
            text = make()
        except (OSError, ValueError) as error:
            written = False
            say(
                f"zerothresh: {path} could not be written, because the run's own trace.csv is damaged ({error})",
                err=True,
            )
            continue
        if run is not None:
            outputs.note(run, path, text)
        try:
            write_file(path, text)
        except OSError as error:
            written = False
            say(f"zerothresh: {path} could not be written ({error.strerror}); its content follows", err=True)
            say(text)
    return written


def show(
    result: Result,
    k: int,
    seconds: float,
    out: Path | None,
    trace: Path | None = None,
    *,
    verbose: bool = False,
    columns: Sequence[str] | None = None,
) -> None:
    """Print the summary; if verbose, first what the method found and chose.

    ``columns`` are the names of the coordinates of a table, of which the last one, the intercept, is not counted.
    """
    if verbose:
        for calls, remark in result.remarks:
            say(f"after {calls:,} calls: {remark}")
        if result.stages:
            made = ((name, sum(length for _, length in bars)) for name, bars in spans(result).items())
            say("calls by strategy: " + ", ".join(f"{name} {calls:,}" for name, calls in made))
        if not result.remarks:
            say(f"{name_of(result.method)} makes no choices of its own: all settings are given")
    d = result.x.size if columns is None else len(columns) - 1
    support = result.support[result.support < d]
    some = " ".join(str(j) if columns is None else columns[j] for j in support[:_MOST_SHOWN])
    more = " ..." if support.size > _MOST_SHOWN else ""
    rows = {
        "F": "not known" if math.isnan(result.fun) else f"{result.fun:.8g}",
        "#IZO": f"{result.nfev:,} of {result.budget:,}",
        "#NHT": f"{result.nht:,}",
        "steps": f"{result.nit:,}",
        "non-zeros": f"{support.size} of at most {k}, in {d:,} {'coordinates' if columns is None else 'columns'}",
        "support": f"{some}{more}" if some else "empty",
        "stopped": reason(result),
        "time": f"{seconds:.2f} s",
        "seed": str(result.seed),
    }
    if out is not None:
        rows["result"] = str(out)
    if trace is not None:
        rows["trace"] = str(trace)
    print_rows(name_of(result.method), rows)
    if result.fit is not None and result.support.size <= _MOST_SHOWN:
        say(f"\n{result.fit}")


def reason(result: Result) -> str:
    """Return why the run stopped, as the command says it; the objective's own message stays as it is."""
    message: str = result.message
    if result.status.name == "FAILED":
        return message.replace("; result.failure has the traceback", "; its traceback is above")
    return as_options(message)


def sparse(x: Any) -> dict[str, list[Any]]:
    """Return a vector by the indices and values of its non-zeros."""
    indices = np.flatnonzero(x)
    return {"indices": indices.tolist(), "values": [finite(value) for value in x[indices].tolist()]}


def finite(value: float) -> float | None:
    """Return a number as JSON knows it: None for NaN and infinities."""
    return float(value) if math.isfinite(value) else None


def _fields(instance: Any) -> dict[str, Any]:
    """Return the fields of a dataclass; values that JSON does not know (such as a law of J) as Python writes them."""
    if not dataclasses.is_dataclass(instance):
        return {"made": repr(instance)}
    out = {}
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        out[field.name] = value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
    return out


def _failure(result: Result) -> dict[str, Any] | None:
    """Return the failure that stopped a run, as JSON knows it."""
    failure = result.failure
    if failure is None:
        return None
    return {
        "type": type(failure.error).__name__,
        "message": _text(failure.error),
        "component": failure.component,
        "point": sparse(failure.point),
        "traceback": own_traceback(failure.error),
    }


def _text(error: BaseException) -> str:
    """Return the text of an exception of the user's own, whose ``__str__`` may fail too."""
    try:
        return str(error)
    except Exception:
        return "its text could not be made"
