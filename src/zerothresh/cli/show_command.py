"""`zerothresh show`: the state of a run folder, also of a run that is running."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zerothresh.cli.messages import print_rows, refusing, say, speaking

if TYPE_CHECKING:
    from zerothresh.k_path.path_folder import PathFolder
    from zerothresh.runs.inspection import Inspection

_MOST_SHOWN = 12  # coordinates of the support that are listed
_MOST_FAILURES = 3  # failures that are listed
_HOW_TO_CONTINUE = "to continue, run the same command again"


def show(
    run: Annotated[Path, typer.Argument(metavar="FOLDER", help="The run folder that --run or run= named.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show a run: its state, calls, best value, failures, speed and the time left.

    The run is neither locked nor changed, and may be running.
    """
    with speaking():
        from zerothresh.k_path.path_folder import PathFolder
        from zerothresh.runs.inspection import inspect

        with refusing():
            table: dict[str, Any] | None = None
            if (kept := PathFolder(run)).exists:
                table, run = kept.read(), kept.calls
                if not as_json:
                    _show_path(kept, table)
            found = inspect(run)
        if as_json:
            say(json.dumps(asdict(found) if table is None else {**asdict(found), "path": table}, indent=2))
        else:
            print_rows(found.folder, describe(found))


def _show_path(kept: PathFolder, content: dict[str, Any]) -> None:
    """Print what a path was asked for, and F for each k as the last session that ended knew it."""
    ks = sorted({k for segment in kept.segments() for k in segment.ks})
    say(f"a path over k = {', '.join(map(str, ks))}; below, the calls that all of them share")
    table = content.get("table")
    if not isinstance(table, dict):
        say("no session has ended yet, so F is not known here")
        return
    for k, fun in zip(table.get("k", []), table.get("fun", []), strict=False):
        say(f"  k = {k}: F = {fun:.8g}" if isinstance(fun, float) and fun == fun else f"  k = {k}: F is not known")


def describe(found: Inspection) -> dict[str, str]:
    """Return the rows of the table by their names."""
    identity = found.identity
    share = f", {100 * found.calls / found.budget:.0f} %" if found.budget > 0 else ""
    names = ("d", "n", "seed") if identity.get("outputs") is None else ("d", "seed")
    rows = {
        "state": _state(found),
        "method": _assigned(identity.get("options"), str(identity.get("method"))),
        "estimate": _assigned(identity.get("estimator"), ""),
        "problem": ", ".join([str(identity.get("problem")), *(f"{name} = {identity.get(name)}" for name in names)]),
        "#IZO": f"{found.calls:,} of {found.budget:,}{share}",
    }
    if identity.get("outputs") is not None:
        rows["outputs"] = f"{identity.get('outputs')}, all of them by each call; loss {identity.get('loss')}"
    if identity.get("method") == "auto":
        del rows["estimate"]  # auto chooses for itself how it estimates gradients
    if found.since_snapshot:
        rows["since snapshot"] = f"{found.since_snapshot:,} of these calls; the rows below do not show them yet"
    if found.spent is not None:
        rows["cost"] = f"{found.spent:,.6g}"
    rows["F"] = _best(found)
    rows["#NHT"] = f"{found.nht:,} in {found.steps:,} steps"
    rows["support"] = _support(found)
    rows["sessions"] = (
        f"{found.sessions:,}, {f'{found.crashes:,}' if found.crashes else 'none'} of them crashed or killed"
    )
    if found.speed is not None:
        rows["speed"] = f"{found.speed:,.4g} calls per second in the latest session"
    if found.seconds_left is not None:
        rows["time left"] = f"about {duration(found.seconds_left)}, for the remaining {_left(found)} calls"
    rows["failures"] = f"{found.failures:,}, counted as {found.failed_calls:,} calls" if found.failures else "none"
    for fault in found.last_failures[-_MOST_FAILURES:]:
        rows["failures"] += f"\n{fault.time}, component {fault.component}: {fault.error[:200]}"
    if found.broken:
        rows["damaged"] = "\n".join(found.broken)
    return rows


def _state(found: Inspection) -> str:
    """Describe the state of a run, and how to continue it."""
    match found.state:
        case "running":
            return f"running now, in {found.holder}"
        case "new":
            return f"no call has been made yet; {_HOW_TO_CONTINUE}"
        case "crashed":
            return f"crashed: the process was killed, or exited without ending the run; {_HOW_TO_CONTINUE}"
        case "ended" if found.status == "BUDGET":
            return f"ended: {found.message}; to continue, raise the budget"
        case "ended":
            return f"ended: {found.message}"
    status = f" ({found.status})" if found.status else ""
    return f"stopped{status}: {found.message}; {_HOW_TO_CONTINUE}"


def _best(found: Inspection) -> str:
    """Describe the best value so far."""
    if found.best_fun is not None:
        return f"{found.best_fun:.8g} at the best point"
    mean = "" if found.recent is None else f"; a running mean of the values is {found.recent:.4g}"
    return f"not known yet{mean}"


def _support(found: Inspection) -> str:
    """Describe the support of the current iterate."""
    if found.support is None:
        return "no step yet"
    some = " ".join(map(str, found.support[:_MOST_SHOWN])) + (" ..." if len(found.support) > _MOST_SHOWN else "")
    size = f"{len(found.support)} of at most {found.identity.get('k')} non-zeros"
    return f"{size}{': ' if some else ''}{some}; changed {found.support_changes:,} times"


def _left(found: Inspection) -> str:
    """Return the number of calls that the budget still allows."""
    return f"{max(0, found.budget - found.calls):,}"


def _assigned(fields: Any, first: str) -> str:
    """Return settings as ``name = value``, separated by commas."""
    given = fields.items() if isinstance(fields, dict) else ()
    parts = [f"{name} = {_value(value)}" for name, value in given if name != "class"]
    return ", ".join([first, *parts] if first else parts)


def _value(value: Any) -> str:
    """Format a setting; a dataclass, such as a law of J, by its class and fields."""
    if isinstance(value, dict):
        return f"{value.get('class', '')}({_assigned(value, '')})"
    return f"{value:g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """Format a time: 40 s, 12 min, 3.5 h, 2.1 days."""
    for most, unit, size in ((120, "s", 1), (7200, "min", 60), (172_800, "h", 3600)):
        if seconds < most:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86_400:,.4g} days"
