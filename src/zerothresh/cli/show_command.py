"""`zerothresh show`: what a run folder tells, also while the run goes on."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zerothresh.cli.messages import print_rows, refusing, speaking

if TYPE_CHECKING:
    from zerothresh.runs.inspection import Inspection

_MOST_SHOWN = 12  # coordinates of the support
_MOST_FAILURES = 3
_GOES_ON = "to go on, run the same command again"


def show(
    run: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of a run: what --run or run= named.")],
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """Show a run: state, spend, best value, failures, speed and time left. Nothing is locked or changed."""
    with speaking():
        from zerothresh.runs.inspection import inspect

        with refusing():
            found = inspect(run)
        if as_json:
            typer.echo(json.dumps(asdict(found), indent=2))
        else:
            print_rows(found.folder, describe(found))


def describe(found: Inspection) -> dict[str, str]:
    """The rows of the table."""
    words = found.identity
    share = f", {100 * found.calls / found.budget:.0f} %" if found.budget > 0 else ""
    rows = {
        "state": _state(found),
        "method": _assigned(words.get("options"), str(words.get("method"))),
        "estimate": _assigned(words.get("estimator"), ""),
        "problem": f"{words.get('problem')}, d = {words.get('d')}, n = {words.get('n')}, seed = {words.get('seed')}",
        "#IZO": f"{found.calls:,} of {found.budget:,}{share}",
    }
    if found.since_snapshot:
        rows["newer"] = f"{found.since_snapshot:,} of these calls are newer than the snapshot, which tells the rest:"
    if found.spent is not None:
        rows["cost"] = f"{found.spent:,.6g}"
    rows["F"] = _best(found)
    rows["#NHT"] = f"{found.nht:,} in {found.steps:,} steps"
    rows["support"] = _support(found)
    rows["sessions"] = f"{found.sessions:,}, {found.crashes:,} of them broken off"
    if found.speed is not None:
        rows["speed"] = f"{found.speed:,.4g} calls a second in the latest session"
    if found.seconds_left is not None:
        rows["time left"] = f"about {duration(found.seconds_left)}, for the {_left(found)} calls left"
    rows["failures"] = f"{found.failures:,}, charged as {found.failed_calls:,} calls" if found.failures else "none"
    for fault in found.last_failures[-_MOST_FAILURES:]:
        rows["failures"] += f"\n{fault.time}, component {fault.component}: {fault.error[:200]}"
    if found.broken:
        rows["broken"] = "\n".join(found.broken)
    return rows


def _state(found: Inspection) -> str:
    match found.state:
        case "running":
            return f"running now, by {found.holder}"
        case "new":
            return f"no call has been made; {_GOES_ON}"
        case "crashed":
            return f"broken off: the process was killed, or left the run without ending it; {_GOES_ON}"
        case "ended" if found.status == "BUDGET":
            return f"ended: {found.message}; a larger budget goes on"
        case "ended":
            return f"ended: {found.message}"
    return f"stopped ({found.status}): {found.message}; {_GOES_ON}"


def _best(found: Inspection) -> str:
    if found.best_fun is not None:
        return f"{found.best_fun:.8g} at the best point"
    mean = "" if found.recent is None else f"; a running mean of the values is {found.recent:.4g}"
    return f"not known yet{mean}"


def _support(found: Inspection) -> str:
    if found.support is None:
        return "no step yet"
    some = " ".join(map(str, found.support[:_MOST_SHOWN])) + (" ..." if len(found.support) > _MOST_SHOWN else "")
    size = f"{len(found.support)} of at most {found.identity.get('k')} non-zeros"
    return f"{size}{': ' if some else ''}{some}; changed {found.support_changes:,} times"


def _left(found: Inspection) -> str:
    return f"{max(0, found.budget - found.calls):,}"


def _assigned(fields: Any, first: str) -> str:
    """Settings as ``name = value``."""
    given = fields.items() if isinstance(fields, dict) else ()
    parts = [f"{name} = {_value(value)}" for name, value in given if name != "class"]
    return ", ".join([first, *parts] if first else parts)


def _value(value: Any) -> str:
    """A setting; a dataclass (a law of J) by its class and fields."""
    if isinstance(value, dict):
        return f"{value.get('class', '')}({_assigned(value, '')})"
    return f"{value:g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """A time in words: 40 s, 12 min, 3.5 h, 2.1 days."""
    for most, unit, size in ((120, "s", 1), (7200, "min", 60), (172_800, "h", 3600)):
        if seconds < most:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86_400:,.4g} days"
